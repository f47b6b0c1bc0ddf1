"""Output modes: one match per first or per last event (R31)."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from tocsin.kernels.model import Integers
from tocsin.kernels.policies.flat import Flat
from tocsin.kernels.policies.ranking import best
from tocsin.language.ast import Output


def reported(output: Output, view: Flat) -> Integers:
    """The indices of the matches that a mode reports, in their order; no two may have the same bindings."""
    by_start, by_end = (view.groups, view.first), (view.groups, view.last)
    match output:
        case Output.FIRST_PER_START:
            return best(view, by_start, view.last)
        case Output.FIRST_PER_END:
            return best(view, by_end, view.first)
        case Output.LAST_PER_START:
            return best(view, by_start, -view.end, view.last)
        case Output.LAST_PER_END:
            return best(view, by_end, -view.start, view.first)
        case Output.LONGEST:
            return best(view, by_start, -view.sizes, view.last)
        case Output.ALL | Output.COUNT:
            return np.arange(len(view), dtype=np.int64)
        case _:
            assert_never(output)
