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
from tocsin.analysis.temporal import Network, network
from tocsin.analysis.types import DataType
from tocsin.language.ast import Selection
from tocsin.optimizer.rules import Facts, Optimized, Rule, optimize
from tocsin.optimizer.rules.infer_window import with_window

Attributes = Mapping[str, Mapping[str, "str | DataType"]]


@dataclass(frozen=True)
class BoundRule:
    """A query that fits its inputs, rewritten.

    Attributes
    ----------
    written
        The query before it was rewritten.
    bound
        The rewritten query and its types.
    rewrites
        The rules that changed it, one entry for each time.
    """

    written: alg.Query
    bound: BoundQuery
    rewrites: tuple[Rule, ...] = ()

    @property
    def query(self) -> alg.Query:
        """The rewritten query."""
        return self.bound.query

    @cached_property
    def network(self) -> Network:
        """The distances between its events.

        Raises
        ------
        ContradictoryDistancesError
            When no events can satisfy any alternative, also where a rewrite has removed the condition that says so.
        """
        found = network(self.written, self.bound.time, integer_time=self.bound.has_integer_time)
        if self.query is self.written:
            return found
        return network(self.query, self.bound.time, integer_time=self.bound.has_integer_time)


def prepare(query: alg.Query, schemas: Attributes, time: str | Mapping[str, str] = "ts") -> BoundRule:
    """Bind a query and rewrite it.

    Parameters
    ----------
    query
        The query, its durations in the unit of the times.
    schemas
        Event type → attribute → its type.
    time
        The time attribute, or that of each event type.

    Raises
    ------
    QueryBindingError, PlanError
        The one thing that is wrong, or a `QueryErrors` with all of them in the order of the text.
    """
    bound = bind(query, schemas, time=time)
    better = optimize(query, Facts(bound.schemas, bound.time, bound.has_integer_time))
    return BoundRule(query, replace(bound, query=better.query), better.fired)


def rewritten(query: alg.Query, time: str, schemas: Mapping[str, Schema] | None = None) -> Optimized:
    """The rewritten query and the rules that changed it, before there are inputs."""
    return optimize(query, Facts(schemas, time))


def types_of(query: alg.Query, schemas: Attributes, time: str | Mapping[str, str] = "ts") -> BoundQuery:
    """Bind a query as it is written, without rewriting it: for checks that report every problem."""
    return bind(query, schemas, time=time)


def distances_of(query: alg.Query, time: str | Mapping[str, str] = TIMESTAMP, *, integer_time: bool = False) -> Network:
    """Close the distances of a query as it is written, before there are inputs.

    Raises
    ------
    ContradictoryDistancesError
        When no events can satisfy any alternative.
    """
    return network(query, time, integer_time=integer_time)


def bounded(query: alg.Query, *, selected: bool = False) -> alg.Query:
    """The query of a rule with the window that its distances imply, also for single events.

    `selected` adds it under a policy that selects among events too: the caller knows that none further away matters.
    """
    if query.selection is not Selection.ANY and not selected:
        return query
    return with_window(query, network(query, TIMESTAMP))
