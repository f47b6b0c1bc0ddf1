"""One class for each condition, by what it is about; `docs/reference/errors.md` explains every one."""

from __future__ import annotations

from tocsin.errors.families import (
    MatchError,
    PlanError,
    QueryBindingError,
    QuerySyntaxError,
    TocsinError,
    UnsupportedError,
)

# --- texts, and what does not run -----------------------------------------------------------------


class TextTooLongError(QuerySyntaxError):
    """A text with more characters than `max_text` allows, or one that grows too large when it is written out."""


class OptionRefusedError(UnsupportedError):
    """A valid query that runs, but not with the strategy or form that was asked for; nothing was run."""


class InternalError(TocsinError, RuntimeError):
    """A fault of Tocsin's own; please report it with the query."""


def unknown_node(node: object, layer: str) -> InternalError:
    """The error of a layer that has no case for the class of a node: a new operator, added elsewhere first.

    >>> print(unknown_node(object(), "The optimizer"))
    [INTERNAL] The optimizer has no case for `object`.
    """
    return InternalError(f"{layer} has no case for `{type(node).__name__}`.", where=getattr(node, "where", None))


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
    """A function or aggregate with the wrong number or kind of arguments."""


class TypeMismatchError(QueryBindingError, TypeError):
    """Two values that cannot be compared or computed with (R39)."""


class LiteralOutOfRangeError(QueryBindingError):
    """A number or an interval that does not fit into 64 bits."""


class ReservedNameError(QueryBindingError):
    """A name that Tocsin reserves for its own columns."""


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
    """A window whose length is not positive (R37)."""


class ContradictoryDistancesError(QueryBindingError):
    """Distances that no events satisfy."""


class UnboundedPatternError(QueryBindingError):
    """Two variables of a stream may lie arbitrarily far apart (R37)."""


# --- rules ----------------------------------------------------------------------------------------


class DuplicateNameError(QueryBindingError):
    """Two templates, patterns, rules or attributes of one name."""


class UnknownModuleError(QueryBindingError):
    """A program uses a module that does not exist."""


class LaterVariableError(QueryBindingError):
    """A condition uses a variable whose pattern follows later."""


class NegatedVariableUsedError(QueryBindingError):
    """An absent event is used outside its own pattern."""


class MisplacedPrefixError(QueryBindingError):
    """A distance whose `no` or `all` differs from that of its variable."""


class RecursiveDefinitionError(QueryBindingError):
    """A named pattern that refers to itself."""


class UnstratifiedError(QueryBindingError):
    """Events that cause events of their own type, directly or through other rules."""


class ImpureFunctionError(QueryBindingError):
    """A function that is not declared pure."""


class EventAsAttributeError(QueryBindingError):
    """An attribute that would hold an event."""


class IncompleteEmitError(QueryBindingError):
    """An emitted event that lacks attributes, or overfills an array."""


class NonMonotoneTimeError(QueryBindingError):
    """The time of an emitted event may decrease as time advances."""


class MissingRateError(QueryBindingError):
    """An event type without a largest rate, where the size of the state must be guaranteed."""


class StateTooLargeError(QueryBindingError):
    """A live query may retain more than the limit."""


class StateUnknownError(QueryBindingError):
    """The state of a live query is limited, but its size does not follow from what is declared."""


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
    """The time, type, tie or key column is missing."""


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
    """An aggregate of integers, of one match or of all, does not fit into 64 bits (SEMANTICS §9).

    >>> print(NumberTooLargeError.of_match("sum"))
    [NUMBER_TOO_LARGE] SUM over the events of a match is beyond 64 bits.
    Hint: add up doubles instead: `SUM(b.x * 1.0)`.
    """

    @classmethod
    def of_match(cls, function: str) -> NumberTooLargeError:
        """An aggregate over the events of one match does not fit."""
        name = function.upper()
        doubles = "add up" if name == "SUM" else "compute with"
        return cls(
            f"{name} over the events of a match is beyond 64 bits.",
            hint=f"{doubles} doubles instead: `{name}(b.x * 1.0)`.",
        )


class TooManyMatchesError(MatchError):
    """A pattern has too many matches to enumerate."""


class TooMuchSearchError(MatchError):
    """A search exceeded its limit of steps, however many matches there are."""


class TooMuchMemoryError(MatchError):
    """The matches of a task exceed their limit of memory."""


class UserFunctionError(MatchError):
    """A user-defined function failed or returned an unsuitable value; names the key and the event time."""

    condition = "USER_FUNCTION_FAILED"


class StateGrowsError(MatchError):
    """The state of a user-defined function grows with the number of events and exceeds its limit."""


class StateMismatchError(MatchError):
    """The checkpoint was written by another query or another release, or is damaged."""


class LateEventsError(MatchError):
    """Late events arrived on a stream that stops at them."""


class NotTimeClusteredError(MatchError):
    """Input declared to be ordered by time is not."""


# --- environment ----------------------------------------------------------------------------------


class MissingExtraError(TocsinError, ImportError):
    """A package that only part of Tocsin needs is not installed."""


class JavaNotFoundError(TocsinError, RuntimeError):
    """Spark cannot start: there is no Java, or it is too old."""


class SparkNotStartedError(TocsinError, RuntimeError):
    """There is a Java, but no Spark session came up on it."""


# --- warnings, which have no classes --------------------------------------------------------------

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
