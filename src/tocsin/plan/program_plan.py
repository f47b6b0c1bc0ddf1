"""The plan of a program: the plan of every rule, the types of emitted events, and which rules share a search.

Input    a program; the attributes of the events that come from outside, or, before there are inputs, of its templates
Output   a `ProgramPlan`, which `match`, `check` and `explain` read

A rule is planned as a pattern is; what it reads may be emitted by others, with the types that these emit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.nodes import compares_ties, ordered_by_ties
from tocsin.algebra.programs import TIMESTAMP, Program, Rule, Template, emitting
from tocsin.algebra.units import counting
from tocsin.analysis.attributes import Schema
from tocsin.analysis.result_types import common_type
from tocsin.analysis.rules.declarations import schema_of
from tocsin.analysis.schema import Schemas, unit_of, value_types
from tocsin.analysis.types import INTEGER, NULL, DataType, Kind
from tocsin.errors import UnsupportedError
from tocsin.gaps import Gaps
from tocsin.kernels.reach import MOST_GROUPS
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.options import Options, untimed
from tocsin.plan.codec import decode, encode, reading
from tocsin.plan.plan import Plan
from tocsin.plan.prepare import bounded, prepare, rewritten
from tocsin.plan.rule_plan import RulePlan, Stratum, asked_frames, groups_of
from tocsin.plan.strategies import AGGREGATE, JOIN, KERNEL, unsupported
from tocsin.plan.strategy import CONTIGUOUS, LOCALLY, ON_SPARK

MADE_OF = ("written", "program", "options", "schemas", "shared_input", "is_streaming")
ON = {"spark": ON_SPARK, "local": LOCALLY}


# --- what an engine refuses -----------------------------------------------------------------------


def refusals(program: Program, engine: str) -> dict[str, UnsupportedError]:
    """By name, the rules that an engine does not run, each with the first reason."""
    return {rule.name: reason for rule in program.rules if (reason := refused(rule, engine)) is not None}


def refused(rule: Rule, engine: str, strategy: str = "auto") -> UnsupportedError | None:
    """The first construct of a rule that an engine does not run, or None."""
    if strategy == "aggregate" and (reason := AGGREGATE.refuses(rule.query, engine=ON[engine])) is not None:
        return reason
    queries = (rule.query, *(emitting(rule, emit) for emit in rule.emits))
    return next((reason for query in queries if (reason := unsupported(query, ON[engine])) is not None), None)


def refused_on_streams(rule: Rule, emitted: Collection[str]) -> UnsupportedError | None:
    """The first construct of a rule that does not run on a stream, or None; `emitted` are the types that rules emit."""
    for asked in asked_frames(rule):
        kind = next((rule.types[name] for name in ex.variables_in(asked) if rule.types[name] in emitted), None)
        if kind is not None:
            return UnsupportedError(
                f"The rule `{rule.name}` asks a table that is a DataFrame about `{kind}`, which rules emit: on a "
                "stream nobody can join what is found in a worker.",
                gap=Gaps.TABLE_OF_EMITTED_EVENTS,
                where=rule.where,
            )
    return None


# --- the plan -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ProgramPlan:
    """How the rules of a program run."""

    written: Program  # the rules as they are written: their times are called `timestamp`
    program: Program  # the rules as they run: bounded, ordered by tie columns (R41), time called as the data does
    options: Options  # the options, in the unit of the times; `time` is a mapping
    schemas: Schemas | None  # the attributes of the events from outside, by type; None before there are inputs
    shared_input: bool = False  # whether one input, with a type column, has all events from outside
    is_streaming: bool = False
    _types: dict[str, dict[str, DataType]] = field(default_factory=dict, init=False, repr=False)
    _emitted: dict[str, dict[str, DataType]] = field(default_factory=dict, init=False, repr=False)
    _plans: dict[str, RulePlan] = field(default_factory=dict, init=False, repr=False)

    @property
    def times(self) -> Mapping[str, str]:
        """The time column of every event type."""
        return self.options.times

    # --- rules ------------------------------------------------------------------------------------

    def needed(self, wanted: Iterable[Rule]) -> list[Rule]:
        """The rules, and all that emit what they read."""
        rules = list(wanted)
        known = {rule.name for rule in rules}
        for rule in rules:  # grows while it is read
            rules += (new := [one for one in self.emitting(rule.reads) if one.name not in known])
            known.update(one.name for one in new)
        return rules

    def emitting(self, types: Iterable[str]) -> list[Rule]:
        """The rules that emit events of some types, in the order of the program."""
        found = [self.program.emitters[name] for name in types if name in self.program.emitters]
        if len(found) < 2:
            return [rule for each in found for rule in each.values()]
        return [rule for rule in self.program.rules if any(rule.name in each for each in found)]

    def emits(self, template: str) -> list[tuple[Rule, alg.Emit]]:
        """The emits that make events of a template, each with its rule."""
        return [(rule, emit) for rule in self.emitting([template]) for emit in rule.emits if emit.type == template]

    def reads_derived(self, rule: Rule) -> bool:
        """Whether a rule reads what rules emit."""
        return any(name in self.program.emitters for name in rule.reads)

    def rule(self, rule: Rule) -> RulePlan:
        """The plan of a rule."""
        if rule.name not in self._plans:
            plan = self.plan_of(rule, rule.query)
            self._plans[rule.name] = RulePlan(self._numbers[rule.name], rule, plan, self.reads_derived(rule))
        return self._plans[rule.name]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {rule.name: number for number, rule in enumerate(self.program.rules)}

    def plan_of(self, rule: Rule, query: alg.Query) -> Plan:
        """The plan of a rule whose query has these columns."""
        is_derived = self.reads_derived(rule)
        # Events that rules emit are identified by their values.
        options = replace(self.options, id=None, tie=None) if is_derived else self.options
        names = alg.event_types(query.pattern)
        with counting(self.options.unit.microseconds):
            if self.schemas is None:
                declared = {name: schema_of(self.program.templates[name]) for name in names}
                return Plan(rewritten(query, TIMESTAMP, declared), options, dict.fromkeys(names, TIMESTAMP))
            bound = prepare(query, {name: self.types_of(name) for name in names}, self.times)
            _ = bound.network
        reads_all = self.reads_all(rule)
        plan = Plan(
            bound,
            options,
            {name: self.times[name] for name in names},
            one_input=reads_all or len(names) == 1,
            shared_input=reads_all,
            is_streaming=self.is_streaming,
            engine=ON[self.options.engine],
        )
        if self.is_streaming or plan.engine != ON_SPARK or plan.strategy is not KERNEL:
            return plan
        # Distances of rules are days: without a key, loops would compare all events of two windows.
        return replace(plan, options=replace(options, strategy=JOIN.name)) if plan.is_only_joined_by_keys else plan

    def reads_all(self, rule: Rule) -> bool:
        """Whether a rule, by itself, reads the one input with a type column as it is."""
        return self.shared_input and not self.reads_derived(rule) and rule.query.selection not in CONTIGUOUS

    def strata(self, wanted: Iterable[Rule]) -> list[Stratum]:
        """The strata of some rules and of all that emit what they read, from the lowest."""
        rules = self.needed(wanted)
        return [
            self._stratum(number, [self.rule(rule) for rule in rules if rule.stratum == number])
            for number in sorted({rule.stratum for rule in rules})
        ]

    def _stratum(self, number: int, rules: Sequence[RulePlan]) -> Stratum:
        """Share one search among the rules that gain by it, as far as the bits of a row can name their groups."""
        shared: list[RulePlan] = []
        for one in rules:
            if one.is_shareable and len(groups_of([*(each.key for each in shared), one.key])[1]) <= MOST_GROUPS:
                shared.append(one)
        return Stratum(number, tuple(shared), tuple(one for one in rules if one not in shared))

    # --- types ------------------------------------------------------------------------------------

    def types_of(self, name: str) -> Mapping[str, DataType]:
        """The attributes of an event type: those of the input, of what rules emit, or of both."""
        if name not in self.program.emitters:
            return self._given(name)
        if name not in self._types:
            found: list[Mapping[str, DataType]] = [self.emitted_types(name)]
            if name in (self.schemas or {}):
                given = self._given(name)
                found.append({column: given.get(column, NULL) for column in self.columns_of(name)})
            self._types[name] = self._common_types(name, found)
        return self._types[name]

    def _given(self, name: str) -> Mapping[str, DataType]:
        assert self.schemas is not None
        return Schema.of(name, self.schemas[name]).attributes

    def columns_of(self, template: str) -> list[str]:
        """The columns that the events of a template have."""
        return columns_of(self.program.templates[template], self.times[template])

    def emitted_types(self, template: str) -> dict[str, DataType]:
        """The attributes of the events that rules emit."""
        if template not in self._emitted:
            found = [self._value_types(rule, emit) for rule, emit in self.emits(template)]
            self._emitted[template] = self._common_types(template, found)
        return self._emitted[template]

    def _value_types(self, rule: Rule, emit: alg.Emit) -> dict[str, DataType]:
        at, *values = value_types(self.rule(rule).plan.rule.bound, [emit.at, *(value for _, value in emit.values)])
        # The mean of integer times is rounded down.
        time = {self.times[emit.type]: INTEGER if at.kind is Kind.DOUBLE else at}
        return time | {name: found for (name, _), found in zip(emit.values, values, strict=True)}

    def _common_types(self, template: str, found: Sequence[Mapping[str, DataType]]) -> dict[str, DataType]:
        common: dict[str, DataType] = {}
        for name in self.columns_of(template):
            kinds = [one[name] for one in found]
            known = common_type(kinds)
            if known is None:
                one, other = list(dict.fromkeys(kind.exact for kind in kinds if not kind.is_null))[:2]
                raise errors.TypeMismatchError(
                    f"`{name}` of `{template}` is {one} in one place and {other} in another.",
                    hint="emit values of one type, the same as those of the input.",
                )
            common[name] = known
        return common

    # --- refusals ---------------------------------------------------------------------------------

    def check(self, wanted: Iterable[Rule]) -> None:
        """Refuse what does not run, and inputs that are not there, for these rules and all that they read from."""
        rules, options = self.needed(wanted), self.options
        errors.raise_all([reason for rule in rules if (reason := refused(rule, options.engine, options.strategy))])
        errors.raise_all([reason for rule in rules if (reason := self._untied(rule)) is not None])
        known = self.schemas or {}
        reads = dict.fromkeys(name for rule in rules for name in rule.reads if name not in self.program.emitters)
        problems: list[errors.TocsinError] = [
            errors.UnknownEventTypeError(
                f"The program reads events of `{name}`, and no input has them.",
                hint=errors.did_you_mean(name, known, "inputs"),
            )
            for name in reads
            if name not in known
        ]
        problems += [untimed(name) for name in reads if name in known and name not in self.times]
        emitted = dict.fromkeys(emit.type for rule in rules for emit in rule.emits)
        problems += [problem for name in emitted if (problem := self._clash(name)) is not None]
        errors.raise_all(problems)
        if self.is_streaming:
            emitted_types = self.program.emitted
            found = (refused_on_streams(rule, emitted_types) for rule in rules)
            errors.raise_all([reason for reason in found if reason is not None])

    def _untied(self, rule: Rule) -> UnsupportedError | None:
        """Why a rule does not run with tie columns, which emitted events have not; None when it does."""
        is_selected = rule.query.selection is not Selection.ANY
        if not self.options.ties or not self.reads_derived(rule):
            return None
        if not is_selected and not compares_ties(rule.query.pattern):
            return None
        what = f"`select {rule.query.selection.value}`" if is_selected else "A repetition"
        return UnsupportedError(
            f"{what} on emitted events does not run with `tie=` yet.",
            gap=Gaps.TIES_OF_EMITTED_EVENTS,
            where=rule.where,
        )

    def _clash(self, template: str) -> errors.TocsinError | None:
        time = self.times[template]
        if all(attribute.name != time for attribute in self.program.templates[template].attributes):
            return None
        return errors.InvalidOptionError(
            f"`{time}` is the time column of `{template}`, and an attribute that rules give to its events.",
            hint="give the attribute, or the time column, another name.",
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan for tools and snapshots: plain values that JSON holds; `made_of` is what `from_dict` reads."""
        plans = {rule.name: self.rule(rule).plan.to_dict() for rule in self.program.rules}
        return {
            "made_of": {name: encode(getattr(self, name)) for name in MADE_OF},
            "rules": [
                {
                    "name": rule.name,
                    "stratum": rule.stratum,
                    "reads": list(rule.reads),
                    "emits": [emit.type for emit in rule.emits],
                    "plan": {name: value for name, value in plans[rule.name].items() if name != "made_of"},
                }
                for rule in self.program.rules
            ],
            "strata": [stratum.to_dict() for stratum in self.strata(self.program.rules)],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ProgramPlan:
        """The plan that `to_dict` returned, planned anew from what it was made of.

        Raises
        ------
        InvalidOptionError
            When these are not the values of a plan, or it has functions of the user.
        """
        with reading(stored) as given:
            return cls(**{name: decode(value) for name, value in given.items()})

    def __eq__(self, other: object) -> bool:
        """Whether two plans run the same."""
        return isinstance(other, ProgramPlan) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        """By the names of the rules."""
        return hash(tuple(rule.name for rule in self.program.rules))


def program_plan(
    program: Program,
    options: Options,
    schemas: Schemas | None = None,
    *,
    shared_input: bool = False,
    is_streaming: bool = False,
) -> ProgramPlan:
    """Plan a program; its durations, and those of the options, are converted to the unit of integer times (R42).

    With `schemas`, the attributes of events from outside by type, `options.time` is a mapping as `times_of` makes it.
    """
    if schemas is not None:
        emits = [alg.Returned("at", emit.at) for rule in program.rules for emit in rule.emits]
        queries = [rule.query for rule in program.rules]
        queries[0] = replace(queries[0], returns=tuple(emits))
        options = options.counting(unit_of(options.time_unit, schemas, options.times, queries))
    selected = options.strategy == AGGREGATE.name
    with counting(options.unit.microseconds):
        written = options.unit.program(program)
        queries = [ordered_by_ties(rule.query) if options.ties else rule.query for rule in written.rules]
        rules = tuple(
            replace(rule, query=bounded(query, selected=selected))
            for rule, query in zip(written.rules, queries, strict=True)
        )
        timed = replace(written, rules=rules).timed(TIMESTAMP if schemas is None else options.times)
    return ProgramPlan(written, timed, options, schemas, shared_input, is_streaming)


def times_of(program: Program, time: str | Mapping[str, str]) -> dict[str, str]:
    """The time column of every event type; that of emitted events is called `timestamp` where no option names it."""
    names = [*program.read, *program.emitted]
    if isinstance(time, str):
        return dict.fromkeys(names, time)
    missing = [name for name in program.read if name not in time and name not in program.emitters]
    return {name: time.get(name, TIMESTAMP) for name in names if name not in missing}


def columns_of(template: Template, time: str) -> list[str]:
    """The columns that the events of a template have."""
    return [time, *(attribute.name for attribute in template.attributes)]
