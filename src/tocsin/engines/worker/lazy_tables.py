"""Tables in pieces outside of memory, such as the row groups of files; what is asked for is read.

`LazyTable` has the methods of an Arrow table that a scan uses. So a search reads the columns that it needs, and others
only around the rows of matches. Pieces whose bounds exclude every row are not read at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.engines.worker.arrays import of_numbers
from tocsin.engines.worker.threads import in_threads
from tocsin.engines.worker.vectors import column_of
from tocsin.kernels.model import Integers, Source
from tocsin.language import expressions as ex

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


class Piece(Protocol):
    """Some rows of a table."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""

    def column(self, name: str) -> pa.ChunkedArray:
        """Read a column, in its type of the table."""

    def bounds(self, name: str) -> pa.Array | None:
        """Two values that all values of a column lie between, NaN left out; None if they are not known."""


class _Kept:
    """A piece whose columns stay in memory when they have been read."""

    def __init__(self, piece: Piece) -> None:
        self.piece, self._columns, self._lock = piece, dict[str, pa.ChunkedArray](), Lock()

    def column(self, name: str) -> pa.ChunkedArray:
        with self._lock:
            if name not in self._columns:
                self._columns[name] = self.piece.column(name)
            return self._columns[name]


class LazyTable:
    """A table of pieces."""

    def __init__(self, schema: pa.Schema, pieces: Iterable[Piece]) -> None:
        self.schema = schema
        self._pieces = [_Kept(piece) for piece in pieces]
        self._begins = np.cumsum([0, *(kept.piece.num_rows for kept in self._pieces)])

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(self._begins[-1])

    def column(self, name: str) -> pa.ChunkedArray:
        """All of a column."""
        return self._joined(name, self._pieces)

    def taken(self, name: str, rows: Integers) -> pa.ChunkedArray:
        """Some rows of a column; pieces without any of them are not read."""
        places = np.searchsorted(self._begins, rows, "right") - 1
        used = np.unique(places)
        sizes = np.diff(self._begins)[used]
        begins = np.zeros(len(self._pieces), np.int64)
        begins[used] = np.cumsum(sizes) - sizes  # of the pieces that are read, behind each other
        column = self._joined(name, [self._pieces[place] for place in used])
        return pc.take(column, of_numbers(rows - self._begins[places] + begins[places]))

    def slice(self, begin: int, length: int) -> LazySlice:
        """Some rows that are next to each other."""
        end = min(begin + length, self.num_rows)
        touched = (self._begins[1:] > begin) & (self._begins[:-1] < end)
        first = int(np.argmax(touched)) if touched.any() else 0
        some = self._pieces[first : first + int(touched.sum())]
        return LazySlice(self, some, begin - int(self._begins[first]), max(end - begin, 0))

    def whole(self) -> pa.Table:
        """All columns."""
        return pa.table({name: self.column(name) for name in self.column_names})

    def _joined(self, name: str, pieces: Sequence[_Kept]) -> pa.ChunkedArray:
        parts = in_threads(lambda kept: kept.column(name), pieces)
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], self.schema.field(name).type)


class LazySlice:
    """Some rows of a table that are next to each other."""

    def __init__(self, table: LazyTable, pieces: Sequence[_Kept], offset: int, num_rows: int) -> None:
        self.schema, self.num_rows = table.schema, num_rows
        self._pieces, self._offset = pieces, offset

    def column(self, name: str) -> pa.ChunkedArray:
        """The rows of a column; these are read one piece after the other, as other threads read other slices."""
        chunks = [chunk for kept in self._pieces for chunk in kept.column(name).chunks]
        return pa.chunked_array(chunks, self.schema.field(name).type).slice(self._offset, self.num_rows)

    def may_pass(self, sources: Iterable[Source]) -> bool:
        """Whether a row may pass the conditions of one of the sources, as far as bounds of columns tell."""
        return any(
            all(_may_hold(condition, kept.piece) for condition in source.conditions)
            for source in sources
            for kept in self._pieces
        )


def _may_hold(condition: ex.Expression, piece: Piece) -> bool:
    """Whether a condition may be TRUE for a row of a piece."""
    match condition:
        case ex.And():
            return all(_may_hold(each, piece) for each in condition.operands)
        case ex.Or():
            return any(_may_hold(each, piece) for each in condition.operands)
        case ex.Comparison(op=op, left=left, right=right) if op in FLIPPED:
            if isinstance(right, ex.Attribute):
                op, left, right = FLIPPED[op], right, left
            return _may_compare(op, left, right, piece)
        case ex.Between(negated=False):
            low, high = (">=", condition.low), ("<=", condition.high)
            return all(_may_compare(op, condition.operand, right, piece) for op, right in (low, high))
        case ex.In(negated=False):
            return any(_may_compare("=", condition.operand, option, piece) for option in condition.options)
        case _:
            return True


def _may_compare(op: str, left: ex.Expression, right: ex.Expression, piece: Piece) -> bool:
    """Whether `attribute op constant` may be TRUE; between two bounds it is where it is at one of them."""
    is_plain = isinstance(left, ex.Attribute) and len(left.path) == 1
    if not is_plain or not isinstance(right, ex.Literal | ex.Timestamp | ex.Date):
        return True
    assert isinstance(left, ex.Attribute)
    bounds = piece.bounds(left.path[0])
    if bounds is None:
        return True
    if pa.types.is_floating(bounds.type):  # NaN is above all numbers
        bounds = pa.concat_arrays([bounds[:1], of_numbers(np.array([np.nan])).cast(bounds.type)])
    if op == "=":
        return _may_compare("<=", left, right, piece) and _may_compare(">=", left, right, piece)
    column = pa.chunked_array([bounds])
    found = column_of(ex.Comparison(op, left, right), lambda _: column, 2)
    return found is None or any(found.to_pylist())
