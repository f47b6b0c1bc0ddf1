"""Search what a micro-batch affects: the matches of one stratum that are emitted in a step.

Input    the rules of the stratum, the store, the watermarks before and after the step
Output   batches of what each rule writes; events that an after-match policy has skipped are marked in the store
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tocsin.engines.stream.shard_rules import LiveRule, Stratum
from tocsin.engines.stream.store import Affected, Store
from tocsin.engines.worker.gather import portions
from tocsin.engines.worker.rows import NullableArray, array_of, flags_of, integers, partition_of
from tocsin.engines.worker.tasks import Member, SearchGroup
from tocsin.kernels.hashes import holds_any
from tocsin.kernels.matches import concatenate, take
from tocsin.kernels.model import Integers, Mask, Matches, Rows, has_any
from tocsin.plan.manifest import BITS, SPENT, Layout

MOST_SEEN = 0.75  # rows are copied to search fewer of them only where that leaves no more than this share


def _bits(flags: Iterable[int]) -> int:
    """Flags as the bits of a number."""
    return sum(1 << flag for flag in set(flags))


class _View(NamedTuple):
    """Rows of the store that a group searches; `places` are their numbers there, None where they are all of them."""

    table: pa.Table
    is_new: Mask  # which came in this step
    places: Integers | None = None

    def where(self, chosen: Mask, *, most: float = 1.0) -> _View:
        """Some of the rows; all of them where these are more than a share."""
        if chosen.all() or chosen.mean() > most:
            return self
        places = np.flatnonzero(chosen)
        return _View(
            self.table.filter(pa.array(chosen)).combine_chunks(),
            self.is_new[chosen],
            places if self.places is None else self.places[places],
        )


class StratumSearch:
    """The search for the matches of one stratum that are emitted in this step."""

    def __init__(
        self, stratum: Stratum, layout: Layout, limits: dict[str, int], store: Store, before: int, now: int
    ) -> None:
        self.stratum, self.layout, self.limits, self.store = stratum, layout, limits, store
        self.before, self.now = before, now
        self.schema, self.size = pa.schema([]), 0

    def batches(self) -> Iterator[tuple[LiveRule, pa.RecordBatch]]:
        """Batches of what the rules write."""
        rules = self.stratum.rules
        has_moved, is_eager = self.now > self.before, any(rule.due.is_eager for rule in rules)
        if not has_moved and not is_eager:
            return
        affected = self.store.affected([rule.due for rule in rules], self.before, self.now)
        if affected is None:
            return
        self.schema, self.size = affected.rows.schema, affected.rows.num_rows
        view = _View(*affected) if is_eager else self._possible(affected)
        if not view.table.num_rows:
            return
        by_number = {rule.member.number: rule for rule in rules}
        known: dict[object, NullableArray] = {}
        for group in self.stratum.groups:
            own = [by_number[member.number] for member in group.members]
            yield from self._group(group, own, view, known)

    def _possible(self, affected: Affected) -> _View:
        """Without what other strata read, and what lies beyond the watermark: it takes part in nothing that is due."""
        rules = self.stratum.rules
        ts = integers(array_of(affected.rows, self.layout.time))
        possible: Mask = ts < max(rule.watermark(self.now) for rule in rules)
        if not any(rule.counts_unflagged for rule in rules):
            wanted = _bits(flag for rule in rules for flag in rule.flags)
            possible &= has_any(flags_of(affected.rows, self.layout.packing), wanted)
        return _View(*affected).where(possible, most=MOST_SEEN)

    def _group(
        self, group: SearchGroup, rules: Sequence[LiveRule], view: _View, known: dict[object, NullableArray]
    ) -> Iterator[tuple[LiveRule, pa.RecordBatch]]:
        if group.loops is None:  # one rule, which may see fewer rows
            (rule,) = rules
            seen = self._seen(rule, view)
            if seen is None:
                return
            view, known = seen, {}
        rows = group.rows(view.table, known)
        if group.members[0].summarizes:
            (rule,) = rules
            span = rule.due.range_due(rule.watermark(self.before), rule.watermark(self.now))
            if span is not None:
                owned = replace(rows[0], owned=span)
                for batch in rule.member.run(view.table, owned, **self.limits):
                    yield rule, batch
            return
        for place, found in group.find(rows, **self.limits):
            rule = rules[place]
            some = (portion for matches in found for portion in portions(matches))
            given = self._eager if rule.due.is_eager else self._due
            for batch in given(rule, some, rows[place], view):
                yield rule, batch

    def _seen(self, rule: LiveRule, view: _View) -> _View | None:
        """The rows that a rule sees by itself; None: nothing of it can be emitted."""
        if rule.counted:  # where positions count, the events of its own types alone
            flags = flags_of(view.table, self.layout.packing)
            return view.where(has_any(flags, _bits(rule.counted)))
        if not rule.due.is_eager:
            return view
        waits, has_new = rule.due.window_us is not None, bool(view.is_new.any())
        if not (has_new or (waits and self.now > self.before)):
            return None
        return view if waits else view.where(_touched(rule.member, view))

    def _eager(self, rule: LiveRule, found: Iterable[Matches], rows: Rows, view: _View) -> Iterator[pa.RecordBatch]:
        """Matches with a new event, and time-outs that are due by now."""
        member = rule.member

        def given(some: Matches) -> Mask:
            holds = holds_any(some, view.is_new)
            if some.missing is None:
                return holds
            return np.where(some.missing > 0, rule.due.is_due(some, rows, self.before, self.now), holds)

        judged: Iterable[tuple[Matches, Mask]] = ((some, given(some)) for some in found)
        identify = member.identity(view.table, rows)
        if identify.may_find_equals:
            # Equal matches of earlier steps have the first numbers.
            judged = list(judged)
            for some, is_given in judged:
                identify(take(some, ~is_given))
        emitted = (some if is_given.all() else take(some, is_given) for some, is_given in judged)
        return member.written(emitted, view.table, rows, identify)

    def _due(self, rule: LiveRule, found: Iterable[Matches], rows: Rows, view: _View) -> Iterator[pa.RecordBatch]:
        """Matches that are due by now and were not before; equal ones are due at the same time."""
        before, now = rule.watermark(self.before), rule.watermark(self.now)
        policy = rule.due if rule.skipping is None else rule.skipping
        parts = []
        for some in found:
            is_due = policy.is_due(some, rows, before, now)
            if is_due.any():
                parts.append(some if is_due.all() else take(some, is_due))
        if rule.skipping is not None and parts:
            spent = integers(array_of(view.table, BITS)) & 3 == SPENT
            chosen, spent = rule.skipping.chosen(concatenate(parts), rows, spent, before, now)
            self._mark(spent, view)
            parts = [chosen]
        return rule.member.written(parts, view.table, rows) if parts else iter(())

    def _mark(self, spent: Mask, view: _View) -> None:
        if view.places is None:
            self.store.mark(spent)
            return
        of_all = np.zeros(self.size, np.bool_)
        of_all[view.places] = spent
        self.store.mark(of_all)


def _touched(member: Member, view: _View) -> Mask:
    """The rows of partitions to which something has come: no others have a match with a new event."""
    is_new = view.is_new
    partition = None
    if 2 * np.count_nonzero(is_new) < len(is_new) and not member.search.crosses_partitions:
        partition = partition_of(view.table, member.layout)
    return np.ones(len(is_new), np.bool_) if partition is None else np.isin(partition, partition[is_new])
