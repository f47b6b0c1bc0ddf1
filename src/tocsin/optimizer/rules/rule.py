"""A rewrite rule: a name, a sentence, and a function from a query to a query that means the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tocsin.algebra import nodes as alg
from tocsin.analysis.facts import Facts

NO_FACTS = Facts()


@dataclass(frozen=True)
class Rule:
    """A rewrite rule.

    Attributes
    ----------
    name
        Its name, that of its module.
    summary
        What it does, for `explain()`.
    apply
        Returns a query with the same matches on every stream, under every policy, with the same columns and ids. A
        query that it cannot improve is returned unchanged.
    """

    name: str
    summary: str
    apply: Callable[[alg.Query, Facts], alg.Query] = field(repr=False)
