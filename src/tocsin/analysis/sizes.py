"""How much a live query can ever hold, from declared rates, before it starts (SEMANTICS §7; explanation/memory.md).

The events kept for a variable lie in a closed interval of length `lifetime + lateness + ahead`, where the lateness is
how far the watermark may lag behind the newest event, and `ahead` how far in the future emitted events may lie. So
there are at most `arrivals.within(kept)` of them. An event that several variables read is kept once: of one type at
most as many as for the variable that keeps it longest. The bound is of what is kept from one batch to the next; it is
an alarm, never a reason to evict.

Where neighbors have to be adjacent (`contiguous`, ACEL's `:`, `@+` and NEXT), any event between two others matters as
long as they do: every type that has a rate has a store then, whether or not the pattern names it.

The bytes of an event are those of its attributes (`DataType.width_bytes`) and 16 for time stamp and identity.

`require_within` refuses a query that may keep more than a limit, before it starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.tree_text import table
from tocsin.algebra.units import Limit, format_bound, format_bytes, format_count, format_us
from tocsin.analysis.attributes import Schema
from tocsin.analysis.closure import largest
from tocsin.analysis.lifetimes import Lifetimes
from tocsin.analysis.rates import Arrivals, Rate, as_float
from tocsin.language.ast import Selection

EVENT_BYTES = 16
BETWEEN = "(between)"  # no name of a variable


@dataclass(frozen=True)
class Store:
    """The events of one type that are kept for one variable."""

    variable: str
    event_type: str
    is_negated: bool
    lifetime_us: int | None
    kept_us: int | None  # the length of time that they are from; None when the lifetime has no bound
    rate: Arrivals | None
    event_bytes: int | None
    # `events`, `bytes`: the most it can hold; None when the rate is not declared, the lifetime has no bound, or a rate
    # per key comes without the number of keys.
    events: int | None
    bytes: int | None
    events_per_key: int | None = None  # the most it can hold of one key; None when the query has no key

    @property
    def name(self) -> str:
        """The variable, as reports call it."""
        return f"NOT {self.variable}" if self.is_negated else self.variable

    @property
    def bytes_per_key(self) -> int | None:
        """The most bytes of one key, estimated."""
        if self.events_per_key is None or self.event_bytes is None:
            return None
        return self.events_per_key * self.event_bytes

    def to_dict(self) -> dict[str, Any]:
        """For tools; the rate in events per second."""
        return {
            "variable": self.variable,
            "event_type": self.event_type,
            "negated": self.is_negated,
            "lifetime_us": self.lifetime_us,
            "kept_us": self.kept_us,
            "rate_per_second": None if self.rate is None else as_float(self.rate.per_second),
            "event_bytes": self.event_bytes,
            "events": self.events,
            "bytes": self.bytes,
            "events_per_key": self.events_per_key,
        }


def shared(stores: Iterable[Store]) -> tuple[Store, ...]:
    """Of the stores of each type the one that keeps events longest: it holds all that the others do."""
    longest: dict[str, Store] = {}
    for store in stores:
        known = longest.get(store.event_type)
        if known is None or (known.kept_us is not None and (store.kept_us is None or store.kept_us > known.kept_us)):
            longest[store.event_type] = store
    return tuple(longest.values())


class Totals:
    """The most that several stores can hold together."""

    @property
    def shared(self) -> tuple[Store, ...]:
        """Stores of which each kept event is in one."""
        raise NotImplementedError

    @property
    def events(self) -> int | None:
        """The most events that are kept, each once; None when a store has no bound."""
        return total(store.events for store in self.shared)

    @property
    def bytes(self) -> int | None:
        """The most bytes that are kept, estimated; None when a store is not known."""
        return total(store.bytes for store in self.shared)

    @property
    def events_per_key(self) -> int | None:
        """The most events of one key; None when there is no key, or no bound."""
        return total(store.events_per_key for store in self.shared)

    def totals(self) -> dict[str, Any]:
        """For tools."""
        return {"events": self.events, "bytes": self.bytes, "events_per_key": self.events_per_key}

    def table(
        self, header: tuple[str, ...], cells: list[tuple[str, ...]], stores: Iterable[Store], has_key: bool
    ) -> str:
        """One line per store, which begins with cells of its own up to its events; then the total."""
        rows = [(*header, "bytes", "per key")]
        rows += [
            (*own, format_bytes(store.bytes), format_count(store.events_per_key))
            for own, store in zip(cells, stores, strict=True)
        ]
        all_events = format_count(self.events)
        rows.append(("total", "", "", "", all_events, format_bytes(self.bytes), format_count(self.events_per_key)))
        first, *others = rows if has_key else [row[:-1] for row in rows]
        return table(first, others)


@dataclass(frozen=True)
class SizeReport(Totals):
    """The stores of a query and what they can hold together."""

    stores: tuple[Store, ...]  # one per variable and event type
    lateness_us: int = 0  # how far the watermark lags behind
    # The attributes by which the query is partitioned, or an equality that all its events share.
    key: tuple[str, ...] = ()

    @property
    def shared(self) -> tuple[Store, ...]:
        """One store per event type, which its variables share."""
        return shared(self.stores)

    def to_dict(self) -> dict[str, Any]:
        """For tools."""
        stores = [store.to_dict() for store in self.stores]
        return {"stores": stores, "lateness_us": self.lateness_us, "key": list(self.key)} | self.totals()

    def __str__(self) -> str:
        cells: list[tuple[str, ...]] = [
            (
                store.name,
                store.event_type,
                "not declared" if store.rate is None else str(store.rate),
                format_bound(store.lifetime_us),
                "unbounded" if store.lifetime_us is None else format_count(store.events),
            )
            for store in self.stores
        ]
        lines = [self.table(("store", "type", "rate", "lifetime", "events"), cells, self.stores, bool(self.key))]
        if len(self.shared) < len(self.stores):
            lines.append("The total counts an event that several stores hold once.")
        if self.lateness_us:
            lines.append(f"Events are kept {format_us(self.lateness_us)} longer than their lifetime, for late ones.")
        if self.key:
            lines.append(f"Key: {', '.join(self.key)}.")
        return "\n".join(lines)


def size_report(
    query: alg.Query,
    lifetimes: Lifetimes,
    rates: Mapping[str, Arrivals] | None = None,
    *,
    schemas: Mapping[str, Schema] | None = None,
    lateness_us: int = 0,
    live_keys: int | None = None,
    ahead_us: Mapping[str, int] | None = None,
    least_us: int = 0,
    key: tuple[str, ...] | None = None,
) -> SizeReport:
    """The largest size of every store.

    `lateness_us` is how far the watermark lags behind the newest event; `live_keys` the largest number of keys within
    the longest time that events are kept, for rates per key; `ahead_us` how far the emitted events of a type may lie in
    the future; `least_us` how long the engine keeps any event, also one that matters for less (an automaton keeps all
    for the window); `key` what its events have in common, by default the attributes of PARTITION BY.
    """
    common = query.partition.attributes if key is None else key
    lives = dict(lifetimes.us)
    positive = [
        (name, event_type, False)
        for name, kind in alg.variables_of(alg.exposed(query.pattern)).items()
        for event_type in kind.types
        if event_type is not None
    ]
    negated = [(absence.variable, absence.type, True) for absence in alg.absences_in(query.pattern)]
    wanted = list(dict.fromkeys(positive + negated))
    if counts_positions(query):
        lives[BETWEEN] = largest(lives.values())
        types = dict.fromkeys([*alg.event_types(query.pattern), *(rates or {})])
        whole = {kind for name, kind, _ in wanted if lives[name] == lives[BETWEEN]}
        wanted += [(BETWEEN, kind, False) for kind in types if kind not in whole]
    stores = []
    for variable, event_type, is_negated in wanted:
        lifetime = lives[variable]
        kept = None if lifetime is None else max(lifetime, least_us) + lateness_us + (ahead_us or {}).get(event_type, 0)
        rate = (rates or {}).get(event_type)
        schema = (schemas or {}).get(event_type)
        width = None if schema is None else event_bytes(schema)
        of_all = None if rate is None else rate.of_all(live_keys)
        events = None if of_all is None or kept is None else of_all.within(kept)
        size = None if events is None or width is None else events * width
        per_key = None if rate is None or kept is None or not common else rate.of_key.within(kept)
        stores.append(Store(variable, event_type, is_negated, lifetime, kept, rate, width, events, size, per_key))
    return SizeReport(tuple(stores), lateness_us, common)


def counts_positions(query: alg.Query) -> bool:
    """Whether events that no variable holds matter because they lie between others."""
    return query.selection in (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS) or any(
        isinstance(node, alg.Adjacent | alg.RepeatAdjacent | alg.NextOf)
        or (isinstance(node, alg.Event) and node.type is None)
        for node in query.pattern.walk()
    )


def event_bytes(schema: Schema) -> int:
    """About how many bytes an event of a type takes.

    >>> event_bytes(Schema.of("A", {"ts": "timestamp", "user": "string", "amount": "double"}))
    64
    """
    return EVENT_BYTES + sum(found.width_bytes for found in schema.attributes.values())


def total(parts: Iterable[int | None]) -> int | None:
    """The sum, when all parts are known.

    >>> total([1, 2]), total([1, None]) is None
    (3, True)
    """
    known = list(parts)
    present = [part for part in known if part is not None]
    return sum(present) if len(present) == len(known) else None


# --- limits ---------------------------------------------------------------------------------------

SHOWN = 3


def require_within(limit: Limit, stores: Iterable[Store], advice: str, emitted: Collection[str] = ()) -> None:
    """Refuse a query that may keep more than the limit, or of which it is not known how much it keeps.

    `stores` has one per event type, or per stratum and type: each event is in one of them. The rates of types that
    rules emit cannot be declared.
    """
    sizes = [(store, store.bytes_per_key if limit.is_per_key else store.bytes) for store in stores]
    unknown = [store for store, size in sizes if size is None]
    if unknown:
        reasons = dict.fromkeys(_missing(store, limit, emitted) for store in unknown)
        raise errors.StateUnknownError(
            f"How much a live query keeps is not known: {'; '.join(what for what, _ in reasons)}.",
            hint="; ".join(dict.fromkeys(cure for _, cure in reasons)) + ".",
        )
    whole = total(size for _, size in sizes) or 0
    if whole <= limit.bytes:
        return
    largest = sorted(sizes, key=lambda each: each[1] or 0, reverse=True)[:SHOWN]
    listed = "; ".join(_described(store, size) for store, size in largest)
    raise errors.StateTooLargeError(
        f"A live query may keep {format_bytes(whole)}{' of one key' * limit.is_per_key}, more than the {limit} that "
        f"`max_state` allows. The largest stores: {listed}.",
        hint=advice,
    )


def _described(store: Store, size: int | None) -> str:
    kept = format_bound(store.kept_us)
    return f"{format_bytes(size)} of `{store.event_type}` for `{store.variable}` ({store.rate}, kept {kept})"


def _missing(store: Store, limit: Limit, emitted: Collection[str]) -> tuple[str, str]:
    """The missing fact about a store, and how to declare it."""
    kind = store.event_type
    if store.lifetime_us is None:
        return f"nothing bounds how long `{store.variable}` matters", "add a window"
    if store.rate is None and kind in emitted:
        return (
            f"the rate of `{kind}` does not follow from the rules that emit it",
            "tell the rates of all they read, and gather events with `all` in place of repetitions",
        )
    if store.rate is None:
        return (
            f"the rate of `{kind}` is not known",
            f'declare it, `rates={{"{kind}": "100/s"}}` or `--rate {kind}=100/s`',
        )
    if store.event_bytes is None:
        return f"the schema of `{kind}` is not known", f"give it, `--schema '{kind}=ts timestamp, user string'`"
    if limit.is_per_key:
        return "the query has no key", "partition it, or set a limit to all of it"
    if isinstance(store.rate, Rate) and store.rate.is_per_key:
        return (
            f"the rate of `{kind}` is that of one key",
            f"tell how many keys are live at once, `live_keys=` or `--live-keys`, or add the rate of all: "
            f'"1000/s, {store.rate}"',
        )
    return f"the size of `{kind}` does not follow", "declare more rates"
