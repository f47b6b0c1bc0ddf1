"""The sections of `explain()` on the plan: the network of distances, the rules, the choice and what runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tocsin.analysis.temporal import Network
from tocsin.optimizer.text import planner_sections, rules_text
from tocsin.plan.plan import Plan
from tocsin.plan.strategies import unsupported

if TYPE_CHECKING:
    from tocsin.physical.engine import Prepared


def plan_with_inputs(prepared: Prepared) -> dict[str, str]:
    """What runs on these inputs, and why."""
    if not prepared.inputs.is_streaming or unsupported(prepared.query) is not None:
        return plan_sections(prepared.plan, prepared.describe)
    return {"Rules": rules_text(prepared.plan.rule.rewrites), "Stream": prepared.describe_stream()}


def plan_sections(plan: Plan, describe: Callable[[], str]) -> dict[str, str]:
    """A plan and the reasons for it; `describe` tells what runs."""
    refusal = unsupported(plan.query)
    if refusal is not None:
        return {"Strategy": f"none on Spark: {refusal.message}\nHint: {refusal.hint}"}
    parts = planner_sections(plan.rule.rewrites, plan.options.known, plan.choice)
    text = describe()
    parts["Strategy"] += f"\n{text}" if text else ""
    return parts


def network_text(distances: Network) -> str:
    """The distances, and what is unbounded."""
    pair = distances.unbounded_pair()
    if pair is None:
        return str(distances)
    x, y = pair
    what = f"{x} may repeat for ever" if x == y else f"{x} and {y} may lie arbitrarily far apart"
    return f"{distances}\nunbounded: {what}"
