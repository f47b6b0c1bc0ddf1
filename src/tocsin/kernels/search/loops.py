"""Loops over events: one loop per event, or one for a long sequence of them.

A line searches for more events than loops can nest, in one loop with a level for each event. Lists are read by their
level, so that the code of a level is its tests and nothing else. When the first event is bound, the latest time of each
other is found from the last one backwards: a partial match goes on only while the events that are missing can all come
in time, so that only conditions between events make dead ends.
"""

from __future__ import annotations

from tocsin.algebra import nodes as alg
from tocsin.kernels.search.context import Context
from tocsin.kernels.search.guards import proceed
from tocsin.kernels.search.state import One, State, Then
from tocsin.language.ast import Selection


def event(cx: Context, node: alg.Event, state: State, then: Then) -> None:
    """A loop over the candidates of a variable."""
    writer, name = cx.writer, cx.setting.numbers[node.variable]
    index, time = cx.checks.fresh("i"), cx.checks.fresh("t")
    is_outermost = cx.is_outermost(state)
    writer.line(f"{index} = {first_candidate(cx, name, state, is_outermost=is_outermost)}")
    with writer.block(f"while {index} < z_{name}:"):
        writer.line(f"{time} = ts_{name}[{index}]")
        stop_beyond(cx, state, time, index, name)
        _take(cx, node, state, index, time, then, leave=("break",))
        writer.line(f"{index} += 1")


def _take(
    cx: Context, node: alg.Event, state: State, index: str, time: str, then: Then, *, leave: tuple[str, ...]
) -> None:
    """Bind the candidate at `index` if it fits, and go on inside."""
    writer, name = cx.writer, cx.setting.numbers[node.variable]
    if cx.owns_here(state):
        writer.when(f"{time} > own_high[g]", *leave)
    with writer.condition(*cx.kind_test(node.variable, node.type, index), *cx.owned(state, time)):
        if cx.is_outermost(state):
            cx.follow(time, name, index)
        elif not state.is_bound:
            cx.count_anew(f"{state.high} == LEAST")
        bound = cx.bound(state, time, time, cx.place(name, index))
        bound = bound.knowing({node.variable: One(index, is_sure=True)})
        _floor_of(cx, node.variable, state.floor)
        proceed(cx, bound, then, variable=node.variable, is_first=not state.is_bound)


def first_candidate(cx: Context, name: str, state: State, *, is_outermost: bool) -> str:
    """The code of where a list is read from: after what is bound."""
    if is_outermost:
        return f"max(a_{name}, begin)"
    if cx.setting.selection is not Selection.ANY and cx.is_contiguous():
        return f"first_after({cx.parameter(f'pos_{name}')}, {state.place}, p_{name}, z_{name})"
    floor = state.floor if state.is_linear else f"max({state.floor}, plus({state.earliest}, -1))"
    return f"first_after(ts_{name}, {floor}, p_{name}, z_{name})"


def stop_beyond(cx: Context, state: State, time: str, index: str, name: str) -> None:
    """Leave the loop when the window is over, or, when events must be neighbours, at the first that is not."""
    if cx.setting.window_us is not None and state.latest != "MOST":
        cx.writer.when(f"{time} > {state.latest}", "break")
    if cx.is_contiguous() and state.is_bound:
        pos = cx.parameter(f"pos_{name}")
        cx.writer.when(f"{pos}[{index}] != {state.place} + 1 or {time} <= {state.floor}", "break")


def count_step(cx: Context) -> None:
    """Stop a search that takes too many steps."""
    writer = cx.writer
    writer.line("steps += 1")
    writer.when("steps > most_steps", "return TOO_LONG, g, at, mark")


def _floor_of(cx: Context, variable: str, floor: str) -> None:
    if cx.setting.with_floors:
        cx.writer.line(f"f_{cx.setting.numbers[variable]} = {floor}")


class LineLoop:
    """One loop over all events of a sequence."""

    def __init__(self, cx: Context, parts: tuple[alg.Event, ...]) -> None:
        self.cx, self.parts = cx, parts
        self.variables = [cx.setting.numbers[part.variable] for part in parts]
        cx.lined |= set(self.variables[1:])
        fresh = cx.checks.fresh
        self.lists, self.begins, self.ends, self.level = (fresh(stem) for stem in ("lists", "begins", "ends", "level"))
        self.time = fresh("t")  # of the candidate
        self.is_new = fresh("new")  # whether the level begins with its first candidate
        self.fits = fresh("fits")  # whether the candidate is bound, and the next level begins
        # Of each level its candidate, where the candidates after the first event begin, and its latest time.
        self.index, self.near, self.latest = (cx.stack(fresh(stem)) for stem in ("index", "near", "latest"))

    def write(self, state: State, then: Then) -> None:
        """Write the loop."""
        writer, level = self.cx.writer, self.level
        self._begin(state)
        with writer.block(f"while {level} >= 0:"):
            count_step(self.cx)
            self._candidate()
            for number in range(len(self.parts)):
                with writer.block(f"if {level} == {number}:"):
                    state = self._bound(number, state, then)
            with writer.block(f"if {self.fits}:"):
                writer.line(f"{level} += 1")
                writer.line(f"{self.index}[{level}] = {self._first_after(level, self.time)}")
                writer.line(f"{self.is_new} = True")

    def _first_after(self, level: str, floor: str) -> str:
        """The code of the first candidate of a level after a time."""
        return f"first_after({self.lists}[{level}], {floor}, {self.near}[{level}], {self.ends}[{level}])"

    def _begin(self, state: State) -> None:
        writer, size = self.cx.writer, len(self.parts)
        for name, stem in ((self.lists, "ts"), (self.begins, "a"), (self.ends, "z")):
            writer.line(f"{name} = ({', '.join(f'{stem}_{variable}' for variable in self.variables)})")
        writer.when(f"len({self.index}) < {size}", "return DEEP, g, at, mark")
        with writer.block(f"for {self.level} in range({size}):"):
            writer.line(f"{self.near}[{self.level}] = {self.begins}[{self.level}]")
        start = first_candidate(self.cx, self.variables[0], state, is_outermost=self.cx.is_outermost(state))
        writer.line(f"{self.index}[0] = {start}", f"{self.latest}[0] = {state.latest}", f"{self.level} = 0")
        writer.line(f"{self.is_new} = True")

    def _candidate(self) -> None:
        """The next candidate of the level, or a level back where there is none."""
        writer, level, index = self.cx.writer, self.level, f"{self.index}[{self.level}]"
        writer.when(f"not {self.is_new}", f"{index} += 1")
        writer.line(f"{self.is_new} = False", f"{self.fits} = False")
        time = f"{self.lists}[{level}][{index}]"
        with writer.block(f"if {index} >= {self.ends}[{level}] or {time} > {self.latest}[{level}]:"):
            writer.line(f"{level} -= 1", "continue")
        writer.line(f"{self.time} = {time}")

    def _bound(self, number: int, state: State, then: Then) -> State:
        """Bind the candidate of a level if it fits; the state that the next level begins with."""
        reached = state

        def go_on(inner: State) -> None:
            nonlocal reached
            reached = inner
            if number + 1 == len(self.parts):
                then(inner)
                return
            self.cx.writer.line(f"{self.fits} = True")
            if number == 0:
                self._look_ahead(inner.latest)

        time = self.cx.checks.fresh("t")
        self.cx.writer.line(f"{time} = {self.time}")
        leave = (f"{self.level} = -1", "continue")
        _take(self.cx, self.parts[number], state, f"{self.index}[{number}]", time, go_on, leave=leave)
        return reached

    def _look_ahead(self, latest: str) -> None:
        """The latest time of each event that leaves time for those behind it; the first does not fit without one."""
        writer, k, bound = self.cx.writer, self.cx.checks.fresh("k"), self.cx.checks.fresh("bound")
        last = f"{self.latest}[{k}]"
        writer.line(f"{bound} = {latest}")
        with writer.block(f"for {k} in range({len(self.parts) - 1}, 0, -1):"):
            writer.line(f"{self.near}[{k}] = {self._first_after(k, self.time)}")
            writer.line(f"{last} = {self._first_after(k, bound)} - 1")
            writer.when(f"{last} < {self.near}[{k}]", f"{self.fits} = False", "break")
            writer.line(f"{last} = {self.lists}[{k}][{last}]")
            writer.line(f"{bound} = {last} - 1")
