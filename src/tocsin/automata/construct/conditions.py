"""FILTER and WHERE: conjunct by conjunct, each as early as what it speaks of is known (R1, R3, R15, R21, R26).

Every conjunct is quantified outermost, over the choices of its running references; a choice of an event that does not
exist is skipped. It is decided in one of three ways:

- one atom `X[P]`, or one bag predicate: every step that gives X an event must satisfy it (see `atoms`);
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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.construct.atoms import atom_conditions, holding, holds_several, is_given, may_come_late
from tocsin.automata.draft import Draft, Scope, Tracked, refuse, track, value_of
from tocsin.expressions import interpret
from tocsin.expressions.interpret import offset_of
from tocsin.language import expressions as ex
from tocsin.language.sase.printer import print_expression

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
    return not any(isinstance(node, whole) for node in conjunct.walk() if node is not conjunct) and not isinstance(
        conjunct, ex.Aggregate
    )


def keep(draft: Draft, condition: ex.Expression | None, scope: Scope) -> Draft:
    """The runs of a draft for which a condition is TRUE."""
    for conjunct in ex.conjuncts(condition):
        if isinstance(conjunct, ex.Every | ex.BagPredicate):
            draft, conditions = atom_conditions(draft, conjunct, scope)
            draft = draft.where(conditions)
        else:
            draft = keep_conjunct(draft, conjunct, scope)
    return draft


@dataclass(frozen=True)
class Piece:
    """A value a conjunct speaks of: what it is after each step, and whether there is one."""

    node: ex.Expression
    after: tuple[ex.Expression, ...]
    exists: tuple[ex.Expression, ...]


def keep_conjunct(draft: Draft, conjunct: ex.Expression, scope: Scope) -> Draft:
    """The runs for which a conjunct holds for every choice of events."""
    references = list(dict.fromkeys(ex.references_in(conjunct)))
    if any(not is_given(draft, reference.variable) for reference in references):
        return draft  # it speaks of an event that no match has (R1)
    running = {
        reference.variable
        for reference in references
        if offset_of(reference.index) is not None and holds_several(draft, reference.variable)
    }
    text = print_expression(conjunct)
    if len(running) > 1:
        refuse(f"`{text}`, which compares all events of two iterations", conjunct.where)
    if not running and any(offset_of(reference.index) not in (None, 0) for reference in references):
        return draft  # a neighbour in a bag of one
    builder = _Builder(scope, draft, conjunct, text)
    if running:
        return builder.at_every(running.pop(), references)
    return builder.once(references)


@dataclass
class _Builder:
    """One conjunct on its way into a draft; `draft` gains registers, and its steps keep their places."""

    scope: Scope
    draft: Draft
    conjunct: ex.Expression
    text: str

    def once(self, references: list[ex.Attribute]) -> Draft:
        """A conjunct without running references."""
        settled = [self._settled(reference) for reference in references]
        final = [self._final(node) for node in _final_nodes(self.conjunct)]
        waits = bool(final) or any(reference.index is ex.Edge.LAST for reference in references) or not references
        conditions = []
        for place, step in enumerate(self.draft.steps):
            is_due = step.ends if waits else any(step.given_to(reference.variable) for reference in references)
            conditions.append(self._condition(place, settled + final) if is_due else rx.TRUE)
        kept = self.draft.where(conditions)
        # Whether the match that binds nothing is one depends on the conjunct.
        is_empty = kept.may_be_empty and (bool(references) or interpret.value(self.conjunct)({}) is True)
        return Draft(kept.steps, is_empty)

    def at_every(self, variable: str, references: list[ex.Attribute]) -> Draft:
        """A conjunct that runs over the events of one variable."""
        self._check(variable, references)
        run = [one for one in references if one.variable == variable and offset_of(one.index) is not None]
        settled = [self._settled(reference) for reference in references if reference not in run]
        offsets = [offset_of(one.index) or 0 for one in run] + [0]  # the index itself must be in the bag
        if max(offsets) - min(offsets) > LONGEST_QUEUE:
            refuse(f"an index that reaches over more than {LONGEST_QUEUE} events", self.conjunct.where)
        pieces = settled + self._queued(run, max(offsets), max(offsets) - min(offsets))
        return self.draft.where(
            self._condition(place, pieces) if step.given_to(variable) else rx.TRUE
            for place, step in enumerate(self.draft.steps)
        )

    def _check(self, variable: str, references: list[ex.Attribute]) -> None:
        where = self.conjunct.where
        if _final_nodes(self.conjunct) or any(one.index is ex.Edge.LAST for one in references):
            refuse(f"`{self.text}`, which compares all events of `{variable}` with what only the last one tells", where)
        if any(len(step.given_to(variable)) > 1 for step in self.draft.steps):
            refuse(f"`{self.text}`: `{variable}` may hold several events of one position", where)
        for one in references:
            if one.variable == variable and offset_of(one.index) is not None:
                continue
            if _shares(one, variable, references):
                refuse(f"`{self.text}`, which counts the events of two variables with one index", where)
            if isinstance(one.index, ex.Fixed) and one.index.number > 1:
                refuse(f"`{self.text}`, which compares all events of `{variable}` with one far inside a bag", where)
            if may_come_late(self.draft, one.variable, variable):
                refuse(f"`{self.text}`, which compares `{one.variable}` with all earlier events of `{variable}`", where)

    def _condition(self, place: int, pieces: list[Piece]) -> ex.Expression:
        values: Values = {piece.node: piece.after[place] for piece in pieces}
        missing = (rx.simplified(ex.Not(piece.exists[place])) for piece in pieces)
        return rx.unless(rx.simplified(ex.Or((*missing, rx.FALSE))), replaced(self.conjunct, values))

    # --- registers --------------------------------------------------------------------------------

    def _track(self, hint: str, zero: ex.Expression, change: Callable[[int, ex.Expression], ex.Expression]) -> Tracked:
        tracked = track(self.scope, self.draft, hint, zero, change)
        self.draft = tracked.kept_by(self.draft)
        return tracked

    def _holding(self, variable: str) -> Tracked:
        tracked = holding(self.draft, variable, self.scope)
        self.draft = tracked.kept_by(self.draft)
        return tracked

    def _settled(self, reference: ex.Attribute) -> Piece:
        """The value of one event: the only one, the first, the third or the last so far."""
        variable, name = reference.variable, f"{reference.variable}.{reference.name}"
        given = [[value_of(output, reference.path) for output in step.given_to(variable)] for step in self.draft.steps]
        if reference.index is ex.Edge.LAST or not holds_several(self.draft, variable):
            far = isinstance(reference.index, ex.Fixed) and reference.index.number > 1
            if far or offset_of(reference.index) not in (None, 0):
                return Piece(reference, (rx.NULL,) * len(given), (rx.FALSE,) * len(given))
            last = self._track(name, rx.NULL, lambda place, old: given[place][-1] if given[place] else old)
            return Piece(reference, last.after, self._holding(variable).after)
        number = reference.index.number if isinstance(reference.index, ex.Fixed) else 1
        counted = self._track(
            f"count({variable})",
            ex.Literal(0),
            lambda place, old: ex.Arithmetic("+", old, ex.Literal(len(given[place]))) if given[place] else old,
        )

        def change(place: int, old: ex.Expression) -> ex.Expression:
            for already, value in enumerate(given[place]):
                at = ex.Arithmetic("+", counted.before[place], ex.Literal(already + 1))
                old = ex.Case(((ex.Comparison("=", at, ex.Literal(number)), value),), old)
            return old

        chosen = self._track(f"{variable}[{number}].{reference.name}", rx.NULL, change)
        reaches = tuple(rx.simplified(ex.Comparison(">=", one, ex.Literal(number))) for one in counted.after)
        return Piece(reference, chosen.after, reaches)

    def _final(self, node: ex.Expression) -> Piece:
        always = (rx.TRUE,) * len(self.draft.steps)
        if isinstance(node, ex.Aggregate):
            function, total = self._aggregate(node)
            return Piece(node, tuple(rx.Finish(function, element) for element in total.after), always)
        assert isinstance(node, ex.Every | ex.BagPredicate)
        self.draft, conditions = atom_conditions(self.draft, node, self.scope)
        truth = self._track(f"{node.variable}[…]", rx.TRUE, lambda place, old: rx.both(old, conditions[place]))
        return Piece(node, truth.after, always)

    def _aggregate(self, node: ex.Aggregate) -> tuple[str, Tracked]:
        """SASE+'s aggregates leave NULLs out, but for `first` and `last` (R18)."""
        function = self.scope.monoid(node.function, node.distinct, node.monoid, node.where)
        argument = node.argument
        if argument is None:
            refuse(f"`{self.text}`, which counts matches", node.where)
        (variable,) = ex.variables_in(argument)

        def change(place: int, old: ex.Expression) -> ex.Expression:
            for output in self.draft.steps[place].given_to(variable):
                if isinstance(argument, ex.Variable):
                    old = rx.Combine(function, old, rx.Lift(function, rx.TRUE))
                    continue
                paths: Values = {
                    one: value_of(output, one.path) for one in argument.walk() if isinstance(one, ex.Attribute)
                }
                value = replaced(argument, paths)
                new = rx.Combine(function, old, rx.Lift(function, value))
                leaves_out = function not in ("first", "last")
                old = ex.Case(((ex.IsNull(value), old),), new) if leaves_out else new
            return old

        return function, self._track(f"{function}({variable})", rx.Zero(function), change)

    def _queued(self, run: list[ex.Attribute], newest: int, length: int) -> list[Piece]:
        """The event read stands at the newest index; registers hold those before it, each moving up by one."""
        pieces, variable = [], run[0].variable
        queues: dict[tuple[str, ...], list[tuple[ex.Expression, ...]]] = {}
        for path in dict.fromkeys(one.path for one in run):
            values = [
                value_of(given[-1], path) if (given := step.given_to(variable)) else rx.NULL
                for step in self.draft.steps
            ]
            queues[path] = self._queue(variable, ".".join((variable, *path)), tuple(values), rx.NULL, length)
        there = self._queue(variable, f"holds({variable})", (rx.TRUE,) * len(self.draft.steps), rx.FALSE, length)
        exists = tuple(rx.both(*(lag[place] for lag in there)) for place in range(len(self.draft.steps)))
        for one in run:
            lag = newest - (offset_of(one.index) or 0)
            pieces.append(Piece(one, queues[one.path][lag], exists))
        return pieces

    def _queue(
        self, variable: str, name: str, current: tuple[ex.Expression, ...], zero: ex.Expression, length: int
    ) -> list[tuple[ex.Expression, ...]]:
        """The values given to a variable 0, 1, 2 … events ago, seen from each step that gives it one."""
        seen = [current]
        for lag in range(1, length + 1):
            newer = seen[-1]

            def change(place: int, old: ex.Expression, newer: tuple[ex.Expression, ...] = newer) -> ex.Expression:
                return newer[place] if self.draft.steps[place].given_to(variable) else old

            seen.append(self._track(f"{name}[-{lag}]", zero, change).before)
        return seen


def _shares(one: ex.Attribute, variable: str, references: list[ex.Attribute]) -> bool:
    """Whether a reference counts with the letter of the running variable."""
    letters = {
        other.index.letter for other in references if other.variable == variable and isinstance(other.index, ex.Running)
    }
    return isinstance(one.index, ex.Running) and one.index.letter in letters


def _final_nodes(node: ex.Expression) -> list[ex.Expression]:
    if isinstance(node, ex.Aggregate | ex.Every | ex.BagPredicate):
        return [node]
    return list(dict.fromkeys(found for child in node.children() for found in _final_nodes(child)))


def replaced(node: ex.Expression, values: Values) -> ex.Expression:
    """The expression with whole subtrees replaced, outermost first: what was put in is not looked at again."""
    if node in values:
        return values[node]
    return node.map_children(lambda child: replaced(child, values))
