"""Other readings of the input: partitions, positions, identity, ties (R11, R16, R33, R41)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

from tests.semantics.readings.support import Patch, accepts, condition_of, remembers, translates

from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.reference import matches, policies, stream
from tocsin.reference.matches import Candidate, Evaluation, Slot
from tocsin.reference.stream import Event

# --- R11: what partitions ------------------------------------------------------------------------


def r11_partition_by_leaves_null_keys_out(patch: Patch) -> None:
    partitions = reference.partitions
    patch.setattr(reference, "partitions", lambda events, by: partitions(events, alg.Partition((), by.attributes)))


def r11_bracketed_keys_group_nulls(patch: Patch) -> None:
    partitions = reference.partitions
    patch.setattr(reference, "partitions", lambda events, by: partitions(events, alg.Partition(by.attributes)))


def r11_equalities_partition(patch: Patch) -> None:
    def found(query: alg.Query, _: ast.Query) -> alg.Query:
        keys = [
            one.left.name
            for one in ex.conjuncts(condition_of(query))
            if isinstance(one, ex.Comparison) and one.op == "="
            if isinstance(one.left, ex.Attribute) and isinstance(one.right, ex.Attribute)
            if one.left.path == one.right.path
        ]
        own = query.partition
        return replace(query, partition=alg.Partition(own.keys, (*own.same, *keys)))

    translates(patch, found)


def r11_absent_events_are_not_partitioned(patch: Patch) -> None:
    merged = remembers(patch)
    is_blocked = Evaluation._is_blocked
    patch.setattr(
        Evaluation,
        "_is_blocked",
        lambda self, found, guard: is_blocked(replace(self, events=merged), found, guard),
    )


def r11_a_bracketed_key_may_stand_in_an_expression(patch: Patch) -> None:
    accepts(patch, errors.MisplacedPartitionError)


# --- R16, R33: positions and identity -------------------------------------------------------------


def r16_ties_keep_the_order_of_arrival(patch: Patch) -> None:
    _positions(patch, lambda event, tie, arrival: (event.ts, arrival))


def r16_the_type_comes_before_the_tie_columns(patch: Patch) -> None:
    _positions(patch, lambda event, tie, _: (event.ts, event.type, _tie(event, tie), _text(event)))


def r16_the_attributes_come_before_the_type(patch: Patch) -> None:
    def shown(event: Event) -> str:
        return stream.canonical({name: value for name, value in event.row.items() if name not in ("id", "ts")})

    _positions(patch, lambda event, tie, _: (event.ts, _tie(event, tie), shown(event), event.type))


def r16_the_attributes_do_not_matter(patch: Patch) -> None:
    _positions(patch, lambda event, tie, arrival: (event.ts, _tie(event, tie), event.type, arrival))


def r16_only_the_first_tie_column_counts(patch: Patch) -> None:
    _positions(
        patch,
        lambda event, tie, _: (event.ts, _tie(event, tie[:1]), event.type, _text(event)),
    )


def r16_ties_are_ordered_by_a_hash(patch: Patch) -> None:
    def hashed(event: Event) -> str:
        return hashlib.sha256(f"{event.type} {_text(event)}".encode()).hexdigest()

    _positions(patch, lambda event, tie, _: (event.ts, _tie(event, tie), hashed(event)))


def r16_the_tie_columns_come_before_the_time(patch: Patch) -> None:
    _positions(patch, lambda event, tie, _: (_tie(event, tie), event.ts, event.type, _text(event)))


def r33_equal_rows_are_one_event(patch: Patch) -> None:
    ingest = reference.ingest

    def once(rows: dict[str, list[dict[str, Any]]], **options: Any) -> list[Event]:
        unique = {kind: list({stream.canonical(row): row for row in own}.values()) for kind, own in rows.items()}
        return ingest(unique, **options)

    patch.setattr(reference, "ingest", once)


def r33_matches_of_equal_values_are_one(patch: Patch) -> None:
    settle = Evaluation.settle

    def values(match: Candidate) -> Any:
        return sorted((slot.variable, stream.canonical(slot.event.row)) for slot in match.slots)

    patch.setattr(
        Evaluation,
        "settle",
        lambda self, found: list({str(values(match)): match for match in settle(self, found)}.values()),
    )


# --- R41: ties that tie columns order ---------------------------------------------------------------


def r41_tie_columns_order_positions_only(patch: Patch) -> None:
    _instants(patch, lambda event: event.ts)


def r41_type_and_attributes_order_what_tie_columns_do_not(patch: Patch) -> None:
    _instants(patch, lambda event: event.position)


def r41_the_gap_of_an_absence_is_measured_in_time(patch: Patch) -> None:
    inside = matches._inside

    def timed(limits: tuple[matches.Limit, ...]) -> tuple[matches.Limit, ...]:
        return tuple(
            (anchor if isinstance(anchor, alg.Whole) else replace(anchor, instant=anchor.ts), offset, strict)
            for anchor, offset, strict in limits
        )

    patch.setattr(
        matches,
        "_inside",
        lambda event, guard, found: inside(
            replace(event, instant=event.ts), replace(guard, lower=timed(guard.lower), upper=timed(guard.upper)), found
        ),
    )


def r41_next_goes_by_time(patch: Patch) -> None:
    could_bind = policies._could_bind

    def timed(event: Event, slot: Slot, before: list[Slot], conditions: Any) -> bool:
        times = [one.event.ts for one in before if slot.floor is not None and one.event.instant <= slot.floor]
        return event.ts > max(times, default=event.ts - 1) and could_bind(event, slot, before, conditions)

    patch.setattr(policies, "_could_bind", timed)


def r41_a_window_measures_tie_columns_too(patch: Patch) -> None:
    spans_less = matches._spans_less

    def tied(found: Candidate, window: int | None) -> bool:
        if spans_less(found, window) or window is None or found.first is None or found.last is None:
            return True
        return found.last.ts - found.first.ts == window and found.last.row.get("n", 0) < found.first.row.get("n", 0)

    patch.setattr(Evaluation, "_fits", lambda self, left, right: True)
    patch.setattr(matches, "_spans_less", tied)


def r41_an_event_without_a_value_comes_last(patch: Patch) -> None:
    tie_key = stream._tie_key
    patch.setattr(stream, "_tie_key", lambda event, tie: [(3,) if one == (0,) else one for one in tie_key(event, tie)])


def _instants(patch: Patch, instant: Callable[[Event], int]) -> None:
    ingest = reference.ingest
    patch.setattr(
        reference,
        "ingest",
        lambda *rows, **options: [replace(event, instant=instant(event)) for event in ingest(*rows, **options)],
    )


def _positions(patch: Patch, key: Callable[[Event, list[str], int], Any]) -> None:
    ingest = reference.ingest

    def ordered(rows: dict[str, list[dict[str, Any]]], *, tie: list[str], **options: Any) -> list[Event]:
        arrival = {id(row): n for n, row in enumerate(chain.from_iterable(rows.values()))}
        events = ingest(rows, tie=tie, **options)
        events.sort(key=lambda event: key(event, tie, arrival[id(event.row)]))
        return [replace(event, position=n, local=n) for n, event in enumerate(events)]

    patch.setattr(reference, "ingest", ordered)


def _tie(event: Event, tie: list[str]) -> list[Any]:
    return stream._tie_key(event, tie)


def _text(event: Event) -> str:
    return stream.canonical(event.row)
