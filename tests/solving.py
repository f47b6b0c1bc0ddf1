"""Events that satisfy a rule of a program, found by search.

A rule needs one event for each of its variables, some for each gathering, and conditions that they satisfy. A variable
of an emitted type needs what a rule that emits it needs; the values of the `emit` stand for its attributes. The search
starts from random rows and changes one value at a time, as long as some condition does not hold. Absences, policies
and the order in a repetition are left to the caller, who evaluates the rule on what is found.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program, Rule
from tocsin.language import expressions as ex
from tocsin.reference.conditions import holds
from tocsin.reference.stream import Event
from tocsin.testing.streams import HALVES, KEYS, SECOND, WHOLE

MOST_STEPS = 20
TIME = "ts"
VALUES: dict[str, list[Any]] = {"k": sorted({*KEYS} - {None}), "x": sorted({*WHOLE} - {None}), "v": HALVES[:-1]}
SECONDS = range(-9, 10)
Typed = tuple[str, dict[str, Any]]


def solved(
    program: Program, rule: Rule, choose: random.Random, *, outside: Collection[str], is_tied: bool = False
) -> list[Typed]:
    """Events, with their types, that mostly satisfy the conditions of a rule.

    Parameters
    ----------
    program, rule
        A program and one of its rules, whose attribute for the time is `ts`.
    choose
        The source of randomness.
    outside
        The event types of which events may come from outside.
    is_tied
        Whether the events of a repetition have the same time.
    """
    needs = Needs(program, outside, choose)
    needs.add(rule)
    rows = needs.satisfied()
    first: dict[str, int] = {}
    for (variable, _), row in zip(needs.events, rows, strict=True):
        if is_tied:
            row[TIME] = first.setdefault(variable, row[TIME])
    begin = choose.randint(0, 2) * SECOND - min((row[TIME] for row in rows), default=0)
    return [(kind, row | {TIME: row[TIME] + begin}) for (_, kind), row in zip(needs.events, rows, strict=True)]


@dataclass
class Needs:
    """The events that a match needs and the conditions on them.

    Attributes
    ----------
    events
        The variable and the type of each; several for a repetition.
    conditions
        Over these variables.
    """

    program: Program
    outside: Collection[str]
    choose: random.Random
    events: list[tuple[str, str]] = field(default_factory=list)
    conditions: list[ex.Expression] = field(default_factory=list)

    def add(self, rule: Rule, emit: alg.Emit | None = None, prefix: str = "") -> dict[str, ex.Expression]:
        """Add the needs of a rule under new names; the attributes of an event that it emits, over these names."""
        made: dict[str, Mapping[str, ex.Expression]] = {}  # by variable of an emitted type
        copies: dict[str, int] = {}
        conditions: list[ex.Expression] = []
        for node in rule.query.pattern.walk():
            match node:
                case alg.Filter():
                    conditions += ex.conjuncts(node.condition)
                case alg.Repeat(alg.Event(_, variable), least, most):
                    copies[variable] = min(max(least, self.choose.choice([1, 2, 2, 2])), most or 2)
                case alg.Gather():
                    number = self.choose.choice([0, 1, 1, 2])
                    made |= self._take(prefix, node.variable, node.type, number)
                    conditions += [*ex.conjuncts(node.condition), *_distances(node)] if number else []
                case alg.Event(str(type), variable):
                    made |= self._take(prefix, variable, type, copies.get(variable, 1))
                case _:
                    continue

        def renamed(node: ex.Expression) -> ex.Expression:
            match node:
                case ex.Attribute():
                    value = made.get(node.variable, {}).get(node.path[0])
                    return replace(node, variable=prefix + node.variable) if value is None else value
                case ex.Variable():
                    return replace(node, name=prefix + node.name)
                case _:
                    return node

        self.conditions += [condition.transform(renamed) for condition in conditions]
        values = [] if emit is None else [(TIME, emit.at), *emit.values]
        return {name: value.transform(renamed) for name, value in values}

    def _take(self, prefix: str, variable: str, type: str, copies: int) -> dict[str, Mapping[str, ex.Expression]]:
        emitting = [(rule, emit) for rule in self.program.rules for emit in rule.emits if emit.type == type]
        if not emitting or (type in self.outside and self.choose.random() < 0.3):
            self.events += [(prefix + variable, type)] * copies
            return {}
        rule, emit = self.choose.choice(emitting)
        return {variable: self.add(rule, emit, f"{prefix}{variable}.")}

    def satisfied(self) -> list[dict[str, Any]]:
        """A row for each event, such that mostly all conditions hold."""
        choose = self.choose
        rows: list[dict[str, Any]] = [
            {TIME: choose.randint(0, 3) * SECOND} | {name: choose.choice(some) for name, some in VALUES.items()}
            for _ in self.events
        ]
        held = {variable for variable, _ in self.events}
        mentioned = [(each, [pair for pair in _mentioned(each) if pair[0] in held]) for each in self.conditions]
        for _ in range(MOST_STEPS):
            bags = self._bags(rows)
            unmet = [attributes for condition, attributes in mentioned if not holds(condition, bags)]
            if not any(unmet):
                break
            variable, name = choose.choice(choose.choice([attributes for attributes in unmet if attributes]))
            own = [condition for condition, attributes in mentioned if (variable, name) in attributes]
            row = choose.choice([row for (each, _), row in zip(self.events, rows, strict=True) if each == variable])
            near = choose.choice(rows)[TIME]
            some = VALUES.get(name) or [near + second * SECOND for second in SECONDS]
            most, best = -1, row[name]
            for row[name] in choose.sample(some, len(some)):
                bags = self._bags(rows)
                met = sum(holds(condition, bags) for condition in own)
                most, best = max((most, best), (met, row[name]), key=lambda each: each[0])
                if most == len(own):
                    break
            row[name] = best
        return rows

    def _bags(self, rows: list[dict[str, Any]]) -> dict[str, tuple[Event, ...]]:
        bags: dict[str, tuple[Event, ...]] = {}
        timed = sorted(zip(self.events, rows, strict=True), key=lambda each: each[1][TIME])
        for position, ((variable, kind), row) in enumerate(timed):
            event = Event(kind, row[TIME], row[TIME], row, position, position, position)
            bags[variable] = (*bags.get(variable, ()), event)
        return bags


def _mentioned(condition: ex.Expression) -> list[tuple[str, str]]:
    """The attributes of a condition: a variable and a name each."""
    return [(node.variable, node.path[0]) for node in condition.walk() if isinstance(node, ex.Attribute)]


def _distances(gathering: alg.Gather) -> list[ex.Expression]:
    """The bounds of a gathering as conditions."""
    own = ex.Attribute(gathering.variable, (TIME,))
    found: list[ex.Expression] = []
    for op, bounds in ((">=", gathering.lower), ("<=", gathering.upper)):
        for bound in bounds:
            for anchor in () if isinstance(bound.anchor, alg.Whole) else bound.anchor.variables:
                apart = ex.Arithmetic("-", own, ex.Attribute(anchor, (TIME,)))
                found.append(ex.Comparison(op, apart, ex.Interval(bound.offset_us)))
    return found
