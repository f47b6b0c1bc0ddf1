"""Where and how reading stopped: the pieces of the text around the place, and what could have stood there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from lark import Lark, Token
from lark.exceptions import UnexpectedInput

from tocsin.errors import QuerySyntaxError
from tocsin.source import Place, Source

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

CLOSING = {"(": ")", "[": "]", "{": "}"}
# Words that begin a clause only before another.
_SECOND_WORDS = {"GROUP": "BY", "PARTITION": "BY", "AFTER": "MATCH", "WITH": r"TIMEOUT\w*"}
# How messages write the terminals that are not words.
SIGNS = {
    "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`", "LBRACE": "`{`", "RBRACE": "`}`",
    "COMMA": "`,`", "DOT": "`.`", "SEMICOLON": "`;`", "QMARK": "`?`", "PLUS": "`+`", "MINUS": "`-`", "STAR": "`*`",
    "INT": "a whole number", "STRING": "a string such as 'abc'", "UNIT": "a unit of time",
}  # fmt: skip


@dataclass(frozen=True)
class Piece:
    """A word, number, string or sign of the text; or its beginning or end."""

    kind: str
    text: str
    start: int
    end: int

    def __str__(self) -> str:
        return self.text

    @property
    def upper(self) -> str:
        """The text in upper case if it is a word, to compare it with keywords; else empty."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def content(self) -> str:
        """The text between its quotes, the second of which may be missing."""
        return self.text[1:].removesuffix(self.text[:1])

    @property
    def described(self) -> str:
        """The piece as messages mention it."""
        described = {
            "end": "the end of the query",
            "string": f"the string {self.text}",
            "quoted": f"the name {self.text}",
            "unclosed_backquote": "a backquote",
        }
        return described.get(self.kind, f"`{self.text}`")


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
    """The first place that cannot be read. Each language adds its clauses and what may be expected."""

    source: Source
    # The rule of the grammar that was to be read.
    start: str
    # The tokens read before, with the grammar's names for them.
    tokens: tuple[Token, ...]
    # The terminals that the grammar accepts next.
    accepts: frozenset[str]

    # The first words of clauses, and the name of what stands before them, if it is not that of `start`.
    clauses: ClassVar[tuple[str, ...]] = ()
    outside: ClassVar[str] = ""
    # The brackets that may follow the first word of a clause.
    brackets_in_clauses: ClassVar[str] = "([{"
    # Parts of a text, each with a terminal that is accepted only where the part may begin, or an operator follow.
    expectations: ClassVar[dict[str, str]] = {"value": "TRUE", "operator": "SLASH"}
    # The word for a text in messages.
    text_name: ClassVar[str] = "query"

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
        # A parser may have reduced rules before it refused the token: ask one that has not seen it.
        parser = grammar.parse_interactive("", start=start)
        for token in tokens:
            parser.feed_token(token)
        accepts = parser.accepts()  # type: ignore[no-untyped-call]
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
        """The piece that cannot be read, whole: for `==` both signs, though the first alone could be."""
        return self.pieces[self._position]

    def after(self, steps: int = 1) -> Piece:
        """A piece that follows it."""
        return self.pieces[min(self._position + steps, len(self.pieces) - 1)]

    def before(self, steps: int = 1) -> Piece:
        """A piece that stands before it."""
        return self.pieces[self._position - steps] if self._position >= steps else Piece("start", "", 0, 0)

    @cached_property
    def unclosed(self) -> tuple[Piece, ...]:
        """The brackets open at this place, outermost first."""
        stack: list[Piece] = []
        for piece in self.pieces[: self._position]:
            if piece.kind == "sign" and piece.text in CLOSING:
                stack.append(piece)
            elif piece.kind == "sign" and stack and piece.text == CLOSING[stack[-1].text]:
                stack.pop()
        return tuple(stack)

    @property
    def bracket(self) -> Piece | None:
        """The innermost open bracket."""
        return self.unclosed[-1] if self.unclosed else None

    @cached_property
    def head(self) -> Piece | None:
        """The word before the innermost open bracket, as SEQ in `SEQ(`."""
        at = self.pieces.index(self.bracket) if self.bracket else 0
        return self.pieces[at - 1] if at and self.pieces[at - 1].kind == "word" else None

    def written(self, first: Piece | Token, last: Piece | Token) -> str:
        """The text from one piece to another."""
        place = self.place(first, last)
        return self.source.text[place.start : place.end]

    def place(self, first: Piece | Token, last: Piece | Token) -> Place:
        """The place from one piece to another."""
        start = first.start if isinstance(first, Piece) else first.start_pos or 0
        end = last.end if isinstance(last, Piece) else last.end_pos or 0
        return Place(self.source, start, end)

    # --- the grammar's view ---

    @property
    def last(self) -> Token | None:
        """The last token read."""
        return self.tokens[-1] if self.tokens else None

    @property
    def last_type(self) -> str:
        """The grammar's name of the last token read; empty at the beginning."""
        return self.tokens[-1].type if self.tokens else ""

    def read(self, *types: str) -> bool:
        """Whether the last tokens read are of these types; `<start>`: whether none is read."""
        return (tuple(token.type for token in self.tokens[-len(types) :]) or ("<start>",)) == types

    @cached_property
    def clause(self) -> str:
        """The clause in which reading stopped; `outside` before the first one."""
        types = {"_PATTERN": "PATTERN"} | {f"_{word.upper()}": word for word in self.clauses}
        outside = self.outside or self.start
        return next((types[token.type] for token in reversed(self.tokens) if token.type in types), outside)

    @property
    def found_clause(self) -> bool:
        """Whether a clause begins or the text ends here instead of what was expected."""
        if self.found.upper not in self.clauses:
            return self.found.kind == "end"
        if self.found.upper in _SECOND_WORDS:
            return re.fullmatch(_SECOND_WORDS[self.found.upper], self.after().upper) is not None
        return self.after().kind != "sign" or self.after().text in self.brackets_in_clauses

    def expects(self, name: str) -> bool:
        """Whether a terminal is accepted here, or a part of a text that begins with one (`expectations`)."""
        return self.expectations.get(name, name) in self.accepts

    # --- the answer ---

    @property
    def but_found(self) -> str:
        """The end of a sentence that begins with what was expected."""
        is_end = self.found.kind == "end"
        return f"but the {self.text_name} ends here" if is_end else f"but found {self.found.described}"

    @property
    def expected(self) -> list[str]:
        """Everything that could stand here, as phrases."""
        raise NotImplementedError

    @property
    def advice(self) -> str | None:
        """The hint where no habit fits."""
        return None

    def unexpected(self) -> QuerySyntaxError:
        """Expected this, but found that."""
        *phrases, last = self.expected
        wanted = f"{', '.join(phrases)} or {last}" if phrases else last
        behind = self.before()
        after = f" after `{behind}`" if behind.kind in {"word", "sign", "number"} else ""
        where = self.place(self.found, self.found)
        return QuerySyntaxError(f"Expected {wanted}{after}, {self.but_found}.", where=where, hint=self.advice)
