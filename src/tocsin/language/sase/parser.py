"""SASE+ text to syntax tree. Knows the grammar; knows nothing of schemas, nor of what a query means."""

from __future__ import annotations

from typing import Any

from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.grammars import LONGEST_TEXT, grammar, read, refuse_long
from tocsin.language.monoids import Monoids
from tocsin.language.sase.build import QueryBuilder
from tocsin.language.sase.habits import syntax_error
from tocsin.source import Source


def parse(
    text: str, name: str = "<pattern>", monoids: Monoids | None = None, *, max_text: int = LONGEST_TEXT
) -> ast.Query:
    """The syntax tree of a SASE+ query.

    `name` stands for the text in messages; `monoids` are user-defined aggregates by name in lower case.

    Raises `TextTooLongError` when the text has more than `max_text` characters. Raises `QuerySyntaxError` when the text
    is not a sentence of the language; it shows the place and what was expected there.

    >>> query = parse("PATTERN SEQ(Login a, Transfer+ b) WHERE b.amount > 1000 WITHIN 10 MINUTES")
    >>> query.within.size_us
    600000000
    >>> [part.variable for part in query.pattern.parts]
    ['a', 'b']
    """
    query = _read(Source(text, name), "query", monoids, max_text)
    assert isinstance(query, ast.Query)
    return query


def parse_expression(text: str, name: str = "<expression>") -> ex.Expression:
    """The tree of a condition or value alone, as in WHERE or HAVING.

    >>> parse_expression("b[i-1].x")
    Attribute(variable='b', path=('x',), index=Running(letter='i', offset=-1))
    """
    expression = _read(Source(text, name), "expression")
    assert isinstance(expression, ex.Expression)
    return expression


def _read(source: Source, start: str, monoids: Monoids | None = None, max_text: int = LONGEST_TEXT) -> Any:
    refuse_long(source, max_text)
    return read(source, grammar("sase"), start, QueryBuilder(source, monoids), syntax_error)
