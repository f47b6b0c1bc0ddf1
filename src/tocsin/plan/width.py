"""How wide time slices are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tocsin.kernels.reach import Reach

REACHES_PER_SLICE = 16
# So wide that the number of a slice and those beside it are far from the ends of 64 bits.
LEAST_WIDTH_US = 2
MOST_WIDTH_US = 2**62


def width_us(reach: Reach, slice_us: int | None = None) -> int | None:
    """The width of the slices; None when the query cannot be cut by time.

    `slice_us` is what the user wants; what copies need is the least there is.
    """
    farthest = max(reach.back_us, reach.ahead_us)
    if not reach.can_slice or farthest > MOST_WIDTH_US:
        return None
    wanted = REACHES_PER_SLICE * (reach.back_us + reach.ahead_us) if slice_us is None else slice_us
    return max(min(wanted, MOST_WIDTH_US), farthest, LEAST_WIDTH_US)
