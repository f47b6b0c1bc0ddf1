"""The words of the language by the places that reserve them, for the printer and for messages.

grammar.lark is the definition; a test holds these sets to it.
"""

from __future__ import annotations

import re

# No event type is called so without backquotes.
RESERVED_TYPES = ("SEQ", "AND", "OR", "NOT")

# The first words of clauses; no variable is named so without backquotes.
CLAUSES = (
    "PARTITION",
    "WHERE",
    "WITHIN",
    "SEMANTICS",
    "AFTER",
    "OUTPUT",
    "RETURN",
    "GROUP",
    "HAVING",
    "EVERY",
    "WITH",
)

# No name in a condition is written so without backquotes, unless a dot follows.
RESERVED_IN_CONDITIONS = (
    *CLAUSES,
    "PATTERN",
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "LIKE",
    "IS",
    "AS",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "NULL",
    "TRUE",
    "FALSE",
    "DISTINCT",
)

_WORD = re.compile(r"[^\W\d]\w*")


def any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """Any of some words, in any case."""
    # The grammar compares with the same flag, which for letters outside ASCII is not the same as casefolding.
    return re.compile("|".join(words), re.IGNORECASE)


AS_TYPE = any_of(RESERVED_TYPES)
AS_VARIABLE = any_of(CLAUSES)
IN_CONDITION = any_of(RESERVED_IN_CONDITIONS)


def quoted(name: str, reserved: re.Pattern[str] | None = None) -> str:
    """A name as it must be written, in backquotes where it is no plain word or a reserved one.

    >>> quoted("PM2.5"), quoted("user"), quoted("seq", AS_TYPE)
    ('`PM2.5`', 'user', '`seq`')
    """
    plain = _WORD.fullmatch(name) and not (reserved and reserved.fullmatch(name))
    return name if plain else "`" + name.replace("`", "``") + "`"
