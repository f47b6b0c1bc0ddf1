"""The algebra as others import it, `from tocsin.algebra import nodes as alg`: patterns, and the query around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tocsin.algebra.patterns import (
    Absent,
    Adjacent,
    All,
    Anchor,
    Any,
    Around,
    Bind,
    Both,
    Bound,
    Derive,
    Emit,
    Event,
    Filter,
    FirstOf,
    Fold,
    Gather,
    LastOf,
    NextOf,
    Node,
    Order,
    Project,
    Repeat,
    RepeatAdjacent,
    Sequence,
    Whole,
    Within,
)
from tocsin.algebra.variables import Kind, events_held, exposed, variables_of
from tocsin.language.ast import AfterMatch, Output, Selection, Skip
from tocsin.language.expressions import Expression
from tocsin.source import Where

__all__ = [
    "REUSE",
    "Absent",
    "Adjacent",
    "All",
    "Anchor",
    "Any",
    "Around",
    "Bind",
    "Both",
    "Bound",
    "Derive",
    "Emit",
    "Event",
    "Filter",
    "FirstOf",
    "Fold",
    "Gather",
    "Kind",
    "LastOf",
    "NextOf",
    "Node",
    "Order",
    "Partition",
    "Project",
    "Query",
    "Repeat",
    "RepeatAdjacent",
    "Returned",
    "Sequence",
    "Whole",
    "Within",
    "absences_in",
    "around_in",
    "event_types",
    "events_held",
    "exposed",
    "gatherings_in",
    "negated_variables",
    "variables_of",
]


@dataclass(frozen=True)
class Partition:
    """The attributes that make each key its own stream (SEMANTICS §5, R11).

    `keys` come from PARTITION BY, where NULL is a key like any other; `same` from `[k]`, where an event with NULL
    takes part in nothing.
    """

    keys: tuple[str, ...] = ()
    same: tuple[str, ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """All of them, in order of first mention."""
        return tuple(dict.fromkeys(self.keys + self.same))


@dataclass(frozen=True)
class Returned:
    """A named output column."""

    name: str
    expression: Expression


REUSE = AfterMatch()


@dataclass(frozen=True)
class Query:
    """A pattern with its partition, policies and output, applied in the order of R32 and R44.

    `unordered` are groups of variables of which it does not matter which holds which event (D37): of matches that
    differ in nothing else, the first is kept, before the policies apply. `every_us` groups matches by the window of
    this length, counted from 1970, in which they start.
    """

    pattern: Node
    partition: Partition = Partition()
    selection: Selection = Selection.ANY
    after_match: AfterMatch = REUSE
    output: Output = Output.ALL
    returns: tuple[Returned, ...] = ()
    group_by: tuple[Returned, ...] = ()
    having: Expression | None = None
    over_all_matches: bool = False
    every_us: int | None = None
    timeouts: bool = False
    unordered: tuple[tuple[str, ...], ...] = ()
    places: Mapping[str, Where] = field(default_factory=dict, compare=False, repr=False)

    @property
    def core(self) -> Node:
        """The pattern below the query's own WITHIN and WHERE."""
        node = self.pattern
        if isinstance(node, Within):
            node = node.part
        return node.part if isinstance(node, Filter) else node

    @property
    def window_us(self) -> int | None:
        """W, when the query has one."""
        return self.pattern.window_us if isinstance(self.pattern, Within) else None

    @property
    def ranks_matches(self) -> bool:
        """Whether what is reported of some matches depends on others: after-match and output policies."""
        return self.after_match.skip is not Skip.REUSE or self.output.takes_away

    @property
    def compares_matches(self) -> bool:
        """Whether a policy compares matches with others, or with what else could have been bound."""
        return self.selection is not Selection.ANY or self.ranks_matches

    @cached_property
    def variables(self) -> dict[str, Kind]:
        """The positive variables in order of appearance, and what each can hold."""
        return variables_of(self.pattern)


def around_in(node: Node) -> Iterator[Around]:
    """Every absence and every gathering of a pattern, outermost first."""
    return (inner for inner in node.walk() if isinstance(inner, Around))


def absences_in(node: Node) -> Iterator[Absent]:
    """Every absence of a pattern, outermost first."""
    return (inner for inner in node.walk() if isinstance(inner, Absent))


def gatherings_in(node: Node) -> Iterator[Gather]:
    """Every gathering of a pattern, in the order in which they gather: innermost first."""
    return reversed([inner for inner in node.walk() if isinstance(inner, Gather)])


def before_us(around: Around) -> int:
    """How far before the first event of a match, exclusive, a lower bound on named events lets one matter."""
    named = [bound for bound in around.lower if not isinstance(bound.anchor, Whole) and bound.offset_us < 0]
    return max((-bound.offset_us + (not bound.strict) for bound in named), default=0)


def after_us(around: Around) -> int:
    """How far after the last event of a match an upper bound on named events lets one matter."""
    return max((bound.offset_us for bound in around.upper if not isinstance(bound.anchor, Whole)), default=0)


def gathered_us(node: Node) -> int:
    """How much longer gatherings make a match than its other events do (D49)."""
    gatherings = list(gatherings_in(node))
    return max(map(before_us, gatherings), default=0) + max([0, *map(after_us, gatherings)])


def negated_variables(node: Node) -> dict[str, str]:
    """The variables under NOT and their types."""
    return {absence.variable: absence.type for absence in absences_in(node)}


def event_types(node: Node) -> tuple[str, ...]:
    """Every event type a pattern names, negated ones included, in order of appearance."""
    named = [inner.type for inner in node.walk() if isinstance(inner, Event | NextOf | Around)]
    return tuple(dict.fromkeys(name for name in named if name is not None))
