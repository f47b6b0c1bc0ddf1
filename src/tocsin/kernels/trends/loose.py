"""Sums of long numbers whose digits may wait to be carried, for compiled code.

A sum is a count and its totals, numbers of digits of 32 bits in 64, the lowest first. A digit may be larger, or
negative, as long as the number as a whole is right: then sums and differences have no carry from digit to digit, and a
processor adds several digits at a time. All sums stand in one array; a sum begins, at a place of this array, with

high    no digit of its numbers is farther from 0
used    how many digits of them may be other than 0

and its numbers follow, with `room` digits each. `settle` carries, once `high` says that it is time; a number that fits
into one digit keeps it whole.

Every function here is compiled together with those that call it. The ones that may need more digits than there is room
for say whether they had it. (Loops are written out where they are needed: a call for each number would cost several
times as much as the addition.)
"""

from __future__ import annotations

from typing import Any

DIGIT = 32
MASK = 0xFFFFFFFF
HALF = 1 << 31
HALF_DIGIT, HALF_MASK = 16, 0xFFFF
HEAD = 2  # `high` and `used`
SINGLE = 1 << 40  # numbers below it need no second digit
LIMIT = 1 << 61
MOST_TIMES = 1 << 20  # SINGLE · MOST_TIMES is below LIMIT
LIGHT = 1 << 16  # some weights below it are together below MOST_TIMES

Array = Any


def settle(n: Array, at: int, size: int, room: int) -> bool:
    """Carry in all numbers of a sum, so that their digits have 32 bits; unless they fit into one."""
    digits = n[at + 1]
    if digits == 1:
        high = 0
        for number in range(size):
            high = max(high, abs(n[at + HEAD + number * room]))
        if high < SINGLE:
            n[at] = high
            return True
    longest = 1
    for number in range(size):
        first = at + HEAD + number * room
        carry = 0
        for place in range(first, first + digits):
            value = n[place] + carry
            n[place] = value & MASK
            carry = value >> DIGIT
        place = first + digits
        while carry != 0:
            if place == first + room:
                return False
            n[place] = carry & MASK
            carry >>= DIGIT
            place += 1
        while place > first + longest and n[place - 1] == 0:
            place -= 1
        longest = max(longest, place - first)
    n[at] = MASK
    n[at + 1] = longest
    return True


def clear(n: Array, at: int, size: int, room: int) -> None:
    """Make it 0."""
    for number in range(size):
        first = at + HEAD + number * room
        for place in range(first, first + n[at + 1]):
            n[place] = 0
    n[at] = 0
    n[at + 1] = 1


def add_product(n: Array, to: int, number: int, of: int, factor: int, shift: int, size: int, room: int) -> bool:
    """To a total of a sum add the count of one, maybe the same, times a factor of 32 bits or its negative.

    The product counts from the digit `shift` on.
    """
    if n[of] > SINGLE and not settle(n, of, size, room):
        return False
    if n[of + 1] + shift >= room:
        return False
    sign = 1 if factor > 0 else -1
    low, up = abs(factor) & HALF_MASK, abs(factor) >> HALF_DIGIT
    more = low * n[of] + MASK + ((up * n[of]) >> HALF_DIGIT) + 1
    if n[to] + more > LIMIT and not settle(n, to, size, room):
        return False
    digits = n[of + 1]
    into, source = to + HEAD + number * room + shift, of + HEAD
    # The upper half of the factor counts from the middle of a digit on: its product is cut there.
    for place in range(digits):
        value = n[source + place]
        n[into + place] += sign * (low * value + (((up * value) & HALF_MASK) << HALF_DIGIT))
    for place in range(digits):
        n[into + place + 1] += sign * ((up * n[source + place]) >> HALF_DIGIT)
    n[to] += more
    n[to + 1] = max(n[to + 1], digits + shift + 1)
    return True


def add_weight(n: Array, to: int, number: int, weight: int, place: int, size: int, room: int) -> bool:
    """To a digit of a total add a number of 32 bits or its negative."""
    if place >= room or (n[to] > LIMIT and not settle(n, to, size, room)):
        return False
    n[to + HEAD + number * room + place] += weight
    n[to] += abs(weight)
    n[to + 1] = max(n[to + 1], place + 1)
    return True


def divide(n: Array, at: int, first: int, last: int, divisor: int, room: int) -> None:
    """Divide the numbers of a sum from `first` to `last` − 1 by a divisor of each; settled, unless it is 2."""
    digits = n[at + 1]
    for number in range(first, last):
        begin = at + HEAD + number * room
        end = begin + digits - 1
        if divisor == 2:
            for place in range(begin, end):
                n[place] = (n[place] >> 1) + ((n[place + 1] & 1) << (DIGIT - 1))
            n[end] >>= 1
        else:
            rest = 0
            for place in range(end, begin - 1, -1):
                value = (rest << DIGIT) + n[place]
                n[place] = value // divisor
                rest = value % divisor


FUNCTIONS = (settle, clear, add_product, add_weight, divide)


def to_int(digits: Array) -> int:
    """As Python's own.

    Examples
    --------
    >>> to_int([1, -1, 1]) == 1 - 2**32 + 2**64
    True
    """
    return sum(int(digit) << (DIGIT * place) for place, digit in enumerate(digits))
