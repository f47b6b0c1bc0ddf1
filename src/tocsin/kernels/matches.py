"""`Matches` of one pattern: picked, joined and counted, and the errors where a search gives up (R43)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin.algebra.units import format_bytes
from tocsin.errors import TooManyMatchesError, TooMuchMemoryError, TooMuchSearchError
from tocsin.kernels.model import Bag, Integers, Made, Mask, Matches, Ranges, Rows, sums_before
from tocsin.language.ast import Selection


def take(matches: Matches, which: Integers | Mask) -> Matches:
    """Some of the matches: those of a mask, or those at these indices in their order."""
    indices = np.flatnonzero(which) if which.dtype == np.bool_ else which.astype(np.int64, copy=False)
    return Matches(
        matches.start[indices],
        matches.end[indices],
        taken(matches.events, indices),
        taken(matches.floors, indices),
        matches.made,
        tuple((numbers[indices], nulls[indices]) for numbers, nulls in matches.values),
        None if matches.missing is None else matches.missing[indices],
        None if matches.edges is None else (matches.edges[0][indices], matches.edges[1][indices]),
    )


def concatenate(parts: Sequence[Matches]) -> Matches:
    """All matches of several `Matches` of one pattern, in their order.

    Floors are kept when every part has them. Events that were made are numbered anew where parts have their own.
    """
    if not parts:
        nothing = np.empty(0, dtype=np.int64)
        return Matches(nothing, nothing)
    if len(parts) == 1:
        return parts[0]
    made, shifts = _made_by_all([part.made for part in parts])
    missing = [part.missing for part in parts if part.missing is not None]
    edges = [part.edges for part in parts if part.edges is not None]
    events = [
        _shifted(part.events, part.made, shift) if shift else part.events
        for part, shift in zip(parts, shifts, strict=True)
    ]
    return Matches(
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
        joined(events),
        joined([part.floors for part in parts]) if all(part.floors for part in parts) else {},
        made,
        tuple(
            (np.concatenate([numbers for numbers, _ in some]), np.concatenate([nulls for _, nulls in some]))
            for some in zip(*(part.values for part in parts), strict=True)
        ),
        np.concatenate(missing) if missing else None,
        (np.concatenate([one for one, _ in edges]), np.concatenate([one for _, one in edges])) if edges else None,
    )


def _made_by_all(several: Sequence[Made | None]) -> tuple[Made | None, list[int]]:
    """All events that parts have made, each once, and how much later those of each part come in them."""
    kept: list[Made] = []
    shifts = [0] * len(several)
    for number, made in enumerate(several):
        if made is None:
            continue
        before = next((place for place, one in enumerate(kept) if one is made), len(kept))
        if before == len(kept):
            kept.append(made)
        shifts[number] = sum(len(one.rows) for one in kept[:before])
    if len(kept) < 2:
        return (kept[0] if kept else None), shifts
    places = []
    sizes = [0] * len(kept[0].columns)
    for made in kept:
        offsets = np.array(sizes, np.int64)
        places.append(made.places + (offsets[made.templates] if len(sizes) else 0))
        sizes = [size + (len(columns[0]) if columns else 0) for size, columns in zip(sizes, made.columns, strict=True)]
    columns = tuple(
        tuple(_column(column_parts) for column_parts in zip(*parts, strict=True))
        for parts in zip(*(made.columns for made in kept), strict=True)
    )
    return Made(
        kept[0].base,
        np.concatenate([made.rows for made in kept]),
        np.concatenate([made.templates for made in kept]),
        np.concatenate(places),
        columns,
    ), shifts


def _column(parts: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """The values of several columns below each other; NULLs may be None, or masked in an array."""
    if all(isinstance(part, np.ndarray) for part in parts):
        found: Sequence[Any] = np.ma.concatenate(parts)  # type: ignore[no-untyped-call]
        return found
    return [value for part in parts for value in (part.tolist() if isinstance(part, np.ndarray) else part)]


def _shifted(events: Mapping[str, Integers | Bag], made: Made | None, shift: int) -> dict[str, Integers | Bag]:
    """Events, where those that were made have later numbers."""
    base = 0 if made is None else made.base

    def later(rows: Integers) -> Integers:
        return np.where(rows >= base, rows + shift, rows)

    return {
        name: Bag(held.offsets, later(held.rows)) if isinstance(held, Bag) else later(held)
        for name, held in events.items()
    }


def taken(held: Mapping[str, Integers | Bag], indices: Integers) -> dict[str, Integers | Bag]:
    """Some entries of columns."""
    return {name: each.take(indices) for name, each in held.items()}


def joined(parts: Sequence[Mapping[str, Integers | Bag]]) -> dict[str, Integers | Bag]:
    """Columns of several parts, which all have the same, below each other."""
    found: dict[str, Integers | Bag] = {}
    for name, first in parts[0].items():
        if not isinstance(first, Bag):
            found[name] = np.concatenate([part[name] for part in parts])
            continue
        bags = [bag for part in parts if isinstance(bag := part[name], Bag)]
        offsets = sums_before(np.concatenate([bag.sizes for bag in bags]))
        # A bag's rows may begin before its first offset and end after its last.
        rows = np.concatenate([bag.rows[bag.offsets[0] : bag.offsets[-1]] for bag in bags])
        found[name] = Bag(offsets, rows)
    return found


COPIES = 3  # a task holds its matches as found, as rows, and as results
# A start that finds nothing may still try exponentially many partial matches: these take a second or less.
MOST_STEPS, STEPS_PER_MATCH = 64_000_000, 64
# More than any search finds: what is not a match is not counted.
UNLIMITED = 1 << 62


@dataclass(frozen=True)
class Limits:
    """How much a search may find and hold, and how its errors name it."""

    most: int  # matches that begin with one event
    memory: int  # bytes of what is held at once
    iterated: tuple[str, ...] = ()  # the variables that are iterated
    policy: Selection = Selection.ANY

    @property
    def most_steps(self) -> int:
        """How many steps the search from one start may take."""
        return max(MOST_STEPS, self.most * STEPS_PER_MATCH)

    def too_many_matches(self) -> TooManyMatchesError:
        """One start has more matches than it may; a policy that the query has is not recommended to it."""
        fewer = "`SEMANTICS next` takes the next event only; " if self.policy is Selection.ANY else ""
        return TooManyMatchesError(
            f"From one event on, {_part(self.iterated)} has more than {self.most:,} matches.",
            hint=f"{fewer}a bounded iteration such as `{{1,5}}`, a shorter window or a stricter condition has fewer "
            "matches; where a number is enough, `RETURN COUNT(*)` builds no match. `max_matches_per_start=` moves the "
            "limit.",
        )

    def too_many_steps(self, steps: int) -> TooMuchSearchError:
        """A search from one start has taken more steps than it may."""
        return TooMuchSearchError(
            f"From one event on, {_part(self.iterated)} was not searched to its end in {steps:,} steps.",
            hint="a shorter window, `PARTITION BY`, a bounded iteration such as `{1,5}` or a stricter condition leaves "
            "fewer partial matches to try; where a number is enough, `RETURN COUNT(*)` builds no match. "
            "`max_matches_per_start=` above 1,000,000 allows 64 steps for each match.",
        )

    def check_memory(self, size: int) -> None:
        """Refuse to hold so many bytes."""
        check_memory(size, self.memory, self.iterated)


def check_memory(size: int, most: int, iterated: Sequence[str] = (), *, copies: int = COPIES) -> None:
    """Refuse to hold more than `most` bytes for so many copies of `size` bytes."""
    if copies * size > most:
        raise TooMuchMemoryError(
            f"What {_part(iterated)} finds needs {format_bytes(copies * size)} in one task, more than the "
            f"{format_bytes(most)} that it may hold.",
            hint="a shorter window, `PARTITION BY`, a bounded iteration such as `{1,5}` or a stricter condition finds "
            "fewer and shorter matches; where a number is enough, `RETURN COUNT(*)` builds no match. "
            "`max_task_memory=` moves the limit.",
        )


def held_at_once(parts: Iterable[Matches], most: int) -> list[Matches]:
    """All parts, as far as they fit into so many bytes."""
    found, size = [], 0
    for part in parts:
        found.append(part)
        size += part.start.nbytes + part.end.nbytes
        size += sum(held.nbytes for held in (*part.events.values(), *part.floors.values()))
        check_memory(size, most)
    return found


def _part(iterated: Sequence[str]) -> str:
    return f"the iteration of {', '.join(f'`{name}`' for name in iterated)}" if iterated else "the pattern"


class Starts:
    """How many matches begin with each row, and the error when these are more than may be."""

    def __init__(self, rows: Rows, limits: Limits) -> None:
        self.rows, self.limits = rows, limits
        self.counts: Integers = np.zeros(len(rows.ts), np.int64)

    def noted(self, matches: Matches) -> Matches:
        """Count matches, which were not counted before, and return them; refuse those of a row that begins too many."""
        first = first_rows(matches.events, self.rows)
        np.add.at(self.counts, first, 1)
        if len(first) and self.counts[first].max() > self.limits.most:
            raise self.limits.too_many_matches()
        return matches

    def judge(self, matches: Matches) -> None:
        """Raise an error when a row begins more matches than it may with these, which are not counted."""
        first, counts = np.unique(first_rows(matches.events, self.rows), return_counts=True)
        if np.any(self.counts[first] + counts > self.limits.most):
            raise self.limits.too_many_matches()


def first_rows(events: Mapping[str, Integers | Bag], rows: Rows) -> Integers:
    """The row of each match's first event: by position where there are positions, otherwise by time."""
    known = rows.ts if rows.order is None else rows.order
    found: Integers | None = None
    for held in events.values():
        own = _first(held)
        if found is None:
            found = own
            continue
        is_earlier = (known[own] < known[found]) | ((known[own] == known[found]) & (own < found))
        found = np.where((own >= 0) & ((found < 0) | is_earlier), own, found)
    return np.empty(0, np.int64) if found is None else found


def _first(held: Integers | Bag) -> Integers:
    if isinstance(held, Ranges):
        return held.heads
    if not isinstance(held, Bag):
        return held
    begins, ends = held.offsets[:-1], held.offsets[1:]
    found = np.full(len(begins), -1, np.int64)
    is_bound = begins < ends
    found[is_bound] = held.rows[begins[is_bound]]
    return found
