"""The syntax tree of an ACEL formula, as parsed; names are not resolved yet.

The nodes are called as those of the algebra that they become. `parse(print_query(query)) == query` for every tree:
places are not compared, and `;`, `:`, AND and OR, which are associative, are never nested directly in themselves.
Conditions of FILTER are expressions already: an atom `x[price > 5]` is an `Every` over attributes of x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from tocsin.language import ast
from tocsin.language.expressions import Expression, Tree
from tocsin.source import Where, Written


@dataclass(frozen=True)
class Formula(Tree["Formula"]):
    """A node of a formula."""


@dataclass(frozen=True)
class Event(Formula):
    """`SELL`: an event of a type, bound to the variable of that name."""

    type: str


@dataclass(frozen=True)
class NextOf(Formula):
    """`NEXT(SELL)`: the first event of a type from here on (R22)."""

    type: str


@dataclass(frozen=True)
class _Several(Formula):
    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Sequence(_Several):
    """`p ; q`."""


@dataclass(frozen=True)
class Adjacent(_Several):
    """`p : q`."""


@dataclass(frozen=True)
class Any(_Several):
    """`p OR q`."""


@dataclass(frozen=True)
class Both(_Several):
    """`p AND q`: the intersection (R25)."""


@dataclass(frozen=True)
class _One(Formula):
    part: Formula


@dataclass(frozen=True)
class Repeat(_One):
    """`p+`."""


@dataclass(frozen=True)
class RepeatAdjacent(_One):
    """`p@+`, `p⊕`."""


@dataclass(frozen=True)
class Bind(_One):
    """`p AS x`."""

    variable: str


@dataclass(frozen=True)
class Filter(_One):
    """`p FILTER c`; the condition is made of `Every`, `BagPredicate`, AND and OR."""

    condition: Expression


@dataclass(frozen=True)
class Kept(Written):
    """One item of PROJECT: a variable, perhaps with the attributes that its events keep."""

    variable: str
    attributes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Project(_One):
    """`PROJECT[x, y(a)](p)`."""

    kept: tuple[Kept, ...]


Fold = ast.Fold


@dataclass(frozen=True)
class Derive(_One):
    """`AGG y[b <- sum(x.a)](p)`."""

    variable: str
    folds: tuple[Fold, ...]


S = TypeVar("S", Sequence, Adjacent, Any, Both)


def joined(kind: type[S], *parts: Formula, where: Where = None) -> S:
    """The parts under one operator, those under the same operator opened."""
    flat: list[Formula] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else (part,))
    return kind(tuple(flat), where=where)


@dataclass(frozen=True)
class Query(ast.Clauses):
    """A formula with its clauses."""

    formula: Formula
