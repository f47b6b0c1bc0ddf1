"""Count paths in blocks of time: every event is visited twice, however many matches there are.

A path that is not complete stands at a *stage*:

any         a state; it takes any later event, and stays where it is beside the paths it becomes
next        a state and the symbol it awaits; the first event of that symbol takes it away (R2)
contiguous  a state; the very next event takes it away, or ends it (R17)

Without a window one walk from the last event to the first is enough: row[p] describes all completions of a path at
stage p. With a window W the events of a group are cut into blocks no longer than W. A match that starts in a block is
complete before its end, the cut, or it stands there at some stage p and is completed soon enough behind it:

    total(s) = inside(s) + Σ_p at_cut(s, p) · completed(p, s + W − 1)

`inside` and `at_cut` come from the walk backwards through the block, `completed` from one forwards behind it. At an
instant both walks do the same, in opposite directions: for each *target*, a symbol and the state it leads to, they
gather the rows on one side, extend them by the event, and distribute the result to the rows on the other side. Row
`stages` stands for complete paths. Events of one instant never follow each other: all see the rows from before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tocsin.kernels.model import Integers
from tocsin.kernels.trends.machine import Machine
from tocsin.kernels.trends.semirings import add, collect, extend, fill, fits, join, room
from tocsin.language.ast import Selection

ANY, NEXT, CONTIGUOUS = 0, 1, 2

Array = Any


@dataclass(frozen=True)
class Stages:
    """The stages of a policy and the moves between them."""

    machine: Machine
    selection: Selection
    # The variables with conditions between neighbours; under `any` they are counted in chains.
    compared: Sequence[str] = ()

    @property
    def policy(self) -> int:
        """Its number in `search`."""
        return {Selection.ANY: ANY, Selection.NEXT: NEXT}.get(self.selection, CONTIGUOUS)

    @cached_property
    def stages(self) -> list[tuple[int, int]]:
        """(state, symbol it awaits), those that lead to many states first; −1 where a state awaits all symbols."""
        is_next = self.selection is Selection.NEXT
        found = {(state, symbol if is_next else -1) for state, symbol, _ in self.machine.moves if state}
        return sorted(found, key=lambda stage: (-self.machine.reach[stage[0]].bit_count(), stage))

    def tables(self) -> tuple[Any, ...]:
        """The arguments of `search` that depend on it."""
        moves = {(state, symbol): target for state, symbol, target in self.machine.moves}
        targets = sorted({(symbol, target) for _, symbol, target in self.machine.moves})
        inner: list[list[int]] = []
        movers: list[list[tuple[int, int]]] = []
        for symbol, target in targets:
            inner.append([number for number, (state, _) in enumerate(self.stages) if state == target])
            inner[-1] += [len(self.stages)] if target in self.machine.finals else []
            movers.append(
                [
                    (number, self._variable(state, symbol))
                    for number, (state, awaited) in enumerate(self.stages)
                    if awaited in (-1, symbol) and moves.get((state, symbol)) == target
                ]
            )
        own = [(number, variable) for each in movers for number, variable in each]
        reaches = [
            [one == other or self.machine.reach[one[0]] >> other[0] & 1 for other in self.stages] for one in self.stages
        ]
        # The first stage that a stage reaches; the last one that reaches it, and one more.
        firsts = [*(row.index(True) for row in reaches), len(self.stages)]
        lasts = [len(row) - row[::-1].index(True) for row in zip(*reaches, strict=True)]
        return (
            (self.policy, self.machine.first_symbols),
            _integers(awaited for _, awaited in self.stages),
            _integers(symbol for symbol, _ in targets),
            _integers(moves.get((0, symbol)) == target for symbol, target in targets),
            _integers(min(firsts[stage] for stage in each) for each in inner),
            _integers(max((lasts[stage] for stage, _ in each), default=0) for each in movers),
            (
                _offsets(inner),
                _integers(stage for each in inner for stage in each),
                _offsets(movers),
                _integers(stage for stage, _ in own),
                _integers(variable for _, variable in own),
            ),
        )

    def _variable(self, state: int, symbol: int) -> int:
        """The number of the variable whose conditions compare an event with the last one of a path, or −1."""
        variable = self.machine.symbols[symbol][0]
        is_compared = variable in self.compared and variable == self.machine.variable(state)
        return list(self.compared).index(variable) if is_compared else -1


def _integers(values: Any) -> Integers:
    return np.array(list(values), np.int64)


def _offsets(lists: Sequence[Sequence[Any]]) -> Integers:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64)


def search(  # noqa: PLR0915 - a call for each step would cost more than the step
    given: Array, window: int, numbers: Array, follows: Array, most_starts: int, tables: Array, *columns: Array
) -> int:
    """To the results `o` by label add the paths of all groups; see `extend` for `weights` and `fields`.

    `head` has the modulus of every place of a row, then −1/m modulo 2³² and the number 1 for each of the `width`
    moduli. `follows` is whether each event is the very next one after the one before it, and later. A block has at most
    `most_starts` starts. `first_symbols` are those that paths begin with, as bits. Every stage `awaits` a symbol. For
    every target, `taken` is its symbol, `begins` whether paths begin with it, `skipped` the first stage at a cut that
    its paths may come to, `reached` the number of those they come from; `inner` are the stages of its state, `movers`
    the stages that move to it. For every mover, `variables` is the number of the variable that compares neighbours, or
    −1.
    """
    group_from, group_to, own_low, own_high, ts, symbols, labels, weights, fields = given
    head, width, o = numbers
    (policy, first_symbols), awaits, taken, begins, skipped, reached, of_moves = tables
    inner_from, inner, movers_from, movers, variables = of_moves
    size, stages, targets = 1 + len(fields) // 2, len(awaits), len(taken)
    unit = size * width
    complete = stages * unit if window > 0 else 0  # behind the stages at the cut
    wide = complete + unit
    # Behind the head: what is gathered, the same with an event more, and that by target; the rows; starts.
    shape, ones, gather = (size, width, wide), wide + width, len(head)
    single = gather + wide
    pool = single + wide
    rows = pool + targets * wide
    starts = rows + (stages + 1) * wide
    n = room(starts + most_starts * wide, head)
    started, is_pooled = np.zeros(most_starts, np.int64), np.zeros(targets, np.int64)
    for g in range(len(group_from)):
        first, end = group_from[g], group_to[g]
        while first < end and ts[first] < own_low[g]:
            first += 1
        while first < end and ts[first] <= own_high[g]:
            # The block: events from `first` to `cut` − 1.
            cut, many = end, 0
            if window > 0:
                cut = first
                while cut < end and ts[cut] - ts[first] < window:
                    last = cut
                    while last < end and ts[last] == ts[cut]:
                        if symbols[last] & first_symbols:
                            many += 1
                        last += 1
                    if cut > first and many > most_starts:
                        break
                    cut = last
            found = 0
            for phase in range(2 if window > 0 else 1):
                fill(n, rows, (stages + 1) * wide)
                for place in range(width):
                    if phase == 0:
                        n[rows + stages * wide + complete + place] = n[ones + place]
                    for stage in range(stages if window > 0 else 0):
                        n[rows + stage * wide + stage * unit + place] = n[ones + place]
                cursor = cut
                while True:
                    # The instant: events from `begin` to `last` − 1.
                    if phase == 0:
                        if cursor == first:
                            break
                        last, begin = cursor, cursor - 1
                        while policy != CONTIGUOUS and begin > first and ts[begin - 1] == ts[begin]:
                            begin -= 1
                        cursor = begin
                    else:
                        while found > 0 and (cursor == end or ts[cursor] - ts[started[found - 1]] >= window):
                            found -= 1
                            at, of = labels[started[found]] * unit, starts + found * wide
                            collect(o, at, n, of + complete, unit)
                            for shift in range(0, stages * unit, unit):
                                join(o, at, n, of + shift, rows + stages * wide + shift, shape)
                        if found == 0:
                            break
                        begin, last = cursor, cursor + 1
                        while policy != CONTIGUOUS and last < end and ts[last] == ts[begin]:
                            last += 1
                        cursor = last
                    bits = 0
                    for event in range(begin, last):
                        bits |= symbols[event]
                    if bits == 0 and policy != CONTIGUOUS:
                        continue
                    earlier = found
                    if phase == 0 and bits & first_symbols and ts[begin] <= own_high[g]:
                        for event in range(last - 1, begin - 1, -1):
                            if symbols[event] & first_symbols:
                                started[found] = event
                                fill(n, starts + found * wide, wide)
                                found += 1
                    for target in range(targets):
                        symbol = taken[target]
                        is_pooled[target] = 0
                        if (bits >> symbol) & 1 == 0:
                            continue
                        is_start = begins[target] and found > earlier
                        is_taken = movers_from[target] < movers_from[target + 1]
                        is_taken = is_taken and (policy != CONTIGUOUS or follows[begin])
                        if not is_start and not is_taken:
                            continue
                        low, high = inner_from[target], inner_from[target + 1]
                        skip = skipped[target] * unit if window > 0 else 0
                        span = wide - skip
                        if phase == 1:
                            low, high = movers_from[target], movers_from[target + 1]
                            skip, span = 0, reached[target] * unit
                        gathered = gather
                        if high - low == 1 and (phase == 0 or variables[low] < 0):
                            gathered = rows + (inner[low] if phase == 0 else movers[low]) * wide + skip
                        else:
                            fill(n, gather, span)
                            for row in range(low, high):
                                if phase == 0:
                                    add(n, gather, rows + inner[row] * wide + skip, span)
                                elif variables[row] < 0 or fits(variables[row], begin - 1, begin, *columns):
                                    add(n, gather, rows + movers[row] * wide, span)
                        sums = span // unit
                        for event in range(begin, last):
                            if (symbols[event] >> symbol) & 1 == 0:
                                continue
                            is_added = is_taken and (policy == ANY or is_pooled[target] == 0)
                            if not is_start and not is_added:
                                continue
                            slot = earlier
                            while is_start and started[slot] != event:
                                slot += 1
                            start = starts + slot * wide + skip
                            at = single if is_pooled[target] or not is_added else pool + target * wide
                            if not is_added and symbols[event] & first_symbols == 1 << symbol:
                                at = start
                            extend(n, at, gathered, sums, event, symbol, weights, fields, shape)
                            if is_added and at == single:
                                add(n, pool + target * wide, single, span)
                            elif is_added:
                                is_pooled[target] = 1
                            if is_start and at != start:
                                add(n, start, at, span)
                    if policy == CONTIGUOUS:
                        fill(n, rows, stages * wide)
                    for stage in range(stages if policy == NEXT else 0):
                        if (bits >> awaits[stage]) & 1:
                            fill(n, rows + stage * wide, wide)
                    for target in range(targets):
                        if is_pooled[target] == 0:
                            continue
                        of = pool + target * wide
                        if phase == 1:
                            for row in range(inner_from[target], inner_from[target + 1]):
                                add(n, rows + inner[row] * wide, of, reached[target] * unit)
                            continue
                        skip = skipped[target] * unit if window > 0 else 0
                        for row in range(movers_from[target], movers_from[target + 1]):
                            if variables[row] < 0 or fits(variables[row], begin - 1, begin, *columns):
                                add(n, rows + movers[row] * wide + skip, of, wide - skip)
                    while window == 0 and found > 0:
                        found -= 1
                        collect(o, labels[started[found]] * unit, n, starts + found * wide, unit)
            first = cut
    return 0
