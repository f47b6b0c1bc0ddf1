"""Iterations of one event type: a walk with a stack of its own, one level per event chosen.

Where conditions compare neighbours, a table looks ahead: among n candidates in a window there are exponentially many
ways to begin an iteration such as nine rising values, and few of them may have an end. `chains[i · length + k]` is the
earliest time at which k more events can follow candidate i, each a neighbour of the one before that the conditions
accept. A walk that takes i only where enough of them end within the window has no dead ends left that neighbours
decide. The table costs a look at every pair of candidates in one window, so that it is made for a group only once the
walk has made more choices there than an easy one would.

Where a sequence goes on behind an iteration, no copy is taken that leaves no time for what must follow: `Tail`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from tocsin.algebra import nodes as alg
from tocsin.kernels.expressions.leaves import Test
from tocsin.kernels.policies.selection import needs_whole_bags
from tocsin.kernels.search.conditions import Candidate, is_testable_next
from tocsin.kernels.search.context import Context
from tocsin.kernels.search.guards import guarded, tested
from tocsin.kernels.search.loops import count_step, first_candidate
from tocsin.kernels.search.state import Held, Many, One, State, Then
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.optimizer.query_parts import is_between_neighbours


def copies_of_events(cx: Context, node: alg.Repeat, event: alg.Event, state: State, then: Then) -> None:
    """A walk over all increasing choices of events: one level of the stack per event chosen."""
    writer, name, variable = cx.writer, cx.setting.numbers[event.variable], event.variable
    is_outermost = cx.is_outermost(state)
    number, cursors, bag = new_stack(cx)
    is_many = cx.kinds[variable].iterated
    what: Held = Many(bag, "0", number) if is_many else One(_single(cx, variable), is_sure=False)
    chains = _chains(cx, node, variable, state)
    tail = Tail.of(cx, state)
    with levels(cx, number, cursors):
        inner = level_state(cx, state, number, name, bag)
        latest = tail.latest(inner, number)
        limit = latest if tail.is_limited else "MOST"
        with writer.block(f"if {cursors}[{number}] < 0:"):
            if chains is not None:
                chains.make_when_hard()
            if not is_many:
                writer.line(f"{_single(cx, variable)} = {bag}[0] if {number} > 0 else -1")
            arrive(cx, node, inner, {variable: what}, number, cursors, f"z_{name}", then, own=variable)
            with writer.block(f"if {cursors}[{number}] < 0:"):
                writer.line(f"{cursors}[{number}] = {next_start(cx, name, inner, number, bag, is_outermost)}")
        index, time, chosen = (cx.checks.fresh(stem) for stem in ("i", "t", "chosen"))
        writer.line(f"{index} = {cursors}[{number}]", f"{chosen} = -1")
        with writer.block(f"while {index} < z_{name}:"):
            writer.line(f"{time} = ts_{name}[{index}]")
            _stop_copies(cx, node.least, inner, limit, time, index, name, number, is_outermost)
            count_step(cx)
            tests = [
                *cx.kind_test(variable, event.type, index),
                *owned_at_first(cx, state, time, number),
                *([chains.goes_on(index, number, latest)] if chains is not None else []),
                *_next_tests(cx, inner, what, variable, index, number),
            ]
            with writer.condition(*tests):
                writer.line(f"{chosen} = {index}", "break")
            writer.line(f"{index} += 1")
        writer.line(f"{cursors}[{number}] = {index} + 1")
        if cx.setting.selection is Selection.NEXT:
            # The first that fits is the only one, except for the first event of the match.
            is_free = f"{number} > 0" if not state.is_bound else "True"
            writer.when(f"{chosen} >= 0 and {is_free}", f"{cursors}[{number}] = z_{name}")
        with writer.block(f"if {chosen} >= 0:"):
            if is_outermost:
                with writer.block(f"if {number} == 0:"):
                    cx.follow(f"ts_{name}[{chosen}]", name, chosen)
            elif not state.is_bound:
                cx.count_anew(f"{inner.high} == LEAST")
            tail.begin(f"ts_{name}[{chosen}]", number)
            writer.line(f"{bag}[{number}] = {chosen}")
            _note_floor(cx, variable, inner.floor, number)
            descend(cx, number, cursors)
        with writer.block("else:"):
            writer.line(f"{number} -= 1")
    if not is_many:
        writer.line(f"{_single(cx, variable)} = -1")


@dataclass(frozen=True)
class Tail:
    """The latest time of a copy that leaves time for what must follow the iteration, as far as candidates are there.

    It is computed when the first event of the match is known; only conditions can make dead ends then.
    """

    cx: Context
    state: State
    name: str  # of the time in the code; empty when nothing must follow

    @classmethod
    def of(cls, cx: Context, state: State) -> Tail:
        """Write the lines before the walk. Policies keep what fits first, and an AND has other events still to come."""
        is_needed = state.behind and cx.setting.selection is Selection.ANY and not cx.is_around
        tail = cls(cx, state, cx.checks.fresh("tail") if is_needed else "")
        if is_needed and state.is_bound:
            tail._write(state.latest)
        elif is_needed:
            cx.writer.line(f"{tail.name} = MOST")
        return tail

    def begin(self, time: str, number: str) -> None:
        """At the first copy, which may be the first event of the match."""
        window = self.cx.setting.window_us
        if self.name and not self.state.is_bound:
            with self.cx.writer.block(f"if {number} == 0:"):
                latest = self.state.latest
                self._write(latest if window is None else f"min({latest}, plus({time}, {window - 1}))")

    def latest(self, inner: State, number: str) -> str:
        """The code of the latest time of the next copy."""
        if not self.name:
            return inner.latest
        latest = self.cx.checks.fresh("last")
        is_known = "True" if self.state.is_bound else f"{number} > 0"
        self.cx.writer.line(f"{latest} = min({inner.latest}, {self.name}) if {is_known} else {inner.latest}")
        return latest

    @property
    def is_limited(self) -> bool:
        """Whether any time is too late for a copy."""
        return bool(self.name) or self.cx.setting.window_us is not None

    def _write(self, latest: str) -> None:
        writer, tail = self.cx.writer, self.name
        writer.line(f"{tail} = {latest}")
        for name, least in reversed(self.state.behind):
            k = self.cx.checks.fresh("k")
            writer.line(f"{k} = first_after(ts_{name}, {tail}, p_{name}, z_{name}) - {least}")
            writer.line(f"{tail} = ts_{name}[{k}] - 1 if {k} >= p_{name} else LEAST")


def _chains(cx: Context, node: alg.Repeat, variable: str, state: State) -> Chains | None:
    """A look ahead, where it can spare a walk its dead ends: not under policies, which keep a first that fits."""
    tests = tuple(test for test in state.tests if between_neighbours(test, variable))
    window = cx.setting.window_us
    if not tests or window is None or node.least < 3 or cx.setting.selection is not Selection.ANY:
        return None
    chains = Chains(cx, variable, cx.setting.numbers[variable], node.least, window, tests)
    cx.works[chains.table] = (f"ts_{chains.name}", chains.length)
    cx.stack(chains.pair)
    cx.beginnings |= dict.fromkeys(chains.beginnings)
    return chains


def _stop_copies(
    cx: Context,
    least: int,
    inner: State,
    latest: str,
    time: str,
    index: str,
    name: str,
    number: str,
    is_outermost: bool,
) -> None:
    writer = cx.writer
    if least > 1:
        # As many candidates as are still missing must lie in the window: with fewer, no choice is long enough.
        far = cx.checks.fresh("far")
        writer.line(f"{far} = {index} + max({least - 1} - {number}, 0)")
        in_time = f" or ts_{name}[{far}] > {latest}" if latest != "MOST" else ""
        writer.when(f"{far} >= z_{name}{in_time}", f"{index} = z_{name}", "break")
    elif latest != "MOST":
        writer.when(f"{time} > {latest}", f"{index} = z_{name}", "break")
    if cx.is_contiguous():
        is_bound = "True" if not is_outermost else f"{number} > 0"
        pos = cx.parameter(f"pos_{name}")
        test = f"{is_bound} and ({pos}[{index}] != {inner.place} + 1 or {time} <= {inner.floor})"
        writer.when(f"{test}", f"{index} = z_{name}", "break")


def owned_at_first(cx: Context, state: State, time: str, number: str) -> list[str]:
    """At the first event of an iteration: whether this slice reports what starts there."""
    return [f"({number} > 0 or own_low[g] <= {time} <= own_high[g])"] if cx.owns_here(state) else []


def next_start(cx: Context, name: str, inner: State, number: str, bag: str, is_outermost: bool) -> str:
    """The code of where a level begins: after the event that the one before has chosen."""
    first = first_candidate(cx, name, inner, is_outermost=is_outermost)
    after = f"{bag}[{number} - 1] + 1"
    if cx.is_contiguous():
        return f"{after} if {number} > 0 else {first}"
    return f"first_after(ts_{name}, {inner.floor}, {after}, z_{name}) if {number} > 0 else {first}"


def _tests_of_next(cx: Context, state: State, variable: str) -> list[Test]:
    known = {*state.held, variable}
    return [
        test for test in state.tests if ex.variables_in(test.conjunct) <= known and is_testable_next(test, variable)
    ]


def _next_tests(cx: Context, state: State, what: Held, variable: str, index: str, number: str) -> list[str]:
    """The conditions under which the event at `index` may be the next one."""
    is_single = isinstance(what, One)
    held = {**state.held, variable: One(index, is_sure=True) if is_single else what}
    candidate = None if is_single else Candidate(variable, index, number)
    tests = _tests_of_next(cx, state, variable)
    return [condition for test in tests if (condition := cx.checks.check(test, held, candidate))]


def arrive(
    cx: Context,
    node: alg.Repeat,
    inner: State,
    held: dict[str, Held],
    number: str,
    cursors: str,
    end: str,
    then: Then,
    *,
    own: str | None,
) -> None:
    """At a level for the first time: what lasts is tested and may end it; with enough copies, go on inside."""
    writer = cx.writer
    if node.most is not None:
        writer.when(f"{number} >= {node.most}", f"{cursors}[{number}] = {end}")
    known = inner.knowing(held)
    done = _tests_of_next(cx, inner, own) if own is not None else []
    ready = [t for t in inner.tests if ex.variables_in(t.conjunct) <= known.held.keys() and t not in done]
    lasting = tuple(test for test in ready if not needs_whole_bags(test.conjunct))
    alive = ""
    if lasting:
        alive = cx.checks.fresh("alive")
        writer.line(f"{alive} = False")
        tested(cx, lasting, known.held, lambda: writer.line(f"{alive} = True"))
        writer.when(f"not {alive}", f"{cursors}[{number}] = {end}")
    enough = [f"{number} >= {node.least}"] if node.least > 0 else []
    is_bound = inner.is_bound or node.least > 0
    others = tuple(test for test in ready if test not in lasting)
    rest = replace(known, is_bound=is_bound, tests=tuple(t for t in inner.tests if t not in ready and t not in done))
    with writer.condition(*enough, *([alive] if alive else [])):
        tested(cx, others, known.held, lambda: guarded(cx, rest, then))


# --- the stack --------------------------------------------------------------------------------


def new_stack(cx: Context) -> tuple[str, str, str]:
    """The names of a number of levels, of the cursor of each, and of what each has chosen."""
    number, cursors, bag = cx.checks.fresh("n"), cx.checks.fresh("cursors"), cx.checks.fresh("bag")
    return number, cx.stack(cursors), cx.stack(bag)


def levels(cx: Context, number: str, cursors: str) -> AbstractContextManager[None]:
    """The loop of a walk."""
    cx.writer.line(f"{number} = 0", f"{cursors}[0] = -1")
    return cx.writer.block(f"while {number} >= 0:")


def descend(cx: Context, number: str, cursors: str) -> None:
    """One level deeper."""
    cx.writer.line(f"{number} += 1")
    cx.stop_unless_room(number, cursors, "DEEP")
    cx.writer.line(f"{cursors}[{number}] = -1")


def level_state(cx: Context, state: State, number: str, name: str, bag: str, *, is_table: bool = False) -> State:
    """The state with `number` copies chosen, recomputed whenever the walk comes to a level."""
    writer, fresh, window = cx.writer, cx.checks.fresh, cx.setting.window_us
    floor, low, high = fresh("floor"), fresh("low"), fresh("high")
    latest, earliest, place = fresh("latest"), fresh("earliest"), fresh("place")
    ends = cx.parameter(f"end_{name}") if is_table else f"ts_{name}"
    for line in (
        f"{floor} = {state.floor}",
        f"{low} = {state.low}",
        f"{high} = {state.high}",
        f"{latest} = {state.latest}",
        f"{earliest} = {state.earliest}",
        f"{place} = {state.place}",
    ):
        writer.line(line)
    with writer.block(f"if {number} > 0:"):
        writer.line(f"{floor} = {ends}[{bag}[{number} - 1]]", f"{low} = min({low}, ts_{name}[{bag}[0]])")
        writer.line(f"{high} = max({high}, {floor})")
        if window is not None:
            writer.line(f"{latest} = plus({low}, {window - 1})")
            if cx.is_around:
                writer.line(f"{earliest} = plus({high}, {1 - window})")
        if cx.is_contiguous():
            writer.line(f"{place} = {cx.parameter(f'pos_{name}')}[{bag}[{number} - 1]]")
    return replace(state, floor=floor, low=low, high=high, latest=latest, earliest=earliest, place=place)


def _single(cx: Context, variable: str) -> str:
    name = f"e_{cx.setting.numbers[variable]}"
    cx.declarations[f"{name} = -1"] = None
    return name


# --- floors, for the policy `next` ------------------------------------------------------------


def _note_floor(cx: Context, variable: str, floor: str, number: str) -> None:
    if not cx.setting.with_floors:
        return
    name = f"f_{cx.setting.numbers[variable]}"
    if cx.kinds[variable].iterated:
        cx.writer.line(f"{cx.stack(name)}[{number}] = {floor}")
    else:
        cx.declarations[f"{name} = LEAST"] = None
        cx.writer.line(f"{name} = {floor}")


# Choices per candidate of a group after which its table is made.


EASY = 8
# Longer iterations look as far as this.
MOST_AHEAD = 16


@dataclass(frozen=True)
class Chains:
    """The table of one iteration, and the code that makes and reads it."""

    cx: Context
    variable: str
    name: str
    least: int
    window_us: int
    tests: tuple[Test, ...]

    @property
    def table(self) -> str:
        """The name of its array."""
        return f"chains_{self.name}"

    @property
    def length(self) -> int:
        """How many numbers it holds for a candidate."""
        return min(self.least, MOST_AHEAD)

    @property
    def beginnings(self) -> tuple[str, ...]:
        """Lines at the start of every group."""
        return (f"choices_{self.name} = 0", f"is_ahead_{self.name} = False")

    def make_when_hard(self) -> None:
        """Count a choice; at one too many, fill the table from the last candidate of the group to the first."""
        writer, name = self.cx.writer, self.name
        writer.line(f"choices_{name} += 1")
        with writer.block(f"if not is_ahead_{name} and choices_{name} > {EASY} * (z_{name} - a_{name}):"):
            writer.line(f"is_ahead_{name} = True")
            with writer.block(f"for one_{name} in range(z_{name} - 1, a_{name} - 1, -1):"):
                self._fill()

    def _fill(self) -> None:
        writer, name, table, length = self.cx.writer, self.name, self.table, self.length
        one, other, step = f"one_{name}", f"other_{name}", f"step_{name}"
        writer.line(f"{table}[{one} * {length}] = ts_{name}[{one}]")
        with writer.block(f"for {step} in range(1, {length}):"):
            writer.line(f"{table}[{one} * {length} + {step}] = MOST")
        writer.line(f"{other} = first_after(ts_{name}, ts_{name}[{one}], {one} + 1, z_{name})")
        writer.line(f"last_{name} = plus(ts_{name}[{one}], {self.window_us - 1})")
        pair = Many(self.pair, "0", "1")
        writer.line(f"{self.pair}[0] = {one}")
        with writer.block(f"while {other} < z_{name} and ts_{name}[{other}] <= last_{name}:"):
            candidate = Candidate(self.variable, other, "1")
            tests = [self.cx.checks.check(test, {self.variable: pair}, candidate) for test in self.tests]
            with writer.condition(*filter(None, tests)), writer.block(f"for {step} in range(1, {length}):"):
                least = f"min({table}[{one} * {length} + {step}], {table}[{other} * {length} + {step} - 1])"
                writer.line(f"{table}[{one} * {length} + {step}] = {least}")
            writer.line(f"{other} += 1")

    @property
    def pair(self) -> str:
        """The name of the array that holds the first of two neighbours."""
        return f"pair_{self.name}"

    def goes_on(self, index: str, number: str, latest: str) -> str:
        """The condition that a candidate, taken as event `number` (from 0), can be followed by all that must follow."""
        ahead = f"min({self.least - 1} - {number}, {self.length - 1})"
        reached = f"{self.table}[{index} * {self.length} + {ahead}] <= {latest}"
        return f"(not is_ahead_{self.name} or {number} >= {self.least} or {reached})"


def between_neighbours(test: Test, variable: str) -> bool:
    """Whether a conjunct speaks of every two neighbours of an iteration, and of nothing else."""
    is_own = ex.variables_in(test.conjunct) == {variable} and not test.folds
    return is_own and is_between_neighbours(test.conjunct)
