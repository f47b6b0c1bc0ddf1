"""The syntax tree of a SASE+ query, as parsed or as built in Python; names are not resolved yet.

`parse(print(query)) == query` for every tree: places are not compared, and the tree keeps no spelling that the
printer could not give back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tocsin.language.expressions import Expression, Tree
from tocsin.language.user_defined import Monoid
from tocsin.source import Source, Where, Written


@dataclass(frozen=True)
class Quantifier(Written):
    """How often an element repeats; `most` None means as often as the window holds."""

    least: int
    most: int | None


@dataclass(frozen=True)
class _Pattern(Tree["Element"]):
    """An element of a pattern."""


@dataclass(frozen=True)
class Event(_Pattern):
    """`T v`, `T+ v`, `T{2,3} v`; without a name the type's name is the variable (R35)."""

    type: str
    name: str | None = None
    quantifier: Quantifier | None = None

    @property
    def variable(self) -> str:
        """The name conditions use."""
        return self.name if self.name is not None else self.type


class Operator(Enum):
    """The composite patterns of SASE+."""

    SEQ = "SEQ"
    AND = "AND"
    OR = "OR"


@dataclass(frozen=True)
class Composite(_Pattern):
    """`SEQ(…)`, `AND(…)`, `OR(…)`, possibly repeated."""

    operator: Operator
    parts: tuple[Element, ...]
    quantifier: Quantifier | None = None


@dataclass(frozen=True)
class Negation(_Pattern):
    """`NOT T v`; of anything else the analyser refuses it (R36)."""

    operand: Element


Element = Event | Composite | Negation


class Selection(Enum):
    """Which of the any-match results are kept (SEMANTICS §4)."""

    ANY = "any"
    NEXT = "next"
    CONTIGUOUS = "contiguous"
    PARTITION_CONTIGUOUS = "partition-contiguous"


class Skip(Enum):
    """Where the search goes on after a match (R5)."""

    REUSE = "reuse"
    PAST_LAST = "past last"
    TO_NEXT = "to next"
    TO_FIRST = "to first"
    TO_LAST = "to last"


@dataclass(frozen=True)
class AfterMatch(Written):
    """`AFTER MATCH …`; `variable` goes with TO_FIRST and TO_LAST only."""

    skip: Skip = Skip.REUSE
    variable: str | None = None


class Output(Enum):
    """Which of the kept matches are reported (R31)."""

    ALL = "all"
    FIRST_PER_START = "first per start"
    FIRST_PER_END = "first per end"
    LAST_PER_START = "last per start"
    LAST_PER_END = "last per end"
    LONGEST = "longest"
    COUNT = "count"


# Policies that choose one match of each first event before the frontier moves (R44), policies that choose one of each
# last event, and policies that report every kept match.
PER_START = frozenset({Output.FIRST_PER_START, Output.LAST_PER_START, Output.LONGEST})
PER_END = frozenset({Output.FIRST_PER_END, Output.LAST_PER_END})
REPORTS_ALL = frozenset({Output.ALL, Output.COUNT})


@dataclass(frozen=True)
class Window(Written):
    """`WITHIN W` or `WITHIN (W, slide)`; the slide changes nothing (R37)."""

    size_us: int
    slide_us: int | None = None


@dataclass(frozen=True)
class Column(Written):
    """One item of RETURN."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True)
class Key(Written):
    """One attribute of PARTITION BY."""

    attribute: str


@dataclass(frozen=True)
class Fold(Written):
    """One value of AGG: `name <- function(variable.path)`; `count(x)` has an empty path.

    `monoid` is what a function that the user has registered stands for.
    """

    name: str
    function: str
    variable: str
    path: tuple[str, ...] = ()
    distinct: bool = False
    monoid: Monoid | None = None


@dataclass(frozen=True, kw_only=True)
class Clauses(Written):
    """The clauses around a pattern or formula; those left out have their default. Not every language has all.

    `where_clause` is the condition of WHERE; `where`, as on every node, is the place in the text. `places` are those of
    the clauses, by the name of their field.
    """

    partition_by: tuple[Key, ...] = ()
    where_clause: Expression | None = None
    within: Window | None = None
    selection: Selection = Selection.ANY
    after_match: AfterMatch = AfterMatch()
    output: Output = Output.ALL
    returns: tuple[Column, ...] = ()
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    every: Window | None = None
    timeouts: bool = False
    places: Mapping[str, Where] = field(default_factory=dict, compare=False, repr=False)
    source: Source | None = field(default=None, compare=False, repr=False)

    def place(self, clause: str) -> Where:
        """Where a clause is written, or else the whole query."""
        return self.places.get(clause, self.where)


@dataclass(frozen=True)
class Query(Clauses):
    """A pattern of SASE+ with its clauses."""

    pattern: Element


def events_in(element: Element) -> Iterator[Event]:
    """Every event element, negated ones included, from left to right."""
    return (part for part in element.walk() if isinstance(part, Event))


def negated_in(element: Element) -> Iterator[Event]:
    """The event elements under NOT, from left to right."""
    if isinstance(element, Negation):
        yield from events_in(element)
    else:
        for part in element.children():
            yield from negated_in(part)
