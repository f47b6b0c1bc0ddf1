"""Matches of different rules have one schema as rows, whatever zone their events bring along."""

from __future__ import annotations

import pyarrow as pa

from tocsin.engines.stream.packing import Unpacking

WANTED = pa.schema({"a": pa.struct([("ts", pa.timestamp("us", "UTC"))]), "b": pa.struct([("x", pa.int64())])})


def parcel(**columns: pa.Array) -> bytes:
    batch = pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def test_all_batches_have_the_schema_that_was_declared() -> None:
    here = pa.struct([("ts", pa.timestamp("us", "Asia/Kolkata"))])
    parcels = [parcel(a=pa.array([{"ts": 7}], here)), parcel(b=pa.array([{"x": 1}, {"x": 2}]))]
    found = list(Unpacking(WANTED)(iter([pa.RecordBatch.from_arrays([pa.array(parcels)], names=["found"])])))
    assert [batch.schema for batch in found] == [WANTED, WANTED]
    assert [batch.column("a").null_count for batch in found] == [0, 2]
    assert found[0].column("a").field("ts").cast(pa.int64()).to_pylist() == [7]
