"""Loops over events: one loop per event, or one for a long sequence of them.

A line searches for more events than loops can nest, in one loop with a level for each event. Lists are read by their
level, so that the code of a level is its tests and nothing else. When the first event is bound, the latest time of each
other is found from the last one backwards: a partial match goes on only while the events that are missing can all come
in time, so that only conditions between events make dead ends.
"""

from __future__ import annotations

from dataclasses import dataclass

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


def line(cx: Context, parts: tuple[alg.Event, ...], state: State, then: Then) -> None:
    """One loop over all events of a sequence."""
    writer = cx.writer
    names = _begun(cx, parts, state)
    with writer.block(f"while {names.level} >= 0:"):
        count_step(cx)
        _candidate(cx, names)
        for number, part in enumerate(parts):
            with writer.block(f"if {names.level} == {number}:"):
                state = _level(cx, part, number, names, state, then)
        with writer.block(f"if {names.fits}:"):
            writer.line(f"{names.level} += 1")
            writer.line(f"{names.index}[{names.level}] = {names.first_after(names.level, names.time)}")
            writer.line(f"{names.is_new} = True")


def _begun(cx: Context, parts: tuple[alg.Event, ...], state: State) -> _Names:
    """Write the lines before the loop."""
    writer, fresh = cx.writer, cx.checks.fresh
    variables = [cx.setting.numbers[part.variable] for part in parts]
    cx.lined |= set(variables[1:])
    names = _Names(
        len(parts),
        *(fresh(stem) for stem in ("lists", "begins", "ends", "level", "t", "new", "fits")),
        *(cx.stack(fresh(stem)) for stem in ("index", "near", "latest")),
    )
    for name, stem in ((names.lists, "ts"), (names.begins, "a"), (names.ends, "z")):
        writer.line(f"{name} = ({', '.join(f'{stem}_{variable}' for variable in variables)})")
    writer.when(f"len({names.index}) < {names.size}", "return DEEP, g, at, mark")
    with writer.block(f"for {names.level} in range({names.size}):"):
        writer.line(f"{names.near}[{names.level}] = {names.begins}[{names.level}]")
    start = first_candidate(cx, variables[0], state, is_outermost=cx.is_outermost(state))
    writer.line(f"{names.index}[0] = {start}", f"{names.latest}[0] = {state.latest}", f"{names.level} = 0")
    writer.line(f"{names.is_new} = True")
    return names


def _candidate(cx: Context, names: _Names) -> None:
    """The next candidate of the level, or a level back where there is none."""
    writer, level = cx.writer, names.level
    writer.when(f"not {names.is_new}", f"{names.index}[{level}] += 1")
    writer.line(f"{names.is_new} = False", f"{names.fits} = False")
    time = f"{names.lists}[{level}][{names.index}[{level}]]"
    with writer.block(f"if {names.index}[{level}] >= {names.ends}[{level}] or {time} > {names.latest}[{level}]:"):
        writer.line(f"{level} -= 1", "continue")
    writer.line(f"{names.time} = {time}")


def _level(cx: Context, part: alg.Event, number: int, names: _Names, state: State, then: Then) -> State:
    """Bind the candidate of a level if it fits; the state that the next level begins with."""
    reached = state

    def go_on(inner: State) -> None:
        nonlocal reached
        reached = inner
        if number + 1 == names.size:
            then(inner)
            return
        cx.writer.line(f"{names.fits} = True")
        if number == 0:
            _look_ahead(cx, names, inner.latest)

    time = cx.checks.fresh("t")
    cx.writer.line(f"{time} = {names.time}")
    leave = (f"{names.level} = -1", "continue")
    _take(cx, part, state, f"{names.index}[{number}]", time, go_on, leave=leave)
    return reached


def _look_ahead(cx: Context, names: _Names, latest: str) -> None:
    """The latest time of each event that leaves time for those behind it; the first does not fit without one."""
    writer, k, bound = cx.writer, cx.checks.fresh("k"), cx.checks.fresh("bound")
    writer.line(f"{bound} = {latest}")
    with writer.block(f"for {k} in range({names.size - 1}, 0, -1):"):
        writer.line(f"{names.near}[{k}] = {names.first_after(k, names.time)}")
        writer.line(f"{names.latest}[{k}] = {names.first_after(k, bound)} - 1")
        writer.when(f"{names.latest}[{k}] < {names.near}[{k}]", f"{names.fits} = False", "break")
        writer.line(f"{names.latest}[{k}] = {names.lists}[{k}][{names.latest}[{k}]]")
        writer.line(f"{bound} = {names.latest}[{k}] - 1")
