"""Run searches on the rows of a task: batches of events in, batches of matches out.

Input    the rows of a task as Arrow batches; matches of earlier strata among them are passed on
Output   batches of matches, or what else the members of the task write: totals, graphs

A task has one or more members, each a search with the layout of its rows. Members that split rows alike form a group:
its rows are read, sorted and split once. A pattern is a task of one member and writes columns of its own; where several
searches share a result, each variable has a place in it (`places`).

Tasks are pickled and sent to workers. Nothing here imports Spark or the planner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from tocsin import errors
from tocsin.engines.worker.arrays import nulls_of, of_ids, of_numbers
from tocsin.engines.worker.arrow_types import completed
from tocsin.engines.worker.digests import IdDigests, MadeDigests, names_of
from tocsin.engines.worker.gather import Gatherer, portions
from tocsin.engines.worker.process import settle
from tocsin.engines.worker.rows import NullableArray, array_of, column_of, integers, kinds_of, shared_rows
from tocsin.kernels.compile import warm
from tocsin.kernels.hashes import Digests, Gatherable, Identity
from tocsin.kernels.model import Matches, Rows, Source
from tocsin.kernels.nested_loops import Kernel
from tocsin.kernels.reach import Search
from tocsin.kernels.shared import SharedLoops
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY
from tocsin.plan.manifest import BITS, END, KEY_AT, MATCH_ID, PASSED_ON, START, Layout, variable


@dataclass(frozen=True)
class Member:
    """A search of a task: what its rows mean, and how its matches are written."""

    summarizes: ClassVar[bool] = False  # whether it writes totals or graphs of matches in place of matches

    search: Search
    layout: Layout  # the meaning of the columns of rows
    has_id: bool = False  # whether a column identifies events, so that no two matches are equal
    number: int = 0  # the number of its matches in a result of several searches
    # of each variable of the layout, its place in such a result; None: matches have columns of their own
    places: tuple[int, ...] | None = None
    computed: Mapping[str, Gatherable] = field(default_factory=dict)  # digests that the table of rows does not have

    def run(self, table: pa.Table, rows: Rows, *, most: int, memory: int) -> Iterator[pa.RecordBatch]:
        """Search rows and write what is found; `table` has them as columns."""
        return self.written(self.search.find(rows, most=most, memory=memory), table, rows)

    def written(
        self, found: Iterable[Matches], table: pa.Table, rows: Rows, identify: Identity | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Write matches of these rows, with their ids where the layout has digests."""
        gatherer = Gatherer(table, self.layout)
        some = (portion for matches in found for portion in portions(matches))
        if not self.layout.identifies:
            return (gatherer.batch(portion, {}) for portion in some)
        identify = identify or self.identity(table, rows)
        return (gatherer.batch(portion, {MATCH_ID: of_ids(identify(portion))}) for portion in some)

    def in_result(self, found: pa.RecordBatch) -> pa.RecordBatch:
        """A batch in the columns of the result, where variables have places; without those that only others fill."""
        if self.places is None:
            return found
        columns = {RULE: of_numbers(np.full(found.num_rows, self.number, np.int32))}
        columns |= {name: found.column(name) for name in OF_MATCH}
        columns |= {variable(place): found.column(variable(at)) for at, place in enumerate(self.places)}
        return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])

    def identity(self, table: pa.Table, rows: Rows) -> Identity:
        """What identifies matches of these rows."""
        made = MadeDigests(lambda name: self._digest(table, name), self.layout).of
        return Identity(self.digests(table), rows.ts, rows.slice, rows.partition, has_id=self.has_id, made=made)

    def digests(self, table: pa.Table) -> Digests:
        """The digests of rows; an event that a rule emits has none for rules that do not read it."""
        if self.layout.id is not None:
            id, column = self.layout.id
            names = [names_of([kind, id]) for kind in self.search.types]
            kinds = kinds_of(table, self.layout.packing)
            ids = column_of(table, column, self.layout.packing)
            return IdDigests(0, names, ids, kinds), IdDigests(1, names, ids, kinds)
        first, second = (self._digest(table, name) for name in self.layout.digests)
        return first, second

    def _digest(self, table: pa.Table, name: str) -> Gatherable:
        if name in self.computed:
            return self.computed[name]
        array = array_of(table, name)
        digests = integers(array)
        return np.where(nulls_of(array), 0, digests) if array.null_count else digests


@dataclass(frozen=True)
class SearchGroup:
    """Members that split rows alike: one, or several that share their nested loops."""

    members: tuple[Member, ...]
    width_us: int | None = None  # how wide time slices are; None when rows are not cut by time
    loops: SharedLoops | None = None  # of all members; None: there is one

    def rows(self, table: pa.Table, known: dict[object, NullableArray]) -> list[Rows]:
        """The rows as each member reads them; columns that several read are taken from `known`."""
        searches, layouts = [one.search for one in self.members], [one.layout for one in self.members]
        return shared_rows(table, searches, layouts, self.width_us, known)

    def find(self, rows: Sequence[Rows], *, most: int, memory: int) -> Iterator[tuple[int, Iterator[Matches]]]:
        """The matches of each member, by its place in the group."""
        if self.loops is None:
            yield 0, self.members[0].search.find(rows[0], most=most, memory=memory)
            return
        for place, some in groupby(self.loops.find(rows, most=most, memory=memory), key=itemgetter(0)):
            yield place, (matches for _, matches in some)

    def run(
        self, table: pa.Table, known: dict[object, NullableArray], *, most: int, memory: int
    ) -> Iterator[tuple[Member, pa.RecordBatch]]:
        """What each member writes of a table of rows."""
        rows = self.rows(table, known)
        if self.loops is None:
            (member,) = self.members
            yield from ((member, batch) for batch in member.run(table, rows[0], most=most, memory=memory))
            return
        for place, matches in self.find(rows, most=most, memory=memory):
            member = self.members[place]
            yield from ((member, batch) for batch in member.written(matches, table, rows[place]))


@dataclass(frozen=True)
class Task:
    """The function that an engine runs on the rows of each task."""

    groups: tuple[SearchGroup, ...]  # the searches, those in one group that split rows alike
    most: int = MOST_MATCHES_PER_START  # how many matches may have one start
    memory: int = MOST_MEMORY  # how many bytes may be held for matches

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the searches on one task's rows; matches that were found before are passed on."""
        settle()
        received, size = [], 0
        result: pa.Schema | None = None
        for batch in batches:
            rows = batch
            if PASSED_ON in batch.schema.names:
                result = result or self._result(batch.schema)
                matches = batch.column(PASSED_ON)
                if len(matches) > matches.null_count:
                    yield completed(pa.RecordBatch.from_struct_array(matches.drop_null()), result)
                rows = batch.filter(matches.is_null()).drop_columns([PASSED_ON])
            if rows.num_rows:
                received.append(rows)
                size += rows.num_rows
                warm(size)
        if received:
            yield from self.run(pa.Table.from_batches(received), result)

    def run(self, table: pa.Table, result: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
        """Run the searches on a table of rows; `result` has all places, where matches are passed on too.

        Raises `MatchFailedError` when a search fails for a reason that is not the user's.
        """
        result = result or self._result(table.schema)
        if any(group.loops is not None for group in self.groups):
            table = table.combine_chunks()  # once, and not for every search
        known: dict[object, NullableArray] = {}
        for group in self.groups:
            try:
                for member, batch in group.run(table, known, most=self.most, memory=self.memory):
                    yield batch if member.places is None else completed(member.in_result(batch), result)
            except errors.TocsinError:
                raise
            except Exception as problem:
                raise errors.MatchFailedError(
                    f"The search failed: {errors.fault(problem)}\n  {_described(table, group)}",
                    hint="this is a fault of Tocsin's own; please report it with the query.",
                ) from problem

    def _result(self, schema: pa.Schema) -> pa.Schema:
        """The columns of a result with places: those of matches that are passed on, and those of the members."""
        known: dict[int, pa.DataType] = {}
        if PASSED_ON in schema.names:
            matches = schema.field(PASSED_ON).type
            known |= enumerate(field.type for field in matches if field.name not in (RULE, *OF_MATCH))
        for member in (member for group in self.groups for member in group.members):
            if member.places is not None:
                known |= zip(member.places, Gatherer(schema.empty_table(), member.layout).types(), strict=True)
        return schema_of([known[place] for place in sorted(known)])


def task_of(
    member: Member,
    width_us: int | None = None,
    *,
    most: int = MOST_MATCHES_PER_START,
    memory: int = MOST_MEMORY,
) -> Task:
    """The task of one search."""
    return Task((SearchGroup((member,), width_us),), most, memory)


def search_groups(
    sources: Sequence[Source],
    kernels: Sequence[Kernel],
    members: Sequence[Member],
    widths: Sequence[int | None],
) -> tuple[SearchGroup, ...]:
    """Group searches that split rows alike; `widths` are those of their time slices.

    `sources` and `kernels`, the members as nested loops, are numbered by `tocsin.kernels.shared.common`.
    """
    groups: dict[tuple[object, int | None, bool], list[int]] = {}
    for at, (member, width) in enumerate(zip(members, widths, strict=True)):
        groups.setdefault((member.search.query.partition, width, member.has_id), []).append(at)
    return tuple(
        SearchGroup(
            tuple(members[at] for at in group),
            width,
            SharedLoops(tuple(kernels[at] for at in group), tuple(sources)),
        )
        for (_, width, _), group in groups.items()
    )


def _described(table: pa.Table, group: SearchGroup) -> str:
    """Where a group searched: enough to find it again, and no row of it."""
    from tocsin.algebra.tree_text import to_text  # it takes longer to import than many a task

    layout = group.members[0].layout
    try:
        times = integers(array_of(table, layout.time))
        where = f"in {len(times)} rows of the times {times.min()} to {times.max()} µs"
        keys = [array_of(table, name)[0].as_py() for name in layout.keys]
        if layout.packing.has_key:
            keys = [int(integers(array_of(table, BITS))[0]) >> (KEY_AT + 1)]
        where += f", partition {', '.join(map(repr, keys))} and others" if keys else ""
    except Exception:
        where = "in rows that cannot be read"
    texts = "\n".join(to_text(member.search.query) for member in group.members)
    return f"{where}, of the {'query' if len(group.members) == 1 else 'queries'}:\n{texts}"


# --- several searches in one schema ---------------------------------------------------------------

# Variables of the same type, of whichever search, share a column.
#
# column              meaning
# ------              -------
# __tocsin_rule       the number of the search
# __tocsin_start …    interval and `match_id`
# __tocsin_v0 …       places; NULL where a search has no variable


RULE = "__tocsin_rule"
OF_MATCH = {START: pa.int64(), END: pa.int64(), MATCH_ID: pa.string()}
Placed = TypeVar("Placed")


def placed(kinds: Sequence[Placed], known: list[Placed]) -> tuple[int, ...]:
    """Choose places for the variables of a search by their types; `known` grows where it has none left for one.

    >>> known = ["struct a"]
    >>> placed(["struct b", "struct a", "struct a"], known), known
    ((1, 0, 2), ['struct a', 'struct b', 'struct a'])
    """
    taken: list[int] = []
    for kind in kinds:
        free = [place for place, one in enumerate(known) if one == kind and place not in taken]
        if not free:
            free = [len(known)]
            known.append(kind)
        taken.append(free[0])
    return tuple(taken)


def schema_of(types: Sequence[pa.DataType]) -> pa.Schema:
    """The columns of matches whose places have these types."""
    fields = [pa.field(RULE, pa.int32()), *(pa.field(name, dtype) for name, dtype in OF_MATCH.items())]
    return pa.schema([*fields, *(pa.field(variable(place), dtype) for place, dtype in enumerate(types))])
