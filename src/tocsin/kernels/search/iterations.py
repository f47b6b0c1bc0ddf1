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

from abc import ABC, abstractmethod
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


class Walk(ABC):
    """A walk over all increasing choices from one list, one level of its stack per copy chosen."""

    def __init__(self, cx: Context, node: alg.Repeat, state: State, name: str, ends: str) -> None:
        self.cx, self.node, self.state = cx, node, state
        self.name, self.ends = name, ends  # the list, and the array of the times at which copies end
        fresh = cx.checks.fresh
        # How many are chosen; the cursor of each level, negative before it is come to; what each level has chosen.
        self.number, self.cursors, self.bag = fresh("n"), cx.stack(fresh("cursors")), cx.stack(fresh("bag"))
        self.tail = Tail.of(cx, state)

    @abstractmethod
    def _entered(self, inner: State) -> State:
        """At a level for the first time: the state that knows what the copies hold."""

    @abstractmethod
    def _tests(self, inner: State, index: str, time: str, latest: str) -> list[str]:
        """The conditions under which the candidate at an index may be the next copy."""

    @abstractmethod
    def _take(self, chosen: str, floor: str) -> None:
        """Bind a copy."""

    def _drop(self) -> None:  # noqa: B027 - an event is released by the level that it stands at
        """Release the last copy."""

    @abstractmethod
    def _leave(self) -> None:
        """After the walk."""

    def write(self, then: Then, own: str | None = None) -> None:
        """Write the walk; `own` is the variable of which each event is tested when it is chosen."""
        cx, writer, state, name, number = self.cx, self.cx.writer, self.state, self.name, self.number
        is_outermost = cx.is_outermost(state)
        cursor = f"{self.cursors}[{number}]"
        writer.line(f"{number} = 0", f"{self.cursors}[0] = -1")
        with writer.block(f"while {number} >= 0:"):
            inner = self._level_state()
            latest = self.tail.latest(inner, number)
            with writer.block(f"if {cursor} < 0:"):
                self._arrive(self._entered(inner), then, own)
                with writer.block(f"if {cursor} < 0:"):
                    writer.line(f"{cursor} = {self._next_start(inner, is_outermost)}")
            index, time, chosen = (cx.checks.fresh(stem) for stem in ("i", "t", "chosen"))
            writer.line(f"{index} = {cursor}", f"{chosen} = -1")
            with writer.block(f"while {index} < z_{name}:"):
                writer.line(f"{time} = ts_{name}[{index}]")
                self._stop_beyond(inner, latest if self.tail.is_limited else "MOST", time, index, is_outermost)
                count_step(cx)
                with writer.condition(*self._tests(inner, index, time, latest)):
                    writer.line(f"{chosen} = {index}", "break")
                writer.line(f"{index} += 1")
            writer.line(f"{cursor} = {index} + 1")
            if cx.setting.selection is Selection.NEXT:
                # The first that fits is the only one, except for the first event of the match.
                is_free = f"{number} > 0" if not state.is_bound else "True"
                writer.when(f"{chosen} >= 0 and {is_free}", f"{cursor} = z_{name}")
            with writer.block(f"if {chosen} >= 0:"):
                if is_outermost:
                    with writer.block(f"if {number} == 0:"):
                        cx.follow(f"ts_{name}[{chosen}]", name, chosen)
                elif not state.is_bound:
                    cx.count_anew(f"{inner.high} == LEAST")
                self.tail.begin(f"ts_{name}[{chosen}]", number)
                writer.line(f"{self.bag}[{number}] = {chosen}")
                self._take(chosen, inner.floor)
                writer.line(f"{number} += 1")
                cx.stop_unless_room(number, self.cursors)
                writer.line(f"{cursor} = -1")
            with writer.block("else:"):
                self._drop()
                writer.line(f"{number} -= 1")
        self._leave()

    def _owned(self, time: str) -> list[str]:
        """At the first copy: whether this slice reports what starts there."""
        return [f"({self.number} > 0 or own_low[g] <= {time} <= own_high[g])"] if self.cx.owns_here(self.state) else []

    def _level_state(self) -> State:
        """The state with `number` copies chosen, computed whenever the walk comes to a level."""
        cx, name, number, bag = self.cx, self.name, self.number, self.bag
        writer, window = cx.writer, cx.setting.window_us
        known = {stem: cx.checks.fresh(stem) for stem in ("floor", "low", "high", "latest", "earliest", "place")}
        writer.line(*(f"{local} = {getattr(self.state, stem)}" for stem, local in known.items()))
        floor, low, high, latest, earliest, place = known.values()
        with writer.block(f"if {number} > 0:"):
            writer.line(f"{floor} = {self.ends}[{bag}[{number} - 1]]", f"{low} = min({low}, ts_{name}[{bag}[0]])")
            writer.line(f"{high} = max({high}, {floor})")
            if window is not None:
                writer.line(f"{latest} = plus({low}, {window - 1})")
                if cx.is_around:
                    writer.line(f"{earliest} = plus({high}, {1 - window})")
            if cx.is_contiguous():
                writer.line(f"{place} = {cx.parameter(f'pos_{name}')}[{bag}[{number} - 1]]")
        return replace(self.state, floor=floor, low=low, high=high, latest=latest, earliest=earliest, place=place)

    def _arrive(self, inner: State, then: Then, own: str | None) -> None:
        """At a level for the first time: what lasts is tested and may end it; with enough copies, go on inside."""
        cx, writer, node, number = self.cx, self.cx.writer, self.node, self.number
        end_level = f"{self.cursors}[{number}] = z_{self.name}"
        if node.most is not None:
            writer.when(f"{number} >= {node.most}", end_level)
        done = [] if own is None else _tests_of_next(inner, own)
        ready = [t for t in inner.tests if ex.variables_in(t.conjunct) <= inner.held.keys() and t not in done]
        lasting = tuple(test for test in ready if not needs_whole_bags(test.conjunct))
        others = tuple(test for test in ready if test not in lasting)
        rest = tuple(test for test in inner.tests if test not in ready and test not in done)
        enough = [f"{number} >= {node.least}"] if node.least > 0 else []
        if lasting:
            alive = cx.checks.fresh("alive")
            writer.line(f"{alive} = False")
            tested(cx, lasting, inner.held, lambda: writer.line(f"{alive} = True"))
            writer.when(f"not {alive}", end_level)
            enough.append(alive)
        known = replace(inner, is_bound=inner.is_bound or node.least > 0, tests=rest)
        with writer.condition(*enough):
            tested(cx, others, inner.held, lambda: guarded(cx, known, then))

    def _next_start(self, inner: State, is_outermost: bool) -> str:
        """The code of where a level begins: after the copy that the one before has chosen."""
        first = first_candidate(self.cx, self.name, inner, is_outermost=is_outermost)
        after = f"{self.bag}[{self.number} - 1] + 1"
        if not self.cx.is_contiguous():
            after = f"first_after(ts_{self.name}, {inner.floor}, {after}, z_{self.name})"
        return f"{after} if {self.number} > 0 else {first}"

    def _stop_beyond(self, inner: State, latest: str, time: str, index: str, is_outermost: bool) -> None:
        """Leave the level behind the last candidate that may be chosen."""
        cx, writer, name, number, least = self.cx, self.cx.writer, self.name, self.number, self.node.least
        leave = (f"{index} = z_{name}", "break")
        if least > 1:
            # As many candidates as are still missing must lie in the window: with fewer, no choice is long enough.
            far = cx.checks.fresh("far")
            writer.line(f"{far} = {index} + max({least - 1} - {number}, 0)")
            in_time = f" or ts_{name}[{far}] > {latest}" if latest != "MOST" else ""
            writer.when(f"{far} >= z_{name}{in_time}", *leave)
        elif latest != "MOST":
            writer.when(f"{time} > {latest}", *leave)
        if cx.is_contiguous():
            is_bound = f"{number} > 0" if is_outermost else "True"
            pos = cx.parameter(f"pos_{name}")
            writer.when(f"{is_bound} and ({pos}[{index}] != {inner.place} + 1 or {time} <= {inner.floor})", *leave)


class CopiesOfEvents(Walk):
    """A walk over the candidates of a variable."""

    def __init__(self, cx: Context, node: alg.Repeat, event: alg.Event, state: State) -> None:
        name = cx.setting.numbers[event.variable]
        super().__init__(cx, node, state, name, f"ts_{name}")
        self.event, self.variable = event, event.variable
        self.single = ""  # the name of the one event that it may hold
        self.held: Held = Many(self.bag, "0", self.number)
        if not cx.kinds[self.variable].iterated:
            self.single = f"e_{name}"
            self.held = One(self.single, is_sure=False)
            cx.declarations[f"{self.single} = -1"] = None
        self.chains = _chains(cx, node, self.variable, state)

    def _entered(self, inner: State) -> State:
        if self.chains is not None:
            self.chains.make_when_hard()
        if self.single:
            self.cx.writer.line(f"{self.single} = {self.bag}[0] if {self.number} > 0 else -1")
        return inner.knowing({self.variable: self.held})

    def _tests(self, inner: State, index: str, time: str, latest: str) -> list[str]:
        candidate = None if self.single else Candidate(self.variable, index, self.number)
        held = {**inner.held, self.variable: One(index, is_sure=True) if self.single else self.held}
        goes_on = [] if self.chains is None else [self.chains.goes_on(index, self.number, latest)]
        next_ones = (self.cx.checks.check(test, held, candidate) for test in _tests_of_next(inner, self.variable))
        kind_test = self.cx.kind_test(self.variable, self.event.type, index)
        return [*kind_test, *self._owned(time), *goes_on, *filter(None, next_ones)]

    def _take(self, chosen: str, floor: str) -> None:
        if not self.cx.setting.with_floors:
            return
        floors = f"f_{self.name}"
        if self.single:
            self.cx.declarations[f"{floors} = LEAST"] = None
            self.cx.writer.line(f"{floors} = {floor}")
        else:
            self.cx.writer.line(f"{self.cx.stack(floors)}[{self.number}] = {floor}")

    def _leave(self) -> None:
        if self.single:
            self.cx.writer.line(f"{self.single} = -1")


def _tests_of_next(state: State, variable: str) -> list[Test]:
    """The tests that can be made whenever a variable takes one more event."""
    known = {*state.held, variable}
    return [
        test for test in state.tests if ex.variables_in(test.conjunct) <= known and is_testable_next(test, variable)
    ]


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


# Choices per candidate of a group after which its table is made.
EASY = 8
# Longer iterations look as far as this.
MOST_AHEAD = 16


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
