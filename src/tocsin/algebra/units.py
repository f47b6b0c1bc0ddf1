"""The unit of an integer time column (R42): a query whose durations count ticks of that unit.

Engines compare times as they are and call their unit microseconds; in a query for another unit every duration has been
converted, so that nothing else has to know of it. Two instants never become one, and `start` and `end` come out in the
column's unit. An interval counts ticks where it meets an integer; beside a timestamp it stays what it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program
from tocsin.gaps import Gaps
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.durations import describe

NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
NAMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}
LONGEST_TICKS = 2**62


def check_unit(unit: object) -> None:
    """Refuse a unit that there is not."""
    if unit is not None and (not isinstance(unit, str) or unit not in NANOSECONDS):
        raise errors.InvalidOptionError(
            f"`time_unit={errors.shown(unit)}` is not a unit of time.", hint='write "s", "ms", "us" or "ns".'
        )


@dataclass(frozen=True)
class Unit:
    """A unit, and the attributes that are times or intervals by their type."""

    name: str
    times: Collection[str] = ()

    @property
    def microseconds(self) -> Fraction:
        """How long a tick is."""
        return Fraction(NANOSECONDS[self.name], NANOSECONDS["us"])

    @property
    def symbol(self) -> str:
        """Its name after a number: `µs` for microseconds."""
        return self.name.replace("u", "µ")

    def ticks(self, us: int) -> int:
        """A duration in microseconds as ticks.

        >>> Unit("ms").ticks(600_000_000), Unit("ns").ticks(-5), Unit("us").ticks(7)
        (600000, -5000, 7)
        """
        ticks, rest = divmod(us * NANOSECONDS["us"], NANOSECONDS[self.name])
        if rest:
            raise errors.InvalidOptionError(
                f'With `time_unit="{self.name}"`, {describe(us)} is not a whole number of {NAMES[self.name]}.',
                hint=f"write a whole number of {NAMES[self.name]}, or convert the time column to a finer unit.",
            )
        if abs(ticks) >= LONGEST_TICKS:
            raise errors.InvalidOptionError(
                f'With `time_unit="{self.name}"`, {describe(us)} is longer than 64-bit times can tell.',
                hint="write a shorter duration, or convert the time column to a coarser unit.",
            )
        return ticks

    def query(self, query: alg.Query) -> alg.Query:
        """A query over times of this unit."""
        if self.name == "us":
            return query
        return replace(
            query,
            pattern=query.pattern.transform(self._node),
            every_us=None if query.every_us is None else self.ticks(query.every_us),
            returns=tuple(replace(one, expression=self.expression(one.expression)) for one in query.returns),
            group_by=tuple(replace(one, expression=self.expression(one.expression)) for one in query.group_by),
            having=None if query.having is None else self.expression(query.having),
        )

    def program(self, program: Program) -> Program:
        """A program over times of this unit."""
        if self.name == "us":
            return program
        return replace(
            program, rules=tuple(rule.changed(self.query(rule.query), self.expression) for rule in program.rules)
        )

    def _node(self, node: alg.Node) -> alg.Node:
        match node:
            case alg.Within():
                return replace(node, window_us=self.ticks(node.window_us))
            case alg.Filter():
                return replace(node, condition=self.expression(node.condition))
            case alg.Event() if node.condition is not None:
                return replace(node, condition=self.expression(node.condition))
            case alg.Around():
                lower, upper = (
                    tuple(replace(bound, offset_us=self.ticks(bound.offset_us)) for bound in bounds)
                    for bounds in (node.lower, node.upper)
                )
                condition = None if node.condition is None else self.expression(node.condition)
                return replace(node, condition=condition, lower=lower, upper=upper)
            case _:
                return node  # without durations of its own

    def expression(self, node: ex.Expression) -> ex.Expression:
        """An expression whose intervals count ticks where they meet integers."""
        node = node.map_children(self.expression)
        match node:
            case rx.CalendarField() if node.of_clock and self._is_number(node.operand):
                return replace(node, operand=self._instant(node.operand))
            case ex.Arithmetic(op="+" | "-") | ex.Comparison() | ex.Between() | ex.In() | ex.Case() | ex.Call():
                met = [child for child in node.children() if not _is_truth(child)]
                if any(map(self._is_number, met)):
                    return node.map_children(lambda child: self._counted(child) if child in met else child)
                return node
            case _:
                return node

    def _instant(self, node: ex.Expression) -> ex.Expression:
        """An integer time in microseconds, as fields of the calendar read it."""
        if self.microseconds < 1:
            raise errors.UnsupportedError(
                f'With `time_unit="{self.name}"`, fields of the calendar cannot be computed from integer times.',
                gap=Gaps.CALENDAR_OF_NANOSECONDS,
                where=node.where,
            )
        return ex.Arithmetic("*", node, ex.Literal(int(self.microseconds)))

    def _is_number(self, node: ex.Expression) -> bool:
        """Whether an expression is neither a time nor an interval, as far as can be told."""
        return not self._is_interval(node) and not self._is_time(node) and node != ex.Literal(None)

    def _is_time(self, node: ex.Expression) -> bool:
        match node:
            case ex.Timestamp() | ex.Date():
                return True
            case ex.Attribute():
                return node.path[0] in self.times
            case ex.Arithmetic(op="+" | "-"):
                return self._is_time(node.left) != self._is_time(node.right)
            case ex.Aggregate() | ex.Call() | ex.Case():
                return any(map(self._is_time, node.children()))
            case _:
                return False

    def _is_interval(self, node: ex.Expression) -> bool:
        match node:
            case ex.Interval():
                return True
            case ex.Negative():
                return self._is_interval(node.operand)
            case ex.Arithmetic(op="*"):
                return self._is_interval(node.left) != self._is_interval(node.right)
            case ex.Arithmetic(op="/"):
                return self._is_interval(node.left) and not self._is_interval(node.right)
            case ex.Arithmetic(op="+" | "-"):
                times = self._is_time(node.left) and self._is_time(node.right)
                return times or (self._is_interval(node.left) and self._is_interval(node.right))
            case _:
                return False

    def _counted(self, node: ex.Expression) -> ex.Expression:
        """An interval that meets a number, in ticks."""
        if not self._is_interval(node):
            return node
        if isinstance(node, ex.Interval):
            return replace(node, microseconds=self.ticks(node.microseconds))
        if any(isinstance(part, ex.Attribute) and part.path[0] in self.times for part in node.walk()):
            raise errors.TypeMismatchError(
                f'With `time_unit="{self.name}"`, the distance of two timestamps cannot meet an integer.',
                where=node.where,
                hint="compare it with an interval, such as `5 MINUTES`.",
            )
        return node.transform(lambda one: self._counted(one) if isinstance(one, ex.Interval) else one)


MICROSECONDS = Unit("us")


def _is_truth(node: ex.Expression) -> bool:
    return isinstance(node, ex.Comparison | ex.Between | ex.In | ex.And | ex.Or | ex.Not | ex.IsNull | ex.Like)


def has_durations(*queries: alg.Query) -> bool:
    """Whether anything in queries is measured in units of time."""
    return any(any(_durations(query)) for query in queries)


def _durations(query: alg.Query) -> Iterator[bool]:
    yield query.every_us is not None
    for node in query.pattern.walk():
        match node:
            case alg.Within():
                yield True
            case alg.Around():
                yield any(bound.offset_us for bound in (*node.lower, *node.upper))
            case _:
                pass
        condition = getattr(node, "condition", None)
        yield isinstance(condition, ex.Expression) and _has_interval(condition)
    outputs = [one.expression for one in (*query.returns, *query.group_by)]
    yield any(map(_has_interval, [*outputs, *([] if query.having is None else [query.having])]))


def _has_interval(expression: ex.Expression) -> bool:
    return any(isinstance(part, ex.Interval) for part in expression.walk())
