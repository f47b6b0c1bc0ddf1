"""Words whose iterations compare neighbours (`b[i].x > b[i-1].x`): what may come next depends on the last event.

A word in a state of such a variable is told apart by the event it took last, and moves to another event of the variable
only where the two are neighbours that the conditions accept; all other moves are those of the state, as everywhere.

Without a window one walk backwards looks at every pair of events once. With a window every start has a walk of its own
through its window: the blocks of `exact` would have to keep a waiting for every event.
"""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.kernels.trends.sums import Sum, plus
from tocsin.kernels.trends.walks import Group, Walk


def totals(
    group: Group, walk: Walk, empty: Sum, window_us: int | None, own: tuple[int, int]
) -> Iterator[tuple[int, Sum]]:
    """For every event that starts matches, and that this group owns, what is added up over those."""
    if window_us is None:
        yield from (found for found in _backwards(group, walk, empty) if own[0] <= group.ts[found[0]] <= own[1])
        return
    for start, ts in enumerate(group.ts):
        if own[0] <= ts <= own[1]:
            words = _from_start(group, walk, empty, start, ts + window_us)
            if words is not None:
                yield start, words


def _backwards(group: Group, walk: Walk, empty: Sum) -> Iterator[tuple[int, Sum]]:
    free: dict[int, Sum | None] = {}  # state → what its moves to events that need not be neighbours lead to
    led: list[tuple[int, int, int, Sum]] = []  # event, letter, state it is taken into, what the word leads to with it

    def arrived(event: int, state: int) -> Sum | None:
        found = free.get(state)
        for other, letter, reached, words in led:
            if (
                walk.moves.get((state, letter)) == reached
                and walk.are_neighbours(state, letter)
                and walk.fits(group, state, event, other)
            ):
                found = plus(found, words)
        return plus(found, empty) if state in walk.machine.finals else found

    for instant in reversed(walk.instants(group, 0, len(group.ts))):
        made: list[tuple[int, int, int, Sum]] = []
        for event in instant:
            for letter in group.letters[event]:
                for state in sorted({target for (_, taken), target in walk.moves.items() if taken == letter}):
                    words = group.with_event(event, letter, arrived(event, state))
                    if words is not None:
                        made.append((event, letter, state, words))
        for event in instant:
            total: Sum | None = None
            for other, letter, state, words in made:
                if other == event and walk.moves.get((0, letter)) == state:
                    total = plus(total, words)
            if total is not None:
                yield event, total
        for _, letter, reached, words in made:
            for (state, taken), target in walk.moves.items():
                if state and taken == letter and target == reached and not walk.are_neighbours(state, letter):
                    free[state] = plus(free.get(state), words)
        led += made


def _from_start(group: Group, walk: Walk, empty: Sum, start: int, end_us: int) -> Sum | None:
    """The words that begin with an event and end before a time."""
    done: Sum | None = None
    totals: dict[int, Sum | None] = {}  # state → its words
    lasts: list[tuple[int, int, Sum]] = []  # state that compares neighbours, last event, words

    def settle(made: list[tuple[int, int, Sum]]) -> None:
        nonlocal done
        for state, event, words in made:
            totals[state] = plus(totals.get(state), words)
            if walk.compares(state):
                lasts.append((state, event, words))
            if state in walk.machine.finals:
                done = plus(done, words)

    first = [
        (walk.moves[0, letter], start, words)
        for letter in group.letters[start]
        if (0, letter) in walk.moves and (words := group.with_event(start, letter, empty)) is not None
    ]
    if not first:
        return None
    settle(first)
    place = start + 1
    while place < len(group.ts) and group.ts[place] == group.ts[start]:
        place += 1
    for instant in walk.instants(group, place, len(group.ts)):
        if group.ts[instant.start] >= end_us:
            break
        made = []
        for event in instant:
            for letter in group.letters[event]:
                for (state, taken), target in walk.moves.items():
                    if taken != letter or not state:
                        continue
                    source = totals.get(state)
                    if walk.are_neighbours(state, letter):
                        source = None
                        for of, last, words in lasts:
                            if of == state and walk.fits(group, state, last, event):
                                source = plus(source, words)
                    words_with = group.with_event(event, letter, source)
                    if words_with is not None:
                        made.append((target, event, words_with))
        settle(made)
    return done
