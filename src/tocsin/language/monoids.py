"""Aggregates that users bring: a commutative monoid, what goes into it and what comes out (SEMANTICS §3 note 5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tocsin import errors
from tocsin.language.functions import AGGREGATES, FUNCTIONS


def _itself(value: Any) -> Any:
    return value


@dataclass(frozen=True, eq=False, kw_only=True)
class Monoid:
    """An aggregate of your own: every value is lifted, all are combined, and the result is finished.

    Parameters
    ----------
    zero
        The result of nothing: `combine(zero, x)` is x.
    combine
        Joins two lifted values into a new one; in whatever order and grouping, so it must be commutative and
        associative, and change neither.
    lift
        What a value becomes first; itself when left out.
    finish
        What the combined value becomes last; itself when left out.
    gives
        Spark's name of the result's type, such as `"double"`; the type of the argument when left out.

    Examples
    --------
    >>> product = Monoid(zero=1, combine=lambda x, y: x * y)
    >>> product.fold([2, 3, 7]), product.fold([])
    (42, 1)
    >>> root_mean_square = Monoid(
    ...     zero=(0.0, 0),
    ...     lift=lambda x: (x * x, 1),
    ...     combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ...     finish=lambda total: (total[0] / total[1]) ** 0.5 if total[1] else None,
    ...     gives="double",
    ... )
    >>> root_mean_square.fold([3, 4, 5, 0])
    3.5355339059327378
    """

    zero: Any
    combine: Callable[[Any, Any], Any]
    lift: Callable[[Any], Any] = _itself
    finish: Callable[[Any], Any] = _itself
    gives: str | None = None

    def __post_init__(self) -> None:
        for name in ("combine", "lift", "finish"):
            if not callable(getattr(self, name)):
                raise errors.InvalidOptionError(
                    f"`{name}` of a Monoid is not a function.",
                    hint="write `tocsin.Monoid(zero=1, combine=lambda x, y: x * y)`.",
                )

    def fold(self, values: Iterable[Any]) -> Any:
        """The aggregate of values that are not NULL."""
        total = self.zero
        for value in values:
            total = self.combine(total, self.lift(value))
        return self.finish(total)


Monoids = Mapping[str, Monoid]


def registered(aggregates: Mapping[str, Monoid] | None) -> dict[str, Monoid]:
    """A user's aggregates by name in lower case, as texts are read; names ignore case there.

    Raises
    ------
    InvalidOptionError
        When a name is taken or no plain word, or what it names is no Monoid.
    """
    known: dict[str, Monoid] = {}
    for name, monoid in (aggregates or {}).items():
        if not isinstance(name, str) or not re.fullmatch(r"[^\W\d]\w*", name):
            raise errors.InvalidOptionError(
                f"An aggregate cannot be called {name!r}.", hint="a name has letters, digits and underscores."
            )
        if not isinstance(monoid, Monoid):
            raise errors.InvalidOptionError(
                f"The aggregate `{name}` is a {type(monoid).__name__}, not a Monoid.",
                hint="write `aggregates={'product': tocsin.Monoid(zero=1, combine=lambda x, y: x * y)}`.",
            )
        if name.lower() in known or name.lower() in (*AGGREGATES, *FUNCTIONS):
            raise errors.InvalidOptionError(
                f"There is a function `{name.lower()}` already.", hint="give the aggregate another name."
            )
        known[name.lower()] = monoid
    return known
