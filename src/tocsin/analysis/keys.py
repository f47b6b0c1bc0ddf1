"""Equalities between variables that a plan may join or shuffle by (O3); they change no result (R11).

Two attributes belong together when a conjunct of WHERE equates them: `a.user = b.user`. Equality carries
over, `a.k = b.k` and `b.k = c.k` make `a.k = c.k`, but only through a variable that is bound: a conjunct on
an unbound one holds vacuously (R1). So the classes are found per alternative, and a pair is reported when it
holds in every alternative that binds both. Nor does equality carry over between an integer and a double,
which rounds: with schemas given, such an equality stands alone.

A live program can be split by a key (`sharding`): each of its shards then has all events that ever meet. An attribute
is a key of a rule when all events around a match agree on it: those of its variables by equality, what must not be
there and what is gathered by equality with one of them. A rule of one variable agrees on everything. It is a key of the
program when it is one of every rule, and every event that a rule emits for another carries it on. Events without a
value are in one shard together, and no equality holds for them: what they match alone is found there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import NoAlternativesError, alternatives
from tocsin.algebra.programs import Program, Rule
from tocsin.algebra.tree_text import table
from tocsin.analysis.attributes import Schema
from tocsin.analysis.types import Kind
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection

Path = tuple[str, ...]
Member = tuple[str, Path]  # a variable and an attribute of it
Equality = tuple[Member, Member]


@dataclass(frozen=True)
class KeyClass:
    """Attributes that are equal in every match, wherever their variables are bound."""

    members: tuple[Member, ...]  # variables and attributes, in order of appearance
    equalities: frozenset[Equality]  # the pairs of members that are equal whenever both variables are bound
    covers_all: bool  # whether it holds between all positive variables: one key for every join

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The pairs of variables it can join."""
        return frozenset((one[0], other[0]) for one, other in self.equalities)

    def __str__(self) -> str:
        """`a.user = b.user`."""
        return " = ".join(f"{variable}.{'.'.join(path)}" for variable, path in self.members)


@dataclass(frozen=True)
class Keys:
    """The equalities of a query."""

    # The attributes of PARTITION BY and `[k]`, which hold for every variable, negated ones included.
    partition: tuple[str, ...]
    classes: tuple[KeyClass, ...]  # equal attributes of positive variables, those that cover all variables first
    # For each negated variable: its attribute, and the positive one a blocking event must agree with.
    absent: Mapping[str, tuple[tuple[Path, Member], ...]]

    def shared_by(self, pairs: Iterable[tuple[str, str]]) -> list[str]:
        """The attributes that are equal, under one name, in both variables of each of these pairs."""
        wanted = {frozenset(pair) for pair in pairs}
        equal: dict[str, set[frozenset[str]]] = {}
        for each in self.classes:
            equal |= {path[0]: set() for _, path in each.members if len(path) == 1 and path[0] not in equal}
            for one, other in each.equalities:
                if one[1] == other[1] and len(one[1]) == 1:
                    equal[one[1][0]].add(frozenset({one[0], other[0]}))
        return [name for name, found in equal.items() if wanted <= found]

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [(name, "all variables", "PARTITION BY") for name in self.partition]
        for each in self.classes:
            serves = "all variables" if each.covers_all else ", ".join(f"{x}-{y}" for x, y in sorted(each.pairs))
            rows.append((str(each), serves, "WHERE"))
        for name, equalities in self.absent.items():
            for path, (variable, other) in equalities:
                rows.append((f"{name}.{'.'.join(path)} = {variable}.{'.'.join(other)}", f"NOT {name}", "WHERE"))
        return table(("key", "joins", "from"), rows) if rows else ""


def keys(query: alg.Query, schemas: Mapping[str, Schema] | None = None) -> Keys:
    """Find the equalities of a query.

    Without schemas, attributes that are equated count as of one type.
    """
    equal = [pair for conjunct in query.conjuncts for pair in _equality(conjunct)]
    order = list(query.variables)
    bound = bound_together(query)
    kinds = query.variables

    def kinds_of(member: Member) -> set[Kind]:
        known = [(schemas or {}).get(event_type or "") for event_type in kinds[member[0]].types]
        return {schema.lookup(member[1]).kind for schema in known if schema is not None}

    exact = {(one, other) for one, other in equal if len(kinds_of(one) | kinds_of(other)) <= 1}
    pairs = _always(equal, exact, bound, order)
    absent = {absence.variable: tuple(equal_around(absence)) for absence in alg.absences_in(query.pattern)}
    known = {name: equal for name, equal in absent.items() if equal}
    return Keys(query.partition.attributes, _classes(pairs, bound, order), known)


def _equality(conjunct: ex.Expression) -> Iterator[Equality]:
    match conjunct:
        case ex.Comparison(op="=", left=ex.Attribute() as left, right=ex.Attribute() as right):
            plain = left.index is ex.Each.PLAIN and right.index is ex.Each.PLAIN
            if plain and left.variable != right.variable:
                yield (left.variable, left.path), (right.variable, right.path)
        case _:
            return


def equal_around(around: alg.Around) -> Iterator[tuple[Path, Member]]:
    """The attributes of an absent or gathered event, and what each is equal to."""
    for conjunct in ex.conjuncts(around.condition):
        for one, other in _equality(conjunct):
            if around.variable in (one[0], other[0]):
                own, there = (one, other) if one[0] == around.variable else (other, one)
                yield own[1], there


def common_keys(query: alg.Query) -> tuple[str, ...]:
    """The equalities that all events around a match share, absent and gathered ones too.

    >>> same = ex.Comparison("=", ex.Attribute("a", ("k",)), ex.Attribute("n", ("k",)))
    >>> query = alg.Query(alg.Absent(alg.Event("A", "a"), "N", "n", same, (), ()))
    >>> common_keys(query)
    ('a.k = n.k',)
    """
    around = [(each.variable, tuple(equal_around(each))) for each in alg.around_in(query.pattern)]
    bound = _bound_in(query)
    shared: list[tuple[Member, ...]] = [each.members for each in keys(query).classes if each.covers_all]
    if len(bound) == 1 and around:
        shared += [(member,) for _, member in around[0][1] if member[0] in bound]
    common = []
    for members in shared:
        joined = [
            next(((name, path) for path, member in equal if member in members), None)
            for name, equal in around
            if name not in {variable for variable, _ in members}
        ]
        if None not in joined:
            common.append(" = ".join(f"{name}.{'.'.join(path)}" for name, path in (*members, *filter(None, joined))))
    return tuple(dict.fromkeys(common))


def _bound_in(query: alg.Query) -> dict[str, alg.Kind]:
    """The variables of a query without those that gather."""
    hidden = {each.variable for each in alg.around_in(query.pattern)}
    return {name: kind for name, kind in query.variables.items() if name not in hidden}


@dataclass(frozen=True)
class Bound:
    """A set of variables that some matches bind, and those of them that carry an equality on."""

    variables: frozenset[str]
    sure: frozenset[str]


def bound_together(query: alg.Query) -> list[Bound]:
    """The sets of variables that matches bind; one of all where there are too many, of which only some are sure."""
    try:
        sets = {frozenset(each.variables) for each in alternatives(query.pattern) if each.types}
        return [Bound(names, names) for names in sets]
    except NoAlternativesError:
        kinds = query.variables
        sure = frozenset(name for name, kind in kinds.items() if not kind.optional)
        return [Bound(frozenset(kinds), sure)]


def _always(equal: list[Equality], exact: set[Equality], bound: list[Bound], order: list[str]) -> set[Equality]:
    """Pairs of attributes of different variables that are equal whenever both variables are bound."""
    members = dict.fromkeys(member for pair in equal for member in pair)
    ordered = sorted(members, key=lambda member: order.index(member[0]) if member[0] in order else len(order))
    closures = [(each.variables, _closure(equal, exact, each)) for each in bound]

    def holds(one: Member, other: Member) -> bool:
        together = [found for names, found in closures if {one[0], other[0]} <= names]
        return bool(together) and all((one, other) in found or (other, one) in found for found in together)

    return {(one, other) for one, other in combinations(ordered, 2) if one[0] != other[0] and holds(one, other)}


def _closure(equal: list[Equality], exact: set[Equality], bound: Bound) -> set[Equality]:
    """All equalities that follow from those between bound variables, through the sure ones."""
    known = {(one, other) for one, other in exact if {one[0], other[0]} <= bound.variables}
    known |= {(other, one) for one, other in known}
    middles = dict.fromkeys(one for one, _ in known if one[0] in bound.sure)
    for middle in middles:
        around = [other for one, other in known if one == middle]
        known |= set(product(around, around))
    return known | {(one, other) for one, other in equal if {one[0], other[0]} <= bound.variables}


def _classes(pairs: set[Equality], bound: list[Bound], order: list[str]) -> tuple[KeyClass, ...]:
    """The pairs gathered into classes; a class is what is connected by pairs."""
    found: list[set[Member]] = []
    for pair in sorted(pairs):
        touching = [each for each in found if not each.isdisjoint(pair)]
        found = [each for each in found if each.isdisjoint(pair)] + [set(pair).union(*touching)]
    classes = []
    for members in found:
        ordered = tuple(sorted(members, key=lambda member: (order.index(member[0]), member[1])))
        own = frozenset(pair for pair in pairs if pair[0] in members)
        classes.append(KeyClass(ordered, own, _covers(own, bound, order)))
    return tuple(sorted(classes, key=lambda each: (not each.covers_all, order.index(each.members[0][0]))))


def _covers(equalities: Iterable[Equality], bound: list[Bound], order: list[str]) -> bool:
    known = {frozenset({one[0], other[0]}) for one, other in equalities}
    return len(order) > 1 and all(
        frozenset(pair) in known for each in bound for pair in combinations(each.variables, 2)
    )


# --- the key of a program -------------------------------------------------------------------------

# What is equal by `=` is one key, and the other way round; NULL is a domain of which only the data knows the type.
EXACT = frozenset({Kind.INTEGER, Kind.STRING, Kind.BOOLEAN, Kind.DATE, Kind.NULL})


@dataclass(frozen=True)
class Sharding:
    """The key of a program, or why it has none."""

    # The attributes that all events which meet have in common; none: the program runs in one shard.
    key: tuple[str, ...]
    reason: str = ""  # why there are none

    def __str__(self) -> str:
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
    bound = _bound_in(query)
    if len(bound) == 1:
        (kind,) = bound.values()
        template = program.templates.get(kind.types[0] or "")
        names = [] if kind.iterated or template is None else [each.name for each in template.attributes]
    else:
        names = keys(query).shared_by(combinations(bound, 2))
    for around in alg.around_in(query.pattern):
        # Only events with the key of the match have a part in it.
        agreed = {path for path, (variable, other) in equal_around(around) if variable in bound and path == other}
        names = [name for name in names if (name,) in agreed]
    return names


def _carries(query: alg.Query, emit: alg.Emit, name: str) -> bool:
    value = dict(emit.values).get(name)
    return isinstance(value, ex.Attribute) and value.path == (name,) and value.variable in _bound_in(query)


def _is_exact(name: str, types: Iterable[str], schemas: Mapping[str, Schema]) -> bool:
    known = [schemas[each].attributes.get(name) for each in types if each in schemas]
    kinds = {None if found is None else found.kind for found in known}
    return None not in kinds and kinds <= EXACT and len(kinds - {Kind.NULL}) <= 1


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
