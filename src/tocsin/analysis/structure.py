"""Syntax elements to algebra nodes: flattening, quantifiers, the places of NOT (R9, R13, R20, R34, R36).

Knows nothing of conditions: an `Absent` made here has no condition yet; `translate` adds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.names import MOST_ABSENCES, MOST_EVENTS
from tocsin.language import ast
from tocsin.source import Where

UNIT = ast.Quantifier(1, 1)


@dataclass
class Structure:
    """Builds the nodes of one pattern and collects what is wrong with it."""

    window_us: int | None
    problems: errors.Problems = field(default_factory=errors.Problems)
    absences: int = 0

    def node(self, element: ast.Element, *, iterated: bool = False) -> alg.Node | None:
        """The node of an element, or None when nothing can be made of it (a problem was noted)."""
        match element:
            case ast.Event():
                return self._repeat(alg.Event(element.type, element.variable, where=element.where), element)
            case ast.Negation():
                self._refuse_negation(
                    "NOT can stand only directly inside a SEQ.",
                    element.where,
                    "write it between two elements, `SEQ(A a, NOT B b, C c)`, or at the edge of a SEQ with WITHIN.",
                )
                return None
            case ast.Composite():
                inside = iterated or _is_iteration(element)
                if element.operator is ast.Operator.SEQ:
                    made = self._sequence(element, iterated=inside)
                else:
                    made = self._branches(element, iterated=inside)
                return None if made is None else self._repeat(made, element)
            case _:
                assert_never(element)

    def _branches(self, element: ast.Composite, *, iterated: bool) -> alg.Node | None:
        made = [self.node(part, iterated=iterated) for part in flattened(element)]
        parts = tuple(part for part in made if part is not None)
        if not parts:
            return None
        if len(parts) == 1:
            return parts[0]
        kind = alg.All if element.operator is ast.Operator.AND else alg.Any
        return kind(parts, where=element.where)

    def _sequence(self, element: ast.Composite, *, iterated: bool) -> alg.Node | None:
        parts = flattened(element)
        positive: list[alg.Node] = []
        absences: list[tuple[ast.Event, int, Where]] = []
        for part in parts:
            if isinstance(part, ast.Negation):
                event = self._negated_event(part)
                if event is not None:
                    absences.append((event, len(positive), part.where))
            else:
                made = self.node(part, iterated=iterated)
                if made is not None:
                    positive.append(made)
        if not positive:
            if absences:
                self._refuse_negation(
                    "A SEQ of nothing but NOT has no event to report.",
                    element.where,
                    "an absence is seen from an event that is there: add one to the SEQ.",
                )
            return None
        core = positive[0] if len(positive) == 1 else alg.Sequence(tuple(positive), where=element.where)
        for event, index, where in absences:
            self.absences += 1
            if self.absences > MOST_ABSENCES:
                if self.absences == MOST_ABSENCES + 1:
                    self._refuse_negation(
                        f"A pattern may have at most {MOST_ABSENCES} NOTs.",
                        where,
                        "give the events that must not be there one type, and tell them apart by an attribute: "
                        "`NOT C c` with `c.kind IN (…)`.",
                    )
                continue
            core = self._guarded(core, event, positive[:index], positive[index:], where, iterated=iterated)
        return core

    def _guarded(
        self,
        core: alg.Node,
        event: ast.Event,
        before: list[alg.Node],
        after: list[alg.Node],
        where: Where,
        *,
        iterated: bool,
    ) -> alg.Node:
        """The sequence `core` unless there is such an event between its parts before and after."""
        may_lead = all(alg.can_match_empty(part) for part in before)
        may_trail = all(alg.can_match_empty(part) for part in after)
        if iterated and (may_lead or may_trail):
            self._refuse_negation(
                f"`NOT {event.type} {event.variable}` stands at the edge of a repeated SEQ.",
                where,
                "inside an iteration, NOT needs an element that is always there on both sides.",
            )
            return core
        if self.window_us is None and (may_lead or may_trail):
            self.problems.add(
                errors.UnboundedAbsenceError,
                f"`NOT {event.type} {event.variable}` is at the edge of its SEQ, and no WITHIN closes it.",
                where=where,
                hint="add WITHIN: a leading NOT then looks back to `end - W`, a trailing one ahead to `start + W`.",
            )
            return core
        window = self.window_us or 0
        lower = [alg.Bound(alg.LastOf(_names(before)))] if before else []
        upper = [alg.Bound(alg.FirstOf(_names(after)))] if after else []
        if may_lead:
            lower.append(alg.Bound(alg.Whole.END, -window))
        if may_trail:
            upper.append(alg.Bound(alg.Whole.START, window))
        return alg.Absent(core, event.type, event.variable, None, tuple(lower), tuple(upper), where=where)

    def _negated_event(self, negation: ast.Negation) -> ast.Event | None:
        match negation.operand:
            case ast.Event(quantifier=None):
                return negation.operand
            case ast.Event():
                self._refuse_negation(
                    "NOT of an iteration says nothing new.",
                    negation.where,
                    f"write `NOT {negation.operand.type} {negation.operand.variable}`: no event of that type at all.",
                )
            case _:
                is_or = isinstance(negation.operand, ast.Composite) and negation.operand.operator is ast.Operator.OR
                self._refuse_negation(
                    "NOT takes a single event type, not a composite pattern.",
                    negation.where,
                    "negate each event on its own: `SEQ(A a, NOT B b, NOT C c, D d)`."
                    if is_or
                    else "find it with a pattern of its own, and negate its matches as events: `NOT Found f`; "
                    "`NOT B b, NOT C c` would forbid each of them alone, too.",
                )
        return None

    def _repeat(self, node: alg.Node, element: ast.Event | ast.Composite) -> alg.Node:
        quantifier = element.quantifier
        if quantifier is None or not _is_iteration(element):
            return node
        least, most = quantifier.least, quantifier.most
        made = alg.Repeat(node, least, most, where=element.where)
        kind: type[errors.TocsinError] = errors.InvalidQuantifierError
        if most == 0:
            kind, message = errors.EmptyPatternError, "An element repeated zero times binds no event."
            hint = "leave it out, or write `{0,n}` or `*` for an element that may be missing."
        elif most is not None and most < least:
            message = f"No number of repetitions lies between {least} and {most}."
            hint = "write the smaller number first, as in `{2,5}`; `{3}` is exactly three, `{2,}` two or more."
        elif max(least, most or 0) > MOST_EVENTS:
            message = f"An element may be repeated at most {MOST_EVENTS:,} times."
            hint = "write a smaller number, or leave the upper bound out, as in `{2,}`."
        else:
            return made
        self.problems.add(kind, message, where=quantifier.where or element.where, hint=hint)
        return made

    def _refuse_negation(self, message: str, where: Where, hint: str) -> None:
        self.problems.add(errors.NegationNotAllowedError, message, where=where, hint=hint)


def flattened(element: ast.Composite) -> list[ast.Element]:
    """The parts with unrepeated composites of the same operator opened (R34)."""
    parts: list[ast.Element] = []
    for part in element.parts:
        if isinstance(part, ast.Composite) and part.operator is element.operator and not _is_iteration(part):
            parts += flattened(part)
        else:
            parts.append(part)
    return parts


def _is_iteration(element: ast.Event | ast.Composite) -> bool:
    return element.quantifier not in (None, UNIT)


def _names(parts: list[alg.Node]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in alg.variables_of(part)))
