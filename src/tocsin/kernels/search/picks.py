"""Sub-matches from tables: a loop over their rows, or a walk over several of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tocsin.algebra import nodes as alg
from tocsin.kernels.search.context import Context
from tocsin.kernels.search.guards import proceed
from tocsin.kernels.search.iterations import Walk
from tocsin.kernels.search.loops import first_candidate, stop_beyond
from tocsin.kernels.search.program import Pick, Table
from tocsin.kernels.search.state import Guard, Held, Many, One, State, Then


def pick(cx: Context, node: Pick, state: State, then: Then) -> None:
    """A loop over the rows of a table, which are sorted by their start."""
    writer, table = cx.writer, cx.tables[node.table]
    name = f"t{node.table}"
    is_outermost = cx.is_outermost(state)
    row, first, last = cx.checks.fresh("r"), cx.checks.fresh("t"), cx.checks.fresh("t")
    bags = _Bags(cx, node, table, "1", is_many=False)
    writer.line(f"{row} = {first_candidate(cx, name, state, is_outermost=is_outermost)}")
    with writer.block(f"while {row} < z_{name}:"):
        writer.line(f"{first} = ts_{name}[{row}]", f"{last} = {cx.parameter(f'end_{name}')}[{row}]")
        stop_beyond(cx, state, first, row, name)
        with writer.condition(*cx.owned(state, first), *cx.fits(state, first, last)):
            if is_outermost:
                cx.follow(first, name, row)
            bags.add(row, state.floor)
            bound = cx.bound(state, first, last, "-2").knowing(bags.held())
            bound = replace(bound, guards=(*bound.guards, *_brought(cx, node, table, row, "1", is_many=False)))
            proceed(cx, bound, then, variable=None, is_first=False)
            bags.clear()
        writer.line(f"{row} += 1")
    bags.clear()


class CopiesOfRows(Walk):
    """A walk over the rows of a table; every copy adds its events to the bags of its variables."""

    def __init__(self, cx: Context, node: alg.Repeat, pick: Pick, state: State) -> None:
        super().__init__(cx, node, state, f"t{pick.table}", cx.parameter(f"end_t{pick.table}"))
        self.pick, self.table = pick, cx.tables[pick.table]
        self.bags = _Bags(cx, pick, self.table, self.number, is_many=node.most != 1)

    def _entered(self, inner: State) -> State:
        guards = _brought(self.cx, self.pick, self.table, self.bag, self.number, is_many=self.node.most != 1)
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


def _brought(cx: Context, node: Pick, table: Table, row: str, count: str, *, is_many: bool) -> list[Guard]:
    guards = []
    for number, absent in enumerate(table.absences):
        low, high, active = (cx.parameter(f"t{node.table}_{what}{number}") for what in ("low", "high", "active"))
        if is_many or count != "1":
            guards.append(Guard(absent, low, high, active, rows=(row, count)))
        else:
            guards.append(Guard(absent, f"{low}[{row}]", f"{high}[{row}]", f"{active}[{row}]"))
    return guards


@dataclass
class _Bags:
    """The events that the chosen rows of a table give to its variables."""

    cx: Context
    pick: Pick
    table: Table
    number: str
    is_many: bool

    def __post_init__(self) -> None:
        """Declare the names and arrays that hold them."""
        function, has_floors = self.cx, self.cx.setting.with_floors
        self.names = {variable: function.setting.numbers[variable] for variable in self.pick.variables}
        for variable, name in self.names.items():
            if self._is_bag(variable):
                function.stack(f"b_{name}")
                function.declarations[f"m_{name} = 0"] = None
                if self.is_many:
                    function.stack(f"l_{name}")
                if has_floors:
                    function.stack(f"f_{name}")
            else:
                function.declarations |= dict.fromkeys([f"e_{name} = -1", f"f_{name} = LEAST"][: 1 + has_floors])

    def _is_bag(self, variable: str) -> bool:
        return self.is_many or self.table.kinds[variable].iterated

    def held(self) -> dict[str, Held]:
        return {
            variable: Many(f"b_{name}", "0", f"m_{name}") if self._is_bag(variable) else One(f"e_{name}", False)
            for variable, name in self.names.items()
        }

    def add(self, row: str, floor: str) -> None:
        function, writer = self.cx, self.cx.writer
        for variable, name in self.names.items():
            source = function.parameter(f"t{self.pick.table}_{name}")
            floors = function.parameter(f"t{self.pick.table}_floor_{name}") if function.setting.with_floors else ""
            if not self._is_bag(variable):
                writer.line(f"e_{name} = {source}[{row}]")
                if floors:
                    writer.line(f"f_{name} = max({floor}, {floors}[{row}])")
                continue
            if self.is_many:
                writer.line(f"l_{name}[{self.number}] = m_{name}")
            if self.table.kinds[variable].iterated:
                ends = function.parameter(f"t{self.pick.table}_{name}_to")
                at = function.checks.fresh("at")
                with writer.block(f"for {at} in range({ends}[{row}], {ends}[{row} + 1]):"):
                    self._append(name, f"{source}[{at}]", f"max({floor}, {floors}[{at}])" if floors else "")
            else:
                with writer.block(f"if {source}[{row}] >= 0:"):
                    self._append(name, f"{source}[{row}]", f"max({floor}, {floors}[{row}])" if floors else "")

    def _append(self, name: str, value: str, floor: str) -> None:
        writer = self.cx.writer
        self.cx.stop_unless_room(f"m_{name}", f"b_{name}")
        writer.line(f"b_{name}[m_{name}] = {value}")
        if floor:
            writer.line(f"f_{name}[m_{name}] = {floor}")
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
            self.cx.writer.line(f"m_{name} = 0" if self._is_bag(variable) else f"e_{name} = -1")
