"""Patterns that go on from events which were found before: the first parts of a conjunction are rows of a table.

The table is found once for all patterns that begin alike; each of them then loops over its rows as over any other's.
"""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.errors import unknown_node
from tocsin.kernels.expressions.slots import Test
from tocsin.kernels.search.program import Pick, Program, Search, Table, cut
from tocsin.language import expressions as ex
from tocsin.optimizer.shared_prefixes import parts_of


def beginning(core: alg.Node, size: int, tests: tuple[Test, ...], begun: int) -> Table:
    """The first `size` events of a conjunction, of which the first `begun` are in a table already."""
    parts = parts_of(core)
    node = alg.All(parts[:size])
    own = _within(tests, node)
    if not begun:
        return Table(node, (Search(node, own),))
    known = alg.All(parts[:begun])
    rest = alg.All((_pick(known), *parts[begun:size]))
    return Table(node, (Search(rest, tuple(test for test in own if test not in _within(tests, known))),))


def begun_program(core: alg.Node, tests: tuple[Test, ...], size: int) -> Program:
    """The program of a pattern whose first events are given as the rows of its first table."""
    known = alg.All(parts_of(core)[:size])
    left = tuple(test for test in tests if test not in _within(tests, known))
    begun = Program(alg.variables_of(core), [Table(known, ())], given=1)
    return cut(_replaced(core, size, _pick(known)), left, begun)


def _pick(known: alg.All) -> Pick:
    return Pick(0, tuple(alg.variables_of(known)))


def _replaced(core: alg.Node, size: int, pick: Pick) -> alg.Node:
    """The pattern with a row of a table in place of its first events."""
    match core:
        case alg.Around():
            return replace(core, part=_replaced(core.part, size, pick))
        case alg.All():
            return replace(core, parts=(pick, *core.parts[size:]))
        case _:
            raise unknown_node(core, "The search of begun matches")


def _within(tests: tuple[Test, ...], node: alg.Node) -> tuple[Test, ...]:
    """The conjuncts that some events decide by themselves."""
    inside = alg.variables_of(node).keys()
    return tuple(test for test in tests if test.references and ex.variables_in(test.conjunct) <= inside)
