"""The words of SASE+ by the places that reserve them, and what may be expected where reading stops.

grammar.lark is the definition; a test holds these sets to it.
"""

from __future__ import annotations

import re

from tocsin.errors import nearest
from tocsin.language import messages
from tocsin.language.ast import Selection
from tocsin.language.messages import SIGNS

# No event type is called so without backquotes.
RESERVED_TYPES = ("SEQ", "AND", "OR", "NOT")

# The first words of clauses; no variable is named so without backquotes.
CLAUSES = (
    "PARTITION", "WHERE", "WITHIN", "SEMANTICS", "AFTER", "OUTPUT", "RETURN", "GROUP", "HAVING", "EVERY", "WITH",
)  # fmt: skip

# No name in a condition is written so without backquotes, unless a dot follows.
RESERVED_IN_CONDITIONS = (
    *CLAUSES, "PATTERN", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "AS", "CASE", "WHEN", "THEN", "ELSE", "END",
    "NULL", "TRUE", "FALSE", "DISTINCT",
)  # fmt: skip

# No event type and no variable of a formula of ACEL is called so without backquotes.
RESERVED_IN_FORMULAS = (
    "AGG", "AND", "AS", "EVERY", "FILTER", "GROUP", "HAVING", "NOT", "OR", "PARTITION", "PATTERN", "PROJECT", "RETURN",
    "WITHIN",
)  # fmt: skip


def any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """Any of some words, in any case."""
    # The grammar compares with the same flag, which for letters outside ASCII is not the same as casefolding.
    return re.compile("|".join(words), re.IGNORECASE)


AS_TYPE = any_of(RESERVED_TYPES)
AS_VARIABLE = any_of(CLAUSES)
IN_CONDITION = any_of(RESERVED_IN_CONDITIONS)
IN_FORMULA = any_of(RESERVED_IN_FORMULAS)


# --- what may be expected -------------------------------------------------------------------------

_VALUES = {
    "NAME", "QUOTED", "NUMBER", "STRING", "TRUE", "FALSE", "NULL", "_TIMESTAMP", "_DATE", "_INTERVAL", "NEXT", "_CASE",
    "LSQB", "LPAR", "MINUS", "NOT", "_DISTINCT", "STAR",
}  # fmt: skip
# Operators, and what may continue a value that is complete without it: not worth a mention beside them.
_OPERATORS = {
    "PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "CONCAT", "COMPARISON", "AND", "OR", "NOT", "_IS", "_IN", "_BETWEEN",
    "_LIKE", "DOT", "LSQB", "LPAR", "UNIT",
}  # fmt: skip
# Terminals of policies, as they are written.
_POLICIES = {
    "ANY_MATCH": "any", "NEXT_MATCH": "next", "CONTIGUOUS": "contiguous",
    "PARTITION_CONTIGUOUS": "partition-contiguous",
    "ALL": "all", "FIRST": "first", "LAST": "last", "LONGEST": "longest", "COUNT": "count",
}  # fmt: skip
SELECTIONS = {
    "any": Selection.ANY,
    "skip-till-any-match": Selection.ANY,
    "next": Selection.NEXT,
    "skip-till-next-match": Selection.NEXT,
    "contiguous": Selection.CONTIGUOUS,
    "strict-contiguity": Selection.CONTIGUOUS,
    "partition-contiguous": Selection.PARTITION_CONTIGUOUS,
    "partition-contiguity": Selection.PARTITION_CONTIGUOUS,
}
# What a name is, by the token before it.
_NAMES = {
    "DOT": "the name of an attribute",
    "_AS": "the name of a column",
    "FIRST": "the name of a variable",
    "LAST": "the name of a variable",
    "_BY": "the name of an attribute",
    "LSQB": "the name of an attribute",
}


class Situation(messages.Situation):
    """The place in a query of SASE+ that cannot be read."""

    clauses = CLAUSES
    expectations = messages.Situation.expectations | {"element": "SEQ", "clause": "_WHERE"}

    def expects(self, name: str) -> bool:
        """Whether a terminal is accepted here, or a part of a query; an operator also inside an index."""
        if name == "operator":
            return "PLUS" in self.accepts and self.clause != "PATTERN"
        return super().expects(name)

    @property
    def is_type(self) -> bool:
        """Whether the last token was read as an event type, not as a variable."""
        return self.was_type(len(self.tokens) - 1)

    def was_type(self, number: int) -> bool:
        """Whether the token of this number was read as an event type, not as a variable."""
        if number <= 0 or self.tokens[number].type not in {"WORD", "QUOTED"}:
            return False
        return self.tokens[number - 1].type in {"_PATTERN", "COMMA", "LPAR", "NOT"}

    @property
    def keywords(self) -> list[str]:
        """The keywords that could stand here, as they are usually written."""
        words = [word for name in self.accepts if (word := _as_written(name)).isalpha()]
        is_policy = any(name.endswith(("_MATCH", "CONTIGUOUS")) for name in self.accepts)
        return [*words, *SELECTIONS] if is_policy else words

    @property
    def expected(self) -> list[str]:
        """Everything that could stand here, as phrases."""
        left, phrases = set(self.accepts), []
        if self.expects("value"):
            needs_condition = self.last_type in {"", "_WHERE", "_HAVING", "AND", "OR", "NOT", "_WHEN"}
            phrases.append("a condition" if needs_condition else "a value")
            left -= _VALUES
        elif self.expects("element"):
            phrases.append("an event type, SEQ(…), AND(…), OR(…) or NOT")
            left -= {"SEQ", "AND", "OR", "NOT", "WORD", "QUOTED", "LPAR"}
        elif "_INTERVAL" in left:
            phrases.append("a duration such as 15 MINUTES")
            left -= {"NUMBER", "_INTERVAL", "MINUS", "LPAR"}
        elif left & {"WORD", "NAME"}:
            is_index = self.last_type == "LSQB" and "INT" in left
            phrases.append("a letter, first or last" if is_index else _NAMES.get(self.last_type, "a name"))
            left -= {"WORD", "NAME", "QUOTED"}
        if self.expects("operator"):
            phrases.append("an operator")
            left -= _OPERATORS
        clauses = left & {f"_{word}" for word in CLAUSES}
        if clauses:
            # Nobody who ends an element here meant to go on with it.
            left -= {"LSQB", "LBRACE", "PLUS", "STAR", "QMARK", "WORD", "QUOTED"}
        ends = left & {"$END", "SEMICOLON"}
        phrases += sorted(_as_written(name) for name in left - clauses - ends)
        phrases += ["a clause such as WHERE or WITHIN"] if clauses else []
        return phrases + (["the end of the query"] if ends else [])

    @property
    def advice(self) -> str | None:
        """The hint where no habit fits."""
        near = nearest(self.found.text, self.keywords) if self.found.kind == "word" else None
        if near:
            return f"did you mean {near}?"
        if self.found.kind == "string" and self.accepts & {"WORD", "NAME"}:
            return f"a name is not a string; write `{self.found.content}`, in backquotes unless it is a plain word."
        return None


def _as_written(terminal: str) -> str:
    return _POLICIES.get(terminal) or SIGNS.get(terminal) or terminal.strip("_")
