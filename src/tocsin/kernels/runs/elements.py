"""The elements of monoids as numbers in generated code: what they consist of, one more value, and the result (R18).

A value that is NULL spoils an element, but for `count`, `first` and `last`. Sums of integers are kept modulo 2**64 with
a count of the carries, and stop the query beyond 64 bits (D24). Sums of doubles are compensated after Neumaier.
`stddev` needs all values: it is a Python object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from tocsin.analysis.types import Kind
from tocsin.kernels.expressions.arithmetic import NotNumbers
from tocsin.kernels.expressions.leaves import Text

Parts = Mapping[str, str]  # a text for each part
INTEGER, DOUBLE, BOOLEAN = "int", "float", "bool"
OBJECT, KEY = "object", "key"  # any Python value, and what such a value is compared by
ZEROS = {INTEGER: "0", DOUBLE: "0.0", BOOLEAN: "False"}
SUMMED = (Kind.INTEGER, Kind.DOUBLE)
WHOLE = 2.0**64


def storage(kind: Kind) -> str:
    """How a value of a kind is held."""
    return {Kind.DOUBLE: DOUBLE, Kind.BOOLEAN: BOOLEAN}.get(kind, INTEGER)


@dataclass(frozen=True)
class Element:
    """A monoid over values of one kind."""

    parts: Mapping[str, str]  # the parts of an element and how each is held
    zero: Parts  # the parts of the identity
    add: Callable[[Parts, str, str], Parts]  # the parts with one more value, a name in the code, and whether it is NULL
    result: Callable[[Parts], Text]  # the value that the parts stand for


@cache
def element(monoid: str, kind: Kind) -> Element:
    """The element of a built-in aggregate over values of a kind; raises `NotNumbers` where numbers do not hold it."""
    if kind is Kind.NULL:
        return element(monoid, Kind.INTEGER)
    make = MADE.get(monoid)
    if make is None:
        raise NotNumbers
    return make(kind)


def _zero(parts: Mapping[str, str], **others: str) -> dict[str, str]:
    return {name: ZEROS[held] for name, held in parts.items()} | others


def _count(kind: Kind) -> Element:
    parts = {"n": INTEGER}
    return Element(
        parts,
        _zero(parts),
        lambda old, value, null: {"n": f"{old['n']} + 1"},
        lambda old: Text(old["n"], None, Kind.INTEGER),
    )


def _sum(kind: Kind) -> Element:
    if kind not in SUMMED:
        raise NotNumbers
    if kind is Kind.DOUBLE:
        parts = {"total": DOUBLE, "lost": DOUBLE, "bad": BOOLEAN}
        return Element(
            parts,
            _zero(parts),
            lambda old, value, null: {
                "total": f"{old['total']} + {value}",
                "lost": f"{old['lost']} + compensation({old['total']}, {value})",
                "bad": f"{old['bad']} or {null}",
            },
            lambda old: Text(f"({old['total']} + {old['lost']})", old["bad"], Kind.DOUBLE),
        )
    parts = {"total": INTEGER, "carry": INTEGER, "bad": BOOLEAN}
    return Element(
        parts,
        _zero(parts),
        lambda old, value, null: {
            "total": f"wrapped_sum({old['total']}, {value})",
            "carry": f"{old['carry']} + carry({old['total']}, {value})",
            "bad": f"{old['bad']} or {null}",
        },
        lambda old: Text(f"whole_sum({old['total']}, {old['carry']}, {old['bad']})", old["bad"], Kind.INTEGER),
    )


def _avg(kind: Kind) -> Element:
    total = _sum(kind)

    def result(old: Parts) -> Text:
        if kind is Kind.DOUBLE:
            whole = f"({old['total']} + {old['lost']})"
        else:
            whole = f"(float({old['total']}) + {old['carry']} * {WHOLE!r})"
        return Text(f"divide({whole}, float({old['n']}))", f"({old['bad']} or {old['n']} == 0)", Kind.DOUBLE)

    return Element(
        {**total.parts, "n": INTEGER},
        {**total.zero, "n": "0"},
        lambda old, value, null: {**total.add(old, value, null), "n": f"{old['n']} + 1"},
        result,
    )


def _extreme(choose: str) -> Callable[[Kind], Element]:
    def make(kind: Kind) -> Element:
        parts = {"value": storage(kind), "none": BOOLEAN, "bad": BOOLEAN}
        return Element(
            parts,
            _zero(parts, none="True"),
            lambda old, value, null: {
                "value": f"{choose}({old['value']}, {old['none']}, {value}, False)",
                "none": "False",
                "bad": f"{old['bad']} or {null}",
            },
            lambda old: Text(old["value"], f"({old['bad']} or {old['none']})", kind),
        )

    return make


def _range(kind: Kind) -> Element:
    if kind not in SUMMED:
        raise NotNumbers
    parts = {"low": storage(kind), "high": storage(kind), "none": BOOLEAN, "bad": BOOLEAN}

    def result(old: Parts) -> Text:
        null = f"({old['bad']} or {old['none']})"
        if kind is Kind.INTEGER:
            return Text(f"whole_range({old['high']}, {old['low']}, {null})", null, kind)
        return Text(f"({old['high']} - {old['low']})", null, kind)

    return Element(
        parts,
        _zero(parts, none="True"),
        lambda old, value, null: {
            "low": f"smaller({old['low']}, {old['none']}, {value}, False)",
            "high": f"larger({old['high']}, {old['none']}, {value}, False)",
            "none": "False",
            "bad": f"{old['bad']} or {null}",
        },
        result,
    )


def _edge(*, is_first: bool) -> Callable[[Kind], Element]:
    def make(kind: Kind) -> Element:
        parts = {"value": storage(kind), "null": BOOLEAN, "none": BOOLEAN}

        def add(old: Parts, value: str, null: str) -> Parts:
            if not is_first:
                return {"value": value, "null": null, "none": "False"}
            return {
                "value": f"{value} if {old['none']} else {old['value']}",
                "null": f"{null} if {old['none']} else {old['null']}",
                "none": "False",
            }

        return Element(
            parts,
            _zero(parts, none="True"),
            add,
            lambda old: Text(old["value"], f"({old['none']} or {old['null']})", kind),
        )

    return make


MADE: Mapping[str, Callable[[Kind], Element]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "min": _extreme("smaller"),
    "max": _extreme("larger"),
    "range": _range,
    "first": _edge(is_first=True),
    "last": _edge(is_first=False),
}
