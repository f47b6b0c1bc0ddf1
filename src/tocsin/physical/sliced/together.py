"""What runs in a task for several kernels: the rows are read, sorted and split once, and every match says whose it is.

Matches of different kernels have different variables. Their columns are *places* of one schema: variables of the same
type, of whatever kernel, are at the same place, and what a kernel does not have is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

import numpy as np
import pyarrow as pa

from tocsin import errors
from tocsin.kernels.hashes import match_halves
from tocsin.kernels.kernel import Kernel
from tocsin.kernels.model import Rows, Source
from tocsin.kernels.together import Together
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY
from tocsin.physical.sliced.gather import Gatherer, portions, types_of
from tocsin.physical.sliced.layout import END, FIRST_HALF, SECOND_HALF, START, TAPE, Layout, variable
from tocsin.physical.sliced.rows import Held_, array_of, carried_columns, event_of, integers, rows_of

RULE = "__tocsin_rule"
HALVES = (START, END, FIRST_HALF, SECOND_HALF)
Placed = TypeVar("Placed")


@dataclass(frozen=True)
class Members:
    """Kernels that split rows alike.

    Attributes
    ----------
    together
        The kernels.
    numbers
        What each is called in the results.
    layouts
        What the columns of the rows mean to each.
    places
        Of each variable of each layout, the place of its column.
    width_us
        How wide time slices are; None when rows are not cut by time.
    has_id
        Whether a column identifies events.
    """

    together: Together
    numbers: tuple[int, ...]
    layouts: tuple[Layout, ...]
    places: tuple[tuple[int, ...], ...]
    width_us: int | None = None
    has_id: bool = False


@dataclass(frozen=True)
class JointTask:
    """What a worker has to know.

    Attributes
    ----------
    members
        The kernels, those together that split rows alike.
    most
        How many matches may have one start.
    memory
        How many bytes may be held for matches.
    texts
        The queries by number, for messages.
    """

    members: tuple[Members, ...]
    most: int = MOST_MATCHES_PER_START
    texts: tuple[str, ...] = ()
    memory: int = MOST_MEMORY

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The matches of one task's rows; what was found before is handed on."""
        received = []
        types: list[pa.DataType] = []
        for batch in batches:
            types = types or self._types(batch.schema)
            if TAPE in batch.schema.names:
                tape = batch.column(TAPE)
                if len(tape) > tape.null_count:
                    yield _handed_on(tape.drop_null(), types)
                received.append(batch.filter(tape.is_null()).drop_columns([TAPE]))
            else:
                received.append(batch)
        received = [batch for batch in received if batch.num_rows]
        if received:
            yield from self.matches(pa.Table.from_batches(received), types)

    def _types(self, schema: pa.Schema) -> list[pa.DataType]:
        """The types of all places: those of matches that are handed on, and those of the kernels."""
        known: dict[int, pa.DataType] = {}
        if TAPE in schema.names:
            before = [field for field in schema.field(TAPE).type if field.name not in (RULE, *HALVES)]
            known |= {place: field.type for place, field in enumerate(before)}
        for members in self.members:
            for layout, places in zip(members.layouts, members.places, strict=True):
                known |= dict(zip(places, types_of(schema, layout), strict=True))
        return [known[place] for place in sorted(known)]

    def matches(self, table: pa.Table, types: Sequence[pa.DataType] | None = None) -> Iterator[pa.RecordBatch]:
        """The matches of a table of rows; `types` are those of all places.

        Raises
        ------
        MatchFailedError
            When the search fails for a reason that is not the user's.
        """
        table = table.combine_chunks()  # once, and not for every kernel
        known: dict[object, Held_] = {}
        types = self._types(table.schema) if types is None else types
        for members in self.members:
            try:
                for number, found in self._matches(table, members, known):
                    yield _batch(found, members, number, types)
            except errors.TocsinError:
                raise
            except Exception as problem:
                texts = "\n".join(self.texts[number] for number in members.numbers if number < len(self.texts))
                raise errors.MatchFailedError(
                    f"The search failed: {type(problem).__name__}: {problem}\n"
                    f"  in {table.num_rows} rows, of the queries:\n{texts}",
                    hint="this is a fault of Tocsin's own; please report it with the program.",
                ) from problem

    def _matches(
        self, table: pa.Table, members: Members, known: dict[object, Held_]
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The matches of each kernel, in columns of its own."""
        rows = rows_of_all(table, members, known)
        first, second = (integers(array_of(table, name)) for name in members.layouts[0].digests)
        found = members.together.find(rows, most=self.most, memory=self.memory)
        for number, some in groupby(found, key=itemgetter(0)):
            gatherer = Gatherer(table, members.layouts[number])
            parts = (portion for _, matches in some for portion in portions(matches))
            halves = match_halves(
                parts, (first, second), rows[number].slice, rows[number].partition, has_id=members.has_id
            )
            for portion, one, other in halves:
                yield number, gatherer.batch(portion, (one, other))


def schema_of(types: Sequence[pa.DataType]) -> pa.Schema:
    """The columns of matches, when places have these types."""
    fields = [pa.field(RULE, pa.int32()), *(pa.field(name, pa.int64()) for name in HALVES)]
    return pa.schema([*fields, *(pa.field(variable(place), dtype) for place, dtype in enumerate(types))])


def _handed_on(tape: pa.StructArray, types: Sequence[pa.DataType]) -> pa.RecordBatch:
    known = dict(zip((field.name for field in tape.type), tape.flatten(), strict=True))
    return _in_places(known, len(tape), types)


def _batch(found: pa.RecordBatch, members: Members, number: int, types: Sequence[pa.DataType]) -> pa.RecordBatch:
    """The matches of one kernel in the columns of all."""
    size = found.num_rows
    columns = {RULE: pa.array(np.full(size, members.numbers[number], np.int32))}
    columns |= {name: found.column(name) for name in HALVES}
    columns |= {variable(place): found.column(variable(at)) for at, place in enumerate(members.places[number])}
    return _in_places(columns, size, types)


def _in_places(columns: Mapping[str, pa.Array], size: int, types: Sequence[pa.DataType]) -> pa.RecordBatch:
    fields = [RULE, *HALVES]
    found = [columns[name] for name in fields]
    for place, dtype in enumerate(types):
        name = variable(place)
        found.append(columns[name] if name in columns else pa.nulls(size, dtype))
        fields.append(name)
    return pa.RecordBatch.from_arrays(found, names=fields)


def placed(kinds: Sequence[Placed], known: list[Placed]) -> tuple[int, ...]:
    """The places of a kernel's variables by their types; `known` grows where it has none left for one.

    Examples
    --------
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


def members_of(
    sources: Sequence[Source],
    kernels: Sequence[Kernel],
    numbers: Sequence[int],
    layouts: Sequence[Layout],
    places: Sequence[tuple[int, ...]],
    widths: Sequence[int | None],
    ids: Sequence[str | None],
) -> tuple[Members, ...]:
    """The kernels, those together that split rows alike."""
    groups: dict[tuple[object, int | None, bool], list[int]] = {}
    for at, kernel in enumerate(kernels):
        groups.setdefault((kernel.query.partition, widths[at], ids[at] is not None), []).append(at)
    return tuple(
        Members(
            Together(tuple(kernels[at] for at in group), tuple(sources)),
            tuple(numbers[at] for at in group),
            tuple(layouts[at] for at in group),
            tuple(places[at] for at in group),
            width,
            has_id,
        )
        for (_, width, has_id), group in groups.items()
    )


def rows_of_all(table: pa.Table, members: Members, known: dict[object, Held_]) -> list[Rows]:
    """The rows of a task as each kernel sees them; all of them have the same arrays where they see the same."""
    kernels, layouts = members.together.kernels, members.layouts
    bare = replace(layouts[0], carried=())
    base = rows_of(table, replace(kernels[0], carried=()), bare, members.width_us)
    return [
        replace(
            base,
            columns=_columns(table, kernel, layout, known),
            event=event_of(table, kernel, layout, base.kinds),
        )
        for kernel, layout in zip(kernels, layouts, strict=True)
    ]


def _columns(table: pa.Table, kernel: Kernel, layout: Layout, known: dict[object, Held_]) -> tuple[Held_, ...]:
    """The carried columns of a kernel: what another one holds in the same way is taken from `known`."""
    names = list(zip(layout.carried, kernel.carried, strict=True))
    families: dict[int | None, tuple[str, ...]] = {}
    for name, carried in names:
        families[carried.family] = (*families.get(carried.family, ()), name)
    # Ranks are places among the values of a family.
    keys = [
        (name, carried.held, None if carried.family is None else families[carried.family]) for name, carried in names
    ]
    if any(key not in known for key in keys):
        made = carried_columns([array_of(table, name) for name in layout.carried], kernel)
        for key, column in zip(keys, made, strict=True):
            known.setdefault(key, column)
    return tuple(known[key] for key in keys)
