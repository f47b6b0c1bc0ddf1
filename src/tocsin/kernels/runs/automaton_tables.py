"""An automaton as a search needs it: what steps ask of an event, which registers decide, and what is kept of a run.

A register *decides* when a guard reads it, be it through other registers. All others only say what derived events
hold: they need not be known while events are read, since a match's own steps tell them again afterwards. So runs that
differ in them go on as one, and aggregates that nobody filters cost nothing until a match is reported.

A step is *kept* in the history of a run when it binds something or changes a register that derived events depend on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tocsin.automata import expressions as rx
from tocsin.automata.draft import reached
from tocsin.automata.model import START, Automaton, Output, Transition, Update
from tocsin.kernels.model import Template
from tocsin.language import expressions as ex
from tocsin.optimizer.query_parts import only_in_python

MOST_LETTERS = 40
WHOLE = -1  # the template of an event that is bound as it is
# What a step asks of an event beside its letters.
ALWAYS, LATER, TIED = 0, 1, -1
# What the worker must compute itself: Spark and SQL know no elements of monoids.
_FOREIGN = (rx.Zero, rx.Lift, rx.Combine, rx.Finish, rx.Identical, rx.Precedes, rx.EventTime)

Letter = tuple[ex.Expression, ...]


@dataclass(frozen=True)
class Step:
    """A transition."""

    number: int
    source: int
    target: int
    needs: int  # a bit per letter: what must be TRUE of the event alone
    timing: int  # whether the event must be later than the one before it (LATER), or may not be (TIED)
    guard: ex.Expression | None  # what must be TRUE of the event and the deciding registers besides
    updates: tuple[Update, ...]  # the deciding registers that it changes, of those alive afterwards
    is_kept: bool  # whether it stands in the history of a run
    replays: tuple[Update, ...]  # the registers that it changes for derived events
    # Variable, template and number of the event: equal numbers are one and the same event.
    gives: tuple[tuple[str, int, int], ...]
    made: tuple[tuple[int, Output], ...]  # the events it makes: template and recipe, by number from 0


@dataclass(frozen=True)
class Tables:
    """An automaton in these terms."""

    automaton: Automaton
    letters: tuple[Letter, ...]  # conditions on an event alone; a letter is TRUE when all of its conditions are
    steps: tuple[Step, ...]
    templates: tuple[Template, ...]
    deciding: frozenset[str]
    replayed: frozenset[str]

    @cached_property
    def leaving(self) -> tuple[tuple[Step, ...], ...]:
        """The steps out of each state."""
        states = range(self.automaton.number_of_states)
        return tuple(tuple(step for step in self.steps if step.source == state) for state in states)

    @cached_property
    def registers(self) -> tuple[tuple[str, ...], ...]:
        """The deciding registers that are alive in each state."""
        return tuple(tuple(name for name in names if name in self.deciding) for names in self.automaton.alive)

    @cached_property
    def counts_every_event(self) -> bool:
        """Whether an event for which no letter is TRUE can end a run or begin one, or make a difference to it."""
        inner = set(range(self.automaton.number_of_states)) - {START} - self.automaton.finals
        skips = {state: self._skipping(state) for state in range(self.automaton.number_of_states)}
        idle = {step.number for steps in skips.values() for step in steps}
        return any(not skips[state] for state in inner) or any(
            not step.needs and step.number not in idle for step in self.steps
        )

    def _skipping(self, state: int) -> tuple[Step, ...]:
        """The steps by which a run skips any event as if it were not there; none: it does not.

        Either it waits. Or it waits for an event that is later than the last one, at one of two states: as long as
        events tie, and from then on (`automata.construct`). What comes next is taken from both alike if it is
        later than the event before it, so that it does not matter which events have led from the one to the other.
        """
        leaving = self.leaving[state]
        waits = tuple(step for step in leaving if _waits(step))
        if waits:
            return waits
        idle = [step for step in leaving if not step.needs and _does_nothing(step)]
        stays = [step for step in idle if step.timing == TIED and step.target == state]
        leads = [step for step in idle if step.timing == LATER and step.target != state]
        if len(stays) != 1 or len(leads) != 1:
            return ()
        there = self.leaving[leads[0].target]
        if not any(map(_waits, there)):
            return ()
        here = {_as_of(step, LATER) for step in leaving if step not in (stays[0], leads[0])}
        return (stays[0], leads[0]) if here == {_as_of(step, ALWAYS) for step in there if not _waits(step)} else ()

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """A number for each step: steps with one number show the same of the event they read."""
        shown = [(tuple(sorted(step.gives)), step.made, step.replays) for step in self.steps]
        return tuple(map(shown.index, shown))

    @cached_property
    def is_ambiguous(self) -> bool:
        """Whether two runs may find the same match; sometimes said of an automaton where none do."""
        return _is_ambiguous(self)

    @cached_property
    def may_bind_nothing(self) -> bool:
        """Whether a run may end without having bound an event: it finds no match (R13)."""
        found = reached({START}, ((step.source, step.target) for step in self.steps if not step.gives))
        return not found.isdisjoint(self.automaton.finals)

    @property
    def has_derived(self) -> bool:
        """Whether matches hold values that are told again from their steps."""
        return any(template.is_derived for template in self.templates)

    @property
    def searched(self) -> tuple[list[Update], list[ex.Expression]]:
        """The updates and the guards that a search computes."""
        guards = [step.guard for step in self.steps if step.guard is not None]
        return [update for step in self.steps for update in step.updates], guards

    @property
    def derived(self) -> tuple[list[Update], list[ex.Expression]]:
        """The updates and the values that derived events are computed from."""
        made = (output for step in self.steps for _, output in step.made if output.is_derived)
        fields = [value for output in made for _, value in output.fields or ()]
        return [update for step in self.steps for update in step.replays], fields


def _waits(step: Step) -> bool:
    """Whether a step does nothing at all, whatever the event."""
    return step.source == step.target and not (step.needs or step.timing) and _does_nothing(step)


def _does_nothing(step: Step) -> bool:
    """Whether nothing comes of a step but the state it leads to."""
    return step.guard is None and not step.updates and not step.is_kept


def _as_of(step: Step, timing: int) -> tuple[bool, Step]:
    """Whether a step has this timing, and what it does, wherever it comes from and however it is numbered."""
    return step.timing == timing, replace(step, number=0, source=0, timing=ALWAYS)


def tables(automaton: Automaton) -> Tables:
    """The tables of an automaton."""
    updates = [one.updates for one in automaton.transitions]
    guards = [one.guard for one in automaton.transitions if one.guard is not None]
    made = [one.output for step in automaton.transitions for one in step.outputs]
    fields = [value for one in made if one.is_derived for _, value in one.fields or ()]
    deciding = _closed((name for guard in guards for name in rx.registers_in(guard)), updates)
    replayed = _closed((name for value in fields for name in rx.registers_in(value)), updates)
    needed = [_split(automaton, one) for one in automaton.transitions]
    letters = _letters(native for native, _, _ in needed)
    numbers = {letter: number for number, letter in enumerate(letters)}
    templates: dict[Template, int] = {}
    steps = []
    for number, (one, (native, timing, others)) in enumerate(zip(automaton.transitions, needed, strict=True)):
        alive = frozenset(automaton.alive[one.target]) & deciding
        replays = tuple((name, value) for name, value in one.updates if name in replayed)
        gives, events = _given(one, templates)
        guard = [*others, *([] if one.guard is None else [one.guard])]
        steps.append(
            Step(
                number,
                one.source,
                one.target,
                sum(1 << numbers[letter] for letter in ([native] if native in numbers else _alone(native))),
                timing,
                ex.all_of(*guard) if guard else None,
                tuple((name, value) for name, value in one.updates if name in alive),
                bool(gives or replays),
                replays,
                gives,
                events,
            )
        )
    return Tables(automaton, letters, tuple(steps), tuple(templates), deciding, replayed)


def _closed(names: Iterable[str], updates: Iterable[tuple[Update, ...]]) -> frozenset[str]:
    """Registers, and those that their values are computed from."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        found |= waiting
        read = {
            other for group in updates for name, value in group if name in waiting for other in rx.registers_in(value)
        }
        waiting = read - found
    return frozenset(found)


def _split(automaton: Automaton, one: Transition) -> tuple[Letter, int, list[ex.Expression]]:
    """The tests of a transition on the event alone: those that Spark can decide, its time, and the rest."""
    native, others, timing = [], [], ALWAYS
    for place in one.needs:
        test = automaton.tests[place]
        match test:
            case rx.IsLater():
                timing = LATER
            case ex.Not(operand=rx.IsLater()):
                timing = TIED
            case _ if any(isinstance(node, (*_FOREIGN, rx.IsLater)) or only_in_python(node) for node in test.walk()):
                others.append(test)
            case _:
                native.append(test)
    return tuple(native), timing, others


def _letters(needed: Iterable[Letter]) -> tuple[Letter, ...]:
    """One letter for all that a step needs, or where these are too many one for each test."""
    together = tuple(dict.fromkeys(native for native in needed if native))
    if len(together) <= MOST_LETTERS:
        return together
    return tuple(dict.fromkeys(letter for native in together for letter in _alone(native)))


def _alone(letter: Letter) -> list[Letter]:
    return [(test,) for test in letter]


def _given(
    one: Transition, templates: dict[Template, int]
) -> tuple[tuple[tuple[str, int, int], ...], tuple[tuple[int, Output], ...]]:
    """The events that a transition gives to variables, and those that it makes for them."""
    numbers: dict[Output, int] = {}
    gives = []
    for emission in one.outputs:
        output = emission.output
        if output.fields is None:
            gives.append((emission.variable, WHOLE, WHOLE))
            continue
        number = numbers.setdefault(output, len(numbers))
        gives.append((emission.variable, templates.setdefault(_template(output), len(templates)), number))
    return tuple(gives), tuple((templates[_template(output)], output) for output in numbers)


def _template(output: Output) -> Template:
    fields = output.fields or ()
    absent = () if output.is_derived else tuple(name for name, value in fields if value == rx.NULL)
    return Template(tuple(name for name, _ in fields), output.is_derived, absent)


# --- ambiguity ------------------------------------------------------------------------------------


def _is_ambiguous(found: Tables) -> bool:
    """Two different runs side by side over the same events, which bind the same at each of them."""
    shown = [_shown(step) for step in found.steps]
    asked = [_asked(found, step) for step in found.steps]
    guards = [frozenset(ex.conjuncts(step.guard)) for step in found.steps]
    alike: list[dict[object, list[Step]]] = [{} for _ in found.leaving]
    for leaving, by_shown in zip(found.leaving, alike, strict=True):
        for step in leaving:
            by_shown.setdefault(shown[step.number], []).append(step)
    begin = (START, START, False)
    seen, waiting = {begin}, [begin]
    while waiting:
        one, other, differ = waiting.pop()
        for left in found.leaving[one]:
            for right in alike[other].get(shown[left.number], ()):
                if _contradict(asked[left.number], asked[right.number]):
                    continue
                if not differ and _contradict(guards[left.number], guards[right.number]):
                    continue  # up to here the two are one run, with the same registers
                pair = (left.target, right.target, differ or left.number != right.number)
                if pair[2] and {left.target, right.target} <= found.automaton.finals:
                    return True
                if pair not in seen:
                    seen.add(pair)
                    waiting.append(pair)
    return False


def _shown(step: Step) -> tuple[tuple[str, tuple[bool, frozenset[str]] | None], ...]:
    """The part of a step that a match shows, as far as it is known before there are events."""
    made = {number: output for number, (_, output) in enumerate(step.made)}
    given = []
    for variable, template, number in step.gives:
        names = None
        if template != WHOLE:
            kind = _template(made[number])
            names = (kind.is_derived, frozenset(kind.attributes))
        given.append((variable, names))
    return tuple(sorted(given, key=repr))


def _asked(found: Tables, step: Step) -> frozenset[ex.Expression]:
    asked = {test for place, letter in enumerate(found.letters) if step.needs >> place & 1 for test in letter}
    if step.timing:
        asked.add(rx.IsLater() if step.timing == LATER else ex.Not(rx.IsLater()))
    return frozenset(asked)


def _contradict(one: frozenset[ex.Expression], other: frozenset[ex.Expression]) -> bool:
    both = one | other
    types = {test.type for test in both if isinstance(test, rx.TypeIs)}
    return len(types) > 1 or any(ex.Not(test) in both for test in both)


def folded(expression: ex.Expression, type: str | None, attributes: Mapping[str, object]) -> ex.Expression:
    """A condition on an event whose type is known: what it does not have is NULL."""

    def settled(node: ex.Expression) -> ex.Expression:
        match node:
            case rx.TypeIs():
                return ex.Literal(node.type == type)
            case ex.Attribute(variable=rx.EVENT) if node.path[0] not in attributes:
                return rx.NULL
            case _:
                return node

    return rx.simplified(expression.transform(settled))
