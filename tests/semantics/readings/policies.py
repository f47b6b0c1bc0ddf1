"""Other readings of after-match, output and the order of the policies (R5, R31, R32, R44)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

from tests.semantics.readings.support import Patch, accepts, places

from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.language import ast
from tocsin.language.ast import Output, Skip
from tocsin.reference import matches, policies
from tocsin.reference.matches import Candidate, Evaluation
from tocsin.reference.stream import Event

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
        lambda frontier, policy, match, at: frontier(policy, match, at) if _is_bound(policy, match) else at[0],
    )


def r5_skipping_to_an_unbound_variable_skips_the_match(patch: Patch) -> None:
    _frontier(
        patch,
        lambda frontier, policy, match, at: frontier(policy, match, at) if _is_bound(policy, match) else at[-1] + 1,
    )


def r5_skipping_to_a_variable_starts_after_its_event(patch: Patch) -> None:
    _frontier(patch, lambda frontier, policy, match, at: frontier(policy, match, at) + (policy.variable is not None))


def r5_a_match_that_is_not_kept_moves_the_frontier(patch: Patch) -> None:
    def all_move(policy: ast.AfterMatch, ordered: list[Candidate]) -> list[Candidate]:
        frontiers = [0, *(policies._frontier(policy, match, places(match)) for match in ordered)]
        return [match for n, match in enumerate(ordered) if places(match)[0] >= max(frontiers[: n + 1])]

    patch.setattr(policies, "_after_match", all_move)


def r5_the_frontier_is_a_time(patch: Patch) -> None:
    after_match = policies._after_match

    def by_time(policy: ast.AfterMatch, ordered: list[Candidate]) -> list[Candidate]:
        if policy.skip is not Skip.PAST_LAST:
            return after_match(policy, ordered)
        kept: list[Candidate] = []
        for match in ordered:
            if not kept or match.first.ts > kept[-1].last.ts:
                kept.append(match)
        return kept

    patch.setattr(policies, "_after_match", by_time)


def r5_an_unknown_variable_is_accepted(patch: Patch) -> None:
    accepts(patch, errors.UnknownVariableError)


def _in_order(patch: Patch, key: Callable[[Candidate], Any]) -> None:
    after_match = policies._after_match
    patch.setattr(policies, "_after_match", lambda policy, ordered: after_match(policy, sorted(ordered, key=key)))


def _frontier(patch: Patch, change: Callable[..., int]) -> None:
    frontier = policies._frontier
    patch.setattr(policies, "_frontier", lambda *arguments: change(frontier, *arguments))


def _is_bound(policy: ast.AfterMatch, match: Candidate) -> bool:
    return policy.variable is None or policy.variable in match.bags


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
    patch.setattr(policies, "_best_of", lambda ordered, group, measure: best_of(ordered, lambda match: 0, measure))


def r31_first_is_the_shortest(patch: Patch) -> None:
    _reported(patch, Output.FIRST_PER_START, lambda match: places(match)[0], lambda match: -len(match.slots))


def r31_last_is_the_last_in_order(patch: Patch) -> None:
    reported = policies._reported

    def from_behind(output: Output, ordered: list[Candidate]) -> list[Candidate]:
        if output in (Output.LAST_PER_START, Output.LAST_PER_END):
            index = 0 if output is Output.LAST_PER_START else -1
            return list({places(match)[index]: match for match in ordered}.values())
        return reported(output, ordered)

    patch.setattr(policies, "_reported", from_behind)


def r31_last_per_end_has_the_largest_end(patch: Patch) -> None:
    _reported(patch, Output.LAST_PER_END, lambda match: places(match)[-1], lambda match: match.last.ts)


def r31_longest_is_the_longest_time(patch: Patch) -> None:
    _reported(
        patch,
        Output.LONGEST,
        lambda match: places(match)[0],
        lambda match: match.last.ts - match.first.ts,
    )


def r31_longest_is_per_end(patch: Patch) -> None:
    _reported(patch, Output.LONGEST, lambda match: places(match)[-1], lambda match: len(places(match)))


def _reported(
    patch: Patch,
    which: Output,
    group: Callable[[Candidate], int],
    measure: Callable[[Candidate], int],
) -> None:
    reported = policies._reported

    def changed(output: Output, ordered: list[Candidate]) -> list[Candidate]:
        return policies._best_of(ordered, group, measure) if output is which else reported(output, ordered)

    patch.setattr(policies, "_reported", changed)


# --- R32: the order of the policies ---------------------------------------------------------------


def r32_after_match_comes_before_selection(patch: Patch) -> None:
    def apply(query: alg.Query, found: list[Candidate], events: list[Event]) -> list[Candidate]:
        kept = policies._after_match(query.after_match, sorted(found, key=policies.rank))
        return policies._reported(query.output, _selected(query, kept, events))

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
            evaluation = Evaluation([replace(event, local=event.position) for event in events], query.window_us)
            found += evaluation.settle(evaluation.matches(query.pattern))
        return policies.apply(query, found, sorted(chain(*streams), key=lambda event: event.position))

    patch.setattr(reference, "partitions", lambda events, by: [partitions(events, by)])
    patch.setattr(reference, "_matches", together)


# --- R44: output per start, after-match, output per end -------------------------------------------


def r44_after_match_comes_before_every_output(patch: Patch) -> None:
    def apply(query: alg.Query, found: list[Candidate], events: list[Event]) -> list[Candidate]:
        kept = sorted(_selected(query, found, events), key=policies.rank)
        return policies._reported(query.output, policies._after_match(query.after_match, kept))

    patch.setattr(policies, "apply", apply)


def r44_every_output_comes_before_after_match(patch: Patch) -> None:
    def apply(query: alg.Query, found: list[Candidate], events: list[Event]) -> list[Candidate]:
        kept = sorted(_selected(query, found, events), key=policies.rank)
        return policies._after_match(query.after_match, policies._reported(query.output, kept))

    patch.setattr(policies, "apply", apply)


def _selected(query: alg.Query, found: list[Candidate], events: list[Event]) -> list[Candidate]:
    return [match for match in found if policies._is_selected(query, match, events)]


def _without_filter(node: alg.Node) -> alg.Node:
    while isinstance(node, alg.Within | alg.Filter):
        node = node.part
    return node
