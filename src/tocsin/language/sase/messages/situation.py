"""Where and how reading stopped: the words around the place, and what could have stood there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from lark import Lark, Token
from lark.exceptions import UnexpectedInput

from tocsin.errors import QuerySyntaxError
from tocsin.language.sase.words import CLAUSES
from tocsin.source import Place, Source, Where

# Kinds of pieces, in the order they are tried. Unlike the grammar this reads anything. Each takes linear time and
# constant memory: no choice inside a repetition that could be taken back.
_PIECE = re.compile(
    r"""
      (?P<blank> [\s\ufeff]+ | --[^\n]* | /\*.*?\*/ )
    | (?P<unclosed_comment> /\*.* )
    | (?P<string> (?:'[^']*')++ )
    | (?P<unclosed_string> '[^\n]* )
    | (?P<quoted> `(?:[^`\n]++|``)++` )
    | (?P<unclosed_backquote> `[^\n]* )
    | (?P<double_quoted> "[^"\n]*"? )
    | (?P<curly_quote> [\u2018-\u201f«»] )
    | (?P<number> \d+(?:\.\d+)?(?:[eE][+-]?\d+)? )
    | (?P<word> [^\W\d]\w* )
    | (?P<sign> <=> | [=!]== | [=<>!:]= | => | =< | <> | -> | && | \|\| | \.\.+ | :: | // | . )
    """,
    re.VERBOSE | re.DOTALL,
)

OPENING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Piece:
    """A word, number, string or sign of the text, or its end."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """The text in upper case if it is a word, to compare it with keywords; else empty."""
        return self.text.upper() if self.kind == "word" else ""

    def describe(self) -> str:
        """How a message speaks of it."""
        match self.kind:
            case "end":
                return "the end of the query"
            case "string":
                return f"the string {self.text}"
            case "quoted":
                return f"the name {self.text}"
            case "unclosed_backquote":
                return "a backquote"
            case _:
                return f"`{self.text}`"


def pieces_of(text: str) -> Iterator[Piece]:
    """The text cut into pieces; blanks and comments left out, the end of the text last."""
    last = 0
    for match in _PIECE.finditer(text):
        kind = match.lastgroup or "sign"
        if kind != "blank":
            yield Piece(kind, match.group(), match.start(), match.end())
            last = match.end()
    yield Piece("end", "", last, last)


@dataclass(frozen=True)
class Situation:
    """The state of affairs at the first thing that cannot be read."""

    source: Source
    # What was to be read: a query or an expression.
    start: str
    # What was read without objection, with the grammar's names for it.
    tokens: tuple[Token, ...]
    # What the grammar could read next.
    accepts: frozenset[str]

    @classmethod
    def of(cls, source: Source, grammar: Lark, start: str) -> Self:
        """Read the text again up to the place where it goes wrong."""
        tokens: list[Token] = []
        try:
            tokens.extend(grammar.parse_interactive(source.text, start=start).iter_parse())
        except UnexpectedInput as error:
            # A token in the wrong place has been handed out already, a character in the wrong place has not.
            if tokens and getattr(error, "token", None) is tokens[-1]:
                tokens.pop()
        # The parser may have drawn conclusions from the token it then refused: ask one that has not seen it.
        unspoilt = grammar.parse_interactive("", start=start)
        for token in tokens:
            unspoilt.feed_token(token)
        accepts = unspoilt.accepts()  # type: ignore[no-untyped-call]
        return cls(source, start, tuple(tokens), frozenset(accepts))

    # --- the text around the place ---

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """All of the text, cut up without regard to the grammar."""
        return tuple(pieces_of(self.source.text))

    @cached_property
    def _position(self) -> int:
        read = self.tokens[-1].end_pos or 0 if self.tokens else 0
        return next(number for number, piece in enumerate(self.pieces) if piece.end > read or piece.kind == "end")

    @property
    def found(self) -> Piece:
        """What cannot be read, whole: for `==` both signs, though the first alone could be."""
        return self.pieces[self._position]

    def after(self, steps: int = 1) -> Piece:
        """What follows it."""
        return self.pieces[min(self._position + steps, len(self.pieces) - 1)]

    def before(self, steps: int = 1) -> Piece | None:
        """What stands before it."""
        return self.pieces[self._position - steps] if self._position >= steps else None

    @cached_property
    def unclosed(self) -> tuple[Piece, ...]:
        """The brackets open at this place, outermost first."""
        stack: list[Piece] = []
        for piece in self.pieces[: self._position]:
            if piece.kind == "sign" and piece.text in OPENING:
                stack.append(piece)
            elif piece.kind == "sign" and stack and piece.text == OPENING[stack[-1].text]:
                stack.pop()
        return tuple(stack)

    def before_bracket(self, bracket: Piece) -> Piece | None:
        """The word a bracket belongs to, as SEQ in `SEQ(`."""
        at = self.pieces.index(bracket)
        if at and self.pieces[at - 1].kind == "word":
            return self.pieces[at - 1]
        return None

    # --- the grammar's view ---

    @property
    def last(self) -> Token | None:
        """The last token read."""
        return self.tokens[-1] if self.tokens else None

    def read(self, *types: str) -> bool:
        """Whether the last tokens read are of these types."""
        return len(self.tokens) >= len(types) and all(
            token.type == wanted
            for token, wanted in zip(self.tokens[len(self.tokens) - len(types) :], types, strict=True)
        )

    @cached_property
    def clause(self) -> str:
        """The clause reading stopped in: `WHERE`, `RETURN`, …, or `PATTERN`; empty before that."""
        words = {"_PATTERN", *("_" + word for word in CLAUSES)}
        return next((token.type[1:] for token in reversed(self.tokens) if token.type in words), "")

    @property
    def expects_element(self) -> bool:
        """Whether an event type or a composite pattern could stand here."""
        return "SEQ" in self.accepts

    @property
    def expects_value(self) -> bool:
        """Whether a value or condition could begin here."""
        return {"NUMBER", "STRING", "NAME"} <= self.accepts

    @property
    def expects_operator(self) -> bool:
        """Whether a value is complete here."""
        return "PLUS" in self.accepts and self.clause != "PATTERN"

    @property
    def expects_clause(self) -> bool:
        """Whether a clause is complete here and another could begin."""
        return "_WHERE" in self.accepts

    @property
    def found_clause(self) -> bool:
        """Whether a clause begins or the query ends here instead of what was expected."""
        if self.found.kind == "end":
            return True
        follows = self.after()
        match self.found.upper:
            case "GROUP" | "PARTITION":
                return follows.upper == "BY"
            case "AFTER":
                return follows.upper == "MATCH"
            case "WITH":
                return follows.upper.startswith("TIMEOUT")
            case word:
                return word in CLAUSES and (follows.kind != "sign" or follows.text in OPENING)

    # --- the answer ---

    @property
    def but_found(self) -> str:
        """The end of a sentence that begins with what was expected."""
        return "but the query ends here" if self.found.kind == "end" else f"but found {self.found.describe()}"

    def place(self, first: Piece | Token, last: Piece | Token | None = None) -> Place:
        """The place from one piece to another."""
        return Place(self.source, _start(first), _end(last or first))

    def written(self, first: Piece | Token, last: Piece | Token) -> str:
        """The text from one piece to another."""
        return self.source.text[_start(first) : _end(last)]

    def error(
        self,
        message: str,
        hint: str | None = None,
        *,
        at: Piece | Token | Place | None = None,
        also: tuple[str, Where] | None = None,
    ) -> QuerySyntaxError:
        """An error at what was found, or at another place."""
        where = at if isinstance(at, Place) else self.place(at or self.found)
        return QuerySyntaxError(message, where=where, hint=hint, also=also)


def _start(at: Piece | Token) -> int:
    return at.start if isinstance(at, Piece) else at.start_pos or 0


def _end(at: Piece | Token) -> int:
    return at.end if isinstance(at, Piece) else at.end_pos or 0
