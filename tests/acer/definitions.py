"""What the operators of paper 000 mean, said directly: no windows in memory, no watermarks, no states but the user's.

Everything is looked at as a whole, as often as it takes. An event is (time, key, x); ties go by x.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations, pairwise
from typing import Any, NamedTuple


class Row(NamedTuple):
    ts: int
    k: str | None
    x: int


def ordered(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.ts, row.x))


def by_key(rows: Iterable[Row], key: str | None) -> dict[Any, list[Row]]:
    """The events of each key, in order; with "*" all that are equal, without one all."""
    found: dict[Any, list[Row]] = {}
    for row in ordered(rows):
        found.setdefault(row if key == "*" else row.k if key == "k" else None, []).append(row)
    return found


def windows_holding(time: int, advance: int, size: int) -> list[int]:
    """Left boundaries, by looking at all that could be."""
    candidates = range((time - size) // advance - 1, time // advance + 2)
    return [one * advance for one in candidates if one * advance <= time < one * advance + size]


def aggregated(
    rows: Iterable[Row], key: str | None, advance: int, size: int, delta: int, of: Callable[[list[Row]], Any]
) -> Counter[Any]:
    """A: `of` of the events of every window that holds any, with the time of the window."""
    found: Counter[Any] = Counter()
    for own in by_key(rows, key).values():
        for left in {left for row in own for left in windows_holding(row.ts, advance, size)}:
            held = [row for row in own if left <= row.ts < left + size]
            found[own[0].k if key else None, left + size - delta, of(held)] += 1
    return found


def preprocessed(rows: Iterable[Row], key: str | None, of: Callable[[list[Row]], list[Any]]) -> Counter[Any]:
    """S&P: `of` of the events of one time and key."""
    groups: dict[Any, list[Row]] = {}
    for name, own in by_key(rows, key).items():
        for row in own:
            groups.setdefault((name, row.ts), []).append(row)
    return Counter(
        (own[0].k if key == "k" else None, time, result) for (_, time), own in groups.items() for result in of(own)
    )


def sequences(
    rows: Iterable[Row], key: str | None, within: int, length: int, advance: int, size: int, delta: int
) -> Counter[Any]:
    """T-CER: all rising sequences of a length that span less than `within`, owned by the last window."""
    found: Counter[Any] = Counter()
    for own in by_key(rows, key).values():
        for chosen in combinations(own, length):
            values = tuple(row.x for row in chosen)
            start, end = chosen[0].ts, chosen[-1].ts
            if end - start < within and all(a < b for a, b in pairwise(values)):
                held = [left for left in windows_holding(start, advance, size) if end < left + size]
                found[own[0].k if key else None, max(held) + size - delta, start, end, values] += 1
    return found


def folded(rows: Iterable[Row], key: str | None, of: Callable[[Any, Row], tuple[Any, list[Any]]]) -> Counter[Any]:
    """R-CER: a function with a state over the events of a key, one after the other."""
    found: Counter[Any] = Counter()
    for own in by_key(rows, key).values():
        state = None
        for row in own:
            state, results = of(state, row)
            found.update((row.k if key else None, row.ts, result) for result in results)
    return found
