"""Where a search gives up: matches per start, which are counted one by one (R43), and steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tocsin.analysis.sizes import format_bytes
from tocsin.errors import TooManyMatchesError, TooMuchMemoryError, TooMuchSearchError
from tocsin.kernels.model import Bag, Integers, Matches, Ranges, Rows
from tocsin.language.ast import Selection

COPIES = 3  # a task holds its matches as found, as rows, and as results


def too_many_matches(most: int, iterated: Sequence[str], policy: Selection) -> TooManyMatchesError:
    """One start has more matches than it may; a policy that the query has is not recommended to it."""
    fewer = "`SEMANTICS next` takes the next event only; " if policy is Selection.ANY else ""
    return TooManyMatchesError(
        f"From one event on, {_part(iterated)} has more than {most:,} matches.",
        hint=f"{fewer}a bounded iteration such as `{{1,5}}`, a shorter window or a stricter condition has fewer "
        "matches; where a number is enough, `RETURN COUNT(*)` builds no match. `max_matches_per_start=` moves the "
        "limit.",
    )


def too_many_steps(steps: int, iterated: Sequence[str]) -> TooMuchSearchError:
    """A search from one start has taken more steps than it may."""
    return TooMuchSearchError(
        f"From one event on, {_part(iterated)} was not searched to its end in {steps:,} steps.",
        hint="a shorter window, `PARTITION BY`, a bounded iteration such as `{1,5}` or a stricter condition leaves "
        "fewer partial matches to try; where a number is enough, `RETURN COUNT(*)` builds no match. "
        "`max_matches_per_start=` above 1,000,000 allows 64 steps for each match.",
    )


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


def held_at_once(parts: Iterable[Matches], most: int, iterated: Sequence[str] = ()) -> list[Matches]:
    """All parts, as far as they fit into so many bytes."""
    found, size = [], 0
    for part in parts:
        found.append(part)
        size += size_of(part)
        check_memory(size, most, iterated)
    return found


def size_of(matches: Matches) -> int:
    """How many bytes matches take."""
    events = sum(held.nbytes for held in (*matches.events.values(), *matches.floors.values()))
    return events + matches.start.nbytes + matches.end.nbytes


def _part(iterated: Sequence[str]) -> str:
    return f"the iteration of {', '.join(f'`{name}`' for name in iterated)}" if iterated else "the pattern"


class Starts:
    """How many matches begin with each row, and the error when these are more than `most`."""

    def __init__(self, rows: Rows, most: int, iterated: Sequence[str], policy: Selection) -> None:
        self.rows, self.most, self.iterated, self.policy = rows, most, iterated, policy
        self.counts: Integers = np.zeros(len(rows.ts), np.int64)

    def noted(self, matches: Matches) -> Matches:
        """Count matches, which were not counted before, and return them; refuse those of a row that begins too many."""
        first = first_rows(matches.events, self.rows)
        np.add.at(self.counts, first, 1)
        if len(first) and self.counts[first].max() > self.most:
            raise too_many_matches(self.most, self.iterated, self.policy)
        return matches

    def judge(self, matches: Matches) -> None:
        """Raise an error when a row begins more matches than it may with these, which are not counted."""
        first, counts = np.unique(first_rows(matches.events, self.rows), return_counts=True)
        if np.any(self.counts[first] + counts > self.most):
            raise too_many_matches(self.most, self.iterated, self.policy)


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
