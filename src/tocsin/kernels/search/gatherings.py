"""Code for gatherings: when everything else is bound, the events of their windows are collected in bags (D38)."""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.kernels.gathered import Look
from tocsin.kernels.search.picks import Picks
from tocsin.kernels.search.state import Guard, Many, One, State, Stretch, Then


class Gatherings(Picks):
    """Gather, at the innermost place of the nest."""

    def _gathered(self, state: State, then: Then) -> None:
        """Collect all bags, then make the tests that wait for them, then go on inside."""
        for node in state.gatherings:
            state = self._collected(node, state)
        rest = replace(state, tests=(), gatherings=())
        self._tested(state.tests, state.held, lambda: then(rest))

    def _collected(self, node: alg.Gather, state: State) -> State:
        """The state that knows the bag of a gathering, and the interval with it."""
        writer, fresh = self.writer, self.checks.fresh
        name, look = self.setting.numbers[node.variable], self.setting.looks[node.variable]
        low, high = self.absences.window(Guard(node), state)
        key = self._key(name, look, state)
        at = self.absences.first_in(name, low, key)
        end = f"z_{name}" if key is None else key[1]
        bag = self._stretch(name, at, end, high) if look.is_stretch else self._scanned(node, at, end, high, state)
        start, last = fresh("start"), fresh("end")
        writer.line(f"{start} = {state.low}")
        writer.line(f"{last} = {state.high}")
        with writer.block(f"if {bag.count} > 0:"):
            writer.line(f"{start} = min({start}, ts_{name}[{bag.at('0')}])")
            writer.line(f"{last} = max({last}, ts_{name}[{bag.at(f'{bag.count} - 1')}])")
        return replace(state.knowing({node.variable: bag}), low=start, high=last)

    def _key(self, name: str, look: Look, state: State) -> tuple[str, str] | None:
        """The names of where the events begin and end that are equal to the one of the match."""
        if look.key is None:
            return None
        other = state.held[look.key.other]
        assert isinstance(other, One)  # a key is an event of every match
        begin, end = self.checks.fresh("begin"), self.checks.fresh("end")
        for local, array in ((begin, "begin"), (end, "end")):
            self.writer.line(f"{local} = {self.parameter(f'{array}_{name}')}[{other.index}]")
        return begin, end

    def _stretch(self, name: str, at: str, end: str, high: str) -> Many:
        """All events of the window: from one place to another."""
        last, count = self.checks.fresh("last"), self.checks.fresh("count")
        self.writer.line(f"{last} = first_after(ts_{name}, {high}, {at}, {end})")
        self.writer.line(f"{count} = {last} - {at}")
        return Stretch("", at, count)

    def _scanned(self, node: alg.Gather, at: str, end: str, high: str, state: State) -> Many:
        """A scan of the window; what satisfies all conditions is put into a stack."""
        writer, name = self.writer, self.setting.numbers[node.variable]
        bag, count = self.stack(f"bag_{name}"), self.checks.fresh("count")
        writer.line(f"{count} = 0")
        with writer.block(f"while {at} < {end} and ts_{name}[{at}] <= {high}:"):
            with writer.condition(*self.absences.chosen(node, at, state)):
                self._stop_unless_room(count, bag, "DEEP")
                writer.line(f"{bag}[{count}] = {at}")
                writer.line(f"{count} += 1")
            writer.line(f"{at} += 1")
        return Many(bag, "0", count)
