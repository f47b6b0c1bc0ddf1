"""Every error and warning a user can meet: a stable condition, one sentence, the place, advice.

An error reads in Spark's order::

    [UNKNOWN_ATTRIBUTE] Event type `Transfer` has no attribute `acount`.
      at fraud.sase:2:10
    2 | WHERE  b.acount = a.account
                 ^^^^^^
    Hint: did you mean `account`? `Transfer` has: account, amount, at.

Each condition has an entry in `docs/reference/errors.md`; `make check` fails otherwise.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, assert_never

from tocsin.gaps import Gaps
from tocsin.source import CallSite, Place, Where

SHOWN_AT_ONCE = 5
LISTED_AT_ONCE = 100
# Characters of a message or hint and of a value in it, and names in a list, before they are cut.
LONGEST_MESSAGE = 1_000
LONGEST_VALUE = 400
MOST_NAMES = 60


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like a mistyped one, if any is like it at all.

    >>> nearest("acount", ["account", "amount"])
    'account'
    >>> nearest("qqq", ["account"]) is None
    True
    """
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.65)
    return by_folded[found[0]] if found else None


@dataclass(frozen=True)
class Advice:
    """A hint that is put into words when it is read: of thousands of errors, few are shown."""

    name: str
    known: Collection[str]
    owner: str
    more: str = ""

    def __add__(self, more: str) -> Advice:
        """The advice with a further sentence."""
        return replace(self, more=self.more + more)

    def __str__(self) -> str:
        """The nearest known name, then all of them."""
        known = sorted(map(named, self.known))
        near = nearest(self.name, known)
        question = f"did you mean `{near}`? " if near else ""
        names = ", ".join(known[:MOST_NAMES]) if known else "none"
        rest = f", … and {len(known) - MOST_NAMES:,} more" if len(known) > MOST_NAMES else ""
        return question + f"{self.owner}: {names}{rest}.{self.more}"


def did_you_mean(name: object, known: Iterable[str], owner: str) -> Advice:
    """Advice for an unknown name: the nearest known one, then all of them."""
    return Advice(named(name), known if isinstance(known, Collection) else tuple(known), owner)


def shortened(text: str, most: int = LONGEST_MESSAGE) -> str:
    """A text cut in its middle, so that it can be read.

    >>> shortened("the string 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' is too long", 30)
    "the string 'xxxxxxxx … s too long"
    """
    if len(text) <= most:
        return text
    behind = most // 3
    return f"{text[: most - behind]} … {text[len(text) - behind :].lstrip()}"


def shown(value: object) -> str:
    """A value as messages quote it, also one that cannot be printed.

    A class may fail at it, and so do integers of more digits than Python prints.

    >>> shown("local"), shown(10**5_000)
    ("'local'", '<int>')
    """
    try:
        return shortened(repr(value), LONGEST_VALUE)
    except Exception:
        return f"<{type(value).__name__}>"


def named(value: object) -> str:
    """A name as messages have it between backquotes; what is no text as `shown`."""
    return value if isinstance(value, str) else shown(value)


def fault(problem: Exception) -> str:
    """An exception as messages quote it, also one of a class of the user's that cannot be printed.

    >>> fault(KeyError("x"))
    "KeyError: 'x'"
    """
    return ": ".join(filter(None, (type(problem).__name__, message_of(problem))))


def message_of(problem: Exception) -> str:
    """The words of an exception; none of one that cannot be printed."""
    try:
        return str(problem)
    except Exception:
        return ""


def _report(
    condition: str | None,
    message: str,
    places: list[tuple[str, Where]],
    hint: str | None,
    restriction: str | None = None,
) -> str:
    lines = [f"[{condition}] {message}"]
    for words, place in places:
        if place is not None:
            lines += [f"  {words}at {place.describe()}", *place.excerpt()]
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

    condition: ClassVar[str | None] = None  # None in families, which are never raised

    def __init_subclass__(cls) -> None:
        """Name the condition after the class: that of `UnknownVariableError` is UNKNOWN_VARIABLE."""
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
        places = [("", self.where), self._second_place()]
        return _report(self.condition, self.message, places, self.hint, self.restriction)

    def _second_place(self) -> tuple[str, Where]:
        words, place = self.also or ("", None)
        return (f"{words} " if words else "", place)

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


class TextTooLongError(QuerySyntaxError):
    """A text with more characters than `max_text` allows, or one that grows too large when it is written out."""


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


class OptionRefusedError(UnsupportedError):
    """A valid query that runs, but not with the strategy or form that was asked for; nothing was run."""


class PlanError(TocsinError, ValueError):
    """A valid query that cannot be planned on the inputs given."""

    condition: ClassVar[str | None] = None


class MatchError(TocsinError, RuntimeError):
    """Something failed while events were read, matched or written."""

    condition: ClassVar[str | None] = None


class InternalError(TocsinError, RuntimeError):
    """A fault of Tocsin's own; please report it with the query."""


def unknown_node(node: object, layer: str) -> InternalError:
    """The error of a layer that has no case for the class of a node: a new operator, added elsewhere first.

    >>> print(unknown_node(object(), "The optimizer"))
    [INTERNAL] The optimizer has no case for `object`.
    """
    return InternalError(f"{layer} has no case for `{type(node).__name__}`.", where=getattr(node, "where", None))


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


# --- names ----------------------------------------------------------------------------------------


class UnknownVariableError(QueryBindingError):
    """A condition names a variable the pattern does not have."""


class DuplicateVariableError(QueryBindingError):
    """One name for two elements of a SEQ or AND (R35)."""


class UnknownAttributeError(QueryBindingError):
    """An event type has no such attribute."""


class UnknownEventTypeError(QueryBindingError):
    """No input carries this event type."""


class AmbiguousReferenceError(QueryBindingError):
    """A bare name where `variable.attribute` is needed."""


class UnknownFunctionError(QueryBindingError):
    """There is no such function."""


class WrongArgumentsError(QueryBindingError):
    """A function or aggregate got the wrong number or kind of arguments."""


class TypeMismatchError(QueryBindingError, TypeError):
    """Two values that cannot be compared or computed with (R39)."""


class LiteralOutOfRangeError(QueryBindingError):
    """A number or an interval that 64 bits do not hold."""


class ReservedNameError(QueryBindingError):
    """A name that Tocsin keeps for its own columns."""


class DuplicateColumnError(QueryBindingError):
    """Two RETURN columns of one name."""


# --- pattern --------------------------------------------------------------------------------------


class NegationNotAllowedError(QueryBindingError):
    """NOT outside a SEQ, of a composite, alone, or at the edge inside an iteration (R36)."""


class UnboundedAbsenceError(QueryBindingError):
    """An absence at the edge of a SEQ and no WITHIN to close it (R9)."""


class TwoNegatedVariablesError(QueryBindingError):
    """One condition relates two absent events (R10)."""


class NegatedVariableInReturnError(QueryBindingError):
    """RETURN, GROUP BY or HAVING names an event that is not there (R10)."""


class EmptyPatternError(QueryBindingError):
    """A pattern that binds no event."""


class InvalidQuantifierError(QueryBindingError):
    """Bounds of an iteration that no number satisfies."""


class InvalidWindowError(QueryBindingError):
    """A window that is not longer than nothing (R37)."""


class ContradictoryDistancesError(QueryBindingError):
    """Distances that no events can keep."""


class UnboundedPatternError(QueryBindingError):
    """Two variables may lie arbitrarily far apart: refused on a stream (R37)."""


# --- rules ----------------------------------------------------------------------------------------

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


class DuplicateNameError(QueryBindingError):
    """Two templates, patterns, rules or attributes of one name."""


class UnknownModuleError(QueryBindingError):
    """A program uses a module that is not there."""


class LaterVariableError(QueryBindingError):
    """A condition speaks of a variable whose pattern follows only later."""


class NegatedVariableUsedError(QueryBindingError):
    """An absent event is used outside the pattern that says it is absent."""


class MisplacedPrefixError(QueryBindingError):
    """A distance with `no` or `all` that its variable does not have, or without one that it has."""


class RecursiveDefinitionError(QueryBindingError):
    """A named pattern that is made of itself."""


class UnstratifiedError(QueryBindingError):
    """Events that cause events of their own type, directly or by other rules."""


class ImpureFunctionError(QueryBindingError):
    """A function that does not promise to be pure."""


class EventAsAttributeError(QueryBindingError):
    """An attribute that would hold an event."""


class IncompleteEmitError(QueryBindingError):
    """An emitted event without all its attributes, or with more than an array of it holds."""


class NonMonotoneTimeError(QueryBindingError):
    """The time of an emitted event may go back when time goes on."""


class MissingRateError(QueryBindingError):
    """A type of events without a largest rate, where the size of the state is to be guaranteed."""


class StateTooLargeError(QueryBindingError):
    """A live query could keep more than it is allowed to."""


class StateUnknownError(QueryBindingError):
    """A limit is set to what a live query keeps, and how much that is does not follow from what is declared."""


class UnknownRuleError(QueryBindingError):
    """A program has no rule of that name, or emits no such events."""


# --- conditions and clauses -----------------------------------------------------------------------


class NextOfSingleError(QueryBindingError):
    """NEXT(v) of a variable that is not iterated (R15)."""


class InvalidIndexError(QueryBindingError):
    """An index below 1, or a running index on a variable that is not iterated."""


class MisplacedPartitionError(QueryBindingError):
    """`[attr]` below OR, NOT or inside an expression."""


class MisplacedBagPredicateError(QueryBindingError):
    """`same`, `increasing` or `decreasing` below OR, NOT or inside an expression (R27)."""


class AggregateNotAllowedError(QueryBindingError):
    """An aggregate where none can stand, such as inside another."""


class AmbiguousGroupKeyError(QueryBindingError):
    """GROUP BY an iterated variable without an index (R40)."""


class NotGroupedError(QueryBindingError):
    """A RETURN column that is neither aggregated nor a group key."""


class IteratedInReturnError(QueryBindingError):
    """Arithmetic on an iterated variable in RETURN: many values where one is needed."""


class ConflictingClausesError(QueryBindingError):
    """Two clauses that cannot stand together."""


class TimeoutsNotAllowedError(QueryBindingError):
    """WITH TIMEOUTS on a pattern that has none (SEMANTICS §6)."""


# --- inputs ---------------------------------------------------------------------------------------


class InvalidInputError(PlanError, TypeError):
    """`inputs` is neither a DataFrame nor a mapping from event type to DataFrame."""


class MissingColumnError(PlanError):
    """The time, type, tie or key column is not there."""


class DuplicateInputColumnError(PlanError):
    """Two columns of an input have one name."""


class TimeTypeError(PlanError, TypeError):
    """The time column is neither a timestamp nor an integer, or differs between inputs."""


class InvalidOptionError(PlanError):
    """An option with a value it cannot have."""


class InputNotReadableError(MatchError):
    """A file cannot be read as events."""


class OutputNotWritableError(MatchError):
    """The results cannot be written where they should go."""


class MatchFailedError(MatchError):
    """A Spark job failed for a reason that is neither the input's nor the output's."""


class NumberTooLargeError(MatchError):
    """An aggregate of integers, of one match or of all, does not fit into 64 bits (SEMANTICS §9)."""

    @classmethod
    def of_match(cls, function: str) -> NumberTooLargeError:
        """An aggregate over the events of one match does not fit.

        >>> print(NumberTooLargeError.of_match("sum"))
        [NUMBER_TOO_LARGE] SUM over the events of a match is beyond 64 bits.
        Hint: add up doubles instead: `SUM(b.x * 1.0)`.
        """
        name = function.upper()
        doubles = "add up" if name == "SUM" else "compute with"
        return cls(
            f"{name} over the events of a match is beyond 64 bits.",
            hint=f"{doubles} doubles instead: `{name}(b.x * 1.0)`.",
        )


class TooManyMatchesError(MatchError):
    """A pattern has so many matches that no machine could list them."""


class TooMuchSearchError(MatchError):
    """A search took more steps than it may, however many matches there are."""


class TooMuchMemoryError(MatchError):
    """The matches of a task take more memory than they may."""


class UserFunctionError(MatchError):
    """A user's function failed, or gave what does not fit: for which key, and at which event time."""

    condition = "USER_FUNCTION_FAILED"


class StateGrowsError(MatchError):
    """The state of a user's function grows with the number of events, and has become larger than it may."""


class StateMismatchError(MatchError):
    """The state in a checkpoint was written by another query or another release, or is damaged."""


class LateEventsError(MatchError):
    """Events came too late, and the stream was to stop then."""


class NotTimeClusteredError(MatchError):
    """Input that was said to lie in order of time does not."""


# --- environment ----------------------------------------------------------------------------------


class MissingExtraError(TocsinError, ImportError):
    """A package that only part of Tocsin needs is not installed."""


class JavaNotFoundError(TocsinError, RuntimeError):
    """Spark cannot start: there is no Java, or it is too old."""


class SparkNotStartedError(TocsinError, RuntimeError):
    """There is a Java, but no Spark session came up on it."""


# --- warnings -------------------------------------------------------------------------------------

WARNINGS: dict[str, str] = {
    "SLIDE_IGNORED": "The slide of a window changes nothing: every match is reported once.",
    "COMPOSITE_ITERATION": "A condition across all copies of an iteration, where one copy may have been meant.",
    "NULL_COMPARISON": "A comparison with NULL, which is never TRUE.",
    "CONTRADICTORY_BRANCH": "One alternative of the pattern can never match.",
    "EMPTY_INTERSECTION": "ACEL's AND of formulas that no match can satisfy both.",
    "TIED_EVENTS": "Events of one instant in a formula that goes by their order, and no columns that order them.",
    "PARTITION_CONTIGUITY": "`contiguous` counts the events of all partitions.",
    "SELF_BLOCKING": "An event that must not be there may be one that must be.",
    "REACTION_IGNORED": "A call in `then` that emits nothing: rules have no other effects.",
    "MIXED_DOMAINS": "Values of two domains, such as account and transaction, meet.",
    "UNKNOWN_TYPE": "The type of an attribute is nearly the name of a known one.",
    "EXPLOSION_EXPECTED": "By the statistics, one start has more matches than the limit.",
}


class TocsinWarning(UserWarning):
    """A query that runs, but may not say what was meant."""

    def __init__(self, condition: str, message: str, *, where: Where = None, hint: str | None = None) -> None:
        message, hint = shortened(message), None if hint is None else shortened(hint)
        super().__init__(message)
        self.condition = condition
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        """A report in the shape of an error's."""
        return _report(self.condition, self.message, [("", self.where)], self.hint)

    def to_dict(self) -> dict[str, Any]:
        """The warning for tools."""
        return {"condition": self.condition, "message": self.message, "hint": self.hint}
