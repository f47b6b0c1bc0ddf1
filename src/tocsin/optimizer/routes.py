"""Keys under different names: `b.originator = a.destination` splits the stream as `PARTITION BY` does.

An event that may be bound to both variables belongs to two parts of the stream, that of its originator and that of
its destination. So this is no rewriting of a query, which speaks of one stream: a plan that shuffles may send such an
event twice. Nothing else changes: all events of a match, those that break it or are gathered for it included, agree on
the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema
from tocsin.analysis.keys import KeyClass, Member, keys
from tocsin.analysis.schema import BoundQuery, rebound
from tocsin.analysis.types import BOOLEAN, DataType
from tocsin.language import expressions as ex
from tocsin.optimizer.query_parts import PLAIN_NODES, is_free, map_nodes, plain_equality, with_where
from tocsin.optimizer.rules import is_exact

Names = tuple[str, ...]
Attributes = Mapping[str, Names]  # variable → attributes, as many for each


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
    found = [chosen for chosen in _candidates(query, schemas) if is_exact(query, chosen, schemas)]
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


# --- the query that is split by them --------------------------------------------------------------


@dataclass(frozen=True)
class Routes:
    """The keys of a query's variables: an event is sent once for each key that it may be looked for by.

    A transfer is looked for as incoming money by its destination, and as outgoing money by its originator. Each row has
    the roles it is there for; where both keys are equal, one row has both, so that no event meets itself as another.
    """

    query: alg.Query  # as it is without them
    chosen: Attributes

    @cached_property
    def roles(self) -> Mapping[Names, int]:
        """The numbers of the different keys."""
        return {names: number for number, names in enumerate(dict.fromkeys(self.chosen.values()))}

    def used(self, kind: str) -> list[Names]:
        """The keys by which events of a type are looked for."""
        variables = self.query.variables.items()
        found = {self.chosen[name] for name, held in variables if name in self.chosen and kind in held.types}
        found |= {self.chosen[one.variable] for one in alg.around_in(self.query.pattern) if one.type == kind}
        return [names for names in self.roles if names in found]

    def columns(self, kind: str, types: Mapping[str, DataType]) -> dict[str, DataType]:
        """The columns of keys and roles that events of a type are sent with."""
        keys = {key_name(number): types[name] for number, name in enumerate(self.used(kind)[0])}
        return keys | {role_name(number): BOOLEAN for number in self.roles.values()}

    def split(self, bound: BoundQuery) -> BoundQuery:
        """The query in parts of the stream, each variable with the events of its role."""
        more = {name: self.columns(name, schema.attributes) for name, schema in bound.schemas.items()}
        return rebound(bound, self._split(), more)

    def _split(self) -> alg.Query:
        query, chosen = self.query, self.chosen
        plays = {name: ex.Attribute(name, (role_name(self.roles[names]),)) for name, names in chosen.items()}

        def narrowed(node: alg.Node) -> alg.Node:
            if not isinstance(node, alg.Around):
                return node
            parts = [*ex.conjuncts(node.condition), plays[node.variable]]
            return replace(node, condition=ex.all_of(*parts))

        looks = {one.variable for one in alg.around_in(query.pattern)}
        wanted = [condition for name, condition in plays.items() if name not in looks]
        keys = tuple(key_name(place) for place in range(len(next(iter(chosen.values())))))
        query = replace(query, pattern=map_nodes(query.pattern, narrowed), partition=alg.Partition(keys=keys))
        return with_where(query, *wanted)

    def named(self, plan: str) -> str:
        """A plan in words, with our keys in those of the query: `a.q = b.p`; roles are left out."""
        for place in range(len(next(iter(self.chosen.values())))):
            own = " = ".join(f"{name}.{names[place]}" for name, names in self.chosen.items())
            plan = plan.replace(key_name(place), own)
        return re.sub(r"(?:  where| AND) \w+\.__tocsin_role\d+(?= AND|$)", "", plan, flags=re.MULTILINE)


def key_name(place: int) -> str:
    """The column of a key."""
    return f"__tocsin_key{place}"


def role_name(number: int) -> str:
    """The column that says whether an event is there for a role."""
    return f"__tocsin_role{number}"
