"""NumPy arrays and Python values as Arrow arrays, and back.

pyarrow does this too, but its conversions import pandas where that is installed, which takes longer than a small search
and than the start of a worker. Plain values are converted here without it; others are left to pyarrow.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
EPOCH = dt.datetime(1970, 1, 1)
MICROSECOND = dt.timedelta(microseconds=1)
LEAST, MOST = -(2**63), 2**63 - 1
NUMBERS: Mapping[np.dtype[Any], pa.DataType] = {
    np.dtype(name): getattr(pa, name)() for name in ("int8", "int16", "int32", "int64", "float32", "float64")
}
ID_SIZE = 32  # digits
TYPES = {held: dtype for dtype, held in NUMBERS.items()}


def of_numbers(values: NDArray[Any], is_null: Mask | None = None) -> pa.Array:
    """Numbers or truth values as an Arrow array of the same memory; `is_null` marks NULLs.

    >>> of_numbers(np.array([1, 2]), np.array([False, True])).to_pylist(), of_numbers(np.array([True])).to_pylist()
    ([1, None], [True])
    """
    validity = None if is_null is None or not is_null.any() else _packed(~is_null)
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [validity, _packed(values)])
    held = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(NUMBERS[values.dtype], len(values), [validity, held])


def of_ids(digits: NDArray[np.uint64]) -> pa.Array:
    """The ids of matches as texts.

    >>> of_ids(np.frombuffer(b"0123456789abcdef" * 2, np.uint64).reshape(1, 4)).to_pylist()
    ['0123456789abcdef0123456789abcdef']
    """
    offsets = np.arange(len(digits) + 1, dtype=np.int32) * ID_SIZE
    return pa.StringArray.from_buffers(len(digits), pa.py_buffer(offsets), pa.py_buffer(digits))


def _packed(values: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def numbers_of(array: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Numbers or truth values as an array of NumPy, of the same memory where they are numbers; NULLs are any.

    >>> numbers_of(pa.array([1.5, 2.0])[1:]).tolist(), numbers_of(pa.array([True, False, True])[1:]).tolist()
    ([2.0], [False, True])
    """
    if isinstance(array, pa.ChunkedArray):
        chunks = [numbers_of(chunk) for chunk in array.chunks]
        empty = np.empty(0, np.bool_ if pa.types.is_boolean(array.type) else TYPES[array.type])
        return chunks[0] if len(chunks) == 1 else np.concatenate([empty, *chunks])
    begin, end = array.offset, array.offset + len(array)
    _, held = array.buffers()
    if pa.types.is_boolean(array.type):
        return _bits(held, begin, end)
    return np.frombuffer(held or b"", TYPES[array.type])[begin:end]


def nulls_of(array: pa.Array | pa.ChunkedArray) -> Mask:
    """Which values are NULL."""
    found: Mask = numbers_of(array.is_null())
    return found


def _bits(held: pa.Buffer | None, begin: int, end: int) -> Mask:
    first = begin // 8
    read = np.frombuffer(held or b"", np.uint8)[first : -(-end // 8)]
    bits = np.unpackbits(read, bitorder="little")[begin - 8 * first : end - 8 * first]
    return bits.view(np.bool_)


def constant(value: Any, dtype: pa.DataType) -> pa.Scalar:
    """One value."""
    return of_values([value], dtype)[0]


def of_values(values: Iterable[Any], dtype: pa.DataType | None = None) -> pa.Array:
    """Python values as an Arrow array; without a type, in the one that pyarrow infers.

    >>> of_values([1, None]).type, of_values(["a", None], pa.string()).to_pylist()
    (DataType(int64), ['a', None])
    """
    given = list(values)
    kinds = set(map(type, given)) - {type(None)}
    if len(kinds) == 1 and (convert := CONVERT.get(next(iter(kinds)))) is not None:
        found = convert(given)
        if found is not None and dtype in (None, found.type):
            return found
    if not kinds:
        return pa.nulls(len(given), dtype or pa.null())
    return pa.array(given, dtype)


def _of_plain(kind: type[Any], nothing: Any) -> Callable[[list[Any]], pa.Array | None]:
    def convert(values: list[Any]) -> pa.Array | None:
        try:
            held = np.array([nothing if value is None else value for value in values], kind)
        except OverflowError:
            return None
        return of_numbers(held, np.array([value is None for value in values]))

    return convert


def _of_texts(values: list[Any]) -> pa.Array | None:
    try:
        texts = [b"" if value is None else value.encode() for value in values]
    except UnicodeEncodeError:
        return None
    ends = np.cumsum([0, *map(len, texts)])
    if ends[-1] > np.iinfo(np.int32).max:
        return None
    is_null = np.array([value is None for value in values])
    validity = _packed(~is_null) if is_null.any() else None
    held = [validity, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.string(), len(values), held)


def _of_instants(values: list[Any]) -> pa.Array | None:
    zones = {value.tzinfo for value in values if value is not None}
    if zones not in ({None}, {dt.UTC}):
        return None
    counts = [None if value is None else (value.replace(tzinfo=None) - EPOCH) // MICROSECOND for value in values]
    return of_values(counts).view(pa.timestamp("us", None if zones == {None} else "UTC"))


CONVERT: Mapping[type[Any], Callable[[list[Any]], pa.Array | None]] = {
    bool: _of_plain(np.bool_, False),
    int: _of_plain(np.int64, 0),
    float: _of_plain(np.float64, 0.0),
    str: _of_texts,
    dt.datetime: _of_instants,
}
