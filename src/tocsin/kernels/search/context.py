"""A function while it is written: its arrays and names, where its outermost loop stands, the state after binding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tocsin.algebra import nodes as alg
from tocsin.kernels.compile import Writer
from tocsin.kernels.expressions.leaves import Test
from tocsin.kernels.gathered import Look
from tocsin.kernels.reach import may_be_empty
from tocsin.kernels.search.conditions import Checks, Columns
from tocsin.kernels.search.program import Pick, Search, Table
from tocsin.kernels.search.state import Held, One, State
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection


@dataclass(frozen=True)
class Setting:
    """Settings that all functions of a kernel share."""

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
    selection: Selection  # the policy the loops apply themselves: `any` when it is left to a filter
    with_floors: bool  # whether matches bring the floors of their events
    owns_by_end: bool  # whether a slice owns by the end of a match


@dataclass
class Context:
    """A function: its text, the arrays that it takes, those that it works with and those that it fills."""

    search: Search
    setting: Setting
    tables: Sequence[Table]  # those that picks refer to
    # The absences that the sub-matches of a table bring along instead of deciding them.
    waiting: tuple[alg.Absent, ...] = ()
    is_main: bool = True  # whether the matches are those of the query, not of a table
    counts_first: bool = False  # whether a start is counted to its end when its matches do not fit
    writer: Writer = field(default_factory=Writer)
    parameters: dict[str, None] = field(default_factory=dict)
    stacks: dict[str, None] = field(default_factory=dict)  # arrays that are as long as matches are
    outputs: dict[str, None] = field(default_factory=dict)
    works: dict[str, tuple[str, int]] = field(default_factory=dict)  # array → numbers per entry of another array
    declarations: dict[str, None] = field(default_factory=dict)
    beginnings: dict[str, None] = field(default_factory=dict)  # lines at the start of every group
    bags: dict[str, None] = field(default_factory=dict)  # variables whose events have outputs of their own, see `needs`
    lined: set[str] = field(default_factory=set)  # lists that a `LineLoop` reads, which has pointers of its own

    def __post_init__(self) -> None:
        self.checks = Checks(self.writer, self.setting.columns, self.parameters)
        # A pick has the variables of what its table matches.
        whole = self.search.part.transform(
            lambda node: self.tables[node.table].node if isinstance(node, Pick) else node
        )
        self.kinds = alg.variables_of(whole)
        # Variables of the query that this pattern does not have are left out for good.
        spoken = {name for test in self.search.tests for name in ex.variables_in(test.conjunct)}
        self.missing: dict[str, Held] = {
            name: One("-1", is_sure=False) for name in sorted(spoken - self.kinds.keys()) if self.is_main
        }
        self.is_around = any(isinstance(node, alg.All) for node in self.search.part.walk())
        self.outputs |= dict.fromkeys(("out_start", "out_end", "out_group"))

    @property
    def text(self) -> str:
        """The text of the function."""
        return self.writer.text

    def stack(self, name: str) -> str:
        """An array of its own that the function writes to, as deep as matches are long."""
        self.stacks[name] = None
        return name

    def stop_unless_room(self, index: str, array: str) -> None:
        """Stop when a stack is full; the caller takes what was found up to the last mark, and calls again from there.

        Arrays that grow inside the loops cost a multiple of all else: the compiler must then expect every access to
        find another array.
        """
        self.writer.when(f"{index} == len({array})", "return DEEP, g, at, mark")

    def stop_when_full(self) -> None:
        """At the end of a start whose matches were only counted: stop, and say how much room they need."""
        if not self.counts_first:
            return
        with self.writer.block("if is_full:"):
            self.writer.line("needs[0] = count")
            for number, variable in enumerate(self.written_bags(), 1):
                self.writer.line(f"needs[{number}] = total_{variable}")
            self.writer.line("return FULL, g, at, mark")

    def written_bags(self) -> list[str]:
        """The short names of the variables whose events have outputs of their own."""
        kept = (variable for variable, kind in self.kinds.items() if kind.iterated)
        return [self.setting.numbers[variable] for variable in kept if variable not in self.setting.hidden]

    def parameter(self, name: str) -> str:
        """An array that the function takes."""
        self.parameters[name] = None
        return name

    def variables(self) -> list[str]:
        """All variables, negated and gathered ones last."""
        positive = list(self.kinds)
        return positive + [around.variable for around in self.around() if around.variable not in positive]

    def around(self) -> list[alg.Around]:
        """All absences and gatherings, those that tables bring along included."""
        own = list(alg.around_in(self.search.part))
        for table in self.picked():
            own += self.tables[table].absences
        return list({around.variable: around for around in own}.values())

    def picked(self) -> list[int]:
        """The tables that are looped over."""
        return [node.table for node in self.search.part.walk() if isinstance(node, Pick)]

    def kind_test(self, variable: str, event_type: str | None, index: str) -> list[str]:
        """The condition that an event of a variable with several types is of this one."""
        if variable not in self.setting.several or event_type is None:
            return []
        name = self.parameter(f"kind_{self.setting.numbers[variable]}")
        return [f"{name}[{index}] == {self.setting.type_numbers[event_type]}"]

    # --- where the outermost loop stands ----------------------------------------------------------

    def first(self) -> alg.Node:
        """The node of the outermost loop."""
        first = self.search.part
        while isinstance(first, alg.Around | alg.Sequence):
            first = first.part if isinstance(first, alg.Around) else first.parts[0]
        return first

    def outermost(self) -> alg.Node:
        """The node that is looped over first: in an AND too the part that is written first."""
        first = self.first()
        while isinstance(first, alg.Around | alg.Sequence | alg.All):
            first = first.part if isinstance(first, alg.Around) else first.parts[0]
        return first

    def is_outermost(self, state: State) -> bool:
        """Whether nothing is bound yet, and nothing is left out."""
        return not state.is_bound and state.low == "MOST" and state.held.keys() == self.missing.keys()

    def owns_here(self, state: State) -> bool:
        """Whether the event that is bound next is the first of the match, and decides who owns it."""
        is_first = self.is_outermost(state) and state.is_linear and not may_be_empty(self.first())
        return self.is_main and is_first and not self.setting.owns_by_end

    def owned(self, state: State, time: str) -> list[str]:
        """At the outermost event of a sequence, which is the first: whether this slice reports what starts there."""
        if not self.owns_here(state):
            return []
        return [f"own_low[g] <= {time} <= own_high[g]"]

    def follow(self, time: str, outermost: str, index: str) -> None:
        """Move the pointers of all other lists to where events that can join this one begin."""
        # Where the first event may be missing, the search would come by what it finds without it again.
        is_first = not may_be_empty(self.outermost())
        if is_first:
            self.stop_when_full()
        self.writer.line("found = 0", "steps = 0")
        if is_first:
            self.writer.line("mark = count", f"at = {index}")
        window = self.setting.window_us
        looks = self.setting.looks
        keyed = {self.setting.numbers[name] for name, look in looks.items() if look.key is not None}
        around = {self.setting.numbers[each.variable]: alg.before_us(each) for each in self.around()}
        positive = [name for variable in self.kinds if (name := self.setting.numbers[variable]) not in around]
        positive += [f"t{n}" for n in self.picked()]
        before = dict.fromkeys(positive, 0) | around
        for name, farther in before.items():
            is_after = name in positive and not self.is_around
            if name == outermost or name in keyed or name in self.lined or (window is None and not is_after):
                continue
            floor = time if is_after else f"plus({time}, {-((window or 0) + farther)})"
            self.writer.line(f"p_{name} = first_after(ts_{name}, {floor}, p_{name}, z_{name})")

    def count_anew(self, condition: str) -> None:
        """Another start begins."""
        self.writer.when(f"{condition}", "found = 0", "steps = 0")

    # --- the state --------------------------------------------------------------------------------

    def is_contiguous(self) -> bool:
        """Whether events must be neighbours."""
        return self.setting.selection in (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS)

    def place(self, name: str, index: str) -> str:
        """The code of the position of an event, where events must be neighbours."""
        return f"{self.parameter(f'pos_{name}')}[{index}]" if self.is_contiguous() else "-2"

    def bound(self, state: State, first: str, last: str, place: str) -> State:
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

    def fits(self, state: State, first: str, last: str) -> list[str]:
        """Whether a row from `first` to `last` lies in one window with what is bound."""
        window = self.setting.window_us
        if window is None:
            return []
        low = f"min({state.low}, {first})" if state.low != "MOST" else first
        return [f"max({state.high}, {last}) <= plus({low}, {window - 1})"]
