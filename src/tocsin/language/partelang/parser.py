"""PARTElang text to syntax tree, by the rules of grammar.lark; types and the meaning of a rule are not known here."""

# ruff: noqa: D102 - a method builds what the rule of its name reads

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from tocsin import errors
from tocsin.errors import did_you_mean
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.ast import Quantifier, Selection
from tocsin.language.grammars import LONGEST_TEXT, source_of
from tocsin.language.partelang import ast
from tocsin.language.partelang.habits import HABITS, Situation, without_comments
from tocsin.language.tree_builders import ExpressionBuilder, placed, plain, read, syntax_error, unquoted_name
from tocsin.source import Place, Source, Where

POLICIES = (Selection.ANY, Selection.NEXT, Selection.CONTIGUOUS)


@dataclass(frozen=True)
class Ident:
    """A name on its way into the tree."""

    name: str
    where: Place


def present(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The items that are there: None stands for what the text leaves out."""
    return tuple(item for item in items if item is not None)


@v_args(meta=True, inline=True)
class ProgramBuilder(ExpressionBuilder):
    """Builds programs, bottom up."""

    _language, _start, _situation, _habits = "partelang", "program", Situation, HABITS

    def program(self, meta: Meta, *declarations: ast.Declaration) -> ast.Program:
        whole = Place(self._source, 0, len(self._source.text)) if meta.empty else self._place(meta)
        return ast.Program(declarations, source=self._source, where=whole)

    def ident(self, meta: Meta, token: Token) -> Ident:
        return Ident(unquoted_name(token), self._place(meta))

    # --- declarations ---

    use = plain(lambda module: ast.Use(module.name, where=module.where))
    template = plain(lambda name, *slots: ast.Template(name.name, present(slots), where=name.where))

    def slot(self, _meta: Meta, name: Token, kind: ast.TypeName) -> ast.Slot:
        return ast.Slot(unquoted_name(name), kind, where=self._place(name))

    plain_type = placed(lambda name, where: ast.TypeName(unquoted_name(name), where=where))

    def array_type(self, meta: Meta, name: Token, length: Token) -> ast.TypeName:
        return ast.TypeName(unquoted_name(name), self._integer(length), where=self._place(meta))

    def definition(self, _meta: Meta, name: Ident, *rest: Any) -> ast.Definition:
        *given, reference, conditions = rest if isinstance(rest[-1], tuple) else (*rest, ())
        parameters = tuple(given[0]) if given else ()
        return ast.Definition(name.name, parameters, reference, conditions, where=name.where)

    parameters = plain(lambda *names: [*names])
    parameter = plain(lambda name: ast.Parameter(name.name, where=name.where))
    rule = placed(
        lambda name, patterns, *clauses, where: ast.Rule(
            name.name, patterns, **dict(clauses), where=where, name_where=name.where
        )
    )

    # --- patterns ---

    patterns = plain(lambda *patterns: patterns)

    def pattern(
        self,
        meta: Meta,
        prefix: Token | None,
        variable: Ident,
        reference: ast.Reference,
        quantifier: Quantifier | None,
        conditions: tuple[ex.Expression, ...] = (),
    ) -> ast.Pattern:
        sort = ast.Sort(str(prefix or ""))
        place = self._place(meta)
        return ast.Pattern(
            variable.name, reference, conditions, sort, quantifier, where=place, name_where=variable.where
        )

    kind = plain(lambda name, *arguments: ast.Reference(name.name, present(arguments), where=name.where))
    block = plain(lambda *conditions: present(conditions))

    # --- constraints ---

    constraints = plain(lambda *constraints: ("constraints", constraints))

    def distance(
        self, meta: Meta, prefix: Token | None, variable: Ident, anchor: Ident, least: ex.Interval, most: ex.Interval
    ) -> ast.Distance:
        ends, sort = (least.microseconds, most.microseconds), ast.Sort(str(prefix or ""))
        return ast.Distance(variable.name, anchor.name, *ends, sort, where=self._place(meta))

    distinct = placed(lambda *names, where: ast.Distinct(tuple(each.name for each in names), where=where))
    unordered = placed(lambda *names, where: ast.Unordered(tuple(each.name for each in names), where=where))

    def select(self, _meta: Meta, policy: Token) -> tuple[str, Selection]:
        known = {each.value: each for each in POLICIES}
        if policy not in known:
            raise self._mistake(policy, f"There is no selection `{policy}`.", did_you_mean(policy, known, "selections"))
        return "selection", known[str(policy)]

    # --- reactions ---

    reactions = plain(lambda *reactions: ("reactions", reactions))
    do = placed(ast.Reaction)
    emission = placed(
        lambda name, at, *values, where: ast.Emission(
            name.name, at, present(values), where=where, name_where=name.where
        )
    )

    def assignment(self, _meta: Meta, name: Token, value: ex.Expression) -> ast.Assignment:
        return ast.Assignment(unquoted_name(name), value, where=self._place(name))

    # --- calls: what a name stands for is known when the program is analysed ---

    call = placed(lambda name, *arguments, where: rx.Invoke(str(name), present(arguments), where=where))
    call_of_distinct = placed(lambda name, argument, where: rx.Invoke(str(name), (argument,), True, where=where))

    def call_of_all(self, meta: Meta, name: Token, _star: Token) -> Any:
        raise self._mistake(
            meta,
            f"`{name}(*)` would count matches, and a condition speaks of one.",
            "count the events of a variable: `count(outgoing)`.",
        )


# Where a declaration begins, as far as can be told from a text that is not a program.
DECLARATION = re.compile(r"^[ \t]*(?:template|rule|pattern|use)\b", re.MULTILINE)


def parse(text: str, name: str = "<rules>", *, max_text: int = LONGEST_TEXT) -> ast.Program:
    """The syntax tree of a program.

    `name` stands for the text in messages.

    Raises `TextTooLongError` when the text has more than `max_text` characters. Raises `QuerySyntaxError` when the text
    is not a program; it shows the place and what was expected there. Raises `QueryErrors` when several of its
    declarations are wrong: each with its first error.

    >>> program = parse("template A { x : Integer } rule R where a : A { x > 5 } when then")
    >>> program.rules[0].patterns[0].variable
    'a'
    """
    source = source_of(text, name, max_text)
    try:
        return _program(source)
    except errors.QuerySyntaxError as first:
        found = _problems(source)
        errors.raise_all(found if len(found) > 1 else [first])
        raise


def _program(source: Source) -> ast.Program:
    builder = ProgramBuilder(source)
    program = read(builder, "program", ast.Program)
    if not program.declarations:
        raise syntax_error(builder, "program")
    return program


def _problems(source: Source) -> list[errors.QuerySyntaxError]:
    """The first error of each declaration, at its place in the whole text."""
    text, found = source.text, []
    starts = [declaration.start() for declaration in DECLARATION.finditer(without_comments(text))]
    for start, end in pairwise([*starts, len(text)]):
        try:
            _program(Source(text[start:end].rstrip(), source.name))
        except errors.QuerySyntaxError as error:
            error.where = _moved(error.where, source, start)
            if error.also is not None:
                error.also = (error.also[0], _moved(error.also[1], source, start))
            found.append(error)
    return found


def _moved(place: Where, whole: Source, start: int) -> Where:
    return Place(whole, place.start + start, place.end + start) if isinstance(place, Place) else place
