"""The rules of a shard: a search, when its matches become due, and the events that they emit. A pattern is one rule.

Matches become events, and events become rows like those that Spark ships, so that higher strata see no difference.
Values are computed row by row in Python: emitted events are few beside those they were found in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.algebra.programs import emitted_column
from tocsin.analysis.schema import BoundQuery
from tocsin.kernels.searches import Search
from tocsin.language.ast import Skip
from tocsin.physical.arrow_scan import Events, scan
from tocsin.physical.results import Result
from tocsin.physical.sliced.worker import Member, SearchGroup
from tocsin.physical.streaming.clocks import NEVER
from tocsin.physical.streaming.skipping import Skipping, without_policies
from tocsin.plan.due import Due, Retention
from tocsin.plan.layout import Gathered, Layout
from tocsin.plan.manifest import Manifest


@dataclass(frozen=True)
class Emission:
    """One `emit` of a rule: events of one template."""

    type: str
    bound: BoundQuery  # returns the time and the values, as `tocsin.algebra.programs.emitting` says
    attributes: tuple[str, ...]  # the names of these values
    schema: pa.Schema  # of the events; the first column is their time

    def events(self, matches: pa.RecordBatch, gathered: Sequence[Gathered]) -> pa.Table:
        """Make the events of matches."""
        variables = {one.name: (place, one.attributes) for place, one in enumerate(gathered)}
        time = self.schema.field(0)
        found = Result(self.bound, pa.Table.from_batches([matches]), variables).table(time.type)
        values = {name: found.column(emitted_column(place)) for place, name in enumerate(self.attributes)}
        if pa.types.is_floating(values[time.name].type):  # the mean of integer times
            values[time.name] = pc.floor(values[time.name])
        columns = [values[field.name].cast(field.type, safe=False) for field in self.schema]
        return pa.Table.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True)
class Insertion:
    """The conversion of emitted events to rows."""

    manifest: Manifest
    schemas: Mapping[str, pa.Schema]  # of every event type that rules emit and read
    times: Mapping[str, str]

    def rows(self, events: Mapping[str, Sequence[pa.Table]], schema: pa.Schema) -> pa.Table:
        """The rows of events by type, with the columns that Spark ships: `schema` has their types."""
        groups = []
        for name, own in self.schemas.items():
            tables = [table.cast(own) for table in events.get(name, ())] or [own.empty_table()]
            groups.append(Events(name, pa.concat_tables(tables), self.times[name]))
        return scan(self.manifest, groups, schema)


@dataclass(frozen=True)
class LiveRule:
    """A rule as a shard runs it."""

    member: Member
    due: Due
    skipping: Skipping | None = None  # its after-match policy; None: there is none, or the search applies it
    delay_us: int = 0  # Δ(r): how far its watermark is behind that of the inputs
    is_shown: bool = True  # whether its matches are part of the result
    emissions: tuple[Emission, ...] = ()  # events that other rules read, or that are the result
    # The flags of all events among which those of a match have to be neighbors; none: rows are of its types alone.
    counted: tuple[int, ...] = ()

    def watermark(self, now: int) -> int:
        """Up to when all that it reads has arrived."""
        return now if now == NEVER else max(now - self.delay_us, NEVER)

    @property
    def counts_unflagged(self) -> bool:
        """Whether events without a flag take part: they count for positions."""
        return self.member.search.counts_every_event and not self.counted

    @property
    def flags(self) -> tuple[int, ...]:
        """The flags of its candidates, and of what counts beside them."""
        return (*self.counted, *(source.bit for source in self.member.search.sources))

    def retention(self) -> Iterator[tuple[int, int]]:
        """For each of these flags, how long before the watermark of the inputs an event is retained."""
        for source, life in zip(self.member.search.sources, self.due.retention_us, strict=True):
            yield source.bit, life + self.delay_us
        yield from ((bit, self.due.longest_us + self.delay_us) for bit in self.counted)


def live_rule(search: Search, layout: Layout, due: Due, *, has_id: bool = False) -> LiveRule:
    """A pattern as the only rule of a program: its matches have columns of their own."""
    query = search.query
    if query.after_match.skip is Skip.REUSE:
        return LiveRule(Member(search, layout, has_id), due)
    skipping = Skipping(query.after_match, query.output, due)
    return LiveRule(Member(without_policies(search), layout, has_id), due, skipping)


@dataclass(frozen=True)
class Stratum:
    """Rules that do not read each other's events, and the groups in which they are searched for."""

    rules: tuple[LiveRule, ...]
    groups: tuple[SearchGroup, ...]


def alone(rule: LiveRule) -> tuple[Stratum, ...]:
    """The strata of a program of one rule."""
    return (Stratum((rule,), (SearchGroup((rule.member,)),)),)


def retention_of(rules: Iterable[LiveRule]) -> Retention:
    """Which events some rules retain: each as long as any of them needs it."""
    rules = list(rules)
    last_events = next((rule.due.last_events for rule in rules if rule.due.last_events is not None), None)
    flags: dict[int, int] = {}
    for bit, life in (pair for rule in rules if last_events is None for pair in rule.retention()):
        flags[bit] = max(flags.get(bit, life), life)
    unflagged = [rule.due.longest_us + rule.delay_us for rule in rules if rule.counts_unflagged]
    return Retention(flags, max(unflagged, default=None), last_events)
