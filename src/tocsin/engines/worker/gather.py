"""What a kernel found → Arrow batches of matches: the rows of the events are taken from the task's table.

Events that a kernel has made have columns of their own, one for each attribute; where one is left of a row, its
attributes are the row's. No Python runs per event, but for the values that were made as Python's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.engines.worker.arrays import of_numbers, of_values
from tocsin.engines.worker.rows import column_of
from tocsin.errors import TypeMismatchError, shown
from tocsin.kernels.model import Bag, Integers, Made, Mask, Matches
from tocsin.plan import manifest
from tocsin.plan.manifest import Gathered, Layout, member

MOST_AT_ONCE = 1 << 16
MOST_EVENTS = 1 << 20  # of bags: a gathering may hold any number of them
OF_MONOIDS = 'declare the type of its result: `tocsin.Monoid(..., gives="double")`.'


def portions(matches: Matches, size: int = MOST_AT_ONCE, events: int = MOST_EVENTS) -> Iterator[Matches]:
    """Matches in portions of at most `size`, whose bags hold about `events` events at most, if there are several."""
    if not len(matches):
        return
    bags = [held.shown.sizes for held in matches.events.values() if isinstance(held, Bag)]
    held = np.cumsum(sum(bags, np.zeros(len(matches), np.int64)))
    if len(matches) <= size and held[-1] <= events:
        yield matches
        return
    begin = 0
    while begin < len(matches):
        before = held[begin - 1] if begin else 0
        fitting = int(np.searchsorted(held, before + events, side="right"))
        end = min(begin + size, max(fitting, begin + 1), len(matches))
        part = {
            name: held.part(begin, end) if isinstance(held, Bag) else held[begin:end]
            for name, held in matches.events.items()
        }
        values = tuple((numbers[begin:end], nulls[begin:end]) for numbers, nulls in matches.values)
        missing = None if matches.missing is None else matches.missing[begin:end]
        edges = None if matches.edges is None else (matches.edges[0][begin:end], matches.edges[1][begin:end])
        times = matches.start[begin:end], matches.end[begin:end]
        yield Matches(*times, part, made=matches.made, values=values, missing=missing, edges=edges)
        begin = end


class Gatherer:
    """Makes batches of matches from the columns of one task."""

    def __init__(self, table: pa.Table, layout: Layout) -> None:
        self.gathered = layout.gathered
        self.templates = layout.templates
        names = {name for one in layout.gathered for name in one.columns if name is not None}
        self.columns = {name: column_of(table, name, layout.packing) for name in names}

    def types(self) -> list[pa.DataType]:
        """The types of the columns that hold the variables of a match."""
        nothing = np.zeros(0, np.int64)
        return [self._column(one, nothing, None).type for one in self.gathered]

    def batch(self, matches: Matches, identity: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """The matches with their interval in microseconds, what identifies them, and a column per variable."""
        found = {manifest.START: of_numbers(matches.start), manifest.END: of_numbers(matches.end)}
        found |= identity
        if matches.missing is not None:
            found[manifest.MISSING] = of_numbers(matches.missing)
        for number, one in enumerate(self.gathered):
            found[manifest.variable(number)] = self._column(one, matches.events[one.name], matches.made)
        for number, (numbers, nulls) in enumerate(matches.values):
            found[manifest.value(number)] = of_numbers(numbers, nulls)
        return pa.RecordBatch.from_arrays([*found.values()], names=[*found])

    def _column(self, one: Gathered, held: Integers | Bag, made: Made | None) -> pa.Array:
        if isinstance(held, Bag):
            bag = held.shown
            return _lists(bag.offsets, self._struct(one, bag.rows, made, None))
        unbound = held < 0
        struct = self._struct(one, held, made, unbound if unbound.any() else None)
        if not one.is_iterated:
            return struct
        # A variable that is iterated in one OR branch only is a bag in all of them.
        bound = np.flatnonzero(~unbound)
        offsets = np.append(0, np.cumsum(~unbound))
        return _lists(offsets, struct.take(of_numbers(bound)))

    def _struct(self, one: Gathered, rows: Integers, made: Made | None, unbound: Mask | None) -> pa.StructArray:
        if made is not None and (rows >= made.base).any():
            columns = [self._mixed(one, place, rows, made) for place in range(len(one.columns))]
        else:
            taken = of_numbers(rows, unbound)
            columns = [
                pa.nulls(len(rows), one.types[place]) if name is None else self.columns[name].take(taken)
                for place, name in enumerate(one.columns)
            ]
        names = [member(number) for number in range(len(columns))]
        return pa.StructArray.from_arrays(columns, names=names, mask=None if unbound is None else of_numbers(unbound))

    # --- events that were made --------------------------------------------------------------------

    def _mixed(self, one: Gathered, place: int, rows: Integers, made: Made) -> pa.Array:
        """An attribute of events of which some were made: theirs, or that of the row which they are left of."""
        attribute, name = one.attributes[place], one.columns[place]
        is_made = rows >= made.base
        numbers = rows[is_made] - made.base
        templates = made.templates[numbers]
        origin = rows.copy()
        # Whether events of each template have the attribute of the row that they are made at; all have what is counted.
        keeps = np.array([not attribute or attribute in template.kept for template in self.templates])
        origin[is_made] = np.where(keeps[templates], made.rows[numbers], -1)
        dtype = one.types[place] if name is None else self.columns[name].type
        own = pa.nulls(len(rows), dtype)
        if name is not None:
            own = self.columns[name].take(of_numbers(origin, origin < 0))
        making = [template.is_derived and attribute in template.attributes for template in self.templates]
        derived = [number for number in np.unique(templates).tolist() if making[number]]
        if not derived:
            return own
        places = np.full(len(rows), -1, np.int64)
        parts, size = [], 0
        for number in derived:
            of_it = np.flatnonzero(templates == number)
            column = made.columns[number][self.templates[number].attributes.index(attribute)]
            parts.append(as_array(_taken(column, made.places[numbers[of_it]]), dtype, attribute))
            places[np.flatnonzero(is_made)[of_it]] = np.arange(size, size + len(of_it))
            size += len(of_it)
        values = pa.concat_arrays(parts).take(of_numbers(places, places < 0))
        # An event has the attribute in one way only: where one side has a value, the other is NULL.
        return pc.coalesce(own, values)


def _lists(offsets: Integers, values: pa.Array) -> pa.ListArray:
    """Lists, NULL where they would be empty: a variable that holds nothing is unbound."""
    is_empty = np.diff(offsets) == 0
    mask = of_numbers(is_empty) if is_empty.any() else None
    return pa.ListArray.from_arrays(of_numbers(offsets.astype(np.int32)), values, mask=mask)


def _taken(values: Sequence[Any], places: Integers) -> Sequence[Any]:
    if isinstance(values, np.ndarray):
        return values[places]
    return [values[place] for place in places.tolist()]


def as_array(values: Sequence[Any], dtype: pa.DataType, attribute: str, hint: str = OF_MONOIDS) -> pa.Array:
    """Values that were made, as a column.

    Raises `TypeMismatchError` when an aggregate or a function of the user gives something else than it declares.

    >>> as_array([Decimal("1.5"), 2, None], pa.float64(), "mean").to_pylist()
    [1.5, 2.0, None]
    """
    if isinstance(values, np.ndarray) and values.dtype != np.object_:
        return pa.array(values).cast(dtype)
    if pa.types.is_floating(dtype):
        values = [float(value) if isinstance(value, Decimal) and not value.is_snan() else value for value in values]
    wrong = next((value for value in values if isinstance(value, float) and pa.types.is_integer(dtype)), None)
    try:
        if wrong is None:  # Arrow would cut off what is behind the point
            return of_values(values, dtype)
    except Exception:  # Arrow's own, and whatever the classes of values raise
        wrong = next(value for value in values if not _fits(value, dtype))
    raise TypeMismatchError(
        f"The value of `{attribute}` is {shown(wrong)}, which is not of the type {dtype}.",
        hint=hint,
    )


def _fits(value: Any, dtype: pa.DataType) -> bool:
    try:
        pa.array([value], dtype)
    except Exception:
        return False
    return True
