"""A query compiled for kernels: what its rows must carry, how they may be split, and how matches are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

from tocsin.algebra import nodes as alg
from tocsin.analysis.schema import BoundQuery
from tocsin.kernels.beginnings import conditions_of, with_timeouts
from tocsin.kernels.conditions import Conditions, conditions, sources_of
from tocsin.kernels.gathered import arranged, looks_of
from tocsin.kernels.instants import Stretch, stretched
from tocsin.kernels.links.run import Walker
from tocsin.kernels.lists import Lists, lists
from tocsin.kernels.longest import is_ranged, longest
from tocsin.kernels.matches import UNLIMITED, Limits, Starts, concatenate, held_at_once
from tocsin.kernels.model import Matches, Rows, Source
from tocsin.kernels.policies import apply, distinct, one_of_each_set
from tocsin.kernels.policies.selection import NextTest, alternatives, conditions_of_next, is_final
from tocsin.kernels.reach import Search, is_plain_sequence, reach_of, without, without_closed_gaps, words_of
from tocsin.kernels.residual import Residual
from tocsin.kernels.run import Runner
from tocsin.kernels.search.conditions import Columns, is_testable_next
from tocsin.kernels.search.context import Setting
from tocsin.kernels.search.program import Program, program
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY


@dataclass(frozen=True, kw_only=True)
class Kernel(Search):
    """A query as nested loops; its sources are its variables, negated and gathered ones included."""

    conditions: Conditions
    selects: bool  # whether the loops apply the selection policy themselves; otherwise links or a later test do
    stretch: Stretch | None = None  # what happened to the times of the rows it is given

    def find(
        self, rows: Rows, *, most: int = MOST_MATCHES_PER_START, memory: int = MOST_MEMORY, jit: bool | None = None
    ) -> Iterator[Matches]:
        """Find the matches; time-outs come last."""
        limits = self.limits(most, memory)
        if rows.instants is None:
            return self._found(rows, limits, jit)
        moved, stretch = stretched(rows)
        search = self if stretch is None else self._stretched(stretch)
        return search._found(moved, limits, jit)

    def limits(self, most: int, memory: int) -> Limits:
        """The limits of a search."""
        gathered = [each.variable for each in alg.gatherings_in(self.query.core)]
        kinds = self.query.variables.items()
        iterated = tuple(name for name, kind in kinds if kind.iterated and name not in gathered)
        return Limits(most, memory, iterated, self.query.selection)

    def _stretched(self, stretch: Stretch) -> Kernel:
        """The search among rows whose times contain the order of their tie columns."""
        around = tuple(map(stretch.around, self.conditions.residual_around))
        return replace(
            self,
            query=replace(self.query, pattern=stretch.node(self.query.pattern)),
            conditions=replace(self.conditions, residual_around=around),
            span_us=None if self.span_us is None else stretch.less_than(self.span_us),
            stretch=stretch,
        )

    def _found(self, rows: Rows, limits: Limits, jit: bool | None) -> Iterator[Matches]:
        if is_ranged(self.query, self.conditions):
            found = longest(self.query, self.conditions, self.sources[0], rows, self.span_us)
            return found if self.stretch is None else map(self.stretch.matches, found)
        if self.walks:
            return self._walked(rows, limits, jit)
        runner = self._runner(rows, limits, jit)
        listed = lists(rows, self.sources, runner.setting.numbers, self.conditions.columns)
        found = self.kept(runner, rows, listed)
        if not self.query.timeouts:
            return found

        def begun(query: alg.Query) -> Iterator[Matches]:
            part = replace(self, query=query, conditions=conditions_of(query, self.conditions))
            return part.kept(part._runner(rows, limits, jit), rows, listed, counts=False)

        return with_timeouts(self.query, found, begun, len(rows.ts))

    def _runner(self, rows: Rows, limits: Limits, jit: bool | None) -> Runner:
        return Runner(program(self.searched, self.conditions.tests), self.setting(rows), limits, jit)

    @property
    def searched(self) -> alg.Node:
        """The pattern that loops search for: without absences and gatherings that are decided afterwards."""
        return without(self.query.core, self.conditions.residual_around)

    def _walked(self, rows: Rows, limits: Limits, jit: bool | None) -> Iterator[Matches]:
        """Find matches by a walk along links: conditions are tried on the way, absences of whole matches afterwards."""
        words = words_of(self.query)
        assert words is not None
        conjuncts = (*self.conditions.residual, *(test.conjunct for test in self.conditions.tests))
        absences = tuple(alg.absences_in(self.query.core))
        walker = Walker(self, words, limits, jit, decides=not absences, conjuncts=conjuncts)
        residual = Residual((), absences, rows, self.sources)
        found = (residual.kept(matches) for matches in walker.matches(rows))
        kept = self._policed(found, rows, limits.memory, is_distinct=walker.is_distinct, is_selected=True)
        return kept if walker.counts else map(Starts(rows, limits).noted, kept)

    def kept(self, runner: Runner, rows: Rows, lists: Lists, *, counts: bool = True) -> Iterator[Matches]:
        """Find matches in lists of these rows, as far as other conditions and policies keep them.

        With `counts`, no more matches may begin with one event than the runner says: those that are kept (R43).
        """
        if counts and self._finds_each_once(runner.program):
            return self._chosen(runner, rows, lists, None)
        starts = Starts(rows, runner.limits if counts else replace(runner.limits, most=UNLIMITED))
        return map(starts.noted, self._chosen(runner, rows, lists, starts))

    def _finds_each_once(self, program: Program) -> bool:
        """Whether each that the loops find is a match of the query, and those of one start come one after the other."""
        has_product = any(isinstance(node, alg.All) for search in program.mains for node in search.part.walk())
        return not (program.tables or has_product or self._drops or len(program.mains) > 1)

    @property
    def _drops(self) -> bool:
        """Whether conditions or policies drop some of what the loops find, beside equal ones."""
        known = self.conditions
        return bool(
            self.query.ranks_matches
            or not (self.selects or self.query.selection is Selection.ANY)
            or known.residual
            or known.residual_around
            or known.unordered
        )

    def _chosen(self, runner: Runner, rows: Rows, lists: Lists, starts: Starts | None) -> Iterator[Matches]:
        def judge(unfinished: Matches) -> None:
            """Raise for too many matches of a start before it is searched to its end, where all of them are kept."""
            if starts is not None and not self._drops:
                starts.judge(distinct(unfinished))

        arranged(lists, runner.setting.looks, runner.setting.numbers)
        found = runner.matches(lists, None if starts is None else judge)
        residual = Residual(self.conditions.residual, self.conditions.residual_around, rows, self.sources)
        kept = (residual.kept(matches) for matches in found)
        is_distinct = not runner.program.is_ambiguous
        return self._policed(kept, rows, runner.limits.memory, is_distinct=is_distinct, is_selected=self.selects)

    def _policed(
        self, kept: Iterator[Matches], rows: Rows, memory: int, *, is_distinct: bool, is_selected: bool
    ) -> Iterator[Matches]:
        """The matches that the policies keep."""
        if self.stretch is not None:
            kept = map(self.stretch.matches, kept)
        if self.query.ranks_matches or not is_distinct or self.conditions.unordered:
            # One portion: what is first, last or equal is known when all of a group is there.
            parts = held_at_once((matches for matches in kept if len(matches)), memory)
            kept = iter([concatenate(parts)] if parts else [])
        test = None
        for portion in kept:
            matches = reduce(lambda left, names: one_of_each_set(left, rows, names), self.conditions.unordered, portion)
            if self.query.selection is Selection.NEXT and not is_selected and test is None:
                test = NextTest(rows, self.query, self.sources)
            yield apply(self.query, matches, rows, selected=is_selected, is_distinct=is_distinct, next_test=test)

    def setting(self, rows: Rows) -> Setting:
        """The settings of functions for these rows."""
        numbers, kinds = self.numbers, self.query.variables
        gatherings = [
            each for each in alg.gatherings_in(self.query.core) if each not in self.conditions.residual_around
        ]
        singles = frozenset(name for name, kind in kinds.items() if not kind.iterated and not kind.optional)
        looks = looks_of(gatherings, self.conditions, self.sources, singles, rows)
        prefixes = {(name, column): one for name, look in looks.items() for column, one in look.prefixes.items()}
        return Setting(
            numbers=numbers,
            columns=Columns(numbers, self.conditions.places, rows.nullable, prefixes),
            around_tests={**self.conditions.around_tests, **{name: look.tests for name, look in looks.items()}},
            looks=looks,
            asked=tuple(self.conditions.asked.values()),
            hidden=self.hidden,
            type_numbers={name: number for number, name in enumerate(self.types)},
            several=frozenset(source.variable for source in self.sources if len(source.types) > 1),
            window_us=self.span_us,
            selection=self.query.selection if self.selects else Selection.ANY,
            with_floors=self.query.selection is Selection.NEXT and not self.selects,
            owns_by_end=self.owns_by_end,
        )


def kernel(bound: BoundQuery) -> Kernel:
    """Compile a query for kernels."""
    query = without_closed_gaps(bound.query)
    bound = replace(bound, query=query)
    core = query.core
    found = conditions(bound, core)
    program(without(core, found.residual_around), found.tests)  # what it refuses is refused before anything runs
    sources = sources_of(query, core, found)
    selects = _selects(query, core, found)
    walks = not selects and not query.unordered and words_of(query) is not None
    if query.selection is Selection.NEXT and not selects and not walks:
        alternatives(core)  # what it refuses is refused before anything runs
    return Kernel(
        **vars(reach_of(query)),
        sources=sources,
        carried=found.carried,
        types=tuple(sorted(alg.event_types(core))),
        wants=_wants(query, found, sources, selects, walks),
        aggregates={aggregate: test.folds[0].kind for aggregate, test in found.asked.items()},
        hidden=found.hidden,
        conditions=found,
        selects=selects,
        walks=walks,
    )


def _selects(query: alg.Query, core: alg.Node, found: Conditions) -> bool:
    """Whether the loops can apply the selection policy.

    `next` also needs every conjunct that may block an event to be tested when that event is bound.
    """
    if query.selection is Selection.ANY:
        return True
    if not is_plain_sequence(core):
        return False
    if query.selection is not Selection.NEXT:
        return True
    kinds = alg.variables_of(core)
    if found.residual or any(len(kind.types) > 1 for kind in kinds.values()):
        return False
    for test in found.tests:
        if any(kinds[fold.variable].optional for fold in test.folds):
            return False
        for name in {reference.variable for reference in test.references} | {fold.variable for fold in test.folds}:
            if kinds[name].iterated and is_testable_next(test, name) == is_final(test.conjunct, name):
                return False
    return True


def _wants(
    query: alg.Query, found: Conditions, sources: tuple[Source, ...], selects: bool, walks: bool
) -> dict[str, tuple[str, ...]]:
    """The attributes that conditions on Python values read, by event type."""
    around = tuple(alg.absences_in(query.core)) if walks else found.residual_around
    spoken = [*found.residual, *(part for absence in around for part in ex.conjuncts(absence.condition))]
    if walks:
        spoken += [test.conjunct for test in found.tests]
    if query.selection is Selection.NEXT and not selects:
        spoken += [part for parts in conditions_of_next(query, sources).values() for part in parts]
    types = {source.variable: source.types for source in sources}
    wanted: dict[str, dict[str, None]] = {}
    for conjunct in spoken:
        for node in conjunct.walk():
            if isinstance(node, ex.Attribute):
                for kind in types[node.variable]:
                    wanted.setdefault(kind, {})[node.path[0]] = None
    return {kind: tuple(names) for kind, names in wanted.items()}
