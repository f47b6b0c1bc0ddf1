"""One search as the text of a function: the nest of loops, and what surrounds it.

The function visits the groups (a partition, or a slice of one) from `group` on, and in the first of them the outermost
candidates from `begin` on. It stops at the end, or with a status: `FULL` when the arrays for matches are, `DEEP` when a
match is longer than the stacks, to be called again where it stopped; `TOO_MANY` when one start has more than `most`
matches, `TOO_LONG` when its iterations take more than `most_steps` steps. It gives the status, where to go on, and how
many matches are complete up to there; `needs` says how long arrays must be, of matches and of each variable's events.

Where the loops count matches, a start whose matches do not fit is counted to its end before more room is asked for:
what is too many is refused before it takes memory, and what is not gets as much as it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tocsin.algebra import nodes as alg
from tocsin.analysis.types import Kind
from tocsin.errors import unknown_node
from tocsin.kernels.forms import may_be_empty
from tocsin.kernels.search.absences import spoken_of
from tocsin.kernels.search.frame import Setting
from tocsin.kernels.search.gatherings import Gatherings
from tocsin.kernels.search.program import Line, Pick, Search, Table
from tocsin.kernels.search.state import Guard, Held, Many, One, State, Then

DOUBLES = "out_double"  # outputs that are called so hold doubles
FIXED_PARAMETERS = ("groups", "group", "begin", "most", "most_steps", "needs", "own_low", "own_high")


def value_name(number: int, kind: Kind) -> str:
    """The output of what is asked of bags: an array of doubles, or of integers as all others are."""
    return f"{DOUBLES if kind is Kind.DOUBLE else 'out_integer'}{number}"


@dataclass
class Function:
    """The text of a function, the arrays it takes, those it works with and those it fills.

    `stacks` are as long as matches are, `works` so many times as long as the parameter they name.
    """

    text: str
    parameters: tuple[str, ...]
    works: dict[str, tuple[str, int]]
    stacks: tuple[str, ...]
    outputs: tuple[str, ...]
    bags: tuple[str, ...] = ()  # the variables whose events have arrays of their own, as `needs` has them
    counts_first: bool = False

    def is_of_bag(self, output: str) -> bool:
        """Whether an output holds the events of a bag, and not a value for each match."""
        return any(output in (f"out_{name}", f"out_floor_{name}") for name in self.bags)


def function(
    search: Search,
    setting: Setting,
    tables: Sequence[Table],
    *,
    waiting: tuple[alg.Absent, ...] = (),
    is_main: bool,
    counts_first: bool = False,
) -> Function:
    """Write the function of a search; `tables` are those that picks refer to.

    `waiting` are absences that the sub-matches of a table bring along instead of deciding them. `is_main`: the matches
    are those of the query, not of a table. `counts_first`: a start is counted to its end when its matches do not fit.
    """
    return _FunctionWriter(search, setting, tables, waiting, is_main, counts_first).function()


class _FunctionWriter(Gatherings):
    def function(self) -> Function:
        writer = self.writer
        writer.depth = 2
        self._list_inputs()
        start = State(tests=self.search.tests, held=self.missing)
        self.emit(self.search.part, start, self.finish)
        body = writer.lines
        writer.lines = []
        writer.depth = 0
        names = ", ".join((*FIXED_PARAMETERS, *self.parameters, *self.works, *self.stacks, *self.outputs))
        writer.line("@compiled")
        writer.line(f"def search({names}):")
        writer.depth = 1
        for name in ("count", "found", "steps", "mark", "at"):
            writer.line(f"{name} = 0")
        if self.counts_first:
            writer.line("is_full = False")
        writer.all(self.declarations)
        with writer.block("for g in range(group, groups):"):
            writer.all(self.beginnings)
            writer.lines += body
            self._stop_when_full()
        writer.line("return DONE, groups, 0, count")
        return Function(
            writer.text,
            tuple(self.parameters),
            self.works,
            tuple(self.stacks),
            tuple(self.outputs),
            tuple(self.bags),
            self.counts_first,
        )

    def _list_inputs(self) -> None:
        """The bounds of every list in this group, and a pointer into each that follows the outermost event."""
        names = [self.setting.numbers[variable] for variable in self._variables()]
        names += [f"t{table}" for table in self._picked()]
        for name in names:
            self.parameter(f"ts_{name}")
            self.writer.line(f"a_{name} = {self.parameter(f'from_{name}')}[g]")
            self.writer.line(f"z_{name} = {self.parameter(f'to_{name}')}[g]")
            self.writer.line(f"p_{name} = a_{name}")
        self.writer.line("mark = count")
        self.writer.line("at = 0")
        around = (test for tests in self.setting.around_tests.values() for test in tests)
        for test in (*self.search.tests, *around, *self.setting.asked):
            if all(slot.variable in self.setting.numbers for slot in test.slots):
                for name in self.setting.columns.used_by(test):
                    self.parameter(name)

    # --- the nest ---------------------------------------------------------------------------------

    def emit(self, node: alg.Node, state: State, then: Then) -> None:
        """Code that visits every match of a node beyond what is bound, with `then` inside."""
        match node:
            case alg.Event():
                self._event(node, state, then)
            case Pick():
                self._pick(node, state, then)
            case alg.Repeat(part=alg.Event() as event):
                self._copies_of_events(node, event, state, then)
            case alg.Repeat(part=Pick() as pick):
                self._copies_of_rows(node, pick, state, then)
            case Line():
                self._line(node.events, state, then)
            case alg.Sequence():
                self._sequence(node.parts, state, then)
            case alg.All():
                self._all(node.parts, state, then)
            case alg.Absent():
                guarded = replace(state, guards=(*state.guards, Guard(node)))
                self.emit(node.part, guarded, then)
            case alg.Gather():
                self.emit(node.part, replace(state, gatherings=(node, *state.gatherings)), then)
            case _:
                raise unknown_node(node, "The search by loops")

    # --- the innermost place ------------------------------------------------------------------------

    def finish(self, state: State) -> None:
        """Write a match; the absences that only the whole match decides come first."""
        writer = self.writer
        conditions = [] if state.is_bound else [f"{state.high} != LEAST"]
        if self.is_main:
            conditions += self._owned_at_last(state)
        depth = writer.depth
        if conditions:
            writer.line(f"if {' and '.join(conditions)}:")
            writer.depth += 1
        names = {node.variable for node in state.gatherings}
        waiting = tuple(guard for guard in state.guards if spoken_of(guard.absent) & names)
        left = self._settled([guard for guard in state.guards if guard not in waiting], state)
        if state.gatherings:
            self._gathered(replace(state, guards=waiting), self._whole)
        else:
            self._write(state, left)
        writer.depth = depth

    def _whole(self, state: State) -> None:
        """Write a match with all that it gathers; the absences that speak of that come first."""
        depth = self.writer.depth
        self._write(state, self._settled(state.guards, state))
        self.writer.depth = depth

    def _settled(self, guards: Sequence[Guard], state: State) -> list[Guard]:
        """Decide absences; what follows is inside. Those that a table only brings along are given back."""
        left = []
        for guard in guards:
            if self._may_settle(guard):
                self.writer.line(f"if {self.absences.settle(guard, state)}:")
                self.writer.depth += 1
            else:
                left.append(guard)
        return left

    def _owned_at_last(self, state: State) -> list[str]:
        if self.setting.owns_by_end:
            return [f"own_low[g] <= {state.high} <= own_high[g]"]
        first = self._first()
        is_known = isinstance(first, alg.Event | Pick | alg.Repeat) and not may_be_empty(first)
        return [] if is_known else [f"own_low[g] <= {state.low} <= own_high[g]"]

    def _write(self, state: State, left: list[Guard]) -> None:
        writer = self.writer
        values = self._values(state) if self.is_main else {}
        writer.line("found += 1")
        with writer.block("if found > most:"):
            writer.line("return TOO_MANY, g, at, mark")
        singles = {"out_start": state.low, "out_end": state.high, "out_group": "g"}
        for guard in left:
            number = self.waiting.index(guard.absent)
            low, high = self.absences.window(guard, state)
            singles |= {f"out_low{number}": low, f"out_high{number}": high}
            singles[f"out_active{number}"] = f"(1 if {guard.active} else 0)" if guard.active else "1"
        singles |= values
        bags: dict[str, Held | None] = {}
        for variable in (each for each in self.kinds if each not in self.setting.hidden):
            name = self.setting.numbers[variable]
            what = state.held.get(variable)
            if self.kinds[variable].iterated:
                bags[name] = what
                continue
            singles[f"out_{name}"] = what.index if isinstance(what, One) else "-1"
            if self.setting.with_floors:
                singles[f"out_floor_{name}"] = f"f_{name}"
        with self._room(bags):
            for name, what in bags.items():
                self._write_bag(name, what)
            for name, code in singles.items():
                self.outputs[name] = None
                writer.line(f"{name}[count] = {code}")
        for name, what in bags.items():
            writer.line(f"total_{name} += {_size(what)}")
        writer.line("count += 1")

    @contextmanager
    def _room(self, bags: Mapping[str, Held | None]) -> Iterator[None]:
        """What is written inside has room; otherwise the search stops, or only counts from here on."""
        writer = self.writer
        self.bags |= dict.fromkeys(bags)
        self.declarations |= dict.fromkeys(f"total_{name} = 0" for name in bags)
        over = ["count >= len(out_start)"]
        over += [f"total_{name} + {_size(what)} > len(out_{name})" for name, what in bags.items() if what is not None]
        if not self.counts_first:
            with writer.block(f"if {' or '.join(over)}:"):
                writer.line("needs[0] = count + 1")
                for number, (name, what) in enumerate(bags.items(), 1):
                    writer.line(f"needs[{number}] = total_{name} + {_size(what)}")
                writer.line("return FULL, g, at, mark")
            yield
            return
        with writer.block(f"if is_full or {' or '.join(over)}:"):
            writer.line("is_full = True")
        with writer.block("else:"):
            yield

    def _values(self, state: State) -> dict[str, str]:
        """What is asked of bags: the names of the outputs, and what they hold."""
        found: dict[str, str] = {}
        for number, test in enumerate(self.setting.asked):
            (fold,) = test.folds
            value, is_null = self.checks.fold(fold, state.held)
            found[value_name(number, fold.kind)] = value
            found[f"out_null{number}"] = f"(1 if {is_null} else 0)"
        return found

    def _write_bag(self, name: str, what: Held | None) -> None:
        """Append the events of a bag; `out_…_to` says where those of each match end."""
        writer = self.writer
        total, values, ends = f"total_{name}", f"out_{name}", f"out_{name}_to"
        self.outputs |= {values: None, ends: None}
        arrays = {values: what.at if isinstance(what, Many) else (lambda k: what.index if what else "-1")}
        if self.setting.with_floors:
            floor_values = f"out_floor_{name}"
            self.outputs[floor_values] = None
            arrays[floor_values] = lambda k: f"f_{name}[{k}]"
        if what is not None:
            step = self.checks.fresh("k")
            with writer.block(f"for {step} in range({_size(what)}):"):
                for array, code in arrays.items():
                    writer.line(f"{array}[{total} + {step}] = {code(step)}")
        writer.line(f"{ends}[count] = {total} + {_size(what)}")


def _size(what: Held | None) -> str:
    """The code of how many events a variable holds."""
    if what is None:
        return "0"
    return what.count if isinstance(what, Many) else f"(1 if {what.index} >= 0 else 0)"
