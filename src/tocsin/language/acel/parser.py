"""ACEL text to syntax tree. Knows the grammar; knows nothing of schemas, nor of what a formula means."""

from __future__ import annotations

from tocsin.language.acel import ast
from tocsin.language.acel.build import FormulaBuilder
from tocsin.language.acel.habits import syntax_error
from tocsin.language.grammars import DEEPEST, LONGEST_TEXT, grammar, nested_too_deep, read, refuse_long
from tocsin.language.monoids import Monoids
from tocsin.source import Place, Source


def parse(
    text: str, name: str = "<pattern>", monoids: Monoids | None = None, *, max_text: int = LONGEST_TEXT
) -> ast.Query:
    """The syntax tree of an ACEL formula with its clauses.

    `name` stands for the text in messages; `monoids` are user-defined aggregates by name in lower case.

    Raises `TextTooLongError` when the text has more than `max_text` characters. Raises `QuerySyntaxError` when the text
    is not a sentence of the language; it shows the place and what was expected there.

    >>> parse("SELL AS s ; BUY+").formula
    Sequence(parts=(Bind(part=Event(type='SELL'), variable='s'), Repeat(part=Event(type='BUY'))))
    """
    source = Source(text, name)
    refuse_long(source, max_text)
    query = read(source, grammar("acel"), "query", FormulaBuilder(source, monoids), syntax_error)
    assert isinstance(query, ast.Query)
    _refuse_deep_formula(query.formula)
    return query


def _refuse_deep_formula(formula: ast.Formula) -> None:
    """Signs in a row, `A+@+@+…`, nest a formula without any bracket."""
    level: tuple[ast.Formula, ...] = (formula,)
    for _ in range(DEEPEST):
        level = tuple(child for node in level for child in node.children())
        if not level:
            return
    assert isinstance(level[0].where, Place)
    raise nested_too_deep(level[0].where)
