"""`:`: each part begins at the position after the one where the part before it ends."""

from __future__ import annotations

from tocsin.algebra import nodes as alg
from tocsin.automata.construct.sequence import chain
from tocsin.automata.draft import Draft, Scope


def adjacent(node: alg.Adjacent, scope: Scope) -> Draft:
    """The parts one after the other, with nothing between."""
    return chain([scope.part(part) for part in node.parts], None, scope)
