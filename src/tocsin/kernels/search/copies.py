"""Iterations of one event type: a walk with a stack of its own, one level per event chosen."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.kernels.expressions.slots import Test
from tocsin.kernels.search.chains import Chains, between_neighbours
from tocsin.kernels.search.conditions import Candidate, is_lasting, is_testable_next
from tocsin.kernels.search.lines import Lines
from tocsin.kernels.search.state import Held, Many, One, State, Then
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection


class Copies(Lines):
    """Repeat of an event."""

    def _copies_of_events(self, node: alg.Repeat, event: alg.Event, state: State, then: Then) -> None:
        """A walk over all increasing choices of events: one level of the stack per event chosen."""
        writer, name, variable = self.writer, self.setting.numbers[event.variable], event.variable
        is_outermost = self._is_outermost(state)
        number, cursors, bag = self._stack()
        is_many = self.kinds[variable].iterated
        what: Held = Many(bag, "0", number) if is_many else One(self._single(variable), is_sure=False)
        chains = self._chains(node, variable, state)
        with self._levels(number, cursors):
            inner = self._level_state(state, number, name, bag)
            with writer.block(f"if {cursors}[{number}] < 0:"):
                if chains is not None:
                    chains.make_when_hard()
                if not is_many:
                    writer.line(f"{self._single(variable)} = {bag}[0] if {number} > 0 else -1")
                self._arrive(node, inner, {variable: what}, number, cursors, f"z_{name}", then, own=variable)
                with writer.block(f"if {cursors}[{number}] < 0:"):
                    writer.line(f"{cursors}[{number}] = {self._next_start(name, inner, number, bag, is_outermost)}")
            index, time, chosen = (self.checks.fresh(stem) for stem in ("i", "t", "chosen"))
            writer.line(f"{index} = {cursors}[{number}]")
            writer.line(f"{chosen} = -1")
            with writer.block(f"while {index} < z_{name}:"):
                writer.line(f"{time} = ts_{name}[{index}]")
                self._stop_copies(node.least, inner, time, index, name, number, is_outermost)
                self._step()
                tests = [
                    *self.kind_test(variable, event.type, index),
                    *self._owned_at_first(state, time, number),
                    *([chains.goes_on(index, number, inner.latest)] if chains is not None else []),
                    *self._next_tests(inner, what, variable, index, number),
                ]
                with writer.condition(*tests):
                    writer.line(f"{chosen} = {index}")
                    writer.line("break")
                writer.line(f"{index} += 1")
            writer.line(f"{cursors}[{number}] = {index} + 1")
            if self.setting.selection is Selection.NEXT:
                # The first that fits is the only one, except for the first event of the match.
                is_free = f"{number} > 0" if not state.is_bound else "True"
                with writer.block(f"if {chosen} >= 0 and {is_free}:"):
                    writer.line(f"{cursors}[{number}] = z_{name}")
            with writer.block(f"if {chosen} >= 0:"):
                if is_outermost:
                    with writer.block(f"if {number} == 0:"):
                        self._follow(f"ts_{name}[{chosen}]", name, chosen)
                elif not state.is_bound:
                    self._count_anew(f"{inner.high} == LEAST")
                writer.line(f"{bag}[{number}] = {chosen}")
                self._note_floor(variable, inner.floor, number)
                self._descend(number, cursors)
            with writer.block("else:"):
                self._ascend(number)
        if not is_many:
            writer.line(f"{self._single(variable)} = -1")

    def _chains(self, node: alg.Repeat, variable: str, state: State) -> Chains | None:
        """A look ahead, where it can spare a walk its dead ends: not under policies, which keep a first that fits."""
        tests = tuple(test for test in state.tests if between_neighbours(test, variable))
        window = self.setting.window_us
        if not tests or window is None or node.least < 3 or self.setting.selection is not Selection.ANY:
            return None
        chains = Chains(self.writer, self.checks, variable, self.setting.numbers[variable], node.least, window, tests)
        self.works[chains.table] = (f"ts_{chains.name}", chains.length)
        self.stack(chains.pair)
        self.beginnings |= dict.fromkeys(chains.beginnings)
        return chains

    def _stop_copies(
        self, least: int, inner: State, time: str, index: str, name: str, number: str, is_outermost: bool
    ) -> None:
        writer = self.writer
        if least > 1:
            # As many candidates as are still missing must lie in the window: with fewer, no choice is long enough.
            far = self.checks.fresh("far")
            writer.line(f"{far} = {index} + max({least - 1} - {number}, 0)")
            in_time = f" or ts_{name}[{far}] > {inner.latest}" if self.setting.window_us is not None else ""
            with writer.block(f"if {far} >= z_{name}{in_time}:"):
                writer.line(f"{index} = z_{name}")
                writer.line("break")
        elif self.setting.window_us is not None:
            with writer.block(f"if {time} > {inner.latest}:"):
                writer.line(f"{index} = z_{name}")
                writer.line("break")
        if self._is_contiguous():
            is_bound = "True" if not is_outermost else f"{number} > 0"
            pos = self.parameter(f"pos_{name}")
            test = f"{is_bound} and ({pos}[{index}] != {inner.place} + 1 or {time} <= {inner.floor})"
            with writer.block(f"if {test}:"):
                writer.line(f"{index} = z_{name}")
                writer.line("break")

    def _owned_at_first(self, state: State, time: str, number: str) -> list[str]:
        return [f"({number} > 0 or own_low[g] <= {time} <= own_high[g])"] if self._owns_here(state) else []

    def _next_start(self, name: str, inner: State, number: str, bag: str, is_outermost: bool) -> str:
        first = f"max(a_{name}, begin)" if is_outermost else self._start(name, "", inner, is_outermost=False)
        after = f"{bag}[{number} - 1] + 1"
        if self._is_contiguous():
            return f"{after} if {number} > 0 else {first}"
        return f"first_after(ts_{name}, {inner.floor}, {after}, z_{name}) if {number} > 0 else {first}"

    def _tests_of_next(self, state: State, variable: str) -> list[Test]:
        known = {*state.held, variable}
        return [
            test for test in state.tests if ex.variables_in(test.conjunct) <= known and is_testable_next(test, variable)
        ]

    def _next_tests(self, state: State, what: Held, variable: str, index: str, number: str) -> list[str]:
        """The conditions under which the event at `index` may be the next one."""
        is_single = isinstance(what, One)
        held = {**state.held, variable: One(index, is_sure=True) if is_single else what}
        candidate = None if is_single else Candidate(variable, index, number)
        tests = self._tests_of_next(state, variable)
        return [condition for test in tests if (condition := self.checks.check(test, held, candidate))]

    def _arrive(
        self,
        node: alg.Repeat,
        inner: State,
        held: dict[str, Held],
        number: str,
        cursors: str,
        end: str,
        then: Then,
        *,
        own: str | None,
    ) -> None:
        """At a level for the first time: what lasts is tested and may end it; with enough copies, go on inside."""
        writer = self.writer
        if node.most is not None:
            with writer.block(f"if {number} >= {node.most}:"):
                writer.line(f"{cursors}[{number}] = {end}")
        known = inner.knowing(held)
        done = self._tests_of_next(inner, own) if own is not None else []
        ready = [t for t in inner.tests if ex.variables_in(t.conjunct) <= known.held.keys() and t not in done]
        lasting = tuple(test for test in ready if is_lasting(test))
        alive = ""
        if lasting:
            alive = self.checks.fresh("alive")
            writer.line(f"{alive} = False")
            self._tested(lasting, known.held, lambda: writer.line(f"{alive} = True"))
            with writer.block(f"if not {alive}:"):
                writer.line(f"{cursors}[{number}] = {end}")
        enough = [f"{number} >= {node.least}"] if node.least > 0 else []
        is_bound = inner.is_bound or node.least > 0
        others = tuple(test for test in ready if test not in lasting)
        rest = replace(
            known, is_bound=is_bound, tests=tuple(t for t in inner.tests if t not in ready and t not in done)
        )
        with writer.condition(*enough, *([alive] if alive else [])):
            self._tested(others, known.held, lambda: self._guarded(rest, then))

    # --- the stack --------------------------------------------------------------------------------

    def _stack(self) -> tuple[str, str, str]:
        number, cursors, bag = self.checks.fresh("n"), self.checks.fresh("cursors"), self.checks.fresh("bag")
        return number, self.stack(cursors), self.stack(bag)

    def _levels(self, number: str, cursors: str) -> AbstractContextManager[None]:
        self.writer.line(f"{number} = 0")
        self.writer.line(f"{cursors}[0] = -1")
        return self.writer.block(f"while {number} >= 0:")

    def _descend(self, number: str, cursors: str) -> None:
        """One level deeper."""
        self.writer.line(f"{number} += 1")
        self._stop_unless_room(number, cursors, "DEEP")
        self.writer.line(f"{cursors}[{number}] = -1")

    def _ascend(self, number: str) -> None:
        """Back to the level before."""
        self.writer.line(f"{number} -= 1")

    def _level_state(self, state: State, number: str, name: str, bag: str, *, is_table: bool = False) -> State:
        """The state with `number` copies chosen, recomputed whenever the walk comes to a level."""
        writer, fresh, window = self.writer, self.checks.fresh, self.setting.window_us
        floor, low, high = fresh("floor"), fresh("low"), fresh("high")
        latest, earliest, place = fresh("latest"), fresh("earliest"), fresh("place")
        ends = self.parameter(f"end_{name}") if is_table else f"ts_{name}"
        for line in (
            f"{floor} = {state.floor}",
            f"{low} = {state.low}",
            f"{high} = {state.high}",
            f"{latest} = {state.latest}",
            f"{earliest} = {state.earliest}",
            f"{place} = {state.place}",
        ):
            writer.line(line)
        with writer.block(f"if {number} > 0:"):
            writer.line(f"{floor} = {ends}[{bag}[{number} - 1]]")
            writer.line(f"{low} = min({low}, ts_{name}[{bag}[0]])")
            writer.line(f"{high} = max({high}, {floor})")
            if window is not None:
                writer.line(f"{latest} = plus({low}, {window - 1})")
                if self.is_around:
                    writer.line(f"{earliest} = plus({high}, {1 - window})")
            if self._is_contiguous():
                writer.line(f"{place} = {self.parameter(f'pos_{name}')}[{bag}[{number} - 1]]")
        return replace(state, floor=floor, low=low, high=high, latest=latest, earliest=earliest, place=place)

    def _single(self, variable: str) -> str:
        name = f"e_{self.setting.numbers[variable]}"
        self.declarations[f"{name} = -1"] = None
        return name

    # --- floors, for the policy `next` ------------------------------------------------------------

    def _floor_arrays(self, variable: str) -> list[str]:
        if not self.setting.with_floors:
            return []
        name = f"f_{self.setting.numbers[variable]}"
        if self.kinds[variable].iterated:
            return [self.stack(name)]
        return []

    def _note_floor(self, variable: str, floor: str, number: str) -> None:
        if not self.setting.with_floors:
            return
        name = f"f_{self.setting.numbers[variable]}"
        if self._floor_arrays(variable):
            self.writer.line(f"{name}[{number}] = {floor}")
        else:
            self.declarations[f"{name} = LEAST"] = None
            self.writer.line(f"{name} = {floor}")
