"""From a failed parse to a message: the first habit that recognises itself, else what was expected."""

from __future__ import annotations

from collections.abc import Callable

from lark import Lark

from tocsin.errors import QuerySyntaxError
from tocsin.language.sase.messages import characters, clauses, conditions, expected, pattern, windows
from tocsin.language.sase.messages.situation import Situation
from tocsin.source import Source

Habit = Callable[[Situation], QuerySyntaxError | None]

# Tried in this order: what is wrong whatever stands around it, then the parts of a query, then brackets,
# and last what only a word too many can explain.
HABITS: tuple[Habit, ...] = (
    *characters.HABITS,
    *pattern.HABITS,
    *windows.HABITS,
    *clauses.HABITS,
    *conditions.HABITS,
    *characters.BRACKETS,
    pattern.second_element,
    clauses.unknown_clause,
)


def syntax_error(source: Source, grammar: Lark, start: str = "query") -> QuerySyntaxError:
    """What is wrong with a text that the grammar does not accept as a query, or as another rule of it."""
    situation = Situation.of(source, grammar, start)
    for recognise in HABITS:
        error = recognise(situation)
        if error is not None:
            return error
    return expected.unexpected(situation)
