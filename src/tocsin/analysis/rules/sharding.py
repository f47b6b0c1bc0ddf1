"""By which attributes a live program can be split: each of its shards then has all events that ever meet.

An attribute is a key of a rule when all events around a match agree on it: those of its variables by equality, what
must not be there and what is gathered by equality with one of them. A rule of one variable agrees on everything. It is
a key of the program when it is one of every rule, and every event that a rule emits for another carries it on.

Events without a value are in one shard together, and no equality holds for them: what they match alone is found there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program, Rule
from tocsin.analysis.attributes import Schema
from tocsin.analysis.keys import equal_around, keys
from tocsin.analysis.types import Kind
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection

# What is equal by `=` is one key, and the other way round; NULL is a domain of which only the data knows the type.
EXACT = frozenset({Kind.INTEGER, Kind.STRING, Kind.BOOLEAN, Kind.DATE, Kind.NULL})


@dataclass(frozen=True)
class Sharding:
    """The key of a program, or why it has none."""

    # The attributes that all events which meet have in common; none: the program runs in one shard.
    key: tuple[str, ...]
    reason: str = ""  # why there are none

    def __str__(self) -> str:
        """One line."""
        if self.key:
            return f"many shards, by {', '.join(self.key)}: every rule keeps to it, and what it emits carries it on"
        return f"one shard: {self.reason}"


def sharding(program: Program, rules: Sequence[Rule], schemas: Mapping[str, Schema]) -> Sharding:
    """The key of some rules of a program, those included that emit what they read.

    >>> a, b = alg.Event("A", "a"), alg.Event("B", "b")
    >>> same = ex.Comparison("=", ex.Attribute("a", ("k",)), ex.Attribute("b", ("k",)))
    >>> rules = [Rule("R", alg.Query(alg.Filter(alg.All((a, b)), same)))]
    >>> schemas = {name: Schema.of(name, {"k": "string"}) for name in "AB"}
    >>> sharding(Program(tuple(rules)), rules, schemas).key
    ('k',)
    """
    read = {name for rule in rules for name in rule.reads}
    common: dict[str, None] | None = None
    for rule in rules:
        if rule.query.selection is not Selection.ANY:
            return Sharding(
                (), f"`select {rule.query.selection.value}` of rule {rule.name} looks at events of all keys"
            )
        own = [name for name in _keys(program, rule.query) if _is_exact(name, rule.reads, schemas)]
        if not own:
            return Sharding((), f"no attribute is the same in all events of rule {rule.name}")
        found = {name: None for name in own if common is None or name in common}
        if not found:
            return Sharding(
                (), f"rule {rule.name} keeps to {_listed(own)}, and rules before it to {_listed(common or ())}"
            )
        common = found
    kept = dict(common or {})
    for rule in rules:
        for emit in (emit for emit in rule.emits if emit.type in read):
            carried = {name: None for name in kept if _carries(rule.query, emit, name)}
            if not carried:
                return Sharding((), f"rule {rule.name} emits {emit.type} without {_listed(kept)} of its events")
            kept = carried
    is_one_type = [name for name in kept if _is_exact(name, read, schemas)]
    if not is_one_type:
        return Sharding((), f"{_listed(kept)} has not the same type everywhere")
    return Sharding(tuple(is_one_type))


def _keys(program: Program, query: alg.Query) -> list[str]:
    """The attributes on which all events around a match agree."""
    around = list(alg.around_in(query.pattern))
    hidden = {each.variable for each in around}
    single = {name: kind for name, kind in query.variables.items() if name not in hidden}
    if len(single) == 1:
        (kind,) = single.values()
        template = program.templates.get(kind.types[0] or "")
        names = [] if kind.iterated or template is None else [each.name for each in template.attributes]
    else:
        names = keys(query).shared_by(combinations(single, 2))
    return [name for name in names if all(_agrees(each, name, single) for each in around)]


def _agrees(around: alg.Around, name: str, single: Iterable[str]) -> bool:
    """Whether only events with the key of the match have a part in it."""
    wanted = {((name,), (variable, (name,))) for variable in single}
    return not wanted.isdisjoint(equal_around(around))


def _carries(query: alg.Query, emit: alg.Emit, name: str) -> bool:
    """Whether an emitted event has the key of the match."""
    hidden = {each.variable for each in alg.around_in(query.pattern)}
    value = dict(emit.values).get(name)
    return isinstance(value, ex.Attribute) and value.path == (name,) and value.variable not in hidden


def _is_exact(name: str, types: Iterable[str], schemas: Mapping[str, Schema]) -> bool:
    known = [schemas[each].attributes.get(name) for each in types if each in schemas]
    kinds = {None if found is None else found.kind for found in known}
    return None not in kinds and kinds <= EXACT and len(kinds - {Kind.NULL}) <= 1


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
