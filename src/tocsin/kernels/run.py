"""Running the generated functions of a kernel: first the tables, then the pattern, some matches at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.algebra import nodes as alg
from tocsin.kernels import compile
from tocsin.kernels.lists import Lists, bounds
from tocsin.kernels.matches import COPIES, check_memory, picked, too_many_matches, too_many_steps
from tocsin.kernels.model import Bag, Integers, Mask, Matches, sums_before
from tocsin.kernels.search.context import Context, Setting
from tocsin.kernels.search.function import DOUBLES, function, value_name
from tocsin.kernels.search.helpers import DEEP, DONE, FULL, LEAST, TOO_LONG, TOO_MANY
from tocsin.kernels.search.program import Program, Table
from tocsin.optimizer.choose import MOST_MEMORY

# How many matches one call may give, and how long matches may be, at first.
ROOM, LITTLE_ROOM, LEAST_ROOM, DEPTH = 1 << 17, 1 << 8, 1 << 4, 1 << 6
# A plain call that turns out to be longer than this is begun again with the compiled function.
FEW_MATCHES, FEW_STEPS = 2_000, 100_000
# A start that finds nothing may still try exponentially many partial matches: these take a second or less.
MOST_STEPS, STEPS_PER_MATCH = 64_000_000, 64
# More than any search finds: what is not a match is not counted.
UNLIMITED = 1 << 62
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Found:
    """The outputs of one call by name, as far as they were filled."""

    arrays: Arrays
    count: int


@dataclass(frozen=True)
class Runner:
    """The functions of a program, and how to call them."""

    program: Program
    setting: Setting
    most: int
    jit: bool | None = None  # None: as the size of the task suggests
    memory: int = MOST_MEMORY

    def matches(self, lists: Lists, judge: Callable[[Matches], None] | None = None) -> Iterator[Matches]:
        """The matches that the loops find in all groups; events are given as rows.

        Where the loops cannot count matches, `judge` raises an error for too many: it is given those of a start that
        was not searched to its end. None: each that the loops find from a start counts.
        """
        arrays = dict(lists.arrays)
        for number, table in enumerate(self.program.tables):
            if number >= self.program.given:
                arrays |= self.table(number, table, lists, arrays)
        for main in self.program.mains:
            made = function(
                main,
                self.setting,
                self.program.tables,
                is_main=True,
                counts_first=judge is None and self.most < UNLIMITED,
            )
            judged = None if judge is None else lambda found: judge(self._as_matches(found, lists))
            for found in self._calls(made, lists, arrays, self.most if judge is None else UNLIMITED, judged):
                if found.count:
                    yield self._as_matches(found, lists)

    def _calls(
        self,
        made: Context,
        lists: Lists,
        arrays: Arrays,
        limit: int = UNLIMITED,
        unfinished: Callable[[Found], None] | None = None,
    ) -> Iterator[Found]:
        """Call a function until it has visited every group; `unfinished` is given what it found in part of a start."""
        needs = np.zeros(1 + len(made.bags), np.int64)
        given = [needs, arrays["own_low"], arrays["own_high"], *(arrays[name] for name in made.parameters)]
        given += [np.empty(len(arrays[like]) * width, np.int64) for like, width in made.works.values()]
        rows = sum(map(len, lists.rows.values()))
        call = compile.Call(made.text, rows, self.jit)
        most = (limit, max(MOST_STEPS, self.most * STEPS_PER_MATCH))
        few = (min(FEW_MATCHES, most[0]), min(FEW_STEPS, most[1]))
        allowed = few if call.rents else most
        much = min(ROOM, max(self.memory // (COPIES * 8 * len(made.outputs)), LEAST_ROOM))
        room = np.full(len(needs), min(LITTLE_ROOM, much) if call.is_plain else much)
        depth = DEPTH
        group, begin, status = 0, 0, -1
        while status != DONE:
            stacks = [np.empty(depth, np.int64) for _ in made.stacks]
            outputs = self._outputs(made, room)
            if unfinished is not None:
                outputs["out_group"].fill(-1)
            status, group, begin, count = call(lists.groups, group, begin, *allowed, *given, *stacks, *outputs.values())
            is_over = status in (TOO_MANY, TOO_LONG) and allowed[status == TOO_LONG] == most[status == TOO_LONG]
            if unfinished is not None and (is_over or (status == FULL and not count)):
                unfinished(_written(outputs))
            if is_over and status == TOO_MANY:
                raise too_many_matches(most[0], self.iterated, self.setting.policy)
            if is_over:
                raise too_many_steps(most[1], self.iterated)
            if call.buys(is_long=status in (TOO_MANY, TOO_LONG)):
                allowed, room = most, np.maximum(room, much)
            depth *= 2 if status == DEEP else 1
            if status == FULL and not count:
                # A start that was counted to its end needs so much; another one at least that.
                room = np.where(needs > room, needs if made.counts_first else 2 * np.maximum(room, needs), room)
            yield Found(outputs, count)

    def _outputs(self, made: Context, room: Integers) -> Arrays:
        """Arrays for what a call finds: for so many matches, and so many events of each bag."""
        rooms = dict.fromkeys(made.outputs, int(room[0]))
        for place, name in enumerate(made.bags, 1):
            rooms |= {f"out_{name}": int(room[place]), f"out_floor_{name}": int(room[place])}
        check_memory(8 * sum(rooms[name] for name in made.outputs), self.memory, self.iterated)
        return {
            name: np.empty(rooms[name], np.float64 if name.startswith(DOUBLES) else np.int64) for name in made.outputs
        }

    @cached_property
    def iterated(self) -> list[str]:
        """The variables that are iterated, for messages."""
        return _iterated(self.program)

    # --- tables -----------------------------------------------------------------------------------

    def table(self, number: int, table: Table, lists: Lists, arrays: Arrays, most: int = UNLIMITED) -> Arrays:
        """The rows of a table, of all its branches, sorted by group and start; at most so many from one event on."""
        name = f"t{number}"
        parts: list[Found] = []
        size = 0
        for search in table.branches:
            made = function(search, self.setting, self.program.tables, waiting=table.absences, is_main=False)
            for found in self._calls(made, lists, arrays, most):
                if found.count:
                    parts.append(_trimmed(found, made))
                    size += sum(array.nbytes for array in parts[-1].arrays.values())
                    check_memory(size, self.memory, self.iterated)
        counts = [found.count for found in parts]
        ends = [0, *accumulate(counts)]
        holders: dict[str, list[int]] = {}
        for place, found in enumerate(parts):
            for output in found.arrays:
                holders.setdefault(output, []).append(place)

        def column(output: str, missing: int) -> Integers:
            values = np.full(ends[-1], missing, np.int64)
            for place in holders.get(output, ()):
                values[ends[place] : ends[place + 1]] = parts[place].arrays[output][: counts[place]]
            return values

        group, start = column("out_group", 0), column("out_start", 0)
        order = np.lexsort((start, group))
        made_arrays: Arrays = {f"ts_{name}": start[order], f"end_{name}": column("out_end", 0)[order]}
        made_arrays |= bounds(name, group[order], np.arange(lists.groups))
        for absence in range(len(table.absences)):
            made_arrays[f"{name}_low{absence}"] = column(f"out_low{absence}", 0)[order]
            made_arrays[f"{name}_high{absence}"] = column(f"out_high{absence}", 0)[order]
            made_arrays[f"{name}_active{absence}"] = column(f"out_active{absence}", 0)[order].astype(np.bool_)
        for variable, kind in table.kinds.items():
            short = self.setting.numbers[variable]
            if not kind.iterated:
                made_arrays[f"{name}_{short}"] = column(f"out_{short}", -1)[order]
                made_arrays[f"{name}_floor_{short}"] = column(f"out_floor_{short}", 0)[order]
                continue
            bags = [_bag(found, short, f"out_{short}") for found in parts]
            offsets, where, rows = _joined(bags, counts, order)
            made_arrays |= {f"{name}_{short}_to": offsets, f"{name}_{short}": rows[where]}
            if self.setting.with_floors:
                floors = [_bag(found, short, f"out_floor_{short}") for found in parts]
                made_arrays[f"{name}_floor_{short}"] = _joined(floors, counts, order)[2][where]
        return made_arrays

    # --- results ----------------------------------------------------------------------------------

    def _as_matches(self, found: Found, lists: Lists) -> Matches:
        events: dict[str, Integers | Bag] = {}
        floors: dict[str, Integers | Bag] = {}
        bases = lists.bases[found.arrays["out_group"][: found.count]]
        for variable, kind in self.program.kinds.items():
            if variable in self.setting.hidden:
                continue
            short, rows = self.setting.numbers[variable], lists.rows[variable]
            if kind.iterated:
                offsets, indices = _bag(found, short, f"out_{short}")
                events[variable] = Bag(offsets, rows[indices])
                if self.setting.with_floors:
                    offsets, times = _bag(found, short, f"out_floor_{short}")
                    floors[variable] = Bag(offsets, _from_base(times, np.repeat(bases, np.diff(offsets))))
                continue
            nothing = np.full(found.count, -1)
            indices = found.arrays.get(f"out_{short}", nothing)[: found.count]
            padded = rows if len(rows) else np.full(1, -1)
            events[variable] = np.where(indices >= 0, padded[indices], -1)
            if self.setting.with_floors:
                floors[variable] = _from_base(found.arrays.get(f"out_floor_{short}", nothing)[: found.count], bases)
        start, end = (found.arrays[name][: found.count] + bases for name in ("out_start", "out_end"))
        return Matches(start, end, events, floors, values=tuple(self._values(found)))

    def _values(self, found: Found) -> Iterator[tuple[NDArray[Any], Mask]]:
        """Aggregates of bags in the result."""
        for number, test in enumerate(self.setting.asked):
            values = found.arrays[value_name(number, test.folds[0].kind)][: found.count]
            yield values, found.arrays[f"out_null{number}"][: found.count].astype(np.bool_)


def _trimmed(found: Found, made: Context) -> Found:
    """Copy outputs into arrays that are no longer than they are."""
    of_bags = {output for name in made.bags for output in (f"out_{name}", f"out_floor_{name}")}
    arrays = {name: array[: found.count] for name, array in found.arrays.items() if name not in of_bags}
    for name in made.bags:
        total = int(arrays[f"out_{name}_to"][-1]) if found.count else 0
        arrays |= {
            output: found.arrays[output][:total]
            for output in (f"out_{name}", f"out_floor_{name}")
            if output in found.arrays
        }
    return Found({name: array.copy() for name, array in arrays.items()}, found.count)


def _written(outputs: Arrays) -> Found:
    """The outputs of a call, also from a start that it has not searched to its end."""
    return Found(outputs, int(np.argmin(np.append(outputs["out_group"], -1))))


def _from_base(floors: Integers, bases: Integers) -> Integers:
    """Floors as times; one that is no time, because anything may come first, stays what it is."""
    return np.where(floors == LEAST, LEAST, floors + bases)


def _iterated(program: Program) -> list[str]:
    named: dict[str, None] = {}
    searches = [branch for table in program.tables for branch in table.branches]
    for search in [*searches, *program.mains]:
        for node in search.part.walk():
            if isinstance(node, alg.Repeat) and node.most != 1:
                part = node.part
                names = [part.variable] if isinstance(part, alg.Event) else list(getattr(part, "variables", ()))
                named |= dict.fromkeys(names)
    return list(named)


def _bag(found: Found, short: str, output: str) -> tuple[Integers, Integers]:
    """The offsets and elements of a bag; a variable that the branch does not have holds nothing."""
    if output not in found.arrays:
        return np.zeros(found.count + 1, np.int64), np.empty(0, np.int64)
    if f"out_{short}_to" not in found.arrays:  # one event in this branch, several in another
        values = found.arrays[output][: found.count]
        is_bound = found.arrays[f"out_{short}"][: found.count] >= 0
        return sums_before(is_bound), values[is_bound]
    ends = found.arrays[f"out_{short}_to"][: found.count]
    offsets = np.concatenate((np.zeros(1, np.int64), ends))
    return offsets, found.arrays[output][: offsets[-1]]


def _joined(
    bags: list[tuple[Integers, Integers]], counts: list[int], order: Integers
) -> tuple[Integers, Integers, Integers]:
    """Bags of several calls as one, in a new order: its offsets, where its elements were, and all elements."""
    sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(offsets) for offsets, _ in bags)])
    offsets = sums_before(sizes)
    elements = np.concatenate([np.empty(0, np.int64), *(rows for _, rows in bags)]).astype(np.int64, copy=False)
    new_offsets, where = picked(offsets, order)
    return new_offsets, where, elements
