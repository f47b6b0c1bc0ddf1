"""The nodes of the algebra (SEMANTICS §3), immutable, and the query around them.

```
code               SEMANTICS §3        SASE+              ACEL          rules
----               ------------        -----              ----          -----
Event              Event(T, v, c)      T v                T AS v        v : T { c }
Sequence           Sequence(p…)        SEQ(p, q)          p ; q         -
Adjacent           Adjacent(p…)        -                  p : q         -
All                All(p…)             AND(p, q)          -             several patterns
Any                Any(p…)             OR(p, q)           p OR q        several rules
Both               Both(p, q)          -                  p AND q       -
Repeat             Repeat(p, m, n)     T{m,n}, T+         p+            -
RepeatAdjacent     RepeatAdjacent(p)   -                  p@+           -
Absent             Absent(T v, c, …)   NOT T v            -             no v : T { c }
Filter             Filter(p, c)        WHERE c            FILTER        { c }
Bind               Bind(p, X)          -                  p AS X        -
Project            Project             -                  PROJECT[…]    -
Derive             Aggregate(p, Y[…])  -                  AGG Y[…]      -
NextOf             NEXT(R), R22        -                  NEXT(R)       -
Within             Within(p, W)        WITHIN W           WITHIN W      -
Emit               Emit(p, T, at, …)   -                  -             emit T at e with {…}
```

`Within` and `Filter` of a SASE+ query sit at the top, in this order: `Within(Filter(p, …), W)`. An `Absent` inside an
OR branch or a copy of an iteration takes its bounds from the sub-match it wraps; its condition and the bounds that name
the match's own START and END are decided on the whole match (R9, R10).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tocsin.language.ast import AfterMatch, Output, Selection
from tocsin.language.expressions import Expression
from tocsin.source import Where


@dataclass(frozen=True)
class Node:
    """A pattern: it denotes a set of matches over a finite stream."""

    where: Where = field(default=None, compare=False, repr=False, kw_only=True)

    def children(self) -> tuple[Node, ...]:
        """The sub-patterns, from left to right."""
        return ()

    def walk(self) -> Iterator[Node]:
        """The node itself and all below it, parents first."""
        yield self
        for child in self.children():
            yield from child.walk()


@dataclass(frozen=True)
class Event(Node):
    """One match per event of `type`; `variable` holds the event. Type None is any type (ACEL's NEXT)."""

    type: str | None
    variable: str
    condition: Expression | None = None


class Order(Enum):
    """What strictly increases along a sequence: SASE+ compares time stamps, ACEL positions (R7)."""

    TIME = "time"
    POSITION = "position"


@dataclass(frozen=True)
class _Several(Node):
    parts: tuple[Node, ...]

    def children(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True)
class Sequence(_Several):
    """Each part ends before the next starts."""

    order: Order = Order.TIME


@dataclass(frozen=True)
class Adjacent(_Several):
    """Each part starts at the position after the one before it ends."""


@dataclass(frozen=True)
class All(_Several):
    """A match of every part, in any order: a product; parts may share events (R12)."""


@dataclass(frozen=True)
class Any(_Several):
    """A match of one part; the variables of the others stay unbound."""


@dataclass(frozen=True)
class Both(_Several):
    """Matches found by every part, equal in interval and bindings (R25)."""


@dataclass(frozen=True)
class _One(Node):
    part: Node

    def children(self) -> tuple[Node, ...]:
        return (self.part,)


@dataclass(frozen=True)
class Repeat(_One):
    """`least` to `most` copies in sequence; the variables inside become bags. Zero copies bind nothing (R13)."""

    least: int
    most: int | None
    order: Order = Order.TIME


@dataclass(frozen=True)
class RepeatAdjacent(_One):
    """One or more copies, each adjacent to the one before."""


# --- absence --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LastOf:
    """The latest event among these variables of the sub-match."""

    variables: tuple[str, ...]


@dataclass(frozen=True)
class FirstOf:
    """The earliest event among these variables of the sub-match."""

    variables: tuple[str, ...]


class Whole(Enum):
    """The interval of the whole match."""

    START = "start"
    END = "end"


Anchor = LastOf | FirstOf | Whole


@dataclass(frozen=True)
class Bound:
    """One side of an absence's window: `anchor + offset`, open when strict.

    An anchor whose variables bind no event bounds nothing (R1, R13). The gap of an absence between two elements
    always lies within the window, so that a bound by the window may stand beside one by a neighbour: only the
    one that exists matters.
    """

    anchor: Anchor
    offset_us: int = 0
    strict: bool = True


@dataclass(frozen=True)
class Absent(_One):
    """Keeps a match of `part` unless an event of `type` lies inside all bounds and makes `condition` TRUE."""

    type: str
    variable: str
    condition: Expression | None
    lower: tuple[Bound, ...]
    upper: tuple[Bound, ...]


# --- filters and shapes ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Filter(_One):
    """Keeps matches for which the condition is TRUE, conjunct by conjunct (R21)."""

    condition: Expression


@dataclass(frozen=True)
class Within(_One):
    """Keeps matches with end − start < window_us."""

    window_us: int


@dataclass(frozen=True)
class Bind(_One):
    """`variable` additionally holds every event of the match, each once (R19)."""

    variable: str


@dataclass(frozen=True)
class Project(_One):
    """Keeps the named variables; with attributes, only those of the variable's events. The interval stays (R8)."""

    kept: tuple[tuple[str, tuple[str, ...] | None], ...]


@dataclass(frozen=True)
class Fold:
    """One value of a derived event: `name <- function(variable.path)`; COUNT has an empty path."""

    name: str
    function: str
    variable: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Derive(_One):
    """Adds to `variable` one new event of no type, with the folded values, at the end of the match (R24).

    SEMANTICS calls this node Aggregate; the name belongs to the expression `SUM(b.x)` here. NULLs propagate (R18).
    """

    variable: str
    folds: tuple[Fold, ...]


@dataclass(frozen=True)
class NextOf(Node):
    """The first event of a type from a position on: a run of other events, then it; only it is bound (R22)."""

    type: str
    variable: str


@dataclass(frozen=True)
class Emit(_One):
    """Turns each match into one event of `type` at the time of `at`'s event, with computed values (R30)."""

    type: str
    at: Expression
    values: tuple[tuple[str, Expression], ...]
    rule: str = ""
    number: int = 0


# --- the query ------------------------------------------------------------------------------------


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
    """A pattern with its partition, policies and output, applied in the order of R32."""

    pattern: Node
    partition: Partition = Partition()
    selection: Selection = Selection.ANY
    after_match: AfterMatch = REUSE
    output: Output = Output.ALL
    returns: tuple[Returned, ...] = ()
    group_by: tuple[Returned, ...] = ()
    having: Expression | None = None
    over_all_matches: bool = False
    timeouts: bool = False
    places: Mapping[str, Where] = field(default_factory=dict, compare=False, repr=False)

    @property
    def window_us(self) -> int | None:
        """W, when the query has one."""
        return self.pattern.window_us if isinstance(self.pattern, Within) else None

    @property
    def variables(self) -> dict[str, Kind]:
        """The positive variables in order of appearance, and what each can hold."""
        return variables_of(self.pattern)


@dataclass(frozen=True)
class Kind:
    """What a variable holds: events of these types; one, or a bag; always, or perhaps none."""

    types: tuple[str | None, ...]
    iterated: bool
    optional: bool


def variables_of(node: Node) -> dict[str, Kind]:
    """The positive variables of a pattern in order of appearance.

    Examples
    --------
    >>> a, b = Event("A", "a"), Repeat(Event("B", "b"), 0, None)
    >>> variables_of(Sequence((a, b)))["b"]
    Kind(types=('B',), iterated=True, optional=True)
    """
    match node:
        case Event() | NextOf():
            return {node.variable: Kind((node.type,), iterated=False, optional=False)}
        case Repeat() | RepeatAdjacent():
            at_least, at_most = (node.least, node.most) if isinstance(node, Repeat) else (1, None)
            return {
                name: Kind(kind.types, kind.iterated or at_most != 1, kind.optional or at_least == 0)
                for name, kind in variables_of(node.part).items()
            }
        case Any():
            branches = [variables_of(part) for part in node.parts]
            return {name: _merged([branch.get(name) for branch in branches]) for branch in branches for name in branch}
        case Both():
            return variables_of(node.parts[0])
        case Bind():
            inner = variables_of(node.part)
            types = tuple(dict.fromkeys(t for kind in inner.values() for t in kind.types))
            return inner | {node.variable: Kind(types, iterated=True, optional=False)}
        case Project():
            inner = variables_of(node.part)
            return {name: inner[name] for name, _ in node.kept if name in inner}
        case Derive():
            inner = variables_of(node.part)
            return inner | {node.variable: Kind((None,), iterated=True, optional=False)}
        case Emit():
            return {node.type: Kind((node.type,), iterated=False, optional=False)}
    merged: dict[str, Kind] = {}
    for part in node.children():
        for name, kind in variables_of(part).items():
            # A name twice in a sequence is a bag union (ACEL, R35); SASE+ has refused it before.
            merged[name] = kind if name not in merged else _bag_union(merged[name], kind)
    return merged


def _merged(kinds: list[Kind | None]) -> Kind:
    present = [kind for kind in kinds if kind is not None]
    return Kind(
        tuple(dict.fromkeys(t for kind in present for t in kind.types)),
        iterated=any(kind.iterated for kind in present),
        optional=len(present) < len(kinds) or any(kind.optional for kind in present),
    )


def _bag_union(one: Kind, other: Kind) -> Kind:
    types = tuple(dict.fromkeys(one.types + other.types))
    return Kind(types, iterated=True, optional=one.optional and other.optional)


def absences_in(node: Node) -> Iterator[Absent]:
    """Every absence of a pattern, outermost first."""
    return (inner for inner in node.walk() if isinstance(inner, Absent))


def negated_variables(node: Node) -> dict[str, str]:
    """The variables under NOT and their types."""
    return {absence.variable: absence.type for absence in absences_in(node)}


def event_types(node: Node) -> tuple[str, ...]:
    """Every event type a pattern names, negated ones included, in order of appearance."""
    named = [inner.type for inner in node.walk() if isinstance(inner, Event | NextOf | Absent)]
    return tuple(dict.fromkeys(name for name in named if name is not None))
