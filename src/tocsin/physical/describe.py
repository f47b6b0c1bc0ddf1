"""A plan in words: the `== Strategy ==` section of `explain()`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tocsin.algebra import nodes as alg
from tocsin.analysis.durations import format_us
from tocsin.language import expressions as ex
from tocsin.language.sase.printer import print_expression
from tocsin.physical.plan import Branch, Join, Plan, Scan


def describe(plan: Plan, partition: alg.Partition, time: str | Mapping[str, str] = "ts") -> str:
    """The joins of a plan, one line per step and the conditions it applies below it.

    `time` is the name of the time column, or that of each event type.
    """
    lines = ["native joins: every match once, no sliding window"]
    for number, branch in enumerate(plan.branches, start=1):
        if len(plan.branches) > 1:
            lines.append(f"alternative {number} of {len(plan.branches)}: {_names(branch)}")
        lines += _branch(branch, partition, time)
    if len(plan.branches) > 1:
        lines.append(f"union of {len(plan.branches)} alternatives; unbound variables are NULL")
    return "\n".join(lines)


def _names(branch: Branch) -> str:
    return ", ".join(scan.variable for scan in branch.scans)


def _branch(branch: Branch, partition: alg.Partition, time: str | Mapping[str, str]) -> Iterable[str]:
    times = {scan.variable: _time(scan, time) for scan in branch.scans}
    yield f"  scan {_scan(branch.scan)}"
    for join in branch.joins:
        yield f"  join {_scan(join.scan)}"
        yield from (f"       {line}" for line in _join(join, partition, times))
    if branch.orders:
        choices = (" and ".join(f"{x} < {y}" for x, y in order) for order in branch.orders)
        yield f"  keep where {' or '.join(choices)}"


def _scan(scan: Scan) -> str:
    conditions = " AND ".join(map(print_expression, scan.conditions))
    return f"{scan.type} {scan.variable}" + (f"  where {conditions}" if conditions else "")


def _time(scan: Scan, time: str | Mapping[str, str]) -> str:
    column = time if isinstance(time, str) else time.get(scan.type, "ts")
    return print_expression(ex.Attribute(scan.variable, (column,)))


def _join(join: Join, partition: alg.Partition, times: Mapping[str, str]) -> Iterable[str]:
    name, keys = join.scan.variable, [*map(print_expression, join.keys), *map(_same, partition.attributes)]
    if join.near is not None:
        low, high = format_us(join.near.low_us), format_us(join.near.high_us)
        width = format_us(join.near.high_us - join.near.low_us + 1)
        keys.append(f"time buckets of {width}")
        yield f"on {', '.join(keys)}"
        yield f"{times[name]} - {times[join.near.anchor]} in [{low}, {high}]"
    elif keys:
        yield f"on {', '.join(keys)}"
    else:
        yield "with every row: neither a key nor a largest distance connects it (add WITHIN)"
    for x, y in join.before:
        yield f"{x} < {y}"
    if join.span is not None:
        yield f"span less than {format_us(join.span.window_us)}"
    yield from map(print_expression, join.conditions)


def _same(attribute: str) -> str:
    return f"same {attribute}"
