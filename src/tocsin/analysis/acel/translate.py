"""`acel.ast.Query` → `algebra.Query`: names, structure and clauses, all problems shown together; no schema needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.acel.formulas import Formulas
from tocsin.analysis.outputs import translate_outputs
from tocsin.analysis.references import References
from tocsin.analysis.translate import Translation, in_order, null_warnings, window_problems, window_warnings
from tocsin.analysis.variables import RESERVED_PREFIX, Variables, renamed_columns, reserved_prefix
from tocsin.language.acel import ast
from tocsin.source import Where


def translate(tree: ast.Query, *, is_partial: bool = False) -> Translation:
    """The meaning of a syntax tree; `is_partial` as for SASE+."""
    problems = window_problems(tree.within, tree.every)
    pattern = Formulas(problems).node(tree.formula)
    variables = Variables(alg.variables_of(pattern), {})
    places = _places(tree.formula)
    problems += [reserved_prefix(name, where) for name, where in places.items() if name.startswith(RESERVED_PREFIX)]
    outputs = translate_outputs(tree, References(variables, problems))
    if not is_partial:
        errors.raise_all(in_order(problems))
    if tree.within is not None:
        pattern = alg.Within(pattern, tree.within.size_us, where=tree.within.where)
    query = alg.Query(
        pattern,
        partition=alg.Partition(tuple(key.attribute for key in tree.partition_by)),
        returns=outputs.returns,
        group_by=outputs.group_by,
        having=outputs.having,
        over_all_matches=outputs.over_all_matches,
        every_us=outputs.every_us,
        places=tree.places,
    )
    returns, renamed = renamed_columns(query, places)
    query = replace(query, returns=query.returns or returns)
    if problems:
        return Translation(query, problems=tuple(in_order(problems)))
    return Translation(
        query,
        (
            *window_warnings(tree.within),
            *null_warnings(pattern),
            *_empty_intersections(pattern),
            *renamed,
            *outputs.warnings,
        ),
    )


def _places(formula: ast.Formula) -> dict[str, Where]:
    """Where each variable is first named, in the order of the text."""
    places: dict[str, Where] = {}
    for node in formula.walk():
        match node:
            case ast.Event(name) | ast.NextOf(name) | ast.Bind(variable=name) | ast.Derive(variable=name):
                places.setdefault(name, node.where)
            case _:
                continue
    return places


def _empty_intersections(pattern: alg.Node) -> Iterator[errors.TocsinWarning]:
    for node in pattern.walk():
        if not isinstance(node, alg.Both):
            continue
        bound = (alg.variables_of(part) for part in node.parts)
        for left, right in combinations({frozenset(kinds.items()): kinds for kinds in bound}.values(), 2):
            reason = _never_equal(left, right)
            if reason is not None:
                yield errors.TocsinWarning(
                    "EMPTY_INTERSECTION",
                    f"This AND finds nothing: {reason}.",
                    where=node.where,
                    hint="AND keeps the matches that both formulas find, with the same variables; for events in any "
                    "order write (A ; B) OR (B ; A).",
                )
                break


def _never_equal(left: dict[str, alg.Kind], right: dict[str, alg.Kind]) -> str | None:
    """Why no match of one formula binds what a match of the other does; None when one may (R25)."""
    for one, other in ((left, right), (right, left)):
        for name, kind in one.items():
            if not kind.optional and name not in other:
                return f"one side always binds `{name}`, the other never"
    for name in (name for name in left if name in right):
        sometimes_none = left[name].optional and right[name].optional
        if not sometimes_none and not set(left[name].types) & set(right[name].types):
            return f"`{name}` holds events of different types on its sides"
    return None
