"""From the parse tree of what all languages share to `tocsin.language.expressions` and the values of clauses.

One method per rule of shared.lark, in its order. What the grammar lets through although no tree can hold it (an index
called `b[idx]`, half a microsecond) is refused here as a syntax error.
"""

# ruff: noqa: D102 - a method builds what the rule of its name reads

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, replace
from typing import Any

from lark import Token, Transformer, v_args
from lark.tree import Meta

from tocsin.errors import QuerySyntaxError, TextTooLongError, nearest
from tocsin.language import ast, durations
from tocsin.language import expressions as ex
from tocsin.language.functions import AGGREGATES
from tocsin.language.grammars import MOST_NODES, is_larger
from tocsin.language.user_defined import Monoids
from tocsin.source import Place, Source

COMPARISONS = {"<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}


@v_args(meta=True, inline=True)
class ExpressionBuilder(Transformer[Token, Any]):
    """Builds expressions, bottom up."""

    def __init__(self, source: Source, monoids: Monoids | None = None) -> None:
        super().__init__()
        self._source = source
        self._monoids = monoids or {}

    def _place(self, at: Meta | Token) -> Place:
        start, end = at.start_pos, at.end_pos
        assert start is not None
        assert end is not None
        return Place(self._source, start, end)

    # --- conditions and values ---

    def disjunction(self, meta: Meta, *operands: Any) -> ex.Expression:
        return ex.any_of(*without_tokens(operands), where=self._place(meta))

    def all(self, meta: Meta, *operands: Any) -> ex.Expression:
        return ex.all_of(*without_tokens(operands), where=self._place(meta))

    def inversion(self, meta: Meta, _not: Token, operand: ex.Expression) -> ex.Not:
        return ex.Not(operand, where=self._place(meta))

    def comparison(self, meta: Meta, left: ex.Expression, op: Token, right: ex.Expression) -> ex.Comparison:
        return ex.Comparison(COMPARISONS.get(op, str(op)), left, right, where=self._place(meta))

    def is_null(self, meta: Meta, operand: ex.Expression, negated: Token | None, _null: Token) -> ex.IsNull:
        return ex.IsNull(operand, negated is not None, where=self._place(meta))

    def is_in(self, meta: Meta, operand: ex.Expression, negated: Token | None, *options: ex.Expression) -> ex.In:
        return ex.In(operand, options, negated is not None, where=self._place(meta))

    def is_between(
        self,
        meta: Meta,
        operand: ex.Expression,
        negated: Token | None,
        low: ex.Expression,
        _and: Token,
        high: ex.Expression,
    ) -> ex.Between:
        return ex.Between(operand, low, high, negated is not None, where=self._place(meta))

    def is_like(self, meta: Meta, operand: ex.Expression, negated: Token | None, pattern: Token) -> ex.Like:
        return ex.Like(operand, unquoted(pattern), negated is not None, where=self._place(meta))

    def arithmetic(self, meta: Meta, left: ex.Expression, op: Token, right: ex.Expression) -> ex.Arithmetic:
        return ex.Arithmetic(str(op), left, right, where=self._place(meta))

    def negative(self, meta: Meta, _minus: Token, operand: ex.Expression) -> ex.Expression:
        place = self._place(meta)
        # `-5` is one literal, `-(5)` and `- -5` are operations on one.
        assert isinstance(operand.where, Place)
        is_bare = self._source.text[operand.where.start] not in "(-"
        match operand:
            case ex.Literal(int() | float() as value) if is_bare and not isinstance(value, bool):
                return ex.Literal(-value, where=place)
            case ex.Interval(microseconds) if is_bare:
                return ex.Interval(-microseconds, where=place)
            case _:
                return ex.Negative(operand, where=place)

    def group(self, meta: Meta, inner: ex.Expression) -> ex.Expression:
        return replace(inner, where=self._place(meta))

    def case(self, meta: Meta, subject: ex.Expression | None, *parts: Any) -> ex.Case:
        *whens, otherwise = parts
        branches = tuple(
            (
                condition if subject is None else ex.Comparison("=", subject, condition, where=condition.where),
                value,
            )
            for condition, value in whens
        )
        made = ex.Case(branches, otherwise, where=self._place(meta))
        if subject is not None and is_larger(subject, 1) and is_larger(made, MOST_NODES):
            raise TextTooLongError(
                f"Its subject repeated in each WHEN, this CASE has more than {MOST_NODES:,} parts.",
                where=self._place(meta),
                hint="make the subject shorter, or write CASE WHEN with a condition in each branch.",
            )
        return made

    def when(self, _meta: Meta, condition: ex.Expression, value: ex.Expression) -> tuple[ex.Expression, ex.Expression]:
        return condition, value

    def same_value(self, meta: Meta, *attributes: Token) -> ex.SameValue:
        return ex.SameValue(tuple(unquoted_name(token) for token in attributes), where=self._place(meta))

    # --- references and functions ---

    def name(self, _meta: Meta, token: Token) -> str:
        return unquoted_name(token)

    def bare_name(self, meta: Meta, name: str) -> ex.Name:
        return ex.Name(name, where=self._place(meta))

    def whole_variable(self, meta: Meta, name: str) -> ex.Variable:
        return ex.Variable(name, where=self._place(meta))

    def attribute(self, meta: Meta, variable: str, path: tuple[str, ...]) -> ex.Attribute:
        return ex.Attribute(variable, path, where=self._place(meta))

    def indexed_attribute(self, meta: Meta, variable: str, index: ex.Index, path: tuple[str, ...]) -> ex.Attribute:
        return ex.Attribute(variable, path, index, where=self._place(meta))

    def next_attribute(self, meta: Meta, _next: Token, variable: str, path: tuple[str, ...]) -> ex.Attribute:
        return ex.Attribute(variable, path, ex.Each.NEXT, where=self._place(meta))

    def path(self, _meta: Meta, *members: Token) -> tuple[str, ...]:
        return tuple(unquoted_name(token) for token in members)

    def each(self, _meta: Meta) -> ex.Index:
        return ex.Each.PLAIN

    def fixed(self, _meta: Meta, minus: Token | None, number: Token) -> ex.Index:
        value = self._integer(number)
        return ex.Fixed(-value if minus else value)

    def letter(self, _meta: Meta, word: Token) -> ex.Index:
        if word.lower() in {"first", "last"}:
            return ex.Edge(word.lower())
        return ex.Running(self._index_letter(word))

    def letter_and_offset(self, meta: Meta, word: Token, sign: Token, number: Token) -> ex.Index:
        if word.lower() in {"first", "last"}:
            raise QuerySyntaxError(
                f"The index [{word}] takes no offset.",
                where=self._place(meta),
                hint="use b[first], b[last], b[3], or a running index such as b[i-1].",
            )
        offset = self._integer(number)
        return ex.Running(self._index_letter(word), -offset if sign == "-" else offset)

    def _index_letter(self, word: Token) -> str:
        if len(word) > 1:
            near = nearest(word, ["first", "last"])
            raise QuerySyntaxError(
                f"An index is a number, a single letter, first or last, not `{word}`.",
                where=self._place(word),
                hint=(f"did you mean {near}? " if near else "")
                + "b[3] is the third event; b[i] and b[i-1] are each event and the one before it.",
            )
        return str(word)

    def call(self, meta: Meta, name: Token, *arguments: ex.Expression | None) -> ex.Expression:
        function, place = name.lower(), self._place(meta)
        given = tuple(argument for argument in arguments if argument is not None)
        if not self._is_aggregate(function):
            return ex.Call(function, given, where=place)
        if len(given) != 1:
            raise QuerySyntaxError(
                f"{function.upper()} takes one argument, not {len(given) or 'none'}.",
                where=place,
                hint=f"write {function.upper()}(b.x){' or COUNT(*)' if function == 'count' else ''}.",
            )
        return ex.Aggregate(function, whole_variable(given[0]), monoid=self._monoids.get(function), where=place)

    def _is_aggregate(self, function: str) -> bool:
        return function in AGGREGATES or function in self._monoids

    def call_of_all(self, meta: Meta, name: Token, _star: Token) -> ex.Aggregate:
        if name.lower() != "count":
            raise QuerySyntaxError(
                f"Only COUNT can be taken of `*`, not {name.upper()}.",
                where=self._place(meta),
                hint=f"name the attribute: {name.upper()}(b.x).",
            )
        return ex.Aggregate("count", None, where=self._place(meta))

    def call_of_distinct(self, meta: Meta, name: Token, argument: ex.Expression) -> ex.Aggregate:
        function = name.lower()
        if not self._is_aggregate(function):
            raise QuerySyntaxError(
                f"DISTINCT belongs to aggregates, and {name} is none.",
                where=self._place(meta),
                hint="write COUNT(DISTINCT b.x).",
            )
        place, monoid = self._place(meta), self._monoids.get(function)
        return ex.Aggregate(function, whole_variable(argument), True, monoid, where=place)

    # --- literals ---

    def number(self, meta: Meta, token: Token) -> ex.Literal:
        value = self._integer(token) if token.isdecimal() else float(token)
        return ex.Literal(value, where=self._place(meta))

    def string(self, meta: Meta, token: Token) -> ex.Literal:
        return ex.Literal(unquoted(token), where=self._place(meta))

    def true(self, meta: Meta, _token: Token) -> ex.Literal:
        return ex.Literal(True, where=self._place(meta))

    def false(self, meta: Meta, _token: Token) -> ex.Literal:
        return ex.Literal(False, where=self._place(meta))

    def null(self, meta: Meta, _token: Token) -> ex.Literal:
        return ex.Literal(None, where=self._place(meta))

    def timestamp(self, meta: Meta, token: Token) -> ex.Timestamp:
        text = unquoted(token)
        try:
            if re.search(r"\.\d{7}", text):
                raise ValueError
            value = dt.datetime.fromisoformat(text)
            # The tree holds instants: always aware, always UTC.
            value = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
        except (ValueError, OverflowError):
            raise QuerySyntaxError(
                f"{token} is not a timestamp.",
                where=self._place(token),
                hint="write TIMESTAMP '2026-01-31 08:30:00', with up to six decimals and, "
                "unless it is UTC, an offset such as +02:00.",
            ) from None
        return ex.Timestamp(value, where=self._place(meta))

    def date(self, meta: Meta, token: Token) -> ex.Date:
        try:
            value = dt.date.fromisoformat(unquoted(token))
        except ValueError:
            raise QuerySyntaxError(
                f"{token} is not a date.", where=self._place(token), hint="write DATE '2026-01-31'."
            ) from None
        return ex.Date(value, where=self._place(meta))

    def interval(self, meta: Meta, number: Token, unit: Token) -> ex.Interval:
        text = unquoted(number) if number.type == "STRING" else str(number)
        if not re.fullmatch(r"-?\d{1,30}(\.\d{1,30})?", text):
            raise QuerySyntaxError(
                f"{number} is not a number of {unit}.",
                where=self._place(number),
                hint="write a plain number: 15 MINUTES, 1.5 HOURS, INTERVAL '15' MINUTE.",
            )
        microseconds = durations.to_microseconds(text, unit)
        if microseconds is None:
            raise QuerySyntaxError(
                f"{text} {unit} is not a whole number of microseconds.",
                where=self._place(meta),
                hint="Tocsin keeps time in whole microseconds; round the duration.",
            )
        return ex.Interval(microseconds, where=self._place(meta))

    def duration(self, meta: Meta, minus: Token | None, interval: ex.Interval) -> ex.Interval:
        return ex.Interval(-interval.microseconds if minus else interval.microseconds, where=self._place(meta))

    def _integer(self, token: Token) -> int:
        if len(token) > 38:
            raise QuerySyntaxError(
                "The number is too long.",
                where=self._place(token),
                hint="whole numbers have at most 38 digits.",
            )
        return int(token)


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


def whole_variable(expression: ex.Expression) -> ex.Expression:
    """A bare name where a whole variable is meant: in RETURN and as an aggregate's argument."""
    if isinstance(expression, ex.Name):
        return ex.Variable(expression.name, where=expression.where)
    return expression


def unquoted_name(token: Token) -> str:
    """The name a token writes, without backquotes."""
    return token[1:-1].replace("``", "`") if token.startswith("`") else str(token)


def unquoted(token: Token) -> str:
    """The text a string writes, without its quotes; a quote inside is doubled."""
    return token[1:-1].replace(token[0] * 2, token[0])


def without_tokens(children: tuple[Any, ...]) -> list[Any]:
    """The operands between signs and keywords."""
    return [child for child in children if not isinstance(child, Token)]
