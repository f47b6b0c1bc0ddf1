"""FILTER and WHERE: conjunct by conjunct, each as early as what it speaks of is known (R1, R3, R15, R21, R26).

Every conjunct is quantified outermost, over the choices of its running references; a choice of an event that does not
exist is skipped. It is decided in one of three ways:

- one atom: every step that gives X an event must satisfy it. `X[P]` asks each event alone. `X[same(a)]`,
  `X[increasing(a)]`, `X[decreasing(a)]` ask each event and the one before it in the bag: two registers, the value
  before and whether there is one (R27: one event alone is fine, NULL beside another event is UNKNOWN, events of one
  position follow each other in the order of the bag);
- a conjunct without references that run over a bag of several events: when the last event it speaks of is read, or with
  the match's last event where it speaks of aggregates, of `b[last]` or of whole atoms (an OR of atoms is of this kind:
  each atom is a register with a truth value);
- a conjunct with one running reference: at every event of its bag, provided that all else is known by then.

Three kinds of values stand in a conjunct:

- *settled* ones: attributes of the one event a variable can hold, `b[first]`, `b[3]`; known once that event is read;
- *final* ones: aggregates, `b[last]`, ACEL's atoms; known with the last event;
- *running* ones: attributes of each event of a bag, and of its neighbours `b[i-1]`, `NEXT(b)`; a queue of registers
  holds the neighbours.

A conjunct may have running references to one variable, if all its settled values are known whenever that variable is
given an event, and no final ones. What is beyond that needs all earlier events and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NoReturn

from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.draft import START, Draft, Scope, Tracked, Tracking, reached, refuse, value_of
from tocsin.automata.model import Output
from tocsin.expressions import interpret
from tocsin.language import expressions as ex
from tocsin.language.sase.printer import print_expression

Atom = ex.Every | ex.BagPredicate
COMPARED = {ex.BagOrder.SAME: "=", ex.BagOrder.INCREASING: "<", ex.BagOrder.DECREASING: ">"}
Values = Mapping[ex.Expression, ex.Expression]

# Each event that a running index looks back takes a register for every attribute compared.
LONGEST_QUEUE = 100


def filter_(node: alg.Filter, scope: Scope) -> Draft:
    """The matches of the part for which the condition is TRUE."""
    if isinstance(node.part, alg.Any):
        return _of_branches(node.part, node.condition, scope)
    return keep(scope.part(node.part), node.condition, scope)


def _of_branches(part: alg.Any, condition: ex.Expression, scope: Scope) -> Draft:
    """A choice, with the conditions on one branch inside that branch: they hold for all others (R1).

    So that n conditions on n branches are not each carried through all n of them.
    """
    named = [frozenset(alg.variables_of(branch)) for branch in part.parts]
    branches: dict[str, list[int]] = {}
    for number, names in enumerate(named):
        for name in names:
            branches.setdefault(name, []).append(number)
    own: dict[int, list[ex.Expression]] = {}
    rest: list[ex.Expression] = []
    for conjunct in ex.conjuncts(condition):
        places = {tuple(branches.get(name, ())) for name in ex.variables_in(conjunct)}
        if len(places) == 1 and len(only := places.pop()) == 1 and _is_vacuous(conjunct):
            own.setdefault(only[0], []).append(conjunct)
        else:
            rest.append(conjunct)
    filtered = [
        alg.Filter(branch, ex.all_of(*own[number])) if number in own else branch
        for number, branch in enumerate(part.parts)
    ]
    draft = scope.part(replace(part, parts=tuple(filtered)))
    return keep(draft, ex.all_of(*rest), scope) if rest else draft


def _is_vacuous(conjunct: ex.Expression) -> bool:
    """Whether a conjunct holds of a match without its variables: aggregates have a value on the empty bag (R18)."""
    whole = ex.Aggregate | ex.Every | ex.BagPredicate
    return not isinstance(conjunct, ex.Aggregate) and not any(
        isinstance(node, whole) for node in conjunct.walk() if node is not conjunct
    )


def keep(draft: Draft, condition: ex.Expression | None, scope: Scope) -> Draft:
    """The runs of a draft for which a condition is TRUE."""
    for conjunct in ex.conjuncts(condition):
        if isinstance(conjunct, Atom):
            tracking = Tracking(draft, scope)
            conditions = _atom_conditions(tracking, conjunct)
            draft = tracking.draft.where(conditions)
        else:
            draft = _keep_conjunct(draft, conjunct, scope)
    return draft


@dataclass(frozen=True)
class Piece:
    """A value a conjunct speaks of: what it is after each step, and whether there is one."""

    node: ex.Expression
    after: tuple[ex.Expression, ...]
    exists: tuple[ex.Expression, ...]


def _keep_conjunct(draft: Draft, conjunct: ex.Expression, scope: Scope) -> Draft:
    """The runs for which a conjunct holds for every choice of events."""
    references = list(dict.fromkeys(ex.references_in(conjunct)))
    if any(not _is_given(draft, reference.variable) for reference in references):
        return draft  # it speaks of an event that no match has (R1)
    running = {
        reference.variable
        for reference in references
        if ex.offset_of(reference.index) is not None and _holds_several(draft, reference.variable)
    }
    if len(running) > 1:
        refuse(f"`{print_expression(conjunct)}`, which compares all events of two iterations", conjunct.where)
    if not running and any(ex.offset_of(reference.index) not in (None, 0) for reference in references):
        return draft  # a neighbour in a bag of one
    builder = _Builder(draft, scope, conjunct, references)
    return builder.at_every(running.pop()) if running else builder.once()


class _Builder(Tracking):
    """One conjunct on its way into a draft."""

    def __init__(self, draft: Draft, scope: Scope, conjunct: ex.Expression, references: list[ex.Attribute]) -> None:
        super().__init__(draft, scope)
        self.conjunct = conjunct
        self.references = references
        self.text = print_expression(conjunct)

    def once(self) -> Draft:
        """A conjunct without running references."""
        pieces = [self._settled(reference) for reference in self.references]
        final = [self._final(node) for node in _final_nodes(self.conjunct)]
        waits = bool(final) or any(one.index is ex.Edge.LAST for one in self.references) or not self.references
        conditions = []
        for place, step in enumerate(self.draft.steps):
            is_due = step.ends if waits else any(step.given_to(one.variable) for one in self.references)
            conditions.append(self._condition(place, pieces + final) if is_due else rx.TRUE)
        kept = self.draft.where(conditions)
        # Whether the match that binds nothing is one depends on the conjunct.
        is_empty = kept.may_be_empty and (bool(self.references) or interpret.value(self.conjunct)({}) is True)
        return replace(kept, may_be_empty=is_empty)

    def at_every(self, variable: str) -> Draft:
        """A conjunct that runs over the events of one variable."""
        run = [one for one in self.references if one.variable == variable and ex.offset_of(one.index) is not None]
        others = [one for one in self.references if one not in run]
        self._check(variable, run, others)
        pieces = [self._settled(reference) for reference in others]
        offsets = [ex.offset_of(one.index) or 0 for one in run] + [0]  # the index itself must be in the bag
        if max(offsets) - min(offsets) > LONGEST_QUEUE:
            self._refuse(f"an index that reaches over more than {LONGEST_QUEUE} events")
        pieces += self._queued(run, max(offsets), max(offsets) - min(offsets))
        return self.draft.where(
            self._condition(place, pieces) if step.given_to(variable) else rx.TRUE
            for place, step in enumerate(self.draft.steps)
        )

    def _refuse(self, part: str) -> NoReturn:
        refuse(part, self.conjunct.where)

    def _check(self, variable: str, run: list[ex.Attribute], others: list[ex.Attribute]) -> None:
        if _final_nodes(self.conjunct) or any(one.index is ex.Edge.LAST for one in self.references):
            self._refuse(f"`{self.text}`, which compares all events of `{variable}` with what only the last one tells")
        if any(len(step.given_to(variable)) > 1 for step in self.draft.steps):
            self._refuse(f"`{self.text}`: `{variable}` may hold several events of one position")
        letters = {one.index.letter for one in run if isinstance(one.index, ex.Running)}
        for one in others:
            if isinstance(one.index, ex.Running) and one.index.letter in letters:
                self._refuse(f"`{self.text}`, which counts the events of two variables with one index")
            if isinstance(one.index, ex.Fixed) and one.index.number > 1:
                self._refuse(f"`{self.text}`, which compares all events of `{variable}` with one far inside a bag")
            if _may_come_late(self.draft, one.variable, variable):
                self._refuse(f"`{self.text}`, which compares `{one.variable}` with all earlier events of `{variable}`")

    def _condition(self, place: int, pieces: list[Piece]) -> ex.Expression:
        values: Values = {piece.node: piece.after[place] for piece in pieces}
        missing = (ex.Not(piece.exists[place]) for piece in pieces)
        return rx.unless(ex.Or((*missing, rx.FALSE)), replaced(self.conjunct, values))

    # --- registers --------------------------------------------------------------------------------

    def _settled(self, reference: ex.Attribute) -> Piece:
        """The value of one event: the only one, the first, the third or the last so far."""
        variable, index = reference.variable, reference.index
        given = self.given(variable, reference.path)
        number = index.number if isinstance(index, ex.Fixed) else 1
        if index is ex.Edge.LAST or not _holds_several(self.draft, variable):
            if number > 1 or ex.offset_of(index) not in (None, 0):
                return Piece(reference, (rx.NULL,) * len(given), (rx.FALSE,) * len(given))
            return Piece(
                reference, self.latest(f"{variable}.{reference.name}", given).after, self.holding(variable).after
            )
        counted = self.track(
            f"count({variable})",
            ex.Literal(0),
            lambda place, old: ex.Arithmetic("+", old, ex.Literal(len(given[place]))) if given[place] else old,
        )

        def change(place: int, old: ex.Expression) -> ex.Expression:
            for already, value in enumerate(given[place]):
                at = ex.Arithmetic("+", counted.before[place], ex.Literal(already + 1))
                old = ex.Case(((ex.Comparison("=", at, ex.Literal(number)), value),), old)
            return old

        chosen = self.track(f"{variable}[{number}].{reference.name}", rx.NULL, change)
        reaches = tuple(rx.simplified(ex.Comparison(">=", one, ex.Literal(number))) for one in counted.after)
        return Piece(reference, chosen.after, reaches)

    def _final(self, node: ex.Expression) -> Piece:
        always = (rx.TRUE,) * len(self.draft.steps)
        if isinstance(node, ex.Aggregate):
            function = self.scope.monoid(node.function, node.distinct, node.monoid, node.where)
            elements = self._aggregate(node, function).after
            return Piece(node, tuple(rx.Finish(function, element) for element in elements), always)
        assert isinstance(node, Atom)
        conditions = _atom_conditions(self, node)
        truth = self.track(f"{node.variable}[…]", rx.TRUE, lambda place, old: rx.both(old, conditions[place]))
        return Piece(node, truth.after, always)

    def _aggregate(self, node: ex.Aggregate, function: str) -> Tracked:
        """SASE+'s aggregates leave NULLs out, but for `first` and `last` (R18)."""
        argument = node.argument
        if argument is None:
            refuse(f"`{self.text}`, which counts matches", node.where)
        (variable,) = ex.variables_in(argument)
        leaves_out = function not in ("first", "last") and not isinstance(argument, ex.Variable)

        def value(output: Output) -> ex.Expression:
            if isinstance(argument, ex.Variable):
                return rx.TRUE
            paths: Values = {
                one: value_of(output, one.path) for one in argument.walk() if isinstance(one, ex.Attribute)
            }
            return replaced(argument, paths)

        def change(place: int, old: ex.Expression) -> ex.Expression:
            for one in map(value, self.draft.steps[place].given_to(variable)):
                new = rx.Combine(function, old, rx.Lift(function, one))
                old = ex.Case(((ex.IsNull(one), old),), new) if leaves_out else new
            return old

        return self.track(f"{function}({variable})", rx.Zero(function), change)

    def _queued(self, run: list[ex.Attribute], newest: int, length: int) -> list[Piece]:
        """The event read stands at the newest index; registers hold those before it, each moving up by one."""
        variable = run[0].variable
        queues: dict[tuple[str, ...], list[tuple[ex.Expression, ...]]] = {}
        for path in dict.fromkeys(one.path for one in run):
            values = tuple(given[-1] if given else rx.NULL for given in self.given(variable, path))
            queues[path] = self._queue(variable, ".".join((variable, *path)), values, rx.NULL, length)
        there = self._queue(variable, f"holds({variable})", (rx.TRUE,) * len(self.draft.steps), rx.FALSE, length)
        exists = tuple(rx.both(*lags) for lags in zip(*there, strict=True))
        return [Piece(one, queues[one.path][newest - (ex.offset_of(one.index) or 0)], exists) for one in run]

    def _queue(
        self, variable: str, name: str, current: tuple[ex.Expression, ...], zero: ex.Expression, length: int
    ) -> list[tuple[ex.Expression, ...]]:
        """The values given to a variable 0, 1, 2 … events ago, seen from each step that gives it one."""
        seen = [current]
        for lag in range(1, length + 1):
            newer = seen[-1]

            def change(place: int, old: ex.Expression, newer: tuple[ex.Expression, ...] = newer) -> ex.Expression:
                return newer[place] if self.draft.steps[place].given_to(variable) else old

            seen.append(self.track(f"{name}[-{lag}]", zero, change).before)
        return seen


def _final_nodes(node: ex.Expression) -> list[ex.Expression]:
    if isinstance(node, ex.Aggregate | ex.Every | ex.BagPredicate):
        return [node]
    return list(dict.fromkeys(found for child in node.children() for found in _final_nodes(child)))


def replaced(node: ex.Expression, values: Values) -> ex.Expression:
    """The expression with whole subtrees replaced, outermost first: what was put in is not looked at again."""
    if node in values:
        return values[node]
    return node.map_children(lambda child: replaced(child, values))


# --- atoms ----------------------------------------------------------------------------------------


def _atom_conditions(tracking: Tracking, atom: Atom) -> list[ex.Expression]:
    """What the atom asks of each step of a draft, which gains the registers that it needs."""
    if isinstance(atom, ex.BagPredicate):
        return _neighbours(tracking, atom)
    return [
        rx.both(*(_of_event(atom, output) for output in step.given_to(atom.variable))) for step in tracking.draft.steps
    ]


def _of_event(atom: ex.Every, output: Output) -> ex.Expression:
    speaks_of_more = any(
        isinstance(node, ex.Aggregate | ex.Every | ex.BagPredicate | ex.Variable)
        or (isinstance(node, ex.Attribute) and (node.variable, node.index) != (atom.variable, ex.Each.PLAIN))
        for node in atom.condition.walk()
    )
    if speaks_of_more:
        refuse(f"a filter on `{atom.variable}` that speaks of more than one of its events", atom.where)
    return rx.simplified(
        atom.condition.transform(lambda node: value_of(output, node.path) if isinstance(node, ex.Attribute) else node)
    )


def _neighbours(tracking: Tracking, atom: ex.BagPredicate) -> list[ex.Expression]:
    given = tracking.given(atom.variable, atom.path)
    last = tracking.latest(f"last({'.'.join((atom.variable, *atom.path))})", given)
    is_there = tracking.holding(atom.variable)
    conditions = []
    for place, values in enumerate(given):
        pairs = pairwise([last.before[place], *values])
        compared: list[ex.Expression] = [ex.Comparison(COMPARED[atom.order], *pair) for pair in pairs]
        if compared:
            compared[0] = rx.unless(ex.Not(is_there.before[place]), compared[0])
        conditions.append(rx.both(*compared))
    return conditions


# --- when variables are given events, as far as steps alone can tell --------------------------------


def _is_given(draft: Draft, variable: str) -> bool:
    """Whether any run gives the variable an event."""
    return any(step.given_to(variable) for step in draft.steps)


def _holds_several(draft: Draft, variable: str) -> bool:
    """Whether a run may give the variable more than one event."""
    giving = [step for step in draft.steps if step.given_to(variable)]
    after = reached({step.target for step in giving}, draft.edges)
    return any(len(step.given_to(variable)) > 1 or step.source in after for step in giving)


def _may_come_late(draft: Draft, variable: str, running: str) -> bool:
    """Whether `running` may be given an event before `variable` is given its first one."""
    without = reached({START}, ((step.source, step.target) for step in draft.steps if not step.given_to(variable)))
    early = {
        step.target
        for step in draft.steps
        if step.source in without and step.given_to(running) and not step.given_to(variable)
    }
    after = reached(early, draft.edges)
    return any(step.source in after and step.given_to(variable) for step in draft.steps)
