"""Read a query: whether its matches can be counted without being built, and the aggregates it requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tocsin.algebra import nodes as alg
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
        """As the query has it."""
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
