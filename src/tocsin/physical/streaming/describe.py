"""A stream's plan in words, for `explain()`: the operator, its shards, when it gives matches and what it remembers."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.analysis.formatting import format_bound
from tocsin.kernels.searches import Search
from tocsin.plan.describe import LINKS
from tocsin.plan.due import Due


def describe(kernel: Search, made: Due, keys: Sequence[str], *, counts: bool) -> str:
    """The one operator with state.

    Parameters
    ----------
    kernel
        What searches.
    made
        When matches are decided.
    keys
        The attributes that split the stream.
    counts
        Whether matches are counted, and not found.
    """
    what = "counts matches without building them" if counts else "searches what still matters and what is new"
    lines = [f"one operator with state, which {what}", f"  {_shards(kernel, keys)}", f"  {_given(made)}"]
    if kernel.walks and not counts:
        lines.insert(1, f"  {LINKS}")
    if made.last_events is not None:
        return "\n".join(
            [*lines, f"  remembers the last {made.last_events} events of a partition, and what may change"]
        )
    lives = {
        source.variable: format_bound(life) for source, life in zip(kernel.sources, made.retention_us, strict=True)
    }
    kept = ", ".join(f"{'NOT ' * (name not in kernel.query.variables)}{name} {life}" for name, life in lives.items())
    lines.append(f"  remembers events for: {kept}; and as long as others may be late")
    return "\n".join(lines)


def _shards(kernel: Search, keys: Sequence[str]) -> str:
    if not keys:
        return "one shard, since nothing splits the stream: PARTITION BY would"
    if kernel.crosses_partitions:
        return "one shard, since the events of all keys count"
    return f"shards by {', '.join(keys)}"


def _given(made: Due) -> str:
    if made.every_us is not None:
        return "tells a window when every match that starts in it is decided"
    if made.is_eager:
        return "gives a match with its last event"
    if made.after_start_us is not None or made.after_end_us is not None:
        return "gives a match when the watermark has passed all that it is compared with"
    if made.absences:
        return "gives a match when the watermark has passed its end and all that could still block it"
    return "gives a match when the watermark has passed its end"
