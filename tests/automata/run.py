"""Run an automaton over events: every accepting run from every position, as a set of complex events.

Slow on purpose, but not wasteful: runs that began at one event and are in one state with equal registers can do the
same from there on, so that they go on as one and share their histories. The histories form a graph whose ways from an
accepting configuration back to its start are the runs; nothing in it is a dead end.

code           theory (003 §6)
----           ---------------
key            a configuration (q, ν), and the position i where its runs began
History        all runs ρ that lead to one configuration, as the last step of each
ComplexEvent   C = (i, j, μ)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tocsin.automata.model import START, Automaton, Output, Transition
from tocsin.expressions.interpret import Bags
from tocsin.kernels.runs import object_registers
from tocsin.kernels.runs.object_registers import Evaluate, bags_of, compiled, identity
from tocsin.language.user_defined import Monoids


@dataclass(frozen=True)
class Reading:
    """An event as an automaton reads it. Its position is its place in the list that is read."""

    type: str | None
    ts: int  # microseconds
    row: Mapping[str, Any] = field(default_factory=dict)
    tie: int = 0  # rank by tie columns among events of one instant; equal ones tie


@dataclass(frozen=True)
class Bound:
    """An event that a match binds: an original one, or one made of values at its position."""

    position: int
    values: tuple[tuple[str, Any], ...] | None = None
    is_derived: bool = False

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What makes it itself: derived and projected events are compared by value (R24)."""
        if self.values is None:
            return (self.position,)
        held = sorted((name, identity(value)) for name, value in self.values)
        return (self.position, self.is_derived, *held)


@dataclass(frozen=True)
class ComplexEvent:
    """A match: the positions it spans, and what each variable holds, by position."""

    start: int
    end: int
    bindings: Mapping[str, tuple[Bound, ...]]

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal matches: interval, and bags by variable, in no order (R8)."""
        held = ((name, tuple(sorted(map(repr, (one.key for one in bag))))) for name, bag in self.bindings.items())
        return (self.start, self.end, tuple(sorted(held)))


Given = tuple[tuple[str, Bound], ...]
Way = tuple["History", Given]


@dataclass(eq=False)
class History:
    """Every way to a configuration: what the last step gave to variables, and the history before it."""

    ways: list[Way]

    def runs(self) -> Iterator[Given]:
        """What each run gave to variables, in order."""
        waiting: list[tuple[History, tuple[Any, ...]]] = [(self, ())]  # what came later, as nested pairs
        while waiting:
            history, later = waiting.pop()
            if not history.ways:
                yield _flat(later)
            waiting += [(before, (given, later)) for before, given in history.ways]


def _flat(nested: tuple[Any, ...]) -> Given:
    found: list[tuple[str, Bound]] = []
    while nested:
        given, nested = nested
        found += given
    return tuple(found)


@dataclass(frozen=True)
class _Configuration:
    state: int
    registers: dict[str, Any]
    start: int
    ways: list[Way] = field(default_factory=list)

    @property
    def key(self) -> tuple[Any, ...]:
        """Runs of equal keys go on as one."""
        return (self.state, self.start, *map(identity, self.registers.values()))

    @cached_property
    def history(self) -> History:
        """A step that gives nothing adds nothing to a history: waiting costs no memory, however it is done."""
        different = list({(id(before), _keys(given)): (before, given) for before, given in self.ways}.values())
        if len(different) == 1 and not different[0][1]:
            return different[0][0]
        return History(different)


def _keys(given: Given) -> tuple[Any, ...]:
    return tuple((variable, bound.key) for variable, bound in given)


class _Compiled:
    """A transition as functions."""

    def __init__(self, transition: Transition, automaton: Automaton) -> None:
        monoids = automaton.monoids
        self.target = transition.target
        self.needs = transition.needs
        self.guard: Evaluate | None = None if transition.guard is None else compiled(transition.guard, monoids)
        updates = {name: compiled(value, monoids) for name, value in transition.updates}
        kept = automaton.alive[transition.target]
        # In the order of the state's registers, whatever the transition: configurations are compared by their values.
        self.kept = [(name, updates.get(name)) for name in kept]
        made = {one.output: _maker(one.output, monoids) for one in transition.outputs}
        self.outputs = [(one.variable, made[one.output]) for one in transition.outputs]

    def is_open(self, now: Bags) -> bool:
        """Whether the registers allow it."""
        return self.guard is None or self.guard(now) is True

    def registers(self, now: Bags, registers: Mapping[str, Any]) -> dict[str, Any]:
        """The registers afterwards: only those that matter in the next state."""
        return {name: registers[name] if value is None else value(now) for name, value in self.kept}


def _maker(output: Output, monoids: Monoids) -> Callable[[Bags, int], Bound]:
    if output.fields is None:
        return lambda now, position: Bound(position)
    fields = [(name, compiled(value, monoids)) for name, value in output.fields]
    return lambda now, position: Bound(position, tuple((name, value(now)) for name, value in fields), output.is_derived)


def run(
    automaton: Automaton,
    events: Sequence[Reading],
    *,
    window_us: int | None = None,
) -> list[ComplexEvent]:
    """Every complex event that binds something, each once, by end and then by start.

    Parameters
    ----------
    automaton
        What `automaton` made of a pattern.
    events
        The events of one partition in order of position.
    window_us
        The largest span of a match, exclusive.
    """
    tests = [compiled(test, automaton.monoids) for test in automaton.tests]
    leaving = [[_Compiled(one, automaton) for one in group] for group in automaton.leaving]
    live: list[_Configuration] = []
    found: dict[tuple[Any, ...], ComplexEvent] = {}
    for position, event in enumerate(events):
        before = events[position - 1]
        is_later = position == 0 or (event.ts, event.tie) > (before.ts, before.tie)
        alone = _now(event, is_later, {})
        bits = [test(alone) is True for test in tests]
        live = [one for one in live if window_us is None or event.ts - events[one.start].ts < window_us]
        live.append(_Configuration(START, {}, position))
        reached: dict[tuple[Any, ...], _Configuration] = {}
        for one in live:
            now = _now(event, is_later, one.registers)
            for transition in leaving[one.state]:
                if all(bits[need] for need in transition.needs) and transition.is_open(now):
                    new = _Configuration(transition.target, transition.registers(now, one.registers), one.start)
                    given = tuple((variable, make(now, position)) for variable, make in transition.outputs)
                    reached.setdefault(new.key, new).ways.append((one.history, given))
        live = [one for one in reached.values() if one.state not in automaton.finals]
        ended = (one for one in reached.values() if one.state in automaton.finals)
        found |= {match.key: match for one in ended for match in _matches(one, position)}
    return list(found.values())


def _now(event: Reading, is_later: bool, registers: Mapping[str, Any]) -> Bags:
    return bags_of(object_registers.Reading(event.type or "", event.ts, event.row), is_later, registers)


def _matches(one: _Configuration, position: int) -> Iterator[ComplexEvent]:
    for given in one.history.runs():
        bindings: dict[str, tuple[Bound, ...]] = {}
        for variable, bound in given:
            bindings[variable] = (*bindings.get(variable, ()), bound)
        if bindings:
            yield ComplexEvent(one.start, position, bindings)
