"""A limit to what a live query may keep, checked before it starts: `"4GB"`, `"64 KiB per key"`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction

from tocsin import errors
from tocsin.analysis.formatting import format_bound
from tocsin.analysis.rates import Rate
from tocsin.analysis.sizes import Store, format_bytes, total

UNITS = {
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgtp", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgtp", 1)},
}
_LIMIT = re.compile(
    r"(?P<number>\d+(_\d+)*(\.\d+)?)\s*(?P<unit>[a-z]+)(?P<key>\s+per\s+key)?", re.IGNORECASE | re.ASCII
)
SHOWN = 3


@dataclass(frozen=True)
class Limit:
    """A number of bytes, of all that is kept or of each key."""

    bytes: int
    is_per_key: bool = False

    def __str__(self) -> str:
        """As it may be written."""
        return format_bytes(self.bytes) + " per key" * self.is_per_key


def parse_limit(limit: str | int | Limit, option: str = "max_state") -> Limit:
    """A limit; a number is bytes. `option` is the name that messages have for it.

    >>> parse_limit("4GB").bytes, parse_limit("1.5 KiB per key")
    (4000000000, Limit(bytes=1536, is_per_key=True))
    """
    if isinstance(limit, Limit):
        return limit
    if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0:
        return Limit(limit)
    found = _LIMIT.fullmatch(limit.strip()) if isinstance(limit, str) else None
    unit = UNITS.get(found["unit"].lower()) if found is not None else None
    if found is None or unit is None:
        raise errors.InvalidOptionError(
            f"`{option}={limit!r}` is not a number of bytes.",
            hint="write a number and a unit, as in `4GB`, `512 MiB` or `64 kB per key`.",
        )
    return Limit(int(Fraction(found["number"]) * unit), found["key"] is not None)


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
