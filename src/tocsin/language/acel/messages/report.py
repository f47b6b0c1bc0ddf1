"""From a failed parse to a message: the first habit that recognises itself, else what was expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Lark

from tocsin.errors import QuerySyntaxError, nearest
from tocsin.language.acel.messages import conditions, formulas
from tocsin.language.acel.messages.situation import CLAUSES, EXAMPLE, Situation
from tocsin.language.sase.messages import characters, clauses, expected, windows
from tocsin.language.sase.messages import conditions as values
from tocsin.source import Source

# Of the habits that SASE+ knows, those that speak of what both languages have.
SPELLING = (
    characters.unclosed_comment,
    characters.unclosed_string,
    characters.unclosed_name,
    characters.curly_quotes,
)
VALUES = tuple(habit for habit in values.HABITS if habit not in (values.index, values.braces, values.subquery))
CLAUSE_HABITS = (
    clauses.nothing_in_clause,
    clauses.by_left_out,
    clauses.qualified_key,
    clauses.keyword_for_name,
    clauses.distinct_rows,
    clauses.everything,
    clauses.no_alias_word,
)
BRACKETS = (characters.comma_too_many, characters.stray_closing_bracket, characters.comma_between_conditions)

HABITS: tuple[Callable[[Any], QuerySyntaxError | None], ...] = (
    *SPELLING,
    *formulas.HABITS,
    *conditions.HABITS,
    characters.foreign_sign,
    *windows.HABITS,
    *CLAUSE_HABITS,
    *VALUES,
    *BRACKETS,
)


def syntax_error(source: Source, grammar: Lark) -> QuerySyntaxError:
    """What is wrong with a text that the grammar does not accept."""
    situation = Situation.of(source, grammar, "query")
    for recognise in HABITS:
        error = recognise(situation)
        if error is not None:
            return error
    return unexpected(situation)


def unexpected(s: Situation) -> QuerySyntaxError:
    """Expected this, but found that."""
    words = ["FILTER", "OR", "AND", "AS", *CLAUSES] if s.expects_suffix or s.expects_clause or s.ends_atom else []
    near = nearest(s.found.text, words) if s.found.kind == "word" else None
    behind = s.before()
    after = f" after `{behind.text}`" if behind is not None and behind.kind in {"word", "sign", "number"} else ""
    hint = f"did you mean {near}?" if near else f"a formula looks like this: {EXAMPLE}"
    return s.error(f"Expected {expected.one_of(_phrases(s))}{after}, {s.but_found}.", hint)


def _phrases(s: Situation) -> list[str]:
    """What could stand here."""
    if s.expects_element:
        return ["an event type", "`(`", "PROJECT[…](…)", "AGG y[…](…)", "NEXT(…)"]
    if s.expects_suffix:
        return ["an operator (; : OR AND + @+ AS FILTER)", *_ends(s)]
    if s.expects_atom:
        return ["a condition such as x[price > 100]"]
    if s.ends_atom:
        return ["AND", "OR", "FILTER", *_ends(s)]
    if s.expects_value:
        return ["a value"]
    if s.expects_operator:
        return ["an operator", *_ends(s)]
    if "_INTERVAL" in s.accepts:
        return ["a duration such as 15 MINUTES"]
    if s.accepts & {"VARIABLE", "NAME", "WORD"}:
        return ["a name"]
    if s.expects_clause:
        return _ends(s)
    return sorted({expected.SIGNS.get(name, name.strip("_")) for name in s.accepts - {"$END"}})


def _ends(s: Situation) -> list[str]:
    ends = ["`)`"] if s.unclosed and s.unclosed[-1].text == "(" else []
    if s.unclosed and s.unclosed[-1].text == "[":
        ends = ["`]`"]
    if not s.unclosed and s.expects_clause:
        ends = ["a clause such as WITHIN", "the end of the query"]
    return ends
