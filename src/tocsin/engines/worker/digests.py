"""The digests of events (steps 1 to 3 of the recipe in `engines.spark.match_ids`) where Spark does not compute them.

An event that AGG makes has no type: its names are those of its values alone, behind an empty one. What PROJECT leaves
of an event has its type, and of its columns those that are left; Spark computes these beside the digests of whole
events.
"""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.engines.worker.rows import array_of, integers
from tocsin.expressions.objects import microseconds
from tocsin.kernels import hashes
from tocsin.kernels.hashes import Digests, Words
from tocsin.kernels.model import Integers, Made
from tocsin.plan.manifest import Layout

NULLS_PER_WORD = 63


def names_of(names: Iterable[str]) -> str:
    """Names as one text."""
    return json.dumps(list(names), ensure_ascii=False, separators=(",", ":"))


def digests(salt: int, prefix: Sequence[str], columns: Mapping[str, Sequence[Any]], size: int) -> Integers:
    """Digest several events, or structs, from columns of values; the names are `prefix`, then those of the columns."""
    names = sorted(columns)
    nulls = [_nulls(columns[name]) for name in names]
    found = np.full(size, hashes.constant(salt, names_of([*prefix, *names])), np.uint64)
    for begin in range(0, len(names), NULLS_PER_WORD):
        word = np.zeros(size, np.int64)
        for place, is_null in enumerate(nulls[begin : begin + NULLS_PER_WORD]):
            word |= is_null.astype(np.int64) << place
        found = hashes.chain(found, word)
    for name, is_null in zip(names, nulls, strict=True):
        known = np.flatnonzero(~is_null)
        found[known] = _with_values(found[known], columns[name], known, salt)
    return found.view(np.int64)


def _nulls(values: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if isinstance(values, np.ndarray) and values.dtype != np.object_:
        return np.ma.getmaskarray(values)
    return np.fromiter((value is None for value in values), np.bool_, len(values))


def _with_values(seeds: Words, values: Sequence[Any], known: Integers, salt: int) -> Words:
    if isinstance(values, np.ndarray) and values.dtype != np.object_:
        numbers = np.asarray(values)[known]
        is_float = np.issubdtype(numbers.dtype, np.floating)
        return hashes.chain(seeds, (numbers + 0.0).view(np.int64) if is_float else numbers.astype(np.int64))
    fields = [written(values[place], salt) for place in known.tolist()]
    # A value may be a number in one event and a text in the next.
    is_number = np.fromiter((isinstance(field, int) for field in fields), np.bool_, len(fields))
    numbers = np.array([field & hashes.BITS for field in fields if isinstance(field, int)], np.uint64)
    found = seeds.copy()
    found[is_number] = hashes.chain(seeds[is_number], numbers.view(np.int64))
    found[~is_number] = hashes.chain_texts(seeds[~is_number], [field for field in fields if isinstance(field, str)])
    return found


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


# --- events that were made ------------------------------------------------------------------------


class MadeDigests:
    """The digests of the events that a task's matches have made."""

    def __init__(self, table: pa.Table, layout: Layout) -> None:
        self.templates = layout.templates
        self.trimmed = {
            number: [integers(array_of(table, name)) for name in pair] for number, pair in layout.trimmed.items()
        }
        self._last: tuple[Made, Digests] | None = None

    def of(self, made: Made) -> Digests:
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
