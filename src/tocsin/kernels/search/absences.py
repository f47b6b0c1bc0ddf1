"""Code for absences: their windows from the events of the match, and the search for an event that blocks it.

Bounds are kept as the first and the last time inside, so that strict and closed ones look alike. A bound whose anchor
binds no event bounds nothing (R1, R13).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tocsin.algebra import nodes as alg
from tocsin.kernels.expressions.slots import Test
from tocsin.kernels.search.conditions import Checks
from tocsin.kernels.search.state import Guard, Held, Many, One, State
from tocsin.kernels.search.writer import Writer
from tocsin.language import expressions as ex


@dataclass(frozen=True)
class Closed(alg.Absent):
    """An absence of the beginning of a pattern: it counts where an event ends its gap, and not before (D65).

    `on_both_sides` when an event must begin the gap too. Bounds by the window stand on no side where an event must be.
    """

    on_both_sides: bool = False


class Absences:
    """Writes the code of guards."""

    def __init__(
        self,
        writer: Writer,
        checks: Checks,
        numbers: Mapping[str, str],
        tests: Mapping[str, tuple[Test, ...]],
        kind_test: Callable[[str, str | None, str], list[str]],
    ) -> None:
        self.writer = writer
        self.checks = checks
        self.numbers = numbers
        self.tests = tests  # by variable, the conjuncts of its condition that speak of other events too
        self.kind_test = kind_test

    def settle(self, guard: Guard, state: State) -> str:
        """The condition that nothing blocks the match, prepared by the lines before it."""
        if guard.rows is None:
            low, high = self.window(guard, state)
            return self._is_free(guard, state, low, high)
        # Every copy of an iterated sub-match has an absence of its own.
        array, count = guard.rows
        writer, free = self.writer, self.checks.fresh("free")
        copy = self.checks.fresh("copy")
        writer.line(f"{free} = True")
        with writer.block(f"for {copy} in range({count}):"):
            row = f"{array}[{copy}]"
            one = Guard(guard.absent, f"{guard.low}[{row}]", f"{guard.high}[{row}]", f"{guard.active}[{row}]")
            low, high = self.window(one, state)
            with writer.block(f"if not ({self._is_free(one, state, low, high)}):"):
                writer.line(f"{free} = False")
                writer.line("break")
        return free

    def window(self, guard: Guard, state: State) -> tuple[str, str]:
        """The names of the first and the last time inside all bounds."""
        low, high = self.checks.fresh("above"), self.checks.fresh("below")
        self.writer.line(f"{low} = {guard.low or 'LEAST'}")
        self.writer.line(f"{high} = {guard.high or 'MOST'}")
        for bound in guard.absent.lower:
            self._bound(bound, low, state, guard, is_lower=True)
        for bound in guard.absent.upper:
            self._bound(bound, high, state, guard, is_lower=False)
        if isinstance(guard.absent, Closed) and not guard.is_brought:
            is_open = f"{high} == MOST" + (f" or {low} == LEAST" if guard.absent.on_both_sides else "")
            with self.writer.block(f"if {is_open}:"):
                self.writer.line(f"{high} = LEAST")
        return low, high

    def _bound(self, bound: alg.Bound, name: str, state: State, guard: Guard, *, is_lower: bool) -> None:
        writer = self.writer
        offset = bound.offset_us + (0 if not bound.strict else 1 if is_lower else -1)
        pick = "max" if is_lower else "min"
        if isinstance(bound.anchor, alg.Whole):
            anchor = state.low if bound.anchor is alg.Whole.START else state.high
            writer.line(f"{name} = {pick}({name}, plus({anchor}, {offset}))")
            return
        if guard.is_brought:
            return  # part of what the row brings
        is_last = isinstance(bound.anchor, alg.LastOf)
        held = [(variable, state.held[variable]) for variable in bound.anchor.variables if variable in state.held]
        only = held[0][1] if len(held) == 1 else None
        if isinstance(only, One) and only.is_sure:
            writer.line(f"{name} = {pick}({name}, plus(ts_{self.numbers[held[0][0]]}[{only.index}], {offset}))")
            return
        anchor, is_there = self.checks.fresh("anchor"), self.checks.fresh("there")
        writer.line(f"{anchor} = {'LEAST' if is_last else 'MOST'}")
        writer.line(f"{is_there} = False")
        for variable, what in held:
            index, exists = _edge(what, is_last)
            with writer.block(f"if {exists}:"):
                time = f"ts_{self.numbers[variable]}[{index}]"
                writer.line(f"{anchor} = {'max' if is_last else 'min'}({anchor}, {time})")
                writer.line(f"{is_there} = True")
        with writer.block(f"if {is_there}:"):
            writer.line(f"{name} = {pick}({name}, plus({anchor}, {offset}))")

    def _is_free(self, guard: Guard, state: State, low: str, high: str) -> str:
        absent = guard.absent
        number = self.numbers[absent.variable]
        writer = self.writer
        free = self.checks.fresh("free")
        writer.line(f"{free} = True")
        with writer.condition(*([guard.active] if guard.active else [])):
            at = self.first_in(number, low)
            with writer.block(f"while {at} < z_{number} and ts_{number}[{at}] <= {high}:"):
                with writer.condition(*self.chosen(absent, at, state)):
                    writer.line(f"{free} = False")
                    writer.line("break")
                writer.line(f"{at} += 1")
        return free

    def first_in(self, number: str, low: str, key: tuple[str, str] | None = None) -> str:
        """The name of the index of the first candidate that is not before a window.

        `key` is where the candidates of a key begin and end, in a list that is sorted by one.
        """
        writer, at = self.writer, self.checks.fresh("at")
        near, (begin, end) = (key[0], key) if key is not None else (f"p_{number}", (f"a_{number}", f"z_{number}"))
        # The one after `low − 1`, which may not exist.
        writer.line(f"{at} = first_after(ts_{number}, plus({low}, -1), {near}, {end})")
        with writer.block(f"if {low} == LEAST:"):
            writer.line(f"{at} = {begin}")
        return at

    def chosen(self, around: alg.Around, at: str, state: State) -> list[str]:
        """The conditions that the candidate at an index is of the type and makes every conjunct TRUE."""
        held: dict[str, Held] = {**state.held, around.variable: One(at, is_sure=True)}
        tests = [self.checks.check(test, held) for test in self.tests[around.variable]]
        return [*self.kind_test(around.variable, around.type, at), *filter(None, tests)]

    def is_ready(self, guard: Guard, state: State) -> bool:
        """Whether an absence can be decided before the match is whole: nothing later can change its window."""
        absent = guard.absent
        anchors = [bound.anchor for bound in absent.lower + absent.upper]
        if any(isinstance(anchor, alg.Whole) for anchor in anchors):
            return False
        named = {name for anchor in anchors if not isinstance(anchor, alg.Whole) for name in anchor.variables}
        if absent.condition is not None:
            named |= ex.variables_in(absent.condition) - {absent.variable}
        return named <= state.held.keys() if not guard.is_brought else spoken_of(absent) <= state.held.keys()


def spoken_of(absent: alg.Around) -> frozenset[str]:
    """The variables of the match that an absence's condition speaks of."""
    if absent.condition is None:
        return frozenset()
    return ex.variables_in(absent.condition) - {absent.variable}


def _edge(what: Held, is_last: bool) -> tuple[str, str]:
    if isinstance(what, Many):
        return what.at(f"{what.count} - 1" if is_last else "0"), f"{what.count} > 0"
    return what.index, f"{what.index} >= 0"
