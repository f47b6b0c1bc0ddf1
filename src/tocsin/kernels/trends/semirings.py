"""Numbers of any length in compiled code: one set of loops over four semirings.

A *sum* describes a set of paths. It holds `size` numbers, the count of the paths and a total per measure, and each
number has `width` places:

semiring    number                                                plus      times    zero       one
--------    ------                                                ----      -----    ----       ---
INTEGERS    the number itself, a Python int or an int64            a + b     a · b    0          1
DOUBLES     the number itself, rounded beyond 2⁵³                  a + b     a · b    0          1
RESIDUES    its residues modulo `width` primes of 31 bits          a + b     a · b    0          1, as 2³²
KEYS        the rank of a value; the least one counts              min       a + b    ABSENT     0

A total of a path followed by another one is t · c' + c · t', where c is the count: the same formula adds up values over
all matches and, over KEYS, finds the least key of any event. A path of one event has the count 1 and its weights.

An int64 is a residue modulo 2⁶⁴, so that only results must fit, and no intermediate number. Larger results come from
residues and the Chinese remainder theorem. Montgomery's form keeps a · 2³² for a, so that products need no division.

`add`, `extend` and `join` are compiled together with the search that calls them, and run as plain Python over lists.
All sums of a search stand in one array `n`, which begins with the modulus of every place of its longest row: a call
costs more with every array it is given.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels import compile

Array = Any
Shape = tuple[int, int, int]
PRIME_BITS = 30.99  # of every prime used, at least
ABSENT, NO_KEY = 2**61, 2**60  # no path; a path without a value
ZERO = 0


@dataclass(frozen=True)
class Semiring:
    """The operations on single numbers, as text. The names in `text` replace those of this module."""

    zero: int
    one: int
    text: str
    collected: str = "collected = plus"


_RING = """
@compiled
def plus(a, b, m):
    return a + b


@compiled
def times(a, b, m, k):
    return a * b
"""
# A double comes to an integer.
_COLLECTED = """
@compiled
def collected(a, b, m):
    return a + int(b) if abs(b) < 2.0**53 else a
"""
INTEGERS = Semiring(0, 1, _RING)
DOUBLES = Semiring(0, 1, _RING, _COLLECTED)
RESIDUES = Semiring(
    0,
    2**32,
    """
@compiled
def plus(a, b, m):
    value = np.uint32(a + b)
    return np.uint32(value - m) if value >= m else value


@compiled
def times(a, b, m, k):
    product = np.uint64(a) * np.uint64(b)
    factor = np.uint64(np.uint32(product) * np.uint64(k)) & np.uint64(0xFFFFFFFF)
    value = np.uint32((product + factor * np.uint64(m)) >> np.uint64(32))
    return np.uint32(value - m) if value >= m else value
""",
)
KEYS = Semiring(
    ABSENT,
    0,
    """
@compiled
def plus(a, b, m):
    return min(a, b)


@compiled
def times(a, b, m, k):
    return min(a + b, ABSENT)
""",
)
PLAIN = """
unsigned = int


def room(size, head):
    return [*head, *[ZERO] * (size - len(head))]
"""
# Compiled code checks of a signed index whether it counts from the end, and then handles one number at a time.
COMPILED = """
unsigned = np.uint64


@compiled
def room(size, head):
    n = np.full(size, ZERO, head.dtype)
    n[: len(head)] = head
    return n
"""


# --- loops over numbers ---------------------------------------------------------------------------


def _unwritten(*arguments: Any) -> Any:
    """Stand for a function that is written anew for each semiring and query.

    name            what it returns
    ----            ---------------
    plus(a, b, m)   a + b modulo m
    times(…, k)     a · b modulo m; k is −1/m modulo 2³²
    collected(…)    a result with another number added; exact where a double comes to an integer
    room(size, …)   an array of zeros that begins with some numbers
    unsigned(i)     an index that never counts from the end
    fits(v, e, …)   whether a variable may hold two events as neighbours
    """
    raise NotImplementedError


plus = times = collected = room = unsigned = fits = _unwritten


def fill(n: Array, at: int, length: int) -> None:
    """Make some places zero."""
    begin = unsigned(at)
    for place in range(unsigned(length)):
        n[begin + place] = ZERO


def add(n: Array, to: int, of: int, length: int) -> None:
    """To some places add others; the modulus of each stands at the beginning of the array."""
    begin, source = unsigned(to), unsigned(of)
    for place in range(unsigned(length)):
        n[begin + place] = plus(n[begin + place], n[source + place], n[place])


def extend(
    n: Array, to: int, of: int, sums: int, event: int, symbol: int, weights: Array, fields: Array, shape: Shape
) -> None:
    """Write to one place some sums of another, with an event more in every path, as a symbol.

    `fields` has for each total the symbols it weighs, as bits, and where its `weights` begin; −1: every weight is 1.
    `shape` is `size`, `width`, and where −1/m modulo 2³² stands for each modulus m.
    """
    size, width, inverses = shape
    inverse = unsigned(inverses)
    for each in range(sums):
        first = each * size * width
        count, counted = unsigned(of + first), unsigned(to + first)
        for place in range(unsigned(width)):
            n[counted + place] = n[count + place]
        for number in range(1, size):
            total, into = unsigned(of + first + number * width), unsigned(to + first + number * width)
            if (fields[2 * number - 2] >> symbol) & 1 == 0:
                for place in range(unsigned(width)):
                    n[into + place] = n[total + place]
            elif fields[2 * number - 1] < 0:
                for place in range(unsigned(width)):
                    n[into + place] = plus(n[total + place], n[count + place], n[place])
            else:
                weight = unsigned(fields[2 * number - 1] + event * width)
                for place in range(unsigned(width)):
                    more = times(weights[weight + place], n[count + place], n[place], n[inverse + place])
                    n[into + place] = plus(n[total + place], more, n[place])


def collect(o: Array, at: int, n: Array, of: int, length: int) -> None:
    """To a result add a sum."""
    begin, source = unsigned(at), unsigned(of)
    for place in range(unsigned(length)):
        o[begin + place] = collected(o[begin + place], n[source + place], n[place])


def join(o: Array, at: int, n: Array, left: int, right: int, shape: Shape) -> None:
    """To a result add every path of one sum followed by every path of another."""
    size, width, inverses = shape
    count, one, other, inverse = unsigned(at), unsigned(left), unsigned(right), unsigned(inverses)
    for place in range(unsigned(width)):
        more = times(n[one + place], n[other + place], n[place], n[inverse + place])
        o[count + place] = collected(o[count + place], more, n[place])
    for number in range(1, size):
        shift = unsigned(number * width)
        for place in range(unsigned(width)):
            before = times(n[one + shift + place], n[other + place], n[place], n[inverse + place])
            behind = times(n[one + place], n[other + shift + place], n[place], n[inverse + place])
            more = plus(before, behind, n[place])
            o[count + shift + place] = collected(o[count + shift + place], more, n[place])


def function(search: Callable[..., Any], semiring: Semiring, fits: str, *, jit: bool) -> Callable[..., Any]:
    """A search over a semiring, compiled or as plain Python; `fits` is the text that compares two events."""
    library, text = _texts(search, semiring, jit)
    return compile.fast(f"{fits}\n\n{text}", library) if jit else compile.plain(f"{library}{fits}\n\n{text}")


@cache
def _texts(search: Callable[..., Any], semiring: Semiring, jit: bool) -> tuple[str, str]:
    """The loops of this module, and the text of a search."""
    names = {name: value for name, value in vars(inspect.getmodule(search)).items() if type(value) is int}
    constants = {**names, "ZERO": semiring.zero, "ABSENT": ABSENT, "Array": "object", "Shape": "object"}
    head = "\n".join(f"{name} = {value}" for name, value in constants.items())
    loops, text = (
        [f"@compiled\n{inspect.getsource(each)}" for each in some]
        for some in ((fill, add, extend, collect, join), (search,))
    )
    return "\n\n".join([head, COMPILED if jit else PLAIN, semiring.text, semiring.collected, *loops, ""]), text[0]


# --- residues -------------------------------------------------------------------------------------


@cache
def _sieved(count: int) -> list[int]:
    """At least so many of the largest primes below 2³¹, the largest first."""
    span = 64 * count + 4096
    low = 2**31 - span
    small = np.ones(46_342, np.bool_)
    small[:2] = False
    is_prime = np.ones(span, np.bool_)
    for factor in range(2, len(small)):
        if small[factor]:
            small[factor * factor :: factor] = False
            is_prime[-low % factor :: factor] = False
    return [low + int(place) for place in np.flatnonzero(is_prime)[::-1]]


def primes(count: int) -> list[int]:
    """The largest primes below 2³¹."""
    return _sieved(1 << (count - 1).bit_length())[:count]


def width_for(bits: int) -> int:
    """How many primes tell numbers of so many bits, and their negatives, apart."""
    return math.floor((bits + 1) / PRIME_BITS) + 1


def residues(mantissas: NDArray[np.int64], shifts: NDArray[np.int64], chosen: Sequence[int]) -> NDArray[np.uint32]:
    """Integers m · 2^shift as residues modulo some primes, in Montgomery's form: (numbers, primes)."""
    most = int(shifts.max(initial=0))
    found = np.empty((len(mantissas), len(chosen)), np.uint32)
    for place, prime in enumerate(chosen):
        powers = np.empty(most + 1, np.int64)
        powers[0] = 2**32 % prime
        for shift in range(most):
            powers[shift + 1] = powers[shift] * 2 % prime
        found[:, place] = mantissas % prime * powers[shifts] % prime
    return found


@cache
def _tree(width: int) -> tuple[NDArray[np.uint64], list[list[int]]]:
    """The factor of each residue, and the products of neighbouring primes, level by level."""
    levels = [primes(width)]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([math.prod(below[place : place + 2]) for place in range(0, len(below), 2)])
    whole = levels[-1][0]
    factors = [pow(2**32 * (whole % prime**2 // prime), -1, prime) for prime in levels[0]]
    return np.array(factors, np.uint64), levels


def integers(found: NDArray[np.uint32]) -> list[int]:
    """Integers from their residues modulo the first primes (Chinese remainder theorem)."""
    factors, levels = _tree(found.shape[1])
    scaled = found.astype(np.uint64) * factors % np.array(levels[0], np.uint64)
    whole = levels[-1][0]
    numbers = []
    for parts in scaled.tolist():
        sums = parts
        for products in levels[:-1]:
            pairs = zip(sums[::2], sums[1::2], products[::2], products[1::2], strict=False)
            sums = [one * right + other * left for one, other, left, right in pairs] + sums[len(sums) & ~1 :]
        value = sums[0] % whole
        numbers.append(value - whole if 2 * value > whole else value)
    return numbers
