"""Code for gatherings: when everything else is bound, the events of their windows are collected in bags (D38)."""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.kernels.search.picks import Picks
from tocsin.kernels.search.state import Guard, Held, Many, State, Then


class Gatherings(Picks):
    """Gather, at the innermost place of the nest."""

    def _gathered(self, state: State, then: Then) -> None:
        """Collect all bags, then make the tests that wait for them, then go on inside."""
        for node in state.gatherings:
            state = self._collected(node, state)
        rest = replace(state, tests=(), gatherings=())
        self._tested(state.tests, state.held, lambda: then(rest))

    def _collected(self, node: alg.Gather, state: State) -> State:
        """A scan of the window; what satisfies all conditions is put into a stack."""
        writer, fresh = self.writer, self.checks.fresh
        name = self.setting.numbers[node.variable]
        low, high = self.absences.window(Guard(node), state)
        bag, count = self.stack(f"bag_{name}"), fresh("count")
        writer.line(f"{count} = 0")
        at = self.absences.first_in(name, low)
        with writer.block(f"while {at} < z_{name} and ts_{name}[{at}] <= {high}:"):
            with writer.condition(*self.absences.chosen(node, at, state)):
                self._stop_unless_room(count, bag, "DEEP")
                writer.line(f"{bag}[{count}] = {at}")
                writer.line(f"{count} += 1")
            writer.line(f"{at} += 1")
        start, end = fresh("start"), fresh("end")
        writer.line(f"{start} = {state.low}")
        writer.line(f"{end} = {state.high}")
        with writer.block(f"if {count} > 0:"):
            writer.line(f"{start} = min({start}, ts_{name}[{bag}[0]])")
            writer.line(f"{end} = max({end}, ts_{name}[{bag}[{count} - 1]])")
        held: dict[str, Held] = {node.variable: Many(bag, "0", count)}
        return replace(state.knowing(held), low=start, high=end)
