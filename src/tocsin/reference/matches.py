"""The denotation of every node: all matches of a pattern over one partition's events (SEMANTICS §3).

A candidate is a match in the making. Its absences are noted as guards with the bounds its sub-match fixes, and decided
by `settle` on the whole match, because their conditions and the window speak of the whole match (R9, R10).

code        theory
----        ------
Candidate   C = (start, end, μ)
first, last the events at start and end; projection keeps them (R8)
slot        one (variable, event) pair of μ; `floor` is the last instant that SEQ demands before it, `alternatives` are
            the variables of the OR of single events that it is one branch of (R45)
instant     rank of (ts, tie columns): what `a < b` compares (R41)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, assert_never

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.reference.aggregates import fold
from tocsin.reference.conditions import Bags, holds, interpret
from tocsin.reference.stream import Event, Made, identity
from tocsin.reference.values import ticks


@dataclass(frozen=True)
class Slot:
    """One event bound to one variable."""

    variable: str
    event: Event
    floor: int | None = None
    alternatives: tuple[str, ...] = ()


# Of a bound: its anchor, the offset in microseconds, and whether it is strict.
Limit = tuple[Event | alg.Whole, int | Fraction, bool]


@dataclass(frozen=True)
class Guard:
    """An absence with its bounds as the sub-match fixes them: by one of its events, or relative to the whole match."""

    absent: alg.Around
    lower: tuple[Limit, ...]
    upper: tuple[Limit, ...]


@dataclass(frozen=True)
class Candidate:
    """A match in the making; the empty one has no interval (R13)."""

    first: Event | None = None
    last: Event | None = None
    slots: tuple[Slot, ...] = ()
    guards: tuple[Guard, ...] = ()

    @cached_property
    def bags(self) -> Bags:
        """μ: each variable's events in order of position; of one position, those made at it by their values (D45)."""
        found: dict[str, list[Event]] = {}
        for slot in sorted(self.slots, key=lambda slot: (slot.event.local, *identity(slot.event))):
            found.setdefault(slot.variable, []).append(slot.event)
        return {variable: tuple(events) for variable, events in found.items()}

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Identity: interval and bindings by name (R8); derived events by value (R24)."""
        bound = sorted((slot.variable, identity(slot.event)) for slot in self.slots)
        return (self.first.local if self.first else None, self.last.local if self.last else None, tuple(bound))

    @property
    def derivation(self) -> tuple[Any, ...]:
        """What the same bindings may owe to different branches: guards, the order SEQ demanded, alternatives."""
        floors = ((slot, -1 if slot.floor is None else slot.floor) for slot in self.slots)
        ways = sorted((slot.variable, identity(slot.event), floor, slot.alternatives) for slot, floor in floors)
        return (self.guards, tuple(ways))


@dataclass(frozen=True)
class Evaluation:
    """One partition's events, and what lets hopeless candidates go early: the window, and the conjuncts of a rule."""

    events: list[Event]
    window_us: int | None = None
    conjuncts: tuple[ex.Expression, ...] = ()

    def matches(self, node: alg.Node) -> list[Candidate]:
        """[[node]], guards still open."""
        match node:
            case alg.Event():
                return self._events(node)
            case alg.Sequence():
                return self._fold(node.parts, _before(node.order))
            case alg.Adjacent():
                return self._fold(node.parts, _adjacent)
            case alg.All():
                return self._all(node.parts)
            case alg.Any():
                return distinct(_one_element(found, node) for part in node.parts for found in self.matches(part))
            case alg.Both():
                sets = [{found.key: found for found in self.matches(part)} for part in node.parts]
                return [found for key, found in sets[0].items() if all(key in other for other in sets[1:])]
            case alg.Repeat():
                return self._repeat(node.part, node.least, node.most, _before(node.order))
            case alg.RepeatAdjacent():
                return self._repeat(node.part, 1, None, _adjacent)
            case alg.Absent():
                return distinct(guarded(found, node) for found in self.matches(node.part))
            case alg.Gather():
                return [self.gathered(found, node) for found in self.matches(node.part)]
            case alg.Filter():
                return _satisfying(self.matches(node.part), ex.conjuncts(node.condition))
            case alg.Within():
                return [found for found in self.matches(node.part) if _spans_less(found, node.window_us)]
            case alg.Bind():
                return distinct(_bound(found, node.variable) for found in self.matches(node.part))
            case alg.Project():
                return distinct(_projected(found, dict(node.kept)) for found in self.matches(node.part))
            case alg.Derive():
                return distinct(_derived(found, node) for found in self.matches(node.part))
            case alg.NextOf():
                return self._next_of(node)
            case alg.Emit():
                return [_emitted(found, node) for found in self.settle(self.matches(node.part))]
            case _:
                raise errors.unknown_node(node, "The reference")

    def settle(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The candidates that bind an event and that no absence refutes, each once."""
        kept = [
            replace(found, guards=())
            for found in candidates
            if found.slots and not any(self._is_blocked(found, guard) for guard in found.guards)
        ]
        return distinct(kept)

    def _events(self, node: alg.Event) -> list[Candidate]:
        found = [
            Candidate(event, event, (Slot(node.variable, event),))
            for event in self.events
            if node.type is None or event.type == node.type
        ]
        return _satisfying(found, ex.conjuncts(node.condition))

    def _fold(self, parts: tuple[alg.Node, ...], follows: Callable[[Event, Event], bool]) -> list[Candidate]:
        found = [Candidate()]
        for part in parts:
            found = self._product(found, self.matches(part), follows)
        return found

    def _all(self, parts: tuple[alg.Node, ...]) -> list[Candidate]:
        """The product; conjuncts are tried as soon as their variables are bound, which changes nothing but the time."""
        found, pending = [Candidate()], [(conjunct, ex.variables_in(conjunct)) for conjunct in self.conjuncts]
        bound: set[str] = set()
        for part in parts:
            own = alg.variables_of(part).keys()
            bound |= own
            ready = [conjunct for conjunct, names in pending if names <= bound]
            alone = [conjunct for conjunct, names in pending if names <= own]
            pending = [(conjunct, names) for conjunct, names in pending if not names <= bound]
            found = self._product(found, _satisfying(self.matches(part), alone), None)
            found = _satisfying(found, [conjunct for conjunct in ready if conjunct not in alone])
        return found

    def _product(
        self,
        lefts: list[Candidate],
        rights: list[Candidate],
        follows: Callable[[Event, Event], bool] | None,
    ) -> list[Candidate]:
        return distinct(
            joined(left, right, ordered=follows is not None)
            for left in lefts
            for right in rights
            if follows is None or left.last is None or right.first is None or follows(left.last, right.first)
            if self._fits(left, right)
        )

    def _fits(self, left: Candidate, right: Candidate) -> bool:
        """Whether both lie in one window; a match only grows, so that one that does not never will."""
        if self.window_us is None or not (left.first and left.last and right.first and right.last):
            return True
        return max(left.last.ts, right.last.ts) - min(left.first.ts, right.first.ts) < ticks(self.window_us)

    def _repeat(
        self, part: alg.Node, least: int, most: int | None, follows: Callable[[Event, Event], bool]
    ) -> list[Candidate]:
        copies = self.matches(part)
        real = [copy for copy in copies if copy.slots or copy.first is not None]
        if len(real) < len(copies):
            least = 0  # an empty copy may stand for any that are missing
        found = [Candidate()] if least == 0 else []
        rows = [Candidate()]
        number = 0
        while rows and (most is None or number < most):
            rows = self._product(rows, real, follows)
            number += 1
            if number >= least:
                found += rows
        return distinct(found)

    def _next_of(self, node: alg.NextOf) -> list[Candidate]:
        found: list[Candidate] = []
        waiting: list[Event] = []
        for event in self.events:
            waiting.append(event)
            if event.type == node.type:
                found += [Candidate(first, event, (Slot(node.variable, event),)) for first in waiting]
                waiting = []
        return [candidate for candidate in found if _spans_less(candidate, self.window_us)]

    def gathered(self, found: Candidate, node: alg.Gather) -> Candidate:
        """The match with all events of a type around it, and the interval of all its events (D38)."""
        (*_, guard) = guarded(found, node).guards
        events = self._around(found, guard)
        everything = sorted([*(slot.event for slot in found.slots), *events], key=lambda event: event.local)
        slots = tuple(Slot(node.variable, event) for event in events)
        return replace(found, first=everything[0], last=everything[-1], slots=found.slots + slots)

    def _is_blocked(self, found: Candidate, guard: Guard) -> bool:
        return bool(self._around(found, guard))

    def _around(self, found: Candidate, guard: Guard) -> list[Event]:
        """The events inside all bounds that make all conditions TRUE with the match."""
        bags, absent = found.bags, guard.absent
        conditions = ex.conjuncts(absent.condition)
        return [
            event
            for event in self.events
            if event.type == absent.type
            and _inside(event, guard, found)
            and all(holds(conjunct, {**bags, absent.variable: (event,)}) for conjunct in conditions)
        ]


def _satisfying(candidates: list[Candidate], conjuncts: Sequence[ex.Expression]) -> list[Candidate]:
    return [found for found in candidates if all(holds(conjunct, found.bags) for conjunct in conjuncts)]


def distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Each set of bindings once per derivation: any of them may let it live through absences and `next`."""
    return list({(found.key, found.derivation): found for found in candidates}.values())


def _one_element(found: Candidate, node: alg.Any) -> Candidate:
    """A match of a branch; an OR of single events is one element, whose alternatives `next` compares (R45)."""
    if not node.is_one_element:
        return found
    names = tuple(sorted(alg.variables_of(node)))
    return replace(found, slots=tuple(replace(slot, alternatives=names) for slot in found.slots))


def _before(order: alg.Order) -> Callable[[Event, Event], bool]:
    if order is alg.Order.TIME:
        return lambda left, right: left.instant < right.instant
    return lambda left, right: left.local < right.local


def _adjacent(left: Event, right: Event) -> bool:
    return left.local + 1 == right.local


def _spans_less(found: Candidate, window_us: int | None) -> bool:
    if window_us is None or found.first is None or found.last is None:
        return True
    return found.last.ts - found.first.ts < ticks(window_us)


def joined(left: Candidate, right: Candidate, *, ordered: bool) -> Candidate:
    """Two matches as one; `ordered` when the right one has to follow the left one."""
    if left.first is None or left.last is None:
        return replace(right, guards=left.guards + right.guards)
    if right.first is None or right.last is None:
        return replace(left, guards=left.guards + right.guards)
    slots = right.slots
    if ordered:
        floor = left.last.instant
        slots = tuple(replace(slot, floor=floor if slot.floor is None else max(slot.floor, floor)) for slot in slots)
    return Candidate(
        min(left.first, right.first, key=lambda event: event.local),
        max(left.last, right.last, key=lambda event: event.local),
        left.slots + slots,
        left.guards + right.guards,
    )


# --- absence --------------------------------------------------------------------------------------


def guarded(found: Candidate, absent: alg.Around) -> Candidate:
    """The match with a guard whose bounds it fixes, to be decided on the whole match."""
    lower = tuple(fixed for bound in absent.lower if (fixed := _fixed(bound, found)) is not None)
    upper = tuple(fixed for bound in absent.upper if (fixed := _fixed(bound, found)) is not None)
    return replace(found, guards=(*found.guards, Guard(absent, lower, upper)))


def _fixed(bound: alg.Bound, found: Candidate) -> Limit | None:
    """A bound with its anchor's event, or None when the anchor binds no event (R13)."""
    offset = ticks(bound.offset_us)
    match bound.anchor:
        case alg.Whole():
            return (bound.anchor, offset, bound.strict)
        case alg.LastOf() | alg.FirstOf():
            events = [slot.event for slot in found.slots if slot.variable in bound.anchor.variables]
            pick = max if isinstance(bound.anchor, alg.LastOf) else min
            anchor = pick(events, key=lambda event: event.local, default=None)
            return None if anchor is None else (anchor, offset, bound.strict)
        case _:
            assert_never(bound.anchor)


def _inside(event: Event, guard: Guard, found: Candidate) -> bool:
    assert found.first is not None and found.last is not None  # only matches with events are settled
    whole = {alg.Whole.START: found.first, alg.Whole.END: found.last}

    def compared(anchor: Event | alg.Whole, offset: int | Fraction, strict: bool) -> tuple[int, int | Fraction]:
        """A neighbour bounds the gap by the order of events, everything else by a distance in time."""
        if isinstance(anchor, Event) and strict and offset == 0:
            return event.instant, anchor.instant
        return event.ts, (whole[anchor] if isinstance(anchor, alg.Whole) else anchor).ts + offset

    def is_inside(limit: Limit, sign: int) -> bool:
        here, there = compared(*limit)
        distance = sign * (here - there)
        return distance > 0 if limit[2] else distance >= 0

    return all(is_inside(limit, 1) for limit in guard.lower) and all(is_inside(limit, -1) for limit in guard.upper)


# --- variables and derived events -----------------------------------------------------------------


def _bound(found: Candidate, variable: str) -> Candidate:
    """Every event held by any variable goes to the new one: as often as the variable that holds it most often (R19).

    Only an event that was made can be there more than once: equal ones are two in the bag of one variable, and one
    event where two variables hold one each, however they came by it (R24).
    """
    held: dict[tuple[Any, ...], list[Event]] = {}
    for events in found.bags.values():
        own: dict[tuple[Any, ...], list[Event]] = {}
        for event in events:
            own.setdefault(identity(event), []).append(event)
        for key, equal in own.items():
            held[key] = max(held.get(key, []), equal, key=len)
    others = tuple(slot for slot in found.slots if slot.variable != variable)
    return replace(found, slots=others + tuple(Slot(variable, event) for equal in held.values() for event in equal))


def _projected(found: Candidate, kept: dict[str, tuple[str, ...] | None]) -> Candidate:
    return replace(
        found, slots=tuple(_reduced(slot, kept[slot.variable]) for slot in found.slots if slot.variable in kept)
    )


def _reduced(slot: Slot, attributes: tuple[str, ...] | None) -> Slot:
    if attributes is None:
        return slot
    old = slot.event.row
    row = Made({name: old.get(name) for name in attributes})
    row.read = old.read if isinstance(old, Made) and old.read is not None else slot.event
    return replace(slot, event=replace(slot.event, row=row))


def _derived(found: Candidate, node: alg.Derive) -> Candidate:
    assert found.last is not None  # an aggregate stands over a pattern that binds something
    bags = found.bags
    row = Made(
        {
            one.name: fold(
                one.monoid or one.function,
                [event.value(one.path) if one.path else event.ts for event in bags.get(one.variable, ())],
                distinct=one.distinct,
                nulls_spoil=True,
                unbounded=True,  # an error where it is used, not where a part of no match has it (D24)
            )
            for one in node.folds
        }
    )
    last = row.read = found.last
    event = replace(last, type=None, row=row)
    return replace(found, slots=(*found.slots, Slot(node.variable, event)))


def _emitted(found: Candidate, node: alg.Emit) -> Candidate:
    """One event per match and emit, equal values or not: the match's key is part of its row's identity (R30)."""
    bags = found.bags
    at = node.at.name if isinstance(node.at, ex.Variable) else next(iter(ex.variables_in(node.at)))
    source = bags[at][0]
    row = Made({name: interpret(value, bags, {}) for name, value in node.values})
    row.origin = (node.rule, node.number, found.key)
    event = replace(source, type=node.type, row=row)
    return Candidate(event, event, (Slot(node.type, event),))
