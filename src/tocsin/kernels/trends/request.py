"""Read a query: whether its matches can be counted without being built, and the aggregates it requests.

ACEL formulas are rewritten in the terms of SASE+, so that their matches are counted in the same way. A formula of `;`
and `+`, or of `:` and `@+`, over single events is a path like a SASE+ pattern, but for two things. Its events have an
order within an instant too: they are counted by position. And an event is held by several variables, its type among
them: here it is held by one, which stands for all of them. An aggregate or a condition over a variable must then be one
over exactly one such stand-in.

A filter on single events holds wherever it stands. A bag predicate compares the events that its variable holds where
the filter stands: in one copy of an iteration, or in one part of a sequence. It is counted only where the variable
holds the same events in the whole match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_formula
from tocsin.kernels.trends.machine import MOST_SYMBOLS, Machine, NotAPathError, machine
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.optimizer.query_parts import is_between_neighbours

FUNCTIONS = ("count", "sum", "avg", "min", "max")


@dataclass(frozen=True)
class Requested:
    """An aggregate over all matches, as a number or, inside DIGITS, as text of any length."""

    node: ex.Aggregate
    as_digits: bool = False

    @property
    def expression(self) -> ex.Expression:
        """The expression in the query."""
        return ex.Call("digits", (self.node,)) if self.as_digits else self.node


def refusal(query: alg.Query) -> str | None:
    """Why matches must be built to answer a query, or None; the types of attributes may still say no (`trend`)."""
    if not query.over_all_matches:
        return "a row per match is asked for"
    if query.ranks_matches or query.timeouts:
        return "a policy compares whole matches"
    try:
        paths = machine(query.core)
    except NotAPathError as problem:
        return str(problem)
    if len(paths.symbols) > MOST_SYMBOLS:
        return f"its sequences are of more than {MOST_SYMBOLS} kinds of events"
    return _refused_condition(query, paths) or _refused_policy(query, paths) or _refused_output(query, paths)


def _refused_condition(query: alg.Query, paths: Machine) -> str | None:
    where = next((node.condition for node in query.pattern.walk() if isinstance(node, alg.Filter)), None)
    if any(isinstance(node, alg.Event) and node.condition is not None for node in query.pattern.walk()):
        return "an event has a condition of its own"
    for conjunct in ex.conjuncts(where):
        plain = all(reference.index is ex.Each.PLAIN for reference in ex.references_in(conjunct))
        if len(ex.variables_in(conjunct)) != 1 or ex.has_aggregate(conjunct):
            return "a condition compares events with each other"
        (variable,) = ex.variables_in(conjunct)
        if not plain and not (is_between_neighbours(conjunct) and paths.stays_together(variable)):
            return "a condition compares events that are no neighbours of an iteration"
        if not plain and query.selection is Selection.NEXT:
            return "neighbours are compared under `next`"
    return None


def _refused_policy(query: alg.Query, paths: Machine) -> str | None:
    variables = [variable for variable, _ in paths.symbols]
    if query.selection is Selection.NEXT and len(set(variables)) < len(variables):
        return "a variable under `next` has events of several types"
    if query.selection is Selection.NEXT and any(
        isinstance(node, alg.Any) and node.is_one_element for node in query.core.walk()
    ):
        return "an OR of single events is one element under `next`"
    return None


def _refused_output(query: alg.Query, paths: Machine) -> str | None:
    for node in (each.node for each in requested_in(query)):
        is_plain = all(reference.index is ex.Each.PLAIN for reference in ex.references_in(node))
        if node.function not in FUNCTIONS or node.distinct or node.monoid is not None:
            return f"{node.function.upper()} of whole matches is asked for"
        if node.argument is not None and (len(ex.variables_in(node)) != 1 or not is_plain):
            return "an aggregate speaks of more than each event of one variable"
    if any(first_event(query, paths, key.expression) is None for key in query.group_by):
        return "GROUP BY is neither of the partition nor of the first event"
    return None


def first_event(query: alg.Query, paths: Machine, key: ex.Expression) -> ex.Expression | None:
    """A key of GROUP BY as an expression over the first event of a match, or None when it speaks of another.

    All events of a partition agree on its key.
    """
    firsts = {paths.symbols[symbol][0] for state, symbol, _ in paths.moves if state == 0}
    if len(firsts) != 1:
        return None
    (first,) = firsts
    iterated = query.variables[first].iterated

    def is_of_first(reference: ex.Attribute) -> bool:
        if reference.path[0] in query.partition.attributes and len(reference.path) == 1:
            return not query.variables[reference.variable].optional
        index = reference.index
        is_one = index in (ex.Edge.FIRST, ex.Fixed(1)) or (index is ex.Each.PLAIN and not iterated)
        return reference.variable == first and is_one

    if ex.has_aggregate(key) or not all(map(is_of_first, ex.references_in(key))):
        return None
    return key.transform(
        lambda node: replace(node, variable=first, index=ex.Each.PLAIN) if isinstance(node, ex.Attribute) else node
    )


def keys_of(query: alg.Query, paths: Machine) -> dict[ex.Expression, ex.Expression]:
    """The keys of GROUP BY, each with its meaning for the first event of a match."""
    keys = (key.expression for key in query.group_by)
    return {key: found for key in keys if (found := first_event(query, paths, key)) is not None}


def needs_of(keys: Mapping[ex.Expression, ex.Expression]) -> dict[str, tuple[str, ...]]:
    """The attributes of the first event that keys are made of."""
    found: dict[str, dict[str, None]] = {}
    for expression in keys.values():
        for reference in ex.references_in(expression):
            found.setdefault(reference.variable, {})[reference.path[0]] = None
    return {name: tuple(attributes) for name, attributes in found.items()}


def requested_in(query: alg.Query) -> list[Requested]:
    """The aggregates of RETURN and HAVING, each once."""
    keys = {key.expression for key in query.group_by}

    def within(node: ex.Expression) -> Iterator[Requested]:
        if node in keys:
            return
        match node:
            case ex.Call(function="digits", arguments=(ex.Aggregate() as inner,)):
                yield Requested(inner, as_digits=True)
            case ex.Aggregate():
                yield Requested(node)
            case _:
                for child in node.children():
                    yield from within(child)

    written = [returned.expression for returned in query.returns]
    written += [query.having] if query.having is not None else []
    return list(dict.fromkeys(each for expression in written for each in within(expression)))


# --- ACEL formulas --------------------------------------------------------------------------------


NEIGHBOURS = {ex.BagOrder.SAME: "=", ex.BagOrder.INCREASING: ">", ex.BagOrder.DECREASING: "<"}


@dataclass(eq=False)
class _Leaf:
    """An event of a formula: the names it is bound to, and the conditions on it alone, under any of these."""

    type: str
    names: set[str]
    conditions: list[ex.Expression] = field(default_factory=list)

    @property
    def stand_in(self) -> str:
        """The variable that holds it instead: made of the names that distinguish it from others of its type."""
        return "+".join(sorted(self.names - {self.type})) or self.type

    @property
    def conditions_of_stand_in(self) -> list[ex.Expression]:
        """The conditions, each once."""
        return list(dict.fromkeys(ex.renamed(one, lambda _: self.stand_in) for one in self.conditions))


@dataclass
class _Formula:
    """What a formula says of its events; in a part that was read, they are numbered as `leaves` are."""

    leaves: list[_Leaf] = field(default_factory=list)
    # Each with the leaves of its variable where the filter stands.
    neighbours: list[tuple[ex.BagPredicate, list[_Leaf]]] = field(default_factory=list)
    orders: set[Selection] = field(default_factory=set)

    def read(self, node: alg.Node) -> alg.Node:
        """A part as SASE+ would write it."""
        begun, compared = len(self.leaves), len(self.neighbours)
        match node:
            case alg.Event(type=str() as type, condition=None):
                self.leaves.append(_Leaf(type, {node.variable}))
                return replace(node, variable=str(begun))
            case alg.Any():
                return alg.Any(tuple(map(self.read, node.parts)))
            case alg.Sequence(order=alg.Order.POSITION) | alg.Adjacent():
                parts = tuple(map(self.read, node.parts))
                self.orders.add(_order(node))
                return alg.Sequence(parts)
            case alg.Repeat(order=alg.Order.POSITION) | alg.RepeatAdjacent():
                part = self.read(node.part)
                if len(self.neighbours) > compared:
                    raise NotAPathError("a filter inside an iteration compares the events of each copy")
                self.orders.add(_order(node))
                least, most = (node.least, node.most) if isinstance(node, alg.Repeat) else (1, None)
                return alg.Repeat(part, least, most)
            case alg.Bind():
                part = self.read(node.part)
                for leaf in self.leaves[begun:]:
                    leaf.names.add(node.variable)
                return part
            case alg.Filter():
                part = self.read(node.part)
                kinds = alg.variables_of(node.part)
                for conjunct in ex.conjuncts(node.condition):
                    self._filter(conjunct, self.leaves[begun:], kinds)
                return part
            case _:
                raise NotAPathError.of(node)

    def _filter(self, conjunct: ex.Expression, leaves: list[_Leaf], kinds: Mapping[str, alg.Kind]) -> None:
        if not isinstance(conjunct, ex.Every | ex.BagPredicate):
            raise NotAPathError("a condition is a choice between predicates")
        held = [leaf for leaf in leaves if conjunct.variable in leaf.names]
        if isinstance(conjunct, ex.Every):
            for leaf in held:
                leaf.conditions += ex.conjuncts(conjunct.condition)
        elif kinds[conjunct.variable].iterated:  # one event alone satisfies every bag predicate (R27)
            self.neighbours.append((conjunct, held))

    def held_by(self, variable: str) -> list[_Leaf]:
        """The events that a variable holds in the end."""
        return [leaf for leaf in self.leaves if variable in leaf.names]

    def stand_in(self, variable: str) -> str:
        """The one name that holds just what a variable does."""
        held = self.held_by(variable)
        names = {leaf.stand_in for leaf in held}
        if len(names) > 1 or held != [leaf for leaf in self.leaves if leaf.stand_in in names]:
            raise NotAPathError(f"`{variable}` holds events that other variables tell apart")
        return names.pop()

    def renamed(self, expression: ex.Expression) -> ex.Expression:
        """An expression over stand-ins."""
        return ex.renamed(expression, self.stand_in)

    def conditions(self) -> Iterator[ex.Expression]:
        """The conditions on events and on neighbours, over stand-ins."""
        of: dict[str, list[ex.Expression]] = {}
        for leaf in self.leaves:
            own = leaf.conditions_of_stand_in
            if of.setdefault(leaf.stand_in, own) != own:
                raise NotAPathError("one variable has events under different conditions")
        yield from chain.from_iterable(of.values())
        for predicate, held in self.neighbours:
            variable = predicate.variable
            if held != self.held_by(variable):
                raise NotAPathError(f"a filter compares some of the events that `{variable}` holds in the end")
            name = self.stand_in(variable)
            # Larger than the last one is larger than all before.
            here, before = (ex.Attribute(name, predicate.path, ex.Running("i", offset)) for offset in (0, -1))
            yield ex.Comparison(NEIGHBOURS[predicate.order], here, before, where=predicate.where)


def _order(node: alg.Node) -> Selection:
    is_adjacent = isinstance(node, alg.Adjacent | alg.RepeatAdjacent)
    return Selection.PARTITION_CONTIGUOUS if is_adjacent else Selection.ANY


def as_paths(query: alg.Query) -> alg.Query:
    """A query over an ACEL formula in the terms of SASE+; to be counted by position. One of SASE+ is what it is.

    Raises `NotAPathError` when it cannot be expressed in these terms.
    """
    if not is_formula(query):
        return query
    formula = _Formula()
    core = formula.read(query.pattern.part if isinstance(query.pattern, alg.Within) else query.pattern)
    if len(formula.orders) > 1:
        raise NotAPathError("some of its events must be neighbours, and others need not")
    conditions = list(formula.conditions())

    def named(node: alg.Node) -> alg.Node:
        return (
            replace(node, variable=formula.leaves[int(node.variable)].stand_in) if isinstance(node, alg.Event) else node
        )

    core = core.transform(named)
    if conditions:
        core = alg.Filter(core, ex.all_of(*conditions))
    return replace(
        query,
        pattern=core if query.window_us is None else alg.Within(core, query.window_us),
        selection=next(iter(formula.orders), Selection.ANY),
        returns=tuple(replace(one, expression=formula.renamed(one.expression)) for one in query.returns),
        group_by=tuple(replace(one, expression=formula.renamed(one.expression)) for one in query.group_by),
        having=None if query.having is None else formula.renamed(query.having),
    )
