"""Sub-matches from tables: a loop over their rows, or a walk over several of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tocsin.algebra import nodes as alg
from tocsin.kernels.search.copies import Copies
from tocsin.kernels.search.program import Pick, Table
from tocsin.kernels.search.state import Guard, Held, Many, One, State, Then


class Picks(Copies):
    """Pick, and Repeat of a Pick."""

    def _pick(self, node: Pick, state: State, then: Then) -> None:
        """A loop over the rows of a table, which are sorted by their start."""
        writer, table = self.writer, self.tables[node.table]
        name = f"t{node.table}"
        is_outermost = self._is_outermost(state)
        row, first, last = self.checks.fresh("r"), self.checks.fresh("t"), self.checks.fresh("t")
        bags = _Bags(self, node, table, "1", is_many=False)
        bags.declare()
        writer.line(f"{row} = {self._start(name, '', state, is_outermost)}")
        with writer.block(f"while {row} < z_{name}:"):
            writer.line(f"{first} = ts_{name}[{row}]")
            writer.line(f"{last} = {self.parameter(f'end_{name}')}[{row}]")
            self._stop_beyond(state, first, row, name)
            with writer.condition(*self._owned(state, first), *self._fits(state, first, last)):
                if is_outermost:
                    self._follow(first, name, row)
                bags.add(row, state.floor)
                bound = self._bound(state, first, last, "-2").knowing(bags.held())
                bound = replace(bound, guards=(*bound.guards, *self._brought(node, table, row, "1", is_many=False)))
                self._proceed(bound, then, variable=None, is_first=False)
                bags.clear()
            writer.line(f"{row} += 1")
        bags.clear()

    def _copies_of_rows(self, node: alg.Repeat, pick: Pick, state: State, then: Then) -> None:
        """The same walk over the rows of a table; every copy adds its events to the bags of its variables."""
        writer, table = self.writer, self.tables[pick.table]
        name = f"t{pick.table}"
        is_outermost = self._is_outermost(state)
        number, cursors, rows = self._stack()
        bags = _Bags(self, pick, table, number, is_many=node.most != 1)
        bags.declare()
        with self._levels(number, cursors):
            inner = self._level_state(state, number, name, rows, is_table=True)
            with writer.block(f"if {cursors}[{number}] < 0:"):
                guards = self._brought(pick, table, rows, number, is_many=node.most != 1)
                known = replace(inner, guards=(*inner.guards, *guards))
                self._arrive(node, known, bags.held(), number, cursors, f"z_{name}", then, own=None)
                with writer.block(f"if {cursors}[{number}] < 0:"):
                    first = (
                        f"max(a_{name}, begin)" if is_outermost else self._start(name, "", inner, is_outermost=False)
                    )
                    after = f"first_after(ts_{name}, {inner.floor}, {rows}[{number} - 1] + 1, z_{name})"
                    writer.line(f"{cursors}[{number}] = {after} if {number} > 0 else {first}")
            index, chosen = self.checks.fresh("i"), self.checks.fresh("chosen")
            writer.line(f"{index} = {cursors}[{number}]")
            writer.line(f"{chosen} = -1")
            with writer.block(f"while {index} < z_{name}:"):
                if self.setting.window_us is not None:
                    with writer.block(f"if ts_{name}[{index}] > {inner.latest}:"):
                        writer.line(f"{index} = z_{name}")
                        writer.line("break")
                self._step()
                fits = self._fits(inner, f"ts_{name}[{index}]", f"{self.parameter(f'end_{name}')}[{index}]")
                owned = self._owned_at_first(state, f"ts_{name}[{index}]", number)
                with writer.condition(*owned, *fits):
                    writer.line(f"{chosen} = {index}")
                    writer.line("break")
                writer.line(f"{index} += 1")
            writer.line(f"{cursors}[{number}] = {index} + 1")
            with writer.block(f"if {chosen} >= 0:"):
                if is_outermost:
                    with writer.block(f"if {number} == 0:"):
                        self._follow(f"ts_{name}[{chosen}]", name, chosen)
                writer.line(f"{rows}[{number}] = {chosen}")
                bags.add(chosen, inner.floor)
                self._descend(number, cursors)
            with writer.block("else:"):
                with writer.block(f"if {number} > 0:"):
                    bags.remove()
                self._ascend(number)
        bags.clear()

    def _brought(self, node: Pick, table: Table, row: str, count: str, *, is_many: bool) -> list[Guard]:
        guards = []
        for number, absent in enumerate(table.absences):
            low, high, active = (self.parameter(f"t{node.table}_{what}{number}") for what in ("low", "high", "active"))
            if is_many or count != "1":
                guards.append(Guard(absent, low, high, active, rows=(row, count)))
            else:
                guards.append(Guard(absent, f"{low}[{row}]", f"{high}[{row}]", f"{active}[{row}]"))
        return guards


@dataclass
class _Bags:
    """The events that the chosen rows of a table give to its variables."""

    function: Picks
    pick: Pick
    table: Table
    number: str
    is_many: bool

    def __post_init__(self) -> None:
        self.levels: list[str] = []

    def _name(self, variable: str) -> str:
        return self.function.setting.numbers[variable]

    def _is_bag(self, variable: str) -> bool:
        return self.is_many or self.table.kinds[variable].iterated

    def declare(self) -> None:
        function = self.function
        for variable in self.pick.variables:
            name = self._name(variable)
            if self._is_bag(variable):
                function.stack(f"b_{name}")
                function.declarations[f"m_{name} = 0"] = None
                if self.is_many:
                    self.levels.append(function.stack(f"l_{name}"))
            else:
                function.declarations[f"e_{name} = -1"] = None
            if self.function.setting.with_floors:
                if self._is_bag(variable):
                    function.stack(f"f_{name}")
                else:
                    function.declarations[f"f_{name} = LEAST"] = None

    def held(self) -> dict[str, Held]:
        found: dict[str, Held] = {}
        for variable in self.pick.variables:
            name = self._name(variable)
            found[variable] = Many(f"b_{name}", "0", f"m_{name}") if self._is_bag(variable) else One(f"e_{name}", False)
        return found

    def add(self, row: str, floor: str) -> None:
        function, writer = self.function, self.function.writer
        for variable in self.pick.variables:
            name = self._name(variable)
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
        writer = self.function.writer
        self.function._stop_unless_room(f"m_{name}", f"b_{name}", "DEEP")
        writer.line(f"b_{name}[m_{name}] = {value}")
        if floor:
            writer.line(f"f_{name}[m_{name}] = {floor}")
        writer.line(f"m_{name} += 1")

    def remove(self) -> None:
        """Back to a level: the bags are as long as they were there."""
        for variable in self.pick.variables:
            name = self._name(variable)
            if self.is_many:
                self.function.writer.line(f"m_{name} = l_{name}[{self.number} - 1]")
        if not self.is_many:
            self.clear()

    def clear(self) -> None:
        for variable in self.pick.variables:
            name = self._name(variable)
            self.function.writer.line(f"m_{name} = 0" if self._is_bag(variable) else f"e_{name} = -1")
