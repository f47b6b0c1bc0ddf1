"""Where and how the reading of a program stopped."""

from __future__ import annotations

import re
from functools import cached_property

from tocsin.language.sase.messages import situation
from tocsin.language.sase.messages.situation import Piece, pieces_of

EXAMPLE = "rule R where a : A { x > 5 } b : B { x = a.x } when b in a [0 seconds, 10 seconds] then"
DECLARATIONS = ("template", "rule", "pattern", "use")
# The clauses of a rule, in their order.
CLAUSES = ("where", "when", "select", "then")

_STRING = r"(?:'[^']*')++|(?:\"[^\"]*\")++"
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|`[^`\n]*`|--[^\n]*|#[^\n]*|/\*(?s:.*?)(?:\*/|\Z)")
_STRING_OR_HASH = re.compile(rf"({_STRING}|--[^\n]*)|#[^\n]*")


def without_comments(text: str) -> str:
    """The text with blanks for its comments and strings; every place stays where it is."""
    return _STRING_OR_COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


class Situation(situation.Situation):
    """The state of affairs at the first thing that cannot be read."""

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """All of the text, cut up without regard to the grammar."""
        text = _STRING_OR_HASH.sub(lambda found: found[1] or " " * len(found.group()), self.source.text)
        return tuple(pieces_of(text))

    @cached_property
    def clause(self) -> str:
        """The clause reading stopped in: `where`, `when`, `then`, `template`, …; empty at the top."""
        words = {f"_{word.upper()}": word for word in (*CLAUSES, *DECLARATIONS)}
        return next((words[token.type] for token in reversed(self.tokens) if token.type in words), "")

    @property
    def expects_pattern(self) -> bool:
        """Whether a pattern could begin here."""
        return "NO" in self.accepts and self.clause == "where" and not self.unclosed

    @property
    def expects_constraint(self) -> bool:
        """Whether a constraint could begin here."""
        return "_UNORDERED" in self.accepts

    @property
    def expects_reaction(self) -> bool:
        """Whether a reaction could begin here."""
        return "_EMIT" in self.accepts

    @property
    def expects_declaration(self) -> bool:
        """Whether a declaration could begin here."""
        return "_TEMPLATE" in self.accepts

    @property
    def expects_operator(self) -> bool:
        """Whether a value is complete here."""
        return "SLASH" in self.accepts

    @property
    def found_clause(self) -> bool:
        """Whether a clause or declaration begins here, or the text ends, instead of what was expected."""
        return self.found.kind == "end" or self.found.text in (*CLAUSES, *DECLARATIONS, "emit")

    @property
    def but_found(self) -> str:
        """The end of a sentence that begins with what was expected."""
        return "but the text ends here" if self.found.kind == "end" else f"but found {self.found.describe()}"

    @property
    def last_type(self) -> str:
        """The grammar's name of the last token read; empty at the beginning."""
        return self.last.type if self.last is not None else ""
