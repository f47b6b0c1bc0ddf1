"""The matches of a rule and the events of a template, on any engine: what a rule reads is found before it is matched.

code         theory
----         ------
read         [[T]], all events of a type: those that come from outside and those that rules emit
emitted      the events of one `emit`, a bag: one for each match (R30)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, Protocol, TypeVar

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.nodes import compares_ties, ordered_by_ties
from tocsin.algebra.programs import TIMESTAMP, Program, Rule, Template, emitted_column, emitting
from tocsin.algebra.units import MICROSECONDS, Unit, counting
from tocsin.analysis.attributes import Schema
from tocsin.analysis.result_types import common_type
from tocsin.analysis.schema import Schemas, unit_of, value_types
from tocsin.analysis.types import INTEGER, NULL, DataType, Kind
from tocsin.gaps import Gaps
from tocsin.language.ast import Selection
from tocsin.options import Options
from tocsin.plan.prepare import bounded, prepare
from tocsin.plan.programs import is_shared, refused
from tocsin.plan.strategy import CONTIGUOUS

Frame = TypeVar("Frame")
RESULT = ("rule", "match_id", "start", "end")


class Engine(Protocol[Frame]):
    """What a program needs of an engine."""

    @property
    def name(self) -> str:
        """The name that users have for it."""

    @property
    def whole(self) -> Frame | None:
        """The one input with a type column, when there is only one."""

    @property
    def given(self) -> Mapping[str, Frame]:
        """The user's inputs by event type."""

    @property
    def schemas(self) -> Schemas:
        """The attributes of the user's inputs, by event type."""

    def match(self, query: alg.Query, inputs: Frame | Mapping[str, Frame], options: Options) -> Frame:
        """The matches of a query."""

    def returned(self, query: alg.Query, matched: Callable[[alg.Query], Frame]) -> Frame:
        """The matches of a query with values that may be Python's; `matched` finds those of one without such."""

    def chosen(self, frame: Frame, columns: Mapping[str, str], types: Mapping[str, DataType]) -> Frame:
        """These columns under these new names, in these types."""

    def given_events(self, template: Template, time: str) -> Frame | None:
        """The user's events of a template that rules emit too, with its columns; None when there are none."""

    def union(self, type: str, frames: Sequence[Frame]) -> Frame:
        """All rows of frames that have the same columns."""

    def together(self, run: Run[Frame], wanted: Sequence[Rule]) -> Frame:
        """The matches of several rules: `rule`, `match_id`, `start`, `end`, and a struct of variables for each rule."""


@dataclass
class Run(Generic[Frame]):
    """One program on one engine; with another strategy than "auto" every rule is searched for by itself."""

    program: Program
    engine: Engine[Frame]
    options: Options
    given: Options  # the options of the user, in the unit of the times
    unit: Unit = MICROSECONDS
    known: dict[str, Frame] = field(default_factory=dict)
    found: dict[str, Callable[[tuple[alg.Returned, ...]], Frame]] = field(default_factory=dict)  # by rule, by RETURN
    _types: dict[str, dict[str, DataType]] = field(default_factory=dict)
    _emitted_types: dict[str, dict[str, DataType]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Bound every rule, order its repetitions by tie columns (R41), and call time as the data does."""
        self.written = self.program  # whose times are called `timestamp`
        selected = self.options.strategy == "aggregate"
        rules = tuple(
            replace(rule, query=bounded(self._ordered(rule), selected=selected)) for rule in self.program.rules
        )
        self.program = replace(self.program, rules=rules).timed(self.options.times)

    def matches(self, name: str) -> Frame:
        """The matches of a rule."""
        rule = self.program.rule(name)
        assert rule is not None
        self.check([rule])
        return self._matches(rule)

    def _matches(self, rule: Rule) -> Frame:
        return self.matched(rule, rule.query)

    def together(self, names: Sequence[str]) -> Frame:
        """The matches of several rules in one frame."""
        asked = frozenset(names)
        wanted = [rule for rule in self.program.rules if rule.name in asked]
        self.check(wanted)
        check_columns(wanted)
        return self._together(wanted)

    def _together(self, wanted: Sequence[Rule]) -> Frame:
        return self.engine.together(self, wanted)

    def events(self, template: str) -> Frame:
        """The events of a template that rules emit."""
        emitting = [rule for rule in self.program.rules if any(emit.type == template for emit in rule.emits)]
        self.check(emitting)
        return self._events(template, emitting)

    def _events(self, template: str, emitting: Sequence[Rule]) -> Frame:
        return self.engine.union(template, list(self._emitted(template)))

    # --- what comes before ---

    def needed(self, wanted: Sequence[Rule]) -> list[Rule]:
        """The rules, and all that emit what they read."""
        rules = list(wanted)
        known = {rule.name for rule in rules}
        for rule in rules:  # grows while it is read
            rules += (new := [one for one in self._emitting(rule.reads) if one.name not in known])
            known.update(one.name for one in new)
        return rules

    def reads_derived(self, rule: Rule) -> bool:
        """Whether a rule reads what rules emit: events that have neither an id of the user's nor a tie."""
        return any(name in self.program.emitters for name in rule.reads)

    def shares(self, rule: Rule) -> bool:
        """Whether a rule is searched for together with others of its stratum."""
        return self.options.strategy == "auto" and is_shared(rule)

    def _ordered(self, rule: Rule) -> alg.Query:
        return ordered_by_ties(rule.query) if self.options.ties else rule.query

    def check(self, wanted: Sequence[Rule]) -> None:
        """Refuse what does not run, and inputs that are not there, for these rules and all that they read from."""
        rules = self.needed(wanted)
        errors.raise_all(
            [reason for rule in rules if (reason := refused(rule, self.engine.name, self.options.strategy))]
        )
        errors.raise_all([reason for rule in rules if (reason := self._untied(rule)) is not None])
        derived = self.program.emitters
        reads = dict.fromkeys(name for rule in rules for name in rule.reads if name not in derived)
        problems: list[errors.TocsinError] = [
            errors.UnknownEventTypeError(
                f"The program reads events of `{name}`, and no input has them.",
                hint=errors.did_you_mean(name, self.engine.given, "inputs"),
            )
            for name in reads
            if self.engine.whole is None and name not in self.engine.given
        ]
        emitted = dict.fromkeys(emit.type for rule in rules for emit in rule.emits)
        problems += [problem for name in emitted if (problem := self._clash(name)) is not None]
        errors.raise_all(problems)

    def _untied(self, rule: Rule) -> errors.UnsupportedError | None:
        """Why a rule does not run with tie columns, which emitted events have not; None when it does."""
        is_selected = rule.query.selection is not Selection.ANY
        if not self.options.ties or not self.reads_derived(rule):
            return None
        if not is_selected and not compares_ties(rule.query.pattern):
            return None
        what = f"`select {rule.query.selection.value}`" if is_selected else "A repetition"
        return errors.UnsupportedError(
            f"{what} on emitted events does not run with `tie=` yet.",
            gap=Gaps.TIES_OF_EMITTED_EVENTS,
            where=rule.where,
        )

    def _emitting(self, types: Sequence[str]) -> list[Rule]:
        found = [self.program.emitters[name] for name in types if name in self.program.emitters]
        if len(found) < 2:
            return [rule for each in found for rule in each.values()]
        return [rule for rule in self.program.rules if any(rule.name in each for each in found)]

    def _clash(self, template: str) -> errors.TocsinError | None:
        time = self.options.times[template]
        if all(attribute.name != time for attribute in self.program.templates[template].attributes):
            return None
        return errors.InvalidOptionError(
            f"`{time}` is the time column of `{template}`, and an attribute that rules give to its events.",
            hint="give the attribute, or the time column, another name.",
        )

    # --- types ---

    def types_of(self, name: str) -> Mapping[str, DataType]:
        """The attributes of an event type: those of the input, of what rules emit, or of both."""
        if name not in self.program.emitters:
            return Schema.of(name, self.engine.schemas[name]).attributes
        if name not in self._types:
            self._types[name] = self._common_types(name, [self.emitted_types(name), *self._given_types(name)])
        return self._types[name]

    def emitted_types(self, template: str) -> dict[str, DataType]:
        """The attributes of the events that rules emit."""
        if template not in self._emitted_types:
            found = [self._value_types(rule, emit) for rule, emit in self._emits(template)]
            self._emitted_types[template] = self._common_types(template, found)
        return self._emitted_types[template]

    def _given_types(self, template: str) -> Iterator[Mapping[str, DataType]]:
        """The attributes of the user's own events of a template that rules emit too."""
        if template in self.engine.given:
            given = Schema.of(template, self.engine.schemas[template]).attributes
            columns = columns_of(self.program.templates[template], self.options.times[template])
            yield {name: given.get(name, NULL) for name in columns}

    def _value_types(self, rule: Rule, emit: alg.Emit) -> dict[str, DataType]:
        schemas = {name: self.types_of(name) for name in alg.event_types(rule.query.pattern)}
        bound = prepare(rule.query, schemas, self.options.times).bound
        at, *values = value_types(bound, [emit.at, *(value for _, value in emit.values)])
        # The mean of integer times is rounded down.
        time = {self.options.times[emit.type]: INTEGER if at.kind is Kind.DOUBLE else at}
        return time | {name: found for (name, _), found in zip(emit.values, values, strict=True)}

    def _common_types(self, template: str, found: Sequence[Mapping[str, DataType]]) -> dict[str, DataType]:
        columns = columns_of(self.program.templates[template], self.options.times[template])
        common: dict[str, DataType] = {}
        for name in columns:
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

    # --- events and matches ---

    def matched(self, rule: Rule, query: alg.Query) -> Frame:
        """The matches of a rule, by itself; `query` may ask for other columns."""
        options = self.options
        if rule.name in self.found:
            return self.found[rule.name](query.returns)
        if self.reads_derived(rule):
            options = replace(options, id=None, tie=None)  # they are identified by their values
        elif self.engine.whole is not None and query.selection not in CONTIGUOUS:
            return self.engine.match(query, self.engine.whole, options)
        return self.engine.match(query, {name: self.read(name) for name in rule.reads}, options)

    def read(self, name: str) -> Frame:
        """All events of a type."""
        if name not in self.program.emitters:
            return self.engine.given[name]
        if name not in self.known:
            frames = list(self._emitted(name))
            given = self.engine.given_events(self.program.templates[name], self.options.times[name])
            if given is not None:
                frames.append(given)
            self.known[name] = self.engine.union(name, frames)
        return self.known[name]

    def _emitted(self, template: str) -> Iterator[Frame]:
        yield from (self.emitted_by(rule, emit) for rule, emit in self._emits(template))

    def _emits(self, template: str) -> list[tuple[Rule, alg.Emit]]:
        """The emits that make events of a template, each with its rule."""
        return [(rule, emit) for rule in self._emitting([template]) for emit in rule.emits if emit.type == template]

    def emitted_by(self, rule: Rule, emit: alg.Emit) -> Frame:
        """The events that one `emit` of a rule makes."""
        return self.as_events(emit, self.engine.returned(emitting(rule, emit), partial(self.matched, rule)))

    def as_events(self, emit: alg.Emit, values: Frame) -> Frame:
        """The values of an `emit`, as `emitting` calls them, under the names of its template."""
        names = [self.options.times[emit.type], *(name for name, _ in emit.values)]
        columns = {emitted_column(place): name for place, name in enumerate(names)}
        return self.engine.chosen(values, columns, self.emitted_types(emit.type))


def check_columns(rules: Sequence[Rule]) -> None:
    """Refuse rules that cannot be columns of one frame."""
    taken = {name: f"the column `{name}`" for name in RESULT}
    problems: list[errors.TocsinError] = []
    for rule in rules:
        low = rule.name.lower()
        if low in taken:
            problems.append(
                errors.InvalidOptionError(
                    f"The rule `{rule.name}` cannot have a column of its own beside {taken[low]}: Spark does not tell "
                    "them apart.",
                    hint="rename the rule, or leave one of them out with `rules=[...]`.",
                )
            )
        taken[low] = f"that of the rule `{rule.name}`"
    errors.raise_all(problems)


def columns_of(template: Template, time: str) -> list[str]:
    """The columns that the events of a template have."""
    return [time, *(attribute.name for attribute in template.attributes)]


def lacks(template: Template, column: str, known: Iterable[str]) -> errors.TocsinError:
    """An input that has not all columns of its template."""
    return errors.MissingColumnError(
        f"There is no column `{column}` in the input of `{template.name}`, which rules emit too.",
        hint=errors.did_you_mean(column, known, "its columns"),
    )


def timed_run(program: Program, engine: Engine[Frame], options: Options, kind: type[Run[Frame]] = Run) -> Run[Frame]:
    """A program on an engine, its durations converted to the unit of integer times (R42)."""
    unit = _unit(program, engine.schemas, options.times, options.time_unit)
    # The rules count in that unit from here on, and so does what is known of their events.
    given = options.counting(unit)
    with counting(unit.microseconds):
        timed = replace(options, time_unit=None, rates=None, statistics=given.known)
        return kind(unit.program(program), engine, timed, given, unit)


def _unit(program: Program, schemas: Schemas, times: Mapping[str, str], time_unit: str | None) -> Unit:
    """What integer times of a program's inputs count."""
    emits = [alg.Returned("at", emit.at) for rule in program.rules for emit in rule.emits]
    queries = [rule.query for rule in program.rules]
    return unit_of(time_unit, schemas, times, [*queries[1:], replace(queries[0], returns=tuple(emits))])


def times_of(program: Program, time: str | Mapping[str, str]) -> dict[str, str]:
    """The time column of every event type; that of emitted events is called `timestamp` where nobody says otherwise."""
    names = [*program.read, *program.emitted]
    if isinstance(time, str):
        return dict.fromkeys(names, time)
    missing = [name for name in program.read if name not in time and name not in program.emitters]
    return {name: time.get(name, TIMESTAMP) for name in names if name not in missing}
