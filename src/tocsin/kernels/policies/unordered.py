"""`unordered`: of matches that differ only in which variable holds which event, the first by position (D37)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tocsin import errors
from tocsin.kernels.matches import take
from tocsin.kernels.model import Bag, Matches, Rows
from tocsin.kernels.policies.duplicates import first_of_equals
from tocsin.kernels.policies.flat import flatten


def one_of_each_set(matches: Matches, rows: Rows, names: Sequence[str]) -> Matches:
    """The first match of each set, in the order given; all matches of the rows must be here."""
    if len(matches) < 2:
        return matches
    if rows.order is None:
        raise errors.InternalError("`unordered` speaks of positions, and the rows have none.")
    single = [held for name in names if not isinstance(held := matches.events[name], Bag)]
    by = np.lexsort(rows.order[np.stack(single)][::-1])
    ordered = take(matches, by)
    alike = np.sort(np.stack([held[by] for held in single]), axis=0)
    sets = replace(ordered, events={**ordered.events, **dict(zip(names, alike, strict=True))})
    kept = by[first_of_equals(flatten(sets, rows, needs_order=False))]
    return matches if len(kept) == len(matches) else take(matches, np.sort(kept))
