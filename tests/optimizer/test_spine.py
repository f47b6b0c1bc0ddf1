"""Walks over patterns reach every node."""

from __future__ import annotations

from tests.rules.test_engines import compiled

from tocsin.algebra import nodes as alg
from tocsin.optimizer.query_parts import map_nodes


def test_a_change_reaches_what_stands_below_gatherings() -> None:
    program = compiled(
        """template A { x : Integer }  template B { x : Integer }
        rule R where a : A  all b : B { x = a.x }  all c : B { x > a.x }
        when all b in a [0 s, 5 s]  all c in a [0 s, 5 s]"""
    )
    pattern = program.program.rules[0].query.pattern
    seen: list[alg.Node] = []

    def note(node: alg.Node) -> alg.Node:
        seen.append(node)
        return node

    assert map_nodes(pattern, note) is pattern
    assert len(seen) == len(list(pattern.walk()))
    assert sum(isinstance(node, alg.Gather) for node in seen) == 2
