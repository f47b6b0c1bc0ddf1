"""The steps of a join plan: data only, so that a plan can be made, shown and tested without Spark.

code            meaning
----            -------
Scan            the events of one variable, filtered by the conditions on it alone
Nearness        low ≤ y.ts − x.ts ≤ high for a variable x joined before y: an equality of time buckets (O1)
Join            one more variable, with all conditions that it completes
Limit, Anti     one side of an absence's window; an absence, as an anti join
Way             one of several derivations of the same bindings: its demands beyond the others
Branch          one signature (variable → type); the plan's matches are the union of its branches

A variable here holds one event. An iterated variable `b` of the pattern stands as its copies `b[1]`, `b[2]`, …, one
branch for each number of copies (002: ITER^m is m − 1 self joins); `Branch.bags` has the copies of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tocsin.language import expressions as ex

Pair = tuple[str, str]


@dataclass(frozen=True)
class Nearness:
    """`low_us ≤ variable.ts − anchor.ts ≤ high_us`."""

    anchor: str
    low_us: int
    high_us: int

    @property
    def width_us(self) -> int:
        """The width of its time buckets: an event looks into at most two of them, and lies in one."""
        return self.high_us - self.low_us + 1


@dataclass(frozen=True)
class Prefilter:
    """Keeps the events of a variable that have one of a rare variable near: its time buckets and keys, broadcast."""

    near: Nearness
    keys: tuple[ex.Comparison, ...] = ()


@dataclass(frozen=True)
class Scan:
    """The events a variable may hold."""

    variable: str
    type: str
    conditions: tuple[ex.Expression, ...] = ()
    prefilter: Prefilter | None = None


@dataclass(frozen=True)
class Span:
    """`max(lasts) − min(firsts) < window_us`: the window, over the variables joined so far."""

    firsts: tuple[str, ...]
    lasts: tuple[str, ...]
    window_us: int


@dataclass(frozen=True)
class Limit:
    """`n.ts` lies beyond the latest, or before the earliest, of these variables' events, moved by an offset."""

    variables: tuple[str, ...]
    latest: bool
    offset_us: int = 0
    strict: bool = True


@dataclass(frozen=True)
class Anti:
    """An absence: drops a row when an event of `scan` lies inside all limits and makes all conditions TRUE (R10)."""

    scan: Scan  # with the conditions on it alone
    lower: tuple[Limit, ...] = ()  # limits whose anchors are bound (R13)
    upper: tuple[Limit, ...] = ()
    # Compared with the joined variables, as `conditions` are; UNKNOWN does not block.
    keys: tuple[ex.Comparison, ...] = ()
    conditions: tuple[ex.Expression, ...] = ()
    # How far from a joined variable an event can block, when that is bounded on both sides.
    near: Nearness | None = None


@dataclass(frozen=True)
class Join:
    """One more variable."""

    scan: Scan
    keys: tuple[ex.Comparison, ...] = ()  # `left = right`, one on each side of the join
    near: Nearness | None = None
    before: tuple[Pair, ...] = ()  # pairs (x, y) with x.ts < y.ts that `near` does not imply
    span: Span | None = None  # where `near` does not imply it
    conditions: tuple[ex.Expression, ...] = ()  # the others that this variable completes
    absences: tuple[Anti, ...] = ()  # that it completes: applied after it


@dataclass(frozen=True)
class Way:
    """One derivation of a branch's bindings: the order and the absences it demands beyond what all of them do."""

    before: tuple[Pair, ...] = ()
    absences: tuple[Anti, ...] = ()


@dataclass(frozen=True)
class Branch:
    """The joins of one signature, in their order."""

    scan: Scan
    joins: tuple[Join, ...]
    absences: tuple[Anti, ...] = ()  # that the first scan decides alone
    # Derivations of the same bindings, one of which must hold; empty: nothing more is demanded.
    ways: tuple[Way, ...] = ()
    firsts: tuple[str, ...] = ()  # one of which is the first event of the match
    lasts: tuple[str, ...] = ()  # one of which is its last
    # The pattern's bound variables, each with its copies in order of time.
    bags: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @property
    def scans(self) -> tuple[Scan, ...]:
        """All variables in the order they are joined."""
        return (self.scan, *(join.scan for join in self.joins))


@dataclass(frozen=True)
class Sliding:
    """Overlapping windows `[i · slide, i · slide + width)`: the paper's mapping without O1, for comparison.

    With `width = W + slide` every match lies whole in the window its start belongs to, i = ⌊start / slide⌋; in the
    others it is a duplicate.
    """

    width_us: int
    slide_us: int


@dataclass(frozen=True)
class Plan:
    """The branches whose union is the result; with `sliding`, joined within windows instead of time buckets."""

    branches: tuple[Branch, ...]
    sliding: Sliding | None = None
