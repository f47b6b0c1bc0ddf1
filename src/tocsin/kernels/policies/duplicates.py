"""The same bindings once, however many branches and derivations found them (SEMANTICS §2, R34)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels.matches import take
from tocsin.kernels.model import Integers, Matches, Rows
from tocsin.kernels.policies.flat import Flat, flatten
from tocsin.kernels.policies.ranking import ranks, refined


def distinct(matches: Matches) -> Matches:
    """Matches without those whose bindings an earlier one has; floors do not tell them apart."""
    if len(matches) < 2:
        return matches
    nowhere = np.empty(0, dtype=np.int64)
    kept = first_of_equals(flatten(matches, Rows(nowhere, nowhere), needs_order=False))
    return matches if len(kept) == len(matches) else take(matches, kept)


def first_of_equals(view: Flat) -> Integers:
    """The indices of the matches whose bindings no earlier match has, in their order.

    Different numbers prove different bindings; only matches with the same number are compared, and these exactly.
    """
    codes = view.rows * len(view.names) + view.variables
    numbers = np.add.reduceat(_mixed(codes), view.offsets[:-1]).view(np.int64) if len(view) else view.start
    known = ranks(numbers)
    _, inverse, counts = np.unique(known, return_inverse=True, return_counts=True)
    doubtful = np.flatnonzero(counts[inverse.reshape(-1)] > 1)
    if not len(doubtful):
        return np.arange(len(view), dtype=np.int64)
    tied = view.take(doubtful)
    exact = refined(known[doubtful], tied.offsets, tied.rows * len(tied.names) + tied.variables)
    repeated = np.ones(len(doubtful), dtype=np.bool_)
    repeated[np.unique(exact, return_index=True)[1]] = False
    return np.delete(np.arange(len(view), dtype=np.int64), doubtful[repeated])


def _mixed(codes: Integers) -> NDArray[np.uint64]:
    """Numbers whose sums rarely agree by chance: the finisher of SplitMix64."""
    bits = codes.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = bits ^ (bits >> np.uint64(31))
    return mixed
