"""The rules of a shard: a search, when its matches become due, and the events that they emit. A pattern is one rule.

Matches become events, and events become rows like those that Spark ships, so that higher strata see no difference.
Values are computed row by row in Python: emitted events are few beside those they were found in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import emitted_column
from tocsin.analysis.schema import BoundQuery
from tocsin.engines.stream.store import NEVER
from tocsin.engines.worker.arrow_scan import scan
from tocsin.engines.worker.event_tables import Events
from tocsin.engines.worker.results import Result
from tocsin.engines.worker.tasks import Member, SearchGroup
from tocsin.kernels.matches import take
from tocsin.kernels.model import Integers, Mask, Matches, Rows
from tocsin.kernels.policies import after_match, chosen, frontiers, reported
from tocsin.kernels.policies.flat import Flat, flatten, groups_of
from tocsin.kernels.reach import Search
from tocsin.language.ast import PER_START, AfterMatch, Output, Skip
from tocsin.plan.due import BEFORE_ALL, Due, Retention, later
from tocsin.plan.manifest import Gathered, Layout, Manifest

# --- after-match policies -------------------------------------------------------------------------

# A policy is one walk over the matches of a partition in the order of R5, and what it remembers is the frontier: no
# match may start before it. A step walks on where the last one stopped, since matches are decided in the order of their
# starts (L after each). Where one match of each start is chosen, that happens before (R44). All events up to the
# frontier are known by then, so that it is enough to mark those before it as spent: none can come there later.
#
# The outputs per end compare what is kept of several starts, up to L apart: they are decided L after the end, and until
# then the marks stay where they were. So a step walks again over the matches of the last 2 L, and keeps the same ones.
# With windows (EVERY) they are decided with that of their start, 2 L after its end, and those they were compared with
# up to L and a window after that.
#
# code            theory
# ----            ------
# length_us       L
# lag_us          how long after a policy has kept a match it may still be compared


@dataclass(frozen=True)
class Skipping:
    """The policies of a query that skips: which matches are kept, and which of these reported."""

    policy: AfterMatch
    output: Output
    due: Due

    @property
    def length_us(self) -> int | None:
        """How long after its end what is reported per end is decided; None: with the start."""
        return self.due.after_end_us

    @property
    def lag_us(self) -> int:
        """How long after its start is decided a match may be compared with others that are not reported yet."""
        assert self.length_us is not None
        every_us = self.due.every_us
        return self.length_us if every_us is None else 2 * self.length_us + every_us

    def is_due(self, matches: Matches, rows: Rows, before: int, now: int) -> Mask:
        """Which matches take part in a step: decided ones that the marks of the last step do not cover."""
        if self.length_us is None:
            return self.due.is_due(matches, rows, before, now)
        decided = later(matches.start, self.length_us)
        return (decided >= max(before - self.lag_us, BEFORE_ALL)) & (decided < now)

    def chosen(self, matches: Matches, rows: Rows, spent: Mask, before: int, now: int) -> tuple[Matches, Mask]:
        """The matches that are emitted of those that take part, and which events are spent afterwards."""
        if not len(matches):
            return matches, spent
        view = flatten(matches, rows)
        allowed = np.flatnonzero(~spent[view.rows[view.offsets[:-1]]])
        view = view.take(allowed)
        if self.length_us is None:
            kept = chosen(self.policy, self.output, view)
            return take(matches, allowed[kept]), spent | self._passed(view.take(kept), rows)
        kept = after_match(self.policy, view)
        view = view.take(kept)
        given = reported(self.output, view)
        decided = self._reported_at(view.take(given), self.length_us)
        given = given[(decided >= before) & (decided < now)]
        covered = np.flatnonzero(later(view.start, self.length_us + self.lag_us) < now)
        return take(matches, allowed[kept][given]), spent | self._passed(view.take(covered), rows)

    def _reported_at(self, view: Flat, length_us: int) -> Integers:
        if self.due.every_us is None:
            return later(view.end, length_us)
        return later(self.due.last_of_window(view.start), 2 * length_us)

    def _passed(self, kept: Flat, rows: Rows) -> Mask:
        """The events before the frontier that kept matches have moved."""
        assert rows.order is not None
        groups, ends = groups_of(rows), frontiers(self.policy, kept)
        if not len(kept):
            return np.zeros(len(groups), np.bool_)
        order = np.lexsort((ends, kept.groups))
        last = np.append(kept.groups[order][1:] != kept.groups[order][:-1], True)
        known, ends = kept.groups[order][last], ends[order][last]
        place = np.minimum(np.searchsorted(known, groups), len(known) - 1)
        passed: Mask = (known[place] == groups) & (rows.order < ends[place])
        return passed


def without_policies(search: Search) -> Search:
    """The search for the matches that a policy may choose from: of each start, those that may move the frontier."""
    query = search.query
    of_start = query.output if query.output in PER_START else Output.ALL
    if of_start is Output.ALL and query.after_match.skip in (Skip.PAST_LAST, Skip.TO_NEXT):
        of_start = Output.FIRST_PER_START  # the frontier passes the first event of a kept match
    return replace(search, query=replace(query, after_match=alg.REUSE, output=of_start))


# --- emitted events -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Emission:
    """One `emit` of a rule: events of one template."""

    type: str
    bound: BoundQuery  # returns the time and the values, by `tocsin.algebra.programs.emitting`
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
