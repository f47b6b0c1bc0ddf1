"""The digests of events (steps 1 to 3 of the recipe in `engines.spark.match_ids`) where Spark does not compute them.

An event that AGG makes has no type: its names are those of its values alone, behind an empty one. What PROJECT leaves
of an event has its type, and of its columns those that are left; Spark computes these beside the digests of whole
events.
"""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.engines.worker.arrays import nulls_of, numbers_of
from tocsin.engines.worker.rows import integers
from tocsin.expressions.objects import microseconds
from tocsin.kernels import xxhash
from tocsin.kernels.hashes import Gatherable, Hashes
from tocsin.kernels.model import Integers, Made, Mask
from tocsin.kernels.xxhash import Words
from tocsin.plan.manifest import Layout

Chain = Callable[[Words, Integers], Words]  # the hashes of some events, and their places → those of one more value
NULLS_PER_WORD = 63


def names_of(names: Iterable[str]) -> str:
    """Names as one text."""
    return json.dumps(list(names), ensure_ascii=False, separators=(",", ":"))


def digests(salt: int, prefix: Sequence[str], columns: Mapping[str, Any], size: int) -> Integers:
    """Digest several events, or structs, from columns of values; the names are `prefix`, then those of the columns."""
    names = sorted(columns)
    read = [_read(columns[name], salt) for name in names]
    found = np.full(size, xxhash.constant(salt, names_of([*prefix, *names])), np.uint64)
    for begin in range(0, len(names), NULLS_PER_WORD):
        word = np.zeros(size, np.int64)
        for place, (is_null, _) in enumerate(read[begin : begin + NULLS_PER_WORD]):
            word |= is_null.astype(np.int64) << place
        found = xxhash.chain(found, word)
    for is_null, chain in read:
        known = np.flatnonzero(~is_null)
        found[known] = chain(found[known], known)
    return found.view(np.int64)


def _read(column: Any, salt: int) -> tuple[Mask, Chain]:
    """Which values are NULL, and what chains the others."""
    if isinstance(column, pa.Array):
        is_null = nulls_of(column)
        numbers = _numbers_in(column, salt)
        if numbers is not None:
            return is_null, _of_numbers(numbers)
        if pa.types.is_date(column.type):
            column = column.cast(pa.string())
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            return is_null, _of_texts(*_places(column))
        return is_null, _of_objects(column.to_pylist(), salt)
    if isinstance(column, np.ndarray) and column.dtype != np.object_:
        numbers = np.asarray(column)
        is_float = np.issubdtype(numbers.dtype, np.floating)
        numbers = (numbers + 0.0).view(np.int64) if is_float else numbers.astype(np.int64)
        return np.ma.getmaskarray(column), _of_numbers(numbers)
    is_null = np.fromiter((value is None for value in column), np.bool_, len(column))
    return is_null, _of_objects(column, salt)


def _numbers_in(column: pa.Array, salt: int) -> Integers | None:
    """Values that are hashed as numbers; None where they are texts."""
    is_a, dtype = pa.types, column.type
    if is_a.is_struct(dtype):
        fields = {field.name: part for field, part in zip(dtype, column.flatten(), strict=True)}
        return digests(salt, [], fields, len(column))
    if is_a.is_floating(dtype):
        doubles: Integers = (numbers_of(column.cast(pa.float64())) + 0.0).view(np.int64)
        return doubles
    if is_a.is_null(dtype):
        return np.zeros(len(column), np.int64)
    if not (is_a.is_boolean(dtype) or is_a.is_integer(dtype) or is_a.is_timestamp(dtype) or is_a.is_duration(dtype)):
        return None
    return integers(column)


def _places(column: pa.Array) -> tuple[Integers, Integers, xxhash.Bytes]:
    """Where each text begins and ends in UTF-8 data."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64 if pa.types.is_large_string(column.type) else np.int32)
    places: Integers = ends[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return places[:-1], places[1:], np.frombuffer(data or b"", np.uint8)


def _of_numbers(numbers: Integers) -> Chain:
    return lambda seeds, at: xxhash.chain(seeds, numbers[at])


def _of_texts(begins: Integers, ends: Integers, data: xxhash.Bytes) -> Chain:
    return lambda seeds, at: xxhash.chain_texts(seeds, begins[at], ends[at], data)


def _of_objects(values: Sequence[Any], salt: int) -> Chain:
    def chain(seeds: Words, at: Integers) -> Words:
        """A value may be a number in one event and a text in the next."""
        fields = [written(values[place], salt) for place in at.tolist()]
        is_number = np.fromiter((isinstance(field, int) for field in fields), np.bool_, len(fields))
        found = seeds.copy()
        numbers = np.array([field % 2**64 for field in fields if isinstance(field, int)], np.uint64)
        found[is_number] = xxhash.chain(seeds[is_number], numbers.view(np.int64))
        texts = [field.encode() for field in fields if isinstance(field, str)]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        begins = np.append(0, ends)[:-1]
        data = np.frombuffer(b"".join(texts), np.uint8)
        found[~is_number] = xxhash.chain_texts(seeds[~is_number], begins, ends, data)
        return found

    return chain


def written(value: Any, salt: int) -> int | str:
    """A value as a number or a text; what Spark writes for it."""
    match value:
        case bool() | int():
            return int(value)
        case float():
            (bits,) = struct.unpack("<q", struct.pack("<d", value + 0.0))
            return int(bits)
        case dt.datetime() | dt.timedelta():
            return microseconds(value)
        case bytes():
            return value.hex().upper()
        case Mapping():
            return int(digests(salt, [], {name: [one] for name, one in value.items()}, 1)[0])
        case list() | tuple():
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_in_list)
        case _:
            return str(value)


def _in_list(value: Any) -> Any:
    if not isinstance(value, dt.datetime):
        return str(value)
    if value.tzinfo is None:
        return f"{value:%Y-%m-%dT%H:%M:%S.%f}"
    return f"{value.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


# --- events with an id ----------------------------------------------------------------------------


class IdDigests:
    """A digest of the events of a task from the column that identifies them, computed for those that are asked for."""

    def __init__(self, which: int, names: Sequence[str], ids: pa.Array, kinds: Integers | None) -> None:
        is_null, self._chain = _read(ids, which + 1)
        # By the number of the type: of an event with an id, and of one without.
        seeds = [[xxhash.constant(which + 1, name, number) for number in (0, 1)] for name in names]
        self._seeds, self._kinds = np.array(seeds, np.uint64), kinds
        self._is_null, self._has_nulls = is_null, bool(is_null.any())
        self._all: Integers | None = None

    def __getitem__(self, rows: Integers) -> Integers:
        """The digests of some rows."""
        if self._all is None:
            if len(rows) < len(self._is_null):
                return self._computed(rows)
            self._all = self._computed(np.arange(len(self._is_null)))
        return self._all[rows]

    def _computed(self, rows: Integers) -> Integers:
        kinds = 0 if self._kinds is None else self._kinds[rows]
        is_null = self._is_null[rows]
        found = np.empty(len(rows), np.uint64)
        found[:] = self._seeds[kinds, is_null.astype(np.int64)]
        if not self._has_nulls:
            return self._chain(found, rows).view(np.int64)
        found[~is_null] = self._chain(found[~is_null], rows[~is_null])
        return found.view(np.int64)


# --- events that were made ------------------------------------------------------------------------


class MadeDigests:
    """The digests of the events that a task's matches have made."""

    def __init__(self, column: Callable[[str], Gatherable], layout: Layout) -> None:
        self.templates = layout.templates
        self.trimmed = {number: [column(name) for name in pair] for number, pair in layout.trimmed.items()}
        self._last: tuple[Made, Hashes] | None = None

    def of(self, made: Made) -> Hashes:
        """d1 and d2 of each; those of matches that are looked at in portions are computed once."""
        if self._last is None or self._last[0] is not made:
            self._last = (made, (self._digests(made, 0), self._digests(made, 1)))
        return self._last[1]

    def _digests(self, made: Made, which: int) -> Integers:
        found = np.zeros(len(made.rows), np.int64)
        for number, template in enumerate(self.templates):
            own = np.flatnonzero(made.templates == number)
            if not template.is_derived:
                found[own] = self.trimmed[number][which][made.rows[own]]
            elif len(own):
                columns = dict(zip(template.attributes, made.columns[number], strict=True))
                size = len(made.columns[number][0])
                found[own] = digests(which + 1, [""], columns, size)[made.places[own]]
        return found
