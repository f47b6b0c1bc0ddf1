"""The state of a live program: one store per stratum and event type, beside the stores of other engines.

The minimum viable sizes of LRP are how large the stores of a Rete-like network must be, so that it never blocks. The
network of a rule is a chain in the order of its text: an entry and an alpha node for each pattern; a join, or for an
absence a not-node, which adds one pattern to the matches so far; a production for each `emit`.

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
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import TIMESTAMP, Program, Rule
from tocsin.algebra.tree_text import table
from tocsin.algebra.units import format_bound, format_count
from tocsin.analysis.attributes import Schema
from tocsin.analysis.keys import common_keys
from tocsin.analysis.lifetimes import lifetimes
from tocsin.analysis.rates import Arrivals, Rate, as_float
from tocsin.analysis.rules.arrivals import (
    Delay,
    delays,
    in_text_order,
    join_stores,
    reads_of,
    shortest_window_us,
    with_derived,
)
from tocsin.analysis.sizes import SizeReport, Store, Totals, shared, size_report, total
from tocsin.analysis.temporal import Network, network

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
    rates = {name: arrivals[types[name]].per_second / 1_000_000 for name in order if types[name] in arrivals}
    if len(rates) < len(order):
        return None
    nodes = [Node(kind, name, rates[name], 1) for kind in ("entry", "alpha") for name in order]
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


# --- stores ---------------------------------------------------------------------------------------

LEGEND = (
    "here: events that this engine keeps. joins: events and partial matches, were they kept too.",
    "viable: largest store of a network that can make its inputs wait (LRP). product: all combinations.",
)


@dataclass(frozen=True)
class Compared:
    """The state of a rule, here and elsewhere; None is not known."""

    rule: str
    here: int | None  # events, each once
    joins: int | None  # events and partial matches of a chain of joins that nothing holds back
    viable: Viable | None  # the network of LRP with its minimum viable sizes

    @property
    def sizes(self) -> dict[str, int | None]:
        """The number of events that each way of matching keeps."""
        network = self.viable
        return {
            "here": self.here,
            "joins": self.joins,
            "minimum_viable_size": None if network is None else network.largest,
            "cartesian": None if network is None else network.cartesian,
        }

    def to_dict(self) -> dict[str, Any]:
        """For tools."""
        network = None if self.viable is None else [node.to_dict() for node in self.viable.nodes]
        return {"rule": self.rule} | self.sizes | {"network": network}


@dataclass(frozen=True)
class ProgramState(Totals):
    """The state of all rules of a program together."""

    # Stratum and store: an event that several variables or rules of a stratum read is kept once.
    stores: tuple[tuple[int, Store], ...]
    compared: tuple[Compared, ...]  # each rule beside what it would need elsewhere
    has_key: bool = False

    @property
    def shared(self) -> tuple[Store, ...]:
        """The stores of all strata."""
        return tuple(store for _, store in self.stores)

    def __str__(self) -> str:
        """Two tables: the stores, and the rules beside what they would need elsewhere."""
        cells: list[tuple[str, ...]] = [
            (
                str(stratum),
                store.event_type,
                "unknown" if store.rate is None else str(store.rate),
                format_bound(store.kept_us),
                format_count(store.events),
            )
            for stratum, store in self.stores
        ]
        stores = self.table(("stratum", "type", "rate", "kept", "events"), cells, self.shared, self.has_key)
        rows = [(each.rule, *map(format_count, each.sizes.values())) for each in self.compared]
        return "\n".join([stores, "", table(("rule", "here", "joins", "viable", "product"), rows), *LEGEND])

    def to_dict(self) -> dict[str, Any]:
        """For tools."""
        stores = [{"stratum": stratum} | store.to_dict() for stratum, store in self.stores]
        return {"stores": stores} | self.totals() | {"compared": [each.to_dict() for each in self.compared]}


def rule_sizes(
    rules: Iterable[Rule],
    when: Mapping[str, Delay],
    arrivals: Mapping[str, Arrivals],
    *,
    schemas: Mapping[str, Schema] | None = None,
    lateness_us: int = 0,
    live_keys: int | None = None,
) -> Iterator[SizeReport]:
    """The stores of each rule: its events, for as long as those it reads with them may still be emitted."""
    ahead = {name: delay.early_us for name, delay in when.items()}
    for rule in rules:
        yield size_report(
            rule.query,
            lifetimes(rule.query, network(rule.query, TIMESTAMP)),
            {name: arrivals[name] for name in rule.reads if name in arrivals},
            schemas=schemas,
            lateness_us=lateness_us + max(when.get(name, Delay()).late_us for name in rule.reads),
            live_keys=live_keys,
            ahead_us=ahead,
            key=common_keys(rule.query),
        )


def most_events(program: Program, names: Collection[str], rates: Mapping[str, Rate], lateness_us: int) -> int | None:
    """The most events that one operator remembers for some rules of all strata; None when a store has no bound.

    It keeps an event once, however many strata read it.
    """
    rules = [rule for rule in program.rules if rule.name in names]
    sizes = rule_sizes(rules, delays(program), with_derived(program, rates), lateness_us=lateness_us)
    return total(store.events for store in shared(store for each in sizes for store in each.stores))


def program_state(
    rules: list[tuple[Rule, Network, SizeReport]], arrivals: Mapping[str, Arrivals], live_keys: int | None = None
) -> ProgramState:
    """Put the stores of all rules together."""
    by_stratum: dict[int, list[Store]] = {}
    for rule, _, sizes in rules:
        by_stratum.setdefault(rule.stratum, []).extend(sizes.stores)
    stores = tuple((stratum, store) for stratum, found in by_stratum.items() for store in shared(found))
    compared = tuple(_compared(rule, distances, sizes, arrivals, live_keys) for rule, distances, sizes in rules)
    return ProgramState(stores, compared, all(sizes.key for _, _, sizes in rules))


def _compared(
    rule: Rule, distances: Network, sizes: SizeReport, arrivals: Mapping[str, Arrivals], live_keys: int | None
) -> Compared:
    closure = distances.alternatives[0]
    joins = None
    if not closure.alternative.iterated:
        reads = reads_of(rule, arrivals, live_keys)
        found = join_stores(closure, in_text_order(rule.query), reads, sizes.lateness_us, rule.query.unordered)
        joins = None if found is None else sum(each.left + each.right for each in found)
    return Compared(rule.name, sizes.events, joins, viable(rule, arrivals))
