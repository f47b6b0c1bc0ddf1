"""What is added up over many matches at once: a commutative semiring of (count, totals, extremes).

code        theory
----        ------
None        0: no match
Sum         over a set of words: how many, for each measure its total over all (word, event) pairs, and for each extreme
            the least key of an event in a word
plus        ⊕: the words of both sets
times       ⊗: every word of one set followed by every word of the other
after       one event before every word of a set

A total is a natural number: values are shifted and scaled to be one (see `measures`). An extreme is a natural number
too, the rank of a value, and the least of them counts; `NO_KEY` stands for "none".
"""

from __future__ import annotations

NO_KEY = 2**62
Sum = tuple[int, tuple[int, ...], tuple[int, ...]]


def one(totals: int, extremes: int) -> Sum:
    """The empty word alone."""
    return 1, (0,) * totals, (NO_KEY,) * extremes


def plus(left: Sum | None, right: Sum | None) -> Sum | None:
    """The words of both."""
    if left is None or right is None:
        return left if right is None else right
    return (
        left[0] + right[0],
        tuple(map(int.__add__, left[1], right[1])),
        tuple(map(min, left[2], right[2])),
    )


def times(left: Sum | None, right: Sum | None) -> Sum | None:
    """Every word of the left before every word of the right."""
    if left is None or right is None:
        return None
    totals = tuple(one * right[0] + left[0] * other for one, other in zip(left[1], right[1], strict=True))
    return left[0] * right[0], totals, tuple(map(min, left[2], right[2]))


def after(weights: tuple[int, ...], keys: tuple[int, ...], words: Sum | None) -> Sum | None:
    """One event, with its weights and keys, before every word."""
    if words is None:
        return None
    count = words[0]
    totals = tuple(total + weight * count for total, weight in zip(words[1], weights, strict=True))
    return count, totals, tuple(map(min, keys, words[2]))
