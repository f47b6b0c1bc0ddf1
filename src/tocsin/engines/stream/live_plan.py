"""Plan some rules of a program for a stream, without Spark: their searches, when matches are due, and delays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import pyarrow as pa

from tocsin.algebra import nodes as alg
from tocsin.algebra.nodes import ordered_by_ties
from tocsin.algebra.programs import Rule, emitting
from tocsin.algebra.tree_text import to_text
from tocsin.analysis.rules.arrivals import Delay, delays
from tocsin.engines.stream.shard_rules import Emission, Insertion, LiveRule, Stratum
from tocsin.engines.stream.step import Step
from tocsin.engines.worker.tasks import Member, SearchGroup, search_groups
from tocsin.kernels.model import Source
from tocsin.kernels.nested_loops import Kernel, kernel
from tocsin.kernels.reach import Search
from tocsin.kernels.shared import common
from tocsin.language.sase.printer import print_expression
from tocsin.plan.due import Due, due_of
from tocsin.plan.manifest import Layout, Manifest, Needs, needed
from tocsin.plan.prepare import distances_of
from tocsin.plan.program_plan import ProgramPlan
from tocsin.plan.rule_plan import asks_frame


@dataclass(frozen=True)
class LivePlan:
    """The rules of a program that a stream needs, and what of them is the result."""

    program: ProgramPlan
    rules: tuple[Rule, ...]  # the rules that are needed
    shown: tuple[str, ...]  # the names of those whose matches are the result
    template: str | None  # the template whose events are the result instead

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The event types that these rules read."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.reads))

    def id_of(self, rule: Rule) -> str | None:
        """The column that identifies the events of a rule: emitted ones have none."""
        return self.program.rule(rule).plan.options.id

    def emits(self, rule: Rule) -> list[alg.Emit]:
        """The events of a rule that other rules read, or that are the result."""
        return [emit for emit in rule.emits if emit.type in self.reads or emit.type == self.template]

    @cached_property
    def _compiled(self) -> tuple[tuple[Source, ...], tuple[Kernel, ...]]:
        made: list[Kernel] = [kernel(self.program.rule(rule).plan.rule.bound) for rule in self.rules]
        sources, kernels = common(made)
        sources = _with_counted(
            sources, [rule for rule, one in zip(self.rules, made, strict=True) if one.counts_every_event]
        )
        return sources, kernels

    @property
    def sources(self) -> tuple[Source, ...]:
        """The candidates of all rules."""
        return self._compiled[0]

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The rules compiled, in their order, with one numbering of candidates."""
        return self._compiled[1]

    def counted(self, number: int) -> tuple[int, ...]:
        """The flags of all events among which those of a rule have to be neighbours; none where others do not count."""
        if not self.kernels[number].counts_every_event:
            return ()
        wanted = [(name,) for name in self.rules[number].reads]
        return tuple(source.bit for source in self.sources if source.types in wanted and not source.conditions)

    def needs(self, number: int, attributes: Needs) -> dict[str, tuple[str, ...]]:
        """The attributes of variables that the matches of a rule bring: all that is shown, or what it emits."""
        rule = self.rules[number]
        query = self.kernels[number].query
        if rule.name not in self.shown:
            emitted = [emitting(rule, emit).returns for emit in self.emits(rule)]
            query = replace(query, returns=tuple(chain(*emitted)))
        return needed(query, attributes)

    # --- time -------------------------------------------------------------------------------------

    @cached_property
    def delays(self) -> tuple[int, ...]:
        """Of every rule, how far its watermark is behind that of the inputs."""
        when = delays(self.program.written)
        return tuple(max(when.get(name, Delay()).late_us for name in rule.reads) for rule in self.rules)

    def due(self, number: int) -> Due:
        """When the matches of a rule become due."""
        written = self.program.written.rule(self.rules[number].name)
        assert written is not None
        is_tied = self.kernels[number].compares_ties
        distances = distances_of(ordered_by_ties(written.query) if is_tied else written.query)
        distances.require_bounded()
        return due_of(self.kernels[number], distances, eager=False)

    # --- workers -----------------------------------------------------------------------------------

    def step(
        self,
        manifest: Manifest,
        places: Sequence[tuple[int, ...]],
        schemas: Mapping[str, pa.Schema],
        result: pa.Schema | None = None,
    ) -> Step:
        """Return the step of a worker.

        `places` are, of every rule, those of its variables in the result; `schemas` the columns of every event type
        that the rules read; `result` the columns of the events that are the result.
        """
        rules = [
            self._live(number, layout, own, schemas, result)
            for number, (layout, own) in enumerate(zip(manifest.layouts, places, strict=True))
        ]
        strata = sorted({rule.stratum for rule in self.rules})
        return Step(
            tuple(
                self._stratum([rules[number] for number, rule in enumerate(self.rules) if rule.stratum == stratum])
                for stratum in strata
            ),
            self._insertion(manifest, schemas),
            self.template,
            self.program.options.max_matches_per_start,
            self.program.options.task_bytes,
        )

    def _live(
        self,
        number: int,
        layout: Layout,
        places: tuple[int, ...],
        schemas: Mapping[str, pa.Schema],
        result: pa.Schema | None,
    ) -> LiveRule:
        rule = self.rules[number]
        emissions = []
        for emit in self.emits(rule):
            schema = result if result is not None and emit.type == self.template else schemas[emit.type]
            names = (self.program.times[emit.type], *(name for name, _ in emit.values))
            bound = self.program.plan_of(rule, emitting(rule, emit)).rule.bound
            emissions.append(Emission(emit.type, bound, names, schema))
        search = self.kernels[number]
        return LiveRule(
            Member(search, layout, self.id_of(rule) is not None, number, places),
            self.due(number),
            delay_us=self.delays[number],
            is_shown=rule.name in self.shown,
            emissions=tuple(emissions),
            counted=self.counted(number),
        )

    def _stratum(self, rules: Sequence[LiveRule]) -> Stratum:
        """Search for the rules of a stratum together; where the order of one instant matters, for each alone."""
        members = [rule.member for rule in rules]
        shared = [member for member in members if not self._is_alone(member.search)]
        others = [member for member in members if self._is_alone(member.search)]
        kernels = [self.kernels[member.number] for member in shared]
        groups = search_groups(self.sources, kernels, shared, [None] * len(shared))
        return Stratum(tuple(rules), (*groups, *(SearchGroup((member,)) for member in others)))

    def _is_alone(self, search: Search) -> bool:
        return search.needs_order or search.compares_ties or self.program.options.strategy == "aggregate"

    def _insertion(self, manifest: Manifest, schemas: Mapping[str, pa.Schema]) -> Insertion | None:
        types = [name for name in self.program.program.emitted if name in self.reads]
        if not types:
            return None
        # What asks a DataFrame is asked of events from outside, before they travel.
        sources = tuple(
            replace(
                source, conditions=tuple(each for each in source.conditions if not any(map(asks_frame, each.walk())))
            )
            for source in manifest.sources
        )
        return Insertion(
            replace(manifest, sources=sources),
            {name: schemas[name] for name in types},
            {name: self.program.times[name] for name in types},
        )

    def text(self) -> str:
        """A text of all that the state depends on."""
        said = []
        for rule, made, delay in zip(self.rules, self.kernels, self.delays, strict=True):
            emits = [
                (
                    emit.type,
                    print_expression(emit.at),
                    *((name, print_expression(value)) for name, value in emit.values),
                )
                for emit in self.emits(rule)
            ]
            said.append((rule.name, to_text(made.query), delay, emits))
        return repr((said, [(one.types, sorted(map(print_expression, one.conditions))) for one in self.sources]))


def _with_counted(sources: tuple[Source, ...], rules: Sequence[Rule]) -> tuple[Source, ...]:
    """The candidates, and every event of the types that these rules read: it may stand between two others (D40)."""
    known = {source.types for source in sources if not source.conditions}
    missing = dict.fromkeys(name for rule in rules for name in rule.reads if (name,) not in known)
    added = (Source(f"s{bit}", (name,), False, bit) for bit, name in enumerate(missing, start=len(sources)))
    return (*sources, *added)
