"""Rewrite ACEL formulas in the terms of SASE+, so that their matches are counted in the same way.

A formula of `;` and `+`, or of `:` and `@+`, over single events is a path like a SASE+ pattern, but for two things.
Its events have an order within an instant too: whoever counts must count by position. And an event is held by several
variables, its type among them: here it is held by one, which stands for all of them. An aggregate or a condition over a
variable must then be one over exactly one such stand-in.

A filter on single events holds wherever it stands. A bag predicate compares the events that its variable holds where
the filter stands: in one copy of an iteration, or in one part of a sequence. It is counted only where the variable
holds the same events in the whole match.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_formula
from tocsin.errors import unknown_node
from tocsin.kernels.trends.machine import NotAPathError
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection

NEIGHBOURS = {ex.BagOrder.SAME: "=", ex.BagOrder.INCREASING: ">", ex.BagOrder.DECREASING: "<"}


@dataclass(eq=False)
class _Leaf:
    """An event of a formula: the names it is bound to, and the conditions on it alone."""

    event: alg.Event
    names: set[str]
    conditions: dict[ex.Expression, None] = field(default_factory=dict)

    @property
    def label(self) -> frozenset[str]:
        """The names that distinguish it from events of its type elsewhere: all but that of the type."""
        return frozenset(self.names - {self.event.type}) or frozenset(self.names)


@dataclass
class _Reader:
    leaves: list[_Leaf] = field(default_factory=list)
    # Each with the leaves of its variable where the filter stands.
    neighbours: list[tuple[ex.BagPredicate, list[_Leaf]]] = field(default_factory=list)
    orders: set[Selection] = field(default_factory=set)

    def read(self, node: alg.Node) -> tuple[alg.Node, list[_Leaf]]:
        """A part as SASE+ would write it, with events numbered by their leaves, and these leaves."""
        match node:
            case alg.Event(type=str(), condition=None):
                leaf = _Leaf(node, {node.variable})
                self.leaves.append(leaf)
                return replace(node, variable=str(len(self.leaves) - 1)), [leaf]
            case alg.Sequence(order=alg.Order.POSITION) | alg.Adjacent() | alg.Any():
                read = [self.read(part) for part in node.parts]
                parts, leaves = tuple(part for part, _ in read), [leaf for _, own in read for leaf in own]
                if isinstance(node, alg.Any):
                    return alg.Any(parts), leaves
                self.orders.add(_order(node))
                return alg.Sequence(parts), leaves
            case alg.Repeat(order=alg.Order.POSITION) | alg.RepeatAdjacent():
                before = len(self.neighbours)
                part, leaves = self.read(node.part)
                if len(self.neighbours) > before:
                    raise NotAPathError("a filter inside an iteration compares the events of each copy")
                self.orders.add(_order(node))
                least, most = (node.least, node.most) if isinstance(node, alg.Repeat) else (1, None)
                return alg.Repeat(part, least, most), leaves
            case alg.Bind():
                part, leaves = self.read(node.part)
                for leaf in leaves:
                    leaf.names.add(node.variable)
                return part, leaves
            case alg.Filter():
                part, leaves = self.read(node.part)
                kinds = alg.variables_of(node.part)
                for conjunct in ex.conjuncts(node.condition):
                    if isinstance(conjunct, ex.BagPredicate) and not kinds[conjunct.variable].iterated:
                        continue  # one event alone satisfies every bag predicate (R27)
                    self._filter(conjunct, leaves)
                return part, leaves
            case _:
                raise NotAPathError.of(node)

    def _filter(self, conjunct: ex.Expression, leaves: list[_Leaf]) -> None:
        match conjunct:
            case ex.Every():
                for leaf in leaves:
                    if conjunct.variable in leaf.names:
                        leaf.conditions |= dict.fromkeys(_of("", one) for one in ex.conjuncts(conjunct.condition))
            case ex.BagPredicate():
                self.neighbours.append((conjunct, [leaf for leaf in leaves if conjunct.variable in leaf.names]))
            case _:
                raise NotAPathError("a condition is a choice between predicates")


def _order(node: alg.Node) -> Selection:
    is_adjacent = isinstance(node, alg.Adjacent | alg.RepeatAdjacent)
    return Selection.PARTITION_CONTIGUOUS if is_adjacent else Selection.ANY


def as_paths(query: alg.Query) -> alg.Query:
    """A query over an ACEL formula in the terms of SASE+; to be counted by position. One of SASE+ is what it is.

    Raises `NotAPathError` when it cannot be expressed in these terms.

    Examples
    --------
    >>> a, b = alg.Event("A", "A"), alg.Repeat(alg.Bind(alg.Event("B", "B"), "b"), 1, None, alg.Order.POSITION)
    >>> count = (alg.Returned("n", ex.Aggregate("count", ex.Variable("b"))),)
    >>> query = as_paths(alg.Query(alg.Sequence((a, b), alg.Order.POSITION), returns=count, over_all_matches=True))
    >>> list(query.variables), query.returns[0].expression.argument.name
    (['A', 'b'], 'b')
    """
    if not is_formula(query):
        return query
    pattern = query.pattern.part if isinstance(query.pattern, alg.Within) else query.pattern
    reader = _Reader()
    core, _ = reader.read(pattern)
    if len(reader.orders) > 1:
        raise NotAPathError("some of its events must be neighbours, and others need not")
    named = _Named(reader.leaves)
    conditions = [*named.conditions(), *(named.neighbours(*one) for one in reader.neighbours)]
    core = _renamed(core, named)
    if conditions:
        core = alg.Filter(core, ex.all_of(*conditions))
    return replace(
        query,
        pattern=core if query.window_us is None else alg.Within(core, query.window_us),
        selection=next(iter(reader.orders), Selection.ANY),
        returns=tuple(replace(one, expression=named.renamed(one.expression)) for one in query.returns),
        group_by=tuple(replace(one, expression=named.renamed(one.expression)) for one in query.group_by),
        having=None if query.having is None else named.renamed(query.having),
    )


@dataclass
class _Named:
    """The stand-ins: a name for all leaves of one label."""

    leaves: list[_Leaf]

    def __post_init__(self) -> None:
        self.by_label: dict[frozenset[str], list[_Leaf]] = {}
        for leaf in self.leaves:
            self.by_label.setdefault(leaf.label, []).append(leaf)
        self.names = {label: min(label) if len(label) == 1 else "+".join(sorted(label)) for label in self.by_label}
        for own in self.by_label.values():
            if any(list(leaf.conditions) != list(own[0].conditions) for leaf in own):
                raise NotAPathError("one variable has events under different conditions")

    def of(self, leaf: _Leaf) -> str:
        return self.names[leaf.label]

    def stand_in(self, variable: str) -> str:
        """The one name that holds just what a variable does."""
        held = [leaf for leaf in self.leaves if variable in leaf.names]
        labels = {leaf.label for leaf in held}
        if len(labels) == 1:
            (label,) = labels
            if len(held) == len(self.by_label[label]):
                return self.names[label]
        raise NotAPathError(f"`{variable}` holds events that other variables tell apart")

    def conditions(self) -> Iterable[ex.Expression]:
        """The conditions on single events."""
        for label, own in self.by_label.items():
            yield from (_of(self.names[label], condition) for condition in own[0].conditions)

    def neighbours(self, predicate: ex.BagPredicate, held: list[_Leaf]) -> ex.Expression:
        """The condition on an event and the one before it: larger than the last is larger than all before."""
        if held != [leaf for leaf in self.leaves if predicate.variable in leaf.names]:
            raise NotAPathError(f"a filter compares some of the events that `{predicate.variable}` holds in the end")
        name = self.stand_in(predicate.variable)
        here, before = (ex.Attribute(name, predicate.path, ex.Running("i", offset)) for offset in (0, -1))
        return ex.Comparison(NEIGHBOURS[predicate.order], here, before, where=predicate.where)

    def renamed(self, expression: ex.Expression) -> ex.Expression:
        """An expression over stand-ins."""

        def changed(node: ex.Expression) -> ex.Expression:
            match node:
                case ex.Attribute():
                    return replace(node, variable=self.stand_in(node.variable))
                case ex.Variable():
                    return replace(node, name=self.stand_in(node.name))
                case _:
                    return node

        return expression.transform(changed)


def _of(variable: str, condition: ex.Expression) -> ex.Expression:
    return condition.transform(
        lambda node: replace(node, variable=variable) if isinstance(node, ex.Attribute) else node
    )


def _renamed(node: alg.Node, named: _Named) -> alg.Node:
    match node:
        case alg.Event():
            return replace(node, variable=named.of(named.leaves[int(node.variable)]))
        case alg.Repeat() | alg.Sequence() | alg.Any():
            return node.rebuilt(lambda part: _renamed(part, named))
        case _:
            raise unknown_node(node, "The count of trends")
