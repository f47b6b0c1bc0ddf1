"""The outputs of steps: PROJECT, AGG, `AS` and ACEL's AND, and the events that a step makes for variables.

Events that are made, by PROJECT or AGG, are compared by value (R24), so that nothing may depend on which operator made
which. Those of one position follow the event that was read, what AGG made before what PROJECT left; then they are
ordered by the names of their attributes and by their values as canonical text. Values are known only when an event is
read: a step that makes several events of one kind becomes one step for every order of their values, with the order as
its guard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import permutations

from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.draft import END, START, Draft, Scope, Step, Tracked, Tracking, refuse, value_of
from tocsin.automata.model import Emission, Output
from tocsin.language import expressions as ex

MOST_ALIKE = 4  # there are 75 orders of four values
MOST_MADE_AT_ONCE = 5
Kind = tuple[bool, tuple[str, ...]]


def project(node: alg.Project, scope: Scope) -> Draft:
    """Keep the named variables, and of some only attributes; the steps stay, and with them the interval (R8)."""
    kept = dict(node.kept)

    def projected(step: Step) -> Step:
        return replace(
            step,
            outputs=tuple(
                Emission(one.variable, _narrowed(one.output, kept[one.variable], scope))
                for one in step.outputs
                if one.variable in kept
            ),
        )

    return in_order(scope.part(node.part).mapped(projected))


def _narrowed(output: Output, attributes: tuple[str, ...] | None, scope: Scope) -> Output:
    """An event with fewer attributes is another event, and one for every variable (R19)."""
    if attributes is None:
        return output
    fields = tuple((name, value_of(output, (name,))) for name in attributes)
    return Output(fields, output.is_derived, scope.number())


def derive(node: alg.Derive, scope: Scope) -> Draft:
    """`AGG Y[b <- f(X.a)]`: the last step of a match adds the derived event (R24).

    One register per fold; it starts at the identity whenever a match of the part begins.
    """
    draft = scope.part(node.part)
    if draft.may_be_empty:
        refuse("an aggregate of a part that may match nothing", node.where)
    tracking = Tracking(draft, scope)
    folds = []
    for one in node.folds:
        function = scope.monoid(one.function, one.distinct, one.monoid, one.where)
        folds.append((one.name, function, _folded(tracking, function, one)))
    number = scope.number()
    steps = []
    for place, step in enumerate(tracking.draft.steps):
        fields = tuple((name, rx.Finish(function, fold.after[place])) for name, function, fold in folds)
        derived = Emission(node.variable, Output(fields, is_derived=True, number=number))
        steps.append(replace(step, outputs=(*step.outputs, derived)) if step.ends else step)
    return in_order(replace(draft, steps=tuple(steps)))


def _folded(tracking: Tracking, function: str, fold: alg.Fold) -> Tracked:
    """The register of one fold: what each step gives to the variable is combined with what came before."""
    given = tracking.given(fold.variable, fold.path)

    def change(place: int, old: ex.Expression) -> ex.Expression:
        for value in given[place]:
            old = rx.Combine(function, old, rx.Lift(function, value))
        return old

    return tracking.track(f"{function}({'.'.join((fold.variable, *fold.path))})", rx.Zero(function), change)


# --- AS ------------------------------------------------------------------------------------------


def bind(node: alg.Bind, scope: Scope) -> Draft:
    """`AS X`: X holds every event of the match once, those that were made included (R19).

    Equal events of two variables are one, and X holds as many of them as the variable that holds most. No two positions
    share an event, so that each step can give X what its own event brought.
    """
    draft = scope.part(node.part)
    return replace(
        draft,
        steps=tuple(
            _bound(one, node.variable) for step in draft.steps for one in arrangements(step, _of_several(step))
        ),
    )


def _of_several(step: Step) -> set[Kind]:
    """The kinds of events of which the step makes several."""
    numbers = Counter(kind_of(output) for output in {one.output for one in step.outputs})
    return {kind for kind, number in numbers.items() if kind is not None and number > 1}


def _bound(arranged: Arrangement, variable: str) -> Step:
    step = arranged.ordered
    held = [one.output for one in step.outputs if kind_of(one.output) is None][:1]
    for block in arranged.blocks:
        numbers = Counter(one.variable for one in step.outputs if one.output in block)
        held += block[: max(numbers.values())]
    others = tuple(one for one in step.outputs if one.variable != variable)
    return replace(step, outputs=others + tuple(Emission(variable, output) for output in held))


# --- AND -----------------------------------------------------------------------------------------


def both(node: alg.Both, scope: Scope) -> Draft:
    """The matches that all parts find: the product of automata that read the same events and give the same (R25).

    Two matches are equal when their intervals and their bags are. Positions keep bags apart, so that bags are equal
    when every step's are, in whatever order a variable holds its events.
    """
    return reduce(lambda left, right: product(left, right, scope), [scope.part(part) for part in node.parts])


def product(left: Draft, right: Draft, scope: Scope) -> Draft:
    """Pairs of states that can be reached together; the outputs are those of the left."""
    numbers = {(START, START): START, (END, END): END}
    waiting, steps = [(START, START)], []
    while waiting:
        pair = waiting.pop()
        for one in left.leaving.get(pair[0], ()):
            for other in right.leaving.get(pair[1], ()):
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
    """The variable and the kind of event, which equal events share before any value is known."""
    return (emission.variable, kind_of(emission.output))


def _same_bag(ours: list[Output], theirs: list[Output]) -> ex.Expression:
    """TRUE when some pairing is equal throughout."""
    if len(ours) > MOST_MADE_AT_ONCE:
        refuse(f"AND of parts that give more than {MOST_MADE_AT_ONCE} derived events to a variable at once")
    pairings = [
        rx.both(*(same(one, other) for one, other in zip(ours, order, strict=True))) for order in permutations(theirs)
    ]
    return rx.simplified(ex.Or(tuple(pairings)))


# --- events that a step makes --------------------------------------------------------------------


def kind_of(output: Output) -> Kind | None:
    """The kind that equal events share before any value is known; None for the event read, which is always itself."""
    return None if output.fields is None else (not output.is_derived, tuple(sorted(name for name, _ in output.fields)))


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
    ours, theirs = dict(one.fields or ()), dict(other.fields or ())
    return [(ours[name], theirs[name]) for name in sorted(ours)]


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
    numbers = Counter(map(_shape, step.outputs))
    return {kind for (_, kind), number in numbers.items() if kind is not None and number > 1}
