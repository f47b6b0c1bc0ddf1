"""From a failed parse to a message: the first habit that recognises itself, else what was expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Lark

from tocsin.errors import QuerySyntaxError
from tocsin.language.partelang.messages import habits
from tocsin.language.partelang.messages.situation import Situation
from tocsin.language.sase.messages import characters, conditions, expected
from tocsin.source import Source

# Of the habits that SASE+ knows, those that speak of what both languages have.
SPELLING = (
    characters.unclosed_comment,
    characters.unclosed_string,
    characters.unclosed_name,
    characters.curly_quotes,
)
VALUES = tuple(habit for habit in conditions.HABITS if habit not in (conditions.braces, conditions.subquery))
BRACKETS = (characters.stray_closing_bracket,)

HABITS: tuple[Callable[[Any], QuerySyntaxError | None], ...] = (
    *SPELLING,
    *habits.HABITS,
    characters.foreign_sign,
    *VALUES,
    *BRACKETS,
)


def syntax_error(source: Source, grammar: Lark) -> QuerySyntaxError:
    """What is wrong with a text that the grammar does not accept."""
    situation = Situation.of(source, grammar, "program")
    for recognise in HABITS:
        error = recognise(situation)
        if error is not None:
            return error
    return unexpected(situation)


def unexpected(s: Situation) -> QuerySyntaxError:
    """Expected this, but found that."""
    behind = s.before()
    after = f" after `{behind.text}`" if behind is not None and behind.kind in {"word", "sign", "number"} else ""
    return s.error(f"Expected {expected.one_of(_phrases(s))}{after}, {s.but_found}.")


def _phrases(s: Situation) -> list[str]:
    """What could stand here."""
    if s.expects_value:
        return ["a value" if s.clause == "then" else "a condition"]
    if s.expects_operator:
        closing = {"{": ["`,`", "`}`"], "(": ["`,`", "`)`"]}
        return ["an operator", *(closing.get(s.unclosed[-1].text, []) if s.unclosed else ["`with`"])]
    phrases = []
    if s.expects_pattern:
        phrases.append("a pattern such as `b : B { x > 5 }`")
    if s.expects_constraint:
        phrases.append("a distance such as `b in a [0 seconds, 10 seconds]`")
    if s.expects_reaction:
        phrases.append("`emit`")
    phrases += [f"`{word}`" for word in ("where", "when", "then") if f"_{word.upper()}" in s.accepts]
    if s.expects_declaration:
        phrases.append("a declaration")
    if phrases:
        return phrases
    if s.accepts & {"IDENT", "WORD", "NAME"}:
        phrases = ["a name"]
    signs = {expected.SIGNS.get(name, f"`{name.strip('_').lower()}`") for name in s.accepts - {"$END"}}
    return phrases + sorted(signs)
