"""The loops over links: numba compiles them, and plain Python runs them on lists, which it reads faster than arrays.

Tables of elements, letters or states by event are flat: the entry of row r and event i is at `r * size + i`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from tocsin.kernels.search.helpers import DONE, FULL, TOO_LONG, TOO_MANY

NEVER = 2**31 - 1  # no place: more events than this do not fit into one task
# Compiled functions are kept by their text: it names the version of what they call.
_TEXT = f"""# {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}
@compiled
def search(*given):
    return """
WALK, FIRST, TABLE = (f"{_TEXT}{name}(*given)\n" for name in ("walk_links", "first_links", "fill_earliest"))


def fill_earliest(size: int, links: Any, earliest: Any) -> tuple[int, int, int, int]:
    """Fill the table of earliest ends, from the last event to the first; return how many links were looked at."""
    following, fits, moves, element, letter, target, final = links
    steps = 0
    for place in range(size - 1, -1, -1):
        for state in range(1, len(final)):
            least = place
            if not final[state]:
                least = 2147483647
                for move in range(moves[state], moves[state + 1]):
                    steps += 1
                    other = following[element[move] * size + place]
                    if other >= 0 and fits[letter[move] * size + other]:
                        least = min(least, earliest[target[move] * size + other])
            earliest[state * size + place] = least
    return DONE, 0, 0, steps


def walk_links(
    size: int, begin: int, most: int, most_steps: int, owned: Any, limits: Any, links: Any, earliest: Any, work: Any
) -> tuple[int, int, int, int]:
    """List the words of every start from a place on: a status, where to go on, how many are complete, steps taken.

    `limits` are the last places that a start may reach. `earliest` is empty where there is no table. After `most_steps`
    steps in all the walk stops before the next start, as when it is FULL.
    """
    following, fits, moves, element, letter, target, final = links
    states, places, cursors, out_to, out_state, out_place = work
    count = 0
    total = 0
    taken = 0
    for start in range(begin, size):
        if not owned[start]:
            continue
        if taken > most_steps:
            return FULL, start, count, taken
        mark = count
        found = 0
        steps = 0
        limit = limits[start]
        depth = 0
        states[0] = 0
        cursors[0] = moves[0]
        while depth >= 0:
            move = cursors[depth]
            if move == moves[states[depth] + 1]:
                depth -= 1
                continue
            cursors[depth] = move + 1
            steps += 1
            if steps > most_steps:
                return TOO_LONG, start, mark, taken
            other = start if depth == 0 else following[element[move] * size + places[depth]]
            if other < 0 or other > limit or not fits[letter[move] * size + other]:
                continue
            state = target[move]
            if len(earliest) > 0 and earliest[state * size + other] > limit:
                continue
            depth += 1
            states[depth] = state
            places[depth] = other
            cursors[depth] = moves[state]
            if final[state]:
                found += 1
                if found > most:
                    return TOO_MANY, start, mark, taken
                if count == len(out_to) or total + depth > len(out_state):
                    return FULL, start, mark, taken
                for level in range(1, depth + 1):
                    out_state[total] = states[level]
                    out_place[total] = places[level]
                    total += 1
                out_to[count] = total
                count += 1
        taken += steps
    return DONE, size, count, taken


def first_links(  # noqa: PLR0915
    size: int, begin: int, skips: int, most_steps: int, owned: Any, goals: Any, links: Any, earliest: Any, work: Any
) -> tuple[int, int, int, int]:
    """Find the first word of every start in the order of R5: a status, where to go on, how many words, steps taken.

    A word is decided in three passes: forwards, the earliest places that lead to the goal, with all states at each;
    backwards, which of these states go on along these places; forwards, the variables that come first by name. With
    `skips`, starts up to the end of a word that was found are passed over.
    """
    following, fits, moves, element, letter, target, _, names = links
    seen, levels, held, places, out_to, out_state, out_place = work
    count = 0
    total = 0
    taken = 0
    stamp = 0
    for start in range(begin, size):
        goal = goals[start]
        if goal < 0 or not owned[start]:
            continue
        if skips and count > 0 and start <= out_place[total - 1]:
            continue
        if taken > most_steps or count == len(out_to):
            return FULL, start, count, taken
        # Forwards: the states of level d are held[levels[d]:levels[d + 1]].
        stamp += 1
        filled = 0
        for move in range(moves[0], moves[1]):
            if fits[letter[move] * size + start] and earliest[target[move] * size + start] == goal:
                held[filled] = target[move]
                filled += 1
        levels[0] = 0
        levels[1] = filled
        places[0] = start
        depth = 0
        while places[depth] != goal:
            nearest = goal
            for index in range(levels[depth], levels[depth + 1]):
                for move in range(moves[held[index]], moves[held[index] + 1]):
                    taken += 1
                    other = following[element[move] * size + places[depth]]
                    if other >= 0 and other < nearest and fits[letter[move] * size + other]:
                        if earliest[target[move] * size + other] == goal:
                            nearest = other
            stamp += 1
            for index in range(levels[depth], levels[depth + 1]):
                for move in range(moves[held[index]], moves[held[index] + 1]):
                    other = following[element[move] * size + places[depth]]
                    state = target[move]
                    if other == nearest and fits[letter[move] * size + other] and seen[state] != stamp:
                        if earliest[state * size + other] == goal:
                            seen[state] = stamp
                            held[filled] = state
                            filled += 1
            depth += 1
            places[depth] = nearest
            levels[depth + 1] = filled
        if total + depth + 1 > len(out_state):
            return FULL, start, count, taken
        # Backwards: states that do not go on along these places become −1.
        for level in range(depth - 1, -1, -1):
            stamp += 1
            for index in range(levels[level + 1], levels[level + 2]):
                if held[index] >= 0:
                    seen[held[index]] = stamp
            for index in range(levels[level], levels[level + 1]):
                goes_on = False
                for move in range(moves[held[index]], moves[held[index] + 1]):
                    other = following[element[move] * size + places[level]]
                    if other == places[level + 1] and fits[letter[move] * size + other]:
                        goes_on = goes_on or seen[target[move]] == stamp
                if not goes_on:
                    held[index] = -1
        # Forwards: of the states that follow the chosen ones, those whose variable comes first.
        for level in range(depth + 1):
            stamp += 1
            least = -1
            for index in range(levels[level], levels[level + 1]):
                state = held[index]
                if state < 0:
                    continue
                follows = level == 0
                if level > 0:
                    for before in range(levels[level - 1], levels[level]):
                        if held[before] >= 0:
                            for move in range(moves[held[before]], moves[held[before] + 1]):
                                if target[move] == state:
                                    other = following[element[move] * size + places[level - 1]]
                                    follows = follows or other == places[level]
                if not follows:
                    held[index] = -1
                elif least < 0 or names[state] < least:
                    least = names[state]
            for index in range(levels[level], levels[level + 1]):
                if held[index] >= 0 and names[held[index]] != least:
                    held[index] = -1
                elif held[index] >= 0:
                    out_state[total] = held[index]
            out_place[total] = places[level]
            total += 1
        out_to[count] = total
        count += 1
    return DONE, size, count, taken


HELPERS = {"fill_earliest": fill_earliest, "walk_links": walk_links, "first_links": first_links}
