"""The steps of a nest: a loop per event, sequences and products of parts."""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.kernels.search.frame import Frame
from tocsin.kernels.search.state import One, State, Then
from tocsin.language.ast import Selection


class Loops(Frame):
    """Events, SEQ and AND."""

    def emit(self, node: alg.Node, state: State, then: Then) -> None:
        """Code that visits every match of a node beyond what is bound, with `then` inside."""
        raise NotImplementedError

    def _sequence(self, parts: tuple[alg.Node, ...], state: State, then: Then) -> None:
        if not parts:
            then(state)
            return
        self.emit(parts[0], state, lambda reached: self._sequence(parts[1:], reached, then))

    def _all(self, parts: tuple[alg.Node, ...], state: State, then: Then) -> None:
        """Every part starts from the same floor; what comes after starts from the largest they reach."""

        def visit(rest: tuple[alg.Node, ...], now: State, reached: str) -> None:
            if not rest:
                then(replace(now, floor=reached, is_linear=state.is_linear))
                return

            def after(inner: State) -> None:
                floor = self.checks.fresh("floor")
                self.writer.line(f"{floor} = max({reached}, {inner.floor})")
                visit(rest[1:], inner, floor)

            self.emit(rest[0], replace(now, floor=state.floor, is_linear=False), after)

        visit(parts, state, state.floor)

    def _event(self, node: alg.Event, state: State, then: Then) -> None:
        writer, name = self.writer, self.setting.numbers[node.variable]
        index, time = self.checks.fresh("i"), self.checks.fresh("t")
        is_outermost = self._is_outermost(state)
        writer.line(f"{index} = {self._start(name, node.variable, state, is_outermost)}")
        with writer.block(f"while {index} < z_{name}:"):
            writer.line(f"{time} = ts_{name}[{index}]")
            self._stop_beyond(state, time, index, name)
            self._taken(node, state, index, time, then, leave=("break",))
            writer.line(f"{index} += 1")

    def _taken(
        self, node: alg.Event, state: State, index: str, time: str, then: Then, *, leave: tuple[str, ...]
    ) -> None:
        """Bind the candidate at `index` if it fits, and go on inside."""
        writer, name = self.writer, self.setting.numbers[node.variable]
        if self._owns_here(state):
            with writer.block(f"if {time} > own_high[g]:"):
                writer.all(leave)
        with writer.condition(*self.kind_test(node.variable, node.type, index), *self._owned(state, time)):
            if self._is_outermost(state):
                self._follow(time, name, index)
            elif not state.is_bound:
                self._count_anew(f"{state.high} == LEAST")
            bound = self._bound(state, time, time, self._place(name, index))
            bound = bound.knowing({node.variable: One(index, is_sure=True)})
            self._floor_of(node.variable, state.floor)
            self._proceed(bound, then, variable=node.variable, is_first=not state.is_bound)

    def _start(self, name: str, variable: str, state: State, is_outermost: bool) -> str:
        if is_outermost:
            return f"max(a_{name}, begin)"
        if self.setting.selection is not Selection.ANY and self._is_contiguous():
            return f"first_after({self.parameter(f'pos_{name}')}, {state.place}, p_{name}, z_{name})"
        floor = state.floor if state.is_linear else f"max({state.floor}, plus({state.earliest}, -1))"
        return f"first_after(ts_{name}, {floor}, p_{name}, z_{name})"

    def _stop_beyond(self, state: State, time: str, index: str, name: str) -> None:
        """Leave the loop when the window is over, or, when events must be neighbours, at the first that is not."""
        if self.setting.window_us is not None and state.latest != "MOST":
            with self.writer.block(f"if {time} > {state.latest}:"):
                self.writer.line("break")
        if self._is_contiguous() and state.is_bound:
            pos = self.parameter(f"pos_{name}")
            with self.writer.block(f"if {pos}[{index}] != {state.place} + 1 or {time} <= {state.floor}:"):
                self.writer.line("break")

    def _step(self) -> None:
        writer = self.writer
        writer.line("steps += 1")
        with writer.block("if steps > most_steps:"):
            writer.line("return TOO_LONG, g, at, mark")

    def _floor_of(self, variable: str, floor: str) -> None:
        if self.setting.with_floors:
            self.writer.line(f"f_{self.setting.numbers[variable]} = {floor}")
