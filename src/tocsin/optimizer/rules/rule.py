"""A rewrite rule: a name, a sentence, and a function from a query to a query that means the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema
from tocsin.analysis.temporal import Network, network


@dataclass(frozen=True)
class Facts:
    """The schemas and the clock of a query."""

    schemas: Mapping[str, Schema] | None = None  # the schemas of its event types; None before there are inputs
    # The name of the time attribute, or that of each event type; None where distances are not to be closed.
    time: str | Mapping[str, str] | None = None
    integer_time: bool = False  # whether times are integers

    def distances(self, query: alg.Query) -> Network:
        """The distances between the events of a query, closed."""
        assert self.time is not None
        return network(query, self.time, integer_time=self.integer_time)


NO_FACTS = Facts()


@dataclass(frozen=True)
class Rule:
    """A rewrite rule."""

    name: str  # that of its module
    summary: str  # what it does, for `explain()`
    # Returns a query with the same matches on every stream, under every policy, with the same columns and ids. A query
    # that it cannot improve is returned unchanged.
    apply: Callable[[alg.Query, Facts], alg.Query] = field(repr=False)
