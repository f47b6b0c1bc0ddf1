"""What the events of a variable look like in the result, in the types of an engine: Spark's, or Arrow's.

`tocsin.analysis.holdings` walks a pattern to check it and has types as conditions need them; here the same walk keeps
the exact type of every column, and says which one each value of an aggregate has:

====================================  =================================================
count                                 an integer
avg, stddev                           a double
sum, range                            as wide as there is: bigint, double, decimal(38, scale)
min, max, first, last                 that of the attribute
collect                               a list of that
an aggregate of the user              what it `gives`, or the attribute's, as wide as there is
====================================  =================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis import types as analysis
from tocsin.analysis.types import DataType

T = TypeVar("T")
MOST_DIGITS = 38
DEFAULT_SCALE = 18  # Spark's own, where nobody says how many digits are behind the point
DECIMAL = re.compile(r"\s*(?:decimal|dec|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)\s*", re.IGNORECASE)
WIDENED = frozenset({"sum", "range"})
FIXED: Mapping[str, DataType] = {"count": analysis.INTEGER, "avg": analysis.DOUBLE, "stddev": analysis.DOUBLE}


class Types(Protocol[T]):
    """The types of an engine."""

    def columns(self, event_type: str) -> Mapping[str, T]:
        """The attributes of an event type."""

    def inside(self, dtype: T, name: str) -> T | None:
        """The type of a struct's field; None when there is none."""

    def common(self, variable: str, attribute: str, found: Sequence[T]) -> T:
        """A type for one attribute of several kinds of events, or a TypeMismatchError."""

    def widened(self, dtype: T) -> T:
        """A type that holds sums of a number, as long as there is one."""

    def listed(self, dtype: T) -> T:
        """Lists of a type."""

    def fixed(self, dtype: DataType, name: str | None = None) -> T:
        """A type of the analysis; `name` is what a user has called it."""


@dataclass(frozen=True)
class Look(Generic[T]):
    """A kind of event that a variable may hold.

    Attributes
    ----------
    type
        Its event type; None for what AGG makes.
    attributes
        What it has, in order; None is the type of what is always NULL.
    is_whole
        Whether it is an event as it came.
    """

    type: str | None
    attributes: Mapping[str, T | None]
    is_whole: bool


Looks = Mapping[str, tuple[Look[T], ...]]


@dataclass(frozen=True)
class Walk(Generic[T]):
    """From the events of a pattern up."""

    types: Types[T]

    def looks(self, node: alg.Node) -> Looks[T]:
        """What each variable may hold."""
        match node:
            case alg.Event(type=str() as kind) | alg.NextOf(type=kind):
                return {node.variable: (Look(kind, self.types.columns(kind), is_whole=True),)}
            case alg.Both():
                return self.looks(node.parts[0])
            case alg.Bind():
                inner = self.looks(node.part)
                return {**inner, node.variable: _distinct(look for held in inner.values() for look in held)}
            case alg.Project():
                inner = self.looks(node.part)
                return {
                    name: _distinct(_trimmed(look, attributes) for look in inner[name])
                    for name, attributes in node.kept
                    if name in inner
                }
            case alg.Derive():
                inner = self.looks(node.part)
                made = Look(None, {fold.name: self._folded(fold, inner) for fold in node.folds}, is_whole=False)
                return {**inner, node.variable: (*inner.get(node.variable, ()), made)}
            case alg.Gather():
                gathered = Look(node.type, self.types.columns(node.type), is_whole=True)
                return {**self.looks(node.part), node.variable: (gathered,)}
            case alg.Repeat() | alg.RepeatAdjacent() | alg.Absent() | alg.Filter() | alg.Within() | alg.Emit():
                return self.looks(node.part)
            case alg.Sequence() | alg.Adjacent() | alg.All() | alg.Any():
                found: dict[str, tuple[Look[T], ...]] = {}
                for part in node.parts:
                    for name, held in self.looks(part).items():
                        found[name] = _distinct((*found.get(name, ()), *held))
                return found
            case alg.Event():
                return {}
            case _:
                raise errors.unknown_node(node, "The schema of results")

    def shape(self, variable: str, looks: Sequence[Look[T]], attributes: Iterable[str]) -> dict[str, T]:
        """The types of some attributes of a variable."""
        return {
            name: self.types.common(
                variable, name, [found for look in looks if (found := look.attributes.get(name)) is not None]
            )
            for name in attributes
        }

    def _folded(self, fold: alg.Fold, looks: Looks[T]) -> T:
        """The type of a value that AGG computes."""
        if fold.monoid is None and fold.function in FIXED:
            return self.types.fixed(FIXED[fold.function])
        if fold.monoid is not None and fold.monoid.gives is not None:
            return self.types.fixed(analysis.given_type(fold.monoid.gives), fold.monoid.gives)
        found = [inner for look in looks.get(fold.variable, ()) if (inner := self._at(look, fold.path)) is not None]
        of = self.types.common(fold.variable, ".".join(fold.path), found)
        if fold.monoid is not None or fold.function in WIDENED:
            return self.types.widened(of)
        return self.types.listed(of) if fold.function == "collect" else of

    def _at(self, look: Look[T], path: tuple[str, ...]) -> T | None:
        found = look.attributes.get(path[0]) if path else None
        for name in path[1:]:
            found = None if found is None else self.types.inside(found, name)
        return found


def attributes_of(looks: Iterable[Look[T]]) -> tuple[str, ...]:
    """All attributes that the events of a variable may have, in order."""
    return tuple(dict.fromkeys(name for look in looks for name in look.attributes))


def types_with(looks: Iterable[Look[T]], attribute: str) -> list[str]:
    """The event types whose events bring an attribute themselves."""
    found = (look.type for look in looks if look.type is not None and look.attributes.get(attribute) is not None)
    return list(dict.fromkeys(found))


def digits_of(name: str | None) -> tuple[int, int] | None:
    """The digits of a decimal, in all and behind the point, as a user has written them.

    Examples
    --------
    >>> digits_of("decimal(12, 3)"), digits_of("decimal")
    ((12, 3), None)
    """
    found = DECIMAL.fullmatch(name or "")
    return None if found is None else (int(found[1]), int(found[2] or 0))


def _trimmed(look: Look[T], attributes: tuple[str, ...] | None) -> Look[T]:
    if attributes is None:
        return look
    return Look(look.type, {name: look.attributes.get(name) for name in attributes}, is_whole=False)


def _distinct(looks: Iterable[Look[T]]) -> tuple[Look[T], ...]:
    found: list[Look[T]] = []
    for look in looks:
        if look not in found:
            found.append(look)
    return tuple(found)
