"""Plan a program on a stream without Spark: the searches of its rules, when they are due, and their delays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import pyarrow as pa

from tocsin.algebra import nodes as alg
from tocsin.algebra.nodes import ordered_by_ties
from tocsin.algebra.programs import Program, Rule, emitting
from tocsin.algebra.tree_text import to_text
from tocsin.analysis.rules.arrivals import Delay, delays
from tocsin.analysis.types import DataType
from tocsin.engines.stream.shard_rules import Emission, Insertion, LiveRule, Stratum
from tocsin.engines.stream.step import Step
from tocsin.engines.worker.tasks import Member, SearchGroup, search_groups
from tocsin.kernels.model import Source
from tocsin.kernels.nested_loops import Kernel, kernel
from tocsin.kernels.reach import Search
from tocsin.kernels.shared import common
from tocsin.language.sase.printer import print_expression
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY
from tocsin.plan.due import Due, due_of
from tocsin.plan.manifest import Layout, Manifest, Needs, needed
from tocsin.plan.prepare import BoundRule, distances_of, prepare
from tocsin.plan.programs import asks_frame

Attributes = Mapping[str, Mapping[str, "str | DataType"]]


@dataclass(frozen=True)
class Asked:
    """What a user asks of a program."""

    program: Program  # the program as it was written, whose times are called `timestamp`
    timed: Program  # the same, bounded, and with the names that the data has for times
    rules: tuple[Rule, ...]  # the rules that are needed, with these names
    shown: tuple[str, ...]  # the names of those whose matches are the result
    template: str | None  # the template whose events are the result instead
    time: Mapping[str, str]  # the time column of each event type
    id: str | None = None  # the column that identifies events from outside
    strategy: str = "auto"  # `"aggregate"`: each rule by itself, in windows of what is remembered

    @property
    def is_aggregate(self) -> bool:
        """Whether nothing but aggregates is to be used."""
        return self.strategy == "aggregate"

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The event types that these rules read."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.reads))

    def id_of(self, rule: Rule) -> str | None:
        """The column that identifies the events of a rule: emitted ones have none."""
        return None if any(name in self.timed.emitters for name in rule.reads) else self.id

    def emits(self, rule: Rule) -> list[alg.Emit]:
        """The events of a rule that somebody reads, or asks for."""
        return [emit for emit in rule.emits if emit.type in self.reads or emit.type == self.template]


@dataclass(frozen=True)
class Plan:
    """Rules compiled for the events they get."""

    asked: Asked  # what is asked
    attributes: Attributes  # the attributes of every event type that the rules read

    @cached_property
    def _compiled(self) -> tuple[tuple[Source, ...], tuple[Kernel, ...]]:
        made: list[Kernel] = [kernel(self._prepared(rule.query).bound) for rule in self.asked.rules]
        sources, kernels = common(made)
        sources = _with_counted(
            sources, [rule for rule, one in zip(self.asked.rules, made, strict=True) if one.counts_every_event]
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

    def _prepared(self, query: alg.Query) -> BoundRule:
        types = {name: self.attributes[name] for name in alg.event_types(query.pattern)}
        return prepare(query, types, self.asked.time)

    def counted(self, number: int) -> tuple[int, ...]:
        """The flags of all events among which those of a rule have to be neighbours; none where others do not count."""
        if not self.kernels[number].counts_every_event:
            return ()
        wanted = [(name,) for name in self.asked.rules[number].reads]
        return tuple(source.bit for source in self.sources if source.types in wanted and not source.conditions)

    def needs(self, number: int, attributes: Needs) -> dict[str, tuple[str, ...]]:
        """What of the variables of a rule is in its matches: all that is shown, or what it emits."""
        rule = self.asked.rules[number]
        query = self.kernels[number].query
        if rule.name not in self.asked.shown:
            emitted = [emitting(rule, emit).returns for emit in self.asked.emits(rule)]
            query = replace(query, returns=tuple(chain(*emitted)))
        return needed(query, attributes)

    # --- time -------------------------------------------------------------------------------------

    @cached_property
    def delays(self) -> tuple[int, ...]:
        """Of every rule, how far its watermark is behind that of the inputs."""
        when = delays(self.asked.program)
        return tuple(max(when.get(name, Delay()).late_us for name in rule.reads) for rule in self.asked.rules)

    def due(self, number: int) -> Due:
        """When the matches of a rule become due."""
        written = self.asked.program.rule(self.asked.rules[number].name)
        assert written is not None
        is_tied = self.kernels[number].compares_ties
        distances = distances_of(ordered_by_ties(written.query) if is_tied else written.query)
        distances.require_bounded()
        return due_of(self.kernels[number], distances, eager=False)

    # --- what workers know ------------------------------------------------------------------------

    def step(
        self,
        manifest: Manifest,
        places: Sequence[tuple[int, ...]],
        schemas: Mapping[str, pa.Schema],
        lateness_us: tuple[int, ...],
        *,
        result: pa.Schema | None = None,
        idle_ms: int | None = None,
        most: int = MOST_MATCHES_PER_START,
        memory: int = MOST_MEMORY,
    ) -> Step:
        """What a worker does.

        Parameters
        ----------
        manifest
            What is shipped of events.
        places
            Of every rule, where the result has the variables of its matches.
        schemas
            The columns of every event type that the rules read.
        lateness_us
            How late the events of each source may come.
        result
            The columns of the events that are asked for.
        idle_ms
            After how long a silent source holds time back no more.
        most
            How many matches of a rule may have one start.
        memory
            How many bytes may be held for matches.
        """
        asked = self.asked
        rules = [
            self._live(number, layout, own, schemas, result)
            for number, (layout, own) in enumerate(zip(manifest.layouts, places, strict=True))
        ]
        strata = sorted({rule.stratum for rule in asked.rules})
        return Step(
            tuple(
                self._stratum([rules[number] for number, rule in enumerate(asked.rules) if rule.stratum == stratum])
                for stratum in strata
            ),
            lateness_us,
            self._insertion(manifest, schemas),
            asked.template,
            most,
            memory,
            idle_ms,
        )

    def _live(
        self,
        number: int,
        layout: Layout,
        places: tuple[int, ...],
        schemas: Mapping[str, pa.Schema],
        result: pa.Schema | None,
    ) -> LiveRule:
        asked, rule = self.asked, self.asked.rules[number]
        emissions = []
        for emit in asked.emits(rule):
            schema = result if result is not None and emit.type == asked.template else schemas[emit.type]
            names = (asked.time[emit.type], *(name for name, _ in emit.values))
            emissions.append(Emission(emit.type, self._prepared(emitting(rule, emit)).bound, names, schema))
        search = self.kernels[number]
        return LiveRule(
            Member(search, layout, asked.id_of(rule) is not None, number, places),
            self.due(number),
            delay_us=self.delays[number],
            is_shown=rule.name in asked.shown,
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
        return search.needs_order or search.compares_ties or self.asked.is_aggregate

    def _insertion(self, manifest: Manifest, schemas: Mapping[str, pa.Schema]) -> Insertion | None:
        types = [name for name in self.asked.timed.emitted if name in self.asked.reads]
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
            {name: self.asked.time[name] for name in types},
        )

    def text(self) -> str:
        """All that makes the state of this plan another's."""
        said = []
        for rule, made, delay in zip(self.asked.rules, self.kernels, self.delays, strict=True):
            emits = [
                (
                    emit.type,
                    print_expression(emit.at),
                    *((name, print_expression(value)) for name, value in emit.values),
                )
                for emit in self.asked.emits(rule)
            ]
            said.append((rule.name, to_text(made.query), delay, emits))
        return repr((said, [(one.types, sorted(map(print_expression, one.conditions))) for one in self.sources]))


def _with_counted(sources: tuple[Source, ...], rules: Sequence[Rule]) -> tuple[Source, ...]:
    """The candidates, and every event of the types that these rules read: it may stand between two others (D40)."""
    known = {source.types for source in sources if not source.conditions}
    missing = dict.fromkeys(name for rule in rules for name in rule.reads if (name,) not in known)
    added = (Source(f"s{bit}", (name,), False, bit) for bit, name in enumerate(missing, start=len(sources)))
    return (*sources, *added)
