"""What a running stream tells of itself: Spark's observed metrics, which come with the progress of every micro-batch.

metric       of one micro-batch
------       ------------------
seen         rows that the inputs brought, heartbeats included
bad          of these, rows without a time
events       events that took part
late         events that came too late, and took none
matches      matches that were given, before HAVING
remembered   events in the state afterwards
bytes        the size of the state afterwards
watermark    how far time has come, in microseconds
"""

from __future__ import annotations

from tocsin.physical.streaming import grouped

NAME = "tocsin"
SUMS = (
    grouped.SEEN,
    grouped.BAD,
    grouped.EVENTS,
    grouped.LATE,
    grouped.MATCHES,
    grouped.REMEMBERED,
    grouped.BYTES,
)
# The rows that bring matches have zeros; all shards know the same time, which may lie before 1970.
OBSERVED = (
    *(f"coalesce(sum({name}), 0) AS {name}" for name in SUMS),
    f"max(CASE WHEN length({grouped.FOUND}) = 0 THEN {grouped.WATERMARK} END) AS {grouped.WATERMARK}",
)
