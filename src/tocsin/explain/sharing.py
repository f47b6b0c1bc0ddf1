"""What the rules of a program share when they are matched together: scans, shuffles, beginnings of their patterns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tocsin.algebra.programs import TIMESTAMP, Program, Rule
from tocsin.analysis.durations import format_us
from tocsin.analysis.rules.declarations import schema_of
from tocsin.kernels.reach import reach_of, width_us
from tocsin.optimizer.prefixes import Prefix, first_variables, prefixes
from tocsin.plan.prepare import bounded, rewritten
from tocsin.plan.programs import groups_of, has_other_keys, is_shared, refusals


def sharing_text(program: Program) -> str:
    """Stratum by stratum, as far as the templates tell: a domain whose type the data decides may be a key too."""
    refused = refusals(program, "spark")
    lines: list[str] = []
    for stratum in sorted({rule.stratum for rule in program.rules}):
        rules = [rule for rule in program.in_order if rule.stratum == stratum and rule.name not in refused]
        optimized = [_optimized(program, rule) for rule in rules]
        together = [rule for rule in optimized if is_shared(rule) and not _has_other_keys(program, rule)]
        lines += [f"stratum {stratum}", *(f"  {line}" for line in (_stratum(program, together) if together else ()))]
        lines += [f"  {rule.name}: by itself" for rule in optimized if rule not in together]
    lines += [f"{name}: reference only" for name in refused]
    return "\n".join(lines)


def _optimized(program: Program, rule: Rule) -> Rule:
    schemas = {name: schema_of(program.templates[name]) for name in rule.reads}
    return replace(rule, query=rewritten(bounded(rule.query), TIMESTAMP, schemas).query)


def _has_other_keys(program: Program, rule: Rule) -> bool:
    return has_other_keys(rule.query, {name: schema_of(program.templates[name]) for name in rule.reads})


def _stratum(program: Program, rules: Sequence[Rule]) -> Iterator[str]:
    reads = dict.fromkeys(name for rule in rules for name in rule.reads)
    emitted = [name for name in reads if name in program.emitters]
    outside = [name for name in reads if name not in emitted]
    if outside:
        yield f"scan {', '.join(outside)} once"
    if emitted:
        yield f"take {', '.join(emitted)} from the matches of lower strata"
    of_group, keys = groups_of([rule.query.partition.attributes for rule in rules])
    for number, key in enumerate(keys):
        members = [rule for rule, group in zip(rules, of_group, strict=True) if group == number]
        widths = [width_us(reach_of(rule.query)) or 0 for rule in members]
        by = f"key {', '.join(key)} and " if key else ""
        yield f"shuffle by {by}time slices of {format_us(max(widths))}: {_names(members)}"
    found = prefixes([rule.query for rule in rules])
    for prefix in found:
        yield _beginning(prefix, found, rules)


def _beginning(prefix: Prefix, found: Sequence[Prefix], rules: Sequence[Rule]) -> str:
    first = rules[prefix.members[0]]
    types = {name: kind.types[0] for name, kind in first.query.variables.items()}
    begun = 0 if prefix.before is None else found[prefix.before].size
    shown = [f"{name} : {types[name]}" for name in first_variables(first.query, prefix.size)]
    more = "…, " if begun else ""
    return f"search {more}{', '.join(shown[begun:])} once: {_names([rules[number] for number in prefix.members])}"


def _names(rules: Sequence[Rule]) -> str:
    return ", ".join(rule.name for rule in rules)
