"""Which rows meet in one task: those of one partition and one time slice.

Slices have one width and are owned by nobody twice: slice s owns the times in [s · width, (s + 1) · width). A match is
reported by the slice that owns its start (or its end), so that a slice also needs the events up to `ahead_us` after and
`back_us` before the times it owns. An event near an edge is sent to the neighbour too, as a copy. No slice is narrower
than either reach, so that nobody needs more than the two neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from tocsin.kernels.reach import Reach
from tocsin.physical.sliced.layout import BITS, OWN_COPY
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.sql.frames import repartition, select

LEAST_US, MOST_US = -(2**63), 2**63 - 1


def distribute(
    frame: DataFrame, columns: Sequence[str], kernel: Reach, micros: Column, keys: Sequence[Column], width: int | None
) -> DataFrame:
    """Send every event to all tasks that need it; `columns` are those of the frame."""
    by = [] if kernel.crosses_partitions else list(keys)
    if width is None:
        return repartition(frame, *by) if by else frame.repartition(1)
    # No number of partitions: adaptive execution may then join small ones.
    return repartition(with_copies(frame, columns, kernel, micros, width), *by, slice_of_copy(micros, width))


def with_copies(frame: DataFrame, columns: Sequence[str], kernel: Reach, micros: Column, width: int) -> DataFrame:
    """The rows, and for each that a neighbouring slice needs a copy with other bits."""
    within = F.pmod(micros, F.lit(width))
    own, before, after = F.col(BITS), F.col(BITS) - 1, F.col(BITS) + 1
    # Of slice s the next one needs ts > (s + 1) · width − back, the one before ts < s · width + ahead; where a slice
    # would own no time of 64 bits nobody asks.
    copied_back = (within < F.lit(kernel.ahead_us)) & (micros > within + F.lit(LEAST_US))
    copied_ahead = (within > F.lit(width - kernel.back_us)) & (micros <= within + F.lit(MOST_US - width))
    has_back, has_ahead = kernel.ahead_us > 0, kernel.back_us > 1
    if not has_back and not has_ahead:
        return frame
    sent = F.array(own)
    if has_back and has_ahead:
        copies = (
            F.when(copied_back & copied_ahead, F.array(own, before, after))
            .when(copied_back, F.array(own, before))
            .when(copied_ahead, F.array(own, after))
            .otherwise(sent)
        )
    elif has_back:
        copies = F.when(copied_back, F.array(own, before)).otherwise(sent)
    else:
        copies = F.when(copied_ahead, F.array(own, after)).otherwise(sent)
    others = [F.col(name) for name in columns if name != BITS]
    return select(frame, *others, F.explode(copies).alias(BITS))


def slice_of(micros: Column, width: int) -> Column:
    """The number of the slice that owns a time: `floor(ts / width)`."""
    towards_zero = micros.div(width)
    is_below = (micros < 0) & (F.pmod(micros, F.lit(width)) > 0)
    return towards_zero - F.when(is_below, 1).otherwise(0)


def slice_of_copy(micros: Column, width: int) -> Column:
    """The number of the slice a row is for: that of its time, and one less or more for a copy."""
    return slice_of(micros, width) + (F.col(BITS).bitwiseAND(F.lit(3)) - OWN_COPY)
