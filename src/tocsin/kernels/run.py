"""Running the generated functions of a kernel: first the tables, then the pattern, some matches at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels import compile
from tocsin.kernels.lists import Lists, bounds
from tocsin.kernels.matches import COPIES, UNLIMITED, Limits, joined, taken
from tocsin.kernels.model import Bag, Integers, Matches, sums_before
from tocsin.kernels.search.context import Context, Setting
from tocsin.kernels.search.function import DOUBLES, function, value_name
from tocsin.kernels.search.helpers import DEEP, DONE, FULL, LEAST, TOO_LONG, TOO_MANY
from tocsin.kernels.search.program import Program, Table

# How many matches one call may give, and how long matches may be, at first.
ROOM, LITTLE_ROOM, LEAST_ROOM, DEPTH = 1 << 17, 1 << 8, 1 << 4, 1 << 6
# A plain call that turns out to be longer than this is begun again with the compiled function.
FEW_MATCHES, FEW_STEPS = 2_000, 100_000
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Found:
    """The outputs of one call by name, as far as they were filled."""

    arrays: Arrays
    count: int

    def column(self, name: str, missing: int) -> Integers:
        """A number of each match; `missing` where no match of this search has it."""
        found = self.arrays.get(f"out_{name}")
        return np.full(self.count, missing) if found is None else found[: self.count]

    def bag(self, variable: str, name: str) -> Bag:
        """Numbers of the events that a variable holds, which may be one event at most in this search."""
        ends = self.arrays.get(f"out_{variable}_to")
        if ends is None:
            is_bound = self.column(variable, -1) >= 0
            return Bag(sums_before(is_bound), self.column(name, -1)[is_bound])
        offsets = np.concatenate((np.zeros(1, np.int64), ends[: self.count]))
        return Bag(offsets, self.arrays[f"out_{name}"][: offsets[-1]])


@dataclass(frozen=True)
class Runner:
    """The functions of a program, and how to call them."""

    program: Program
    setting: Setting
    limits: Limits
    jit: bool | None = None  # None: as the size of the task suggests

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
            counts_first = judge is None and self.limits.most < UNLIMITED
            made = function(Context(main, self.setting, self.program.tables, counts_first=counts_first))
            judged = None if judge is None else lambda found: judge(self._as_matches(found, lists))
            for found in self._calls(made, lists, arrays, self.limits.most if judge is None else UNLIMITED, judged):
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
        most = (limit, self.limits.most_steps)
        few = (min(FEW_MATCHES, most[0]), min(FEW_STEPS, most[1]))
        allowed = few if call.rents else most
        much = min(ROOM, max(self.limits.memory // (COPIES * 8 * len(made.outputs)), LEAST_ROOM))
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
                # Also what was found from the start that is not searched to its end.
                unfinished(Found(outputs, int(np.argmin(np.append(outputs["out_group"], -1)))))
            if is_over and status == TOO_MANY:
                raise replace(self.limits, most=limit).too_many_matches()
            if is_over:
                raise self.limits.too_many_steps(most[1])
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
        self.limits.check_memory(8 * sum(rooms[name] for name in made.outputs))
        return {
            name: np.empty(rooms[name], np.float64 if name.startswith(DOUBLES) else np.int64) for name in made.outputs
        }

    # --- tables -----------------------------------------------------------------------------------

    def table(self, number: int, table: Table, lists: Lists, arrays: Arrays, most: int = UNLIMITED) -> Arrays:
        """The rows of a table, of all its branches, sorted by group and start; at most so many from one event on."""
        name = f"t{number}"
        # The rows of no call have all columns, too.
        parts = [self._rows_of(table, Found({}, 0))]
        size = 0
        for search in table.branches:
            made = function(Context(search, self.setting, self.program.tables, table.absences, is_main=False))
            for found in self._calls(made, lists, arrays, most):
                if found.count:
                    # A call has room for more than it finds.
                    parts.append({column: held.copy() for column, held in self._rows_of(table, found).items()})
                    size += sum(held.nbytes for held in parts[-1].values())
                    self.limits.check_memory(size)
        known: dict[str, Any] = joined(parts)
        rows: dict[str, Any] = taken(known, np.lexsort((known["start"], known["group"])))
        made_arrays: Arrays = bounds(name, rows.pop("group"), np.arange(lists.groups))
        made_arrays |= {f"ts_{name}": rows.pop("start"), f"end_{name}": rows.pop("end")}
        for column, held in rows.items():
            if isinstance(held, Bag):
                made_arrays |= {f"{name}_{column}_to": held.offsets, f"{name}_{column}": held.rows}
            else:
                made_arrays[f"{name}_{column}"] = held
        return made_arrays

    def _rows_of(self, table: Table, found: Found) -> dict[str, Integers | Bag]:
        """The columns of a table, of the rows that one call has found."""
        absences = range(len(table.absences))
        names = ["group", "start", "end", *(f"{what}{each}" for each in absences for what in ("low", "high", "active"))]
        columns: dict[str, Integers | Bag] = {name: found.column(name, 0) for name in names}
        for variable, kind in table.kinds.items():
            columns |= self._events(found, variable, is_bag=kind.iterated)
        return columns

    def _events(self, found: Found, variable: str, *, is_bag: bool) -> dict[str, Integers | Bag]:
        """The events that a variable holds, and their floors where these are asked for, as places in its list."""
        name = self.setting.numbers[variable]
        names = [name, f"floor_{name}"] if self.setting.with_floors else [name]
        return {each: found.bag(name, each) if is_bag else found.column(each, -1) for each in names}

    # --- results ----------------------------------------------------------------------------------

    def _as_matches(self, found: Found, lists: Lists) -> Matches:
        events: dict[str, Integers | Bag] = {}
        floors: dict[str, Integers | Bag] = {}
        bases = lists.bases[found.column("group", 0)]
        for variable, kind in self.program.kinds.items():
            if variable in self.setting.hidden:
                continue
            rows = lists.rows[variable]
            places, *others = self._events(found, variable, is_bag=kind.iterated).values()
            if isinstance(places, Bag):
                events[variable] = Bag(places.offsets, rows[places.rows])
            else:
                padded = rows if len(rows) else np.full(1, -1)
                events[variable] = np.where(places >= 0, padded[places], -1)
            for held in others:
                floors[variable] = (
                    Bag(held.offsets, _from_base(held.rows, np.repeat(bases, held.sizes)))
                    if isinstance(held, Bag)
                    else _from_base(held, bases)
                )
        start, end = (found.column(name, 0) + bases for name in ("start", "end"))
        values = tuple(
            (
                found.arrays[value_name(number, test.folds[0].kind)][: found.count],
                found.column(f"null{number}", 0).astype(np.bool_),
            )
            for number, test in enumerate(self.setting.asked)
        )
        return Matches(start, end, events, floors, values=values)


def _from_base(floors: Integers, bases: Integers) -> Integers:
    """Floors as times; one that is no time, because anything may come first, stays what it is."""
    return np.where(floors == LEAST, LEAST, floors + bases)
