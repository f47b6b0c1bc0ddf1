"""Split the stream by an attribute that conditions make equal in all events of a match.

`SEQ(A a, B b) WHERE a.user = b.user` has matches within one user only, like `PARTITION BY user`; written that way, the
events of each user are looked at by themselves, and the equality need not be tested any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema
from tocsin.analysis.keys import Path, bound_together, keys
from tocsin.analysis.temporal import Facts
from tocsin.analysis.types import Kind
from tocsin.language import expressions as ex
from tocsin.optimizer.query_parts import is_free, is_plain, map_nodes, plain_equality
from tocsin.optimizer.rules.rule import NO_FACTS

# What is equal by `=` is one key, and the other way round; of other types, as doubles, this is not so sure.
EXACT = frozenset({Kind.INTEGER, Kind.STRING, Kind.BOOLEAN, Kind.DATE})


def partition_by_keys(query: alg.Query, facts: Facts = NO_FACTS) -> alg.Query:
    """Turn equalities between all variables into `[k]`, and leave them out.

    Sound where a match depends on its own events only, so not under policies, whose positions and competitors are those
    of a partition (R11). Every match must bind two variables that are equated: an event alone may have no key. An
    absence must be of the same key too, as its own condition says.
    """
    schemas = facts.schemas
    if schemas is None or not is_plain(query) or not is_free(query):
        return query
    found = tuple(name for name in _shared(query, schemas) if _is_exact(query, name, schemas))
    if not found:
        return query
    partition = replace(query.partition, same=tuple(dict.fromkeys(query.partition.same + found)))
    return replace(query, partition=partition, pattern=map_nodes(query.pattern, lambda node: _without(node, found)))


def _shared(query: alg.Query, schemas: Mapping[str, Schema]) -> Iterator[str]:
    """The attributes that all events of a match have in common by conditions, those that would break it included."""
    together = bound_together(query)
    if any(len(each.sure) < 2 for each in together):
        return
    pairs = (pair for each in together for pair in combinations(each.variables, 2))
    for name in keys(query, schemas).shared_by(pairs):
        if all(_agrees(query, absence, (name,)) for absence in alg.absences_in(query.pattern)):
            yield name


def _agrees(query: alg.Query, absence: alg.Absent, path: Path) -> bool:
    """Whether only events of the match's key break it: by equality with a variable that every match binds."""
    pairs = {plain_equality(conjunct) for conjunct in ex.conjuncts(absence.condition)}
    sure = [name for name, kind in query.variables.items() if not kind.optional]
    return any(frozenset({(absence.variable, path), (name, path)}) in pairs for name in sure)


def _is_exact(query: alg.Query, name: str, schemas: Mapping[str, Schema]) -> bool:
    known = [schemas[each] for each in alg.event_types(query.pattern) if each in schemas]
    kinds = {schema.attributes[name].kind if name in schema.attributes else None for schema in known}
    return len(known) == len(alg.event_types(query.pattern)) and len(kinds) == 1 and kinds <= EXACT


def _without(node: alg.Node, names: tuple[str, ...]) -> alg.Node:
    """The node without the equalities that a partition by these attributes makes true."""
    if not isinstance(node, alg.Filter | alg.Absent):
        return node
    kept = [each for each in ex.conjuncts(node.condition) if not _is_implied(each, names)]
    if isinstance(node, alg.Filter):
        return replace(node, condition=ex.all_of(*kept)) if kept else node.part
    return replace(node, condition=ex.all_of(*kept) if kept else None)


def _is_implied(conjunct: ex.Expression, names: tuple[str, ...]) -> bool:
    paths = {path for _, path in plain_equality(conjunct) or ()}
    return any(paths == {(name,)} for name in names)
