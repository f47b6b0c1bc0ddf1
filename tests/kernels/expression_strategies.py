"""Well-typed conjuncts over the variables a, c (one event) and b (iterated), and bags of events for them.

Where Spark and the reference differ by design the strategies keep out: integers beyond 2**53 mixed with doubles under
CASE, COALESCE, GREATEST and LEAST, and instants beyond the year 9999.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tocsin.analysis import types
from tocsin.analysis.inference import Environment
from tocsin.language import expressions as ex
from tocsin.reference.stream import Event

TYPES = {
    "x": types.INTEGER,
    "small": types.INTEGER,
    "v": types.DOUBLE,
    "half": types.DOUBLE,
    "k": types.STRING,
    "f": types.BOOLEAN,
    "d": types.DECIMAL,
    "t": types.TIMESTAMP,
    "day": types.DATE,
    "wait": types.INTERVAL,
    "s": types.struct_of([("z", types.INTEGER)]),
}
Bags = Mapping[str, list[dict[str, Any]]]
Strategy = st.SearchStrategy[ex.Expression]


def _type(reference: ex.Attribute) -> types.DataType:
    found = TYPES[reference.path[0]]
    for name in reference.path[1:]:
        found = dict(found.fields)[name]
    return found


ENVIRONMENT = Environment(_type)

# --- values ---------------------------------------------------------------------------------------

EXTREMES = [-(2**63), -(2**63) + 1, 2**63 - 1, 2**62, -(2**62), 2**31, -(2**31), 3037000500, 5 * 10**17]
INTEGERS = st.one_of(st.integers(-3, 3), st.sampled_from(EXTREMES), st.integers(-(2**63), 2**63 - 1))
DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.5, 2.5, 1e308, -1e308, 2.0**63, -(2.0**63), 1e-300]),
    st.sampled_from([math.nan, math.inf, -math.inf]),
)
HALVES = st.sampled_from([0.0, 0.5, 1.0, -1.5, 2.5, math.nan, math.inf])
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def _rows() -> st.SearchStrategy[dict[str, Any]]:
    seconds = st.integers(-2, 2)
    return st.fixed_dictionaries(
        {
            "x": st.none() | INTEGERS,
            "small": st.none() | st.integers(-3, 3),
            "v": st.none() | DOUBLES,
            "half": st.none() | HALVES,
            "k": st.sampled_from([None, "p", "q", "Pq", "é", "\U0001f600", "\uffff"]),
            "f": st.sampled_from([None, True, False]),
            "d": st.none() | st.decimals(-2, 2, places=2),
            "t": st.none() | seconds.map(lambda number: START + dt.timedelta(seconds=number)),
            "day": st.none() | seconds.map(lambda number: START.date() + dt.timedelta(days=number)),
            "wait": st.none() | seconds.map(lambda number: dt.timedelta(microseconds=number)),
            "s": st.none() | st.fixed_dictionaries({"z": st.none() | st.integers(-1, 1)}),
        }
    )


BAGS: st.SearchStrategy[Bags] = st.fixed_dictionaries(
    {
        "a": st.lists(_rows(), min_size=1, max_size=1),
        "b": st.lists(_rows(), max_size=3),
        "c": st.lists(_rows(), max_size=1),
    }
)


def as_events(bags: Bags) -> dict[str, tuple[Event, ...]]:
    """The bags as the reference wants them."""
    return {
        variable: tuple(Event("T", place, place, row, place, place) for place, row in enumerate(rows))
        for variable, rows in bags.items()
    }


def seen(value: Any) -> Any:
    """A value that equals another when SQL says so: NaN is one value."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


# --- conjuncts ------------------------------------------------------------------------------------

INDICES: list[ex.Index] = [
    ex.Each.PLAIN,
    ex.Each.PLAIN,
    ex.Each.NEXT,
    ex.Running("i"),
    ex.Running("i", -1),
    ex.Running("j"),
    ex.Edge.FIRST,
    ex.Edge.LAST,
    ex.Fixed(2),
]
OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


def attributes(name: str) -> Strategy:
    """A reference to an attribute of some event."""
    single = st.builds(ex.Attribute, st.sampled_from(["a", "c"]), st.just((name,)))
    return single | st.builds(ex.Attribute, st.just("b"), st.just((name,)), st.sampled_from(INDICES))


def aggregates(functions: list[str], name: str) -> Strategy:
    """An aggregate of an attribute."""
    plain = st.builds(ex.Attribute, st.sampled_from(["a", "b", "c"]), st.just((name,)))
    return st.builds(ex.Aggregate, st.sampled_from(functions), plain)


def _literals(*values: Any) -> Strategy:
    return st.sampled_from(values).map(ex.Literal)


def _calls(functions: list[str], inner: Strategy) -> Strategy:
    return st.builds(lambda name, each: ex.Call(name, (each,)), st.sampled_from(functions), inner)


def _pairs(functions: list[str], inner: Strategy, other: Strategy | None = None) -> Strategy:
    second = inner if other is None else other
    return st.builds(lambda name, one, two: ex.Call(name, (one, two)), st.sampled_from(functions), inner, second)


def _chosen(inner: Strategy, conditions: Strategy) -> Strategy:
    """What keeps the type of its operands."""
    return st.one_of(
        st.builds(
            lambda name, arguments: ex.Call(name, tuple(arguments)),
            st.sampled_from(["coalesce", "greatest", "least"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        _pairs(["nullif"], inner),
        st.builds(lambda test, one, other: ex.Case(((test, one),), other), conditions, inner, st.none() | inner),
    )


@cache
def integers(depth: int) -> Strategy:
    """An integer."""
    leaves = st.one_of(
        attributes("x"),
        attributes("small"),
        _literals(0, 1, -2, 2**63 - 1, None),
        aggregates(["count", "min", "max", "first", "last"], "x"),
        aggregates(["sum", "range"], "small"),
        st.sampled_from(["a", "b", "c"]).map(lambda name: ex.Aggregate("count", ex.Variable(name))),
        st.sampled_from(["k", "d", "v"]).flatmap(lambda name: aggregates(["count"], name)),
    )
    if depth == 0:
        return leaves
    inner = integers(depth - 1)
    return st.one_of(
        leaves,
        st.builds(ex.Arithmetic, st.sampled_from(["+", "-", "*", "%"]), inner, inner),
        st.builds(ex.Negative, inner),
        _calls(["abs"], inner),
        st.builds(lambda each, digits: ex.Call("round", (each, digits)), inner, _literals(0, 2, -1, -18)),
        _pairs(["mod"], inner),
        _calls(["ceil", "floor"], doubles(depth - 1)),
        _chosen(inner, conditions(depth - 1)),
    )


@cache
def doubles(depth: int) -> Strategy:
    """A double."""
    leaves = st.one_of(
        attributes("v"),
        attributes("half"),
        _literals(0.0, 0.5, -1e308, math.inf, math.nan),
        aggregates(["sum", "avg", "min", "max", "range", "first", "last"], "half"),
        aggregates(["avg"], "small"),
    )
    if depth == 0:
        return leaves
    inner, whole = doubles(depth - 1), integers(depth - 1)
    either = inner | whole
    return st.one_of(
        leaves,
        st.builds(ex.Arithmetic, st.sampled_from(["+", "-", "*", "/", "%"]), inner, either),
        st.builds(ex.Arithmetic, st.sampled_from(["+", "-", "*", "/", "%"]), either, inner),
        st.builds(ex.Arithmetic, st.just("/"), whole, whole),
        st.builds(ex.Negative, inner),
        _calls(["sqrt", "sign"], either),
        _calls(["abs"], inner),
        _pairs(["power"], either),
        _pairs(["mod"], inner, either),
        _chosen(inner, conditions(depth - 1)),
    )


@cache
def strings(depth: int) -> Strategy:
    """A string that can be ranked, and a few that cannot."""
    leaves = st.one_of(
        attributes("k"),
        attributes("k").map(lambda each: ex.Call("lower", (each,))),
        aggregates(["min", "max", "first", "last"], "k"),
        _literals(None),
    )
    if depth == 0:
        return leaves
    inner = strings(depth - 1)
    return st.one_of(leaves, _chosen(inner, conditions(depth - 1)), _pairs(["concat"], inner))


@cache
def times(depth: int) -> Strategy:
    """A time stamp or a day."""
    leaves = st.one_of(
        attributes("t"),
        attributes("day"),
        st.just(ex.Timestamp(START)),
        st.just(ex.Timestamp(START.replace(tzinfo=None))),
        st.just(ex.Date(START.date())),
        aggregates(["min", "max", "first", "last"], "t"),
    )
    if depth == 0:
        return leaves
    moved = st.builds(ex.Arithmetic, st.sampled_from(["+", "-"]), times(depth - 1), intervals(depth - 1))
    return leaves | moved


@cache
def intervals(depth: int) -> Strategy:
    """A length of time."""
    leaves = st.one_of(
        st.sampled_from([0, 1, 3, 86_400_000_000]).map(ex.Interval),
        attributes("wait"),
        aggregates(["min", "max"], "wait"),
    )
    if depth == 0:
        return leaves
    inner = intervals(depth - 1)
    number = attributes("small") | _literals(2, 0, 0.5, 1.5)
    return st.one_of(
        leaves,
        st.builds(ex.Arithmetic, st.just("-"), times(depth - 1), times(depth - 1)),
        st.builds(ex.Arithmetic, st.sampled_from(["+", "-"]), inner, inner),
        st.builds(ex.Arithmetic, st.sampled_from(["*", "/"]), inner, number),
        st.builds(ex.Negative, inner),
        _calls(["abs"], inner),
    )


def _comparisons(comparable: Strategy) -> Strategy:
    compared = st.builds(ex.Comparison, OPERATORS, comparable, comparable)
    return st.one_of(
        compared,
        compared,
        st.builds(ex.In, comparable, st.lists(comparable, min_size=1, max_size=3).map(tuple), st.booleans()),
        st.builds(ex.Between, comparable, comparable, comparable, st.booleans()),
        st.builds(ex.IsNull, comparable, st.booleans()),
    )


@cache
def conditions(depth: int) -> Strategy:
    """A condition."""
    booleans = attributes("f") | _literals(True, False, None) | aggregates(["first", "last", "min"], "f")
    kinds = [
        integers(depth) | doubles(depth),
        integers(depth),
        strings(depth),
        times(depth),
        intervals(depth),
        booleans,
        attributes("d"),
    ]
    leaves = st.one_of(
        *(_comparisons(comparable) for comparable in kinds),
        booleans,
        st.builds(ex.Like, attributes("k"), st.sampled_from(["p%", "_"]), st.booleans()),
    )
    if depth == 0:
        return leaves
    inner = conditions(depth - 1)
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        leaves,
        leaves,
        several.map(lambda operands: ex.any_of(*operands)),
        several.map(lambda operands: ex.Not(ex.all_of(*operands))),
        inner.map(ex.Not),
        _chosen(booleans, inner),
    )


# The negation of a comparison with NULL is NULL, and not TRUE: few larger conditions depend on it.
CONJUNCTS = conditions(2) | _comparisons(attributes("small")).map(ex.Not)


def _object_conditions() -> Strategy:
    """What only Python values can decide, and ACEL's predicates on whole bags."""
    text = st.one_of(
        strings(1),
        _calls(["lower", "upper", "trim"], strings(0)),
        st.builds(ex.Arithmetic, st.just("||"), strings(0), _literals(" p", "q ")),
        st.builds(
            lambda each, first, length: ex.Call("substring", (each, first, *length)),
            strings(0),
            _literals(-2, -1, 0, 1, 2),
            st.lists(_literals(-1, 0, 1, 5, None), max_size=1),
        ),
    )
    others = integers(0) | attributes("half")
    decimal = st.one_of(
        attributes("d"),
        st.builds(ex.Arithmetic, st.sampled_from(["+", "-", "*", "/", "%"]), attributes("d"), attributes("d")),
        st.builds(ex.Arithmetic, st.sampled_from(["+", "-", "*", "%"]), attributes("d"), others),
        _calls(["abs", "ceil", "floor", "sign", "sqrt", "round"], attributes("d")),
        st.builds(ex.Negative, attributes("d")),
        _pairs(["round"], attributes("d") | doubles(1) | integers(0), _literals(-2, 0, 1, 3)),
        aggregates(["sum", "min", "max", "avg", "range", "first"], "d"),
    )
    values = st.sampled_from(["small", "k", "half", "d"])
    distinct = values.flatmap(
        lambda name: st.builds(
            ex.Aggregate, st.just("count"), st.builds(ex.Attribute, st.just("b"), st.just((name,))), st.just(True)
        )
    )
    every = st.builds(
        ex.Every,
        st.just("b"),
        st.builds(ex.Comparison, OPERATORS, st.just(ex.Attribute("b", ("small",))), attributes("small") | _literals(0)),
    )
    ordered = st.builds(
        ex.BagPredicate, st.sampled_from(ex.BagOrder), st.just("b"), st.sampled_from([("small",), ("k",), ("s", "z")])
    )
    patterns = st.text(st.sampled_from("pqPé%_\\ "), max_size=4)
    atoms = st.one_of(
        _comparisons(text),
        _comparisons(decimal),
        st.builds(ex.Like, text, patterns, st.booleans()),
        st.builds(ex.Comparison, OPERATORS, _calls(["length"], text) | distinct, integers(0)),
        every,
        ordered,
    )
    several = st.lists(atoms | CONJUNCTS, min_size=2, max_size=2)
    return st.one_of(atoms, several.map(lambda operands: ex.any_of(*operands)), atoms.map(ex.Not))


OBJECT_CONJUNCTS = _object_conditions()
