"""From the parse tree of what all languages share to `tocsin.language.expressions` and the values of clauses.

A builder has one member per rule of its grammar, in that order: `plain` makes a value of the children of the rule,
`placed` a node with its place, `clause` a clause; a method does what takes more. What the grammar lets through although
no tree can hold it (an index called `b[idx]`, half a microsecond) is refused here as a syntax error.
"""

# ruff: noqa: D102 - a method builds what the rule of its name reads

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from lark import Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, VisitError
from lark.tree import Meta

from tocsin.errors import Advice, QuerySyntaxError, TextTooLongError, nearest
from tocsin.language import ast, durations
from tocsin.language import expressions as ex
from tocsin.language.functions import AGGREGATES
from tocsin.language.grammars import MOST_NODES, grammar, is_larger, refuse_deep_nesting
from tocsin.language.messages import Habit, Situation, explain
from tocsin.language.user_defined import Monoids
from tocsin.source import Place, Source

T = TypeVar("T")

COMPARISONS = {"<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}


def plain(make: Callable[..., Any]) -> Any:
    """A member of a builder that makes a value of the children of its rule."""
    return lambda _builder, _meta, *children: make(*children)


def placed(make: Callable[..., Any]) -> Any:
    """A member of a builder that makes a node of the children of its rule, with its place in the text as `where`."""
    return lambda builder, meta, *children: make(*children, where=builder._place(meta))


def clause(title: str, field: str, make: Callable[..., Any]) -> Any:
    """A member of a builder that makes a clause; `make` as for `placed`."""

    def build(builder: ExpressionBuilder, meta: Meta, *children: Any) -> Clause:
        place = builder._place(meta)
        return Clause(title, field, make(*children, where=place), place)

    return build


@dataclass(frozen=True)
class Clause:
    """A clause on its way into the query: its name in the text, its field in the tree, its value."""

    title: str
    field: str
    value: Any
    where: Place


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


@v_args(meta=True, inline=True)
class ExpressionBuilder(Transformer[Token, Any]):
    """Builds expressions, bottom up. A language adds its rules, its grammar and what explains its mistakes."""

    _language: ClassVar[str]
    _start: ClassVar[str] = "query"
    _situation: ClassVar[type[Situation]]
    _habits: ClassVar[tuple[Habit, ...]]

    def __init__(self, source: Source, monoids: Monoids | None = None) -> None:
        super().__init__()
        self._source = source
        self._monoids = monoids or {}

    def _place(self, at: Meta | Token) -> Place:
        start, end = at.start_pos, at.end_pos
        assert start is not None
        assert end is not None
        return Place(self._source, start, end)

    def _mistake(self, at: Meta | Token, message: str, hint: str | Advice) -> QuerySyntaxError:
        return QuerySyntaxError(message, where=self._place(at), hint=hint)

    # --- conditions and values ---

    disjunction = placed(lambda *operands, where: ex.any_of(*without_tokens(operands), where=where))
    all = placed(lambda *operands, where: ex.all_of(*without_tokens(operands), where=where))
    inversion = placed(lambda _not, operand, where: ex.Not(operand, where=where))
    comparison = placed(
        lambda left, op, right, where: ex.Comparison(COMPARISONS.get(op, str(op)), left, right, where=where)
    )
    is_null = placed(lambda operand, no, _null, where: ex.IsNull(operand, no is not None, where=where))
    is_in = placed(lambda operand, no, *options, where: ex.In(operand, options, no is not None, where=where))
    is_between = placed(
        lambda operand, no, low, _and, high, where: ex.Between(operand, low, high, no is not None, where=where)
    )
    is_like = placed(lambda operand, no, text, where: ex.Like(operand, unquoted(text), no is not None, where=where))
    arithmetic = placed(lambda left, op, right, where: ex.Arithmetic(str(op), left, right, where=where))

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

    group = placed(lambda inner, where: replace(inner, where=where))

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

    when = plain(lambda condition, value: (condition, value))
    same_value = placed(lambda *names, where: ex.SameValue(tuple(map(unquoted_name, names)), where=where))

    # --- references and functions ---

    name = plain(unquoted_name)
    bare_name = placed(ex.Name)
    whole_variable = placed(ex.Variable)
    attribute = placed(ex.Attribute)
    indexed_attribute = placed(lambda name, index, path, where: ex.Attribute(name, path, index, where=where))
    next_attribute = placed(lambda _next, name, path, where: ex.Attribute(name, path, ex.Each.NEXT, where=where))
    path = plain(lambda *members: tuple(map(unquoted_name, members)))
    each = plain(lambda: ex.Each.PLAIN)

    def fixed(self, _meta: Meta, minus: Token | None, number: Token) -> ex.Index:
        value = self._integer(number)
        return ex.Fixed(-value if minus else value)

    def letter(self, _meta: Meta, word: Token) -> ex.Index:
        if word.lower() in {"first", "last"}:
            return ex.Edge(word.lower())
        return ex.Running(self._index_letter(word))

    def letter_and_offset(self, meta: Meta, word: Token, sign: Token, number: Token) -> ex.Index:
        if word.lower() in {"first", "last"}:
            raise self._mistake(
                meta,
                f"The index [{word}] takes no offset.",
                "use b[first], b[last], b[3], or a running index such as b[i-1].",
            )
        offset = self._integer(number)
        return ex.Running(self._index_letter(word), -offset if sign == "-" else offset)

    def _index_letter(self, word: Token) -> str:
        if len(word) > 1:
            near = nearest(word, ["first", "last"])
            raise self._mistake(
                word,
                f"An index is a number, a single letter, first or last, not `{word}`.",
                (f"did you mean {near}? " if near else "")
                + "b[3] is the third event; b[i] and b[i-1] are each event and the one before it.",
            )
        return str(word)

    def call(self, meta: Meta, name: Token, *arguments: ex.Expression | None) -> ex.Expression:
        function, place = name.lower(), self._place(meta)
        given = tuple(argument for argument in arguments if argument is not None)
        if not self._is_aggregate(function):
            return ex.Call(function, given, where=place)
        if len(given) != 1:
            raise self._mistake(
                meta,
                f"{function.upper()} takes one argument, not {len(given) or 'none'}.",
                f"write {function.upper()}(b.x){' or COUNT(*)' if function == 'count' else ''}.",
            )
        return ex.Aggregate(function, whole_variable(given[0]), monoid=self._monoids.get(function), where=place)

    def _is_aggregate(self, function: str) -> bool:
        return function in AGGREGATES or function in self._monoids

    def call_of_all(self, meta: Meta, name: Token, _star: Token) -> ex.Aggregate:
        if name.lower() != "count":
            raise self._mistake(
                meta,
                f"Only COUNT can be taken of `*`, not {name.upper()}.",
                f"name the attribute: {name.upper()}(b.x).",
            )
        return ex.Aggregate("count", None, where=self._place(meta))

    def call_of_distinct(self, meta: Meta, name: Token, argument: ex.Expression) -> ex.Aggregate:
        function = name.lower()
        if not self._is_aggregate(function):
            raise self._mistake(
                meta, f"DISTINCT belongs to aggregates, and {name} is none.", "write COUNT(DISTINCT b.x)."
            )
        place, monoid = self._place(meta), self._monoids.get(function)
        return ex.Aggregate(function, whole_variable(argument), True, monoid, where=place)

    # --- quantifiers, which patterns and rules have ---

    one_or_more = placed(lambda _plus, where: ast.Quantifier(1, None, where=where))

    def exactly(self, meta: Meta, number: Token) -> ast.Quantifier:
        return self.from_to(meta, number, number)

    def from_to(self, meta: Meta, least: Token, most: Token | None) -> ast.Quantifier:
        numbers = self._integer(least), None if most is None else self._integer(most)
        return ast.Quantifier(*numbers, where=self._place(meta))

    # --- literals ---

    def number(self, meta: Meta, token: Token) -> ex.Literal:
        value = self._integer(token) if token.isdecimal() else float(token)
        return ex.Literal(value, where=self._place(meta))

    string = placed(lambda token, where: ex.Literal(unquoted(token), where=where))
    true = placed(lambda _token, where: ex.Literal(True, where=where))
    false = placed(lambda _token, where: ex.Literal(False, where=where))
    null = placed(lambda _token, where: ex.Literal(None, where=where))

    def timestamp(self, meta: Meta, token: Token) -> ex.Timestamp:
        text = unquoted(token)
        try:
            if re.search(r"\.\d{7}", text):
                raise ValueError
            value = dt.datetime.fromisoformat(text)
            # The tree holds instants: always aware, always UTC.
            value = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
        except (ValueError, OverflowError):
            raise self._mistake(
                token,
                f"{token} is not a timestamp.",
                "write TIMESTAMP '2026-01-31 08:30:00', with up to six decimals and, "
                "unless it is UTC, an offset such as +02:00.",
            ) from None
        return ex.Timestamp(value, where=self._place(meta))

    def date(self, meta: Meta, token: Token) -> ex.Date:
        try:
            value = dt.date.fromisoformat(unquoted(token))
        except ValueError:
            raise self._mistake(token, f"{token} is not a date.", "write DATE '2026-01-31'.") from None
        return ex.Date(value, where=self._place(meta))

    def interval(self, meta: Meta, number: Token, unit: Token) -> ex.Interval:
        text = unquoted(number) if number.type == "STRING" else str(number)
        if not re.fullmatch(r"-?\d{1,30}(\.\d{1,30})?", text):
            raise self._mistake(
                number,
                f"{number} is not a number of {unit}.",
                "write a plain number: 15 MINUTES, 1.5 HOURS, INTERVAL '15' MINUTE.",
            )
        microseconds = durations.to_microseconds(text, unit)
        if microseconds is None:
            raise self._mistake(
                meta,
                f"{text} {unit} is not a whole number of microseconds.",
                "Tocsin keeps time in whole microseconds; round the duration.",
            )
        return ex.Interval(microseconds, where=self._place(meta))

    duration = placed(
        lambda sign, interval, where: ex.Interval(
            -interval.microseconds if sign == "-" else interval.microseconds, where=where
        )
    )

    def _integer(self, token: Token) -> int:
        if len(token) > 38:
            raise self._mistake(token, "The number is too long.", "whole numbers have at most 38 digits.")
        return int(token)


@v_args(meta=True, inline=True)
class ClauseBuilder(ExpressionBuilder):
    """Builds the clauses around a pattern."""

    _tree: ClassVar[type[Any]]

    def query(self, meta: Meta, pattern: Any, *clauses: Clause) -> Any:
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
        values: dict[str, Any] = {field: clause.value for field, clause in first.items()}
        places = {field: clause.where for field, clause in first.items()}
        return self._tree(pattern, **values, places=places, source=self._source, where=self._place(meta))

    partition_by = clause("PARTITION BY", "partition_by", lambda *keys, where: keys)
    key = placed(lambda token, where: ast.Key(unquoted_name(token), where=where))
    within = clause(
        "WITHIN",
        "within",
        lambda size, slide=None, *, where: ast.Window(size.microseconds, slide and slide.microseconds, where=where),
    )
    returns = clause("RETURN", "returns", lambda *columns, where: columns)
    column = placed(lambda expression, alias, where: ast.Column(whole_variable(expression), alias, where=where))
    alias = plain(unquoted_name)
    group_by = clause("GROUP BY", "group_by", lambda *keys, where: keys)
    having = clause("HAVING", "having", lambda condition, where: condition)
    every = clause("EVERY", "every", lambda size, where: ast.Window(size.microseconds, where=where))


def read(builder: ExpressionBuilder, start: str, kind: type[T]) -> T:
    """The tree that a builder makes of its text, read as a rule of its grammar."""
    source = builder._source
    try:
        tree = grammar(builder._language, builder._start).parse(source.text, start=start)
    except UnexpectedInput:
        raise syntax_error(builder, start) from None
    refuse_deep_nesting(tree, source)
    try:
        made = builder.transform(tree)
    except VisitError as error:
        raise error.orig_exc from None
    assert isinstance(made, kind)
    return made


def syntax_error(builder: ExpressionBuilder, start: str) -> QuerySyntaxError:
    """The error of a text that the grammar does not accept."""
    situation = builder._situation.of(builder._source, grammar(builder._language, builder._start), start)
    return explain(situation, builder._habits)
