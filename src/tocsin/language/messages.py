"""Explain a text that does not parse by the first habit that fits the place where reading stopped.

A habit is a row of a table, such as `sase/habits.py`: examples of the mistake, the facts that single it out, and the
answer. Where no habit fits, the message says what was expected and what was found. Terminals of the grammar never show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lark import Token

from tocsin.errors import QuerySyntaxError, nearest
from tocsin.language.situation import CLOSING, Piece, Situation
from tocsin.source import Place

Fields = Mapping[str, object]
# `{found}`, `{found.upper}`, `{next|price}`. Not `{m,n}` or `{ x > 5 }`, which messages quote.
_FIELD = re.compile(r"\{(\w{2,})((?:\.\w+)*)(?:\|([^}]*))?\}")


class Habit:
    """A mistake that people make, the facts that single it out, and the answer.

    All facts given must hold. Several words in one fact are alternatives, except in `expects`.

    Parameters
    ----------
    examples
        Texts that make the mistake. A test checks that this row answers them, not one before it.
    message, hint
        The answer. `{found}`, `{next}`, `{next2}`, `{before}`, `{before2}`, `{before3}` are pieces of the text,
        `{first}` and `{last}` the first and last token read, `{bracket}` the innermost open bracket, `{closing}` its
        partner, `{head}` the word before it, `{clause}` and `{but_found}` as in `Situation`; `when` may add others.
        `{found.upper}` is an attribute of a piece; `{next|price}` is `price` unless the next piece is a word.
    clause
        The clause in which reading stopped.
    after
        The last tokens read, by their terminals; a comma joins tokens in a row: `_IS,NOT`. `<start>`: none.
    found, unlike
        What the unreadable piece is, and is not: its text (a word in capitals matches any case), its kind in angle
        brackets (`<word>`, `<number>`), or `<clause>` for the beginning of a clause or the end of the text.
    before, next
        Likewise for the pieces around it.
    near
        Words, one of which the unreadable piece resembles. The answer has it as `{near}`.
    inside
        The innermost open bracket, alone or with its word: `[`, `NOT(`. `none`: no bracket is open.
    expects, lacks, only
        Terminals that the grammar accepts here, or parts such as `value` (`Situation.expectations`). `expects`: all of
        these, where `a|b` is either; `lacks`: none of these; `only`: nothing but these.
    when
        Code for what the facts above cannot express. May return further fields for the answer.
    at, also
        The fields at which the place of the error begins and ends; a second place, after its name.
    """

    def __init__(
        self,
        *examples: str,
        message: str,
        hint: str = "",
        clause: str = "",
        after: str = "",
        found: str = "",
        unlike: str = "",
        near: str = "",
        before: str = "",
        next: str = "",
        inside: str = "",
        expects: str = "",
        lacks: str = "",
        only: str = "",
        when: Callable[[Any], Fields | bool] | None = None,
        at: str = "found",
        also: tuple[str, str] | None = None,
    ) -> None:
        self.examples, self.message, self.hint, self.when, self.at, self.also = examples, message, hint, when, at, also
        self._clause, self._found, self._unlike, self._near = map(str.split, (clause, found, unlike, near))
        self._before, self._next, self._inside = map(str.split, (before, next, inside))
        self._after = [kinds.split(",") for kinds in after.split()]
        self._expects = [names.split("|") for names in expects.split()]
        self._lacks, self._only = lacks.split(), set(only.split())

    def answer(self, s: Situation) -> QuerySyntaxError | None:
        """The error of this habit, if it fits the situation."""
        if not self._fits(s):
            return None
        near = nearest(s.found.text, self._near)
        more = (near or not self._near) and (self.when is None or self.when(s))
        if not more:
            return None
        fields = _fields(s) | {"near": near} | dict(more if isinstance(more, Mapping) else {})
        return QuerySyntaxError(
            _fill(self.message, fields),
            where=_place(s, self.at, fields),
            hint=_fill(self.hint, fields) or None,
            also=(self.also[0], _place(s, self.also[1], fields)) if self.also else None,
        )

    def _fits(self, s: Situation) -> bool:
        return (
            (not self._clause or s.clause in self._clause)
            and (not self._after or any(s.read(*kinds) for kinds in self._after))
            and (not self._found or _is(s, s.found, self._found))
            and not _is(s, s.found, self._unlike)
            and (not self._before or _is(s, s.before(), self._before))
            and (not self._next or _is(s, s.after(), self._next))
            and (not self._inside or any(word in self._inside for word in _inside(s)))
            and all(any(map(s.expects, names)) for names in self._expects)
            and not any(map(s.expects, self._lacks))
            and (not self._only or s.accepts <= self._only)
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
    ends = [end for name in names.split() if isinstance(end := fields[name], (Piece, Token))]
    return s.place(ends[0], ends[-1])
