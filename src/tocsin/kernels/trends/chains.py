"""Counting under `any` where neighbours of an iteration are compared: one walk backwards for many starts at once.

What a word leads to depends on its last event, once it stands in a state of a compared variable:

    leads(q, e) = [q is final] + free(q) + Σ x(e') · leads(q', e')    over the later e' that may be neighbours of e

code        theory
----        ------
free        for a state, Σ x(e') · leads(q', e') over its moves to events that need not be neighbours of the last one
node        the same for moves to neighbours: for one e', or for some of them, added up in a tree (below)
lane        a start of its own: with a window the end of a match depends on its start

*Lanes.* A block is some starts and the events up to the end of the last one's window. Every number is there once for
each start, side by side, so that one instruction of the processor adds several of them. At an event those lanes are at
work whose start is earlier and whose window reaches it, which lie side by side too. Without a window there is one lane.

*Trees.* Where the condition is one comparison of numbers, the events that may follow e are those with the least places
in some order: a Fenwick tree adds them up in logarithmic time. Otherwise each later event is tried.

A number is `room` digits of 32 bits in 64, the lowest first. What is added to others has been carried, so that sums
need no carry until they are used. The functions here are compiled; `arrays` makes what they are given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

DIGIT = 32
MASK = 0xFFFFFFFF
FINE, NO_ROOM, TOO_LARGE = 0, 1, 2
MOST_NUMBERS = 1 << 27  # of eight bytes, in one block

Array = Any


def accumulate(n: Array, to: int, of: int, size: int, room: int, used: int, lanes: int, low: int, high: int) -> None:
    """To a sum add another one, in the lanes from `low` to `high` − 1."""
    for number in range(size):
        if lanes == 1:
            into, source = np.uint64(to + number * room), np.uint64(of + number * room)
            for place in range(np.uint64(used)):
                n[into + place] += n[source + place]
            continue
        for digit in range(used):
            shift = (number * room + digit) * lanes + low
            into, source = np.uint64(to + shift), np.uint64(of + shift)
            for lane in range(np.uint64(high - low)):
                n[into + lane] += n[source + lane]


def carry(n: Array, at: int, room: int, used: int, lanes: int, low: int, high: int) -> int:
    """Make the digits of a number have 32 bits; gives how many may be used then, more than `room` where it has none."""
    digit = 0
    while digit < used:
        first = np.uint64(at + digit * lanes + low)
        above = np.uint64(at + digit * lanes + lanes + low)
        if digit + 1 < used:
            for lane in range(np.uint64(high - low)):
                n[above + lane] += n[first + lane] >> DIGIT
                n[first + lane] &= MASK
        else:
            over = 0
            for lane in range(np.uint64(high - low)):
                over |= n[first + lane] >> DIGIT
            if over != 0:
                if used == room:
                    return room + 1
                used += 1
                for lane in range(np.uint64(high - low)):
                    n[above + lane] = n[first + lane] >> DIGIT
                    n[first + lane] &= MASK
        digit += 1
    return used


def with_event(
    n: Array,
    at: int,
    event: int,
    letter: int,
    room: int,
    used: int,
    lanes: int,
    low: int,
    high: int,
    weights: Array,
    weighed: Array,
    weight_digits: int,
    events: int,
) -> int:
    """Carry a sum and put an event before all of its words; gives the digits used, more than `room` if it has none."""
    used = carry(n, at, room, used, lanes, low, high)
    for number in range(1, 1 + len(weighed)):
        total = at + number * room * lanes
        if used <= room and (weighed[number - 1] >> letter) & 1:
            counted = used
            for place in range(weight_digits):
                weight = weights[((number - 1) * events + event) * weight_digits + place]
                if weight == 0:
                    continue
                if weight == 1 and place == 0:
                    for digit in range(counted):
                        for lane in range(low, high):
                            n[total + digit * lanes + lane] += n[at + digit * lanes + lane]
                    continue
                if counted + place >= room:
                    return room + 1
                used = max(used, counted + place + 1)
                for digit in range(counted):
                    for lane in range(low, high):
                        # Both have 32 bits: the product may need the sign.
                        product = np.uint64(weight) * np.uint64(n[at + digit * lanes + lane])
                        into = total + (digit + place) * lanes + lane
                        n[into] += np.int64(product & np.uint64(MASK))
                        n[into + lanes] += np.int64(product >> np.uint64(DIGIT))
        if used <= room:
            used = carry(n, total, room, used, lanes, low, high)
    return used


def search(  # noqa: PLR0915 - a call for each step would cost more than the step
    group_from: Array,
    group_to: Array,
    own_low: Array,
    own_high: Array,
    ts: Array,
    letters: Array,
    labels: Array,
    weights: Array,
    weighed: Array,
    weight_digits: int,
    window: int,
    moves: Array,
    targets: Array,
    finals: Array,
    compared: Array,
    trees: Array,
    asks: Array,
    gives: Array,
    is_tree: bool,
    lanes: int,
    room: int,
    o: Array,
    *columns: Array,
) -> int:
    """To the results by label add the words of all groups.

    Parameters
    ----------
    moves
        State, next state, and whether the conditions between neighbours are asked; not those from the start.
    targets
        Letter, the state it leads to, whether words begin so, and whether other words come there.
    finals, compared
        For every state whether it is final, and the number of its variable if that one is compared, or else −1.
    trees
        For every state, if neighbours lead there, a number of its own, or else −1.
    asks, gives
        For every compared variable and event: with a tree, an event may follow e that gives a number below what e asks.
        −1: it follows nobody.
    """
    size, events, states = 1 + len(weighed), len(ts), len(finals)
    unit = size * room * lanes
    first_letters = 0
    for row in range(len(targets)):
        if targets[row, 2]:
            first_letters |= 1 << targets[row, 0]
    starts = np.zeros(lanes, np.int64)
    for g in range(len(group_from)):
        first, end = group_from[g], group_to[g]
        while first < end and ts[first] < own_low[g]:
            first += 1
        while first < end and ts[first] <= own_high[g]:
            # The block: its starts, and the events from `first` to `last` − 1.
            many, last, cursor = 0, end, first
            if window > 0:
                while cursor < end and ts[cursor] <= own_high[g] and many < lanes:
                    if letters[cursor] & first_letters:
                        starts[many] = cursor
                        many += 1
                    cursor += 1
                if many == 0:
                    break
                first = starts[0]
                last = starts[many - 1] + 1
                while last < end and ts[last] - ts[starts[many - 1]] < window:
                    last += 1
            else:
                cursor = end
            slots, largest, begin = 0, 0, first
            for event in range(first, last):
                if event > first and ts[event] != ts[event - 1]:
                    begin = event
                largest = max(largest, event + 1 - begin)
                for row in range(len(targets)):
                    if (letters[event] >> targets[row, 0]) & 1 and compared[targets[row, 1]] >= 0:
                        slots += 1
                        break
            # Sums: one to work with, what is made of an instant, `free` by state, nodes by state and slot.
            free = (1 + largest * len(targets)) * unit
            nodes = free + states * unit
            whole = nodes + (1 + trees.max()) * (slots + 1) * unit
            if whole > MOST_NUMBERS:
                return TOO_LARGE
            n = np.zeros(whole, np.int64)
            made = np.zeros((largest * len(targets), 4), np.int64)
            order = np.zeros((len(asks), slots), np.int64)
            if is_tree:
                for variable in range(len(asks)):
                    slot = 0
                    for event in range(first, last):
                        for row in range(len(targets)):
                            if (letters[event] >> targets[row, 0]) & 1 and compared[targets[row, 1]] >= 0:
                                order[variable, slot] = gives[variable, event]
                                slot += 1
                                break
                    order[variable] = np.sort(order[variable])
            held = np.zeros((states, slots), np.int64)  # without a tree: the events of nodes
            holds = np.zeros(states, np.int64)
            used, low, high, end_of_instant = 1, many, many, last
            while end_of_instant > first:
                begin = end_of_instant - 1
                while begin > first and ts[begin - 1] == ts[begin]:
                    begin -= 1
                if window > 0:
                    while high > 0 and ts[starts[high - 1]] >= ts[begin]:
                        high -= 1
                    while low > 0 and ts[begin] - ts[starts[low - 1]] < window:
                        low -= 1
                else:
                    low, high = 0, 1
                makes = 0
                for event in range(begin, end_of_instant):
                    for row in range(len(targets)):
                        letter, state = targets[row, 0], targets[row, 1]
                        if (letters[event] >> letter) & 1 == 0:
                            continue
                        for turn in range(2):
                            # First the lanes of earlier starts, then that of the event itself.
                            from_lane, to_lane, at = low, high, 0
                            if turn == 0:
                                if targets[row, 3] == 0 or high <= low:
                                    continue
                                makes += 1
                                at = makes * unit
                                for place in range(at, at + unit):
                                    n[place] = 0
                            else:
                                if targets[row, 2] == 0 or ts[event] > own_high[g]:
                                    continue
                                if window > 0:
                                    from_lane = high
                                    while from_lane < many and starts[from_lane] != event:
                                        from_lane += 1
                                    if from_lane == many:
                                        continue
                                    to_lane = from_lane + 1
                                for place in range(unit):
                                    n[place] = 0
                            accumulate(n, at, free + state * unit, size, room, used, lanes, from_lane, to_lane)
                            if finals[state]:
                                for lane in range(from_lane, to_lane):
                                    n[at + lane] += 1
                            variable = compared[state]
                            if variable >= 0:
                                for move in range(len(moves)):
                                    if moves[move, 0] != state or moves[move, 2] == 0:
                                        continue
                                    base = nodes + trees[moves[move, 1]] * (slots + 1) * unit
                                    if is_tree:
                                        node = np.searchsorted(order[variable], asks[variable, event])
                                        while node > 0:
                                            accumulate(
                                                n, at, base + node * unit, size, room, used, lanes, from_lane, to_lane
                                            )
                                            node &= node - 1
                                        continue
                                    for slot in range(holds[moves[move, 1]] - 1, -1, -1):
                                        other = held[moves[move, 1], slot]
                                        if window > 0 and ts[other] - ts[starts[to_lane - 1]] >= window:
                                            break
                                        if fits(variable, event, other, *columns):
                                            accumulate(
                                                n, at, base + slot * unit, size, room, used, lanes, from_lane, to_lane
                                            )
                            used = with_event(
                                n,
                                at,
                                event,
                                letter,
                                room,
                                used,
                                lanes,
                                from_lane,
                                to_lane,
                                weights,
                                weighed,
                                weight_digits,
                                events,
                            )
                            if used > room:
                                return NO_ROOM
                            if turn == 0:
                                made[makes - 1, 0], made[makes - 1, 1] = event, state
                            else:
                                for number in range(size):
                                    for digit in range(used):
                                        value = n[at + (number * room + digit) * lanes + from_lane]
                                        o[(labels[event] * size + number) * room + digit] += value
                for number in range(makes):
                    event, state, of = made[number, 0], made[number, 1], (1 + number) * unit
                    is_neighbour = False
                    for move in range(len(moves)):
                        if moves[move, 1] != state:
                            continue
                        if moves[move, 2]:
                            is_neighbour = True
                        else:
                            accumulate(n, free + moves[move, 0] * unit, of, size, room, used, lanes, low, high)
                    if not is_neighbour:
                        continue
                    base = nodes + trees[state] * (slots + 1) * unit
                    if is_tree:
                        variable = compared[state]
                        if gives[variable, event] >= 0:
                            node = np.searchsorted(order[variable], gives[variable, event]) + 1
                            while node <= slots:
                                accumulate(n, base + node * unit, of, size, room, used, lanes, low, high)
                                node += node & -node
                    else:
                        held[state, holds[state]] = event
                        accumulate(n, base + holds[state] * unit, of, size, room, used, lanes, low, high)
                        holds[state] += 1
                end_of_instant = begin
            first = cursor
    return FINE


FUNCTIONS = (accumulate, carry, with_event)  # `search` calls what is written for each query


def fits(variable: int, one: int, other: int, *columns: Array) -> bool:
    """Whether two events may be neighbours; written anew for each query (`pairs`)."""
    raise NotImplementedError
