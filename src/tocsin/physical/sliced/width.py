"""How wide time slices are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tocsin.kernels.kernel import Kernel

REACHES_PER_SLICE = 16
# So wide that the number of a slice and those beside it are far from the ends of 64 bits.
LEAST_WIDTH_US = 2
MOST_WIDTH_US = 2**62


def width_us(kernel: Kernel, slice_us: int | None = None) -> int | None:
    """The width of the slices; None when the query cannot be cut by time.

    `slice_us` is what the user wants; what copies need is the least there is.
    """
    reach = max(kernel.back_us, kernel.ahead_us)
    if not kernel.can_slice or reach > MOST_WIDTH_US:
        return None
    wanted = REACHES_PER_SLICE * (kernel.back_us + kernel.ahead_us) if slice_us is None else slice_us
    return max(min(wanted, MOST_WIDTH_US), reach, LEAST_WIDTH_US)
