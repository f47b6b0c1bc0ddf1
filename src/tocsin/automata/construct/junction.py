"""What stands between two parts of a sequence: wait for the next part, or not.

order       waiting
-----       -------
adjacent    none: the next part begins with the very next event
position    any number of events (ACEL)
time, ties  any number, and the next part may not begin while events tie with the last one (SASE+, R7, R41)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.draft import Scope, Step
from tocsin.language import expressions as ex

Order = alg.Order | None  # None is adjacency


def ending_at(between: int, steps: Iterable[Step]) -> list[Step]:
    """The steps that end a part, ending at the state between it and the next."""
    return [replace(step, target=between) for step in steps if step.ends]


def following(between: int, steps: Iterable[Step], order: Order, scope: Scope) -> list[Step]:
    """What may be read at the state between two parts: events that are skipped, and those that begin the next part."""
    beginning = [replace(step, source=between) for step in steps if step.begins]
    if order is None or order is alg.Order.POSITION:
        waits = [] if order is None or scope.contiguous else [Step(between, between)]
        return [*waits, *beginning]
    at_once = [new for step in beginning if (new := step.needing(rx.IsLater())) is not None]
    if scope.contiguous:
        return at_once
    # Once an event did not tie with its neighbour, all that come are later than the part's last one.
    later = scope.state()
    return [
        Step(between, between, (ex.Not(rx.IsLater()),)),
        Step(between, later, (rx.IsLater(),)),
        Step(later, later),
        *at_once,
        *(replace(step, source=later) for step in beginning),
    ]
