"""The nodes of the algebra (SEMANTICS §3), immutable: what a pattern is made of.

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
Gather             D38                 -                  -             all v : T { c }
Emit               Emit(p, T, at, …)   -                  -             emit T at e with {…}
```

`Within` and `Filter` of a SASE+ query sit at the top, in this order: `Within(Filter(p, …), W)`. An `Absent` inside an
OR branch or a copy of an iteration takes its bounds from the sub-match it wraps; its condition and the bounds that name
the match's own START and END are decided on the whole match (R9, R10).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tocsin.language import ast as language
from tocsin.language.expressions import Expression, Tree


@dataclass(frozen=True)
class Node(Tree["Node"]):
    """A pattern: it denotes a set of matches over a finite stream."""


@dataclass(frozen=True)
class Event(Node):
    """One match per event of `type`; `variable` holds the event. Type None is any type (ACEL's NEXT)."""

    type: str | None
    variable: str
    condition: Expression | None = None


class Order(Enum):
    """The increasing value along a sequence: time stamp, ACEL's position (R7), or time and tie columns (R41)."""

    TIME = "time"
    TIES = "time and tie columns"
    POSITION = "position"


@dataclass(frozen=True)
class _Several(Node):
    parts: tuple[Node, ...]


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

    @property
    def is_one_element(self) -> bool:
        """Whether it is a choice of single events, which counts as one element under `next` (R45)."""
        return all(isinstance(part, Event) for part in self.parts)


@dataclass(frozen=True)
class Both(_Several):
    """Matches found by every part, equal in interval and bindings (R25)."""


@dataclass(frozen=True)
class _One(Node):
    part: Node


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
    one that exists matters. `order` is what a strict bound without an offset compares: tie columns may order the events
    of a neighbour's instant.
    """

    anchor: Anchor
    offset_us: int = 0
    strict: bool = True
    order: Order = Order.TIME

    @property
    def step_us(self) -> int:
        """How far from `anchor + offset` the nearest event inside lies."""
        return int(self.strict and self.order is Order.TIME)


@dataclass(frozen=True)
class Around(_One):
    """A look at the events of `type` around a match of `part`: those inside all bounds that make `condition` TRUE."""

    type: str
    variable: str
    condition: Expression | None
    lower: tuple[Bound, ...]
    upper: tuple[Bound, ...]


@dataclass(frozen=True)
class Absent(Around):
    """Keeps a match unless there is such an event."""


@dataclass(frozen=True)
class Gather(Around):
    """Adds all such events to the match, in `variable`; it stays unbound when there are none (D38)."""


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


Fold = language.Fold


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
