"""Shards of a stream, as workers run them: late events and any cut into micro-batches.

Literal and fast constructions give the same results in the same micro-batch, whatever comes late; the order of arrival
inside a micro-batch changes nothing; and results come in order of time from one micro-batch to the next, so that an
operator which reads them needs no lateness of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.acer.definitions import Row
from tests.acer.support import named, rising

from tocsin.acer import arrow as columns
from tocsin.acer.fast import Fold, Instants, Slices, Sliding
from tocsin.acer.listings import Collected, Shared, UserAggregate
from tocsin.acer.literal import Literal, Unwrapped
from tocsin.acer.model import Machine
from tocsin.acer.stream import OperatorStep
from tocsin.acer.windows import Windows, slices
from tocsin.engines.stream.store import RowStore, State
from tocsin.plan.manifest import BITS, column

FAR = 10_000  # ends all windows
NAMES = ("ts", "k", "x")
UNITS = st.sampled_from([1, 1, 3])
DELAYS = st.sampled_from([0, 1, 4, 20])
# Two keys and few times, so that an event often finds the watermark beyond it and its windows still open.
CUTS = st.lists(
    st.lists(st.builds(Row, st.integers(0, 15), st.sampled_from(["p", "q"]), st.integers(0, 1)), max_size=3),
    min_size=2,
    max_size=8,
)
MANY = settings(max_examples=100)
Batches = list[list[Row]]
Told = list[tuple[Any, ...]]


class Shard:
    """A worker's shard: what a machine gives in each micro-batch, and how many events were late."""

    def __init__(self, machine: Machine, delay: int, *, unit: int = 1, width: int = 1) -> None:
        payload = {f"c{place}": pa.string() if width == 1 else pa.int64() for place in range(width)}
        incoming = columns.Incoming(NAMES, ("k",), unit=unit)
        schema = {"k": pa.string(), "ts": pa.int64(), "revision": pa.int32(), **payload}
        outgoing = columns.Outgoing(pa.schema(schema), 1, has_revision=True)
        self.step, self.delay = OperatorStep(machine, incoming, outgoing), delay

    def told(self, batches: Batches) -> list[Told]:
        """What comes of each micro-batch, by key, in order; then how many were late."""
        store, found = RowStore(State.begin(1)), []
        for batch in batches:
            latest = [(max(row.ts for row in batch),)] if batch else []
            outcome = self.step.run(store, store.clocks.advanced(latest, [self.delay]), [table(batch)])
            rows = [tuple(row.values()) for one in outcome.batches for row in one.to_pylist()]
            found.append([*sorted(rows, key=lambda row: repr(row[0])), ("late", outcome.report.late)])
        return found


def table(rows: list[Row]) -> pa.Table:
    names = {None: 0, "p": 1, "q": 2, "end": 3}
    return pa.table(
        {
            column(0): pa.array([row.ts for row in rows], pa.int64()),
            column(1): pa.array([row.k for row in rows], pa.string()),
            column(2): pa.array([row.x for row in rows], pa.int64()),
            columns.TIME: pa.array([row.ts for row in rows], pa.int64()),
            columns.FIRST_KEY: pa.array([names[row.k] for row in rows], pa.int64()),
            columns.SECOND_KEY: pa.array([0 for _ in rows], pa.int64()),
            columns.FIRST_TIE: pa.array([row.x for row in rows], pa.int64()),
            columns.SECOND_TIE: pa.array([0 for _ in rows], pa.int64()),
            BITS: pa.array([1 for _ in rows], pa.int64()),
        }
    )


def scaled(batches: Batches, unit: int) -> Batches:
    """In ticks, and with an event that ends all windows."""
    ended = [*batches, [Row(FAR, "end", 0)]]
    return [[row._replace(ts=row.ts * unit) for row in batch] for batch in ended]


def shuffled(batches: Batches, seed: int) -> Batches:
    chance = random.Random(seed)
    return [chance.sample(batch, len(batch)) for batch in batches]


def in_order(told: Iterable[Told]) -> bool:
    """Whether no result is older than one of a micro-batch before."""
    latest = -FAR
    for batch in told:
        times = [row[1] for row in batch[:-1]]
        if min(times, default=latest) < latest:
            return False
        latest = max([latest, *times])
    return True


def listing() -> UserAggregate:
    """All events of a window, in the order in which f_U saw them."""
    add = named(lambda state, event: (*(state or ()), (event.ts, event.x)), "state", "event")
    return UserAggregate(add, named(lambda state: [(repr(state),)], "state"), 1)


@MANY
@given(
    CUTS, st.integers(1, 9), st.integers(1, 20), st.sampled_from([0, 2, 7, 100]), DELAYS, UNITS, st.integers(0, 2**32)
)
def test_the_aggregate_with_late_events(
    batches: Batches, advance: int, size: int, lateness: int, delay: int, unit: int, seed: int
) -> None:
    batches = scaled(batches, unit)
    windows = Windows(advance * unit, size * unit, unit)
    literal, fast = (
        Shard(kind(windows, listing(), lateness, takes_late=True), delay, unit=unit) for kind in (Literal, Sliding)
    )
    wanted = literal.told(batches)
    assert fast.told(batches) == wanted
    assert literal.told(shuffled(batches, seed)) == wanted
    assert fast.told(shuffled(batches, seed)) == wanted
    assert lateness or in_order(wanted)


@MANY
@given(CUTS, DELAYS, UNITS, st.integers(0, 2**32))
def test_sort_and_preprocess_with_late_events(batches: Batches, delay: int, unit: int, seed: int) -> None:
    one = named(lambda events: [(repr([event.x for event in events]),)], "events")
    machines = (Literal(Windows(unit, unit, unit), Collected(one)), Instants(one))
    check(machines, scaled(batches, unit), delay, unit, seed)


@MANY
@given(CUTS, st.integers(1, 6), st.integers(0, 12), st.integers(1, 3), DELAYS, UNITS, st.integers(0, 2**32))
def test_time_cer_with_late_events(
    batches: Batches, within: int, more: int, length: int, delay: int, unit: int, seed: int
) -> None:
    size = within + more
    advance = random.Random(seed).randint(1, size - within + 1)
    asked, span = Windows(advance * unit, size * unit, unit), within * unit
    cut = slices(asked, span)
    machines = (
        Literal(asked, rising(length, asked, span)),
        Slices(cut, rising(length, cut, span), asked=asked),
    )
    check(machines, scaled(batches, unit), delay, unit, seed, width=2 + length)


@MANY
@given(CUTS, st.integers(1, 8), DELAYS, UNITS, st.integers(0, 2**32))
def test_rule_cer_with_late_events(batches: Batches, distance: int, delay: int, unit: int, seed: int) -> None:
    def count(state: Any, event: Any) -> Any:
        seen = (*(state or ()), event.x)
        return seen, [(repr(seen),)]

    mapping = named(count, "state", "event")
    windows = Windows(unit, (distance + 1) * unit, unit)
    literal = Literal(windows, Shared(mapping, distance * unit, unit), distance=distance * unit)
    end = [[row._replace(ts=min(row.ts, 100 * unit)) for row in batch] for batch in scaled(batches, unit)]
    check((Unwrapped(**vars(literal)), Fold(mapping)), end, delay, unit, seed)


def test_the_loop_begins_at_the_first_event_that_can_still_come() -> None:
    """The event at 4 comes after the one at 9, in time; the watermark, now at 7, has passed it at once."""
    batches = [[Row(9, "p", 1)], [Row(12, "p", 1), Row(4, "p", 0)], [Row(FAR, "end", 0)]]
    mapping = named(lambda state, event: ((*(state or ()), event.x), [(str(event.x),)]), "state", "event")
    literal = Literal(Windows(1, 3, 1), Shared(mapping, 2, 1), distance=2)
    for machine in (Unwrapped(**vars(literal)), Fold(mapping)):
        told = Shard(machine, 5).told(batches)
        assert [[row[1] for row in batch[:-1] if row[0] == "p"] for batch in told] == [[], [4], [9, 12]]


def check(
    machines: tuple[Machine, Machine], batches: Batches, delay: int, unit: int, seed: int, *, width: int = 1
) -> None:
    """Equal in each micro-batch, whatever the order of arrival in it, and in order."""
    literal, fast = (Shard(machine, delay, unit=unit, width=width) for machine in machines)
    wanted = [sorted(batch, key=repr) for batch in fast.told(batches)]
    assert in_order(fast.told(batches))
    assert [sorted(batch, key=repr) for batch in literal.told(batches)] == wanted
    assert [sorted(batch, key=repr) for batch in fast.told(shuffled(batches, seed))] == wanted


def test_a_waiting_event_reaches_update_before_an_event_that_comes_late() -> None:
    """30 has been passed by the watermark when 20 comes; its key had no other reason to be woken."""
    batches = [[Row(30, "p", 0)], [Row(60, "q", 0)], [Row(20, "p", 0)], [Row(FAR, "end", 0)]]
    for kind in (Literal, Sliding):
        told = Shard(kind(Windows(100, 100), listing(), 0, takes_late=True), 0).told(batches)
        assert [row[3] for batch in told for row in batch[:-1] if row[0] == "p"] == ["((30, 0), (20, 0))"]


def test_events_that_come_late_together_reach_update_in_order_of_time() -> None:
    batches = [[Row(60, "p", 0)], [Row(30, "p", 0), Row(20, "p", 0)], [Row(FAR, "end", 0)]]
    for kind in (Literal, Sliding):
        told = Shard(kind(Windows(100, 100), listing(), 0, takes_late=True), 0).told(batches)
        assert told[-1][0][3] == "((20, 0), (30, 0), (60, 0))"
