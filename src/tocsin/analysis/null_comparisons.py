"""Comparisons with NULL as it is written: they are never TRUE, which few mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.language.sase.printer import print_expression
from tocsin.source import Where

NULL = ex.Literal(None)
_IS_UNKNOWN = "a comparison with NULL is UNKNOWN."


def null_warnings(query: alg.Query, others: Iterable[ex.Expression] = ()) -> Iterator[errors.TocsinWarning]:
    """Warn of comparisons with NULL in the conditions and outputs of a query, and in other expressions.

    One that a query holds twice, as HAVING repeats a column of RETURN, is reported once.
    """
    shown: set[tuple[str, Where]] = set()
    for expression in (*alg.conditions_in(query.pattern), *query.outputs, *others):
        for node in expression.walk():
            warning = _warning(node)
            if warning is not None and (warning.message, warning.where) not in shown:
                shown.add((warning.message, warning.where))
                yield warning


def _warning(node: ex.Expression) -> errors.TocsinWarning | None:
    match node:
        case ex.Comparison(op, left, right) if NULL in (left, right):
            operand = right if left == NULL else left
            return _never(node, _is_null(operand, op == "!=") if op in ("=", "!=") and operand != NULL else None)
        case ex.Between(operand, low, high, negated) if not negated and NULL in (operand, low, high):
            return _never(node, None)
        case ex.In(operand, options, negated) if NULL in (operand, *options):
            others = tuple(option for option in options if option != NULL)
            if operand == NULL:
                return _never(node, None)
            if not others:
                return _never(node, _is_null(operand, negated))
            without = print_expression(ex.In(operand, others, negated))
            if negated:
                return _never(node, without)
            return errors.TocsinWarning(
                "NULL_COMPARISON",
                f"The NULL in `{print_expression(node)}` equals nothing: {_IS_UNKNOWN}",
                where=node.where,
                hint=f"leave it out, or write `({without} OR {_is_null(operand, False)})`.",
            )
        case _:
            return None


def _never(node: ex.Expression, wanted: str | None) -> errors.TocsinWarning:
    return errors.TocsinWarning(
        "NULL_COMPARISON",
        f"`{print_expression(node)}` is never TRUE: {_IS_UNKNOWN}",
        where=node.where,
        hint="leave it out." if wanted is None else f"write `{wanted}`.",
    )


def _is_null(operand: ex.Expression, negated: bool) -> str:
    return print_expression(ex.IsNull(operand, negated))
