"""The minimum viable sizes of LRP: how large the stores of a Rete-like network must be, so that it never blocks.

The network of a rule is a chain in the order of its text: an entry and an alpha node for each pattern; a join, or for
an absence a not-node, which adds one pattern to the matches so far; a production for each `emit`.

code              theory (LRP §5.3, 8.3)
----              ----------------------
rate              r, partial match arrival rate: the most tokens that leave a node, per microsecond
window_us         W = min over the events of the left side of (hi − lo); the published numbers fit no other (ERR-6)
left, right       W × r + 1 for the rate of the same side (lemmas 21 and 22)
join              r = r_left × right + r_right × left
not               r = r_right × left
outbox            of a join the larger history, of a not-node the left one, of a terminal 0, of others 1
inbox             3, one place per side of activation
pairs_once        the rate of the first join is r_left × right: with it the published sizes of scenario B come out, and
                  without it twice as much (ERR-7)

These sizes hold for a network that can keep one side of a join waiting until the other has caught up. Spark cannot, and
no store of ours is sized or emptied by them (`sizes.py`); they are here to be compared with.

A gathering has no node in LRP, which only says how large it would be (figure 5.9): it keeps both sides as a not-node
does, and passes on each match of its left side once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import TIMESTAMP, Rule
from tocsin.analysis.rates import Arrivals, as_float
from tocsin.analysis.rules.arrivals import in_text_order, shortest_window_us
from tocsin.analysis.temporal import network

INBOX = 3


@dataclass(frozen=True)
class Node:
    """A node of the network, with what it must have room for."""

    kind: str  # `entry`, `alpha`, `join`, `not`, `all`, `production` or `terminal`
    name: str  # the variable that it adds; of a production the type that it emits
    rate: Fraction  # the most tokens that leave it, per microsecond
    outbox: int
    inbox: int = INBOX
    # `window_us`, `left`, `right`: of nodes with two inputs.
    window_us: int | None = None
    left: int | None = None
    right: int | None = None

    @property
    def histories(self) -> tuple[int, ...]:
        """The sizes of its two stores, if it has any."""
        return tuple(size for size in (self.left, self.right) if size is not None)

    def to_dict(self) -> dict[str, Any]:
        """For tools; the rate in events per second."""
        return {
            "kind": self.kind,
            "name": self.name,
            "rate_per_second": as_float(self.rate * 1_000_000),
            "window_us": self.window_us,
            "left": self.left,
            "right": self.right,
            "inbox": self.inbox,
            "outbox": self.outbox,
        }


@dataclass(frozen=True)
class Viable:
    """The network of a rule."""

    nodes: tuple[Node, ...]

    @property
    def largest(self) -> int:
        """The largest of all stores; a network without joins has only mailboxes."""
        return max((size for node in self.nodes for size in node.histories), default=0)

    @property
    def joined(self) -> tuple[Node, ...]:
        """The nodes with two inputs, in the order of the text."""
        return tuple(node for node in self.nodes if node.histories)

    @property
    def cartesian(self) -> int:
        """All combinations of the events of one window each, what must be absent included."""
        windows = [node.window_us or 0 for node in self.joined]
        rates = [node.rate for node in self.nodes if node.kind == "alpha"]
        if not windows:
            return 0
        return math.floor(math.prod(rate * us for rate, us in zip(rates, [windows[0], *windows], strict=True)))


def viable(rule: Rule, arrivals: Mapping[str, Arrivals], *, pairs_once: bool = False) -> Viable | None:
    """The network of a rule and its sizes; None where a rate is not known, or a variable repeats."""
    closure = network(rule.query, TIMESTAMP).alternatives[0]
    if closure.alternative.iterated:
        return None
    types = rule.types
    around = {each.variable: each for each in alg.around_in(rule.query.pattern)}
    order = in_text_order(rule.query)
    rates: dict[str, Fraction] = {}
    for name in order:
        found = arrivals.get(types[name])
        if found is None:
            return None
        rates[name] = found.per_second / 1_000_000
    nodes = [Node("entry", name, rates[name], 1) for name in order]
    nodes += [Node("alpha", name, rates[name], 1) for name in order]
    chain = [name for name in order if name not in around]
    left_rate = rates[order[0]]
    for place, name in enumerate(order[1:], 1):
        left = [before for before in order[:place] if before in chain]
        kind = "join" if name in chain else "not" if isinstance(around[name], alg.Absent) else "all"
        once = pairs_once and place == 1
        window_us = shortest_window_us(closure, left, name)
        assert window_us is not None  # every pair of a rule has a finite distance (S5, S7)
        node = _two_inputs(kind, name, left_rate, rates[name], window_us, once=once)
        nodes.append(node)
        left_rate = node.rate
    nodes += [Node("production", emit.type, left_rate, 1) for emit in rule.emits]
    nodes += [] if rule.emits else [Node("terminal", rule.name, left_rate, 0)]
    return Viable(tuple(nodes))


def _two_inputs(kind: str, name: str, left_rate: Fraction, right_rate: Fraction, window_us: int, *, once: bool) -> Node:
    left = math.floor(window_us * left_rate) + 1
    right = math.floor(window_us * right_rate) + 1
    match kind:
        case "join":
            rate = left_rate * right + (0 if once else right_rate * left)
            return Node(kind, name, rate, max(left, right), INBOX, window_us, left, right)
        case "not":
            return Node(kind, name, right_rate * left, left, INBOX, window_us, left, right)
        case _:
            return Node(kind, name, left_rate, left, INBOX, window_us, left, right)


def shortened(size: int, unit: int = 2**30, letter: str = "G") -> str:
    """A size as the published tables have it: in units of 2³⁰ (G) or 2¹⁰ (k), cut off; what is there is at least 1.

    >>> shortened(262_290_837_313), shortened(4033, 2**10, "k"), shortened(1_032_290_000)
    ('244G', '3k', '1G')
    """
    return f"{max(size // unit, min(size, 1))}{letter}"
