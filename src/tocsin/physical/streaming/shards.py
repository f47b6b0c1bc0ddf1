"""How keys are spread: over shards, each of which is one group of Spark's state, in a partition of its own.

Spark sends a group to a partition by the hash of its key. Numbers 0, 1, … would meet in some partitions and leave
others empty, so that a shard is called by a number whose hash leads to the partition that it should have.
"""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F

SEED = 42  # of Spark's hash partitioning


def labels(shards: int, partitions: int) -> tuple[int, ...]:
    """What the shards are called: the i-th lies in partition `i mod partitions`. A longer list begins like a shorter.

    Examples
    --------
    >>> labels(3, 2)
    (2, 0, 4)
    >>> [partition_of(label, 2) for label in labels(3, 2)]
    [0, 1, 0]
    """
    waiting: list[list[int]] = [[] for _ in range(partitions)]
    found: list[int] = []
    label = 0
    while len(found) < shards:
        wanted = waiting[len(found) % partitions]
        while not wanted:
            waiting[partition_of(label, partitions)].append(label)
            label += 1
        found.append(wanted.pop(0))
    return tuple(found)


def partition_of(label: int, partitions: int) -> int:
    """The partition that Spark sends an INT to."""
    return _murmur3(label) % partitions


def _murmur3(value: int) -> int:
    """The 32-bit Murmur3 hash of an INT as Spark has it, with its sign."""
    mixed = _rotated(value * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    found = (_rotated(SEED ^ mixed, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    found ^= 4
    found = (found ^ found >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    found = (found ^ found >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    found ^= found >> 16
    return found - (1 << 32) if found >> 31 else found


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & 0xFFFFFFFF


def shard_of(keys: Sequence[Column], shards: int) -> Column:
    """The number of the shard of a row, from 0; without a key there is one."""
    if not keys or shards == 1:
        return F.lit(0)
    return F.pmod(F.xxhash64(*keys), F.lit(shards)).cast("int")
