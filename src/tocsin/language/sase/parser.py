"""SASE+ text to syntax tree, by the rules of grammar.lark; schemas and the meaning of a query are not known here."""

# ruff: noqa: D102 - a method builds what the rule of its name reads

from __future__ import annotations

from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.grammars import LONGEST_TEXT, source_of
from tocsin.language.sase.habits import HABITS
from tocsin.language.sase.words import SELECTIONS, Situation
from tocsin.language.tree_builders import (
    Clause,
    ClauseBuilder,
    clause,
    placed,
    plain,
    read,
    unquoted_name,
    without_tokens,
)
from tocsin.language.user_defined import Monoids


def after_match(skip: ast.Skip) -> Any:
    """The member of a builder for one form of AFTER MATCH; two of them name a variable."""
    return clause(
        "AFTER MATCH",
        "after_match",
        lambda *children, where: ast.AfterMatch(skip, *without_tokens(children), where=where),
    )


@v_args(meta=True, inline=True)
class QueryBuilder(ClauseBuilder):
    """Builds queries, bottom up."""

    _language, _situation, _habits, _tree = "sase", Situation, HABITS, ast.Query

    # --- pattern ---

    event = placed(lambda kind, quantifier, name, where: ast.Event(kind, name, quantifier, where=where))
    type = plain(unquoted_name)
    variable = plain(unquoted_name)
    operator = plain(lambda token: ast.Operator[token.type])
    composite = placed(lambda operator, *parts, where: ast.Composite(operator, parts[:-1], parts[-1], where=where))
    negation = placed(lambda _not, operand, where: ast.Negation(operand, where=where))
    any_number = placed(lambda _star, where: ast.Quantifier(0, None, where=where))
    at_most_one = placed(lambda where: ast.Quantifier(0, 1, where=where))

    # --- clauses ---

    where = clause("WHERE", "where_clause", lambda condition, where: condition)
    semantics = clause("SEMANTICS", "selection", lambda policy, where: SELECTIONS[policy.lower()])
    reuse = after_match(ast.Skip.REUSE)
    skip_past_last = after_match(ast.Skip.PAST_LAST)
    skip_to_next = after_match(ast.Skip.TO_NEXT)
    skip_to_first = after_match(ast.Skip.TO_FIRST)
    skip_to_last = after_match(ast.Skip.TO_LAST)
    timeouts = clause("WITH TIMEOUTS", "timeouts", lambda where: True)

    def output(self, meta: Meta, which: Token, per: Token | None = None) -> Clause:
        words = which.lower()
        if words in {"first", "last"}:
            words += f" per {per.lower() if per else 'start'}"
        return Clause("OUTPUT", "output", ast.Output(words), self._place(meta))


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
    return read(QueryBuilder(source_of(text, name, max_text), monoids), "query", ast.Query)


def parse_expression(text: str, name: str = "<expression>") -> ex.Expression:
    """The tree of a condition or value alone, as in WHERE or HAVING.

    >>> parse_expression("b[i-1].x")
    Attribute(variable='b', path=('x',), index=Running(letter='i', offset=-1))
    """
    return read(QueryBuilder(source_of(text, name)), "expression", ex.Expression)
