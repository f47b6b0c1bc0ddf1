"""Scenario B on joins that forget by count: the port whose losses the dissertation measures (§7.3.3, §7.4).

Three joins in a chain. Each has two histories, one per side; a new element is kept, the oldest beyond the size of the
history is dropped, and the other history is asked for partners. Nothing stops one side so that the other can catch up:
here the left side of each join sees the whole trace first, which is how the port behaved, by the losses it had.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tocsin.datasets.diffusion import WINDOW_MS, Trace, is_common_route

# Of each join, left and right: the sizes that bounded execution needs at 10 transfers per millisecond (figure 7.4).
VIABLE_SIZES = ((141, 141), (39_481, 141), (11_094_021, 141))
WINDOW_US = 1000 * WINDOW_MS
LEAST_AMOUNT = 100

Transfer = Mapping[str, int]
Partial = tuple[Transfer, ...]


@dataclass
class History:
    """The last so many elements, found by the account that has to agree."""

    size: int
    account: Callable[[Partial], int]
    elements: deque[Partial] = field(default_factory=deque)
    by_account: dict[int, deque[Partial]] = field(default_factory=dict)

    def add(self, element: Partial) -> None:
        self.elements.append(element)
        self.by_account.setdefault(self.account(element), deque()).append(element)
        if len(self.elements) > self.size:
            dropped = self.elements.popleft()
            self.by_account[self.account(dropped)].popleft()

    def of(self, account: int) -> Iterable[Partial]:
        return self.by_account.get(account, ())


class Join:
    """One operator with two inputs: what it is given, it keeps as long as there is room, and joins at once."""

    def __init__(self, left_size: int, right_size: int) -> None:
        self.left = History(left_size, _mule)
        self.right = History(right_size, lambda element: element[0]["originator"])

    def from_left(self, element: Partial) -> Iterator[Partial]:
        self.left.add(element)
        yield from (element + other for other in self.right.of(_mule(element)) if _fits(element, other[0]))

    def from_right(self, transfer: Transfer) -> Iterator[Partial]:
        self.right.add((transfer,))
        partners = self.left.of(transfer["originator"])
        yield from ((*element, transfer) for element in partners if _fits(element, transfer))


def _mule(element: Partial) -> int:
    return element[0]["destination"]


def _fits(element: Partial, outgoing: Transfer) -> bool:
    """Within the window, and after the others by id, so that a case is found once."""
    incoming, *others = element
    return incoming["ts"] <= outgoing["ts"] <= incoming["ts"] + WINDOW_US and (
        not others or outgoing["id"] > others[-1]["id"]
    )


@dataclass(frozen=True)
class Inputs:
    """A trace as the joins see it: what may come in, and what may go out."""

    incoming: list[Transfer]
    outgoing: list[Transfer]

    @classmethod
    def of(cls, trace: Trace) -> Inputs:
        uncommon = [row for row in trace.transfers.rows() if not is_common_route(row["originator"], row["destination"])]
        return cls([row for row in uncommon if row["amount"] >= LEAST_AMOUNT], uncommon)


@dataclass(frozen=True)
class Result:
    """The ids of the cases that the chain found, and whether it ever dropped an element of a left side.

    When it did not, larger histories find the same: the right ones are asked for nothing once the left side has ended.
    """

    cases: set[tuple[int, ...]]
    has_dropped: bool


def found(inputs: Inputs, scale: int) -> Result:
    """What the chain finds with so many times the viable sizes."""
    elements: list[Partial] = [(transfer,) for transfer in inputs.incoming]
    has_dropped = False
    for left_size, right_size in VIABLE_SIZES:
        join = Join(scale * left_size, scale * right_size)
        has_dropped |= len(elements) > scale * left_size
        joined = [match for element in elements for match in join.from_left(element)]
        joined += [match for transfer in inputs.outgoing for match in join.from_right(transfer)]
        elements = joined
    cases = {tuple(transfer["id"] for transfer in match) for match in elements if _is_whole(match)}
    return Result(cases, has_dropped)


def _is_whole(match: Partial) -> bool:
    incoming, *outgoing = match
    total = sum(transfer["amount"] for transfer in outgoing)
    return incoming["amount"] * 0.9 <= total <= incoming["amount"] * 1.1
