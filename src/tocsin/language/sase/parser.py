"""SASE+ text to syntax tree. Knows the grammar; knows nothing of schemas, nor of what a query means."""

from __future__ import annotations

from functools import cache
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput, VisitError

from tocsin.errors import QuerySyntaxError
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.sase.build_query import QueryBuilder
from tocsin.language.sase.messages import syntax_error
from tocsin.source import Place, Source

# Every walk over a tree is a recursion; nobody writes this deep by hand.
DEEPEST = 100


def parse(text: str, name: str = "<pattern>") -> ast.Query:
    """The syntax tree of a SASE+ query.

    Parameters
    ----------
    text
        The query.
    name
        What messages call the text, such as the name of its file.

    Raises
    ------
    QuerySyntaxError
        When the text is not a sentence of the language; it shows the place and what was expected there.

    Examples
    --------
    >>> query = parse("PATTERN SEQ(Login a, Transfer+ b) WHERE b.amount > 1000 WITHIN 10 MINUTES")
    >>> query.within.size_us
    600000000
    >>> [part.variable for part in query.pattern.parts]
    ['a', 'b']
    """
    query = _read(Source(text, name), "query")
    assert isinstance(query, ast.Query)
    return query


def parse_expression(text: str, name: str = "<expression>") -> ex.Expression:
    """The tree of a condition or value alone, as in WHERE or HAVING.

    Examples
    --------
    >>> parse_expression("b[i-1].x")
    Attribute(variable='b', path=('x',), index=Running(letter='i', offset=-1))
    """
    expression = _read(Source(text, name), "expression")
    assert isinstance(expression, ex.Expression)
    return expression


def _read(source: Source, start: str) -> Any:
    try:
        tree = _grammar().parse(source.text, start=start)
    except UnexpectedInput:
        raise syntax_error(source, _grammar(), start) from None
    _refuse_deep_nesting(tree, source)
    try:
        return QueryBuilder(source).transform(tree)
    except VisitError as error:
        raise error.orig_exc from None


@cache
def _grammar() -> Lark:
    # Read when the first query is parsed, so that importing Tocsin stays quick; then kept.
    return Lark.open_from_package(
        "tocsin.language.sase",
        "grammar.lark",
        ("",),
        start=["query", "expression"],
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
    )


def _refuse_deep_nesting(tree: Tree[Token], source: Source) -> None:
    level = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in node.children if isinstance(child, Tree)]
        if not level:
            return
    meta = level[0].meta
    raise QuerySyntaxError(
        f"The query is nested more than {DEEPEST} levels deep here.",
        where=Place(source, meta.start_pos, meta.end_pos),
        hint="AND, OR and IN lists may be as long as you like; parentheses and operators may not.",
    )
