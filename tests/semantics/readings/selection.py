"""Other readings of `next` and of contiguity (R2, R6, R17, R45)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.semantics.readings.support import Patch, condition_of, remembers, truths

from tocsin import reference
from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.reference import matches, policies
from tocsin.reference.conditions import holds
from tocsin.reference.matches import Candidate
from tocsin.reference.stream import Event

# --- R2: next -------------------------------------------------------------------------------------


def r2_an_event_of_the_type_blocks_whatever_the_conditions(patch: Patch) -> None:
    _could_bind(patch, lambda could_bind, event, slot, before, _: could_bind(event, slot, before, []))


def r2_an_event_of_the_instant_before_blocks(patch: Patch) -> None:
    _could_bind(
        patch,
        lambda could_bind, event, slot, before, known: could_bind(event, replace(slot, floor=None), before, known),
    )


def r2_only_an_earlier_time_blocks(patch: Patch) -> None:
    _could_bind(
        patch,
        lambda could_bind, event, slot, before, known: (
            event.ts < slot.event.ts and could_bind(event, slot, before, known)
        ),
    )


def r2_an_unknown_condition_blocks(patch: Patch) -> None:
    patch.setattr(policies, "holds", lambda conjunct, bags: all(truth is not False for truth in truths(conjunct, bags)))


def r2_a_condition_on_an_aggregate_of_the_variable_itself_counts(patch: Patch) -> None:
    _is_final(patch, lambda is_final, one, variable: is_final(one, variable) and not ex.has_aggregate(one))


def r2_a_condition_on_the_last_event_of_the_variable_itself_counts(patch: Patch) -> None:
    _is_final(patch, lambda is_final, one, variable: is_final(one, variable) and not _has(one, ex.Edge.LAST))


def r2_a_condition_on_the_next_event_of_the_variable_itself_counts(patch: Patch) -> None:
    _is_final(patch, lambda is_final, one, variable: is_final(one, variable) and not _has(one, ex.Each.NEXT))


def r2_every_aggregate_is_final(patch: Patch) -> None:
    _is_final(patch, lambda is_final, one, variable: is_final(one, variable) or ex.has_aggregate(one))


def r2_only_an_event_that_leads_to_a_match_blocks(patch: Patch) -> None:
    apply = policies.apply

    def overtakes(other: list[tuple[int, str]], walk: list[tuple[int, str]]) -> bool:
        same = next((n for n, (one, two) in enumerate(zip(other, walk, strict=False)) if one != two), 0)
        return same > 0 and other[same][1] == walk[same][1] and other[same][0] < walk[same][0]

    def selected(query: alg.Query, found: list[Candidate], events: list[Event]) -> list[Candidate]:
        if query.selection is not Selection.NEXT:
            return apply(query, found, events)
        walks = [sorted((slot.event.local, slot.variable) for slot in match.slots) for match in found]
        kept = [
            match
            for match, walk in zip(found, walks, strict=True)
            if not any(overtakes(other, walk) for other in walks)
        ]
        return apply(replace(query, selection=Selection.ANY), kept, events)

    patch.setattr(policies, "apply", selected)


def r2_the_first_event_of_a_match_is_constrained_too(patch: Patch) -> None:
    def is_first(match: Candidate, events: list[Event]) -> bool:
        first = min((slot.event for slot in match.slots), key=lambda event: event.local)
        return all(event.type != first.type for event in events[: first.local])

    _takes_the_next(patch, lambda takes, query, match, events: is_first(match, events) and takes(query, match, events))


def r2_the_walk_follows_the_text(patch: Patch) -> None:
    def in_text_order(_: Any, query: alg.Query, match: Candidate, events: list[Event]) -> bool:
        known = list(ex.conjuncts(condition_of(query)))
        return not any(
            policies._could_bind(event, slot, list(match.slots[:index]), known)
            for index, slot in enumerate(match.slots)
            if index
            for event in events[match.slots[index - 1].event.local + 1 : slot.event.local]
        )

    _takes_the_next(patch, in_text_order)


def r2_an_event_of_another_partition_blocks(patch: Patch) -> None:
    merged = remembers(patch)

    def in_all(takes: Any, query: alg.Query, match: Candidate, _: list[Event]) -> bool:
        slots = [replace(slot, event=replace(slot.event, local=slot.event.position)) for slot in match.slots]
        return takes(query, replace(match, slots=tuple(slots)), merged)

    _takes_the_next(patch, in_all)


def _could_bind(patch: Patch, change: Callable[..., bool]) -> None:
    old = policies._could_bind
    patch.setattr(policies, "_could_bind", lambda *arguments: change(old, *arguments))


def _is_final(patch: Patch, change: Callable[..., bool]) -> None:
    old = policies._is_final
    patch.setattr(policies, "_is_final", lambda *arguments: change(old, *arguments))


def _takes_the_next(patch: Patch, change: Callable[..., bool]) -> None:
    old = policies._takes_the_next
    patch.setattr(policies, "_takes_the_next", lambda *arguments: change(old, *arguments))


def _has(conjunct: ex.Expression, index: ex.Index) -> bool:
    return any(isinstance(node, ex.Attribute) and node.index is index for node in conjunct.walk())


# --- R45: next and alternatives -------------------------------------------------------------------


def r45_only_the_variable_that_is_bound_blocks(patch: Patch) -> None:
    patch.setattr(matches, "_one_element", lambda found, node: found)


def r45_every_or_is_one_element(patch: Patch) -> None:
    def one_element(found: Candidate, node: alg.Any) -> Candidate:
        names = tuple(sorted(alg.variables_of(node)))
        return replace(found, slots=tuple(replace(slot, alternatives=names) for slot in found.slots))

    patch.setattr(matches, "_one_element", one_element)


def r45_the_alternatives_exclude_each_other(patch: Patch) -> None:
    def takes_the_first(takes: Any, query: alg.Query, match: Candidate, events: list[Event]) -> bool:
        def is_first(slot: Any) -> bool:
            fitting = [name for name in slot.alternatives if slot.event.type in query.variables[name].types]
            return not fitting or slot.variable == fitting[0]

        return all(map(is_first, match.slots)) and takes(query, match, events)

    _takes_the_next(patch, takes_the_first)


# --- R6: contiguity and partitions ----------------------------------------------------------------


def r6_contiguous_counts_in_the_partition(patch: Patch) -> None:
    consecutive = policies._is_consecutive
    patch.setattr(policies, "_is_consecutive", lambda match, _: consecutive(match, lambda event: event.local))


def r6_partition_contiguous_counts_in_the_merged_input(patch: Patch) -> None:
    consecutive = policies._is_consecutive
    patch.setattr(policies, "_is_consecutive", lambda match, _: consecutive(match, lambda event: event.position))


# --- R17: what contiguity counts ------------------------------------------------------------------


def r17_only_the_types_of_the_pattern_count(patch: Patch) -> None:
    _input(patch, lambda query, kind, row: kind in alg.event_types(query.pattern))


def r17_only_events_that_satisfy_their_conditions_count(patch: Patch) -> None:
    def satisfies(query: alg.Query, kind: str, row: dict[str, Any]) -> bool:
        event = Event(kind, row["ts"] or 0, row["ts"], row)
        return all(
            holds(conjunct, {name: (event,)})
            for conjunct in ex.conjuncts(condition_of(query))
            for name in ex.variables_in(conjunct)
            if len(ex.variables_in(conjunct)) == 1 and query.variables[name].types == (kind,)
        )

    _input(patch, satisfies)


def r17_a_contiguous_sequence_steps_inside_an_instant(patch: Patch) -> None:
    patch.setattr(matches, "_before", lambda order: lambda left, right: left.local < right.local)


def r17_contiguity_is_between_instants(patch: Patch) -> None:
    def instants(match: Candidate, _: Any) -> bool:
        times = sorted({event.ts for event in merged})
        at = sorted({times.index(slot.event.ts) for slot in match.slots})
        return at == list(range(at[0], at[-1] + 1))

    merged = remembers(patch)
    patch.setattr(policies, "_is_consecutive", instants)


def r17_a_contiguous_conjunction_needs_different_instants(patch: Patch) -> None:
    consecutive = policies._is_consecutive
    patch.setattr(
        policies,
        "_is_consecutive",
        lambda match, position: (
            len({slot.event.ts for slot in match.slots}) == len(match.slots) and consecutive(match, position)
        ),
    )


def _input(patch: Patch, keeps: Callable[[alg.Query, str, dict[str, Any]], bool]) -> None:
    evaluate = reference.evaluate

    def filtered(pattern: Any, rows: dict[str, list[dict[str, Any]]], **options: Any) -> Any:
        kept = {kind: [row for row in own if keeps(pattern.query, kind, row)] for kind, own in rows.items()}
        return evaluate(pattern, kept, **options)

    patch.setattr(reference, "evaluate", filtered)
