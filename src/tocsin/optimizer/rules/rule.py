"""What a rewrite rule is: a name, a sentence, and a function from a query to a query that means the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema

Schemas = Mapping[str, Schema] | None


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
        Gives a query with the same matches on every stream, under every policy, with the same columns and ids. What it
        cannot improve it gives back unchanged. Schemas may be missing.
    """

    name: str
    summary: str
    apply: Callable[[alg.Query, Schemas], alg.Query] = field(repr=False)
