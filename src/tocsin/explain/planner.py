"""The sections of `explain()` on the plan: distances, rewrite rules, statistics, the choice and what runs.

Of a program: what its rules share when they are matched together, scans, shuffles, beginnings of their patterns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tocsin.algebra.tree_text import table
from tocsin.algebra.units import format_us
from tocsin.analysis.temporal import Network
from tocsin.kernels.reach import reach_of, width_us
from tocsin.optimizer import rules as rewrites
from tocsin.optimizer.choose import Choice, Option
from tocsin.optimizer.rules import RULES
from tocsin.optimizer.shared_prefixes import Prefix, first_variables, prefixes
from tocsin.optimizer.statistics import Statistics, spaced
from tocsin.plan.plan import Plan
from tocsin.plan.program_plan import ProgramPlan, refusals
from tocsin.plan.rule_plan import RulePlan, groups_of
from tocsin.plan.strategies import unsupported


def planner_sections(fired: Iterable[rewrites.Rule], statistics: Statistics | None, choice: Choice) -> dict[str, str]:
    """The texts by heading, in the order they are shown."""
    return {
        "Rules": rules_text(fired),
        "Statistics": statistics_text(statistics),
        "Strategy": choice_text(choice),
    }


def rules_text(fired: Iterable[rewrites.Rule], rules: Iterable[rewrites.Rule] = RULES) -> str:
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


# --- what runs ------------------------------------------------------------------------------------


def plan_sections(plan: Plan) -> dict[str, str]:
    """A plan and the reasons for it."""
    refusal = unsupported(plan.query)
    if refusal is not None:
        return {"Strategy": f"none on Spark: {refusal.message}\nHint: {refusal.hint}"}
    if plan.is_streaming:
        return {"Rules": rules_text(plan.rule.rewrites), "Stream": plan.describe()}
    parts = planner_sections(plan.rule.rewrites, plan.options.known, plan.choice)
    text = plan.describe()
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


# --- what rules share -----------------------------------------------------------------------------


def sharing_text(plan: ProgramPlan) -> str:
    """The shared searches stratum by stratum; without inputs a domain whose type the data decides may be a key too."""
    refused = refusals(plan.program, "spark")
    lines: list[str] = []
    for stratum in plan.strata(plan.program.in_order):
        shared = [one for one in stratum.shared if one.rule.name not in refused]
        alone = [one.rule.name for one in stratum.alone if one.rule.name not in refused]
        lines += [f"stratum {stratum.number}", *(f"  {line}" for line in (_stratum(plan, shared) if shared else ()))]
        lines += [f"  {name}: by itself" for name in alone]
    lines += [f"{name}: reference only" for name in refused]
    return "\n".join(lines)


def _stratum(plan: ProgramPlan, rules: Sequence[RulePlan]) -> Iterator[str]:
    reads = dict.fromkeys(name for one in rules for name in one.rule.reads)
    emitted = [name for name in reads if name in plan.program.emitters]
    outside = [name for name in reads if name not in emitted]
    if outside:
        yield f"scan {', '.join(outside)} once"
    if emitted:
        yield f"take {', '.join(emitted)} from the matches of lower strata"
    of_group, keys = groups_of([one.key for one in rules])
    for number, key in enumerate(keys):
        members = [one for one, group in zip(rules, of_group, strict=True) if group == number]
        widths = [width_us(reach_of(one.plan.query)) or 0 for one in members]
        by = f"key {', '.join(key)} and " if key else ""
        yield f"shuffle by {by}time slices of {format_us(max(widths))}: {_names(members)}"
    found = prefixes([one.plan.query for one in rules])
    for prefix in found:
        yield _beginning(prefix, found, rules)


def _beginning(prefix: Prefix, found: Sequence[Prefix], rules: Sequence[RulePlan]) -> str:
    query = rules[prefix.members[0]].plan.query
    types = {name: kind.types[0] for name, kind in query.variables.items()}
    begun = 0 if prefix.before is None else found[prefix.before].size
    shown = [f"{name} : {types[name]}" for name in first_variables(query, prefix.size)]
    more = "…, " if begun else ""
    return f"search {more}{', '.join(shown[begun:])} once: {_names([rules[number] for number in prefix.members])}"


def _names(rules: Sequence[RulePlan]) -> str:
    return ", ".join(one.rule.name for one in rules)
