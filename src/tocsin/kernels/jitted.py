"""What generated files import: the helpers compiled by numba. Imported only where numba is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from tocsin.expressions import numeric
from tocsin.kernels.compile import CONSTANTS
from tocsin.kernels.expressions import prefixes
from tocsin.kernels.kept import KeptFunction
from tocsin.kernels.links import steps
from tocsin.kernels.search import helpers
from tocsin.kernels.trends import limbs


def _compiled(functions: dict[str, Any]) -> dict[str, Any]:
    """Compiled helpers that call each other by name."""
    return {name: numba.njit(function) for name, function in functions.items()}


def compiled(function: Callable[..., Any]) -> Any:
    """A function that numba compiles, and whose compiled forms are kept."""
    dispatcher: Any = numba.njit(nogil=True)(function)
    dispatcher._cache = KeptFunction(function)
    return dispatcher


globals().update(CONSTANTS)
_functions = {**numeric.HELPERS, **prefixes.HELPERS, **helpers.HELPERS, **limbs.HELPERS, **steps.HELPERS}
globals().update(_compiled(_functions))
__all__ = ["compiled", *CONSTANTS, *_functions]  # noqa: PLE0604
