"""The searches of a query: its pattern with its composite choices replaced by tables of sub-matches.

code        meaning
----        -------
Part        a pattern for one nest of loops: Event, Repeat of an Event or a Pick, Sequence, Line, All, Absent, Gather,
            Pick
Line        a sequence of events that one loop searches for, where there are more events than loops can nest
Pick        stands for a table: one of its sub-matches is chosen
Table       sub-matches of an OR, or of the part of an iteration: the union of its branches
Search      one generated function: a part, and the tests that may be made in it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, product

from tocsin.algebra import nodes as alg
from tocsin.errors import UnsupportedError, unknown_node
from tocsin.gaps import Gaps
from tocsin.kernels.expressions.leaves import Test
from tocsin.kernels.reach import MOST_LOOPS, may_be_empty
from tocsin.language import expressions as ex
from tocsin.optimizer.shared_prefixes import parts_of


@dataclass(frozen=True)
class Pick(alg.Node):
    """A sub-match of a table."""

    table: int
    variables: tuple[str, ...]


@dataclass(frozen=True)
class Line(alg.Sequence):
    """A sequence of single events, searched for in one loop."""

    @property
    def events(self) -> tuple[alg.Event, ...]:
        """Its parts."""
        return tuple(part for part in self.parts if isinstance(part, alg.Event))


@dataclass(frozen=True)
class Search:
    """A pattern for one function, and the conjuncts to test in it."""

    part: alg.Node
    tests: tuple[Test, ...]


@dataclass(frozen=True)
class Table:
    """Sub-matches that later searches loop over."""

    node: alg.Node  # what they match
    branches: tuple[Search, ...]  # their searches; a table holds the sub-matches of all
    # Those inside whose decision needs more than the sub-match; each row carries their bounds.
    absences: tuple[alg.Absent, ...] = ()

    @cached_property
    def kinds(self) -> dict[str, alg.Kind]:
        """The variables of a row and what each holds."""
        return alg.variables_of(self.node)


@dataclass
class Program:
    """The searches of a query: the tables in the order they are made, then the whole pattern.

    There are several of the whole pattern when an OR branch may bind nothing and still forbid something: a table has no
    row for it, so that each branch then makes a pattern of its own. The first `given` tables were found before.
    """

    kinds: dict[str, alg.Kind]
    tables: list[Table] = field(default_factory=list)
    mains: list[Search] = field(default_factory=list)
    given: int = 0

    @property
    def is_ambiguous(self) -> bool:
        """Whether the same bindings may be found in several ways."""
        return len(self.mains) > 1 or any(_is_ambiguous(table.node) for table in self.tables[self.given :])


def program(core: alg.Node, tests: tuple[Test, ...]) -> Program:
    """Cut a pattern into searches."""
    return cut(core, tests, Program(alg.variables_of(core)))


def cut(core: alg.Node, tests: tuple[Test, ...], made: Program) -> Program:
    """Add the searches of a pattern to a program; the pattern may pick rows of its tables."""
    cutter = _Cutter(made, tests)
    made.mains += [Search(cutter.part(each), tests) for each in _expanded(core)]
    return made


def _expanded(node: alg.Node) -> list[alg.Node]:
    """The patterns whose union a pattern is, without OR branches that can be empty and hold an absence."""
    match node:
        case alg.Any():
            branches = [each for part in node.parts for each in _expanded(part)]
            is_split = any(may_be_empty(branch) and any(alg.absences_in(branch)) for branch in branches)
            return branches if is_split else [node]
        case alg.Sequence() | alg.All():
            chosen = product(*map(_expanded, node.parts))
            return [replace(node, parts=parts) for parts in chosen]
        case alg.Around():
            return [replace(node, part=part) for part in _expanded(node.part)]
        case alg.Event() | alg.Repeat() | Pick():
            return [node]
        case _:
            raise unknown_node(node, "The search by loops")


class _Cutter:
    """Cuts parts into tables. `iterated` is whether a part is one copy of an iteration, at any depth."""

    def __init__(self, made: Program, tests: tuple[Test, ...]) -> None:
        self.made = made
        self.tests = tests

    def part(self, node: alg.Node, *, iterated: bool = False) -> alg.Node:
        match node:
            case alg.Event() | Line() | Pick():
                return node
            case alg.Sequence() | alg.All():
                return self._several(node, iterated=iterated)
            case alg.Around():
                return replace(node, part=self.part(node.part, iterated=iterated))
            case alg.Repeat(part=alg.Event()):
                return node
            case alg.Repeat():
                least = 0 if may_be_empty(node.part) else node.least
                return replace(node, part=self._table(node.part, iterated=iterated or node.most != 1), least=least)
            case alg.Any():
                pick = self._table(node, iterated=iterated)
                return alg.Repeat(pick, 0, 1) if may_be_empty(node) else pick
            case _:
                raise unknown_node(node, "The search by loops")

    def _several(self, node: alg.Sequence | alg.All, *, iterated: bool) -> alg.Node:
        """The parts, the first ones as a table while there are more loops than one function may nest."""
        is_long = sum(map(_loops, node.parts)) > MOST_LOOPS
        originals = _lined(node.parts) if is_long and isinstance(node, alg.Sequence) else list(node.parts)
        parts = [self.part(part, iterated=iterated) for part in originals]
        while sum(map(_loops, parts)) > MOST_LOOPS:
            number, loops = 1, _loops(parts[0])
            while loops + _loops(parts[number]) <= MOST_LOOPS:
                loops += _loops(parts[number])
                number += 1
            # One part by itself gains nothing: the next one then makes the table on its own.
            first = replace(node, parts=tuple(originals[:number])) if number > 1 else originals[0]
            pick = self._table(first, iterated=iterated)
            parts[:number] = [alg.Repeat(pick, 0, 1) if may_be_empty(first) else pick]
            originals[:number] = [first]
        return replace(node, parts=tuple(parts))

    def _table(self, node: alg.Node, *, iterated: bool) -> Pick:
        branches = node.parts if isinstance(node, alg.Any) else (node,)
        searches = tuple(
            Search(self.part(branch, iterated=iterated), self._within(branch, iterated)) for branch in branches
        )
        waiting = tuple(absence for absence in alg.absences_in(node) if not is_settled_within(absence, node, iterated))
        _refuse_lists_of_windows(waiting, node)
        self.made.tables.append(Table(node, searches, waiting))
        return Pick(len(self.made.tables) - 1, tuple(alg.variables_of(node)))

    def _within(self, branch: alg.Node, iterated: bool) -> tuple[Test, ...]:
        """The conjuncts a sub-match must make TRUE by itself: a copy of an iteration only those without an index."""
        tests = _within(self.tests, branch)
        if not iterated:
            return tests
        return tuple(t for t in tests if not t.folds and all(r.index is ex.Each.PLAIN for r in t.references))


def is_settled_within(absence: alg.Absent, node: alg.Node, iterated: bool) -> bool:
    """Whether a sub-match alone decides an absence: no bound by the whole match, no event from outside it."""
    if any(isinstance(bound.anchor, alg.Whole) for bound in absence.lower + absence.upper):
        return False
    spoken = ex.variables_in(absence.condition) - {absence.variable} if absence.condition is not None else frozenset()
    return not spoken or (not iterated and spoken <= alg.variables_of(node).keys())


def _refuse_lists_of_windows(waiting: Sequence[alg.Absent], node: alg.Node) -> None:
    """A row brings one window for each absence that waits for others; copies inside it would have one each."""
    repeats = (each for each in node.walk() if isinstance(each, alg.Repeat) and each.most != 1)
    inside = [absence for each in repeats for absence in alg.absences_in(each.part)]
    for absence in waiting:
        if absence in inside:
            raise UnsupportedError(
                f"The absence of `{absence.variable}`, in an iteration inside another part, has a condition on other "
                "events that kernels cannot compute on numbers.",
                gap=Gaps.NESTED_ABSENCE,
                where=absence.where,
            )


def _is_ambiguous(node: alg.Node) -> bool:
    """Whether two ways through a table's pattern can bind the same events to the same names (R34).

    Copies of a sequence of plain events are told apart by their events, and so are single events that are the branches
    of an OR without a common name; everything else is looked through for duplicates.
    """
    if isinstance(node, alg.Any):
        names = [name for part in node.parts for name in alg.variables_of(part)]
        return len(set(names)) < len(names) or any(map(_is_ambiguous, node.parts))
    if isinstance(node, alg.Sequence):
        return any(not isinstance(part, alg.Event) for part in node.parts)
    return not isinstance(node, alg.Event)


def _lined(parts: Sequence[alg.Node]) -> list[alg.Node]:
    """The parts, with events that follow each other as one."""
    found: list[alg.Node] = []
    for is_event, some in groupby(parts, lambda part: isinstance(part, alg.Event)):
        several = tuple(some)
        found += [Line(several)] if is_event and len(several) > 1 else several
    return found


def _loops(node: alg.Node) -> int:
    """How many loops stand inside each other in a part's code."""
    if isinstance(node, Line):
        return 1
    return sum(map(_loops, node.children())) if isinstance(node, alg.Sequence | alg.All | alg.Around) else 1


def beginning(core: alg.Node, size: int, tests: tuple[Test, ...], begun: int) -> Table:
    """The first `size` events of a conjunction, of which the first `begun` are in a table already."""
    parts = parts_of(core)
    node = alg.All(parts[:size])
    own = _within(tests, node)
    if not begun:
        return Table(node, (Search(node, own),))
    known = alg.All(parts[:begun])
    rest = alg.All((_pick(known), *parts[begun:size]))
    return Table(node, (Search(rest, tuple(test for test in own if test not in _within(tests, known))),))


def begun_program(core: alg.Node, tests: tuple[Test, ...], size: int) -> Program:
    """The program of a pattern whose first events are given as the rows of its first table."""
    known = alg.All(parts_of(core)[:size])
    left = tuple(test for test in tests if test not in _within(tests, known))
    begun = Program(alg.variables_of(core), [Table(known, ())], given=1)
    return cut(_replaced(core, size, _pick(known)), left, begun)


def _pick(known: alg.All) -> Pick:
    return Pick(0, tuple(alg.variables_of(known)))


def _replaced(core: alg.Node, size: int, pick: Pick) -> alg.Node:
    """The pattern with a row of a table in place of its first events."""
    match core:
        case alg.Around():
            return replace(core, part=_replaced(core.part, size, pick))
        case alg.All():
            return replace(core, parts=(pick, *core.parts[size:]))
        case _:
            raise unknown_node(core, "The search of begun matches")


def _within(tests: tuple[Test, ...], node: alg.Node) -> tuple[Test, ...]:
    """The conjuncts that some events decide by themselves."""
    inside = alg.variables_of(node).keys()
    return tuple(test for test in tests if test.references and ex.variables_in(test.conjunct) <= inside)
