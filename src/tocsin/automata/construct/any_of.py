"""OR: one part or another."""

from __future__ import annotations

from tocsin.algebra import nodes as alg
from tocsin.automata.draft import Draft, Scope


def any_of(node: alg.Any, scope: Scope) -> Draft:
    """The steps of all parts: they share START and END and nothing between."""
    parts = [scope.part(part) for part in node.parts]
    return Draft(
        tuple(dict.fromkeys(step for part in parts for step in part.steps)),
        may_be_empty=any(part.may_be_empty for part in parts),
    )
