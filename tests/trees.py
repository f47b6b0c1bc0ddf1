"""Hypothesis strategies for syntax trees: all that SASE+ and ACEL text can say, whether or not it means anything.

For properties of parsers, printers and builders. Queries that mean something are in `tocsin.testing`.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, TypeVar

from hypothesis import strategies as st

from tocsin.language import ast, functions
from tocsin.language import expressions as ex
from tocsin.language.acel import ast as acel

T = TypeVar("T")
E = ex.Expression

# Plain names, names that need backquotes, and words the language uses itself.
NAMES = st.one_of(
    st.sampled_from(["a", "b", "Login", "transfer_2", "user", "x"]),
    st.sampled_from(["PM2.5", "heart-rate", "two words", "1st", "back`tick", "Größe", "'quoted'", "`"]),
    st.sampled_from(["seq", "And", "NOT", "where", "Return", "end", "first", "Count", "next", "date", "interval"]),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1, max_size=8),
)
FUNCTIONS = st.sampled_from(["abs", "round", "coalesce", "substring", "distance_km"])
AGGREGATES = st.sampled_from(sorted(functions.AGGREGATES))
LARGE = 10**30


def _tuples(items: st.SearchStrategy[T], least: int = 1, most: int = 3) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


# --- expressions ----------------------------------------------------------------------------------


def indices() -> st.SearchStrategy[ex.Index]:
    """Every index a reference can carry."""
    return st.one_of(
        st.sampled_from(ex.Each),
        st.sampled_from(ex.Edge),
        st.builds(ex.Fixed, st.integers(-3, 1000)),
        st.builds(ex.Running, st.sampled_from("ijkN"), st.integers(-5, 5)),
    )


def literals() -> st.SearchStrategy[E]:
    """Constants of every type."""
    values: st.SearchStrategy[bool | int | float | str | None] = st.one_of(
        st.none(), st.booleans(), st.integers(-LARGE, LARGE), st.floats(allow_nan=False), st.text()
    )
    return st.one_of(
        st.builds(ex.Literal, values),
        st.builds(ex.Timestamp, st.datetimes(timezones=st.just(dt.UTC))),
        st.builds(ex.Date, st.dates()),
        st.builds(ex.Interval, st.integers(-LARGE, LARGE)),
        st.builds(ex.Interval, st.integers(-100, 100).map(lambda minutes: minutes * 60_000_000)),
    )


def references() -> st.SearchStrategy[E]:
    """Attributes, variables and bare names."""
    return st.one_of(
        st.builds(ex.Attribute, NAMES, _tuples(NAMES), indices()),
        st.builds(ex.Name, NAMES),
        st.builds(ex.Variable, NAMES),
    )


def expressions() -> st.SearchStrategy[E]:
    """Conditions and values of every shape, well typed or not."""
    leaves = st.one_of(
        literals(),
        references(),
        st.just(ex.Aggregate("count", None)),
        st.builds(ex.SameValue, _tuples(NAMES)),
    )
    return st.recursive(leaves, _operations, max_leaves=12)


def _operations(inner: st.SearchStrategy[E]) -> st.SearchStrategy[E]:
    return st.one_of(
        st.builds(ex.Arithmetic, st.sampled_from(["+", "-", "*", "/", "%", "||"]), inner, inner),
        st.builds(ex.Comparison, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), inner, inner),
        st.builds(ex.Negative, inner),
        st.builds(ex.Not, inner),
        _tuples(inner, least=2).map(lambda operands: ex.all_of(*operands)),
        _tuples(inner, least=2).map(lambda operands: ex.any_of(*operands)),
        st.builds(ex.IsNull, inner, st.booleans()),
        st.builds(ex.In, inner, _tuples(inner), st.booleans()),
        st.builds(ex.Between, inner, inner, inner, st.booleans()),
        st.builds(ex.Like, inner, st.text(), st.booleans()),
        st.builds(ex.Case, _tuples(st.tuples(inner, inner)), st.none() | inner),
        st.builds(ex.Call, FUNCTIONS, _tuples(inner, least=0)),
        st.builds(ex.Aggregate, AGGREGATES, inner.map(_whole), st.booleans()),
    )


def _whole(expression: E) -> E:
    """A bare name as the text has it where whole variables stand: in RETURN and in aggregates."""
    return ex.Variable(expression.name) if isinstance(expression, ex.Name) else expression


# --- queries --------------------------------------------------------------------------------------


def quantifiers() -> st.SearchStrategy[ast.Quantifier]:
    """Every pair of bounds, impossible ones included."""
    return st.builds(ast.Quantifier, st.integers(0, 5), st.none() | st.integers(0, 5))


def elements() -> st.SearchStrategy[ast.Element]:
    """Patterns of every shape, negations in impossible places included."""
    events = st.builds(ast.Event, NAMES, st.none() | NAMES, st.none() | quantifiers())

    def larger(inner: st.SearchStrategy[ast.Element]) -> st.SearchStrategy[ast.Element]:
        return st.one_of(
            st.builds(ast.Composite, st.sampled_from(ast.Operator), _tuples(inner), st.none() | quantifiers()),
            st.builds(ast.Negation, inner),
        )

    return st.recursive(events, larger, max_leaves=6)


def after_match() -> st.SearchStrategy[ast.AfterMatch]:
    """Every after-match policy."""
    alone = st.sampled_from([ast.Skip.REUSE, ast.Skip.PAST_LAST, ast.Skip.TO_NEXT])
    with_variable = st.sampled_from([ast.Skip.TO_FIRST, ast.Skip.TO_LAST])
    return st.builds(ast.AfterMatch, alone) | st.builds(ast.AfterMatch, with_variable, NAMES)


def queries() -> st.SearchStrategy[ast.Query]:
    """Whole queries with any choice of clauses."""
    sizes = st.integers(-10, 10).map(lambda minutes: minutes * 60_000_000) | st.integers(-LARGE, LARGE)
    return st.builds(
        ast.Query,
        elements(),
        partition_by=_tuples(st.builds(ast.Key, NAMES), least=0),
        where_clause=st.none() | expressions(),
        within=st.none() | st.builds(ast.Window, sizes, st.none() | sizes),
        selection=st.sampled_from(ast.Selection),
        after_match=after_match(),
        output=st.sampled_from(ast.Output),
        returns=_tuples(st.builds(ast.Column, expressions().map(_whole), st.none() | NAMES), least=0),
        group_by=_tuples(expressions(), least=0, most=2),
        having=st.none() | expressions(),
        every=st.none() | st.builds(ast.Window, sizes),
        timeouts=st.booleans(),
    )


# --- ACEL -----------------------------------------------------------------------------------------


def any_formulas() -> st.SearchStrategy[acel.Formula]:
    """Trees of every shape, whether or not they mean anything."""
    leaves = st.builds(acel.Event, NAMES) | st.builds(acel.NextOf, NAMES)

    def larger(inner: st.SearchStrategy[acel.Formula]) -> st.SearchStrategy[acel.Formula]:
        parts = st.lists(inner, min_size=2, max_size=3)
        several = [
            parts.map(lambda parts: acel.joined(acel.Sequence, *parts)),
            parts.map(lambda parts: acel.joined(acel.Adjacent, *parts)),
            parts.map(lambda parts: acel.joined(acel.Any, *parts)),
            parts.map(lambda parts: acel.joined(acel.Both, *parts)),
        ]
        kept = st.builds(acel.Kept, NAMES, st.none() | st.lists(NAMES, min_size=1, max_size=2).map(tuple))
        folds = st.builds(
            acel.Fold,
            NAMES,
            st.sampled_from([*sorted(functions.AGGREGATES), "product"]),
            NAMES,
            st.lists(NAMES, max_size=2).map(tuple),
            st.booleans(),
        )
        return st.one_of(
            *several,
            st.builds(acel.Repeat, inner),
            st.builds(acel.RepeatAdjacent, inner),
            st.builds(acel.Bind, inner, NAMES),
            st.builds(acel.Filter, inner, any_conditions()),
            st.builds(acel.Project, inner, st.lists(kept, min_size=1, max_size=3).map(tuple)),
            st.builds(acel.Derive, inner, NAMES, st.lists(folds, min_size=1, max_size=3).map(tuple)),
        )

    return st.recursive(leaves, larger, max_leaves=6)


def any_conditions() -> st.SearchStrategy[ex.Expression]:
    """Conditions of FILTER of every shape."""
    paths = st.lists(NAMES, min_size=1, max_size=2).map(tuple)
    atoms = st.one_of(
        st.builds(_every, NAMES, expressions()),
        st.builds(ex.BagPredicate, st.sampled_from(ex.BagOrder), NAMES, paths),
    )

    def larger(inner: st.SearchStrategy[ex.Expression]) -> st.SearchStrategy[ex.Expression]:
        several = st.lists(inner, min_size=2, max_size=3)
        return several.map(lambda parts: ex.all_of(*parts)) | several.map(lambda parts: ex.any_of(*parts))

    return st.recursive(atoms, larger, max_leaves=4)


def _every(variable: str, predicate: ex.Expression) -> ex.Expression:
    """An atom of any predicate, with what cannot stand inside brackets replaced by attributes."""

    def own(node: ex.Expression) -> ex.Expression:
        match node:
            case ex.Attribute(first, path):
                return ex.Attribute(variable, (first, *path))
            case ex.Name(name) | ex.Variable(name):
                return ex.Attribute(variable, (name,))
            case ex.Aggregate() | ex.SameValue():
                return ex.Attribute(variable, ("x",))
            case _:
                return node

    return ex.Every(variable, predicate.transform(own))


def any_queries() -> st.SearchStrategy[acel.Query]:
    """Whole queries with any choice of clauses."""

    def with_clauses(formula: acel.Formula, other: Any) -> acel.Query:
        plain = {"returns": other.returns, "group_by": other.group_by, "having": other.having}
        if any(isinstance(node, ex.SameValue) for part in _expressions(other) for node in part.walk()):
            plain = {}  # `[k]` is SASE+'s alone
        return acel.Query(formula, partition_by=other.partition_by, within=other.within, every=other.every, **plain)

    return st.builds(with_clauses, any_formulas(), queries())


def _expressions(query: ast.Query) -> list[ex.Expression]:
    having = [] if query.having is None else [query.having]
    return [*(column.expression for column in query.returns), *query.group_by, *having]
