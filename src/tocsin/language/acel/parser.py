"""ACEL text to syntax tree, by the rules of grammar.lark; schemas and the meaning of a formula are not known here."""

# ruff: noqa: D102 - a method builds what the rule of its name reads

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from tocsin.errors import QuerySyntaxError
from tocsin.language import expressions as ex
from tocsin.language.acel import ast
from tocsin.language.acel.habits import HABITS, Situation
from tocsin.language.functions import AGGREGATES
from tocsin.language.grammars import LONGEST_TEXT, first_below, nested_too_deep, source_of
from tocsin.language.tree_builders import ClauseBuilder, placed, plain, read, unquoted_name, without_tokens
from tocsin.language.user_defined import Monoids
from tocsin.source import Place

BAG_PREDICATES = {order.value: order for order in ex.BagOrder}


def suffix(make: Callable[..., Any]) -> Any:
    """The member of a builder for what follows a formula: what makes a node of it, and where it ends."""
    return placed(lambda *children, where: (make(*children), where))


@v_args(meta=True, inline=True)
class FormulaBuilder(ClauseBuilder):
    """Builds formulas, bottom up."""

    _language, _situation, _habits, _tree = "acel", Situation, HABITS, ast.Query

    # --- formula ---

    def filter(self, meta: Meta, part: ast.Formula, *conditions: ex.Expression) -> ast.Formula:
        for condition in conditions:
            part = ast.Filter(part, condition, where=self._until(meta, condition.where))
        return part

    any = placed(lambda *parts, where: ast.joined(ast.Any, *without_tokens(parts), where=where))
    intersection = placed(lambda *parts, where: ast.joined(ast.Both, *without_tokens(parts), where=where))

    def steps(self, meta: Meta, first: ast.Formula, *rest: Any) -> ast.Formula:
        found = first
        for sign, part in zip(rest[::2], rest[1::2], strict=True):
            place = self._until(meta, part.where)
            if sign.type == "SEMICOLON":
                found = ast.joined(ast.Sequence, found, part, where=place)
            else:
                found = ast.joined(ast.Adjacent, found, part, where=place)
        return found

    def suffixes(
        self, meta: Meta, part: ast.Formula, *suffixes: tuple[Callable[..., ast.Formula], Place]
    ) -> ast.Formula:
        for make, place in suffixes:
            part = make(part, where=self._until(meta, place))
        return part

    one_or_more = suffix(lambda _plus: ast.Repeat)
    one_or_more_adjacent = suffix(lambda _sign: ast.RepeatAdjacent)
    named = suffix(lambda variable: lambda part, where: ast.Bind(part, variable, where=where))
    event = placed(ast.Event)
    next_of = placed(lambda _next, kind, where: ast.NextOf(kind, where=where))
    project = placed(lambda *children, where: ast.Project(children[-1], children[:-1], where=where))
    kept = placed(lambda name, *attributes, where: ast.Kept(name, tuple(filter(None, attributes)) or None, where=where))
    aggregation = placed(lambda name, *children, where: ast.Derive(children[-1], name, children[:-1], where=where))

    def fold(
        self,
        meta: Meta,
        name: str,
        function: Token,
        distinct: Token | None,
        variable: str,
        path: tuple[str, ...] | None,
    ) -> ast.Fold:
        lower, place = function.lower(), self._place(meta)
        monoid = None if lower in AGGREGATES else self._monoids.get(lower)
        return ast.Fold(name, lower, variable, path or (), distinct is not None, monoid, where=place)

    attribute_name = plain(unquoted_name)
    variable = plain(unquoted_name)

    def _until(self, meta: Meta, last: Any) -> Place:
        """From the first sign of a rule to the end of one of its parts."""
        whole = self._place(meta)
        return Place(self._source, whole.start, last.end if isinstance(last, Place) else whole.end)

    # --- conditions ---

    def predicate_of(self, meta: Meta, variable: str, predicate: ex.Expression) -> ex.Expression:
        """`x[p AND same(a)]`: bag predicates stand by themselves, all else holds for every event."""
        place = self._place(meta)
        bags: list[ex.Expression] = []
        others: list[ex.Expression] = []
        for conjunct in ex.conjuncts(predicate):
            bag = _bag_predicate(variable, conjunct)
            (others if bag is None else bags).append(conjunct if bag is None else bag)
        if others:
            inner = ex.all_of(*(self._of_events(variable, each) for each in others), where=predicate.where)
            bags.append(ex.Every(variable, inner, where=place))
        return ex.all_of(*bags, where=place)

    def _of_events(self, variable: str, predicate: ex.Expression) -> ex.Expression:
        """The predicate with its bare names as attributes of the variable."""
        for node in predicate.walk():
            if isinstance(node, ex.Aggregate):
                raise QuerySyntaxError(
                    f"`{node.function}` cannot stand in a predicate, which speaks of one event at a time.",
                    where=node.where,
                    hint=f"aggregate first, then filter: AGG y[total <- sum({variable}.price)](…) FILTER "
                    "y[total > 100].",
                )
            if isinstance(node, ex.Variable) or (isinstance(node, ex.Attribute) and node.index is not ex.Each.PLAIN):
                raise QuerySyntaxError(
                    "A predicate speaks of one event at a time, without index and NEXT.",
                    where=node.where,
                    hint=f"name attributes: {variable}[price > 100]; neighbours are compared by "
                    f"{variable}[increasing(price)].",
                )

        def bound(node: ex.Expression) -> ex.Expression:
            path = _path(node)
            return node if path is None else ex.Attribute(variable, path, where=node.where)

        return predicate.transform(bound)


def _path(node: ex.Expression) -> tuple[str, ...] | None:
    """The attribute that a name in brackets stands for: in `x[a.b > 5]` it is `a.b` of x."""
    match node:
        case ex.Name(name):
            return (name,)
        case ex.Attribute(first, path, ex.Each.PLAIN):
            return (first, *path)
        case _:
            return None


def _bag_predicate(variable: str, conjunct: ex.Expression) -> ex.BagPredicate | None:
    match conjunct:
        case ex.Call(function, (argument,)) if function in BAG_PREDICATES and (path := _path(argument)) is not None:
            return ex.BagPredicate(BAG_PREDICATES[function], variable, path, where=conjunct.where)
        case _:
            return None


def parse(
    text: str, name: str = "<pattern>", monoids: Monoids | None = None, *, max_text: int = LONGEST_TEXT
) -> ast.Query:
    """The syntax tree of an ACEL formula with its clauses.

    `name` stands for the text in messages; `monoids` are user-defined aggregates by name in lower case.

    >>> parse("SELL AS s ; BUY+").formula
    Sequence(parts=(Bind(part=Event(type='SELL'), variable='s'), Repeat(part=Event(type='BUY'))))
    """
    query = read(FormulaBuilder(source_of(text, name, max_text), monoids), "query", ast.Query)
    # Signs in a row, `A+@+@+…`, nest a formula without any bracket.
    deep = first_below([query.formula], ast.Formula.children)
    if deep is not None:
        assert isinstance(deep.where, Place)
        raise nested_too_deep(deep.where)
    return query
