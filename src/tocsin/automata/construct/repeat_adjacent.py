"""`@+`: copies of a part, each adjacent to the one before."""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.automata.construct.repeat import looped
from tocsin.automata.draft import Draft, Scope


def repeat_adjacent(node: alg.RepeatAdjacent, scope: Scope) -> Draft:
    """One or more copies with nothing between; an empty copy stands for none."""
    part = scope.part(node.part)
    return replace(looped(part, None, scope), may_be_empty=part.may_be_empty)
