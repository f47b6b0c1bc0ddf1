"""The sections of `explain()` on the plan: distances, rewrite rules, statistics, the choice and what runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tocsin.algebra import nodes as alg
from tocsin.analysis.formatting import table
from tocsin.analysis.temporal import Network
from tocsin.optimizer.choose import Choice, Option, choose
from tocsin.optimizer.rules import RULES, Rule
from tocsin.optimizer.statistics import Statistics, spaced
from tocsin.plan.joins.build import plan
from tocsin.plan.joins.describe import describe
from tocsin.plan.prepare import distances_of, rewritten
from tocsin.plan.strategies import STRATEGIES, unsupported, weighed
from tocsin.plan.strategies.join import Join

if TYPE_CHECKING:
    from tocsin.physical.engine import Prepared


def planner_sections(
    fired: Iterable[Rule], statistics: Statistics | None, choice: Choice, rules: Iterable[Rule] = RULES
) -> dict[str, str]:
    """The texts by heading, in the order they are shown."""
    return {
        "Rules": rules_text(fired, rules),
        "Statistics": statistics_text(statistics),
        "Strategy": choice_text(choice),
    }


def rules_text(fired: Iterable[Rule], rules: Iterable[Rule] = RULES) -> str:
    """The rules that changed the query, and those that found nothing to change.

    >>> print(rules_text([RULES[0], RULES[0]], RULES[:2]))
    fold_constants ×2: constants in conditions are computed once
    tried without effect: drop_idle_absences
    """
    fired, rules = tuple(fired), tuple(rules)
    times = Counter(rule.name for rule in fired)
    lines = [
        f"{rule.name}{f' ×{times[rule.name]}' if times[rule.name] > 1 else ''}: {rule.summary}"
        for rule in {rule.name: rule for rule in (*rules, *fired)}.values()
        if times[rule.name]
    ]
    idle = [rule.name for rule in rules if not times[rule.name]]
    return "\n".join([*lines, *([f"tried without effect: {', '.join(idle)}"] if idle else [])])


def statistics_text(statistics: Statistics | None) -> str:
    """The statistics, or what to do to have some."""
    if statistics is None:
        return "none: the strategy is the default; `analyze(inputs)` measures them with a job"
    return str(statistics)


def choice_text(choice: Choice) -> str:
    """The choice, its reason, what else was weighed, and the numbers an engine takes from it."""
    lines = [f"{choice.strategy or 'none'}: {choice.reason}"]
    if choice.options:
        lines.append(table(("strategy", "", "cost"), [_row(option, choice) for option in choice.options]))
    if choice.strategy == "join":
        lines += [f"join order: {', '.join(order)}" for order in choice.join_orders.values() if len(order) > 1]
    if choice.strategy == "join" and choice.prefilter is not None:
        lines.append(f"prefilter: only events near one of `{choice.prefilter}`")
    if choice.matches is not None and choice.matches_per_start is not None:
        per_start = spaced(choice.matches_per_start)
        lines.append(f"expected: {spaced(choice.matches)} matches, at most {per_start} from one start")
    if choice.warning is not None:
        lines.append(f"warning: {choice.warning}")
    return "\n".join(lines)


def _row(option: Option, choice: Choice) -> tuple[str, ...]:
    mark = "chosen" if option.strategy == choice.strategy else ""
    if option.refusal is not None:
        return (option.strategy, mark, f"not possible: {option.refusal}")
    return (option.strategy, mark, "not known" if option.cost is None else str(option.cost))


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
    distances = distances_of(query, clock)
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
