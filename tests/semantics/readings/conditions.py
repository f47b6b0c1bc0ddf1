"""Other readings of conditions: quantifiers, indices, aggregates, scalars (R1, R3, R15, R18, R21, R23, R39)."""

from __future__ import annotations

import math
import statistics
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.semantics.readings.support import (
    Bags,
    Patch,
    accepts,
    decides,
    everywhere,
    referred,
    remembers,
    truths,
)

from tocsin import api, errors, reference
from tocsin.algebra import nodes as alg
from tocsin.analysis import sase
from tocsin.language import expressions as ex
from tocsin.reference import aggregates, conditions, values
from tocsin.reference.matches import Candidate, Evaluation
from tocsin.reference.stream import Event

# --- R1: events that do not exist -----------------------------------------------------------------


def r1_a_condition_on_an_unbound_variable_fails(patch: Patch) -> None:
    holds = conditions.holds
    decides(patch, lambda conjunct, bags: referred(conjunct) <= bags.keys() and holds(conjunct, bags))


def r1_the_attributes_of_an_unbound_variable_are_null(patch: Patch) -> None:
    holds = conditions.holds

    def three_valued(conjunct: ex.Expression, bags: Bags) -> bool:
        if referred(conjunct) <= bags.keys():
            return holds(conjunct, bags)
        return conditions.interpret(conjunct, bags, {}) is True

    decides(patch, three_valued)


def r1_null_attributes_of_bound_events_are_vacuous_too(patch: Patch) -> None:
    decides(patch, lambda conjunct, bags: all(truth is not False for truth in truths(conjunct, bags)))


def r1_an_aggregate_of_an_unbound_variable_is_vacuous(patch: Patch) -> None:
    holds = conditions.holds
    decides(patch, lambda conjunct, bags: not ex.variables_in(conjunct) <= bags.keys() or holds(conjunct, bags))


# --- R3, R23: iterated variables ------------------------------------------------------------------


def r3_some_event_of_an_iteration_is_enough(patch: Patch) -> None:
    def some(conjunct: ex.Expression, bags: Bags) -> bool:
        found = list(truths(conjunct, bags))
        return not found or any(truth is True for truth in found)

    decides(patch, some)


def r3_the_last_event_of_an_iteration_decides(patch: Patch) -> None:
    holds = conditions.holds

    def last(conjunct: ex.Expression, bags: Bags) -> bool:
        plain = {one.variable for one in ex.references_in(conjunct) if one.index is ex.Each.PLAIN}
        return holds(conjunct, {name: bag[-1:] if name in plain else bag for name, bag in bags.items()})

    decides(patch, last)


def r3_every_reference_has_an_index_of_its_own(patch: Patch) -> None:
    holds = conditions.holds

    def apart(conjunct: ex.Expression, bags: Bags) -> bool:
        known = dict(bags)

        def renamed(node: ex.Expression) -> ex.Expression:
            if isinstance(node, ex.Aggregate):
                return node
            if isinstance(node, ex.Attribute):
                name = f"{node.variable} {len(known)}"
                known[name] = bags.get(node.variable, ())
                return replace(node, variable=name)
            return node.map_children(renamed)

        return holds(renamed(conjunct), known)

    decides(patch, apart)


def r3_one_letter_is_an_index_per_variable(patch: Patch) -> None:
    _indices_shared_by(patch, lambda variable: variable)


def r3_two_iterations_go_in_step(patch: Patch) -> None:
    _indices_shared_by(patch, lambda variable: "all")


def r23_an_unindexed_condition_compares_within_a_copy(patch: Patch) -> None:
    r3_two_iterations_go_in_step(patch)


def r23_an_indexed_condition_compares_across_copies(patch: Patch) -> None:
    r3_one_letter_is_an_index_per_variable(patch)


def r23_a_condition_across_copies_needs_no_hint(patch: Patch) -> None:
    patch.setattr(sase, "_warnings", lambda tree, query: ())


def _indices_shared_by(patch: Patch, class_of: Callable[[str], str]) -> None:
    def classes(references: list[ex.Attribute]) -> dict[str, str]:
        running = [one.variable for one in references if conditions._offset(one) is not None]
        return {variable: class_of(variable) for variable in running}

    patch.setattr(conditions, "_classes", classes)


# --- R15: indices ---------------------------------------------------------------------------------


def r15_indices_count_from_zero(patch: Patch) -> None:
    chosen = conditions.chosen

    def from_zero(reference: ex.Attribute, bags: Bags, choice: conditions.Choice) -> Event | None:
        if isinstance(reference.index, ex.Fixed):
            reference = replace(reference, index=ex.Fixed(reference.index.number + 1))
        return chosen(reference, bags, choice)

    patch.setattr(conditions, "chosen", from_zero)


def r15_an_index_outside_the_bag_makes_the_condition_fail(patch: Patch) -> None:
    def strict(conjunct: ex.Expression, bags: Bags) -> bool:
        choices = conditions.choices(list(ex.references_in(conjunct)), bags)
        return all(conditions.interpret(conjunct, bags, choice) is True for choice in choices)

    decides(patch, strict)


def r15_a_constant_index_outside_the_bag_makes_the_condition_fail(patch: Patch) -> None:
    _fails_without(patch, lambda index: isinstance(index, ex.Fixed))


def r15_the_last_of_an_empty_bag_makes_the_condition_fail(patch: Patch) -> None:
    _fails_without(patch, lambda index: isinstance(index, ex.Edge))


def r15_next_is_the_next_event_of_the_stream(patch: Patch) -> None:
    chosen = conditions.chosen
    events = remembers(patch)

    def in_stream(reference: ex.Attribute, bags: Bags, choice: conditions.Choice) -> Event | None:
        if reference.index is not ex.Each.NEXT:
            return chosen(reference, bags, choice)
        here = chosen(replace(reference, index=ex.Each.PLAIN), bags, choice)
        later = [one for one in events if here and one.type == here.type and one.position > here.position]
        return later[0] if later else None

    patch.setattr(conditions, "chosen", in_stream)


def r15_next_of_a_single_event_is_accepted(patch: Patch) -> None:
    accepts(patch, errors.NextOfSingleError)


def r15_an_index_below_one_is_accepted(patch: Patch) -> None:
    accepts(patch, errors.InvalidIndexError, "count from 1")


def _fails_without(patch: Patch, is_needed: Callable[[ex.Index], bool]) -> None:
    holds = conditions.holds

    def strict(conjunct: ex.Expression, bags: Bags) -> bool:
        needed = [one for one in ex.references_in(conjunct) if is_needed(one.index)]
        return all(conditions.chosen(one, bags, {}) for one in needed) and holds(conjunct, bags)

    decides(patch, strict)


# --- R18: aggregates ------------------------------------------------------------------------------


def r18_the_sum_of_nothing_is_null(patch: Patch) -> None:
    _fold(patch, "sum", lambda values: any(value is not None for value in values), lambda values: None)


def r18_the_minimum_and_maximum_of_nothing_are_zero(patch: Patch) -> None:
    for function in ("min", "max"):
        _fold(patch, function, lambda values: any(value is not None for value in values), lambda values: 0)


def r18_counting_an_attribute_counts_events(patch: Patch) -> None:
    _fold(patch, "count", lambda values: None not in values, len)


def r18_counting_events_counts_values(patch: Patch) -> None:
    aggregate = conditions.aggregate
    known = remembers(patch)

    def of_values(node: ex.Aggregate, matches: list[Bags], **how: Any) -> Any:
        if isinstance(node.argument, ex.Variable) and any("x" in event.row for event in known):
            node = replace(node, argument=ex.Attribute(node.argument.name, ("x",)))
        return aggregate(node, matches, **how)

    everywhere(patch, conditions, "aggregate", of_values)


def r18_one_null_makes_an_aggregate_null(patch: Patch) -> None:
    fold = aggregates.fold
    everywhere(patch, aggregates, "fold", lambda name, values, **options: fold(name, values, nulls_spoil=True))


def r18_the_first_and_last_value_are_never_null(patch: Patch) -> None:
    fold = aggregates.fold
    for function in ("first", "last"):
        _fold(
            patch,
            function,
            lambda values: None not in values,
            lambda values, name=function: fold(name, [value for value in values if value is not None]),
        )


def r18_the_first_value_is_the_smallest(patch: Patch) -> None:
    _fold(patch, "first", lambda values: None in values, min)


def r18_the_average_of_integers_is_an_integer(patch: Patch) -> None:
    _fold(patch, "avg", lambda values: None in values or not values, lambda values: sum(values) // len(values))


def r18_the_deviation_is_that_of_a_sample(patch: Patch) -> None:
    _fold(patch, "stddev", lambda values: None in values or len(values) < 2, statistics.stdev)


def r18_the_deviation_of_one_value_is_null(patch: Patch) -> None:
    _fold(patch, "stddev", lambda values: len(values) != 1, lambda values: None)


def _fold(
    patch: Patch, function: str, as_ruled: Callable[[list[Any]], bool], other: Callable[[list[Any]], Any]
) -> None:
    """Another value of an aggregate, except on bags where both readings agree."""
    fold = aggregates.fold

    def changed(name: str, values: list[Any], **options: Any) -> Any:
        if name == function and not options.get("distinct") and not as_ruled(values):
            return other(values)
        return fold(name, values, **options)

    everywhere(patch, aggregates, "fold", changed)


# --- R21: where the "for all" sits ----------------------------------------------------------------


def r21_not_stands_outside_the_quantifier(patch: Patch) -> None:
    holds = conditions.holds

    def outside(conjunct: ex.Expression, bags: Bags) -> bool:
        if isinstance(conjunct, ex.Not):
            return any(truth is True for truth in truths(conjunct, bags))
        return holds(conjunct, bags)

    decides(patch, outside)


def r21_each_disjunct_is_quantified_by_itself(patch: Patch) -> None:
    holds = conditions.holds

    def inside(conjunct: ex.Expression, bags: Bags) -> bool:
        if isinstance(conjunct, ex.Or):
            return any(inside(operand, bags) for operand in conjunct.operands)
        return holds(conjunct, bags)

    decides(patch, inside)


def r21_a_disjunct_on_an_unbound_variable_is_left_out(patch: Patch) -> None:
    holds = conditions.holds

    def without(conjunct: ex.Expression, bags: Bags) -> bool:
        if isinstance(conjunct, ex.Or):
            known = [one for one in conjunct.operands if referred(one) <= bags.keys()]
            return any(holds(operand, bags) for operand in known)
        return holds(conjunct, bags)

    decides(patch, without)


def r21_where_is_quantified_as_a_whole(patch: Patch) -> None:
    matches = Evaluation.matches

    def whole(self: Evaluation, node: alg.Node) -> list[Candidate]:
        if isinstance(node, alg.Filter):
            return [one for one in self.matches(node.part) if conditions.holds(node.condition, one.bags)]
        return matches(self, node)

    patch.setattr(Evaluation, "matches", whole)


# --- R39: scalars ---------------------------------------------------------------------------------


def r39_division_by_zero_stops_the_query(patch: Patch) -> None:
    def refuse(left: Any, right: Any) -> Any:
        if right == 0:
            raise errors.MatchError("Division by zero.")
        return left / right

    patch.setattr(values, "_divide", refuse)


def r39_division_by_zero_is_infinite(patch: Patch) -> None:
    patch.setattr(values, "_divide", lambda left, right: left / right if right else math.inf)


def r39_an_event_without_a_time_comes_first(patch: Patch) -> None:
    ingest = reference.ingest

    def with_time(rows: dict[str, list[dict[str, Any]]], **options: Any) -> list[Event]:
        timed = {kind: [row | {"ts": row["ts"] or 0} for row in one_kind] for kind, one_kind in rows.items()}
        return ingest(timed, **options)

    patch.setattr(reference, "ingest", with_time)


def r39_the_time_column_is_no_attribute(patch: Patch) -> None:
    value = Event.value
    patch.setattr(Event, "value", lambda self, path: None if path == ("ts",) else value(self, path))


def r39_strings_compare_as_in_a_dictionary(patch: Patch) -> None:
    order = values.order

    def folded(value: Any) -> Any:
        return unicodedata.normalize("NFD", value).casefold() if isinstance(value, str) else value

    everywhere(patch, values, "order", lambda left, right: order(folded(left), folded(right)))


def r39_a_string_may_be_compared_with_a_number(patch: Patch) -> None:
    check = api.Pattern.check

    def lenient(self: api.Pattern, *schemas: Any, **options: Any) -> None:
        try:
            check(self, *schemas, **options)
        except errors.TypeMismatchError:
            return

    patch.setattr(api.Pattern, "check", lenient)
