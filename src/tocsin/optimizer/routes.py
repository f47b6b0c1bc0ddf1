"""Keys under different names: `b.originator = a.destination` splits the stream as `PARTITION BY` does.

An event that may be bound to both variables belongs to two parts of the stream, that of its originator and that of
its destination. So this is no rewriting of a query, which speaks of one stream: a plan that shuffles may send such an
event twice. Nothing else changes: all events of a match, those that break it or are gathered for it included, agree on
the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema
from tocsin.analysis.keys import KeyClass, Member, keys
from tocsin.language import expressions as ex
from tocsin.optimizer.query_parts import PLAIN_NODES, is_free, plain_equality
from tocsin.optimizer.rules.partition_by_keys import EXACT

Attributes = Mapping[str, tuple[str, ...]]  # variable → attributes, as many for each


def crossed_keys(query: alg.Query, schemas: Mapping[str, Schema]) -> Attributes | None:
    """For every variable the attributes that are equal in all events of a match; None where there are none.

    The query has no partition of its own, and its matches depend on their own events only.
    """
    types = alg.event_types(query.pattern)
    if query.partition.attributes or not is_free(query) or not set(types) <= set(schemas):
        return None
    if not all(isinstance(node, (*PLAIN_NODES, alg.Gather)) for node in query.pattern.walk()):
        return None
    if any(isinstance(node, alg.Event) and node.type is None for node in query.pattern.walk()):
        return None
    found = [chosen for chosen in _candidates(query, schemas) if _is_exact(query, chosen, schemas)]
    if not found:
        return None
    return {name: tuple(chosen[name] for chosen in found) for name in found[0]}


def is_connected(query: alg.Query, schemas: Mapping[str, Schema]) -> bool:
    """Whether equalities connect all variables of a match, and each absence with it: every join has a key."""
    names = list(query.variables)
    found = keys(query, schemas)
    pairs = {frozenset(pair) for each in found.classes for pair in each.pairs}
    reached, waiting = set(names[:1]), names[:1]
    while waiting:
        name = waiting.pop()
        for other in names:
            if other not in reached and frozenset({name, other}) in pairs:
                reached.add(other)
                waiting.append(other)
    is_joined = len(names) > 1 and reached == set(names)
    return is_joined and all(one.variable in found.absent for one in alg.absences_in(query.pattern))


def _candidates(query: alg.Query, schemas: Mapping[str, Schema]) -> Iterator[dict[str, str]]:
    """Choices of one attribute for each variable, each such that a match agrees on it."""
    around = list(alg.around_in(query.pattern))
    looks = {one.variable for one in around}
    positive = [name for name in query.variables if name not in looks]
    if len(positive) == 1:
        joined = (equality for one in around for equality in _equalities(one))
        known = dict.fromkeys(member for equality in joined for member in sorted(equality) if member[0] == positive[0])
        choices = [{member[0]: member[1][0]} for member in known if len(member[1]) == 1]
    else:
        choices = [chosen for each in keys(query, schemas).classes if (chosen := _of_class(each, positive))]
    sure = [name for name, kind in query.variables.items() if not kind.optional]
    for chosen in choices:
        added = {
            one.variable: _agreeing(one, {name: chosen[name] for name in positive if name in sure}) for one in around
        }
        if all(added.values()):
            yield chosen | {name: attribute for name, attribute in added.items() if attribute is not None}


def _of_class(known: KeyClass, positive: list[str]) -> dict[str, str] | None:
    """One attribute of each variable, so that any two of them are equal in every match; None when there is none."""
    members: dict[str, Member] = {}
    for member in known.members:
        if len(member[1]) == 1:
            members.setdefault(member[0], member)
    equal = {frozenset(pair) for pair in known.equalities}
    chosen = [members[name] for name in positive if name in members]
    if len(chosen) < len(positive) or any(frozenset(pair) not in equal for pair in combinations(chosen, 2)):
        return None
    return {name: path[0] for name, path in chosen}


def _agreeing(around: alg.Around, chosen: Mapping[str, str]) -> str | None:
    """The attribute by which only events of the match's key are looked at."""
    for equality in _equalities(around):
        own = [path for name, path in equality if name == around.variable]
        other = [(name, path) for name, path in equality if name != around.variable]
        if len(own) == len(other) == 1 and len(own[0]) == 1:
            name, path = other[0]
            if chosen.get(name) is not None and path == (chosen[name],):
                return own[0][0]
    return None


def _equalities(around: alg.Around) -> Iterator[frozenset[Member]]:
    return (found for part in ex.conjuncts(around.condition) if (found := plain_equality(part)) is not None)


def _is_exact(query: alg.Query, chosen: Mapping[str, str], schemas: Mapping[str, Schema]) -> bool:
    types: dict[str, tuple[str | None, ...]] = {name: kind.types for name, kind in query.variables.items()}
    types |= {one.variable: (one.type,) for one in alg.around_in(query.pattern)}
    known = [
        schemas[kind].attributes.get(attribute)
        for name, attribute in chosen.items()
        for kind in types[name]
        if kind is not None
    ]
    kinds = {None if one is None else one.kind for one in known}
    return len(kinds) == 1 and kinds <= EXACT
