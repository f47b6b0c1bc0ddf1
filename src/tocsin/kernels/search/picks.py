"""Sub-matches from tables: a loop over their rows, or a walk over several of them."""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.kernels.search.context import Context
from tocsin.kernels.search.guards import proceed
from tocsin.kernels.search.iterations import Walk
from tocsin.kernels.search.loops import first_candidate, stop_beyond
from tocsin.kernels.search.program import Pick
from tocsin.kernels.search.state import Guard, Held, Many, One, State, Then


def pick(cx: Context, node: Pick, state: State, then: Then) -> None:
    """A loop over the rows of a table, which are sorted by their start."""
    writer = cx.writer
    name = f"t{node.table}"
    is_outermost = cx.is_outermost(state)
    row, first, last = cx.checks.fresh("r"), cx.checks.fresh("t"), cx.checks.fresh("t")
    bags = _Bags(cx, node, "1", is_many=False)
    writer.line(f"{row} = {first_candidate(cx, name, state, is_outermost=is_outermost)}")
    with writer.block(f"while {row} < z_{name}:"):
        writer.line(f"{first} = ts_{name}[{row}]", f"{last} = {cx.parameter(f'end_{name}')}[{row}]")
        stop_beyond(cx, state, first, row, name)
        with writer.condition(*cx.owned(state, first), *cx.fits(state, first, last)):
            if is_outermost:
                cx.follow(first, name, row)
            bags.add(row, state.floor)
            bound = cx.bound(state, first, last, "-2").knowing(bags.held())
            bound = replace(bound, guards=(*bound.guards, *(guard.of_row(row) for guard in _brought(cx, node))))
            proceed(cx, bound, then, variable=None, is_first=False)
            bags.clear()
        writer.line(f"{row} += 1")
    bags.clear()


class CopiesOfRows(Walk):
    """A walk over the rows of a table; every copy adds its events to the bags of its variables."""

    def __init__(self, cx: Context, node: alg.Repeat, pick: Pick, state: State) -> None:
        super().__init__(cx, node, state, f"t{pick.table}", cx.parameter(f"end_t{pick.table}"))
        self.pick = pick
        self.bags = _Bags(cx, pick, self.number, is_many=node.most != 1)

    def _entered(self, inner: State) -> State:
        guards = (replace(guard, rows=(self.bag, self.number)) for guard in _brought(self.cx, self.pick))
        return replace(inner, guards=(*inner.guards, *guards)).knowing(self.bags.held())

    def _tests(self, inner: State, index: str, time: str, latest: str) -> list[str]:
        end = f"{self.ends}[{index}]"
        in_time = [f"{end} <= {latest}"] if self.tail.name else []
        return [*self._owned(time), *self.cx.fits(inner, time, end), *in_time]

    def _take(self, chosen: str, floor: str) -> None:
        self.bags.add(chosen, floor)

    def _drop(self) -> None:
        with self.cx.writer.block(f"if {self.number} > 0:"):
            self.bags.remove()

    def _leave(self) -> None:
        self.bags.clear()


def _brought(cx: Context, pick: Pick) -> list[Guard]:
    """The absences that the rows of a table bring, with the arrays of their bounds."""
    guards = []
    for number, absent in enumerate(cx.tables[pick.table].absences):
        low, high, active = (cx.parameter(f"t{pick.table}_{what}{number}") for what in ("low", "high", "active"))
        guards.append(Guard(absent, low, high, active))
    return guards


class _Bags:
    """The events that the chosen rows of a table give to its variables.

    A variable holds a bag `b_` of `m_` events, whose length at each level is in `l_`, or one event `e_`; `f_` are their
    floors.
    """

    def __init__(self, cx: Context, pick: Pick, number: str, *, is_many: bool) -> None:
        self.cx, self.table, self.number, self.is_many = cx, f"t{pick.table}", number, is_many
        self.names = {variable: cx.setting.numbers[variable] for variable in pick.variables}
        self.lists = {name for name, kind in cx.tables[pick.table].kinds.items() if kind.iterated}
        self.bags = set(self.names) if is_many else self.lists
        has_floors = cx.setting.with_floors
        for variable, name in self.names.items():
            if variable in self.bags:
                cx.declarations[f"m_{name} = 0"] = None
                for stem in ("b", *("l" * is_many), *("f" * has_floors)):
                    cx.stack(f"{stem}_{name}")
            else:
                cx.declarations |= dict.fromkeys([f"e_{name} = -1", f"f_{name} = LEAST"][: 1 + has_floors])

    def held(self) -> dict[str, Held]:
        return {
            variable: Many(f"b_{name}", "0", f"m_{name}") if variable in self.bags else One(f"e_{name}", False)
            for variable, name in self.names.items()
        }

    def add(self, row: str, floor: str) -> None:
        cx, writer = self.cx, self.cx.writer
        for variable, name in self.names.items():
            source = cx.parameter(f"{self.table}_{name}")
            floors = cx.parameter(f"{self.table}_floor_{name}") if cx.setting.with_floors else ""
            if variable not in self.bags:
                writer.line(f"e_{name} = {source}[{row}]")
                if floors:
                    writer.line(f"f_{name} = max({floor}, {floors}[{row}])")
                continue
            if self.is_many:
                writer.line(f"l_{name}[{self.number}] = m_{name}")
            place, header = row, f"if {source}[{row}] >= 0:"
            if variable in self.lists:
                place, ends = cx.checks.fresh("at"), cx.parameter(f"{self.table}_{name}_to")
                header = f"for {place} in range({ends}[{row}], {ends}[{row} + 1]):"
            with writer.block(header):
                cx.stop_unless_room(f"m_{name}", f"b_{name}")
                writer.line(f"b_{name}[m_{name}] = {source}[{place}]")
                if floors:
                    writer.line(f"f_{name}[m_{name}] = max({floor}, {floors}[{place}])")
                writer.line(f"m_{name} += 1")

    def remove(self) -> None:
        """Back to a level: the bags are as long as they were there."""
        if not self.is_many:
            self.clear()
            return
        for name in self.names.values():
            self.cx.writer.line(f"m_{name} = l_{name}[{self.number} - 1]")

    def clear(self) -> None:
        for variable, name in self.names.items():
            self.cx.writer.line(f"m_{name} = 0" if variable in self.bags else f"e_{name} = -1")
