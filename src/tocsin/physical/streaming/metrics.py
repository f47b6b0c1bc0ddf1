"""What a running stream tells of itself: Spark's observed metrics, which come with the progress of every micro-batch.

metric       of one micro-batch
------       ------------------
seen         rows that the inputs brought, heartbeats included
bad          of these, rows without a time
events       events that took part
late         events that came too late, and took none
matches      matches that were given, before HAVING
remembered   events in the state afterwards
growing      keys whose state grows with the number of events: of `tocsin.acer.rule_cer`, whose state is the user's
bytes        the size of the state afterwards
watermark    how far time has come, as the time column counts it; timestamps count microseconds
time_unit    what integer times count, where it is not microseconds
largest      events in the state of the largest shard
bound        the most events that may be in the state, by the declared rates; where they are known
over         for each type with a declared rate, events beyond it; where there are any
"""

from __future__ import annotations

from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.physical.streaming import grouped
from tocsin.physical.streaming.guard import Guard

NAME = "tocsin"
LARGEST_NUMBER = 2**63 - 1
LARGEST, BOUND, OVER, TIME_UNIT = "largest", "bound", "over", "time_unit"
SUMS = (
    grouped.SEEN,
    grouped.BAD,
    grouped.EVENTS,
    grouped.LATE,
    grouped.MATCHES,
    grouped.REMEMBERED,
    grouped.GROWING,
    grouped.BYTES,
)
# The rows that bring matches have zeros; all shards know the same time, which may lie before 1970.
OBSERVED = (
    *(f"coalesce(sum({name}), 0) AS {name}" for name in SUMS),
    f"max(CASE WHEN length({grouped.FOUND}) = 0 THEN {grouped.WATERMARK} END) AS {grouped.WATERMARK}",
    f"coalesce(max({grouped.REMEMBERED}), 0) AS {LARGEST}",
)


def observed(guard: Guard | None = None, bound: int | None = None, unit: Unit = MICROSECONDS) -> tuple[str, ...]:
    r"""The metrics of a stream, as SQL; with declared rates also what they bound.

    Examples
    --------
    >>> observed(bound=7)[-1]
    '7L AS bound'
    >>> "bound" in observed(bound=2**63)[-1]
    False
    >>> print(observed(Guard(("Log'in",), (10,), (1,)))[-1])
    named_struct('Log\'in', coalesce(sum(over_0), 0)) AS over
    >>> observed(unit=Unit("ms"))[-1]
    "'ms' AS time_unit"
    """
    found = list(OBSERVED)
    if unit.name != MICROSECONDS.name:
        found.append(f"{_quoted(unit.name)} AS {TIME_UNIT}")
    if bound is not None and bound <= LARGEST_NUMBER:  # else it bounds nothing: what rules emit multiplies
        found.append(f"{bound}L AS {BOUND}")
    if guard is not None:
        names = grouped.numbers_of(guard)[-len(guard.types) :]
        pairs = (f"{_quoted(kind)}, coalesce(sum({name}), 0)" for kind, name in zip(guard.types, names, strict=True))
        found.append(f"named_struct({', '.join(pairs)}) AS {OVER}")
    return tuple(found)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
