"""Other readings of order, selection, partitions and outputs (R2, R5, R6, R11, R16, R17, R31, R32, R33)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

from tests.semantics.readings.support import (
    Patch,
    accepts,
    condition_of,
    places,
    remembers,
    translates,
)
from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.ast import Output, Selection, Skip
from tocsin.reference import matches, policies, stream
from tocsin.reference.conditions import holds
from tocsin.reference.matches import Candidate, Evaluation, Slot
from tocsin.reference.stream import Event

Conditions = list[ex.Expression]

# --- R2: next -------------------------------------------------------------------------------------


def r2_an_event_of_the_type_blocks_whatever_the_conditions(patch: Patch) -> None:
    _could_bind(patch, lambda could_bind, event, slot, before, _: could_bind(event, slot, before, []))


def r2_an_event_of_the_instant_before_blocks(patch: Patch) -> None:
    _could_bind(
        patch,
        lambda could_bind, event, slot, before, known: could_bind(
            event, replace(slot, floor=None), before, known
        ),
    )


def r2_only_an_earlier_time_blocks(patch: Patch) -> None:
    _could_bind(
        patch,
        lambda could_bind, event, slot, before, known: (
            event.ts < slot.event.ts and could_bind(event, slot, before, known)
        ),
    )


def r2_an_unknown_condition_blocks(patch: Patch) -> None:
    def unless_false(_: Any, event: Event, slot: Slot, before: list[Slot], known: Conditions) -> bool:
        own = [one for one in known if ex.variables_in(one) == {slot.variable}]
        return event.type == slot.event.type and all(
            holds(one, {slot.variable: (event,)}) or not holds(ex.Not(one), {slot.variable: (event,)})
            for one in own
        )

    _could_bind(patch, unless_false)


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
        same = next((n for n, pair in enumerate(zip(other, walk)) if pair[0] != pair[1]), 0)  # noqa: B905
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


# --- R5: after a match ----------------------------------------------------------------------------


def r5_the_shortest_match_comes_first(patch: Patch) -> None:
    _in_order(patch, lambda match: (places(match)[0], places(match)[-1], len(places(match)), places(match)))


def r5_the_longest_match_comes_first(patch: Patch) -> None:
    _in_order(patch, lambda match: (places(match)[0], -len(places(match)), places(match)))


def r5_the_earliest_end_comes_first(patch: Patch) -> None:
    _in_order(patch, lambda match: (places(match)[-1], places(match)))


def r5_among_equal_positions_the_last_name_decides(patch: Patch) -> None:
    def names(match: Candidate) -> list[Any]:
        return [(at, [-ord(letter) for letter in name]) for at, name in policies.rank(match)[-1]]

    _in_order(patch, lambda match: (*policies.rank(match)[:-1], names(match)))


def r5_skipping_to_the_first_event_moves_on(patch: Patch) -> None:
    _frontier(patch, lambda frontier, policy, match, at: max(frontier(policy, match, at), at[0] + 1))


def r5_skipping_to_an_unbound_variable_does_not_move(patch: Patch) -> None:
    _frontier(
        patch,
        lambda frontier, policy, match, at: (
            frontier(policy, match, at) if _is_bound(policy, match) else at[0]
        ),
    )


def r5_skipping_to_an_unbound_variable_skips_the_match(patch: Patch) -> None:
    _frontier(
        patch,
        lambda frontier, policy, match, at: (
            frontier(policy, match, at) if _is_bound(policy, match) else at[-1] + 1
        ),
    )


def r5_skipping_to_a_variable_starts_after_its_event(patch: Patch) -> None:
    _frontier(
        patch, lambda frontier, policy, match, at: frontier(policy, match, at) + (policy.variable is not None)
    )


def r5_a_match_that_is_not_kept_moves_the_frontier(patch: Patch) -> None:
    def all_move(policy: ast.AfterMatch, ordered: list[Candidate]) -> list[Candidate]:
        frontiers = [0, *(policies._frontier(policy, match, places(match)) for match in ordered)]
        return [match for n, match in enumerate(ordered) if places(match)[0] >= max(frontiers[: n + 1])]

    patch.setattr(policies, "_after_match", all_move)


def r5_the_frontier_is_a_time(patch: Patch) -> None:
    def by_time(policy: ast.AfterMatch, ordered: list[Candidate]) -> list[Candidate]:
        kept: list[Candidate] = []
        for match in ordered:
            if policy.skip is not Skip.PAST_LAST or not kept or match.first.ts > kept[-1].last.ts:
                kept.append(match)
        return kept

    patch.setattr(policies, "_after_match", by_time)


def r5_an_unknown_variable_is_accepted(patch: Patch) -> None:
    accepts(patch, errors.UnknownVariableError)


def _in_order(patch: Patch, key: Callable[[Candidate], Any]) -> None:
    after_match = policies._after_match
    patch.setattr(
        policies, "_after_match", lambda policy, ordered: after_match(policy, sorted(ordered, key=key))
    )


def _frontier(patch: Patch, change: Callable[..., int]) -> None:
    frontier = policies._frontier
    patch.setattr(policies, "_frontier", lambda *arguments: change(frontier, *arguments))


def _is_bound(policy: ast.AfterMatch, match: Candidate) -> bool:
    return policy.variable is None or policy.variable in match.bags


# --- R6, R11: partitions --------------------------------------------------------------------------


def r6_contiguous_counts_in_the_partition(patch: Patch) -> None:
    consecutive = policies._is_consecutive
    patch.setattr(policies, "_is_consecutive", lambda match, _: consecutive(match, lambda event: event.local))


def r6_partition_contiguous_counts_in_the_merged_input(patch: Patch) -> None:
    consecutive = policies._is_consecutive
    patch.setattr(
        policies, "_is_consecutive", lambda match, _: consecutive(match, lambda event: event.position)
    )


def r11_partition_by_leaves_null_keys_out(patch: Patch) -> None:
    partitions = reference.partitions
    patch.setattr(
        reference, "partitions", lambda events, by: partitions(events, alg.Partition((), by.attributes))
    )


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
    _positions(
        patch, lambda event, tie, _: (event.ts, event.type, stream._tie_key(event, tie), _text(event))
    )


def r16_the_attributes_come_before_the_type(patch: Patch) -> None:
    def shown(event: Event) -> str:
        return stream.canonical({name: value for name, value in event.row.items() if name not in ("id", "ts")})

    _positions(
        patch, lambda event, tie, _: (event.ts, stream._tie_key(event, tie), shown(event), event.type)
    )


def r16_the_attributes_do_not_matter(patch: Patch) -> None:
    _positions(
        patch, lambda event, tie, arrival: (event.ts, stream._tie_key(event, tie), event.type, arrival)
    )


def r16_only_the_first_tie_column_counts(patch: Patch) -> None:
    _positions(
        patch,
        lambda event, tie, _: (event.ts, stream._tie_key(event, tie[:1]), event.type, _text(event)),
    )


def r16_ties_are_ordered_by_a_hash(patch: Patch) -> None:
    def hashed(event: Event) -> str:
        return hashlib.sha256(f"{event.type} {_text(event)}".encode()).hexdigest()

    _positions(patch, lambda event, tie, _: (event.ts, stream._tie_key(event, tie), hashed(event)))


def r16_the_tie_columns_come_before_the_time(patch: Patch) -> None:
    _positions(
        patch, lambda event, tie, _: (stream._tie_key(event, tie), event.ts, event.type, _text(event))
    )


def r33_equal_rows_are_one_event(patch: Patch) -> None:
    ingest = reference.ingest

    def once(rows: dict[str, list[dict[str, Any]]], **options: Any) -> list[Event]:
        unique = {kind: list({_row_text(row): row for row in own}.values()) for kind, own in rows.items()}
        return ingest(unique, **options)

    patch.setattr(reference, "ingest", once)


def r33_matches_of_equal_values_are_one(patch: Patch) -> None:
    settle = Evaluation.settle

    def values(match: Candidate) -> Any:
        return sorted((slot.variable, _row_text(slot.event.row)) for slot in match.slots)

    patch.setattr(
        Evaluation,
        "settle",
        lambda self, found: list({str(values(match)): match for match in settle(self, found)}.values()),
    )


def _positions(patch: Patch, key: Callable[[Event, list[str], int], Any]) -> None:
    ingest = reference.ingest

    def ordered(rows: dict[str, list[dict[str, Any]]], *, tie: list[str], **options: Any) -> list[Event]:
        arrival = {id(row): n for n, row in enumerate(chain.from_iterable(rows.values()))}
        events = ingest(rows, tie=tie, **options)
        events.sort(key=lambda event: key(event, tie, arrival[id(event.row)]))
        return [replace(event, position=n, local=n) for n, event in enumerate(events)]

    patch.setattr(reference, "ingest", ordered)


def _text(event: Event) -> str:
    return stream.canonical(event.row)


def _row_text(row: Any) -> str:
    return stream.canonical(row)


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


# --- R31: outputs ---------------------------------------------------------------------------------


def r31_groups_are_by_time(patch: Patch) -> None:
    def start(match: Candidate) -> int:
        return match.first.ts

    def end(match: Candidate) -> int:
        return match.last.ts

    best_of = policies._best_of

    def by_time(ordered: list[Candidate], group: Any, measure: Any) -> list[Candidate]:
        return best_of(ordered, start if group.__name__ == "first_position" else end, measure)

    patch.setattr(policies, "_best_of", by_time)


def r31_one_match_is_reported_in_all(patch: Patch) -> None:
    best_of = policies._best_of
    patch.setattr(
        policies, "_best_of", lambda ordered, group, measure: best_of(ordered, lambda match: 0, measure)
    )


def r31_first_is_the_shortest(patch: Patch) -> None:
    _reported(patch, (Output.FIRST_PER_START,), lambda match: 0, lambda match: -len(match.slots))


def r31_last_is_the_last_in_order(patch: Patch) -> None:
    reported = policies._reported

    def from_behind(output: Output, ordered: list[Candidate]) -> list[Candidate]:
        if output in (Output.LAST_PER_START, Output.LAST_PER_END):
            index = 0 if output is Output.LAST_PER_START else -1
            return list({places(match)[index]: match for match in ordered}.values())
        return reported(output, ordered)

    patch.setattr(policies, "_reported", from_behind)


def r31_last_per_end_has_the_largest_end(patch: Patch) -> None:
    _reported(patch, (Output.LAST_PER_END,), lambda match: places(match)[-1], lambda match: match.last.ts)


def r31_longest_is_the_longest_time(patch: Patch) -> None:
    _reported(
        patch,
        (Output.LONGEST,),
        lambda match: places(match)[0],
        lambda match: match.last.ts - match.first.ts,
    )


def r31_longest_is_per_end(patch: Patch) -> None:
    _reported(patch, (Output.LONGEST,), lambda match: places(match)[-1], lambda match: len(places(match)))


def _reported(
    patch: Patch,
    outputs: tuple[Output, ...],
    group: Callable[[Candidate], int],
    measure: Callable[[Candidate], int],
) -> None:
    reported = policies._reported

    def changed(output: Output, ordered: list[Candidate]) -> list[Candidate]:
        return policies._best_of(ordered, group, measure) if output in outputs else reported(output, ordered)

    patch.setattr(policies, "_reported", changed)


# --- R32: the order of the policies ---------------------------------------------------------------


def r32_after_match_comes_before_selection(patch: Patch) -> None:
    def apply(query: alg.Query, found: list[Candidate], events: list[Event]) -> list[Candidate]:
        kept = policies._after_match(query.after_match, sorted(found, key=policies.rank))
        return policies._reported(query.output, _selected(query, kept, events))

    patch.setattr(policies, "apply", apply)


def r32_output_comes_before_after_match(patch: Patch) -> None:
    def apply(query: alg.Query, found: list[Candidate], events: list[Event]) -> list[Candidate]:
        kept = sorted(_selected(query, found, events), key=policies.rank)
        return policies._after_match(query.after_match, policies._reported(query.output, kept))

    patch.setattr(policies, "apply", apply)


def r32_output_comes_before_selection(patch: Patch) -> None:
    def apply(query: alg.Query, found: list[Candidate], events: list[Event]) -> list[Candidate]:
        kept = policies._reported(query.output, sorted(found, key=policies.rank))
        return policies._after_match(query.after_match, _selected(query, kept, events))

    patch.setattr(policies, "apply", apply)


def r32_absences_come_after_the_policies(patch: Patch) -> None:
    def late(query: alg.Query, events: list[Event]) -> list[Candidate]:
        evaluation = Evaluation(events, query.window_us)
        return evaluation.settle(policies.apply(query, evaluation.matches(query.pattern), events))

    patch.setattr(reference, "_matches", late)


def r32_where_comes_after_the_policies(patch: Patch) -> None:
    def late(query: alg.Query, events: list[Event]) -> list[Candidate]:
        evaluation = Evaluation(events, query.window_us)
        wanted = {match.key for match in evaluation.settle(evaluation.matches(query.pattern))}
        bare = alg.Within(_without_filter(query.pattern), query.window_us)
        found = policies.apply(query, evaluation.settle(evaluation.matches(bare)), events)
        return [match for match in found if match.key in wanted]

    patch.setattr(reference, "_matches", late)


def r32_the_window_comes_after_the_policies(patch: Patch) -> None:
    def late(query: alg.Query, events: list[Event]) -> list[Candidate]:
        evaluation = Evaluation(events, None)
        found = evaluation.settle(evaluation.matches(query.pattern.part))
        kept = policies.apply(query, found, events)
        return [match for match in kept if matches._spans_less(match, query.window_us)]

    patch.setattr(reference, "_matches", late)


def r32_return_comes_before_the_policies(patch: Patch) -> None:
    def early(query: alg.Query, events: list[Event]) -> list[Candidate]:
        evaluation = Evaluation(events, query.window_us)
        found = evaluation.settle(evaluation.matches(query.pattern))
        return found if query.over_all_matches else policies.apply(query, found, events)

    patch.setattr(reference, "_matches", early)


def r32_the_policies_run_over_all_partitions_at_once(patch: Patch) -> None:
    partitions = reference.partitions

    def together(query: alg.Query, streams: Any) -> list[Candidate]:
        found: list[Candidate] = []
        for events in streams:
            evaluation = Evaluation(
                [replace(event, local=event.position) for event in events], query.window_us
            )
            found += evaluation.settle(evaluation.matches(query.pattern))
        return policies.apply(query, found, sorted(chain(*streams), key=lambda event: event.position))

    patch.setattr(reference, "partitions", lambda events, by: [partitions(events, by)])
    patch.setattr(reference, "_matches", together)


def _selected(query: alg.Query, found: list[Candidate], events: list[Event]) -> list[Candidate]:
    return [match for match in found if policies._is_selected(query, match, events)]


def _without_filter(node: alg.Node) -> alg.Node:
    while isinstance(node, alg.Within | alg.Filter):
        node = node.part
    return node
