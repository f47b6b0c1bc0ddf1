"""Events that a step makes, by PROJECT or AGG: which of them may be equal, and in which order variables hold them.

Events that are made are compared by value (R24), so that nothing may depend on which operator made which. Those of one
position follow the event that was read, what AGG made before what PROJECT left; then they are ordered by the names of
their attributes and by their values as canonical text. Values are known only when an event is read: a step that makes
several events of one kind becomes one step for every order of their values, with the order as its guard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tocsin.automata import expressions as rx
from tocsin.automata.draft import Draft, Step, refuse
from tocsin.automata.model import Output, TheEvent
from tocsin.language import expressions as ex

MOST_ALIKE = 4  # there are 75 orders of four values
Kind = tuple[bool, tuple[str, ...]]


def kind_of(output: Output) -> Kind | None:
    """What equal events have in common before any value is known; None for the event read, which is always itself."""
    if not isinstance(output, TheEvent):
        return False, tuple(sorted(name for name, _ in output.fields))
    return None if output.attributes is None else (True, tuple(sorted(output.attributes)))


def same(one: Output, other: Output) -> ex.Expression:
    """When two events of one kind are equal."""
    return rx.both(*(rx.Identical(left, right) for left, right in _pairs(one, other)))


def _before(one: Output, other: Output) -> ex.Expression:
    """When an event stands before another of its kind."""
    pairs = _pairs(one, other)
    return rx.simplified(
        ex.any_of(
            *(
                rx.both(*(rx.Identical(*equal) for equal in pairs[:place]), rx.Precedes(*pair))
                for place, pair in enumerate(pairs)
            )
        )
    )


def _pairs(one: Output, other: Output) -> list[tuple[ex.Expression, ex.Expression]]:
    ours, theirs = _values(one), _values(other)
    return [(ours[name], theirs[name]) for name in sorted(ours)]


def _values(output: Output) -> dict[str, ex.Expression]:
    if not isinstance(output, TheEvent):
        return dict(output.fields)
    return {name: output.value(name) for name in output.attributes or ()}


@dataclass(frozen=True)
class Arrangement:
    """A step for one order of the events that it makes: blocks of equal ones, the smallest first."""

    step: Step
    blocks: tuple[tuple[Output, ...], ...] = ()

    @property
    def ordered(self) -> Step:
        """The step, which gives events to variables in this order."""
        places = {output: place for place, block in enumerate(self.blocks) for output in block}
        outputs = sorted(self.step.outputs, key=lambda one: places.get(one.output, -1))
        return replace(self.step, outputs=tuple(outputs))


def arrangements(step: Step, alike: Iterable[Kind]) -> Iterator[Arrangement]:
    """The step for every order of the events of some kinds; all others are taken to differ."""
    chosen = set(alike)
    made: dict[Kind, dict[Output, None]] = {}
    for one in step.outputs:
        kind = kind_of(one.output)
        if kind is not None:
            made.setdefault(kind, {})[one.output] = None
    found = [Arrangement(step)]
    for kind, outputs in sorted(made.items()):
        if kind in chosen and len(outputs) > MOST_ALIKE:
            refuse(f"a part that makes more than {MOST_ALIKE} events with the attributes {', '.join(kind[1])} at once")
        for output in outputs:
            if kind in chosen:
                found = [new for old in found for new in _inserted(old, output, kind)]
            else:
                found = [replace(old, blocks=(*old.blocks, (output,))) for old in found]
    yield from found


def _inserted(old: Arrangement, output: Output, kind: Kind) -> Iterator[Arrangement]:
    """One more event: equal to those of a block, or between two blocks of its kind."""
    blocks = old.blocks
    first = next((place for place, block in enumerate(blocks) if kind_of(block[0]) == kind), len(blocks))
    passed: list[ex.Expression] = []  # so that exactly one of the guards is TRUE
    for place in range(first, len(blocks)):
        smaller, larger = _before(output, blocks[place][0]), _before(blocks[place][0], output)
        if step := old.step.needing(*passed, smaller):
            yield Arrangement(step, (*blocks[:place], (output,), *blocks[place:]))
        if step := old.step.needing(*passed, ex.Not(smaller), ex.Not(larger)):
            yield Arrangement(step, (*blocks[:place], (*blocks[place], output), *blocks[place + 1 :]))
        passed += [ex.Not(smaller), larger]
    if step := old.step.needing(*passed):
        yield Arrangement(step, (*blocks, (output,)))


def in_order(draft: Draft) -> Draft:
    """The draft whose variables hold the events of one position in order."""
    return replace(
        draft, steps=tuple(one.ordered for step in draft.steps for one in arrangements(step, _held_together(step)))
    )


def _held_together(step: Step) -> set[Kind]:
    """The kinds of which a variable is given several."""
    seen: set[tuple[str, Kind]] = set()
    found: set[Kind] = set()
    for one in step.outputs:
        kind = kind_of(one.output)
        if kind is not None:
            found |= {kind} if (one.variable, kind) in seen else set()
            seen.add((one.variable, kind))
    return found
