"""The rewrite rules: each a function from a query to a query that means the same.

`optimize` tries them in the order of `RULES`, again and again until none changes the query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_formula
from tocsin.analysis.attributes import Schema
from tocsin.analysis.keys import Equality, KeyClass, Member, Path, bound_together, keys
from tocsin.analysis.sase import LONGEST_WINDOW_US
from tocsin.analysis.temporal import Facts, Network
from tocsin.analysis.types import Kind
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.optimizer.query_parts import (
    FALSE,
    TRUE,
    choice_of,
    folded,
    is_free,
    is_never_true,
    is_plain,
    map_nodes,
    plain_equality,
    with_conjuncts,
    with_where,
)

__all__ = ["NO_FACTS", "RULES", "Facts", "Optimized", "Rule", "optimize", "with_window"]

NO_FACTS = Facts()


@dataclass(frozen=True)
class Rule:
    """A rewrite rule."""

    name: str  # that of its function
    summary: str  # what it does, for `explain()`
    # Returns a query with the same matches on every stream, under every policy, with the same columns and ids. A query
    # that it cannot improve is returned unchanged.
    apply: Callable[[alg.Query, Facts], alg.Query] = field(repr=False)


# --- fold_constants -------------------------------------------------------------------------------


def fold_constants(query: alg.Query, facts: Facts = NO_FACTS) -> alg.Query:
    """Compute what conditions say of constants (`TRUE AND x`, `1 < 2`, `a.x = NULL`), each conjunct by itself.

    Sound because a folded conjunct has the same value for every choice of events, and is used only where it makes the
    same choices (R1, R3), so that it is vacuous and, for `next`, testable (R2) exactly when the old one was. A conjunct
    that is always TRUE needs no choice. One that is never TRUE becomes FALSE where no choice can be missing; not with
    time-outs, which lack the later variables and with them what is said of these.
    """
    is_whole = is_plain(query) and not query.timeouts
    sure = frozenset(name for name, kind in query.variables.items() if not kind.optional) if is_whole else frozenset()

    def change(node: alg.Node) -> alg.Node:
        match node:
            case alg.Filter():
                return with_conjuncts(node, _conjuncts(node.condition, sure))
            case alg.Absent(condition=ex.Expression() as condition):
                return with_conjuncts(node, _conjuncts(condition, sure | {node.variable}))
            case _:
                return node

    return replace(query, pattern=map_nodes(query.pattern, change))


def _conjuncts(condition: ex.Expression, sure: frozenset[str]) -> tuple[ex.Expression, ...]:
    return tuple(dict.fromkeys(part for conjunct in ex.conjuncts(condition) for part in _folded(conjunct, sure)))


def _folded(conjunct: ex.Expression, sure: frozenset[str]) -> tuple[ex.Expression, ...]:
    new = folded(conjunct)
    if new == TRUE:
        return ()
    if is_never_true(conjunct, sure):
        return (FALSE,)
    # A conjunct that falls apart must make the same choices in each part: they are quantified one by one (R21).
    parts = ex.conjuncts(new)
    return parts if all(choice_of(part) == choice_of(conjunct) for part in parts) else (conjunct,)


# --- drop_idle_absences ---------------------------------------------------------------------------

CONTIGUOUS = (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS)


def drop_idle_absences(query: alg.Query, facts: Facts = NO_FACTS) -> alg.Query:
    """Leave out absences whose condition is never TRUE: no event can block a match (R10).

    Not under contiguity: every event of every type that is read counts for positions there (R17), so that no type may
    go.
    """
    if query.selection in CONTIGUOUS or not is_plain(query):
        return query
    sure = frozenset(name for name, kind in query.variables.items() if not kind.optional)

    def change(node: alg.Node) -> alg.Node:
        if isinstance(node, alg.Absent) and any(
            is_never_true(conjunct, sure | {node.variable}) for conjunct in ex.conjuncts(node.condition)
        ):
            return node.part
        return node

    return replace(query, pattern=map_nodes(query.pattern, change))


# --- partition_by_keys ----------------------------------------------------------------------------

# What is equal by `=` is one key, and the other way round; of other types, as doubles, this is not so sure.
EXACT = frozenset({Kind.INTEGER, Kind.STRING, Kind.BOOLEAN, Kind.DATE})


def partition_by_keys(query: alg.Query, facts: Facts = NO_FACTS) -> alg.Query:
    """Turn equalities between all variables into `[k]`, and leave them out.

    `SEQ(A a, B b) WHERE a.user = b.user` has matches within one user only; split by it, the events of each user are
    looked at by themselves, and the equality need not be tested.

    Sound where a match depends on its own events only, so not under policies, whose positions and competitors are those
    of a partition (R11). Every match must bind two variables that are equated: an event alone may have no key. An
    absence must be of the same key too, as its own condition says.
    """
    schemas = facts.schemas
    if schemas is None or not is_plain(query) or not is_free(query):
        return query
    if not set(alg.event_types(query.pattern)) <= set(schemas):
        return query
    variables = [*query.variables, *alg.negated_variables(query.pattern)]
    shared = _shared(query, schemas)
    found = tuple(name for name in shared if is_exact(query, dict.fromkeys(variables, name), schemas))
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


def is_exact(query: alg.Query, chosen: Mapping[str, str], schemas: Mapping[str, Schema]) -> bool:
    """Whether attributes of variables, absent and gathered ones too, have one type, whose `=` is that of keys."""
    types: dict[str, tuple[str | None, ...]] = {name: kind.types for name, kind in query.variables.items()}
    types |= {one.variable: (one.type,) for one in alg.around_in(query.pattern)}
    named = [(attribute, kind) for name, attribute in chosen.items() for kind in types[name] if kind is not None]
    known = [schemas[kind].attributes.get(attribute) for attribute, kind in named]
    kinds = {None if one is None else one.kind for one in known}
    return len(kinds) == 1 and kinds <= EXACT


def _without(node: alg.Node, names: tuple[str, ...]) -> alg.Node:
    """The node without the equalities that a partition by these attributes makes true."""
    if not isinstance(node, alg.Filter | alg.Absent):
        return node
    implied = [{(name,)} for name in names]
    kept = [
        each for each in ex.conjuncts(node.condition) if {path for _, path in plain_equality(each) or ()} not in implied
    ]
    return with_conjuncts(node, kept)


# --- share_keys -----------------------------------------------------------------------------------


def share_keys(query: alg.Query, facts: Facts = NO_FACTS) -> alg.Query:
    """Add the equalities that connect a variable to earlier ones, so that they are tested as early as they can be.

    In `SEQ(A a, B b, C c) WHERE a.k = c.k AND c.k = b.k` nothing connects a and b before c comes; `a.k = b.k` follows,
    and keeps the pairs of other keys from being built. Variables that earlier equalities connect need no further one.

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
    written = {pair for conjunct in query.conjuncts if (pair := plain_equality(conjunct)) is not None}
    added = [equality for each in keys(query, schemas).classes for equality in _missing(each, written, order)]
    if not added:
        return query
    new = [ex.Comparison("=", ex.Attribute(one[0], one[1]), ex.Attribute(other[0], other[1])) for one, other in added]
    return with_where(query, *new)


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


# --- infer_window ---------------------------------------------------------------------------------

LEAST_WINDOW_US = 1_000_000  # slices of a few microseconds would be as many as events


def infer_window(query: alg.Query, facts: Facts = NO_FACTS) -> alg.Query:
    """Add WITHIN where distances bound every match of several events: then time slices can be searched independently.

    Not where a policy selects among events: it must see events that are further away.
    """
    if facts.time is None or query.window_us is not None or query.selection is not Selection.ANY:
        return query
    distances = facts.distances(query)
    return query if _is_single(distances) else with_window(query, distances)


def with_window(query: alg.Query, distances: Network) -> alg.Query:
    """The query with the window that its distances imply, unless it has one; unchanged where they imply none.

    No two events of a match are further apart than the closure of the distances allows, and gathered events are no
    further from them than their bounds allow.
    """
    spans = [closure.span_us for closure in distances.alternatives]
    known = [span for span in spans if span is not None]
    window = max([LEAST_WINDOW_US, *(span + 1 for span in known)]) + alg.gathered_us(query.pattern)
    if query.window_us is not None or len(known) < len(spans) or window > LONGEST_WINDOW_US:
        return query
    return replace(query, pattern=alg.Within(query.pattern, window, where=query.pattern.where))


def _is_single(distances: Network) -> bool:
    return all(len(each.variables) < 2 and not each.alternative.iterated for each in distances.alternatives)


# --- all of them ----------------------------------------------------------------------------------


RULES: tuple[Rule, ...] = (
    Rule("fold_constants", "constants in conditions are computed once", fold_constants),
    Rule("drop_idle_absences", "absences that no event can break are left out", drop_idle_absences),
    Rule("partition_by_keys", "an attribute that all events of a match share splits the stream", partition_by_keys),
    Rule("share_keys", "equalities that follow from others are tested as early as they can be", share_keys),
    Rule("infer_window", "distances between all events of a match make a window", infer_window),
)
MOST_ROUNDS = 10  # rules only take away, or add what follows once: two rounds are enough for all we know


class Optimized(NamedTuple):
    """A query that means the same, and the rules that changed it, one entry for each time."""

    query: alg.Query
    fired: tuple[Rule, ...]


def optimize(query: alg.Query, facts: Facts = NO_FACTS, rules: tuple[Rule, ...] = RULES) -> Optimized:
    """Rewrite a query. ACEL's stay as they are: their automata are reduced instead."""
    if is_formula(query):  # variables may share events, and conditions speak of each of them: rules count on neither
        return Optimized(query, ())
    fired: list[Rule] = []
    for _ in range(MOST_ROUNDS):
        before = query
        for rule in rules:
            changed = rule.apply(query, facts)
            if changed != query:
                fired.append(rule)
                query = changed
        if query == before:
            break
    return Optimized(query, tuple(fired))
