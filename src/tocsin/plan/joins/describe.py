"""Join plans in words: the `== Strategy ==` section of `explain()`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.algebra.units import format_us
from tocsin.language import expressions as ex
from tocsin.language.sase.printer import print_expression
from tocsin.plan.joins.model import Anti, Branch, Join, Limit, Nearness, Plan, Scan, Way

Times = str | Mapping[str, str]


def describe(plan: Plan, partition: alg.Partition, time: Times = "ts") -> str:
    """The joins of a plan, one line per step and the conditions it applies below it.

    `time` is the name of the time column, or that of each event type.
    """
    lines = ["native joins: every match once, no sliding window"]
    if plan.sliding is not None:
        width, slide = format_us(plan.sliding.width_us), format_us(plan.sliding.slide_us)
        lines = [f"joins in sliding windows of {width} every {slide}: each match reported by the window of its start"]
    for number, branch in enumerate(plan.branches, start=1):
        if len(plan.branches) > 1:
            lines.append(f"alternative {number} of {len(plan.branches)}: {_names(branch)}")
        lines += _Words(partition, time, windows=plan.sliding is not None).branch(branch)
    if len(plan.branches) > 1:
        lines.append(f"union of {len(plan.branches)} alternatives; unbound variables are NULL")
    return "\n".join(lines)


def _names(branch: Branch) -> str:
    return ", ".join(scan.variable for scan in branch.scans)


class _Words:
    """The lines of one branch."""

    def __init__(self, partition: alg.Partition, time: Times, *, windows: bool) -> None:
        self.same = [f"same {attribute}" for attribute in partition.attributes]
        self.time = time
        self.windows = windows
        self.times: dict[str, str] = {}
        self.places: dict[str, tuple[str, int]] = {}

    def branch(self, branch: Branch) -> Iterable[str]:
        self.places = {
            copy: (name, place)
            for name, copies in branch.bags.items()
            for place, copy in enumerate(copies, start=1)
            if copy != name
        }
        self.times = {scan.variable: self._time(scan) for scan in branch.scans}
        yield from self._scan("scan", branch.scan)
        yield from self._absences(branch.absences)
        for join in branch.joins:
            yield from self._scan("join", join.scan)
            yield from (f"       {line}" for line in self._join(join))
            yield from self._absences(join.absences)
        if branch.ways:
            yield f"  keep where {' or '.join(map(_way, branch.ways))}"
            different = dict.fromkeys(absence for way in branch.ways for absence in way.absences)
            yield from self._absences(different, "     where")

    def _scan(self, verb: str, scan: Scan) -> Iterable[str]:
        yield f"  {verb} {self._events(scan)}"
        if scan.prefilter is not None:
            near = scan.prefilter.near
            keys = [*map(self._condition, scan.prefilter.keys), *self.same, _buckets(near)]
            yield f"       kept near {near.anchor}, broadcast: {', '.join(keys)}"

    def _events(self, scan: Scan) -> str:
        conditions = " AND ".join(map(self._condition, scan.conditions))
        return f"{scan.type} {scan.variable}" + (f"  where {conditions}" if conditions else "")

    def _condition(self, expression: ex.Expression) -> str:
        """A condition as its author would write it: `b[1].x`, whatever a copy is called inside."""

        def written(node: ex.Expression) -> ex.Expression:
            if isinstance(node, ex.Attribute) and node.variable in self.places:
                name, place = self.places[node.variable]
                return replace(node, variable=name, index=ex.Fixed(place))
            return node

        return print_expression(expression.transform(written))

    def _time(self, scan: Scan) -> str:
        column = self.time if isinstance(self.time, str) else self.time.get(scan.type, "ts")
        return self._condition(ex.Attribute(scan.variable, (column,)))

    def _join(self, join: Join) -> Iterable[str]:
        keys = [*map(self._condition, join.keys), *self.same]
        if self.windows:
            keys.append("same window")
        if join.near is not None:
            keys.append(_buckets(join.near))
        if keys:
            yield f"on {', '.join(keys)}"
        else:
            yield "with every row: neither a key nor a largest distance connects it (add WITHIN)"
        if join.near is not None:
            yield self._distance(self.times[join.scan.variable], join.near)
        for x, y in join.before:
            yield f"{x} < {y}"
        if join.span is not None:
            yield f"span less than {format_us(join.span.window_us)}"
        yield from map(self._condition, join.conditions)

    def _absences(self, absences: Iterable[Anti], verb: str = "  drop rows with") -> Iterable[str]:
        for absence in absences:
            yield from self._scan(verb.strip(), absence.scan)
            keys = [*map(self._condition, absence.keys), *self.same]
            if absence.near is not None:
                keys.append(_buckets(absence.near))
            yield f"       on {', '.join(keys)}" if keys else "       compared with every row (add WITHIN or a key)"
            time = self._time(absence.scan)
            for sign, limits in ((">", absence.lower), ("<", absence.upper)):
                yield from (f"       {time} {sign}{'=' * (not each.strict)} {self._anchor(each)}" for each in limits)
            yield from (f"       {self._condition(condition)}" for condition in absence.conditions)

    def _anchor(self, limit: Limit) -> str:
        times = ", ".join(self.times[name] for name in limit.variables)
        if len(limit.variables) > 1:
            times = f"{'greatest' if limit.latest else 'least'}({times})"
        if limit.offset_us == 0:
            return times
        return f"{times} {'+' if limit.offset_us > 0 else '-'} {format_us(abs(limit.offset_us))}"

    def _distance(self, time: str, near: Nearness) -> str:
        return f"{time} - {self.times[near.anchor]} in [{format_us(near.low_us)}, {format_us(near.high_us)}]"


def _buckets(near: Nearness) -> str:
    return f"time buckets of {format_us(near.width_us)}"


def _way(way: Way) -> str:
    absent = (f"no {absence.scan.type} {absence.scan.variable}" for absence in way.absences)
    return " and ".join([*(f"{x} < {y}" for x, y in way.before), *absent])
