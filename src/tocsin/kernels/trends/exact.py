"""Counting the words of a group in Python's own integers: for small tasks, and for numbers that know no bound.

Without a window one walk from the last event to the first is enough. With a window W the times of a group are cut into
blocks as long as W: a match that starts in a block ends in it or in the next one, so that its words are those that are
complete before the cut, and those that stand at the cut in some waiting p and are completed soon enough behind it:

    total(s) = inside(s) ⊕ ⊕_p at_cut(s, p) ⊗ completed(p, s + W − 1)

`inside` and `at_cut` come from the walk backwards through the block, `completed` from one forwards through the next.
Every event is visited twice, however many matches there are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from tocsin.kernels.trends import neighbours
from tocsin.kernels.trends.sums import Sum, plus, times
from tocsin.kernels.trends.walks import Group, Row, Rows, Walk
from tocsin.language.ast import Selection


def totals(
    group: Group, walk: Walk, empty: Sum, window_us: int | None, own: tuple[int, int]
) -> Iterator[tuple[int, Sum]]:
    """For every event that starts matches, and that this group owns, what is added up over those.

    Parameters
    ----------
    group
        The events.
    walk
        How words grow.
    empty
        The empty word (`sums.one`).
    window_us
        The window.
    own
        The first and the last time of the starts to count.
    """
    if walk.compared and walk.selection is Selection.ANY:
        yield from neighbours.totals(group, walk, empty, window_us, own)
        return
    number = len(group.ts)
    first = bisect_left(group.ts, own[0])
    while first < number and group.ts[first] <= own[1]:
        cut = number if window_us is None else bisect_left(group.ts, group.ts[first] + window_us, first)
        starts = [found for found in _block(group, walk, empty, first, cut) if group.ts[found[0]] <= own[1]]
        yield from _completed(group, walk, empty, starts, cut, window_us)
        first = cut


def _block(group: Group, walk: Walk, empty: Sum, first: int, cut: int) -> list[tuple[int, Row]]:
    """For every start in a block, the words complete inside it (entry 0) and those at its end, in order of time."""
    waitings = len(walk.waitings)
    rows: Rows = [[None] * (1 + waitings) for _ in range(waitings)]
    for number, row in enumerate(rows):
        row[1 + number] = empty
    found: list[tuple[int, Row]] = []
    for instant in reversed(walk.instants(group, first, cut)):
        for event in reversed(instant):
            made = walk.taken(group, event, 0, rows, empty)
            if made is not None and any(words is not None for words in made):
                found.append((event, made))
        rows = walk.back(group, instant, rows, empty)
    return found[::-1]


def _completed(
    group: Group, walk: Walk, empty: Sum, starts: list[tuple[int, Row]], cut: int, window_us: int | None
) -> Iterator[tuple[int, Sum]]:
    """Add to what starts complete inside their block what they complete behind it."""
    behind = walk.instants(group, cut, len(group.ts)) if window_us is not None and starts else []
    waitings = range(len(walk.waitings))
    words: Rows = [[empty if other == number else None for other in waitings] for number in waitings]
    done: Row = [None for _ in waitings]
    reached = 0
    for start, row in starts:
        total = row[0]
        latest = group.ts[start] + (window_us or 0) - 1
        while reached < len(behind) and group.ts[behind[reached].start] <= latest:
            for number in waitings:
                words[number], more = walk.ahead(group, behind[reached], words[number])
                done[number] = plus(done[number], more)
            reached += 1
        for number in waitings:
            total = plus(total, times(row[1 + number], done[number]))
        if total is not None:
            yield start, total
