"""From the parse tree of the clauses that all languages have to their values: shared.lark, section 1."""

# ruff: noqa: D102 - a method builds what the rule of its name reads

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from tocsin.errors import QuerySyntaxError
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.sase.build_expression import ExpressionBuilder, unquoted_name, whole_variable
from tocsin.source import Place


@dataclass(frozen=True)
class Clause:
    """A clause on its way into the query: its name in the text, its field in the tree, its value."""

    title: str
    field: str
    value: Any
    where: Place


@v_args(meta=True, inline=True)
class ClauseBuilder(ExpressionBuilder):
    """Builds the clauses around a pattern."""

    def _sorted(self, clauses: tuple[Clause, ...]) -> tuple[dict[str, Any], dict[str, Place]]:
        """The values and the places of the clauses by field, each written once."""
        first: dict[str, Clause] = {}
        for clause in clauses:
            if clause.field in first:
                raise QuerySyntaxError(
                    f"{clause.title} is written twice.",
                    where=clause.where,
                    also=("first written", first[clause.field].where),
                    hint="join the two conditions with AND."
                    if clause.title in {"WHERE", "HAVING"}
                    else "keep one of the two.",
                )
            first[clause.field] = clause
        values = {field: clause.value for field, clause in first.items()}
        places = {field: clause.where for field, clause in first.items()}
        return values, places

    def _clause(self, meta: Meta, title: str, field: str, value: Any) -> Clause:
        return Clause(title, field, value, self._place(meta))

    def partition_by(self, meta: Meta, *keys: ast.Key) -> Clause:
        return self._clause(meta, "PARTITION BY", "partition_by", keys)

    def key(self, meta: Meta, token: Token) -> ast.Key:
        return ast.Key(unquoted_name(token), where=self._place(meta))

    def within(self, meta: Meta, size: ex.Interval, slide: ex.Interval | None = None) -> Clause:
        window = ast.Window(size.microseconds, slide.microseconds if slide else None, where=self._place(meta))
        return self._clause(meta, "WITHIN", "within", window)

    def returns(self, meta: Meta, *columns: ast.Column) -> Clause:
        return self._clause(meta, "RETURN", "returns", columns)

    def column(self, meta: Meta, expression: ex.Expression, alias: str | None) -> ast.Column:
        return ast.Column(whole_variable(expression), alias, where=self._place(meta))

    def alias(self, _meta: Meta, token: Token) -> str:
        return unquoted_name(token)

    def group_by(self, meta: Meta, *keys: ex.Expression) -> Clause:
        return self._clause(meta, "GROUP BY", "group_by", keys)

    def having(self, meta: Meta, condition: ex.Expression) -> Clause:
        return self._clause(meta, "HAVING", "having", condition)

    def every(self, meta: Meta, size: ex.Interval) -> Clause:
        return self._clause(meta, "EVERY", "every", ast.Window(size.microseconds, where=self._place(meta)))
