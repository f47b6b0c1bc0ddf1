"""Aggregates of a stretch of a list from its prefix sums, as statements of generated code.

What is asked of the events from `first` to `last`, exclusive, is a difference of two entries. A sum of doubles is
rounded once: each is held as four integers, so that their sums are exact. Where the rounding is too close to call, or a
value is no number, the events are added up one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels.expressions.folds import INDENT

LIMBS, LIMB_BITS = 4, 30
# A limb of 30 bits can be added so often that its sum is still a double without loss.
MOST_ROWS = 2**22
MOST_EXPONENT = 900
STEP = 2.0**-LIMB_BITS
SUMMED = frozenset({"count", "sum", "avg"})  # the aggregates that sums tell
RANGED = SUMMED | {"min", "max", "range"}  # and those that a table of extremes tells besides


@dataclass(frozen=True)
class Prefix:
    """The sums that are known of a column: of doubles or of integers, and whether some values are NULL."""

    is_double: bool
    is_nullable: bool

    def arrays(self, name: str) -> list[str]:
        """The arrays that hold them."""
        found = [f"known_{name}"] if self.is_nullable else []
        if not self.is_double:
            return [*found, f"sum_{name}"]
        return [*found, f"odd_{name}", f"scale_{name}", *(f"limb{place}_{name}" for place in range(LIMBS))]


def stretch_statements(
    function: str, prefix: Prefix, name: str, out: str, first: str, last: str, one_by_one: list[str]
) -> list[str]:
    """Statements that leave COUNT, SUM or AVG in `{out}` and `{out}_null`, as `fold_statements` does.

    `first` and `last` are the texts of the places where the stretch begins and ends. `one_by_one` are the statements
    that visit every event, for what the sums do not decide.
    """

    def between(array: str) -> str:
        return f"{array}_{name}[{last}] - {array}_{name}[{first}]"

    number = [f"{out}_n = {between('known') if prefix.is_nullable else f'{last} - {first}'}"]
    if function == "count":
        return [*number, f"{out} = {out}_n", f"{out}_null = False"]
    if not prefix.is_double:
        total = [f"{out} = {between('sum')}", f"{out}_null = False"]
        mean = [f"{out} = float({between('sum')}) / {out}_n if {out}_n > 0 else 0.0", f"{out}_null = {out}_n == 0"]
        return [*number, *(total if function == "sum" else mean)]
    limbs = ", ".join(between(f"limb{place}") for place in range(LIMBS))
    result = f"{out}_total" if function == "sum" else f"{out}_total / {out}_n if {out}_n > 0 else 0.0"
    return [
        *number,
        f"{out}_total, {out}_sure = rounded_limbs({limbs})",
        f"if {out}_sure and {between('odd')} == 0:",
        f"{INDENT}{out}_total *= scale_{name}[0]",
        f"{INDENT}{out} = {result}",
        f"{INDENT}{out}_null = {'False' if function == 'sum' else f'{out}_n == 0'}",
        "else:",
        *(f"{INDENT}{line}" for line in one_by_one),
    ]


def to_limbs(values: NDArray[np.generic]) -> tuple[list[NDArray[np.int64]], float] | None:
    """Doubles as four integers each, the first counting units of a scale: None when these do not hold all of them."""
    finite = np.where(np.isfinite(values), values, 0.0).astype(np.float64)
    if len(finite) > MOST_ROWS:
        return None
    largest = float(np.abs(finite).max()) if len(finite) else 0.0
    exponent = int(np.frexp(largest)[1])
    if abs(exponent) > MOST_EXPONENT:
        return None
    scale = 2.0 ** (exponent - LIMB_BITS)
    left, limbs = finite / scale, []
    for _ in range(LIMBS):
        limb = np.trunc(left)
        limbs.append(limb.astype(np.int64))
        left = (left - limb) * 2.0**LIMB_BITS
    return None if np.any(left) else (limbs, scale)


def rounded_limbs(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    """The double nearest to `a + b / 2**30 + c / 2**60 + d / 2**90`, and whether it surely is; none has over 53 bits.

    Numbers, or arrays of them.
    """
    high, middle = a * 1.0, b * STEP
    low, lowest = c * STEP * STEP, d * STEP * STEP * STEP
    # Each sum of two with what its rounding has lost, which is a double too.
    one = high + middle
    part = one - high
    lost = (high - (one - part)) + (middle - part)
    two = lost + low
    part = two - lost
    last = (lost - (two - part)) + (low - part)
    both = one + two
    part = both - one
    rest = (one - (both - part)) + (two - part)
    tail = last + lowest
    left = rest + tail
    total = both + left
    part = total - both
    error = (both - (total - part)) + (left - part)
    doubt = (abs(left) + abs(tail)) * 2.0**-52
    return total, (total + (error + doubt) == total) & (total + (error - doubt) == total)


HELPERS = {"rounded_limbs": rounded_limbs}
