"""Other readings of RETURN and of aggregates over all matches (R4, R40)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.semantics.readings.support import Bags, Patch, accepts, everywhere, translates

from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.analysis import clauses as output_clauses
from tocsin.language import expressions as ex
from tocsin.reference import aggregates, conditions
from tocsin.reference import outputs as rows
from tocsin.reference.matches import Candidate
from tocsin.testing.cases import frozen

# --- R4: per match or over all matches ------------------------------------------------------------


def r4_an_aggregate_is_over_all_matches(patch: Patch) -> None:
    patch.setattr(output_clauses, "_counts_matches", ex.has_aggregate)


def r4_an_aggregate_beside_count_of_all_is_per_match(patch: Patch) -> None:
    translates(patch, lambda query, _: replace(query, over_all_matches=False))


def r4_group_by_alone_leaves_aggregates_per_match(patch: Patch) -> None:
    def per_match(query: alg.Query, _: Any) -> alg.Query:
        counts = any(output_clauses._counts_matches(one.expression) for one in query.returns)
        return replace(query, over_all_matches=counts)

    translates(patch, per_match)


def r4_an_aggregate_over_all_matches_takes_each_event_once(patch: Patch) -> None:
    aggregate = conditions.aggregate

    def over_events(node: ex.Aggregate, matches: list[Bags], **how: Any) -> Any:
        merged: dict[str, dict[int, Any]] = {}
        for bags in matches:
            for name, bag in bags.items():
                merged.setdefault(name, {}).update({event.position: event for event in bag})
        once = {name: tuple(events.values()) for name, events in merged.items()}
        return aggregate(node, matches if node.argument is None else [once], **how)

    everywhere(patch, conditions, "aggregate", over_events)


def r4_rows_of_equal_values_are_merged(patch: Patch) -> None:
    evaluate = reference.evaluate
    patch.setattr(
        reference,
        "evaluate",
        lambda *inputs, **options: list({frozen(row): row for row in evaluate(*inputs, **options)}.values()),
    )


def r4_a_null_key_is_no_group(patch: Patch) -> None:
    rows_over_all = reference.rows_over_all

    def without_null(query: alg.Query, matches: list[Candidate]) -> list[dict[str, Any]]:
        keys = [one.expression for one in query.group_by]
        kept = [
            match for match in matches if all(conditions.interpret(key, match.bags, {}) is not None for key in keys)
        ]
        return rows_over_all(query, kept)

    patch.setattr(reference, "rows_over_all", without_null)


def r4_count_of_all_is_per_partition(patch: Patch) -> None:
    rows_over_all = reference.rows_over_all

    def per_partition(query: alg.Query, matches: list[Candidate]) -> list[dict[str, Any]]:
        groups: dict[Any, list[Candidate]] = {}
        for match in matches:
            key = tuple(match.first.row.get(name) for name in query.partition.attributes)
            groups.setdefault(key, []).append(match)
        return [row for group in groups.values() or [[]] for row in rows_over_all(query, group)]

    patch.setattr(reference, "rows_over_all", per_partition)


def r4_a_column_that_is_not_grouped_is_accepted(patch: Patch) -> None:
    accepts(patch, errors.NotGroupedError)


def r4_a_condition_may_count_matches(patch: Patch) -> None:
    accepts(patch, errors.AggregateNotAllowedError, "COUNT(*) counts matches")


# --- R40: corners of aggregates over all matches --------------------------------------------------


def r40_no_match_gives_no_row(patch: Patch) -> None:
    rows_over_all = reference.rows_over_all
    patch.setattr(reference, "rows_over_all", lambda query, found: rows_over_all(query, found) if found else [])


def r40_no_match_with_group_by_gives_a_row(patch: Patch) -> None:
    rows_over_all = reference.rows_over_all

    def at_least_one(query: alg.Query, found: list[Candidate]) -> list[dict[str, Any]]:
        nothing = {one.name: None for one in query.returns}
        return rows_over_all(query, found) or [nothing]

    patch.setattr(reference, "rows_over_all", at_least_one)


def r40_the_sum_of_no_match_is_null(patch: Patch) -> None:
    aggregate = conditions.aggregate

    def nothing(node: ex.Aggregate, matches: list[Bags], **how: Any) -> Any:
        return None if node.function == "sum" and not matches else aggregate(node, matches, **how)

    everywhere(patch, conditions, "aggregate", nothing)


def r40_collecting_from_no_match_gives_an_empty_list(patch: Patch) -> None:
    aggregate = conditions.aggregate

    def nothing(node: ex.Aggregate, matches: list[Bags], **how: Any) -> Any:
        return [] if node.function == "collect" and not matches else aggregate(node, matches, **how)

    everywhere(patch, conditions, "aggregate", nothing)


def r40_the_average_is_that_of_the_averages_of_the_matches(patch: Patch) -> None:
    _average(patch, lambda of, node, matches: [of(node, [bags]) for bags in matches])


def r40_the_average_counts_nulls(patch: Patch) -> None:
    def with_nulls(of: Any, node: ex.Aggregate, matches: list[Bags]) -> list[Any]:
        collected = replace(node, argument=ex.Call("coalesce", (node.argument, ex.Literal(0))))
        return [of(collected, matches)]

    _average(patch, with_nulls)


def r40_an_iterated_group_key_is_accepted(patch: Patch) -> None:
    accepts(patch, errors.AmbiguousGroupKeyError)


def _average(patch: Patch, averages: Any) -> None:
    aggregate = rows.aggregate

    def changed(node: ex.Aggregate, matches: list[Bags], **how: Any) -> Any:
        if node.function != "avg" or not matches:
            return aggregate(node, matches, **how)
        return aggregates.fold("avg", averages(aggregate, node, matches))

    patch.setattr(rows, "aggregate", changed)
