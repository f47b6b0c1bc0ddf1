"""Other readings of the nodes that only ACEL and rules can write (R7, R8, R19, R22, R24 to R30)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from tests.semantics.readings.structure import r12_a_conjunction_needs_different_events
from tests.semantics.readings.support import Bags, Patch

from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.reference import conditions, matches
from tocsin.reference.matches import Candidate, Evaluation, Guard, Made, Slot
from tocsin.reference.stream import Event
from tocsin.reference.values import all_true, compare


def r7_acel_compares_times(patch: Patch) -> None:
    patch.setattr(matches, "_before", lambda order: lambda left, right: left.ts < right.ts)


def r7_sase_compares_positions(patch: Patch) -> None:
    patch.setattr(matches, "_before", lambda order: lambda left, right: left.local < right.local)


def r8_projection_shrinks_the_interval(patch: Patch) -> None:
    projected = matches._projected

    def shrunk(found: Candidate, kept: Any) -> Candidate:
        left = projected(found, kept)
        by_place = sorted((slot.event for slot in left.slots), key=lambda event: event.local)
        return replace(left, first=by_place[0], last=by_place[-1])

    patch.setattr(matches, "_projected", shrunk)


def r19_a_name_holds_an_event_once_per_variable(patch: Patch) -> None:
    def counted(found: Candidate, variable: str) -> Candidate:
        return replace(found, slots=(*found.slots, *(Slot(variable, slot.event) for slot in found.slots)))

    patch.setattr(matches, "_bound", counted)


def r19_a_name_holds_what_projection_removed(patch: Patch) -> None:
    bound = matches._bound

    def remembering(found: Candidate, variable: str) -> Candidate:
        ends = tuple(Slot("removed", event) for event in (found.first, found.last) if event)
        named = bound(replace(found, slots=found.slots + ends), variable)
        return replace(named, slots=tuple(slot for slot in named.slots if slot.variable != "removed"))

    patch.setattr(matches, "_bound", remembering)


def r19_a_name_leaves_derived_events_out(patch: Patch) -> None:
    bound = matches._bound

    def only_read(found: Candidate, variable: str) -> Candidate:
        named = bound(found, variable)
        own = [slot for slot in named.slots if slot.variable != variable or slot.event.type is not None]
        return replace(named, slots=tuple(own))

    patch.setattr(matches, "_bound", only_read)


def r22_next_may_skip_events_of_its_type(patch: Patch) -> None:
    def as_printed(self: Evaluation, node: alg.NextOf) -> list[Candidate]:
        return [
            Candidate(first, event, (Slot(node.variable, event),))
            for first, event in product(self.events, self.events)
            if event.type == node.type and first.local <= event.local
        ]

    patch.setattr(Evaluation, "_next_of", as_printed)


def r22_next_starts_at_its_event(patch: Patch) -> None:
    def alone(self: Evaluation, node: alg.NextOf) -> list[Candidate]:
        return self._events(alg.Event(node.type, node.variable))

    patch.setattr(Evaluation, "_next_of", alone)


def r24_equal_derived_events_of_a_match_are_one(patch: Patch) -> None:
    derived = matches._derived

    def merged(found: Candidate, node: alg.Derive) -> Candidate:
        more = derived(found, node)
        new = more.slots[-1]
        known = [slot.event.row for slot in found.slots if slot.variable == node.variable]
        return found if new.event.row in known else more

    patch.setattr(matches, "_derived", merged)


def r24_a_derived_event_replaces_what_its_name_held(patch: Patch) -> None:
    derived = matches._derived

    def replaced(found: Candidate, node: alg.Derive) -> Candidate:
        more = derived(found, node)
        kept = [slot for slot in found.slots if slot.variable != node.variable]
        return replace(more, slots=(*kept, more.slots[-1]))

    patch.setattr(matches, "_derived", replaced)


def r24_a_derived_event_is_at_the_start_of_its_match(patch: Patch) -> None:
    derived = matches._derived
    patch.setattr(
        matches,
        "_derived",
        lambda found, node: replace(found, slots=derived(replace(found, last=found.first), node).slots),
    )


def r24_every_derived_event_differs(patch: Patch) -> None:
    identity = matches.identity
    patch.setattr(
        matches,
        "identity",
        lambda event: (id(event), "") if isinstance(event.row, Made) else identity(event),
    )


def r25_acel_and_is_a_product(patch: Patch) -> None:
    found = Evaluation.matches
    patch.setattr(
        Evaluation,
        "matches",
        lambda self, node: found(self, alg.All(node.parts) if isinstance(node, alg.Both) else node),
    )


def r26_a_filter_holds_for_some_event(patch: Patch) -> None:
    def some(node: ex.Every, bags: Bags, choice: Any) -> bool:
        own = [{**bags, node.variable: (event,)} for event in bags.get(node.variable, ())]
        return not own or any(conditions.interpret(node.condition, one, choice) is True for one in own)

    patch.setattr(conditions, "_every", some)


def r26_a_filter_fails_on_no_event(patch: Patch) -> None:
    every = conditions._every
    patch.setattr(conditions, "_every", lambda node, bags, choice: node.variable in bags and every(node, bags, choice))


def r26_a_disjunction_needs_one_event_per_atom(patch: Patch) -> None:
    patch.setattr(conditions, "any_true", all_true)


def r26_not_is_the_complement(patch: Patch) -> None:
    patch.setattr(conditions, "negate", lambda value: not value)


def r27_an_event_is_compared_with_itself(patch: Patch) -> None:
    _compares(patch, lambda events: product(events, events))


def r27_a_null_is_left_out(patch: Patch) -> None:
    predicate = conditions._bag_predicate

    def known(node: ex.BagPredicate, bags: Bags) -> bool | None:
        bag = [event for event in bags[node.variable] if event.value(node.path) is not None]
        return predicate(node, {**bags, node.variable: tuple(bag)})

    patch.setattr(conditions, "_bag_predicate", known)


def r27_events_of_one_instant_have_no_successor(patch: Patch) -> None:
    def later(events: Any) -> Any:
        return ((left, right) for left, right in product(events, events) if left.ts < right.ts)

    _compares(patch, later)


def _compares(patch: Patch, pairs: Any) -> None:
    signs = {ex.BagOrder.SAME: "=", ex.BagOrder.INCREASING: "<=", ex.BagOrder.DECREASING: ">="}

    def predicate(node: ex.BagPredicate, bags: Bags) -> bool | None:
        compared = [
            compare(signs[node.order], left.value(node.path), right.value(node.path))
            for left, right in pairs(bags[node.variable])
        ]
        return all_true(compared)

    patch.setattr(conditions, "_bag_predicate", predicate)


def r28_the_window_of_an_absence_is_open(patch: Patch) -> None:
    fixed = matches._fixed
    patch.setattr(matches, "_fixed", lambda bound, found: fixed(replace(bound, strict=True), found))


def r28_one_of_several_windows_is_enough(patch: Patch) -> None:
    inside = matches._inside

    def in_some(event: Event, guard: Guard, found: Candidate) -> bool:
        windows = zip(guard.lower, guard.upper, strict=True)
        return any(inside(event, replace(guard, lower=(low,), upper=(high,)), found) for low, high in windows)

    patch.setattr(matches, "_inside", in_some)


def r28_an_unknown_condition_blocks(patch: Patch) -> None:
    def lenient(conjunct: ex.Expression, bags: Bags) -> bool:
        return conditions.interpret(conjunct, bags, {}) is not False

    patch.setattr(matches, "holds", lenient)


def r28_several_absences_block_together(patch: Patch) -> None:
    def settle(self: Evaluation, candidates: list[Candidate]) -> list[Candidate]:
        return [
            replace(found, guards=())
            for found in candidates
            if not found.guards or not all(self._is_blocked(found, guard) for guard in found.guards)
        ]

    patch.setattr(Evaluation, "settle", settle)


def r29_one_event_stands_in_one_variable(patch: Patch) -> None:
    r12_a_conjunction_needs_different_events(patch)


def r29_an_event_of_the_match_does_not_block_it(patch: Patch) -> None:
    is_blocked = Evaluation._is_blocked

    def others(self: Evaluation, found: Candidate, guard: Guard) -> bool:
        bound = {slot.event.position for slot in found.slots}
        left = [event for event in self.events if event.position not in bound]
        return is_blocked(replace(self, events=left), found, guard)

    patch.setattr(Evaluation, "_is_blocked", others)


def r30_equal_emitted_events_are_one(patch: Patch) -> None:
    emitted = matches._emitted

    def by_value(found: Candidate, node: alg.Emit) -> Candidate:
        made = emitted(found, node)
        (slot,) = made.slots
        row = Made({name: value for name, value in slot.event.row.items() if name != "__tocsin_origin"})
        return Candidate(made.first, made.last, (replace(slot, event=replace(slot.event, row=row)),))

    patch.setattr(matches, "_emitted", by_value)
