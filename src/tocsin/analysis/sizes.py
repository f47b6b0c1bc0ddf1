"""How much a live query can ever hold, from declared rates, before it starts (SEMANTICS §7).

There is one store per variable and event type, negated variables included. It holds the events of the last
`lifetime + lateness`, where the lateness is how far the watermark may lag behind, so at most

    ⌈rate × (lifetime + lateness)⌉ + 1

events, for a rate that is a hard limit. The bound is an alarm, never a reason to evict.

A rate is that of the whole input; each key may have all of it, so the bound per key is the same. A rate
declared per key bounds each key, and the whole with the number of keys that are live at once.

The bytes of an event are estimated from its schema: booleans and tinyint 1, smallint 2, int, float and date
4, bigint, double, timestamp and interval 8, decimal 16, string 32, binary and other types 64, a struct the
sum of its fields, an array 8 and four elements; plus 16 for time stamp and identity. Strings longer than that
need their own reckoning.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema
from tocsin.analysis.durations import format_bound, format_us, table
from tocsin.analysis.lifetimes import Lifetimes
from tocsin.analysis.rates import Rate, parse_rates

EVENT_BYTES = 16


@dataclass(frozen=True)
class Store:
    """The events of one type that are kept for one variable.

    Attributes
    ----------
    events, bytes
        The most it can hold; None when the rate is not declared, the lifetime has no bound, or a rate per key
        comes without the number of keys.
    events_per_key
        The most it can hold of one key; None when the query has no key.
    """

    variable: str
    event_type: str
    is_negated: bool
    lifetime_us: int | None
    rate: Rate | None
    event_bytes: int | None
    events: int | None
    bytes: int | None
    events_per_key: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """For tools; the rate in events per second."""
        return {
            "variable": self.variable,
            "event_type": self.event_type,
            "negated": self.is_negated,
            "lifetime_us": self.lifetime_us,
            "rate_per_second": None if self.rate is None else float(self.rate.per_second),
            "event_bytes": self.event_bytes,
            "events": self.events,
            "bytes": self.bytes,
            "events_per_key": self.events_per_key,
        }


@dataclass(frozen=True)
class SizeReport:
    """The stores of a query and what they can hold together."""

    stores: tuple[Store, ...]
    lateness_us: int = 0
    key: tuple[str, ...] = ()

    @property
    def events(self) -> int | None:
        """The most events in all stores; None when one of them has no bound."""
        return _total(store.events for store in self.stores)

    @property
    def bytes(self) -> int | None:
        """The most bytes in all stores, estimated; None when one of them is not known."""
        return _total(store.bytes for store in self.stores)

    @property
    def events_per_key(self) -> int | None:
        """The most events of one key; None when there is no key, or no bound."""
        return _total(store.events_per_key for store in self.stores)

    def to_dict(self) -> dict[str, Any]:
        """For tools."""
        return {
            "stores": [store.to_dict() for store in self.stores],
            "lateness_us": self.lateness_us,
            "key": list(self.key),
            "events": self.events,
            "bytes": self.bytes,
            "events_per_key": self.events_per_key,
        }

    def __str__(self) -> str:
        """A table: one line per store, then the total."""
        per_key = ("per key",) if self.key else ()
        header = ("store", "type", "rate", "lifetime", "events", "bytes", *per_key)
        rows = [self._row(store) for store in self.stores]
        total = ("total", "", "", "", _count(self.events), _bytes(self.bytes))
        rows.append(total + ((_count(self.events_per_key),) if self.key else ()))
        lines = [table(header, rows)]
        if self.lateness_us:
            lines.append(f"Events are kept {format_us(self.lateness_us)} longer than their lifetime, for late ones.")
        if self.key:
            lines.append(f"Key: {', '.join(self.key)}.")
        return "\n".join(lines)

    def _row(self, store: Store) -> tuple[str, ...]:
        row = (
            f"NOT {store.variable}" if store.is_negated else store.variable,
            store.event_type,
            "not declared" if store.rate is None else str(store.rate),
            format_bound(store.lifetime_us),
            "unbounded" if store.lifetime_us is None else _count(store.events),
            _bytes(store.bytes),
        )
        return row + ((_count(store.events_per_key),) if self.key else ())


def size_report(
    query: alg.Query,
    lifetimes: Lifetimes,
    rates: Mapping[str, str | float | Fraction | Rate] | None = None,
    *,
    schemas: Mapping[str, Schema] | None = None,
    lateness_us: int = 0,
    live_keys: int | None = None,
) -> SizeReport:
    """The largest size of every store.

    Parameters
    ----------
    query
        The query.
    lifetimes
        How long the events of each variable matter.
    rates
        Event type → the largest rate: events per second, or text such as `"100 per minute"`, `"5/h per key"`.
    schemas
        The schemas, for the bytes.
    lateness_us
        How far the watermark lags behind the newest event.
    live_keys
        The largest number of keys within one lifetime, for rates per key.

    Examples
    --------
    >>> from tocsin.analysis.lifetimes import lifetimes
    >>> from tocsin.analysis.temporal import network
    >>> query = alg.Query(alg.Within(alg.Sequence((alg.Event("A", "a"), alg.Event("B", "b"))), 10_000_000))
    >>> print(size_report(query, lifetimes(query, network(query)), {"A": "100/s"}))
    store  type  rate          lifetime    events   bytes
    a      A     100/s         9.999999 s  1 001    unknown
    b      B     not declared  0 s         unknown  unknown
    total                                  unknown  unknown
    """
    known = parse_rates(rates)
    is_keyed = bool(query.partition.attributes)
    stores = []
    for variable, event_type, is_negated in _stores(query):
        lifetime = lifetimes[variable]
        rate = known.get(event_type)
        schema = (schemas or {}).get(event_type)
        width = None if schema is None else event_bytes(schema)
        bound = None if rate is None or lifetime is None else _events(rate, lifetime + lateness_us)
        events = bound
        if rate is not None and rate.is_per_key and bound is not None:
            events = None if live_keys is None else bound * live_keys
        size = None if events is None or width is None else events * width
        per_key = bound if is_keyed else None
        stores.append(Store(variable, event_type, is_negated, lifetime, rate, width, events, size, per_key))
    return SizeReport(tuple(stores), lateness_us, query.partition.attributes)


def _stores(query: alg.Query) -> list[tuple[str, str, bool]]:
    positive = [
        (name, event_type, False)
        for name, kind in query.variables.items()
        for event_type in kind.types
        if event_type is not None
    ]
    negated = [(absence.variable, absence.type, True) for absence in alg.absences_in(query.pattern)]
    return list(dict.fromkeys(positive + negated))


def _events(rate: Rate, kept_us: int) -> int:
    return math.ceil(rate.per_second * kept_us / 1_000_000) + 1


def event_bytes(schema: Schema) -> int:
    """About how many bytes an event of a type takes.

    Examples
    --------
    >>> event_bytes(Schema.of("A", {"ts": "timestamp", "user": "string", "amount": "double"}))
    64
    """
    return EVENT_BYTES + sum(found.width_bytes for found in schema.attributes.values())


def _total(parts: Iterable[int | None]) -> int | None:
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}".replace(",", " ")


def _bytes(number: int | None) -> str:
    """A size for people.

    Examples
    --------
    >>> _bytes(1_500), _bytes(2_300_000), _bytes(None)
    ('1.5 kB', '2.3 MB', 'unknown')
    """
    if number is None:
        return "unknown"
    for size, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} B"
