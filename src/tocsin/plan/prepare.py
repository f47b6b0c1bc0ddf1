"""Prepare a query: bind it to the schemas of its event types, rewrite it, and close the distances of the result.

Input    a query of the algebra; the schemas of its event types and the names of their time attributes, or, before there
         are inputs, the name of the time attribute alone
Output   a `BoundRule`

Every engine and `explain` prepare queries here, so that all of them run the same rewrites. The temporal network is that
of the rewritten query: planning looks alternatives up by value, and a rewrite may change the condition of an absence
inside one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import TIMESTAMP
from tocsin.analysis.attributes import Schema
from tocsin.analysis.schema import BoundQuery, bind
from tocsin.analysis.temporal import Facts, Network, network
from tocsin.analysis.types import DataType
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.language.sase.printer import print_expression
from tocsin.optimizer.query_parts import is_pythons
from tocsin.optimizer.rules import Rule, optimize, with_window

Attributes = Mapping[str, Mapping[str, "str | DataType"]]


@dataclass(frozen=True)
class BoundRule:
    """A rewritten query, and its types where it is bound to inputs."""

    written: alg.Query  # the query before it was rewritten
    query: alg.Query
    facts: Facts  # what the rewrites were told: schemas, and the time attribute that all types share
    types: BoundQuery | None = None  # the rewritten query and its types; None before there are inputs
    rewrites: tuple[Rule, ...] = ()  # the rules that changed it, one entry for each time

    @property
    def bound(self) -> BoundQuery:
        """The rewritten query and its types."""
        assert self.types is not None  # nothing runs before there are inputs
        return self.types

    @cached_property
    def network(self) -> Network:
        """The distances between its events.

        Raises
        ------
        ContradictoryDistancesError
            When no events can satisfy any alternative, also where a rewrite has removed the condition that says so.
        """
        found = self.written_network
        return found if self.query is self.written else self.facts.distances(self.query)

    @cached_property
    def written_network(self) -> Network:
        """The distances between its events as it is written: what `check` reports on."""
        return self.facts.distances(self.written)


def prepare(query: alg.Query, schemas: Attributes, time: str | Mapping[str, str] = "ts") -> BoundRule:
    """Bind a query, its durations in the unit of the times, and rewrite it.

    Raises `QueryBindingError` or `PlanError`, or a `QueryErrors` with all that is wrong in the order of the text.
    """
    bound = bind(query, schemas, time=time)
    found = rewritten(query, bound.time, bound.schemas, integer_time=bound.has_integer_time)
    return replace(found, types=replace(bound, query=found.query))


def rewritten(
    query: alg.Query,
    time: str | Mapping[str, str],
    schemas: Mapping[str, Schema] | None = None,
    *,
    integer_time: bool = False,
) -> BoundRule:
    """Rewrite a query before there are inputs; `time` is the time attribute, or that of each event type."""
    facts = Facts(schemas, time, integer_time)
    better = optimize(query, facts)
    return BoundRule(query, better.query, facts, rewrites=better.fired)


def distances_of(query: alg.Query) -> Network:
    """Close the distances of a rule as it is written.

    Raises
    ------
    ContradictoryDistancesError
        When no events can satisfy any alternative.
    """
    return network(query, TIMESTAMP)


def bounded(query: alg.Query, *, selected: bool = False) -> alg.Query:
    """The query of a rule with the window that its distances imply, also for single events.

    `selected` adds it under a policy that selects among events too: the caller knows that none further away matters.
    """
    if query.selection is not Selection.ANY and not selected:
        return query
    return with_window(query, distances_of(query))


# --- values that only Python computes -------------------------------------------------------------

# User-defined functions and aggregates in RETURN, HAVING and emitted events. The largest parts that Spark computes
# become columns; an aggregate of the user is folded over the array that `COLLECT` gives for its argument.

ROW = "__tocsin_row"
VALUE = "value"  # of a member of a collected bag


@dataclass(frozen=True)
class Split:
    """A query whose values are native, and the values of the original over its columns."""

    query: alg.Query
    # By name: the expression that Python computes over the native columns, or None for a native column itself.
    values: tuple[tuple[str, ex.Expression | None], ...]
    texts: tuple[str, ...]  # the values as written, for messages
    # Native columns that hold the values of a bag; each is a variable of the expressions.
    collected: tuple[str, ...] = ()
    having: ex.Expression | None = None  # the condition that Python decides, or None

    @property
    def is_native(self) -> bool:
        """Whether there is nothing left for Python."""
        return self.having is None and all(value is None for _, value in self.values)


def split(query: alg.Query) -> Split:
    """Take the values of a query apart: the largest parts that Spark computes become columns.

    >>> from tocsin.language.user_defined import function
    >>> from tocsin.language import rule_expressions as rx
    >>> x = ex.Arithmetic("+", ex.Attribute("a", ("x",)), ex.Literal(1))
    >>> called = rx.Apply("f", function(abs, gives="bigint", pure=True), (x, ex.Literal(2)))
    >>> made = split(alg.Query(alg.Event("A", "a"), returns=(alg.Returned("y", called),)))
    >>> [returned.expression == x for returned in made.query.returns], made.is_native
    ([True], False)
    """
    returns: list[alg.Returned] = []
    values: list[tuple[str, ex.Expression | None]] = []
    collected: list[str] = []
    keys = {one.expression for one in query.group_by}
    decides = query.having is not None and _needs_python(query.having)
    written = query.returns
    if decides and not written:
        written = tuple(alg.Returned(name, ex.Variable(name)) for name in query.variables)

    def native(node: ex.Expression) -> str:
        name = f"__tocsin_p{len(returns)}"
        returns.append(alg.Returned(name, node))
        return name

    def part(node: ex.Expression) -> ex.Expression:
        if isinstance(node, ex.Aggregate) and node.monoid is not None and node.argument is not None:
            name = native(ex.Aggregate("collect", node.argument, node.distinct, where=node.where))
            collected.append(name)
            return replace(node, argument=ex.Attribute(name, (VALUE,)), distinct=False)
        if node not in keys and _needs_python(node):
            return node.map_children(part)
        if not ex.variables_in(node) and not ex.has_aggregate(node):
            return node
        return ex.Attribute(ROW, (native(node),))

    for returned in written:
        if returned.expression not in keys and _needs_python(returned.expression):
            values.append((returned.name, part(returned.expression)))
        else:
            returns.append(returned)
            values.append((returned.name, None))
    texts = tuple(print_expression(returned.expression) for returned in written)
    having = part(query.having) if decides and query.having is not None else None
    rest = replace(query, returns=tuple(returns), having=None if decides else query.having)
    return Split(rest, tuple(values), texts, tuple(collected), having)


def _needs_python(expression: ex.Expression) -> bool:
    return any(map(is_pythons, expression.walk()))
