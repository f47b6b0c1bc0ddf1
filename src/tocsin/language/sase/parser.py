"""SASE+ text to syntax tree, by the rules of grammar.lark; schemas and the meaning of a query are not known here."""

# ruff: noqa: D102 - a method builds what the rule of its name reads

from __future__ import annotations

from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.grammars import LONGEST_TEXT, grammar, read, refuse_long
from tocsin.language.sase.habits import syntax_error
from tocsin.language.tree_builders import Clause, ClauseBuilder, unquoted_name
from tocsin.language.user_defined import Monoids
from tocsin.source import Source

SELECTIONS = {
    "ANY_MATCH": ast.Selection.ANY,
    "NEXT_MATCH": ast.Selection.NEXT,
    "CONTIGUOUS": ast.Selection.CONTIGUOUS,
    "PARTITION_CONTIGUOUS": ast.Selection.PARTITION_CONTIGUOUS,
}


@v_args(meta=True, inline=True)
class QueryBuilder(ClauseBuilder):
    """Builds queries, bottom up."""

    def query(self, meta: Meta, pattern: ast.Element, *clauses: Clause) -> ast.Query:
        values, places = self._sorted(clauses)
        return ast.Query(pattern, **values, places=places, source=self._source, where=self._place(meta))

    # --- pattern ---

    def event(self, meta: Meta, type_name: str, quantifier: ast.Quantifier | None, variable: str | None) -> ast.Event:
        return ast.Event(type_name, variable, quantifier, where=self._place(meta))

    def type(self, _meta: Meta, token: Token) -> str:
        return unquoted_name(token)

    def variable(self, _meta: Meta, token: Token) -> str:
        return unquoted_name(token)

    def operator(self, _meta: Meta, token: Token) -> ast.Operator:
        return ast.Operator[token.type]

    def composite(self, meta: Meta, operator: ast.Operator, *parts: Any) -> ast.Composite:
        *elements, quantifier = parts
        return ast.Composite(operator, tuple(elements), quantifier, where=self._place(meta))

    def negation(self, meta: Meta, _not: Token, operand: ast.Element) -> ast.Negation:
        return ast.Negation(operand, where=self._place(meta))

    def one_or_more(self, meta: Meta, _plus: Token) -> ast.Quantifier:
        return ast.Quantifier(1, None, where=self._place(meta))

    def any_number(self, meta: Meta, _star: Token) -> ast.Quantifier:
        return ast.Quantifier(0, None, where=self._place(meta))

    def at_most_one(self, meta: Meta) -> ast.Quantifier:
        return ast.Quantifier(0, 1, where=self._place(meta))

    def exactly(self, meta: Meta, number: Token) -> ast.Quantifier:
        return ast.Quantifier(self._integer(number), self._integer(number), where=self._place(meta))

    def at_least(self, meta: Meta, number: Token) -> ast.Quantifier:
        return ast.Quantifier(self._integer(number), None, where=self._place(meta))

    def from_to(self, meta: Meta, least: Token, most: Token) -> ast.Quantifier:
        return ast.Quantifier(self._integer(least), self._integer(most), where=self._place(meta))

    # --- clauses ---

    def where(self, meta: Meta, condition: ex.Expression) -> Clause:
        return self._clause(meta, "WHERE", "where_clause", condition)

    def semantics(self, meta: Meta, policy: Token) -> Clause:
        return self._clause(meta, "SEMANTICS", "selection", SELECTIONS[policy.type])

    def reuse(self, meta: Meta) -> Clause:
        return self._after_match(meta, ast.Skip.REUSE)

    def skip_past_last(self, meta: Meta, _last: Token) -> Clause:
        return self._after_match(meta, ast.Skip.PAST_LAST)

    def skip_to_next(self, meta: Meta) -> Clause:
        return self._after_match(meta, ast.Skip.TO_NEXT)

    def skip_to_first(self, meta: Meta, _first: Token, variable: str) -> Clause:
        return self._after_match(meta, ast.Skip.TO_FIRST, variable)

    def skip_to_last(self, meta: Meta, _last: Token, variable: str) -> Clause:
        return self._after_match(meta, ast.Skip.TO_LAST, variable)

    def _after_match(self, meta: Meta, skip: ast.Skip, variable: str | None = None) -> Clause:
        policy = ast.AfterMatch(skip, variable, where=self._place(meta))
        return self._clause(meta, "AFTER MATCH", "after_match", policy)

    def output(self, meta: Meta, which: Token, per: Token | None = None) -> Clause:
        words = which.lower()
        if words in {"first", "last"}:
            words += f" per {per.lower() if per else 'start'}"
        return self._clause(meta, "OUTPUT", "output", ast.Output(words))

    def timeouts(self, meta: Meta) -> Clause:
        return self._clause(meta, "WITH TIMEOUTS", "timeouts", True)


def parse(
    text: str, name: str = "<pattern>", monoids: Monoids | None = None, *, max_text: int = LONGEST_TEXT
) -> ast.Query:
    """The syntax tree of a SASE+ query.

    `name` stands for the text in messages; `monoids` are user-defined aggregates by name in lower case.

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
