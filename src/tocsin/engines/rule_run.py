"""Run the rules of a program on any engine: what a rule reads is found before it is matched.

code         theory
----         ------
read         [[T]], all events of a type: those that come from outside and those that rules emit
emitted      the events of one `emit`, a bag: one for each match (R30)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program, Rule, Template, emitted_column, emitting
from tocsin.analysis.types import DataType
from tocsin.plan.plan import Plan
from tocsin.plan.program_plan import ProgramPlan

Frame = TypeVar("Frame")
RESULT = ("rule", "match_id", "start", "end")


class Engine(Protocol[Frame]):
    """The operations of an engine that a program needs."""

    @property
    def whole(self) -> Frame | None:
        """The one input with a type column, when there is only one."""

    @property
    def given(self) -> Mapping[str, Frame]:
        """The user's inputs by event type."""

    def match(self, plan: Plan, inputs: Frame | Mapping[str, Frame]) -> Frame:
        """The matches of a rule that is searched for by itself."""

    def returned(self, query: alg.Query, matched: Callable[[alg.Query], Frame]) -> Frame:
        """The matches of a query with values that may be Python's; `matched` finds those of one without such."""

    def chosen(self, frame: Frame, columns: Mapping[str, str], types: Mapping[str, DataType]) -> Frame:
        """These columns under these new names, in these types."""

    def given_events(self, template: Template, columns: Sequence[str]) -> Frame | None:
        """The user's events of a template that rules emit too, with its columns; None when there are none."""

    def union(self, frames: Sequence[Frame]) -> Frame:
        """All rows of frames that have the same columns."""

    def together(self, run: Run[Frame], wanted: Sequence[Rule]) -> Frame:
        """The matches of several rules: `rule`, `match_id`, `start`, `end`, and a struct of variables for each rule."""


@dataclass
class Run(Generic[Frame]):
    """A program on an engine."""

    plan: ProgramPlan
    engine: Engine[Frame]
    known: dict[str, Frame] = field(default_factory=dict)
    found: dict[str, Callable[[tuple[alg.Returned, ...]], Frame]] = field(default_factory=dict)  # by rule, by RETURN

    @property
    def program(self) -> Program:
        """The rules as they run."""
        return self.plan.program

    def matches(self, name: str) -> Frame:
        """The matches of a rule."""
        (rule,) = self._wanted([name])
        return self._matches(rule)

    def _matches(self, rule: Rule) -> Frame:
        return self.matched(rule, rule.query)

    def together(self, names: Iterable[str]) -> Frame:
        """The matches of several rules in one frame."""
        wanted = self._wanted(names)
        check_columns(wanted)
        return self._together(wanted)

    def _together(self, wanted: Sequence[Rule]) -> Frame:
        return self.engine.together(self, wanted)

    def events(self, template: str) -> Frame:
        """The events of a template that rules emit."""
        return self._events(template, self._wanted(rule.name for rule in self.plan.emitting([template])))

    def _events(self, template: str, emitting: Sequence[Rule]) -> Frame:
        return self.engine.union([self.emitted_by(rule, emit) for rule, emit in self.plan.emits(template)])

    def _wanted(self, names: Iterable[str]) -> list[Rule]:
        """The rules of these names, in the order of the program, which run on the engine."""
        asked = frozenset(names)
        wanted = [rule for rule in self.program.rules if rule.name in asked]
        self.plan.check(wanted)
        return wanted

    # --- events and matches ---

    def matched(self, rule: Rule, query: alg.Query) -> Frame:
        """The matches of a rule, by itself; `query` may have other columns."""
        if rule.name in self.found:
            return self.found[rule.name](query.returns)
        plan = self.plan.rule(rule).plan if query is rule.query else self.plan.plan_of(rule, query)
        if self.plan.reads_all(rule) and self.engine.whole is not None:
            return self.engine.match(plan, self.engine.whole)
        return self.engine.match(plan, {name: self.read(name) for name in rule.reads})

    def read(self, name: str) -> Frame:
        """All events of a type."""
        if name not in self.program.emitters:
            return self.engine.given[name]
        if name not in self.known:
            frames = [self.emitted_by(rule, emit) for rule, emit in self.plan.emits(name)]
            given = self.engine.given_events(self.program.templates[name], self.plan.columns_of(name))
            self.known[name] = self.engine.union([*frames, *([] if given is None else [given])])
        return self.known[name]

    def emitted_by(self, rule: Rule, emit: alg.Emit) -> Frame:
        """The events that one `emit` of a rule makes."""
        return self.as_events(emit, self.engine.returned(emitting(rule, emit), lambda query: self.matched(rule, query)))

    def as_events(self, emit: alg.Emit, values: Frame) -> Frame:
        """The values of an `emit`, as `emitting` calls them, under the names of its template."""
        names = [self.plan.times[emit.type], *(name for name, _ in emit.values)]
        columns = {emitted_column(place): name for place, name in enumerate(names)}
        return self.engine.chosen(values, columns, self.plan.emitted_types(emit.type))


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


def lacks(template: Template, column: str, known: Iterable[str]) -> errors.TocsinError:
    """An input that has not all columns of its template."""
    return errors.MissingColumnError(
        f"There is no column `{column}` in the input of `{template.name}`, which rules emit too.",
        hint=errors.did_you_mean(column, known, "its columns"),
    )
