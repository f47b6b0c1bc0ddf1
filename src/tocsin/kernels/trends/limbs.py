"""Natural numbers of many digits inside long arrays, for compiled code: digits of 32 bits in 64, the lowest first.

A number is an array and the place where it begins. Each has the same room, which the caller has made large enough;
`used` says how many digits may be other than 0 in any of the numbers at hand. (A slice for each number would be nicer
to read, and cost several times as much as the addition.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

DIGIT = 32
MASK = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(DIGIT)
NOTHING = np.uint64(0)

Array = Any


def add(into: Array, at: int, other: Array, of: int, used: int) -> int:
    """To a number add another one, of at most `used` digits; gives how many may be used then."""
    carry = NOTHING
    for place in range(used):
        value = into[at + place] + other[of + place] + carry
        into[at + place] = value & MASK
        carry = value >> SHIFT
    while carry != NOTHING:
        value = into[at + used] + carry
        into[at + used] = value & MASK
        carry = value >> SHIFT
        used += 1
    return used


def add_product(into: Array, at: int, one: Array, first: int, one_used: int, other: Array, of: int, used: int) -> int:
    """To a number with room for it add one · other; gives how many digits may be used then."""
    # `used` speaks of the longest number at hand; taken for the length of this one, it would grow with every product.
    while used > 0 and other[of + used - 1] == NOTHING:
        used -= 1
    end = 0
    for low in range(one_used):
        digit = one[first + low]
        if digit == NOTHING:
            continue
        carry = NOTHING
        place = low
        for high in range(used):
            value = into[at + place] + digit * other[of + high] + carry
            into[at + place] = value & MASK
            carry = value >> SHIFT
            place += 1
        while carry != NOTHING:
            value = into[at + place] + carry
            into[at + place] = value & MASK
            carry = value >> SHIFT
            place += 1
        end = max(end, place)
    return end


def is_zero(number: Array, at: int, used: int) -> bool:
    """Whether all digits are 0."""
    for place in range(used):  # noqa: SIM110 - compiled code has no generators
        if number[at + place] != NOTHING:
            return False
    return True


HELPERS = {"add": add, "add_product": add_product, "is_zero": is_zero}


def to_int(digits: Array) -> int:
    """As Python's own.

    Examples
    --------
    >>> to_int(np.array([1, 1], np.uint64))
    4294967297
    """
    return int.from_bytes(np.asarray(digits).astype("<u4").tobytes(), "little")
