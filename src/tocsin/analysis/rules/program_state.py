"""The state of a live program: one store per stratum and event type, beside the stores of other engines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tocsin.algebra.programs import TIMESTAMP, Program, Rule
from tocsin.analysis.attributes import Schema
from tocsin.analysis.formatting import format_bound, table
from tocsin.analysis.keys import common_keys, keys
from tocsin.analysis.lifetimes import lifetimes
from tocsin.analysis.rates import Arrivals, Rate
from tocsin.analysis.rules.arrivals import in_text_order, join_stores, reads_of, with_derived
from tocsin.analysis.rules.stratify import Delay, delays
from tocsin.analysis.rules.viable import Viable, viable
from tocsin.analysis.sizes import SizeReport, Store, format_bytes, format_count, shared, size_report, total
from tocsin.analysis.temporal import Network, network

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
    def cells(self) -> tuple[str, ...]:
        """Its line of a table."""
        network = self.viable
        return (
            self.rule,
            format_count(self.here),
            format_count(self.joins),
            format_count(None if network is None else network.largest),
            format_count(None if network is None else network.cartesian),
        )

    def to_dict(self) -> dict[str, Any]:
        """For tools."""
        network = self.viable
        return {
            "rule": self.rule,
            "here": self.here,
            "joins": self.joins,
            "minimum_viable_size": None if network is None else network.largest,
            "cartesian": None if network is None else network.cartesian,
            "network": None if network is None else [node.to_dict() for node in network.nodes],
        }


@dataclass(frozen=True)
class ProgramState:
    """The state of all rules of a program together."""

    # Stratum and store: an event that several variables or rules of a stratum read is kept once.
    stores: tuple[tuple[int, Store], ...]
    compared: tuple[Compared, ...]  # each rule beside what it would need elsewhere
    has_key: bool = False

    @property
    def events(self) -> int | None:
        """The most events; None when a store has no bound."""
        return total(store.events for _, store in self.stores)

    @property
    def bytes(self) -> int | None:
        """The most bytes, estimated."""
        return total(store.bytes for _, store in self.stores)

    @property
    def events_per_key(self) -> int | None:
        """The most events of one key; None when a rule has no key."""
        return total(store.events_per_key for _, store in self.stores)

    def __str__(self) -> str:
        """Two tables: the stores, and the rules beside what they would need elsewhere."""
        header = ("stratum", "type", "rate", "kept", "events", "bytes", *(("per key",) if self.has_key else ()))
        rows = [self._row(stratum, store) for stratum, store in self.stores]
        last = ("total", "", "", "", format_count(self.events), format_bytes(self.bytes))
        rows.append(last + ((format_count(self.events_per_key),) if self.has_key else ()))
        others = table(("rule", "here", "joins", "viable", "product"), [each.cells for each in self.compared])
        return "\n".join([table(header, rows), "", others, *LEGEND])

    def _row(self, stratum: int, store: Store) -> tuple[str, ...]:
        row = (
            str(stratum),
            store.event_type,
            "unknown" if store.rate is None else str(store.rate),
            format_bound(store.kept_us),
            format_count(store.events),
            format_bytes(store.bytes),
        )
        return row + ((format_count(store.events_per_key),) if self.has_key else ())

    def to_dict(self) -> dict[str, Any]:
        """For tools."""
        return {
            "stores": [{"stratum": stratum} | store.to_dict() for stratum, store in self.stores],
            "events": self.events,
            "bytes": self.bytes,
            "events_per_key": self.events_per_key,
            "compared": [each.to_dict() for each in self.compared],
        }


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
            key=common_keys(rule.query, keys(rule.query)),
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
