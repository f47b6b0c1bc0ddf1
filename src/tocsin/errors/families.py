"""The families of errors, several errors at once, and the warnings; `kinds` has the single conditions."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, assert_never

from tocsin.errors.quoting import Advice, shortened
from tocsin.gaps import Gaps
from tocsin.source import CallSite, Place, Where

SHOWN_AT_ONCE = 5
LISTED_AT_ONCE = 100

# What makes a program of rules run in bounded memory, by the numbers of `docs/reference/rules.md`.
RESTRICTIONS = {
    "S1": "whatever a program names is declared, and declared once.",
    "S2": "the first pattern of a rule asks for an event, not for an absence.",
    "S3": "an absent event is known in its own pattern and its own distances, and nowhere else.",
    "S4": "a condition stands in the pattern of the last variable that it speaks of.",
    "S5": "an absence and a gathering have a closed window around an event of the match.",
    "S6": "a distance has the prefix of its variable: `no`, `all` or none.",
    "S7": "any two events of a match lie within a known distance of each other.",
    "S8": "a distance has two finite ends, with units.",
    "S9": "no event causes, directly or by other rules, an event of its own type.",
    "S10": "functions are pure: same arguments, same result, in constant time, without any effect.",
    "S11": "the attributes of an event are values, or arrays of a fixed length, never events.",
    "S12": "an emitted event has every attribute of its template, of the right type.",
    "S13": "as time goes on, the time of emitted events never goes back.",
    "S14": "every type of events that comes from outside has a largest rate.",
    "S15": "values are compared and computed with values of their kind.",
    "S16": "some events can keep all distances of a rule.",
    "S17": "every type of events that a rule reads comes from an input or from another rule.",
}


def _report(
    condition: str | None,
    message: str,
    where: Where,
    hint: str | None,
    also: tuple[str, Where] | None = None,
    restriction: str | None = None,
) -> str:
    lines = [f"[{condition}] {message}"]
    for words, place in (("", where), also or ("", None)):
        if place is not None:
            lines += [f"  {words} at {place.describe()}" if words else f"  at {place.describe()}", *place.excerpt()]
    if restriction is not None:
        lines.append(f"Rule {restriction}")
    return "\n".join([*lines, *([f"Hint: {hint}"] if hint else [])])


class TocsinError(Exception):
    """Root of all errors Tocsin raises on purpose.

    Parameters
    ----------
    message
        One sentence that says what is wrong.
    where
        Where it was written, if it was written anywhere.
    also
        A second place that matters, with the words that introduce it (`("first named", place)`).
    hint
        What to do about it.
    violates
        The number of the restriction of programs of rules that is violated.
    """

    __module__ = "tocsin.errors"
    condition: ClassVar[str | None] = None  # None in families, which are never raised

    def __init_subclass__(cls) -> None:
        """Name the condition after the class, and show the class as users import it.

        The condition of `UnknownVariableError` is UNKNOWN_VARIABLE.
        """
        cls.__module__ = "tocsin.errors"
        if "condition" not in vars(cls):
            cls.condition = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).upper()

    def __init__(
        self,
        message: str,
        *,
        where: Where = None,
        also: tuple[str, Where] | None = None,
        hint: str | Advice | None = None,
        violates: str | None = None,
    ) -> None:
        message = shortened(message)
        super().__init__(message)
        self.message = message
        self.where = where
        self.also = also
        self._hint = hint
        self.violates = violates

    @property
    def restriction(self) -> str | None:
        """The restriction that is violated: its number, a colon and its sentence."""
        return None if self.violates is None else f"{self.violates}: {RESTRICTIONS[self.violates]}"

    @property
    def hint(self) -> str | None:
        """The advice."""
        return None if self._hint is None else shortened(str(self._hint))

    @hint.setter
    def hint(self, words: str | None) -> None:
        self._hint = words

    def __str__(self) -> str:
        """The whole report: condition, sentence, place, advice."""
        return _report(self.condition, self.message, self.where, self.hint, self.also, self.restriction)

    def to_dict(self) -> dict[str, Any]:
        """The report for tools: condition, message, place, hint."""
        place = self.where if isinstance(self.where, Place) else None
        violated = {} if self.violates is None else {"restriction": self.violates}
        return violated | {
            "condition": self.condition,
            "message": self.message,
            "hint": self.hint,
            "at": self.where.describe() if self.where is not None else None,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "start": place.start if place else None,
            "end": place.end if place else None,
        }


# --- families -------------------------------------------------------------------------------------


class QuerySyntaxError(TocsinError, ValueError):
    """The text is not a sentence of the language."""

    condition = "SYNTAX_ERROR"


class QueryBindingError(TocsinError, ValueError):
    """The text is well formed, but its names, types or clauses do not fit together."""

    condition: ClassVar[str | None] = None


class UnsupportedError(TocsinError, NotImplementedError):
    """A valid query that the chosen engine cannot run yet; nothing was run. `gap` is the documented reason."""

    condition = "NOT_YET_SUPPORTED"

    def __init__(
        self,
        message: str,
        *,
        gap: Gaps | None = None,
        where: Where = None,
        hint: str | Advice | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint if hint is not None or gap is None else gap.value.hint)
        self.gap = gap


class PlanError(TocsinError, ValueError):
    """A valid query that cannot be planned on the inputs given."""

    condition: ClassVar[str | None] = None


class MatchError(TocsinError, RuntimeError):
    """Something failed while events were read, matched or written."""

    condition: ClassVar[str | None] = None


# --- several errors -------------------------------------------------------------------------------


class QueryErrors(QueryBindingError):
    """Several binding errors, shown together: at most five, then how many remain."""

    condition = "SEVERAL_ERRORS"

    def __init__(self, errors: Sequence[TocsinError]) -> None:
        super().__init__(f"{len(errors)} errors in the query.")
        self.errors = tuple(errors)

    def __str__(self) -> str:
        """The single reports, one after the other."""
        parts = [str(error) for error in self.errors[:SHOWN_AT_ONCE]]
        if len(self.errors) > SHOWN_AT_ONCE:
            parts.append(f"… and {len(self.errors) - SHOWN_AT_ONCE} more errors.")
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Adds the single errors under `errors`, at most a hundred of them."""
        return super().to_dict() | {"errors": [error.to_dict() for error in self.errors[:LISTED_AT_ONCE]]}


class Problems(list[TocsinError]):
    """Errors found so far, which `raise_all` reports together."""

    def add(
        self,
        kind: type[TocsinError],
        message: str,
        *,
        where: Where = None,
        also: tuple[str, Where] | None = None,
        hint: str | Advice | None = None,
        violates: str | None = None,
    ) -> None:
        """Note an error of a kind."""
        self.append(kind(message, where=where, also=also, hint=hint, violates=violates))

    def in_order(self) -> Problems:
        """Each problem once, by its place in the text; those without a place come last."""

        def key(problem: TocsinError) -> tuple[int, str, int]:
            match problem.where:
                case Place() as place:
                    return 0, "", place.start
                case CallSite() as site:
                    return 1, site.file, site.line
                case None:
                    return 2, "", 0
                case _:
                    assert_never(problem.where)

        distinct = {(problem.condition, problem.message, problem.where): problem for problem in self}
        return Problems(sorted(distinct.values(), key=key))


@contextlib.contextmanager
def collecting(problems: list[TocsinError]) -> Iterator[None]:
    """Put errors into a list instead of raising them, so that `raise_all` reports them together."""
    try:
        yield
    except QueryErrors as several:
        problems.extend(several.errors)
    except TocsinError as problem:
        problems.append(problem)


def raise_all(errors: Sequence[TocsinError]) -> None:
    """Raise nothing, the one error, or all of them as one."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise QueryErrors(errors)


# --- warnings -------------------------------------------------------------------------------------


class TocsinWarning(UserWarning):
    """A query that runs, but may not say what was meant."""

    __module__ = "tocsin.errors"

    def __init__(self, condition: str, message: str, *, where: Where = None, hint: str | None = None) -> None:
        message, hint = shortened(message), None if hint is None else shortened(hint)
        super().__init__(message)
        self.condition = condition
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        """A report in the shape of an error's."""
        return _report(self.condition, self.message, self.where, self.hint)

    def to_dict(self) -> dict[str, Any]:
        """The warning for tools."""
        return {"condition": self.condition, "message": self.message, "hint": self.hint}
