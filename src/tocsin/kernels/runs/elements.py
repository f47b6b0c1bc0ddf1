"""The elements of monoids as registers: `folds` with NULLs (R18).

A value that is NULL spoils an element, but for `count`, `first` and `last`. `stddev` needs all values: it is a Python
object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from tocsin.analysis.types import Kind
from tocsin.kernels.expressions import folds
from tocsin.kernels.expressions.folds import BOOLEAN, ZEROS, Parts, storage
from tocsin.kernels.expressions.leaves import Text, any_of

OBJECT, KEY = "object", "key"  # any Python value, and what such a value is compared by


@dataclass(frozen=True)
class Element:
    """A monoid over values of one kind."""

    parts: Mapping[str, str]  # and how each is held
    zero: Parts  # the parts of the identity
    add: Callable[[Parts, str, str], Parts]  # one more value, a name in the code, and whether it is NULL
    result: Callable[[Parts], Text]


@cache
def element(monoid: str, kind: Kind) -> Element:
    """The element of a built-in aggregate over values of a kind; raises `NotNumbers` where numbers do not hold it."""
    if kind is Kind.NULL:
        return element(monoid, Kind.INTEGER)
    if monoid in ("first", "last"):
        return _edge(kind, is_first=monoid == "first")
    known = folds.element(monoid, kind)
    if monoid == "count":
        return Element(
            known.parts,
            known.zero,
            lambda old, value, null: known.add(old, value),
            lambda old: known.result(old, "False"),
        )
    return Element(
        {**known.parts, "bad": BOOLEAN},
        {**known.zero, "bad": "False"},
        lambda old, value, null: {**known.add(old, value), "bad": f"{old['bad']} or {null}"},
        lambda old: known.result(old, old["bad"]),
    )


def _edge(kind: Kind, *, is_first: bool) -> Element:
    def add(old: Parts, value: str, null: str) -> Parts:
        if not is_first:
            return {"value": value, "null": null, "none": "False"}
        return {
            "value": f"{value} if {old['none']} else {old['value']}",
            "null": f"{null} if {old['none']} else {old['null']}",
            "none": "False",
        }

    return Element(
        {"value": storage(kind), "null": BOOLEAN, "none": BOOLEAN},
        {"value": ZEROS[storage(kind)], "null": "False", "none": "True"},
        add,
        lambda old: Text(old["value"], any_of(old["none"], old["null"]), kind),
    )
