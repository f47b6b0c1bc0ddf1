"""Every argument of every public function, with values that fail at what is asked of them: Tocsin's own errors, which
print, or a result."""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tocsin
from tocsin import builder, reference
from tocsin.errors import TocsinError, UserFunctionError

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::tocsin.TocsinWarning")]


class Mute:
    """Cannot be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("not printed")

    __str__ = __repr__


class Contrary(Mute):
    """Refuses whatever Python asks of it."""

    def _refuse(self, *_arguments: Any) -> Any:
        raise RuntimeError("no")

    __eq__ = __ne__ = __lt__ = __bool__ = __hash__ = __int__ = __float__ = __format__ = _refuse  # type: ignore[assignment]


class MuteError(Exception):
    """Cannot be printed either."""

    def __str__(self) -> str:
        raise RuntimeError("not printed")


DIGITS = "9" * 5_000  # Python reads and prints at most 4,300
HOSTILE: dict[str, Any] = {
    "mute": Mute(),
    "contrary": Contrary(),
    "a list of mutes": [Mute()],
    "a list of contraries": [Contrary()],
    "mutes by name": {"A": Mute()},
    "contraries by name": {"A": Contrary()},
    "by mutes": {Mute(): 1},
    "an empty list": [],
    "an empty mapping": {},
    "lists": [[]],
    "by numbers": {1: 2},
    "equal names": ["x", "x"],
    "a set": {"x"},
    "an empty text": "",
    "a blank": " ",
    "a zero byte": "\0",
    "a surrogate": "\ud800",
    "a long text": "x" * 100_000,
    "digits": DIGITS,
    "many seconds": f"{DIGITS} seconds",
    "many bytes": f"{DIGITS} GB",
    "a fast rate": f"{DIGITS}/s",
    "fast rates": {"A": f"{DIGITS}/s", "B": 10**400},
    "slow rates": {"A": f"1 per 1{'0' * 100} hours", "B": f"0.{'0' * 100}1/s"},
    "a deep type": "array<" * 5_000 + "int" + ">" * 5_000,
    "a deep type by name": {"A": {"ts": "bigint", "x": "array<" * 5_000 + "int" + ">" * 5_000}},
    "a wide type": f"decimal({DIGITS})",
    "bytes": b"\xff",
    "a huge integer": 10**5_000,
    "a huge negative integer": -(10**5_000),
    "more than a double": 10**400,
    "more than 64 bits": 2**64,
    "all 64 bits": 2**63 - 1,
    "true": True,
    "zero": 0,
    "one half": 0.5,
    "a fraction": Fraction(1, 3),
    "not a number": math.nan,
    "infinity": math.inf,
    "a decimal without a number": Decimal("NaN"),
    "a signaling decimal": Decimal("sNaN"),
    "an integer of NumPy": np.int64(3),
    "a boolean of NumPy": np.bool_(True),
    "an array": np.array(["x", "y"]),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "a frame": pd.DataFrame({"x": [1, 2]}),
    "a table": pa.table({"x": [1]}),
    "the longest time": dt.timedelta.max,
    "a negative time": dt.timedelta(days=-1),
    "a class": int,
    "an ellipsis": ...,
    "a function": lambda *_: MuteError(),
}
TEXT = "PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 10 MINUTES"
PROGRAM = (
    "template A { x : Integer } template B { x : Integer } template C { x : Integer }"
    " rule R where a : A b : B { x = a.x } when b in a [0 s, 9 s] then emit C at b.timestamp with { x = a.x }"
)
PATTERN, RULES = tocsin.pattern(TEXT), tocsin.rules(PROGRAM)
ROWS = {"A": [{"ts": 1, "x": 1}], "B": [{"ts": 2, "x": 1}]}
SCHEMA = {"ts": "bigint", "x": "bigint"}
STATISTICS = tocsin.Statistics.of({"A": 5}, rates={"B": 3}, selectivity={"a": 0.5}, keys=3, clustered=5)
LOCALLY = {"inputs": ROWS, "engine": "local", "time_unit": "us"}
# By name: the function and arguments that it takes.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "pattern": (tocsin.pattern, {"query": TEXT}),
    "wrong pattern": (tocsin.pattern, {"query": "PATTERN A a WHERE", "name": "text"}),
    "formula": (tocsin.pattern, {"query": "A ; B", "language": "acel"}),
    "rules": (tocsin.rules, {"text": PROGRAM}),
    "rules with a function": (tocsin.rules, {"text": "use m rule R where a : A { f(a.x) and known(a.x) }"}),
    "match": (PATTERN.match, LOCALLY),
    "match on Spark": (PATTERN.match, {"inputs": ROWS}),
    "enumerate": (lambda row: list(PATTERN.enumerate(row)), {"row": {}}),
    "check": (PATTERN.check, {"schemas": {"A": SCHEMA, "B": SCHEMA}, "rates": {"A": 1, "B": 1}, "time_unit": "us"}),
    "explain": (PATTERN.explain, {}),
    "matches of a rule": (RULES.matches, {"rule": "R", **LOCALLY}),
    "matches of rules": (RULES.match, LOCALLY),
    "events": (RULES.events, {"template": "C", **LOCALLY}),
    "check of rules": (RULES.check, {"rates": {"A": 1, "B": 1}}),
    "statistics": (tocsin.Statistics.of, {"counts": {"A": 5}}),
    "stored statistics": (tocsin.Statistics.from_dict, {"stored": STATISTICS.to_dict()}),
    "monoid": (tocsin.Monoid, {"zero": 1, "combine": lambda one, other: one + other}),
    "function": (tocsin.function, {"call": lambda one: one, "gives": "boolean"}),
    "reference": (reference.evaluate, {"pattern": PATTERN, "rows": ROWS}),
    "reference of rules": (reference.evaluate, {"pattern": RULES, "rows": ROWS}),
    "reference of events": (reference.events, {"program": RULES, "rows": ROWS}),
    "feasibility": (tocsin.feasibility, {"progress": [], "rates": {"A": 1}}),
    "event": (builder.event, {"type": "A"}),
    "within": (builder.event("A", "a").within, {"duration": "5 minutes"}),
    "absent": (builder.absent, {"part": builder.event("A", "a")}),
    "col": (builder.col, {"reference": "a.x"}),
    "lit": (builder.lit, {"value": 1}),
}


def raw_error(call: Callable[[], Any]) -> str | None:
    """What a call raises that is not Tocsin's own, or does not print."""
    try:
        found = call()
        if not isinstance(found, Mute):
            repr(found) if isinstance(found, tocsin.Pattern | tocsin.Rules) else None
    except TocsinError as error:
        try:
            assert str(error)
            assert error.to_dict()["condition"]
        except Exception as problem:
            return f"an error that does not print: {type(error).__name__}, {type(problem).__name__}"
    except Exception as problem:
        return f"{type(problem).__name__}: {str(problem)[:200] if not isinstance(problem, MuteError) else ''}"
    return None


def parameters_of(name: str) -> Iterator[str]:
    for parameter in inspect.signature(CALLS[name][0]).parameters.values():
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            yield parameter.name


@pytest.mark.parametrize("name", CALLS)
def test_every_argument_may_be_anything(name: str) -> None:
    function, given = CALLS[name]
    raw = {}
    for parameter in parameters_of(name):
        for kind, value in HOSTILE.items():
            found = raw_error(lambda parameter=parameter, value=value: function(**{**given, parameter: value}))  # type: ignore[misc]
            if found is not None:
                raw[f"{parameter}: {kind}"] = found
    assert raw == {}


def built() -> dict[str, Callable[..., Any]]:
    """All that the builder has: functions, and methods of patterns and of values."""
    owners = {"": builder, "pattern": builder.event("A", "a"), "value": builder.col("a.x")}
    return {
        f"{owner}.{name}": getattr(value, name)
        for owner, value in owners.items()
        for name in dir(value)
        if not name.startswith("_") and inspect.isroutine(getattr(value, name))
    }


@pytest.mark.parametrize("name", built())
def test_every_argument_of_the_builder_may_be_anything(name: str) -> None:
    function = built()[name]
    units = {"within": ("minutes",), "every": ("hours",)}.get(name.split(".")[1], ())
    places = [
        parameter.name if parameter.kind is not parameter.VAR_POSITIONAL else None
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    needed = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    raw = {}
    for kind, value in HOSTILE.items():
        for place in (*places, *units):
            arguments = {} if place is None else {name: "a.x" for name in needed} | {place: value}
            call = functools.partial(function, *([] if place is not None else [value]), **arguments)
            found = raw_error(lambda call=call: str(call()))  # type: ignore[misc]
            if found is not None:
                raw[f"{place}: {kind}"] = found
    assert raw == {}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_row_may_hold_anything(kind: str) -> None:
    """In each column that a query reads, of one row or of several."""
    value = HOSTILE[kind]
    raw = {}
    for column in ("ts", "x", "type", "seq", "k"):
        row = {"type": "A", "ts": 1, "x": 1, "seq": 1, "k": 1}
        rows = [row | {column: value}, row, row | {"type": "B", "ts": 2}]
        one = tocsin.pattern(TEXT + " PARTITION BY k") if column == "k" else PATTERN
        for query in (one, RULES):
            for engine, call in {
                "local": lambda query=query, rows=rows: query.match(rows, engine="local", tie="seq", time_unit="us"),
                "reference": lambda query=query, rows=rows: reference.evaluate(query, rows, tie="seq"),
            }.items():
                found = raw_error(call)
                if found is not None:
                    raw[f"{column}, {type(query).__name__}, {engine}"] = found
    assert raw == {}


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_aggregate_may_give_anything(kind: str) -> None:
    value = HOSTILE[kind]
    rows = {"A": [{"ts": at, "x": at} for at in range(3)]}
    raw = {}
    for place in ("zero", "combine", "lift", "finish"):
        for gives in (None, "bigint", "string", "array<double>", "timestamp", "decimal(10,2)", "struct<x:int>"):
            functions = {"combine": lambda one, other: one, place: value if place == "zero" else lambda *_: value}
            monoid = tocsin.Monoid(**{"zero": 0, "gives": gives, **functions})
            pattern = tocsin.pattern("PATTERN A{2} a WITHIN 1 SECOND RETURN own(a.x) AS n", aggregates={"own": monoid})
            found = raw_error(lambda pattern=pattern: pattern.match(rows, engine="local", time_unit="us"))
            if found is not None:
                raw[f"{place}, {gives}"] = found
    assert raw == {}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_function_of_rules_may_give_anything(kind: str) -> None:
    """In a condition and in the value of an emitted event; a truth is a truth, and a number a number."""
    value, rows = HOSTILE[kind], {"A": [{"ts": at, "x": at} for at in range(3)]}
    raw, taken = {}, []
    for gives, slot, condition in (
        ("boolean", "Boolean", "f(a.x)"),
        ("bigint", "Integer", "f(a.x) > 0"),
        ("string", "String", "f(a.x) = 'x'"),
        ("double", "Double", "f(a.x) > 0.5"),
    ):
        program = tocsin.rules(
            f"template A {{ x : Integer }} template E {{ y : {slot} }} rule R where a : A {{ {condition} }}"
            " rule S where a : A then emit E at a.timestamp with { y = f(a.x) }",
            functions={"f": tocsin.function(lambda _: value, gives=gives, pure=True)},
        )
        asked: dict[str, Callable[[tocsin.Rules], Any]] = {
            "condition": lambda program: program.matches("R", rows, engine="local", time_unit="us"),
            "event": lambda program: program.events("E", rows, engine="local", time_unit="us"),
        }
        for place, call in asked.items():
            run = functools.partial(call, program)
            found = raw_error(lambda run=run, gives=gives: taken.append((gives, run())))  # type: ignore[misc]
            if found is not None:
                raw[f"{place}, {gives}"] = found
    assert raw == {}
    fitting = {bool: "boolean", np.bool_: "boolean", str: "string"}.get(type(value))
    assert all(gives == fitting or (fitting is None and gives in ("bigint", "double")) for gives, _ in taken)


def test_a_function_of_rules_that_fails_is_named() -> None:
    def fail(_value: Any) -> Any:
        raise MuteError

    rows = {"A": [{"ts": 1, "x": 1}]}
    program = tocsin.rules(
        "template A { x : Integer } rule R where a : A { f(a.x) }",
        functions={"f": tocsin.function(fail, gives="boolean", pure=True)},
    )
    for call in (
        lambda: program.match(rows, engine="local", time_unit="us"),
        lambda: reference.evaluate(program, rows),
    ):
        with pytest.raises(UserFunctionError, match="The function `f` failed for 1: MuteError"):
            call()


def test_a_function_may_fail_with_anything() -> None:
    def fail(*_arguments: Any) -> Any:
        raise MuteError

    rows = {"A": [{"ts": at, "x": at} for at in range(3)]}
    monoid = tocsin.Monoid(zero=0, combine=fail)
    pattern = tocsin.pattern("PATTERN A{2} a WITHIN 1 SECOND RETURN own(a.x) AS n", aggregates={"own": monoid})
    with pytest.raises(TocsinError, match=r"`combine` of the aggregate `own` failed for 0, 0: MuteError"):
        pattern.match(rows, engine="local", time_unit="us")
