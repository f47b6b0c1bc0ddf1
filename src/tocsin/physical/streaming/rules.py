"""The rules of a shard: a search, when its matches become due, and what becomes of them. A pattern is one rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tocsin.kernels.searches import Search
from tocsin.language.ast import Skip
from tocsin.physical.sliced.worker import Member, SearchGroup
from tocsin.physical.streaming.clocks import NEVER
from tocsin.physical.streaming.emitting import Emission
from tocsin.physical.streaming.skipping import Skipping, without_policies
from tocsin.plan.due import Due, Retention
from tocsin.plan.layout import Layout


@dataclass(frozen=True)
class LiveRule:
    """A rule as a shard runs it.

    Attributes
    ----------
    member
        Its search, and how what it finds is written.
    due
        When its matches become due.
    skipping
        Its after-match policy; None: there is none, or the search applies it.
    delay_us
        Δ(r): how far its watermark is behind that of the inputs.
    is_shown
        Whether its matches are part of the result.
    emissions
        The events that other rules read, or that are the result.
    counted
        The flags of all events among which those of a match have to be neighbours; none: rows are of its types alone.
    """

    member: Member
    due: Due
    skipping: Skipping | None = None
    delay_us: int = 0
    is_shown: bool = True
    emissions: tuple[Emission, ...] = ()
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
