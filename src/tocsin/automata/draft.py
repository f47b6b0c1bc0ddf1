"""An automaton in the making, and the one way to add a register to it.

A draft is in the model's normal form throughout: nothing enters START, nothing leaves END, a run reads at least one
event. So the steps out of START are those that begin a match of the part, wherever its copies end up later; they set
every register of the part from constants, and a second copy of an iteration never sees what the first one left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import NamedTuple, NoReturn

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.model import Emission, Output, Update
from tocsin.expressions.monoids import BUILT_IN, distinct
from tocsin.language import expressions as ex
from tocsin.language.user_defined import Monoid
from tocsin.source import Where

START, END = 0, 1
MOST_STEPS = 4_000


def conjoined(guard: Iterable[ex.Expression], conditions: Iterable[ex.Expression]) -> tuple[ex.Expression, ...] | None:
    """A guard with more conditions, each once; None when they cannot all be TRUE."""
    kept = dict.fromkeys(guard)
    type = next((one.type for one in kept if isinstance(one, rx.TypeIs)), None)
    for one in (one for condition in conditions for one in ex.conjuncts(rx.simplified(condition))):
        if one in (rx.FALSE, rx.NULL) or ex.Not(one) in kept or (isinstance(one, ex.Not) and one.operand in kept):
            return None
        if isinstance(one, rx.TypeIs):
            if type not in (None, one.type):
                return None
            if type is None:  # what denies another type says nothing more
                kept = {each: None for each in kept if not _denies_type(each)}
            type = one.type
        if one != rx.TRUE and (type is None or not _denies_type(one)):
            kept[one] = None
    return tuple(kept)


def _denies_type(condition: ex.Expression) -> bool:
    return isinstance(condition, ex.Not) and isinstance(condition.operand, rx.TypeIs)


@dataclass(frozen=True)
class Step:
    """A transition in the making; its guard is a conjunction."""

    source: int
    target: int
    guard: tuple[ex.Expression, ...] = ()
    updates: tuple[Update, ...] = ()
    outputs: tuple[Emission, ...] = ()

    @property
    def begins(self) -> bool:
        """Whether it reads the first event of a match."""
        return self.source == START

    @property
    def ends(self) -> bool:
        """Whether it reads the last event of a match."""
        return self.target == END

    def needing(self, *conditions: ex.Expression) -> Step | None:
        """The step with a stronger guard; None when that is never TRUE."""
        guard = conjoined(self.guard, conditions)
        return None if guard is None else replace(self, guard=guard)

    def rewritten(self, change: Callable[[ex.Expression], ex.Expression]) -> Step:
        """The step with other expressions in its guard, its updates and what it derives."""

        def changed(values: tuple[Update, ...]) -> tuple[Update, ...]:
            return tuple((name, change(value)) for name, value in values)

        outputs = (
            one
            if one.output.fields is None
            else replace(one, output=replace(one.output, fields=changed(one.output.fields)))
            for one in self.outputs
        )
        return replace(
            self, guard=tuple(map(change, self.guard)), updates=changed(self.updates), outputs=tuple(outputs)
        )

    def given_to(self, variable: str) -> list[Output]:
        """The outputs of the step to a variable, in order."""
        return [one.output for one in self.outputs if one.variable == variable]


@dataclass(frozen=True)
class Draft:
    """Steps between START and END; `may_be_empty` when the part may also bind nothing at all (R13)."""

    steps: tuple[Step, ...]
    may_be_empty: bool = False

    @property
    def edges(self) -> list[tuple[int, int]]:
        """The states that each step leads from and to."""
        return [(step.source, step.target) for step in self.steps]

    @cached_property
    def leaving(self) -> Mapping[int, list[Step]]:
        """The steps out of each state."""
        found: dict[int, list[Step]] = defaultdict(list)
        for step in self.steps:
            found[step.source].append(step)
        return found

    def mapped(self, change: Callable[[Step], Step | None]) -> Draft:
        """Each step changed, or left out."""
        return replace(self, steps=tuple(new for step in self.steps if (new := change(step)) is not None))

    def where(self, conditions: Iterable[ex.Expression]) -> Draft:
        """Each step with one more condition."""
        kept = (step.needing(condition) for step, condition in zip(self.steps, conditions, strict=True))
        return replace(self, steps=tuple(step for step in kept if step is not None))


def reached(sources: Iterable[int], edges: Iterable[tuple[int, int]]) -> set[int]:
    """The states that some states lead to, these included."""
    following: dict[int, set[int]] = {}
    for source, target in edges:
        following.setdefault(source, set()).add(target)
    found = set(sources)
    waiting = list(found)
    while waiting:
        new = following.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


class Scope:
    """Fresh names and the choices of the caller, for all parts of one automaton."""

    def __init__(self, build: Callable[[alg.Node, Scope], Draft], *, contiguous: bool = False) -> None:
        self.build = build
        self.monoids: dict[str, Monoid] = {}
        self.contiguous = contiguous
        self._states = count(END + 1)
        self._numbers = count(1)

    def part(self, node: alg.Node) -> Draft:
        """The draft of a part."""
        draft = self.build(node, self)
        if len(draft.steps) > MOST_STEPS:
            refuse(f"an automaton of more than {MOST_STEPS} transitions", node.where)
        return draft

    def state(self) -> int:
        """A state that no draft has."""
        return next(self._states)

    def number(self) -> int:
        """A number that nothing else bears."""
        return next(self._numbers)

    def monoid(self, function: str, is_distinct: bool, given: Monoid | None, where: Where) -> str:
        """The name by which expressions call an aggregate; `given` is a user's own."""
        monoid = given or BUILT_IN.get(function)
        if monoid is None:
            refuse(f"the aggregate `{function}`, of which no monoid is known", where)
        # The first and the last of the different values are those of all.
        if is_distinct and function not in ("first", "last"):
            function, monoid = f"{function} distinct", distinct(monoid)
        self.monoids.setdefault(function, monoid)
        return function

    def renamed(self, draft: Draft) -> Draft:
        """A copy between its own states. Registers are shared: one copy is over before the next begins."""
        new = {START: START, END: END}
        for step in draft.steps:
            for state in (step.source, step.target):
                if state not in new:
                    new[state] = self.state()
        return draft.mapped(lambda step: replace(step, source=new[step.source], target=new[step.target]))


class Tracked(NamedTuple):
    """What a register holds before and after each step of a draft, in terms of the registers before it."""

    before: tuple[ex.Expression, ...]
    after: tuple[ex.Expression, ...]


class Tracking:
    """A draft that gains registers; its steps keep their places."""

    def __init__(self, draft: Draft, scope: Scope) -> None:
        self.draft = draft
        self.scope = scope

    def track(self, hint: str, zero: ex.Expression, change: Callable[[int, ex.Expression], ex.Expression]) -> Tracked:
        """Add a register that is `zero` before a match begins and that the step at a place changes."""
        name = f"{hint}#{self.scope.number()}"
        old = rx.Register(name)
        before = tuple(zero if step.begins else old for step in self.draft.steps)
        after = tuple(rx.simplified(change(place, value)) for place, value in enumerate(before))
        steps = (
            step if new == old else replace(step, updates=(*step.updates, (name, new)))
            for step, new in zip(self.draft.steps, after, strict=True)
        )
        self.draft = replace(self.draft, steps=tuple(steps))
        return Tracked(before, after)

    def given(self, variable: str, path: tuple[str, ...]) -> list[list[ex.Expression]]:
        """By step, an attribute of each event that it gives to a variable."""
        return [[value_of(output, path) for output in step.given_to(variable)] for step in self.draft.steps]

    def latest(self, hint: str, given: Sequence[Sequence[ex.Expression]]) -> Tracked:
        """Add a register for the last of some values that steps give."""
        return self.track(hint, rx.NULL, lambda place, old: given[place][-1] if given[place] else old)

    def holding(self, variable: str) -> Tracked:
        """Add a register for whether a variable holds an event yet."""
        giving = [bool(step.given_to(variable)) for step in self.draft.steps]
        return self.track(f"holds({variable})", rx.FALSE, lambda place, old: rx.TRUE if giving[place] else old)


def value_of(output: Output, path: tuple[str, ...]) -> ex.Expression:
    """An attribute of an event that a step gives to a variable, NULL when it has none; no path is its time."""
    if not path:
        return rx.EventTime()
    if output.fields is None:
        return rx.attribute(path)
    value = dict(output.fields).get(path[0], rx.NULL)
    if len(path) == 1:
        return value
    return rx.attribute(path) if isinstance(value, ex.Attribute) else rx.NULL


def refuse(part: str, where: Where = None) -> NoReturn:
    """Say which part of a pattern registers cannot decide."""
    raise errors.OptionRefusedError(
        f"A register automaton cannot recognise {part}.", where=where, hint="another strategy can run this pattern."
    )
