"""Count paths under `any` where neighbours of an iteration are compared: one walk backwards for many starts at once.

The completions of a path depend on its last event, once it stands in a state of a compared variable:

    leads(q, e) = [q is final] + free(q) + Σ x(e') · leads(q', e')    over the later e' that may be neighbours of e

code        theory
----        ------
free        for a state, Σ x(e') · leads(q', e') over its moves to events that need not be neighbours of the last one
node        the sum over moves to neighbours: for one e', or for some of them, added up in a tree (below)
lane        a start of its own: with a window the end of a match depends on its start

*Lanes.* A block is some starts and the events up to the end of the last one's window. Every sum is there once for each
start, side by side, so that one instruction of the processor adds several of them. At an event those lanes are at work
whose start is earlier and whose window reaches it, which lie side by side too. Without a window there is one lane.

*Trees.* Where the condition is one comparison of numbers, the events that may follow e are those with the least places
in some order: a Fenwick tree adds them up in logarithmic time. Otherwise each later event is tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels.compile import Writer
from tocsin.kernels.expressions.leaves import SlotRef, Test
from tocsin.kernels.model import Held, Integers, Rows
from tocsin.kernels.search.conditions import Candidate, Checks, Columns
from tocsin.kernels.search.state import Many
from tocsin.kernels.trends.blocks import Stages
from tocsin.kernels.trends.semirings import add, collect, extend, fill, fits, plus, room
from tocsin.language import expressions as ex

FINE, TOO_LARGE = 0, 1

Array = Any


def tables(stages: Stages, compared: Sequence[str]) -> tuple[Any, ...]:
    """The arguments of `search` that depend on the pattern."""
    machine = stages.machine
    states = range(len(machine.entered))
    variables = [machine.variable(state) for state in states]
    moves = [
        (state, target, variables[state] in compared and variables[state] == variables[target])
        for state, _, target in machine.moves
        if state
    ]
    targets = [
        (symbol, target, (0, symbol, target) in machine.moves, any(target == each for _, each, _ in moves))
        for symbol, target in sorted({(symbol, target) for _, symbol, target in machine.moves})
    ]
    ends = dict.fromkeys(target for _, target, is_neighbour in moves if is_neighbour)
    return (
        machine.first_symbols,
        *np.array(moves, np.int64).reshape(-1, 3).T.copy(),
        *np.array(targets, np.int64).reshape(-1, 4).T.copy(),
        np.array([state in machine.finals for state in states]),
        np.array([_number(compared, variable) for variable in variables], np.int64),
        np.array([_number(list(ends), state) for state in states], np.int64),
    )


def _number(known: Sequence[Any], one: Any) -> int:
    return known.index(one) if one in known else -1


def search(  # noqa: PLR0915 - a call for each step would cost more than the step
    given: Array, window: int, numbers: Array, orders: Array, limits: Array, peak: Array, tables: Array, *columns: Array
) -> int:
    """To the results by label add the paths of all groups; the first three are those of `blocks.search`.

    For every compared variable and event, with a tree, an event may follow e that `gives` a number below what e `asks`;
    −1 follows nobody. A block has so many `lanes`, one for each start, and may need `most` numbers; with more the
    status is TOO_LARGE. `peak` becomes the largest number of a start, and the sum of these of all. `first_symbols` are
    those that paths begin with, as bits. Moves, but for those from the start, lead from `sources` to `ends`;
    `are_neighbours` is whether conditions compare their event with the last one. For every target, `taken` and
    `reached` are its symbol and state, `begins` is whether paths begin with it, `is_later` whether other paths come
    there. For every state, `finals` is whether it is final, `compared` the number of its variable if that one is
    compared, `trees` a number of its own if neighbours lead there; otherwise these are −1.
    """
    group_from, group_to, own_low, own_high, ts, symbols, labels, weights, fields = given
    head, width, o = numbers
    asks, gives, is_tree = orders
    lanes, most = limits
    first_symbols, sources, ends, are_neighbours, taken, reached, begins, is_later, finals, compared, trees = tables
    size, events, states, targets = 1 + len(fields) // 2, len(ts), len(finals), len(taken)
    unit = size * width
    wide = lanes * unit
    shape, ones, gather = (size, width, wide), wide + width, len(head)
    variables, nodes_of = len(asks) // max(events, 1), int(np.max(trees)) + 1
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
                    if symbols[cursor] & first_symbols:
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
            is_slot = np.zeros(last - first, np.int64)
            for event in range(first, last):
                if event > first and ts[event] != ts[event - 1]:
                    begin = event
                largest = max(largest, event + 1 - begin)
                for target in range(targets):
                    if (symbols[event] >> taken[target]) & 1 and compared[reached[target]] >= 0:
                        is_slot[event - first] = 1
                slots += is_slot[event - first]
            # Behind the head: gathered, extended, made of an instant, `free` by state, nodes by state and slot.
            single = gather + wide
            free = single + (1 + largest * targets) * wide
            nodes = free + states * wide
            whole = nodes + nodes_of * (slots + 1) * wide
            if whole > most:
                return TOO_LARGE
            n = room(whole, head)
            made = np.zeros(2 * largest * targets, np.int64)
            order = np.zeros(variables * slots, np.int64)
            for variable in range(variables if is_tree else 0):
                slot = variable * slots
                for event in range(first, last):
                    if is_slot[event - first]:
                        order[slot] = gives[variable * events + event]
                        slot += 1
                order[variable * slots : slot] = np.sort(order[variable * slots : slot])
            held = np.zeros(states * slots, np.int64)  # without a tree: the events of nodes
            holds = np.zeros(states, np.int64)
            low, high, end_of_instant = many, many, last
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
                    for target in range(targets):
                        symbol, state = taken[target], reached[target]
                        if (symbols[event] >> symbol) & 1 == 0:
                            continue
                        for turn in range(2):
                            # First the lanes of earlier starts, then that of the event itself.
                            from_lane, to_lane, into = low, high, single
                            if turn == 0:
                                if is_later[target] == 0 or high <= low:
                                    continue
                                made[2 * makes], made[2 * makes + 1] = event, state
                                makes += 1
                                into = single + makes * wide
                            else:
                                if begins[target] == 0 or ts[event] > own_high[g]:
                                    continue
                                if window > 0:
                                    from_lane = high
                                    while from_lane < many and starts[from_lane] != event:
                                        from_lane += 1
                                    if from_lane == many:
                                        continue
                                    to_lane = from_lane + 1
                            at, length = from_lane * unit, (to_lane - from_lane) * unit
                            fill(n, gather + at, length)
                            add(n, gather + at, free + state * wide + at, length)
                            for lane in range(from_lane, to_lane if finals[state] else from_lane):
                                add(n, gather + lane * unit, ones, width)
                            variable = compared[state]
                            for move in range(len(sources) if variable >= 0 else 0):
                                if sources[move] != state or are_neighbours[move] == 0:
                                    continue
                                base = nodes + trees[ends[move]] * (slots + 1) * wide + at
                                if is_tree:
                                    own = order[variable * slots : variable * slots + slots]
                                    node = np.searchsorted(own, asks[variable * events + event])
                                    while node > 0:
                                        add(n, gather + at, base + node * wide, length)
                                        node &= node - 1
                                    continue
                                for slot in range(holds[ends[move]] - 1, -1, -1):
                                    other = held[ends[move] * slots + slot]
                                    if window > 0 and ts[other] - ts[starts[to_lane - 1]] >= window:
                                        break
                                    if fits(variable, event, other, *columns):
                                        add(n, gather + at, base + slot * wide, length)
                            sums = to_lane - from_lane
                            extend(n, into + at, gather + at, sums, event, symbol, weights, fields, shape)
                            if turn == 1:
                                collect(o, labels[event] * unit, n, into + at, unit)
                                largest_number = n[into + at]
                                for place in range(into + at, into + at + unit, width):
                                    largest_number = max(largest_number, n[place])
                                peak[0] = max(peak[0], largest_number)
                                peak[1] = plus(peak[1], largest_number, n[0])
                for number in range(makes):
                    event, state, of = made[2 * number], made[2 * number + 1], single + (1 + number) * wide + low * unit
                    length, is_neighbour = (high - low) * unit, False
                    for move in range(len(sources)):
                        if ends[move] != state:
                            continue
                        if are_neighbours[move]:
                            is_neighbour = True
                        else:
                            add(n, free + sources[move] * wide + low * unit, of, length)
                    if not is_neighbour:
                        continue
                    base = nodes + trees[state] * (slots + 1) * wide + low * unit
                    if is_tree:
                        variable = compared[state]
                        given = gives[variable * events + event]
                        if given >= 0:
                            node = np.searchsorted(order[variable * slots : variable * slots + slots], given) + 1
                            while node <= slots:
                                add(n, base + node * wide, of, length)
                                node += node & -node
                    else:
                        held[state * slots + holds[state]] = event
                        add(n, base + holds[state] * wide, of, length)
                        holds[state] += 1
                end_of_instant = begin
            first = cursor
    return FINE


Tests = Mapping[str, tuple[Test, ...]]
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Conditions:
    """The conditions between neighbours, by variable, and the events they compare."""

    tests: Tests
    columns: Columns  # where the values they compare are
    # The rows of a task, and the row of each event.
    rows: Rows
    chosen: Integers

    def compiled(self) -> tuple[str, list[NDArray[Any]]]:
        """The text of a function of the number of a variable and two events, and the arrays it needs beside them."""
        writer, names = Writer(), dict[str, None]()
        checks = Checks(writer, self.columns, names)
        writer.depth = 1
        writer.line("pair = (one,)")
        for number, (variable, some) in enumerate(self.tests.items()):
            with writer.block(f"if variable == {number}:"):
                held = {variable: Many("pair", "0", "1")}
                conditions = [checks.check(test, held, Candidate(variable, "other", "1")) for test in some]
                writer.line(f"return {' and '.join(filter(None, conditions)) or 'True'}")
        writer.line("return True")
        header = f"@compiled\ndef fits({', '.join(['variable', 'one', 'other', *names])}):\n"
        return header + writer.text, [self._array(name) for name in names]

    def _array(self, name: str) -> NDArray[Any]:
        """The array that a parameter names: the values of a carried column, or which of them are NULL."""
        kind, _, column = name.rsplit("_", 2)
        values, nulls = _column(self.rows.columns[int(column)], self.chosen)
        return values if kind == "c" else nulls

    def orders(self) -> tuple[Integers, Integers] | None:
        """The numbers that events ask and give, by variable: one may follow another that asks for more than it gives.

        None where conditions are more than one comparison of two numbers. What gives −1 follows nobody.
        """
        found = []
        for variable, some in self.tests.items():
            comparison = _comparison(some)
            if comparison is None:
                return None
            op, later, earlier = comparison
            (values, nulls), (limits, no_limit) = (
                _column(self.rows.columns[self.columns.places[variable, each.slot.expression]], self.chosen)
                for each in (later, earlier)
            )
            known = np.unique(values)
            gives = np.searchsorted(known, values)
            is_above = op[0] == ">"
            asks = np.searchsorted(known, limits, "right" if ("=" in op) != is_above else "left")
            if is_above:
                asks, gives = len(known) - asks, len(known) - 1 - gives
            found.append((np.where(no_limit, 0, asks), np.where(nulls, -1, gives)))
        asked, given = zip(*found, strict=True)
        return np.concatenate(asked).astype(np.int64), np.concatenate(given).astype(np.int64)


def _comparison(tests: Sequence[Test]) -> tuple[str, SlotRef, SlotRef] | None:
    """How the later event is compared with the one before it."""
    match [test.tree for test in tests]:
        case [ex.Comparison(op=op, left=SlotRef() as left, right=SlotRef() as right)] if op in MIRRORED:
            if left.slot.held is not right.slot.held or left.slot.held is Held.BOOLEAN:
                return None
            is_later = (ex.offset_of(left.index) or 0) > (ex.offset_of(right.index) or 0)
            return (op, left, right) if is_later else (MIRRORED[op], right, left)
        case _:
            return None


def _column(column: tuple[NDArray[Any], Any], chosen: Integers) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    values, nulls = column
    return values[chosen], np.zeros(len(chosen), np.bool_) if nulls is None else nulls[chosen]
