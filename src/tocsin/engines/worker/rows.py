"""A task's Arrow table → the arrays that a kernel searches. No Python runs per row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tocsin.engines.worker.arrays import constant, nulls_of, numbers_of, of_numbers
from tocsin.kernels.model import Flags, Held, Integers, Mask, Rows, differs
from tocsin.kernels.reach import Search
from tocsin.plan.manifest import BITS, FLAGS_AT, KEY, KEY_AT, OWN_COPY, Layout, Packing

NullableArray = tuple[NDArray[Any], Mask | None]
WIDEST = 2**62
FEW_CODES = 1 << 24  # so far apart integers may be: sorting is faster with fewer bits


def rows_of(
    table: pa.Table,
    search: Search,
    layout: Layout,
    width_us: int | None,
    known: dict[object, NullableArray] | None = None,
) -> Rows:
    """The rows of a task, in the order of the table; `known` has the columns that other searches have read."""
    packing = layout.packing
    bits = integers(array_of(table, BITS))
    ts = integers(array_of(table, layout.time))
    slices = None if width_us is None else ts // width_us + ((bits & 3) - OWN_COPY)
    partition = partition_of(table, layout)
    kinds = kinds_of(table, packing)
    order = None
    if search.needs_order:
        groups = [column for column in (None if search.crosses_partitions else partition, slices) if column is not None]
        order = _order(table, layout, [*groups, ts], kinds)
    return Rows(
        ts=ts,
        flags=flags_of(table, packing),
        partition=partition,
        slice=slices,
        width_us=width_us or 0,
        columns=carried_columns(table, search, layout, {} if known is None else known),
        kinds=kinds,
        order=order,
        instants=_instants(table, layout, ts) if search.compares_ties and layout.ties else None,
        event=event_of(table, search, layout, kinds),
    )


def shared_rows(
    table: pa.Table,
    searches: Sequence[Search],
    layouts: Sequence[Layout],
    width_us: int | None,
    known: dict[object, NullableArray],
) -> list[Rows]:
    """The rows of a task as each of several searches that split them alike reads them, with the same arrays."""
    base = rows_of(table, searches[0], layouts[0], width_us, known)
    return [
        replace(
            base,
            columns=carried_columns(table, search, layout, known),
            event=event_of(table, search, layout, base.kinds),
        )
        for search, layout in zip(searches, layouts, strict=True)
    ]


def flags_of(table: pa.Table, packing: Packing) -> Flags:
    """What each row may be bound to."""
    if packing.words:
        return np.stack([integers(array_of(table, name)) for name in packing.words], axis=1)
    return (integers(array_of(table, BITS)) >> FLAGS_AT) & ((1 << packing.sources) - 1)


def kinds_of(table: pa.Table, packing: Packing) -> Integers | None:
    """The number of each row's type; None when nobody asks."""
    bits = integers(array_of(table, BITS))
    return (bits >> packing.kinds_at) & ((1 << packing.kinds) - 1) if packing.kinds else None


def with_flags(table: pa.Table, packing: Packing, flags: Flags) -> pa.Table:
    """The rows with other flags."""
    if not packing.words:
        bits = integers(array_of(table, BITS)) & ~(((1 << packing.sources) - 1) << FLAGS_AT)
        return table.set_column(table.column_names.index(BITS), BITS, of_numbers(bits | flags << FLAGS_AT))
    for number, name in enumerate(packing.words):
        table = table.set_column(table.column_names.index(name), name, of_numbers(flags[:, number]))
    return table


def array_of(table: pa.Table, name: str) -> pa.Array:
    """A column in one piece."""
    found = table.column(name)
    return found.chunk(0) if found.num_chunks == 1 else found.combine_chunks()


def column_of(table: pa.Table, name: str, packing: Packing) -> pa.Array:
    """A column in one piece; `KEY`, an integer of 8, 16 or 32 bits, is taken from the bits of rows."""
    if name != KEY:
        return array_of(table, name)
    bits = integers(array_of(table, BITS))
    dtype = {8: np.int8, 16: np.int16, 32: np.int32}[packing.key_bits]
    is_null = (bits >> KEY_AT) & 1 == 1
    return of_numbers((bits >> (KEY_AT + 1)).astype(dtype), is_null)


def integers(array: pa.Array) -> Integers:
    """An array without NULLs as 64-bit numbers; of the same memory where it holds them already."""
    if not pa.types.is_int64(array.type):
        array = array.cast(pa.int64())
    found: Integers = numbers_of(array)
    return found


def plus_zero(array: pa.Array) -> pa.Array:
    """The values of a column, where −0.0 is 0.0."""
    return pc.add(array, constant(0.0, pa.float64()).cast(array.type)) if pa.types.is_floating(array.type) else array


def _mask(array: pa.Array) -> Mask | None:
    return nulls_of(array) if array.null_count else None


# --- partitions and values ------------------------------------------------------------------------


def partition_of(table: pa.Table, layout: Layout) -> Integers | None:
    """A number per row, the same for rows of one partition; None where there is but one."""
    if layout.packing.has_key:
        return integers(array_of(table, BITS)) >> KEY_AT
    return codes([array_of(table, name) for name in layout.keys]) if layout.keys else None


def codes(arrays: Sequence[pa.Array]) -> Integers:
    """A number per combination of values; NULL is a value like any other.

    >>> codes([pa.array(["a", None, "a"]), pa.array([1, 1, 1])]).tolist()
    [0, 1, 0]
    >>> codes([pa.array([7, -5, 7])]).tolist()
    [7, -5, 7]
    """
    if len(arrays) == 1 and pa.types.is_integer(arrays[0].type) and not arrays[0].null_count and len(arrays[0]):
        numbers = integers(arrays[0])
        if int(numbers.max()) - int(numbers.min()) < FEW_CODES:
            return numbers
    found, size = np.zeros(len(arrays[0]), np.int64), 1
    for array in arrays:
        encoded = pc.dictionary_encode(array, null_encoding="encode")
        values = max(len(encoded.dictionary), 1)
        if size * values > WIDEST:
            known, found = np.unique(found, return_inverse=True)
            size = len(known)
        found = found * values + numbers_of(encoded.indices)
        size *= values
    return np.asarray(found, np.int64)


def carried_columns(
    table: pa.Table, search: Search, layout: Layout, known: dict[object, NullableArray]
) -> tuple[NullableArray, ...]:
    """The values of the search's `carried`, held as it asks; those that are not `known` are added."""
    names = list(zip(layout.carried, search.carried, strict=True))
    families: dict[int | None, list[str]] = {}
    for name, carried in names:
        if carried.held is Held.RANK:
            families.setdefault(carried.family, []).append(name)
    found = []
    for name, carried in names:
        # Ranks are places among the values of a family.
        family = tuple(families[carried.family]) if carried.held is Held.RANK else ()
        key = name, carried.held, family
        if key not in known and family:
            arrays = [array_of(table, one) for one in family]
            for one, array, ranked in zip(family, arrays, ranks(arrays), strict=True):
                known[one, Held.RANK, family] = ranked, _mask(array)
        elif key not in known:
            known[key] = _held(array_of(table, name), carried.held)
        found.append(known[key])
    return tuple(found)


def _held(array: pa.Array, held: Held) -> NullableArray:
    mask = _mask(array)
    if held is Held.BOOLEAN:
        return _zeroed(array, mask), mask
    wanted = pa.float64() if held is Held.FLOAT else pa.int64()
    # Also by way of int64: a time stamp has no other number.
    array = array if array.type == wanted else array.cast(wanted)
    return _zeroed(array, mask), mask


def _zeroed(array: pa.Array, mask: Mask | None) -> NDArray[Any]:
    """Numbers, 0 where they are NULL."""
    numbers = numbers_of(array)
    return numbers if mask is None else np.where(mask, numbers.dtype.type(0), numbers)


def ranks(arrays: Sequence[pa.Array]) -> list[Integers]:
    """The place of every value among the values of all arrays, equal values equal; NULL has any.

    Strings and bytes are in the order of their bytes, which for UTF-8 is that of code points.

    >>> [found.tolist() for found in ranks([pa.array(["b", "a"]), pa.array(["b", "c"])])]
    [[1, 0], [1, 2]]
    """
    if any(pa.types.is_decimal(array.type) for array in arrays):
        scale = max(array.type.scale if pa.types.is_decimal(array.type) else 0 for array in arrays)
        # 76 digits hold every 38 digits at every scale.
        arrays = [array.cast(pa.decimal256(76, scale)) for array in arrays]
    arrays = [array.cast(pa.string()) if pa.types.is_large_string(array.type) else array for array in arrays]
    together = pa.concat_arrays(arrays)
    encoded = together.dictionary_encode()
    places = np.empty(len(encoded.dictionary) + 1, np.int64)
    places[pc.sort_indices(encoded.dictionary).cast(pa.int64())] = np.arange(len(encoded.dictionary))
    places[-1] = 0  # of NULL, which is nobody's value
    indices = np.where(nulls_of(encoded.indices), len(encoded.dictionary), numbers_of(encoded.indices))
    return np.split(places[indices], np.cumsum([len(array) for array in arrays])[:-1])


# --- order ----------------------------------------------------------------------------------------


def _order(table: pa.Table, layout: Layout, groups: list[Integers], kinds: Integers | None) -> Integers:
    """The place of every row by (groups and time, tie columns, type, text); R16."""
    keys = [*groups, *_ties(table, layout)]
    if layout.type is not None:
        (ranked,) = ranks([array_of(table, layout.type)])
        keys.append(ranked)
    elif kinds is not None:
        keys.append(kinds)
    # The last key of lexsort counts most.
    sorted_rows = np.lexsort(keys[::-1])
    if layout.text is not None:
        _untie(sorted_rows, keys, array_of(table, layout.text))
    order = np.empty(len(sorted_rows), np.int64)
    order[sorted_rows] = np.arange(len(sorted_rows))
    return order


def _ties(table: pa.Table, layout: Layout) -> list[Integers]:
    """The ranks of the values of each tie column; NULL comes first."""
    return [ranks_with_nulls(array_of(table, name)) for name in layout.ties]


def ranks_with_nulls(array: pa.Array) -> Integers:
    """The place of every value of a column, NULL before all others."""
    array = plus_zero(array)
    mask = _mask(array)
    (ranked,) = ranks([array])
    return ranked if mask is None else np.where(mask, -1, ranked)


def _instants(table: pa.Table, layout: Layout, ts: Integers) -> Integers:
    """The rank of every row by time and tie columns, equal for rows that are equal in both (R41)."""
    keys = [ts, *_ties(table, layout)]
    sorted_rows = np.lexsort(keys[::-1])
    found = np.empty(len(sorted_rows), np.int64)
    found[sorted_rows] = np.cumsum(differs(*(key[sorted_rows] for key in keys))) - 1
    return found


def _untie(sorted_rows: Integers, keys: list[Integers], text: pa.Array) -> None:
    """Sort the rows that are equal in all keys by their text: only they need it compared."""
    is_first = differs(*(key[sorted_rows] for key in keys))
    tied = ~is_first
    tied[:-1] |= ~is_first[1:]
    places = np.flatnonzero(tied)
    if not len(places):
        return
    rows, runs = sorted_rows[places], np.cumsum(is_first)[places]
    (ranked,) = ranks([text.take(of_numbers(rows))])
    sorted_rows[places] = rows[np.lexsort((ranked, runs))]


# --- events as Python values ----------------------------------------------------------------------


def event_of(
    table: pa.Table, kernel: Search, layout: Layout, kinds: Integers | None
) -> Callable[[int], Mapping[str, Any]]:
    """What tells the attributes of a row that a kernel wants."""
    if not any(layout.wants.values()):
        return lambda _: {}
    by_kind = {
        number: [(attribute, table.column(column)) for attribute, column in layout.wants.get(name, ())]
        for number, name in enumerate(kernel.types)
    }
    only = next((number for number, name in enumerate(kernel.types) if layout.wants.get(name)), 0)

    def event(row: int) -> Mapping[str, Any]:
        columns = by_kind[only if kinds is None else int(kinds[row])]
        return {attribute: column[row].as_py() for attribute, column in columns}

    return event
