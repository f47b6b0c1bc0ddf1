"""Other readings of the shape and the text of a pattern (R12, R34 to R38)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from lark import v_args
from tests.semantics.readings.support import Patch, accepts, places, refuses, refuses_text, translates

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis import sase, structure
from tocsin.language import ast
from tocsin.language.sase.parser import QueryBuilder
from tocsin.reference import matches
from tocsin.reference.matches import Candidate, Evaluation

# --- R12: products --------------------------------------------------------------------------------


def r12_a_conjunction_needs_different_events(patch: Patch) -> None:
    joined = Evaluation._product

    def injective(self: Evaluation, lefts: Any, rights: Any, follows: Any) -> list[Candidate]:
        found = joined(self, lefts, rights, follows)
        return found if follows else [one for one in found if len(places(one)) == len(one.slots)]

    patch.setattr(Evaluation, "_product", injective)


def r12_two_assignments_of_the_same_events_are_one_match(patch: Patch) -> None:
    settle = Evaluation.settle
    patch.setattr(
        Evaluation,
        "settle",
        lambda self, found: list({tuple(places(one)): one for one in settle(self, found)}.values()),
    )


# --- R34: nesting ---------------------------------------------------------------------------------


def r34_nested_sequences_are_not_flattened(patch: Patch) -> None:
    patch.setattr(structure, "flattened", lambda element: list(element.parts))


def r34_a_nested_pattern_is_compared_by_its_end(patch: Patch) -> None:
    _orders(patch, lambda left, right: (left.last, right.last))


def r34_a_nested_pattern_is_compared_by_its_start(patch: Patch) -> None:
    _orders(patch, lambda left, right: (left.first, right.first))


def r34_every_grouping_is_a_match(patch: Patch) -> None:
    patch.setattr(Candidate, "key", property(lambda self: (id(self),)))


def _orders(patch: Patch, ends: Callable[[Candidate, Candidate], tuple[Any, Any]]) -> None:
    """Another comparison of neighbours in a SEQ."""

    def fold(self: Evaluation, parts: Any, follows: Any) -> list[Candidate]:
        found = [Candidate()]
        for part in parts:
            found = [
                matches.joined(left, right, ordered=follows is not None)
                for left, right in product(found, self.matches(part))
                if follows is None or not (left.slots and right.slots) or follows(*ends(left, right))
            ]
        return matches.distinct(found)

    patch.setattr(Evaluation, "_fold", fold)


# --- R35: names -----------------------------------------------------------------------------------


def r35_one_name_may_stand_twice_in_a_sequence(patch: Patch) -> None:
    accepts(patch, errors.DuplicateVariableError)


def r35_two_types_without_a_name_are_told_apart(patch: Patch) -> None:
    accepts(patch, errors.DuplicateVariableError, "have no name")


def r35_one_name_in_two_branches_is_refused(patch: Patch) -> None:
    def repeats(tree: ast.Query) -> bool:
        names = [event.variable for event in ast.events_in(tree.pattern)]
        return len(set(names)) < len(names)

    refuses(patch, repeats, errors.DuplicateVariableError)


def r35_every_element_needs_a_name(patch: Patch) -> None:
    refuses(patch, lambda tree: any(event.name is None for event in ast.events_in(tree.pattern)))


# --- R36: where NOT may stand ---------------------------------------------------------------------


def r36_an_absence_may_stand_outside_a_sequence(patch: Patch) -> None:
    accepts(patch, errors.NegationNotAllowedError, "only directly inside a SEQ")


def r36_a_composite_pattern_may_be_absent(patch: Patch) -> None:
    accepts(patch, errors.NegationNotAllowedError, "not a composite pattern")


def r36_an_iteration_may_be_absent(patch: Patch) -> None:
    accepts(patch, errors.NegationNotAllowedError, "NOT of an iteration")


def r36_a_sequence_may_be_nothing_but_absent(patch: Patch) -> None:
    accepts(patch, errors.NegationNotAllowedError, "nothing but NOT")


def r36_an_absence_may_stand_at_the_edge_of_an_iteration(patch: Patch) -> None:
    accepts(patch, errors.NegationNotAllowedError, "edge of a repeated SEQ")


# --- R37: windows ---------------------------------------------------------------------------------


def _nothing_is_let_go_early(patch: Patch) -> None:
    """The window also prunes candidates on the way; a reading that moves it must stop that."""
    patch.setattr(Evaluation, "_fits", lambda self, left, right: True)


def r37_the_window_is_closed(patch: Patch) -> None:
    _nothing_is_let_go_early(patch)
    spans_less = matches._spans_less
    patch.setattr(
        matches, "_spans_less", lambda found, window: spans_less(found, None if window is None else window + 1)
    )


def r37_the_window_is_that_of_a_step(patch: Patch) -> None:
    joined = Evaluation._product

    def steps(self: Evaluation, lefts: Any, rights: Any, follows: Any) -> list[Candidate]:
        found = []
        for left, right in product(lefts, rights):
            gap = right.first.ts - left.last.ts if left.last and right.first else 0
            if self.window_us is None or abs(gap) < self.window_us:
                found += joined(self, [left], [right], follows)
        return found

    _nothing_is_let_go_early(patch)
    patch.setattr(matches, "_spans_less", lambda found, window: True)
    patch.setattr(Evaluation, "_product", steps)


def r37_the_window_is_that_of_a_nested_sequence(patch: Patch) -> None:
    def ordered_part(found: Candidate, window: int | None) -> bool:
        ordered = [slot for slot in found.slots if slot.floor is not None]
        times = {slot.event.instant: slot.event.ts for slot in found.slots}
        spans = [slot.event.ts - times[other.floor] for slot in ordered for other in ordered]
        return window is None or all(span < window for span in spans)

    _nothing_is_let_go_early(patch)
    patch.setattr(matches, "_spans_less", ordered_part)


def r37_windows_slide(patch: Patch) -> None:
    slides: list[int | None] = []

    def remember(query: alg.Query, tree: ast.Query) -> alg.Query:
        slides[:] = [tree.within.slide_us if tree.within else None]
        return query

    translates(patch, remember)
    spans_less = matches._spans_less

    def in_one_window(found: Candidate, window: int | None) -> bool:
        if slides[0] is None or window is None or found.first is None or found.last is None:
            return spans_less(found, window)
        return found.last.ts < found.first.ts // slides[0] * slides[0] + window

    patch.setattr(matches, "_spans_less", in_one_window)


def r37_a_slide_needs_no_warning(patch: Patch) -> None:
    patch.setattr(sase, "window_warnings", lambda window: ())


def r37_a_window_of_no_width_is_accepted(patch: Patch) -> None:
    accepts(patch, errors.InvalidWindowError)


def r37_a_pattern_without_a_window_is_refused_in_batch(patch: Patch) -> None:
    refuses(patch, lambda tree: tree.within is None)


# --- R38: spellings -------------------------------------------------------------------------------


def r38_an_iteration_is_written_after_the_name(patch: Patch) -> None:
    refuses_text(patch, r"[A-Z]\+ [a-z]+\b(?!\[)")


def r38_a_range_is_no_iteration(patch: Patch) -> None:
    refuses_text(patch, r"[A-Z]\{\d,\d\} [a-z]")


def r38_a_group_is_not_iterated(patch: Patch) -> None:
    refuses_text(patch, r"\)\+")


def r38_partition_by_is_no_clause(patch: Patch) -> None:
    refuses_text(patch, "PARTITION BY")


def r38_semantics_is_no_clause(patch: Patch) -> None:
    refuses_text(patch, "SEMANTICS next")


def r38_after_match_is_no_clause(patch: Patch) -> None:
    refuses_text(patch, "AFTER MATCH SKIP TO FIRST")


def r38_output_is_no_clause(patch: Patch) -> None:
    refuses_text(patch, "OUTPUT longest")


def r38_group_by_is_no_clause(patch: Patch) -> None:
    refuses_text(patch, "GROUP BY")


def r38_an_iterated_name_has_no_brackets(patch: Patch) -> None:
    refuses_text(patch, r"[a-z]\[\]")


def r38_not_takes_no_parentheses_in_a_pattern(patch: Patch) -> None:
    refuses_text(patch, r"NOT\([A-Z]")


def r38_the_sign_for_not_is_no_word(patch: Patch) -> None:
    refuses_text(patch, "¬")


def r38_the_sign_for_and_is_no_word(patch: Patch) -> None:
    refuses_text(patch, "∧")


def r38_clauses_have_one_order(patch: Patch) -> None:
    refuses_text(patch, r"(WITHIN|SEMANTICS|AFTER|OUTPUT|RETURN).* WHERE")


def r38_the_last_of_two_equal_clauses_wins(patch: Patch) -> None:
    def last_wins(self: QueryBuilder, meta: Any, pattern: ast.Element, *clauses: Any) -> ast.Query:
        values = {clause.field: clause.value for clause in clauses}
        return ast.Query(pattern, **values, source=self._source, where=self._place(meta))

    patch.setattr(QueryBuilder, "query", v_args(meta=True, inline=True)(last_wins))
