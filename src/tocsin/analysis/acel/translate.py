"""`acel.ast.Query` → `algebra.Query`: names, structure and clauses, all problems shown together; no schema needed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.acel.formulas import Formulas
from tocsin.analysis.outputs import translate_outputs
from tocsin.analysis.references import References
from tocsin.analysis.translate import Translation, in_order, window_problems, window_warnings
from tocsin.analysis.variables import MATCH_COLUMNS, RESERVED_PREFIX, Variables
from tocsin.language.acel import ast
from tocsin.source import Where


def translate(tree: ast.Query) -> Translation:
    """The meaning of a syntax tree.

    Raises
    ------
    QueryBindingError
        The one thing that is wrong, or a `QueryErrors` with all of them in the order of the text.
    """
    problems = window_problems(tree.within, tree.every)
    pattern = Formulas(problems).node(tree.formula)
    variables = Variables(alg.variables_of(pattern), {})
    problems += _name_problems(tree, variables)
    outputs = translate_outputs(tree, References(variables, problems))
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
    return Translation(query, (*window_warnings(tree.within), *_empty_intersections(pattern)))


def _name_problems(tree: ast.Query, variables: Variables) -> Iterator[errors.TocsinError]:
    """Names that cannot be columns of the result: Tocsin's own, and two that differ only in case."""
    named = _places(tree.formula)
    seen: dict[str, str] = {}
    for name, where in named.items():
        is_column = name in variables.positive and not tree.returns
        if name.startswith(RESERVED_PREFIX) or (is_column and name.casefold() in MATCH_COLUMNS):
            yield errors.ReservedNameError(
                f"`{name}` cannot be a variable: the result has a column of that name.",
                where=where,
                hint="give it another name with AS, or leave it out with PROJECT or RETURN.",
            )
        if is_column and name.casefold() in seen:
            first = seen[name.casefold()]
            yield errors.DuplicateVariableError(
                f"The names `{first}` and `{name}` differ only in case.",
                where=where,
                also=("first named", named[first]),
                hint="Spark does not tell such columns apart: rename one, or leave one out with PROJECT or RETURN.",
            )
        elif is_column:
            seen[name.casefold()] = name


def _places(formula: ast.Formula) -> dict[str, Where]:
    """Where each variable is first named, in the order of the text."""
    places: dict[str, Where] = {}
    for node in formula.walk():
        match node:
            case ast.Event(name) | ast.NextOf(name) | ast.Bind(variable=name) | ast.Derive(variable=name):
                places.setdefault(name, node.where)
    return places


def _empty_intersections(pattern: alg.Node) -> Iterator[errors.TocsinWarning]:
    for node in pattern.walk():
        if not isinstance(node, alg.Both):
            continue
        for left, right in combinations(node.parts, 2):
            reason = _never_equal(alg.variables_of(left), alg.variables_of(right))
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
