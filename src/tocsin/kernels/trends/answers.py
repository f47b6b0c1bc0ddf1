"""From totals to the values of aggregates: added up over tasks, and rounded once at the very end (R18, R40)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tocsin.errors import NumberTooLargeError
from tocsin.kernels.trends.amounts import Amount

LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Totals:
    """What is known of some matches: how many they are, and for every measure a tally, an `Amount` or a value."""

    count: int
    found: tuple[Any, ...]


def together(left: Totals, right: Totals, kinds: tuple[str, ...]) -> Totals:
    """The totals of both; `kinds` says what each measure is."""
    found = tuple(_both(kind, one, other) for kind, one, other in zip(kinds, left.found, right.found, strict=True))
    return Totals(left.count + right.count, found)


def _both(kind: str, one: Any, other: Any) -> Any:
    if kind in ("sum", "tally"):
        return one + other
    if one is None or other is None:
        return other if one is None else one
    # NaN is above every number (R39), and Python's own order does not know.
    return (min if kind == "min" else max)(one, other, key=lambda value: (value != value, value))  # noqa: PLR0124


def nothing(kinds: tuple[str, ...]) -> Totals:
    """The totals of no match."""
    return Totals(0, tuple({"sum": Amount(), "tally": 0}.get(kind) for kind in kinds))


@dataclass(frozen=True)
class Answer:
    """The value of an aggregate.

    Attributes
    ----------
    function
        Its name.
    measures
        The measures it is made of; none for COUNT(*).
    is_whole
        Whether its values are integers.
    as_digits
        Whether it is asked for as text.
    """

    function: str
    measures: tuple[int, ...]
    is_whole: bool
    as_digits: bool = False

    @property
    def is_integer(self) -> bool:
        """Whether the value is an integer."""
        return self.function == "count" or (self.is_whole and self.function != "avg")

    def of(self, totals: Totals) -> Any:
        """The value.

        Raises
        ------
        NumberTooLargeError
            When it is an integer beyond 64 bits, and not asked for as text.
        """
        found = [totals.found[number] for number in self.measures]
        value: Any = totals.count if not found else found[0]
        if isinstance(value, Amount):
            value = self._of_amount(value, *found[1:])
        if not self.is_integer:
            return value
        if self.as_digits:
            return None if value is None else digits(value)
        if value is not None and not -LARGEST - 1 <= value <= LARGEST:
            raise too_large(self.function)
        return value

    def _of_amount(self, value: Amount, count: int = 1) -> float | int | None:
        if self.function == "avg":
            return value.over(count) if count else None
        return value.number if self.is_whole else value.over(1)


def too_large(function: str) -> NumberTooLargeError:
    """An integer over all matches does not fit."""
    name = function.upper()
    return NumberTooLargeError(
        f"{name} over all matches is beyond 64 bits.",
        hint=f"`DIGITS({name}({'*' if name == 'COUNT' else 'b.x'}))` gives all of its digits as text.",
    )


def digits(value: int) -> str:
    """A whole number as decimal text, however long.

    Examples
    --------
    >>> digits(-(10**5000)) == "-1" + "0" * 5000
    True
    """
    # Python refuses to write long numbers in one piece, because the time it takes grows with the square of the length.
    if value < 0:
        return "-" + digits(-value)
    if value < 10**4000:
        return str(value)
    half = value.bit_length() * 1233 // 4096 // 2  # about half of its digits
    high, low = divmod(value, 10**half)
    return digits(high) + digits(low).rjust(half, "0")
