"""Other readings of absence and of elements that may be empty (R9, R10, R13, R14, R20)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from typing import Any

from tests.semantics.readings.support import Patch, accepts, truths

from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.analysis import structure
from tocsin.language import expressions as ex
from tocsin.reference import matches
from tocsin.reference.conditions import Bags, holds
from tocsin.reference.matches import Candidate, Evaluation, Guard
from tocsin.reference.stream import Event

# --- R9: the windows of an absence ----------------------------------------------------------------

Limits = Callable[[Candidate], dict[Any, Event | None]]


def r9_a_leading_absence_begins_one_window_before_the_first_event(patch: Patch) -> None:
    _measures(patch, lambda found: {alg.Whole.START: found.first, alg.Whole.END: found.first})


def r9_a_trailing_absence_ends_one_window_after_the_last_event(patch: Patch) -> None:
    _measures(patch, lambda found: {alg.Whole.START: found.last, alg.Whole.END: found.last})


def r9_an_edge_absence_is_closed_where_the_window_ends(patch: Patch) -> None:
    _changes_bounds(patch, lambda bound: replace(bound, strict=not isinstance(bound.anchor, alg.Whole)))


def r9_an_edge_absence_under_an_operator_is_measured_by_its_own_sequence(patch: Patch) -> None:
    fixed = matches._fixed

    def own(bound: alg.Bound, found: Candidate) -> Any:
        if isinstance(bound.anchor, alg.Whole) and found.first and found.last:
            end = found.first if bound.anchor is alg.Whole.START else found.last
            return (end, bound.offset_us, bound.strict)
        return fixed(bound, found)

    patch.setattr(matches, "_fixed", own)


def r9_an_edge_absence_looks_no_further_than_the_match(patch: Patch) -> None:
    inside = matches._inside
    patch.setattr(
        matches,
        "_inside",
        lambda event, guard, found: found.first.ts <= event.ts <= found.last.ts and inside(event, guard, found),
    )


def r9_an_edge_absence_in_an_inner_sequence_is_closed_by_the_window(patch: Patch) -> None:
    patch.setattr(structure, "flattened", lambda element: list(element.parts))


def r9_an_edge_absence_without_a_window_is_accepted(patch: Patch) -> None:
    accepts(patch, errors.UnboundedAbsenceError)


def _measures(patch: Patch, limits: Limits) -> None:
    """Other ends of the whole match."""
    inside = matches._inside

    def measured(event: Event, guard: Guard, found: Candidate) -> bool:
        known = limits(found)

        def fixed(bounds: Iterable[Any]) -> tuple[Any, ...]:
            return tuple((known.get(anchor, anchor), offset, strict) for anchor, offset, strict in bounds)

        return inside(event, replace(guard, lower=fixed(guard.lower), upper=fixed(guard.upper)), found)

    patch.setattr(matches, "_inside", measured)


def _changes_bounds(patch: Patch, change: Callable[[alg.Bound], alg.Bound]) -> None:
    fixed = matches._fixed
    patch.setattr(matches, "_fixed", lambda bound, found: fixed(change(bound), found))


# --- R10: conditions on an absent event -----------------------------------------------------------


def r10_each_condition_blocks_alone(patch: Patch) -> None:
    _blocks(patch, lambda conjuncts, bags: not conjuncts or any(holds(one, bags) for one in conjuncts))


def r10_an_unknown_condition_blocks(patch: Patch) -> None:
    _blocks(
        patch,
        lambda conjuncts, bags: all(truth is not False for one in conjuncts for truth in truths(one, bags)),
    )


def r10_some_event_of_an_iteration_is_enough_to_block(patch: Patch) -> None:
    def some(one: ex.Expression, bags: Bags) -> bool:
        found = list(truths(one, bags))
        return not found or True in found

    _blocks(patch, lambda conjuncts, bags: all(some(one, bags) for one in conjuncts))


def r10_a_condition_may_relate_two_absent_events(patch: Patch) -> None:
    accepts(patch, errors.TwoNegatedVariablesError)


def r10_an_absent_event_may_be_returned(patch: Patch) -> None:
    accepts(patch, errors.NegatedVariableInReturnError)


def _blocks(patch: Patch, satisfies: Callable[[tuple[ex.Expression, ...], Bags], bool]) -> None:
    """Another answer to whether an event inside the gap satisfies the conditions of the absence."""

    def is_blocked(self: Evaluation, found: Candidate, guard: Guard) -> bool:
        absent, bags = guard.absent, found.bags
        return any(
            satisfies(ex.conjuncts(absent.condition), {**bags, absent.variable: (event,)})
            for event in self.events
            if event.type == absent.type and matches._inside(event, guard, found)
        )

    patch.setattr(Evaluation, "_is_blocked", is_blocked)


# --- R13: empty choices ---------------------------------------------------------------------------


def r13_an_optional_element_must_bind_an_event(patch: Patch) -> None:
    repeat = Evaluation._repeat
    patch.setattr(Evaluation, "_repeat", lambda self, part, least, *rest: repeat(self, part, max(least, 1), *rest))


def r13_an_optional_element_is_greedy(patch: Patch) -> None:
    settle = Evaluation.settle

    def greedy(self: Evaluation, found: list[Candidate]) -> list[Candidate]:
        kept = settle(self, found)
        bound = [{(slot.variable, slot.event.position) for slot in one.slots} for one in kept]
        return [one for one, own in zip(kept, bound, strict=True) if not any(own < other for other in bound)]

    patch.setattr(Evaluation, "settle", greedy)


def r13_the_neighbours_of_an_empty_choice_do_not_meet(patch: Patch) -> None:
    def only_neighbours(self: Evaluation, parts: Any, follows: Any) -> list[Candidate]:
        rows = [(Candidate(), Candidate())]
        for part in parts:
            rows = [
                (matches.joined(left, right, ordered=follows is not None), right)
                for (left, previous), right in product(rows, self.matches(part))
                if not (follows and previous.last and right.first) or follows(previous.last, right.first)
            ]
        return matches.distinct(left for left, _ in rows)

    patch.setattr(Evaluation, "_fold", only_neighbours)


def r13_an_absence_beside_an_empty_choice_is_dropped(patch: Patch) -> None:
    guarded = matches.guarded

    def only_between(found: Candidate, absent: alg.Absent) -> Candidate:
        bounds = absent.lower[:1] + absent.upper[:1]
        return found if None in [matches._fixed(one, found) for one in bounds] else guarded(found, absent)

    patch.setattr(matches, "guarded", only_between)


def r13_a_match_without_events_is_reported(patch: Patch) -> None:
    evaluate = reference.evaluate

    def with_empty(pattern: Any, rows: Any, **options: Any) -> list[Any]:
        empty = [{"start": None, "end": None}] if alg.can_match_empty(_core(pattern.query)) else []
        return evaluate(pattern, rows, **options) + empty

    patch.setattr(reference, "evaluate", with_empty)


def r13_an_element_repeated_zero_times_is_accepted(patch: Patch) -> None:
    accepts(patch, errors.EmptyPatternError)


def _core(query: alg.Query) -> alg.Node:
    node = query.pattern
    while isinstance(node, alg.Within | alg.Filter):
        node = node.part
    return node


# --- R14: a trailing absence at the end of the input ----------------------------------------------


def r14_a_trailing_absence_waits_for_an_event_after_its_window(patch: Patch) -> None:
    is_blocked = Evaluation._is_blocked

    def unless_concluded(self: Evaluation, found: Candidate, guard: Guard) -> bool:
        now = self.events[-1].ts
        ends = [offset for anchor, offset, _ in guard.upper if anchor is alg.Whole.START]
        waits = any(found.first is not None and now < found.first.ts + offset for offset in ends)
        return waits or is_blocked(self, found, guard)

    patch.setattr(Evaluation, "_is_blocked", unless_concluded)


def r14_a_time_out_waits_for_an_event_after_its_window(patch: Patch) -> None:
    timeouts = reference.timeouts

    def concluded(query: alg.Query, events: list[Event]) -> list[Any]:
        return [
            (match, missing)
            for match, missing in timeouts(query, events)
            if events[-1].ts >= match.first.ts + query.window_us
        ]

    patch.setattr(reference, "timeouts", concluded)


# --- R20: several absences, and what stands beside one --------------------------------------------


def r20_absences_in_one_gap_are_an_absent_sequence(patch: Patch) -> None:
    def in_order(self: Evaluation, found: Candidate, guards: list[Guard]) -> bool:
        after = -1
        for guard in guards:
            times = [
                event.ts
                for event in self.events
                if event.ts > after and replace(self, events=[event])._is_blocked(found, guard)
            ]
            if not times:
                return False
            after = min(times)
        return True

    def settle(self: Evaluation, candidates: list[Candidate]) -> list[Candidate]:
        kept = []
        for found in candidates:
            gaps: dict[Any, list[Guard]] = {}
            for guard in found.guards:
                gaps.setdefault((guard.lower, guard.upper), []).append(guard)
            if found.slots and not any(in_order(self, found, gap) for gap in gaps.values()):
                kept.append(replace(found, guards=()))
        return matches.distinct(kept)

    patch.setattr(Evaluation, "settle", settle)


def r20_the_gap_begins_at_the_first_event_of_its_left_neighbour(patch: Patch) -> None:
    _anchors(patch, alg.LastOf, lambda variables: variables[::-1], min)


def r20_the_gap_ends_at_the_last_event_of_its_right_neighbour(patch: Patch) -> None:
    _anchors(patch, alg.FirstOf, lambda variables: variables, max)


def r20_an_absence_in_an_iteration_guards_between_the_copies(patch: Patch) -> None:
    joined = matches.joined

    def stretched(left: Candidate, right: Candidate, *, ordered: bool) -> Candidate:
        both = joined(left, right, ordered=ordered)
        if not (left.guards and right.guards):
            return both
        longer = tuple(replace(guard, lower=left.guards[0].lower) for guard in right.guards)
        return replace(both, guards=left.guards + longer)

    patch.setattr(matches, "joined", stretched)


def r20_one_undisturbed_copy_of_an_iteration_is_enough(patch: Patch) -> None:
    def settle(self: Evaluation, candidates: list[Candidate]) -> list[Candidate]:
        kept = []
        for found in candidates:
            free = {guard.absent for guard in found.guards if not self._is_blocked(found, guard)}
            if found.slots and free == {guard.absent for guard in found.guards}:
                kept.append(replace(found, guards=()))
        return matches.distinct(kept)

    patch.setattr(Evaluation, "settle", settle)


def _anchors(
    patch: Patch,
    kind: type,
    nearest_first: Callable[[tuple[str, ...]], tuple[str, ...]],
    pick: Callable[..., Event],
) -> None:
    """The other end of the neighbour: of the nearest variable that is bound."""
    fixed = matches._fixed

    def other_end(bound: alg.Bound, found: Candidate) -> Any:
        if isinstance(bound.anchor, kind):
            for name in nearest_first(bound.anchor.variables):
                events = [slot.event for slot in found.slots if slot.variable == name]
                if events:
                    return (pick(events, key=lambda event: event.local), bound.offset_us, bound.strict)
        return fixed(bound, found)

    patch.setattr(matches, "_fixed", other_end)
