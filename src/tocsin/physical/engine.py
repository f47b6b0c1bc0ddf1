"""From a query and the user's DataFrames to the DataFrame of matches: check, plan, build. Nothing runs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.schema import bind
from tocsin.analysis.temporal import Network, network
from tocsin.physical import batch
from tocsin.physical.claims import unsupported
from tocsin.physical.describe import describe
from tocsin.physical.inputs import Inputs, resolve
from tocsin.physical.plan import Plan, common_clock, plan
from tocsin.physical.schemas import attributes_of
from tocsin.physical.values import Kind

log = logging.getLogger(__name__)
STRATEGIES = ("auto", "join")


@dataclass(frozen=True)
class Prepared:
    """A query that fits its inputs."""

    query: alg.Query
    inputs: Inputs
    distances: Network

    def matches(self) -> DataFrame:
        """The matches."""
        if self.inputs.is_streaming:
            self.distances.require_bounded()
            raise errors.UnsupportedError(
                "Matching on a streaming DataFrame does not run yet.",
                hint="read the same data as a batch, with `spark.read` instead of `spark.readStream`.",
            )
        chosen = planned(self.query, self.distances)
        times = {name: stream.time for name, stream in self.inputs.streams.items()}
        log.debug("plan of %s:\n%s", ", ".join(self.query.variables), describe(chosen, self.query.partition, times))
        return batch.matches(self.query, chosen, self.inputs)


def prepare(
    query: alg.Query,
    inputs: Any,
    *,
    time: str | Mapping[str, str] = "ts",
    tie: str | Iterable[str] | None = None,
    type: str = "type",
    id: str | None = None,
    strategy: str = "auto",
) -> Prepared:
    """Check a query against its inputs; all that is wrong with either is raised here."""
    if strategy not in STRATEGIES:
        raise errors.InvalidOptionError(
            f"There is no strategy `{strategy}`.",
            hint=errors.did_you_mean(strategy, STRATEGIES, "strategies"),
        )
    found = resolve(inputs, alg.event_types(query.pattern), time=time, tie=tie, type=type, id=id)
    bind(query, {name: attributes_of(stream.schema) for name, stream in found.streams.items()}, time=time)
    names = {stream.time for stream in found.streams.values()}
    is_integer = found.time_kind is Kind.INTEGER
    return Prepared(query, found, network(query, common_clock(names), integer_time=is_integer))


def planned(query: alg.Query, distances: Network) -> Plan:
    """The joins of a query, or the reason why there are none."""
    refusal = unsupported(query)
    if refusal is not None:
        raise refusal
    return plan(query, distances.closure)
