"""Sub-matches from tables: a loop over their rows, or a walk over several of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tocsin.algebra import nodes as alg
from tocsin.kernels.search.context import Context
from tocsin.kernels.search.guards import proceed
from tocsin.kernels.search.iterations import (
    Tail,
    arrive,
    descend,
    level_state,
    levels,
    new_stack,
    next_start,
    owned_at_first,
)
from tocsin.kernels.search.loops import count_step, first_candidate, stop_beyond
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


def copies_of_rows(cx: Context, node: alg.Repeat, pick: Pick, state: State, then: Then) -> None:
    """A walk over the rows of a table; every copy adds its events to the bags of its variables."""
    writer, table = cx.writer, cx.tables[pick.table]
    name = f"t{pick.table}"
    is_outermost = cx.is_outermost(state)
    number, cursors, rows = new_stack(cx)
    bags = _Bags(cx, pick, table, number, is_many=node.most != 1)
    tail = Tail.of(cx, state)
    with levels(cx, number, cursors):
        inner = level_state(cx, state, number, name, rows, is_table=True)
        latest = tail.latest(inner, number)
        with writer.block(f"if {cursors}[{number}] < 0:"):
            guards = _brought(cx, pick, table, rows, number, is_many=node.most != 1)
            known = replace(inner, guards=(*inner.guards, *guards))
            arrive(cx, node, known, bags.held(), number, cursors, f"z_{name}", then, own=None)
            with writer.block(f"if {cursors}[{number}] < 0:"):
                writer.line(f"{cursors}[{number}] = {next_start(cx, name, inner, number, rows, is_outermost)}")
        index, chosen = cx.checks.fresh("i"), cx.checks.fresh("chosen")
        writer.line(f"{index} = {cursors}[{number}]", f"{chosen} = -1")
        with writer.block(f"while {index} < z_{name}:"):
            if tail.is_limited:
                writer.when(f"ts_{name}[{index}] > {latest}", f"{index} = z_{name}", "break")
            count_step(cx)
            fits = cx.fits(inner, f"ts_{name}[{index}]", f"{cx.parameter(f'end_{name}')}[{index}]")
            owned = owned_at_first(cx, state, f"ts_{name}[{index}]", number)
            fits += [f"end_{name}[{index}] <= {latest}"] if tail.name else []
            with writer.condition(*owned, *fits):
                writer.line(f"{chosen} = {index}", "break")
            writer.line(f"{index} += 1")
        writer.line(f"{cursors}[{number}] = {index} + 1")
        with writer.block(f"if {chosen} >= 0:"):
            if is_outermost:
                with writer.block(f"if {number} == 0:"):
                    cx.follow(f"ts_{name}[{chosen}]", name, chosen)
            tail.begin(f"ts_{name}[{chosen}]", number)
            writer.line(f"{rows}[{number}] = {chosen}")
            bags.add(chosen, inner.floor)
            descend(cx, number, cursors)
        with writer.block("else:"):
            with writer.block(f"if {number} > 0:"):
                bags.remove()
            writer.line(f"{number} -= 1")
    bags.clear()


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
        self.cx.stop_unless_room(f"m_{name}", f"b_{name}", "DEEP")
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
