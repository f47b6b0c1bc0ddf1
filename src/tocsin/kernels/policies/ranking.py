"""The order of R5 over matches: first position, last position, the list of positions, the list of bindings.

Lists are compared only among matches that numbers leave tied.

code        meaning
----        -------
rank        of an element, how many are strictly before it; tied elements have the same
"""

from __future__ import annotations

import numpy as np

from tocsin.kernels.model import Integers, Mask
from tocsin.kernels.policies.flat import Flat


def ranks(*keys: Integers) -> Integers:
    """The rank of each element by several keys, the first key first.

    Examples
    --------
    >>> ranks(np.array([7, 3, 7, 7]), np.array([1, 5, 0, 1])).tolist()
    [2, 0, 1, 2]
    """
    by = np.lexsort(keys[::-1])
    found = np.empty(len(by), dtype=np.int64)
    found[by] = _starts_of_runs(_is_new(*(key[by] for key in keys)))
    return found


def refined(known: Integers, offsets: Integers, values: Integers) -> Integers:
    """Ranks with their ties broken by lists of numbers ≥ 0, as Python compares lists.

    `known` are ranks, or any numbers with a gap after each that holds its ties. The list of element i is
    `values[offsets[i]:offsets[i + 1]]`.

    Examples
    --------
    >>> refined(np.array([0, 0, 0, 3]), np.array([0, 2, 3, 5, 6]), np.array([4, 6, 4, 4, 5, 1])).tolist()
    [2, 0, 1, 3]
    """
    found = known.copy()
    _, inverse, counts = np.unique(known, return_inverse=True, return_counts=True)
    tied: Integers = np.flatnonzero(counts[inverse.reshape(-1)] > 1)
    step = 0
    while len(tied):
        where = offsets[tied] + step
        inside = where < offsets[tied + 1]
        keys = np.full(len(tied), -1, dtype=np.int64)  # a list that is over is before every longer one
        keys[inside] = values[where[inside]]
        by = np.lexsort((keys, found[tied]))
        tied, keys = tied[by], keys[by]
        old = found[tied]
        is_new = _is_new(old, keys)
        runs = _starts_of_runs(is_new)
        found[tied] = old + runs - _starts_of_runs(_is_new(old))
        sizes = np.diff(np.append(np.flatnonzero(is_new), len(tied)))
        tied = tied[(np.repeat(sizes, sizes) > 1) & (keys >= 0)]
        step += 1
    return found


def in_order(view: Flat) -> Integers:
    """The indices of matches by group, then in the order of R5; no two may have the same bindings."""
    return np.argsort(_with_lists(ranks(view.groups, view.first, view.last), view), kind="stable")


def best(view: Flat, group: tuple[Integers, ...], *keys: Integers) -> Integers:
    """In each group, the index of the match with the least keys; ties are broken by the lists of R5.

    The keys must include what R5 compares before the lists and the group does not already fix.
    """
    by = np.lexsort((*keys[::-1], *group[::-1]))
    new_group = _is_new(*(one[by] for one in group))
    groups = _starts_of_runs(new_group)
    runs = _starts_of_runs(new_group | _is_new(*(key[by] for key in keys)))
    least = runs == groups
    survivors, known = by[least], groups[least]
    return np.sort(survivors[_with_lists(known, view.take(survivors)) == known])


def _with_lists(known: Integers, view: Flat) -> Integers:
    return refined(refined(known, *view.events), view.offsets, view.bindings)


def _is_new(*sorted_keys: Integers) -> Mask:
    """Whether each element differs from the one before it."""
    found: Mask = np.zeros(len(sorted_keys[0]), dtype=np.bool_)
    found[:1] = True
    for key in sorted_keys:
        found[1:] |= key[1:] != key[:-1]
    return found


def _starts_of_runs(is_new: Mask) -> Integers:
    """For each element the index at which its run of equal ones begins."""
    return np.maximum.accumulate(np.where(is_new, np.arange(len(is_new), dtype=np.int64), 0))
