"""ACEL's AND: the product of two automata that read the same events and must say the same of each (R25).

Two matches are equal when their intervals and their bags are. Positions keep bags apart, so that bags are equal when
every step's are: original events always equal themselves, derived and projected ones are compared by value (R24), in
whatever order a variable holds them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import reduce
from itertools import permutations

from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.construct.made import Kind, kind_of, same
from tocsin.automata.draft import END, START, Draft, Scope, Step, refuse
from tocsin.automata.model import Emission, Output
from tocsin.language import expressions as ex

MOST_MADE_AT_ONCE = 5


def both(node: alg.Both, scope: Scope) -> Draft:
    """The matches that all parts find."""
    return reduce(lambda left, right: product(left, right, scope), [scope.part(part) for part in node.parts])


def product(left: Draft, right: Draft, scope: Scope) -> Draft:
    """Pairs of states that can be reached together; the outputs are those of the left."""
    numbers = {(START, START): START, (END, END): END}
    leaving_left, leaving_right = _by_source(left), _by_source(right)
    waiting, steps = [(START, START)], []
    while waiting:
        pair = waiting.pop()
        for one in leaving_left.get(pair[0], ()):
            for other in leaving_right.get(pair[1], ()):
                if one.ends != other.ends:  # the intervals differ
                    continue
                updates = one.updates + other.updates
                joined = Step(numbers[pair], END, one.guard, updates, one.outputs).needing(
                    *other.guard, same_outputs(one.outputs, other.outputs)
                )
                if joined is None:
                    continue
                target = (one.target, other.target)
                if target not in numbers:
                    numbers[target] = scope.state()
                    waiting.append(target)
                steps.append(replace(joined, target=numbers[target]))
    return Draft(tuple(steps), left.may_be_empty and right.may_be_empty)


def _by_source(draft: Draft) -> dict[int, list[Step]]:
    found: dict[int, list[Step]] = {}
    for step in draft.steps:
        found.setdefault(step.source, []).append(step)
    return found


def same_outputs(left: tuple[Emission, ...], right: tuple[Emission, ...]) -> ex.Expression:
    """When two steps give equal bags to every variable."""
    if Counter(map(_shape, left)) != Counter(map(_shape, right)):
        return rx.FALSE
    conditions = []
    for shape in dict.fromkeys(map(_shape, left)):
        ours = [one.output for one in left if _shape(one) == shape]
        theirs = [one.output for one in right if _shape(one) == shape]
        conditions.append(_same_bag(ours, theirs))
    return rx.both(*conditions)


def _shape(emission: Emission) -> tuple[str, Kind | None]:
    """What equal events have in common before any value is known: the variable and the kind of event."""
    return (emission.variable, kind_of(emission.output))


def _same_bag(ours: list[Output], theirs: list[Output]) -> ex.Expression:
    """TRUE when some pairing is equal throughout."""
    if len(ours) > MOST_MADE_AT_ONCE:
        refuse(f"AND of parts that give more than {MOST_MADE_AT_ONCE} derived events to a variable at once")
    pairings = [
        rx.both(*(same(one, other) for one, other in zip(ours, order, strict=True))) for order in permutations(theirs)
    ]
    return rx.simplified(ex.Or(tuple(pairings)))
