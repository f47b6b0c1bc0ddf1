"""A rewrite rule: a name, a sentence, and a function from a query to a query that means the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tocsin.algebra import nodes as alg
from tocsin.analysis.temporal import Facts

NO_FACTS = Facts()


@dataclass(frozen=True)
class Rule:
    """A rewrite rule."""

    name: str  # that of its module
    summary: str  # what it does, for `explain()`
    # Returns a query with the same matches on every stream, under every policy, with the same columns and ids. A query
    # that it cannot improve is returned unchanged.
    apply: Callable[[alg.Query, Facts], alg.Query] = field(repr=False)
