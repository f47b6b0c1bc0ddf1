"""The algebra as others import it, `from tocsin.algebra import nodes as alg`: patterns, their variables, queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from tocsin import errors
from tocsin.algebra.patterns import *
from tocsin.language.ast import REPORTS_ALL, AfterMatch, Output, Selection, Skip
from tocsin.language.expressions import Expression, conjuncts, map_trees, trees_in
from tocsin.source import Where


@dataclass(frozen=True)
class Partition:
    """The attributes that make each key its own stream (SEMANTICS §5, R11).

    `keys` come from PARTITION BY, where NULL is a key like any other; `same` from `[k]`, where an event with NULL
    takes part in nothing.
    """

    keys: tuple[str, ...] = ()
    same: tuple[str, ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """All of them, in order of first mention."""
        return tuple(dict.fromkeys(self.keys + self.same))


@dataclass(frozen=True)
class Returned:
    """A named output column."""

    name: str
    expression: Expression


REUSE = AfterMatch()


@dataclass(frozen=True)
class Query:
    """A pattern with its partition, policies and output, applied in the order of R32 and R44.

    `unordered` are groups of variables of which it does not matter which holds which event (D37): of matches that
    differ in nothing else, the first is kept, before the policies apply. `every_us` groups matches by the window of
    this length, counted from 1970, in which they start.
    """

    pattern: Node
    partition: Partition = Partition()
    selection: Selection = Selection.ANY
    after_match: AfterMatch = REUSE
    output: Output = Output.ALL
    returns: tuple[Returned, ...] = ()
    group_by: tuple[Returned, ...] = ()
    having: Expression | None = None
    over_all_matches: bool = False
    every_us: int | None = None
    timeouts: bool = False
    unordered: tuple[tuple[str, ...], ...] = ()
    places: Mapping[str, Where] = field(default_factory=dict, compare=False, repr=False)

    @property
    def core(self) -> Node:
        """The pattern below the query's own WITHIN and WHERE."""
        node = self.pattern
        if isinstance(node, Within):
            node = node.part
        return node.part if isinstance(node, Filter) else node

    @property
    def window_us(self) -> int | None:
        """W, when the query has one."""
        return self.pattern.window_us if isinstance(self.pattern, Within) else None

    @property
    def ranks_matches(self) -> bool:
        """Whether what is reported of some matches depends on others: after-match and output policies."""
        return self.after_match.skip is not Skip.REUSE or self.output not in REPORTS_ALL

    @property
    def compares_matches(self) -> bool:
        """Whether a policy compares matches with others, or with what else could have been bound."""
        return self.selection is not Selection.ANY or self.ranks_matches

    @property
    def conjuncts(self) -> tuple[Expression, ...]:
        """The conjuncts of WHERE: those at the top, which hold for the whole match."""
        filters = (node.condition for node in outermost(self.pattern) if isinstance(node, Filter))
        return tuple(conjunct for condition in filters for conjunct in conjuncts(condition))

    @property
    def outputs(self) -> tuple[Expression, ...]:
        """The expressions of RETURN, GROUP BY and HAVING."""
        having = () if self.having is None else (self.having,)
        return (*(one.expression for one in (*self.returns, *self.group_by)), *having)

    def conditions(self) -> Iterator[Expression]:
        """Every condition and computed value of the pattern."""
        return chain.from_iterable(trees_in(vars(node).values(), Expression) for node in self.pattern.walk())

    def expressions(self) -> Iterator[Expression]:
        """Every condition and computed value of the pattern, then the outputs."""
        return chain(self.conditions(), self.outputs)

    def map_expressions(self, change: Callable[[Expression], Expression]) -> Query:
        """The query with `change` applied to each condition, computed value and output."""

        def changed(columns: tuple[Returned, ...]) -> tuple[Returned, ...]:
            return tuple(replace(one, expression=change(one.expression)) for one in columns)

        return replace(
            self,
            pattern=self.pattern.transform(lambda node: map_trees(node, Expression, change)),
            returns=changed(self.returns),
            group_by=changed(self.group_by),
            having=None if self.having is None else change(self.having),
        )

    @cached_property
    def variables(self) -> dict[str, Kind]:
        """The positive variables in order of appearance, and what each can hold."""
        return variables_of(self.pattern)


def outermost(node: Node) -> Iterator[Node]:
    """The nodes at the top whose conditions and windows hold for the whole match."""
    while isinstance(node, Filter | Within | Around | Emit):
        yield node
        node = node.part


def around_in(node: Node) -> Iterator[Around]:
    """Every absence and every gathering of a pattern, outermost first."""
    return (inner for inner in node.walk() if isinstance(inner, Around))


def absences_in(node: Node) -> Iterator[Absent]:
    """Every absence of a pattern, outermost first."""
    return (inner for inner in node.walk() if isinstance(inner, Absent))


def gatherings_in(node: Node) -> Iterator[Gather]:
    """Every gathering of a pattern, in the order in which they gather: innermost first."""
    return reversed([inner for inner in node.walk() if isinstance(inner, Gather)])


def conditions_in(node: Node) -> Iterator[Expression]:
    """The conditions of filters, absences and gatherings of a pattern, outermost first."""
    for inner in node.walk():
        if isinstance(inner, Filter | Around) and inner.condition is not None:
            yield inner.condition


def before_us(around: Around) -> int:
    """How far before the first event of a match, exclusive, a lower bound on named events lets one matter."""
    named = [bound for bound in around.lower if not isinstance(bound.anchor, Whole) and bound.offset_us < 0]
    return max((-bound.offset_us + (not bound.strict) for bound in named), default=0)


def after_us(around: Around) -> int:
    """How far after the last event of a match an upper bound on named events lets one matter."""
    return max((bound.offset_us for bound in around.upper if not isinstance(bound.anchor, Whole)), default=0)


def gathered_us(node: Node) -> int:
    """How much longer gatherings make a match than its other events do (D49)."""
    gatherings = list(gatherings_in(node))
    return max(map(before_us, gatherings), default=0) + max([0, *map(after_us, gatherings)])


def negated_variables(node: Node) -> dict[str, str]:
    """The variables under NOT and their types."""
    return {absence.variable: absence.type for absence in absences_in(node)}


def event_types(node: Node) -> tuple[str, ...]:
    """Every event type a pattern names, negated ones included, in order of appearance."""
    named = [inner.type for inner in node.walk() if isinstance(inner, Event | NextOf | Around)]
    return tuple(dict.fromkeys(name for name in named if name is not None))


# --- variables ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """The contents of a variable: events of these types; one, or a bag; always, or perhaps none."""

    types: tuple[str | None, ...]
    iterated: bool
    optional: bool


Kinds = dict[str, Kind]


@dataclass(frozen=True)
class Holding:
    """The contents of the variables of a pattern, and how many different events together: `most` None is no limit."""

    kinds: Kinds
    least: int
    most: int | None


def variables_of(node: Node) -> Kinds:
    """The positive variables of a pattern in order of appearance.

    >>> a, b = Event("A", "a"), Repeat(Event("B", "b"), 0, None)
    >>> variables_of(Sequence((a, b)))["b"]
    Kind(types=('B',), iterated=True, optional=True)
    """
    return _held(node).kinds


def exposed(node: Node) -> Node:
    """The pattern with what PROJECT leaves out and NEXT skips: its variables hold every event of a match's interval.

    It is there for time and memory: what is left out must be known all the same, and a match may begin with what NEXT
    skips (R22). Parts of AND that are found together become branches, since a name may hide other events in each.

    >>> a, b = Event("A", "a"), Event("B", "b")
    >>> list(variables_of(exposed(Project(Sequence((a, b)), (("a", None),)))))
    ['a', 'b']
    """
    if not any(isinstance(inner, Project | NextOf) for inner in node.walk()):
        return node
    match node:
        case NextOf():
            skipped = Repeat(Event(None, f"before NEXT {node.variable}", where=node.where), 0, None, Order.POSITION)
            return Sequence((skipped, Event(node.type, node.variable, where=node.where)), Order.POSITION)
        case Project():
            return exposed(node.part)
        case Both():
            return Any(tuple(map(exposed, node.parts)), where=node.where)
        case _:
            return node.map_children(exposed)


def events_held(node: Node) -> tuple[int, int | None]:
    """The least and the largest number of different events that the variables of a match hold; None is no limit.

    What is not known exactly is given as wider than it is.

    >>> a, b = Event("A", "A"), Event("B", "B")
    >>> events_held(Bind(Any((a, b)), "x")), events_held(Adjacent((a, b)))
    ((1, 1), (2, 2))
    >>> events_held(Derive(Repeat(a, 1, None), "y", ()))
    (2, None)
    """
    held = _held(node)
    return held.least, held.most


def can_match_empty(node: Node) -> bool:
    """Whether a pattern has a choice that binds no event (R13)."""
    return _held(node).least == 0


def _held(node: Node) -> Holding:
    match node:
        case Event() | NextOf():
            return Holding({node.variable: Kind((node.type,), iterated=False, optional=False)}, 1, 1)
        case Emit():
            return Holding({node.type: Kind((node.type,), iterated=False, optional=False)}, 1, 1)
        case Any():
            return _one_of([_held(part) for part in node.parts])
        case Both():
            parts = [_held(part) for part in node.parts]
            known = [part.most for part in parts if part.most is not None]
            return Holding(parts[0].kinds, max(part.least for part in parts), min(known, default=None))
        case Sequence() | Adjacent() | All():
            return _together([_held(part) for part in node.parts], may_share=isinstance(node, All))
        case Repeat(least=least, most=most):
            return _repeated(_held(node.part), least, most)
        case RepeatAdjacent():
            return _repeated(_held(node.part), 1, None)
        case Gather():
            inner = _held(node.part)
            gathered = Kind((node.type,), iterated=True, optional=True)
            return Holding(inner.kinds | {node.variable: gathered}, inner.least, None)
        case Bind():
            inner = _held(node.part)
            types = tuple(dict.fromkeys(t for kind in inner.kinds.values() for t in kind.types))
            named = Kind(types, iterated=inner.most != 1, optional=inner.least == 0)
            return Holding(inner.kinds | {node.variable: named}, inner.least, inner.most)
        case Derive():
            inner = _held(node.part)
            derived = Kind((None,), iterated=False, optional=False)
            before = inner.kinds.get(node.variable)
            kinds = inner.kinds | {node.variable: derived if before is None else _bag_union(before, derived)}
            return Holding(kinds, inner.least + 1, None if inner.most is None else inner.most + 1)
        case Project():
            return _projected(node, _held(node.part))
        case Absent() | Filter() | Within():
            return _held(node.part)
        case _:
            raise errors.unknown_node(node, "The list of variables")


def _one_of(parts: list[Holding]) -> Holding:
    named: dict[str, list[Kind]] = {}
    for part in parts:
        for name, kind in part.kinds.items():
            named.setdefault(name, []).append(kind)
    kinds = {name: _merged(present, len(parts)) for name, present in named.items()}
    return Holding(kinds, min(part.least for part in parts), _limit(parts, max))


def _limit(parts: list[Holding], joined: Callable[[list[int]], int]) -> int | None:
    """The most that parts hold, joined; None if one of them has no limit."""
    known = [part.most for part in parts if part.most is not None]
    return joined(known) if len(known) == len(parts) else None


def _together(parts: list[Holding], *, may_share: bool) -> Holding:
    kinds: Kinds = {}
    for part in parts:
        for name, kind in part.kinds.items():
            # A name twice in a sequence is a bag union (ACEL, R35); SASE+ has refused it before.
            kinds[name] = kind if name not in kinds else _bag_union(kinds[name], kind)
    least = max(part.least for part in parts) if may_share else sum(part.least for part in parts)
    return Holding(kinds, least, _limit(parts, sum))


def _repeated(copy: Holding, least: int, most: int | None) -> Holding:
    kinds = {
        name: Kind(kind.types, kind.iterated or most != 1, kind.optional or least == 0)
        for name, kind in copy.kinds.items()
    }
    return Holding(kinds, copy.least * least, None if copy.most is None or most is None else copy.most * most)


def _projected(node: Project, whole: Holding) -> Holding:
    kinds = {name: whole.kinds[name] for name, _ in node.kept if name in whole.kinds}
    # Variables may share events, and a trimmed event is another than the whole one.
    is_trimmed = any(attributes is not None for _, attributes in node.kept)
    most = whole.most * len(kinds) if is_trimmed and whole.most is not None else whole.most
    return Holding(kinds, int(any(not kind.optional for kind in kinds.values())), most)


def _merged(present: list[Kind], branches: int) -> Kind:
    return Kind(
        tuple(dict.fromkeys(t for kind in present for t in kind.types)),
        iterated=any(kind.iterated for kind in present),
        optional=len(present) < branches or any(kind.optional for kind in present),
    )


def _bag_union(one: Kind, other: Kind) -> Kind:
    types = tuple(dict.fromkeys(one.types + other.types))
    return Kind(types, iterated=True, optional=one.optional and other.optional)


# --- tie columns (R41) ----------------------------------------------------------------------------


def ordered_by_ties(query: Query) -> Query:
    """Compare tie columns wherever a query compares the times of two events to see which comes first.

    Windows and distances stay as they are: they measure time alone.
    """
    return replace(query, pattern=query.pattern.transform(_ordered))


def compares_ties(node: Node) -> bool:
    """Whether a pattern compares tie columns to see which of two events comes first."""
    nodes = list(node.walk())
    orders = [each.order for each in nodes if isinstance(each, Sequence | Repeat)]
    orders += [bound.order for each in nodes if isinstance(each, Around) for bound in each.lower + each.upper]
    return Order.TIES in orders


def _ordered(node: Node) -> Node:
    match node:
        case Sequence(order=Order.TIME) | Repeat(order=Order.TIME):
            return replace(node, order=Order.TIES)
        case Around():
            return replace(node, lower=tuple(map(_bound, node.lower)), upper=tuple(map(_bound, node.upper)))
        case _:
            return node


def _bound(bound: Bound) -> Bound:
    """A neighbour's bound compares the order of events, every other one a distance."""
    is_neighbour = bound.strict and bound.offset_us == 0 and not isinstance(bound.anchor, Whole)
    return replace(bound, order=Order.TIES) if is_neighbour else bound
