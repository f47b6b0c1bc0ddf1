"""Unpack what shards emit into rows, the third stage of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Unpacking:
    """The function that unpacks batches: a row has all columns, and is NULL in those that its batch does not bring."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of batches."""
        for batch in batches:
            for written in batch.column(0):
                with pa.ipc.open_stream(written.as_buffer()) as stream:
                    for found in stream:
                        yield self._complete(found)

    def _complete(self, found: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            self._typed(found.column(field.name), field.type)
            if field.name in found.schema.names
            else pa.nulls(found.num_rows, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, names=self.schema.names)

    @staticmethod
    def _typed(column: pa.Array, wanted: pa.DataType) -> pa.Array:
        """The values in the type of all batches: events bring the session's zone along, and NULLs of others do not."""
        return column if column.type == wanted else column.cast(wanted)
