"""Which rows meet in one task: those of one partition and one time slice.

Slices have one width and are owned by nobody twice: slice s owns the times in [s · width, (s + 1) · width). A match is
reported by the slice that owns its start (or its end), so that a slice also needs the events up to `ahead_us` after and
`back_us` before the times it owns. An event near an edge is sent to the neighbour too, as a copy. No slice is narrower
than either reach, so that nobody needs more than the two neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

from pyspark.sql import DataFrame

from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import repartition, select
from tocsin.kernels.model import WORD_BITS
from tocsin.kernels.reach import Reach
from tocsin.plan.manifest import BITS, FLAGS_AT, GROUP_AT, OWN_COPY, Packing

LEAST_US, MOST_US = -(2**63), 2**63 - 1
NOBODY = F.array().cast("array<bigint>")


def distribute(
    frame: DataFrame,
    columns: Sequence[str],
    sees: Reach | Group,
    micros: Column,
    keys: Sequence[Column],
    width: int | None,
    tasks: int | None,
    otherwise: Column | None = None,
) -> DataFrame:
    """Send every event to all of so many tasks that need it; `columns` are those of the frame.

    Rows without a time go by `otherwise`; without it there are none.
    """
    if width is None:
        return repartition(frame, *keys, partitions=tasks) if keys else frame.repartition(1)
    slices = slice_of_copy(micros, width)
    rows = with_copies(frame, columns, sees, micros, width)
    by = (*keys, slices if otherwise is None else F.coalesce(slices, otherwise))
    return repartition(rows, *by, partitions=tasks)


def with_copies(frame: DataFrame, columns: Sequence[str], sees: Reach | Group, micros: Column, width: int) -> DataFrame:
    """The rows, and for each that a neighbouring slice needs a copy with other bits."""
    if not sees.ahead_us > 0 and not sees.back_us > 1:
        return frame
    others = [F.col(name) for name in columns if name != BITS]
    return select(frame, *others, F.explode(copies(F.col(BITS), sees, micros, width)).alias(BITS))


def copies(own: Column, sees: Reach | Group, micros: Column, width: int) -> Column:
    """The bits of a row, and those of its copies for the slices beside its own that need one."""
    within = F.pmod(micros, F.lit(width))
    before, after = own - 1, own + 1
    # Of slice s the next one needs ts > (s + 1) · width − back, the one before ts < s · width + ahead; where a slice
    # would own no time of 64 bits nobody asks: before the second slice, and in the last.
    second, last = (LEAST_US // width + 1) * width, MOST_US // width * width
    copied_back = (within < F.lit(sees.ahead_us)) & (micros >= F.lit(second))
    copied_ahead = (within > F.lit(width - sees.back_us)) & (micros < F.lit(last))
    has_back, has_ahead = sees.ahead_us > 0, sees.back_us > 1
    sent = []
    if has_back and has_ahead:
        sent.append((copied_back & copied_ahead, F.array(own, before, after)))
    if has_back:
        sent.append((copied_back, F.array(own, before)))
    if has_ahead:
        sent.append((copied_ahead, F.array(own, after)))
    return F.cases(sent).otherwise(F.array(own)) if sent else F.array(own)


@dataclass(frozen=True)
class Group:
    """Kernels for which rows are split alike."""

    keys: tuple[Column, ...]  # what rows of one partition agree on
    width_us: int  # how wide slices are
    # back_us, ahead_us: how far before and after the times it owns a slice must see events, as in `Reach`
    back_us: int
    ahead_us: int
    flags: frozenset[int]  # the numbers of their flags, which no other group has
    packing: Packing  # where these are

    @property
    def masks(self) -> dict[str, int]:
        """By column, its flags."""
        found = dict.fromkeys(self.packing.words or (BITS,), 0)
        for bit in self.flags:
            word, place = divmod(bit, WORD_BITS) if self.packing.words else (0, FLAGS_AT + bit)
            found[self.packing.words[word] if self.packing.words else BITS] |= 1 << place
        return found


def distribute_to(
    frame: DataFrame,
    columns: Sequence[str],
    groups: Sequence[Group],
    micros: Column,
    tasks: int | None,
    otherwise: Column | None,
) -> DataFrame:
    """Send every event, in one shuffle, to all tasks of all groups that need it.

    A row for a group has the flags of that group only, so that kernels of others do not see it.
    """
    if len(groups) == 1:
        (group,) = groups
        return distribute(frame, columns, group, micros, group.keys, group.width_us, tasks, otherwise)
    others = [F.col(name) for name in columns if name != BITS]
    every = reduce(or_, (group.masks.get(BITS, 0) for group in groups))
    sent = [_sent(number, group, micros, every & ~group.masks.get(BITS, 0)) for number, group in enumerate(groups)]
    if otherwise is not None:
        sent.append(F.when(micros.isNull(), F.array(F.col(BITS))).otherwise(NOBODY))
    rows = select(frame, *others, F.explode(F.concat(*sent)).alias(BITS))
    number = F.shiftright(F.col(BITS), GROUP_AT)
    is_of = [(number == place, group) for place, group in enumerate(groups)]
    slices = F.cases((is_own, slice_of_copy(micros, group.width_us)) for is_own, group in is_of)
    keys = [(is_own, F.xxhash64(*group.keys)) for is_own, group in is_of if group.keys]
    by = [number, *([F.cases(keys)] if keys else [])]
    rows = _with_own_words(rows, columns, groups, number)
    by.append(slices if otherwise is None else F.coalesce(slices, otherwise))
    return repartition(rows, *by, partitions=tasks)


def _sent(number: int, group: Group, micros: Column, others: int) -> Column:
    """The copies of a row for the slices of a group, with its number; none when it is a candidate of nobody there."""
    bits = F.col(BITS).bitwiseAND(F.bigint(~others)).bitwiseOR(F.bigint(number << GROUP_AT))
    masks = [(name, mask) for name, mask in group.masks.items() if mask]
    is_nobody = reduce(and_, (_number(name).bitwiseAND(F.bigint(mask)) == F.bigint(0) for name, mask in masks))
    return F.when(is_nobody, NOBODY).otherwise(copies(bits, group, micros, group.width_us))


def _number(name: str) -> Column:
    """A column of flags; a match that is handed on has none in words."""
    return F.col(name) if name == BITS else F.coalesce(F.col(name), F.bigint(0))


def _with_own_words(frame: DataFrame, columns: Sequence[str], groups: Sequence[Group], number: Column) -> DataFrame:
    """The rows whose columns of flags, where there are any, have those of their group only."""
    words = groups[0].packing.words
    if not words:
        return frame
    own = {
        name: F.cases((number == place, F.bigint(group.masks[name])) for place, group in enumerate(groups))
        for name in words
    }
    chosen = (F.col(name).bitwiseAND(own[name]).alias(name) if name in own else F.col(name) for name in columns)
    return select(frame, *chosen)


def slice_of(micros: Column, width: int) -> Column:
    """The number of the slice that owns a time: `floor(ts / width)`."""
    # Division goes towards zero. −1 − ts is as far above zero as ts is below; so is the number of its slice.
    sign = F.shiftright(micros, 63)
    return micros.bitwiseXOR(sign).div(width).bitwiseXOR(sign)


def slice_of_copy(micros: Column, width: int) -> Column:
    """The number of the slice a row is for: that of its time, and one less or more for a copy."""
    return slice_of(micros, width) + (F.col(BITS).bitwiseAND(F.lit(3)) - OWN_COPY)
