"""The report on a program before it runs: all its errors, strata, lifetimes and sizes of its rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tocsin import errors
from tocsin.algebra.programs import Program, Rule, sources
from tocsin.algebra.tree_text import table, to_text
from tocsin.algebra.units import check_unit, format_us
from tocsin.analysis.keys import Keys, keys, sharding
from tocsin.analysis.lifetimes import Lifetimes, lifetimes
from tocsin.analysis.rates import Arrivals, Rate, as_float, parse_rates
from tocsin.analysis.rules.arrivals import delays, with_derived
from tocsin.analysis.rules.declarations import attribute_type, schema_of
from tocsin.analysis.rules.emits import is_assignable
from tocsin.analysis.rules.program_state import ProgramState, program_state, rule_sizes
from tocsin.analysis.schema import TIME_KINDS, check_clock
from tocsin.analysis.sizes import SizeReport, require_within
from tocsin.analysis.temporal import Network
from tocsin.analysis.types import DataType, from_spark_name
from tocsin.explain.pattern_report import schemas_of, tie_problems
from tocsin.explain.planner import sharing_text
from tocsin.options import Demands, Options
from tocsin.plan.program_plan import ProgramPlan, program_plan, refusals, refused_on_streams
from tocsin.reports import Shown, sections


@dataclass(frozen=True)
class RuleReport:
    """The report on one rule."""

    rule: Rule
    network: Network
    lifetimes: Lifetimes
    keys: Keys
    sizes: SizeReport | None

    def __str__(self) -> str:
        """Its distances, lifetimes and, when rates are known, the size of its state."""
        parts = [str(self.network)] if has_distances(self.network) else []
        parts += [str(self.lifetimes)]
        parts += [str(self.sizes)] if self.sizes is not None else []
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """For tools."""
        return {
            "rule": self.rule.name,
            "stratum": self.rule.stratum,
            "reads": list(self.rule.reads),
            "emits": [emit.type for emit in self.rule.emits],
            "lifetimes_us": self.lifetimes.to_dict(),
            "sizes": None if self.sizes is None else self.sizes.to_dict(),
        }


@dataclass(frozen=True, repr=False)
class RulesReport(Shown):
    """The report on a program before anything runs."""

    program: Program
    rules: tuple[RuleReport, ...]  # the rules, by stratum
    # The rates of all event types, those of emitted events derived; empty when none are declared.
    rates: Mapping[str, Arrivals]
    state: ProgramState | None = None  # what all rules keep together; None when no rates are declared
    warnings: tuple[errors.TocsinWarning, ...] = ()  # what may not be meant

    @property
    def events(self) -> int | None:
        """The most events that all rules remember together; None when that is not known."""
        return None if self.state is None else self.state.events

    def __str__(self) -> str:
        """The report in sections."""
        parts = {"Rules": strata_text(self.program)}
        parts |= {f"Rule {each.rule.name}": str(each) for each in self.rules}
        if self.state is not None:
            parts["Rates"] = rates_text(self.rates, self.program)
            parts["State"] = str(self.state)
        parts["Engines"] = engines_text(self.program)
        if self.warnings:
            parts["Warnings"] = "\n".join(map(str, self.warnings))
        return sections(parts)

    def to_dict(self) -> dict[str, Any]:
        """The report for tools."""
        refused = refusals(self.program, "spark")
        return {
            "ok": True,
            "rules": [each.to_dict() for each in self.rules],
            "events": self.events,
            "state": None if self.state is None else self.state.to_dict(),
            "rates_per_second": {name: as_float(rate.per_second) for name, rate in self.rates.items()},
            "runs_on_spark": not refused,
            "refusal": next((reason.message for reason in refused.values()), None),
            "warnings": [warning.to_dict() for warning in self.warnings],
        }


def engines_text(program: Program) -> str:
    """Which rules run where; a rule above one that does not run does not run either."""
    refused, elsewhere = refusals(program, "spark"), refusals(program, "local")
    running = (rule for rule in program.rules if rule.name not in refused)
    live = {rule.name: reason for rule in running if (reason := refused_on_streams(rule, program.emitted)) is not None}
    if not elsewhere and not live:
        return "Spark, local and reference run every rule, Spark also on streams."
    lines = [
        f"rule {name}, {'reference' if name in refused else 'on Spark'} only: {refused.get(name, reason).message}"
        for name, reason in elsewhere.items()
    ]
    return "\n".join([*lines, *(f"rule {name}, not on streams: {reason.message}" for name, reason in live.items())])


def has_distances(network: Network) -> bool:
    """Whether there are two variables to have one."""
    return len(network.alternatives[0].variables) > 1


def strata_text(program: Program) -> str:
    """A table: one line per rule, in the order in which they are evaluated."""
    rows: list[tuple[str, ...]] = [
        (str(rule.stratum), rule.name, ", ".join(rule.reads), ", ".join(emit.type for emit in rule.emits) or "nothing")
        for rule in program.in_order
    ]
    return table(("stratum", "rule", "reads", "emits"), rows)


def rates_text(rates: Mapping[str, Arrivals], program: Program) -> str:
    """The rates, declared and derived."""
    emitted = set(program.emitted)
    rows: list[tuple[str, ...]] = [
        (name, str(rate), "derived" if name in emitted else "declared") for name, rate in rates.items()
    ]
    rows += [(name, "unknown", "derived") for name in program.emitted if name not in rates]
    return table(("type", "rate", "known"), rows)


def program_parts(program: Program) -> dict[str, str]:
    """How a program is understood: strata, the plan and the distances of each rule, and what rules share."""
    found, parts = program_plan(program, Options()), {"Rules": strata_text(program)}
    for rule, runs in zip(program.in_order, found.program.in_order, strict=True):
        distances = found.rule(runs).plan.rule.written_network
        emits = "".join(f"\n{to_text(emit).partition(chr(10))[0]}" for emit in rule.emits)
        plan = to_text(rule.query) + emits
        several = f"\n\n{distances}" if has_distances(distances) else ""
        parts[f"Rule {rule.name}"] = plan + several
    if len(program.rules) > 1:
        parts["Shared"] = sharing_text(found)
    parts["Streams"] = streams_text(program)
    return parts


def streams_text(program: Program) -> str:
    """How a live program is split, and how late what it emits comes; as far as the templates tell."""
    declared = {name: schema_of(template) for name, template in program.templates.items()}
    late = {name: delay.late_us for name, delay in delays(program).items() if delay.late_us}
    lines = [str(sharding(program, program.rules, declared))]
    return "\n".join(
        [*lines, *(f"{name} comes up to {format_us(by_us)} after its time" for name, by_us in late.items())]
    )


def checked_program(
    program: Program, schemas: Any, demands: Demands, warnings: tuple[errors.TocsinWarning, ...]
) -> RulesReport:
    """Check a program against schemas and rates; see `Rules.check`."""
    plan = program_plan(program, Options(tie=demands.ties))
    problems = errors.Problems()
    with errors.collecting(problems):
        check_unit(demands.time_unit)
    if schemas is not None:
        with errors.collecting(problems):
            types = list(sources(program))
            given = schemas_of(schemas, types, demands.type)
            _check_schemas(program, given, demands.time, problems)
            problems.extend(tie_problems(demands.ties, given, types))
            check_clock(demands.time_unit, given, demands.time, [rule.query for rule in program.rules])
    late_us, limit = demands.measures(problems)
    known, live_keys = {}, demands.live_keys
    with errors.collecting(problems):
        has_rates = isinstance(demands.rates, Mapping) and bool(demands.rates)
        is_asked = demands.streaming or has_rates or demands.max_state is not None
        known = rates_of(program, demands.rates, required=demands.guarantees and is_asked)
    errors.raise_all(problems)
    derived = with_derived(program, known, live_keys)
    reports = tuple(_rule_reports(plan, derived, late_us, live_keys))
    sized = [(each.rule, each.network, each.sizes) for each in reports if each.sizes is not None]
    state = program_state(sized, derived, live_keys)
    if limit is not None:
        require_within(limit, [store for _, store in state.stores], SMALLER, program.emitted)
    if not known:
        return RulesReport(program, tuple(replace(each, sizes=None) for each in reports), {}, None, warnings)
    return RulesReport(program, reports, derived, state, warnings)


SMALLER = (
    "shorten the distances of the variable, declare rates per key with `live_keys=` (`--live-keys`), or gather events "
    "with `all` in place of several variables."
)


def _rule_reports(
    plan: ProgramPlan, arrivals: Mapping[str, Arrivals], late_us: int, live_keys: int | None
) -> Iterator[RuleReport]:
    rules, late = plan.program.in_order, delays(plan.written)
    declared = {name: schema_of(template) for name, template in plan.program.templates.items()}
    sized = rule_sizes(rules, late, arrivals, schemas=declared, lateness_us=late_us, live_keys=live_keys)
    for rule, sizes in zip(rules, sized, strict=True):
        distances = plan.rule(rule).plan.rule.written_network
        yield RuleReport(rule, distances, lifetimes(rule.query, distances), keys(rule.query), sizes)


def rates_of(program: Program, rates: Mapping[str, Any] | None, *, required: bool = False) -> dict[str, Rate]:
    """The declared rates of a program's events."""
    problems = errors.Problems()
    outside = list(sources(program))
    if rates is not None and not isinstance(rates, Mapping):
        raise errors.InvalidOptionError(
            f"`rates` is a {type(rates).__name__}, not a mapping from event type to rate.",
            hint='write `{"Transfer": "100/s"}`.',
        )
    problems += [
        errors.InvalidOptionError(
            f"`rates` names `{errors.named(name)}`, which is no template of the program.",
            hint=errors.did_you_mean(name, outside, "templates from outside"),
        )
        for name in rates or {}
        if name not in program.templates
    ]
    known: dict[str, Rate] = {}
    with errors.collecting(problems):
        known = parse_rates(rates)
    missing = [name for name in outside if name not in (rates or {})] if required else []
    problems += [
        errors.MissingRateError(
            f"The largest rate of `{name}` is not declared, and no bound of the state follows without it.",
            where=program.templates[name].where,
            hint=f'declare it, `rates={{"{name}": "100/s"}}` or `--rate {name}=100/s`; `check(…, guarantees=False)` '
            "gives up the guarantee.",
            violates="S14",
        )
        for name in missing
    ]
    errors.raise_all(problems)
    return known


def _check_schemas(
    program: Program,
    given: Mapping[str, Mapping[str, str | DataType]],
    time: str | Mapping[str, str],
    problems: errors.Problems,
) -> None:
    """Every type from outside has an input with the attributes that its template declares (S17)."""
    for name in sources(program):
        template = program.templates[name]
        if name not in given:
            problems.add(
                errors.UnknownEventTypeError,
                f"Nothing provides events of template `{name}`: there is no input for it, and no rule emits it.",
                where=template.where,
                hint=errors.did_you_mean(name, given, "inputs"),
                violates="S17",
            )
            continue
        columns = {
            column: from_spark_name(kind) if isinstance(kind, str) else kind for column, kind in given[name].items()
        }
        clock = time if isinstance(time, str) else time.get(name, "")
        if clock not in columns:
            problems.add(
                errors.MissingColumnError,
                f"The input of `{name}` has no time column `{clock}`.",
                hint=errors.did_you_mean(clock, columns, f"`{name}` has") + " Choose one with `time=`.",
            )
        elif columns[clock].kind not in TIME_KINDS:
            problems.add(
                errors.TimeTypeError,
                f"The time column `{clock}` of `{name}` is {columns[clock].describe()}.",
                hint="it must be a timestamp, or an integer in microseconds.",
            )
        for attribute in template.attributes:
            declared, found = attribute_type(attribute), columns.get(attribute.name)
            if found is None:
                problems.add(
                    errors.MissingColumnError,
                    f"The input of `{name}` has no column `{attribute.name}`, which its template declares.",
                    where=template.where,
                    hint=errors.did_you_mean(attribute.name, columns, f"`{name}` has"),
                )
            elif not is_assignable(declared, found):
                problems.add(
                    errors.TypeMismatchError,
                    f"`{name}.{attribute.name}` is declared as {attribute.domain}, and the input has "
                    f"{found.describe()}.",
                    where=template.where,
                    hint="declare another type, or convert the column.",
                    violates="S15",
                )
