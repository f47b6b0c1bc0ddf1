"""What every step of the nest needs: names of arrays, the state after binding, tests and absences that are ready."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tocsin.algebra import nodes as alg
from tocsin.errors import unknown_node
from tocsin.kernels.expressions.slots import Test
from tocsin.kernels.forms import may_be_empty
from tocsin.kernels.gathered import Look
from tocsin.kernels.search.absences import Absences
from tocsin.kernels.search.conditions import Checks, Columns, is_final
from tocsin.kernels.search.program import Pick, Search, Table
from tocsin.kernels.search.state import Guard, Held, One, State, Then
from tocsin.kernels.search.writer import Writer
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection


@dataclass(frozen=True)
class Setting:
    """What all functions of a kernel share."""

    numbers: Mapping[str, str]  # variable → its short name in the code
    columns: Columns
    # Negated or gathered variable → the conjuncts of its condition that speak of other events too.
    around_tests: Mapping[str, tuple[Test, ...]]
    looks: Mapping[str, Look]  # gathered variable → how its events are found
    asked: tuple[Test, ...]  # aggregates that matches bring along
    hidden: frozenset[str]  # the gathered variables whose events they do not bring
    type_numbers: Mapping[str, int]  # for an event type its number in `Rows.kinds`
    several: frozenset[str]  # variables of several types: their lists have a column of kinds
    window_us: int | None
    policy: Selection  # the selection policy of the query
    selection: Selection  # the policy the loops apply themselves: `any` when it is left to a filter
    with_floors: bool  # whether matches bring the floors of their events
    owns_by_end: bool  # whether a slice owns by the end of a match


@dataclass
class Frame:
    """A function that is being written."""

    search: Search
    setting: Setting
    tables: Sequence[Table]
    waiting: tuple[alg.Absent, ...]
    is_main: bool
    counts_first: bool = False
    writer: Writer = field(default_factory=Writer)
    parameters: dict[str, None] = field(default_factory=dict)
    stacks: dict[str, None] = field(default_factory=dict)
    outputs: dict[str, None] = field(default_factory=dict)
    works: dict[str, tuple[str, int]] = field(default_factory=dict)  # array → numbers per entry of another array
    declarations: dict[str, None] = field(default_factory=dict)
    beginnings: dict[str, None] = field(default_factory=dict)  # lines at the start of every group
    bags: dict[str, None] = field(default_factory=dict)  # variables whose events have outputs of their own
    lined: set[str] = field(default_factory=set)  # lists that a `Line` reads, which has pointers of its own

    def __post_init__(self) -> None:
        self.checks = Checks(self.writer, self.setting.columns)
        self.absences = Absences(
            self.writer, self.checks, self.setting.numbers, self.setting.around_tests, self.kind_test
        )
        self.kinds = alg.variables_of(_unpicked(self.search.part, self.tables))
        # Variables of the query that this pattern does not have are left out for good.
        spoken = {name for test in self.search.tests for name in ex.variables_in(test.conjunct)}
        self.missing: dict[str, Held] = {
            name: One("-1", is_sure=False) for name in sorted(spoken - self.kinds.keys()) if self.is_main
        }
        self.is_around = any(isinstance(node, alg.All) for node in self.search.part.walk())
        self.outputs |= dict.fromkeys(("out_start", "out_end", "out_group"))

    def stack(self, name: str) -> str:
        """An array of its own that the function writes to, as deep as matches are long."""
        self.stacks[name] = None
        return name

    def _stop_unless_room(self, index: str, array: str, status: str) -> None:
        """Stop when an array is full; the caller takes what was found up to the last mark, and calls again from there.

        Arrays that grow inside the loops cost a multiple of all else: the compiler must then expect every access to
        find another array.
        """
        with self.writer.block(f"if {index} == len({array}):"):
            self.writer.line(f"return {status}, g, at, mark")

    def _stop_when_full(self) -> None:
        """At the end of a start whose matches were only counted: stop, and say how much room they need."""
        if not self.counts_first:
            return
        with self.writer.block("if is_full:"):
            self.writer.line("needs[0] = count")
            for number, variable in enumerate(self._written_bags(), 1):
                self.writer.line(f"needs[{number}] = total_{variable}")
            self.writer.line("return FULL, g, at, mark")

    def _written_bags(self) -> list[str]:
        """The short names of the variables whose events have outputs of their own."""
        kept = (variable for variable, kind in self.kinds.items() if kind.iterated)
        return [self.setting.numbers[variable] for variable in kept if variable not in self.setting.hidden]

    def parameter(self, name: str) -> str:
        """An array that the function takes."""
        self.parameters[name] = None
        return name

    def _variables(self) -> list[str]:
        positive = list(self.kinds)
        return positive + [around.variable for around in self._around() if around.variable not in positive]

    def _around(self) -> list[alg.Around]:
        own = list(alg.around_in(self.search.part))
        for table in self._picked():
            own += self.tables[table].absences
        return list({around.variable: around for around in own}.values())

    def _picked(self) -> list[int]:
        return [node.table for node in self.search.part.walk() if isinstance(node, Pick)]

    def kind_test(self, variable: str, event_type: str | None, index: str) -> list[str]:
        """The condition that an event of a variable with several types is of this one."""
        if variable not in self.setting.several or event_type is None:
            return []
        name = self.parameter(f"kind_{self.setting.numbers[variable]}")
        return [f"{name}[{index}] == {self.setting.type_numbers[event_type]}"]

    # --- where the outermost loop stands ----------------------------------------------------------

    def _first(self) -> alg.Node:
        """What the outermost loop is about."""
        first = self.search.part
        while isinstance(first, alg.Around | alg.Sequence):
            first = first.part if isinstance(first, alg.Around) else first.parts[0]
        return first

    def _outermost(self) -> alg.Node:
        """What is looped over first: in an AND too the part that is written first."""
        first = self._first()
        while isinstance(first, alg.Around | alg.Sequence | alg.All):
            first = first.part if isinstance(first, alg.Around) else first.parts[0]
        return first

    def _is_outermost(self, state: State) -> bool:
        return not state.is_bound and state.low == "MOST" and state.held.keys() == self.missing.keys()

    def _owns_here(self, state: State) -> bool:
        is_first = self._is_outermost(state) and state.is_linear and not may_be_empty(self._first())
        return self.is_main and is_first and not self.setting.owns_by_end

    def _owned(self, state: State, time: str) -> list[str]:
        """At the outermost event of a sequence, which is the first: whether this slice reports what starts there."""
        if not self._owns_here(state):
            return []
        return [f"own_low[g] <= {time} <= own_high[g]"]

    def _follow(self, time: str, outermost: str, index: str) -> None:
        """Move the pointers of all other lists to where events that can join this one begin."""
        if not may_be_empty(self._outermost()):
            self._stop_when_full()
        self.writer.line("found = 0")
        self.writer.line("steps = 0")
        if not may_be_empty(self._outermost()):
            # Otherwise the search would come by what it finds without this event again.
            self.writer.line("mark = count")
            self.writer.line(f"at = {index}")
        window = self.setting.window_us
        looks = self.setting.looks
        keyed = {self.setting.numbers[name] for name, look in looks.items() if look.key is not None}
        around = {self.setting.numbers[each.variable]: alg.before_us(each) for each in self._around()}
        positive = [name for variable in self.kinds if (name := self.setting.numbers[variable]) not in around]
        positive += [f"t{n}" for n in self._picked()]
        before = dict.fromkeys(positive, 0) | around
        for name, farther in before.items():
            is_after = name in positive and not self.is_around
            if name == outermost or name in keyed or name in self.lined or (window is None and not is_after):
                continue
            floor = time if is_after else f"plus({time}, {-((window or 0) + farther)})"
            self.writer.line(f"p_{name} = first_after(ts_{name}, {floor}, p_{name}, z_{name})")

    def _count_anew(self, condition: str) -> None:
        with self.writer.block(f"if {condition}:"):
            self.writer.line("found = 0")
            self.writer.line("steps = 0")

    # --- the state --------------------------------------------------------------------------------

    def _is_contiguous(self) -> bool:
        return self.setting.selection in (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS)

    def _place(self, name: str, index: str) -> str:
        return f"{self.parameter(f'pos_{name}')}[{index}]" if self._is_contiguous() else "-2"

    def _bound(self, state: State, first: str, last: str, place: str) -> State:
        """The state after binding events from `first` to `last`."""
        writer, fresh = self.writer, self.checks.fresh
        window = self.setting.window_us
        low, high = first, last
        if state.low != "MOST":
            low = state.low if state.is_linear and state.is_bound else fresh("low")
            if low != state.low:
                writer.line(f"{low} = min({state.low}, {first})")
        if state.high != "LEAST" and not state.is_linear:
            high = fresh("high")
            writer.line(f"{high} = max({state.high}, {last})")
        latest, earliest = state.latest, state.earliest
        if window is not None and low != state.low:
            latest = fresh("latest")
            writer.line(f"{latest} = plus({low}, {window - 1})")
        if window is not None and self.is_around:
            earliest = fresh("earliest")
            writer.line(f"{earliest} = plus({high}, {1 - window})")
        return replace(
            state, floor=last, low=low, high=high, latest=latest, earliest=earliest, place=place, is_bound=True
        )

    def _fits(self, state: State, first: str, last: str) -> list[str]:
        """Whether a row from `first` to `last` lies in one window with what is bound."""
        window = self.setting.window_us
        if window is None:
            return []
        low = f"min({state.low}, {first})" if state.low != "MOST" else first
        return [f"max({state.high}, {last}) <= plus({low}, {window - 1})"]

    # --- tests and absences -----------------------------------------------------------------------

    def _proceed(self, state: State, then: Then, *, variable: str | None, is_first: bool) -> None:
        """Make the tests and settle the absences that are ready, then go on inside; `next` stops at the first."""
        ready = tuple(test for test in state.tests if ex.variables_in(test.conjunct) <= state.held.keys())
        is_next = self.setting.selection is Selection.NEXT and variable is not None and not is_first
        late = tuple(test for test in ready if variable is not None and is_final(test, variable)) if is_next else ()
        early = tuple(test for test in ready if test not in late)
        rest = replace(state, tests=tuple(test for test in state.tests if test not in ready))
        self._tested(early, state.held, lambda: self._selected(late, rest, then, is_next=is_next))

    def _selected(self, late: tuple[Test, ...], state: State, then: Then, *, is_next: bool) -> None:
        self._tested(late, state.held, lambda: self._guarded(state, then))
        if is_next:
            # Any later candidate has this one between it and the event before (R2).
            self.writer.line("break")

    def _tested(self, tests: tuple[Test, ...], held: Mapping[str, Held], inside: Callable[[], None]) -> None:
        """All tests, the cheap ones in one condition, those with loops one after the other."""
        depth = self.writer.depth
        cheap, loops = [], []
        for test in tests:
            before = len(self.writer.lines)
            condition = self.checks.check(test, held)
            if not condition:
                continue
            if len(self.writer.lines) == before:
                cheap.append(condition)
            else:
                loops.append((self.writer.lines[before:], condition))
                del self.writer.lines[before:]
        if cheap:
            self.writer.line(f"if {' and '.join(cheap)}:")
            self.writer.depth += 1
        for lines, condition in loops:
            shift = "    " * (self.writer.depth - depth)
            self.writer.lines += [shift + line for line in lines]
            self.writer.line(f"if {condition}:")
            self.writer.depth += 1
        before = len(self.writer.lines)
        inside()
        if len(self.writer.lines) == before:
            self.writer.line("pass")
        self.writer.depth = depth

    def _guarded(self, state: State, then: Then) -> None:
        ready = [guard for guard in state.guards if self._may_settle(guard) and self.absences.is_ready(guard, state)]
        rest = replace(state, guards=tuple(guard for guard in state.guards if guard not in ready))
        depth = self.writer.depth
        for guard in ready:
            self.writer.line(f"if {self.absences.settle(guard, state)}:")
            self.writer.depth += 1
        then(rest)
        self.writer.depth = depth

    def _may_settle(self, guard: Guard) -> bool:
        return self.is_main or guard.absent not in self.waiting


def _unpicked(node: alg.Node, tables: Sequence[Table]) -> alg.Node:
    """The part with the patterns of its tables in place of the picks, to ask for its variables."""
    match node:
        case Pick():
            return tables[node.table].node
        case alg.Sequence() | alg.All() | alg.Repeat() | alg.Around():
            return node.rebuilt(lambda part: _unpicked(part, tables))
        case alg.Event():
            return node
        case _:
            raise unknown_node(node, "The search by loops")
