"""Facts about a query that rewrite rules may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
