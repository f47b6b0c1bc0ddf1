"""The sections of `explain()` on the plan: the network of distances, the rules, the choice and what runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tocsin.algebra import nodes as alg
from tocsin.analysis.temporal import Network, network
from tocsin.optimizer.choose import choose
from tocsin.optimizer.statistics import Statistics
from tocsin.optimizer.text import planner_sections, rules_text
from tocsin.plan.joins.build import plan
from tocsin.plan.joins.describe import describe
from tocsin.plan.prepare import rewritten
from tocsin.plan.strategies import STRATEGIES, unsupported, weighed
from tocsin.plan.strategies.join import Join

if TYPE_CHECKING:
    from tocsin.physical.engine import Prepared


def plan_with_inputs(prepared: Prepared) -> dict[str, str]:
    """What runs on these inputs, and why."""
    refusal = unsupported(prepared.query)
    if refusal is not None:
        return {"Strategy": f"none on Spark: {refusal.message}\nHint: {refusal.hint}"}
    if prepared.inputs.is_streaming:
        return {"Rules": rules_text(prepared.plan.rule.rewrites), "Stream": prepared.describe_stream()}
    parts = planner_sections(prepared.plan.rule.rewrites, prepared.options.known, prepared.choice)
    parts["Strategy"] += f"\n{prepared.describe()}"
    return parts


def plan_without_inputs(
    query: alg.Query,
    time: str | Mapping[str, str],
    clock: str,
    strategy: str,
    statistics: Statistics | None,
) -> dict[str, str]:
    """What would run, as far as the query alone decides it."""
    refusal = unsupported(query)
    if refusal is not None:
        return {"Strategy": f"none on Spark: {refusal.message}\nHint: {refusal.hint}"}
    query, fired = rewritten(query, clock)
    distances = network(query, clock)
    choice = choose(query, distances, weighed(query, strategy), statistics, strategy=strategy, time=clock)
    parts = planner_sections(fired, statistics, choice)
    chosen = STRATEGIES.get(choice.strategy or "")
    if isinstance(chosen, Join) and chosen.refuses(query) is None:
        joins = plan(
            query,
            distances.closure,
            order=lambda names: choice.join_orders.get(frozenset(names), ()),
            prefilter=None if chosen.is_sliding else choice.prefilter,
            sliding=chosen.is_sliding,
        )
        parts["Strategy"] += f"\n{describe(joins, query.partition, time)}"
    elif chosen is not None and (text := chosen.describe_query(query, choice.slice_us if statistics else None)):
        parts["Strategy"] += f"\n{text}"
    return parts


def network_text(distances: Network) -> str:
    """The distances, and what is unbounded."""
    pair = distances.unbounded_pair()
    if pair is None:
        return str(distances)
    x, y = pair
    what = f"{x} may repeat for ever" if x == y else f"{x} and {y} may lie arbitrarily far apart"
    return f"{distances}\nunbounded: {what}"
