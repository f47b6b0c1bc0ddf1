"""Random ACEL formulas and streams, and how an automaton's matches are compared with the reference's.

A formula is grown from its leaves with what each variable's events carry, so that filters and aggregates speak of
variables that are bound and attributes that exist, most of the time; attributes that only some events of a variable
carry are NULL in the others. Derived attributes have names of their own: which of two equal derived events is meant
is no part of a match (see `test_against_reference`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st
from tests.automata.run import Reading, run
from tests.fitting import fitting

from tocsin import automata
from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.reference.matches import Candidate, Evaluation, Made
from tocsin.reference.stream import Event, ingest

SECOND = 1_000_000
POSITION = alg.Order.POSITION
NUMBER, TEXT, LIST = "number", "text", "list"
CARRIED = {"x": NUMBER, "v": NUMBER, "k": TEXT, "ts": NUMBER}
WINDOWS = st.sampled_from([None, None, 2 * SECOND, 3 * SECOND])
Carried = dict[str, dict[str, str]]  # variable → attribute → kind of value


# --- comparing ------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """A value as text; doubles to nine digits, for a spread is not summed in the same order everywhere."""
    if isinstance(value, list | tuple):
        return repr([shown(one) for one in value])
    return repr(round(value, 9) + 0.0) if isinstance(value, float) else repr(value)


def values_of(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, shown(value)) for name, value in row.items()))


def reference_match(match: Candidate) -> tuple[Any, ...]:
    assert match.first is not None and match.last is not None
    held = (
        (slot.variable, slot.event.local, values_of(slot.event.row) if isinstance(slot.event.row, Made) else ())
        for slot in match.slots
    )
    return (match.first.local, match.last.local, tuple(sorted(held)))


def automaton_match(match: automata.ComplexEvent) -> tuple[Any, ...]:
    held = (
        (name, one.position, () if one.values is None else values_of(dict(one.values)))
        for name, bag in match.bindings.items()
        for one in bag
    )
    return (match.start, match.end, tuple(sorted(held)))


def by_reference(node: alg.Node, events: list[Event], window_us: int | None = None) -> set[tuple[Any, ...]]:
    whole = node if window_us is None else alg.Within(node, window_us)
    evaluation = Evaluation(events, window_us)
    return {reference_match(match) for match in evaluation.settle(evaluation.matches(whole))}


def by_automaton(
    node: alg.Node, events: list[Event], window_us: int | None = None, **options: bool
) -> set[tuple[Any, ...]]:
    readings = [Reading(event.type, event.ts, event.row, event.instant) for event in events]
    found = run(automata.automaton(node, **options), readings, window_us=window_us)
    matches = [automaton_match(match) for match in found]
    assert len(set(matches)) == len(matches), "a match was reported twice"
    return set(matches)


def stream(*events: tuple[str, int, dict[str, Any]]) -> list[Event]:
    """Events as (type, second, values), in this order where seconds tie; only positions know it."""
    rows = [{"type": kind, "ts": second * SECOND, "n": n, **row} for n, (kind, second, row) in enumerate(events)]
    placed = ingest(rows, time="ts", tie=["n"], type_column="type")
    return [replace(event, instant=event.ts) for event in placed]


# --- streams --------------------------------------------------------------------------------------


@st.composite
def event_lists(draw: st.DrawFn, *, most: int = 6) -> list[Event]:
    """Few instants, so that events tie; few values, so that they repeat; NULLs; sometimes nothing at all."""
    choose = random.Random(draw(st.integers(0, 2**32)))
    number = draw(st.sampled_from([most, most, most - 1, most - 2, 2, 0]))
    rows = []
    for _ in range(number):
        row = {
            "type": choose.choice("AAABBBC"),
            "ts": choose.randint(0, 4) * SECOND,
            "x": choose.choice([0, 1, 2, 3, 1, 2, None]),
            "v": choose.choice([0.5, 1.0, 2.5, 0.1, None]),
            "k": choose.choice(["p", "p", "q", None]),
        }
        rows += [dict(row) for _ in range(1 + (choose.random() < 0.1))]
    return ingest(rows[:most], time="ts", tie=[], type_column="type")


# --- formulas -------------------------------------------------------------------------------------


@dataclass
class Grower:
    """Draws one formula; `seed` decides all, so that a failure is told by two numbers."""

    seed: int
    most_parts: int = 3
    plain: bool = False  # neither filters nor aggregates: CEL without predicates
    choose: random.Random = field(init=False)
    made: int = 0

    def __post_init__(self) -> None:
        self.choose = random.Random(self.seed)

    def formula(self, depth: int) -> tuple[alg.Node, Carried]:
        if depth == 0:
            return self.leaf()
        kinds = ["sequence"] * 3 + ["adjacent", "adjacent", "any", "any", "both", "both", "leaf"]
        kinds += ["repeat", "repeat", "repeat adjacent", "bind", "bind", "project"]
        if not self.plain:
            kinds += ["filter"] * 3 + ["derive"] * 3
        kind = self.choose.choice(kinds)
        if kind == "leaf":
            return self.leaf()
        if kind in ("sequence", "adjacent", "any"):
            return self.several(kind, depth)
        part, carried = self.formula(depth - 1)
        match kind:
            case "both":
                return self.both(part, carried, depth)
            case "repeat":
                least, most = self.choose.choice([(1, None), (1, None), (2, None), (1, 2), (2, 3)])
                return alg.Repeat(part, least, most, POSITION), carried
            case "repeat adjacent":
                return alg.RepeatAdjacent(part), carried
            case "filter":
                return alg.Filter(part, self.condition(carried)), carried
            case "bind":
                return self.bind(part, carried)
            case "project":
                return self.project(part, carried)
        return self.derive(part, carried)

    def leaf(self) -> tuple[alg.Node, Carried]:
        kind = self.choose.choice("AAABBC")
        if self.choose.random() < 0.15:
            return alg.NextOf(kind, kind), {kind: dict(CARRIED)}
        if self.choose.random() < 0.08:
            return alg.Event(None, "E"), {"E": dict(CARRIED)}
        return alg.Event(kind, kind), {kind: dict(CARRIED)}

    def several(self, kind: str, depth: int) -> tuple[alg.Node, Carried]:
        grown = [self.formula(depth - 1) for _ in range(self.choose.choice([2, 2, self.most_parts]))]
        parts, carried = tuple(node for node, _ in grown), merged(*(carried for _, carried in grown))
        if kind == "any":
            return alg.Any(parts), carried
        return (alg.Sequence(parts, POSITION) if kind == "sequence" else alg.Adjacent(parts)), carried

    def both(self, part: alg.Node, carried: Carried, depth: int) -> tuple[alg.Node, Carried]:
        """Mostly a formula and a variation of it, for two that have nothing in common have no match in common."""
        match self.choose.choice([0, 1, 5] if self.plain else [0, 1, 2, 3, 4, 5]):
            case 0:
                other, others = self.formula(depth - 1)
                return alg.Both((part, other)), merged(carried, others)
            case 1:
                other, others = self.formula(depth - 1)
                return alg.Both((alg.Any((other, part)), part)), merged(carried, others)
            case 2:
                kept = alg.Filter(part, self.condition(carried))
                return alg.Both((kept, alg.Filter(part, self.condition(carried)))), carried
            case 3:
                derived, more = self.derive(part, carried)
                assert isinstance(derived, alg.Derive)
                again = alg.Derive(alg.Filter(part, self.condition(carried)), derived.variable, derived.folds)
                return alg.Both((derived, again)), more
            case 4:
                # Equal only where the two aggregates happen to be.
                name, attribute = self.attribute(carried, NUMBER)
                return alg.Both(
                    tuple(
                        alg.Derive(part, "M", (alg.Fold("d", function, name, attribute),))
                        for function in self.choose.sample(["sum", "max", "min", "first", "last"], 2)
                    )
                ), merged(carried, {"M": {"d": NUMBER}})
        return alg.Both((part, part)), carried

    def bind(self, part: alg.Node, carried: Carried) -> tuple[alg.Node, Carried]:
        name = self.choose.choice(["X", "Y", "A"])
        everything: dict[str, str] = {}
        for attributes in carried.values():
            everything |= attributes
        return alg.Bind(part, name), carried | {name: everything}

    def project(self, part: alg.Node, carried: Carried) -> tuple[alg.Node, Carried]:
        names = self.choose.sample(sorted(carried), self.choose.randint(1, len(carried)))
        kept: list[tuple[str, tuple[str, ...] | None]] = []
        left: Carried = {}
        for name in names:
            attributes = None
            if self.choose.random() < 0.3 and carried[name]:
                attributes = tuple(self.choose.sample(sorted(carried[name]), 1))
            kept.append((name, attributes))
            left[name] = {one: kind for one, kind in carried[name].items() if attributes is None or one in attributes}
        return alg.Project(part, tuple(kept)), left

    def derive(self, part: alg.Node, carried: Carried) -> tuple[alg.Node, Carried]:
        variable = self.choose.choice(["M", "M", "N", "X"])
        folds, new = [], {}
        for _ in range(self.choose.choice([1, 1, 2])):
            self.made += 1
            name = f"d{self.made}"
            function = self.choose.choice(
                ["count", "sum", "sum", "max", "min", "avg", "range", "first", "last", "stddev", "collect"]
            )
            wanted = None if function in ("count", "first", "last", "collect") else NUMBER
            source, path = self.attribute(carried, wanted)
            kind = CARRIED.get(path[0]) or carried[source].get(path[0], NUMBER)
            folds.append(
                alg.Fold(name, function, source, path if function != "count" or self.choose.random() < 0.5 else ())
            )
            new[name] = (
                LIST if function == "collect" else kind if function in ("first", "last", "min", "max") else NUMBER
            )
        return alg.Derive(part, variable, tuple(folds)), merged(carried, {variable: new})

    def attribute(self, carried: Carried, kind: str | None) -> tuple[str, tuple[str, ...]]:
        fitting = [
            (name, one)
            for name, attributes in sorted(carried.items())
            for one, found in sorted(attributes.items())
            if found == kind or (kind is None and found != LIST)
        ]
        if not fitting:
            return self.choose.choice(sorted(carried)), ("missing",)
        name, one = self.choose.choice(fitting)
        return name, (one,)

    # --- conditions -------------------------------------------------------------------------------

    def condition(self, carried: Carried) -> ex.Expression:
        atoms = [self.atom(carried) for _ in range(self.choose.choice([1, 1, 1, 2, 3]))]
        if len(atoms) == 1:
            return ex.Not(atoms[0]) if self.choose.random() < 0.1 else atoms[0]
        if len(atoms) == 3 and self.choose.random() < 0.5:
            return ex.any_of(ex.all_of(atoms[0], atoms[1]), atoms[2])
        return self.choose.choice([ex.all_of, ex.any_of])(*atoms)

    def atom(self, carried: Carried) -> ex.Expression:
        if self.choose.random() < 0.35:
            name, path = self.attribute(carried, self.choose.choice([NUMBER, NUMBER, TEXT]))
            return ex.BagPredicate(self.choose.choice(list(ex.BagOrder)), name, path)
        name, path = self.attribute(carried, NUMBER)
        here = ex.Attribute(name, path)
        predicate: ex.Expression = ex.Comparison(
            self.choose.choice(["<", "<=", ">", ">=", "!=", "="]),
            here,
            ex.Literal(self.choose.choice([0, 1, 2, 1.0, 5])),
        )
        match self.choose.randint(0, 5):
            case 0:
                predicate = ex.Not(predicate)
            case 1:
                predicate = ex.any_of(predicate, ex.IsNull(here))
            case 2:
                same = [one for one, kind in sorted(carried[name].items()) if kind == NUMBER]
                if same:
                    predicate = ex.Comparison("<=", here, ex.Attribute(name, (self.choose.choice(same),)))
        return ex.Every(name, predicate)


def merged(*several: Carried) -> Carried:
    found: Carried = {}
    for carried in several:
        for name, attributes in carried.items():
            found[name] = found.get(name, {}) | attributes
    return found


@st.composite
def formulas(draw: st.DrawFn, *, depth: int = 3, plain: bool = False) -> alg.Node:
    """An ACEL formula."""
    grower = Grower(draw(st.integers(0, 2**32)), plain=plain)
    return grower.formula(draw(st.integers(1, depth)))[0]


# --- both ------------------------------------------------------------------------------------------


def cases(
    *, depth: int = 3, plain: bool = False, most: int = 6, windows: st.SearchStrategy[int | None] = WINDOWS
) -> dict[str, st.SearchStrategy[Any]]:
    """Three arguments of a property: a formula, a window, and events; two of three times these are drawn for both."""
    drawn = st.shared(st.tuples(formulas(depth=depth, plain=plain), windows))

    def fitted(case: tuple[alg.Node, int | None]) -> st.SearchStrategy[list[Event]]:
        node, window_us = case
        whole = node if window_us is None else alg.Within(node, window_us)
        return fitting(alg.Query(whole), max_events=most).map(
            lambda rows: ingest(rows, time="ts", tie=[], type_column="type")[:most]
        )

    return {
        "node": drawn.map(lambda case: case[0]),
        "events": st.one_of(drawn.flatmap(fitted), drawn.flatmap(fitted), event_lists(most=most)),
        "window_us": drawn.map(lambda case: case[1]),
    }
