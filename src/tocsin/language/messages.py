"""Explain a text that does not parse by the first habit that fits the place where reading stopped.

A habit is a row of a table, such as `sase/habits.py`: examples of the mistake, the facts that single it out, and the
answer. Where no habit fits, the message says what was expected and what was found. Terminals of the grammar never show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tocsin.errors import QuerySyntaxError, nearest
from tocsin.source import Place, Source

if TYPE_CHECKING:  # the parser is there where a text is; the words of languages are also known to tasks
    from lark import Lark, Token

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
        from lark.exceptions import UnexpectedInput

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


# --- habits ---------------------------------------------------------------------------------------

Fields = Mapping[str, object]
# `{found}`, `{found.upper}`, `{next|price}`. Not `{m,n}` or `{ x > 5 }`, which messages quote.
_FIELD = re.compile(r"\{(\w{2,})((?:\.\w+)*)(?:\|([^}]*))?\}")


# What single out a mistake: a fact is a text of words, and holds if the situation has one of them (`expects`: all).
FACTS: dict[str, Callable[[Situation, list[str]], bool]] = {
    # The clause in which reading stopped.
    "clause": lambda s, words: s.clause in words,
    # The last tokens read, by their terminals; a comma joins tokens in a row: `_IS,NOT`. `<start>`: none.
    "after": lambda s, words: any(s.read(*kinds.split(",")) for kinds in words),
    # What the unreadable piece is, and is not: its text (a word in capitals matches any case), its kind in angle
    # brackets (`<word>`, `<number>`), or `<clause>` for the beginning of a clause or the end of the text.
    "found": lambda s, words: _is(s, s.found, words),
    "unlike": lambda s, words: not _is(s, s.found, words),
    # Likewise for the pieces around it.
    "before": lambda s, words: _is(s, s.before(), words),
    "next": lambda s, words: _is(s, s.after(), words),
    # The innermost open bracket, alone or with its word: `[`, `NOT(`. `none`: no bracket is open.
    "inside": lambda s, words: any(word in words for word in _inside(s)),
    # Terminals that the grammar accepts here, or parts such as `value` (`Situation.expectations`). `expects`: all of
    # these, where `a|b` is either; `lacks`: none of these; `only`: nothing but these.
    "expects": lambda s, words: all(any(map(s.expects, names.split("|"))) for names in words),
    "lacks": lambda s, words: not any(map(s.expects, words)),
    "only": lambda s, words: s.accepts <= set(words),
}


class Habit:
    """A mistake that people make, the facts that single it out, and the answer.

    Parameters
    ----------
    examples
        Texts that make the mistake. A test checks that this row answers them, not one before it.
    message, hint
        The answer. `{found}`, `{next}`, `{next2}`, `{before}`, `{before2}`, `{before3}` are pieces of the text,
        `{first}` and `{last}` the first and last token read, `{bracket}` the innermost open bracket, `{closing}` its
        partner, `{head}` the word before it, `{clause}` and `{but_found}` as in `Situation`; `when` may add others.
        `{found.upper}` is an attribute of a piece; `{next|price}` is `price` unless the next piece is a word.
    facts
        What must hold, by the names in `FACTS`.
    near
        Words, one of which the unreadable piece resembles. The answer has it as `{near}`.
    when
        Code for what the facts cannot express. May return further fields for the answer.
    at, also
        The fields at which the place of the error begins and ends; a second place, after its name.
    """

    def __init__(
        self,
        *examples: str,
        message: str,
        hint: str = "",
        near: str = "",
        when: Callable[[Any], Fields | bool] | None = None,
        at: str = "found",
        also: tuple[str, str] | None = None,
        **facts: str,
    ) -> None:
        self.examples, self.message, self.hint, self.when, self.at, self.also = examples, message, hint, when, at, also
        self.near = near.split()
        self.facts = {name: words.split() for name, words in facts.items() if words}

    def answer(self, s: Situation) -> QuerySyntaxError | None:
        """The error of this habit, if it fits the situation."""
        if not all(FACTS[name](s, words) for name, words in self.facts.items()):
            return None
        near = nearest(s.found.text, self.near)
        more = (near or not self.near) and (self.when is None or self.when(s))
        if not more:
            return None
        fields = _fields(s) | {"near": near} | dict(more if isinstance(more, Mapping) else {})
        return QuerySyntaxError(
            _fill(self.message, fields),
            where=_place(s, self.at, fields),
            hint=_fill(self.hint, fields) or None,
            also=(self.also[0], _place(s, self.also[1], fields)) if self.also else None,
        )


def explain(s: Situation, habits: Iterable[Habit]) -> QuerySyntaxError:
    """The answer of the first habit that fits; else what was expected."""
    return next((error for habit in habits if (error := habit.answer(s)) is not None), None) or s.unexpected()


def _is(s: Situation, piece: Piece, words: list[str]) -> bool:
    is_clause = "<clause>" in words and piece is s.found and s.found_clause
    return is_clause or any(text in words for text in (piece.text, piece.upper, f"<{piece.kind}>"))


def _inside(s: Situation) -> tuple[str, ...]:
    if s.bracket is None:
        return ("none",)
    return (s.bracket.text, s.head.upper + s.bracket.text) if s.head else (s.bracket.text,)


def _fields(s: Situation) -> dict[str, object]:
    pieces = {"found": s.found, "next": s.after(), "next2": s.after(2)}
    pieces |= {"before": s.before(), "before2": s.before(2), "before3": s.before(3)}
    brackets = {"bracket": s.bracket, "head": s.head, "closing": CLOSING[s.bracket.text] if s.bracket else ""}
    tokens = {"first": next(iter(s.tokens), None), "last": s.last}
    return {**pieces, **brackets, **tokens, "clause": s.clause, "but_found": s.but_found}


def _fill(template: str, fields: Fields) -> str:
    def value(field: re.Match[str]) -> str:
        held = fields[field[1]]
        if field[3] is not None and not (isinstance(held, Piece) and held.kind == "word"):
            return field[3]
        for name in field[2].split(".")[1:]:
            held = getattr(held, name)
            held = held() if callable(held) else held
        return str(held)

    return _FIELD.sub(value, template)


def _place(s: Situation, names: str, fields: Fields) -> Place:
    from lark import Token

    ends = [end for name in names.split() if isinstance(end := fields[name], (Piece, Token))]
    return s.place(ends[0], ends[-1])
