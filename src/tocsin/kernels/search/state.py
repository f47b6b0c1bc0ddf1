"""The state at a place in the nest of loops: which names in the generated code hold it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tocsin.algebra import nodes as alg
from tocsin.kernels.expressions.leaves import Test


@dataclass(frozen=True)
class One:
    """A variable that holds one event or none: `index` is −1 when it is unbound."""

    index: str
    is_sure: bool  # bound wherever this is known


@dataclass(frozen=True)
class Many:
    """A variable that holds a bag: event k (from 0) is `array[offset + k]`, and there are `count`."""

    array: str
    offset: str
    count: str

    def at(self, k: str) -> str:
        """The code of the k-th event."""
        return f"{self.array}[{k}]" if self.offset == "0" else f"{self.array}[{self.offset} + {k}]"


@dataclass(frozen=True)
class Stretch(Many):
    """A bag of neighbours in the list of its variable, the first at `offset`; `array` has no meaning."""

    def at(self, k: str) -> str:
        """The code of the k-th event."""
        return f"({self.offset} + {k})"


Held = One | Many


def size_of(what: Held | None) -> str:
    """The code of how many events a variable holds."""
    if what is None:
        return "0"
    return what.count if isinstance(what, Many) else f"(1 if {what.index} >= 0 else 0)"


@dataclass(frozen=True)
class Guard:
    """An absence that is still to be decided, or the window of a gathering.

    `low`, `high`, `active` are the code of its bounds when a table's row brings them; otherwise they are computed
    from the events of the match. With `rows`, the code of an array of rows and of their count, they are arrays.
    """

    absent: alg.Around
    low: str = ""
    high: str = ""
    active: str = ""
    rows: tuple[str, str] | None = None

    @property
    def is_brought(self) -> bool:
        """Whether a table's row brings the bounds."""
        return bool(self.low)

    def of_row(self, row: str) -> Guard:
        """The guard of one row."""
        return Guard(self.absent, f"{self.low}[{row}]", f"{self.high}[{row}]", f"{self.active}[{row}]")


@dataclass(frozen=True)
class State:
    """The names at one place."""

    floor: str = "LEAST"  # the time that what comes next must be after
    # The first and the last time bound so far; sentinels while nothing is bound.
    low: str = "MOST"
    high: str = "LEAST"
    # What the window leaves for further events, both included.
    earliest: str = "LEAST"
    latest: str = "MOST"
    place: str = "-2"  # the position of the last event, for contiguity
    held: dict[str, Held] = field(default_factory=dict)  # the variables that are decided: bound, or left out for good
    is_bound: bool = False  # whether an event is bound for sure
    is_linear: bool = True  # whether every further event comes after all that are bound
    # What is still to be tested.
    tests: tuple[Test, ...] = ()
    guards: tuple[Guard, ...] = ()
    gatherings: tuple[alg.Gather, ...] = ()  # what is gathered when all else is bound, in this order
    # What has to come after the part that is emitted: a list of candidates, and how many of them.
    behind: tuple[tuple[str, int], ...] = ()

    def knowing(self, more: dict[str, Held]) -> State:
        """With more variables decided."""
        return replace(self, held=self.held | more)


Then = Callable[[State], None]
