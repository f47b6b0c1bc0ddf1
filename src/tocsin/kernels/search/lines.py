"""A long sequence of events in one loop: more of them than loops can nest, and no partial match that cannot end.

The loop has a level for each event. Lists are read by their level, so that the code of a level is its tests and nothing
else. When the first event is bound, the latest time of each other is found from the last one backwards: a partial match
goes on only while the events that are missing can all come in time, so that only conditions between events make dead
ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.algebra import nodes as alg
from tocsin.kernels.search.loops import Loops
from tocsin.kernels.search.state import State, Then


@dataclass(frozen=True)
class _Names:
    """The names of one line: its lists with their bounds, and what is known at each level."""

    size: int
    lists: str
    begins: str
    ends: str
    level: str
    time: str  # of the candidate
    is_new: str  # whether the level begins with its first candidate
    fits: str  # whether the candidate is bound, and the next level begins
    index: str
    near: str  # where the candidates after the first event begin
    latest: str

    def first_after(self, level: str, floor: str) -> str:
        """The code of the first candidate of a level after a time."""
        return f"first_after({self.lists}[{level}], {floor}, {self.near}[{level}], {self.ends}[{level}])"


class Lines(Loops):
    """Line."""

    def _line(self, parts: tuple[alg.Event, ...], state: State, then: Then) -> None:
        writer = self.writer
        names = self._begun(parts, state)
        with writer.block(f"while {names.level} >= 0:"):
            self._step()
            self._candidate(names)
            for number, part in enumerate(parts):
                with writer.block(f"if {names.level} == {number}:"):
                    state = self._level(part, number, names, state, then)
            with writer.block(f"if {names.fits}:"):
                writer.line(f"{names.level} += 1")
                writer.line(f"{names.index}[{names.level}] = {names.first_after(names.level, names.time)}")
                writer.line(f"{names.is_new} = True")

    def _begun(self, parts: tuple[alg.Event, ...], state: State) -> _Names:
        """What stands before the loop."""
        writer, fresh = self.writer, self.checks.fresh
        variables = [self.setting.numbers[part.variable] for part in parts]
        self.lined |= set(variables[1:])
        names = _Names(
            len(parts),
            *(fresh(stem) for stem in ("lists", "begins", "ends", "level", "t", "new", "fits")),
            *(self.stack(fresh(stem)) for stem in ("index", "near", "latest")),
        )
        for name, stem in ((names.lists, "ts"), (names.begins, "a"), (names.ends, "z")):
            writer.line(f"{name} = ({', '.join(f'{stem}_{variable}' for variable in variables)})")
        with writer.block(f"if len({names.index}) < {names.size}:"):
            writer.line("return DEEP, g, at, mark")
        with writer.block(f"for {names.level} in range({names.size}):"):
            writer.line(f"{names.near}[{names.level}] = {names.begins}[{names.level}]")
        start = self._start(variables[0], parts[0].variable, state, self._is_outermost(state))
        writer.line(f"{names.index}[0] = {start}")
        writer.line(f"{names.latest}[0] = {state.latest}")
        writer.line(f"{names.level} = 0")
        writer.line(f"{names.is_new} = True")
        return names

    def _candidate(self, names: _Names) -> None:
        """The next candidate of the level, or a level back where there is none."""
        writer, level = self.writer, names.level
        with writer.block(f"if not {names.is_new}:"):
            writer.line(f"{names.index}[{level}] += 1")
        writer.line(f"{names.is_new} = False")
        writer.line(f"{names.fits} = False")
        time = f"{names.lists}[{level}][{names.index}[{level}]]"
        with writer.block(f"if {names.index}[{level}] >= {names.ends}[{level}] or {time} > {names.latest}[{level}]:"):
            writer.line(f"{level} -= 1")
            writer.line("continue")
        writer.line(f"{names.time} = {time}")

    def _level(self, part: alg.Event, number: int, names: _Names, state: State, then: Then) -> State:
        """Bind the candidate of a level if it fits; the state that the next level begins with."""
        reached = state

        def go_on(inner: State) -> None:
            nonlocal reached
            reached = inner
            if number + 1 == names.size:
                then(inner)
                return
            self.writer.line(f"{names.fits} = True")
            if number == 0:
                self._look_ahead(names, inner.latest)

        time = self.checks.fresh("t")
        self.writer.line(f"{time} = {names.time}")
        leave = (f"{names.level} = -1", "continue")
        self._taken(part, state, f"{names.index}[{number}]", time, go_on, leave=leave)
        return reached

    def _look_ahead(self, names: _Names, latest: str) -> None:
        """The latest time of each event that leaves time for those behind it; the first does not fit without one."""
        writer, k, bound = self.writer, self.checks.fresh("k"), self.checks.fresh("bound")
        writer.line(f"{bound} = {latest}")
        with writer.block(f"for {k} in range({names.size - 1}, 0, -1):"):
            writer.line(f"{names.near}[{k}] = {names.first_after(k, names.time)}")
            writer.line(f"{names.latest}[{k}] = {names.first_after(k, bound)} - 1")
            with writer.block(f"if {names.latest}[{k}] < {names.near}[{k}]:"):
                writer.line(f"{names.fits} = False")
                writer.line("break")
            writer.line(f"{names.latest}[{k}] = {names.lists}[{k}][{names.latest}[{k}]]")
            writer.line(f"{bound} = {names.latest}[{k}] - 1")
