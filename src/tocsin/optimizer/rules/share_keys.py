"""Test an equality that follows from others as soon as both its variables are there.

In `SEQ(A a, B b, C c) WHERE a.k = c.k AND c.k = b.k` nothing connects a and b before c comes; `a.k = b.k` follows, and
keeps the pairs of other keys from being built. Only such equalities are added: one that connects variables already
connected by those before would be work for nothing.
"""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.analysis.keys import Equality, KeyClass, Member, keys
from tocsin.analysis.temporal import Facts
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.optimizer.query_parts import is_plain, map_nodes, plain_equality
from tocsin.optimizer.rules.rule import NO_FACTS


def share_keys(query: alg.Query, facts: Facts = NO_FACTS) -> alg.Query:
    """Add the equalities that connect a variable to earlier ones.

    Sound because `analysis.keys` finds only equalities that hold in every match that binds both variables, and none
    through values of different types, where rounding breaks the chain: so it needs schemas. It does nothing under
    `next`, where a further condition would let an event block less (R2), nor with time-outs, whose matches lack the
    variable in the middle.
    """
    schemas = facts.schemas
    if schemas is None or query.selection is Selection.NEXT or query.timeouts or not is_plain(query):
        return query
    if not set(alg.event_types(query.pattern)) <= set(schemas):
        return query
    order = list(query.variables)
    written = {plain_equality(conjunct) for conjunct in query.conjuncts} - {None}
    added = [
        equality
        for each in keys(query, schemas).classes
        for equality in _missing(each, {pair for pair in written if pair is not None}, order)
    ]
    if not added:
        return query
    new = [ex.Comparison("=", ex.Attribute(one[0], one[1]), ex.Attribute(other[0], other[1])) for one, other in added]
    # All conjuncts stand in one Filter at the top.
    top = next(node for node in query.pattern.walk() if isinstance(node, alg.Filter))

    def change(node: alg.Node) -> alg.Node:
        if isinstance(node, alg.Filter) and node == top:
            return replace(node, condition=ex.all_of(node.condition, *new))
        return node

    return replace(query, pattern=map_nodes(query.pattern, change))


def _missing(known: KeyClass, written: set[frozenset[Member]], order: list[str]) -> list[Equality]:
    """One equality for each member that no chain of earlier ones connects to those before it."""
    added: list[Equality] = []
    members = sorted(known.members, key=lambda member: (order.index(member[0]), member[1]))
    equal = {frozenset(pair) for pair in known.equalities}
    for place, member in enumerate(members):
        before = [earlier for earlier in members[:place] if earlier[0] != member[0]]
        direct = [earlier for earlier in before if frozenset({earlier, member}) in written]
        follows = [earlier for earlier in before if frozenset({earlier, member}) in equal]
        if not direct and follows:
            added.append((follows[-1], member))
    return added
