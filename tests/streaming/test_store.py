"""Steps run on any store: here on one that keeps rows in small chunks, and returns the newest of them first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rules.support import compiled as compiled_rules
from tests.rules.support import with_streams
from tests.rules.test_sharing import drawn_program
from tests.streaming import texts
from tests.streaming.support import OPENED
from tests.streaming.test_programs import assert_as_the_reference as assert_program_as_the_reference
from tests.streaming.test_stepping import assert_as_the_reference, busy_streams, compiled

from tocsin.engines.stream.store import Affected, RowRetention, State
from tocsin.engines.worker.rows import array_of, integers
from tocsin.kernels.model import Mask
from tocsin.plan.due import Due
from tocsin.plan.manifest import BITS, SPENT
from tocsin.testing.streams import SEEDS, Streams

SIZE = 3


class ChunkStore:
    """Rows in chunks of three, each of which is read, marked and evicted by itself."""

    def __init__(self, state: State, retention: RowRetention) -> None:
        self.state, self.retention, self.clocks = state, retention, state.clocks
        rows = state.rows
        self.old = [] if rows is None else [rows.slice(at, SIZE) for at in range(0, rows.num_rows, SIZE)]
        self.new: list[pa.Table] = []

    @property
    def size(self) -> int:
        return sum(chunk.num_rows for chunk in (*self.old, *self.new))

    def append(self, rows: pa.Table) -> None:
        self.new += [rows.slice(at, SIZE) for at in range(0, rows.num_rows, SIZE)]

    def affected(self, due: Sequence[Due], before: int, now: int) -> Affected | None:
        assert due and before <= now
        if not self.size:
            return None
        news, olds = (sum(chunk.num_rows for chunk in chunks) for chunks in (self.new, self.old))
        rows = pa.concat_tables([*reversed(self.new), *reversed(self.old)])
        return Affected(rows.combine_chunks(), np.arange(news + olds) < news)

    def mark(self, spent: Mask) -> None:
        at = 0
        for chunks in (self.new, self.old):
            for number in reversed(range(len(chunks))):
                chunk = chunks[number]
                own, at = spent[at : at + chunk.num_rows], at + chunk.num_rows
                bits = integers(array_of(chunk, BITS))
                marked = pa.array(np.where(own, bits & ~3 | SPENT, bits))
                chunks[number] = chunk.set_column(chunk.column_names.index(BITS), BITS, marked)

    def expire(self, watermark: int) -> None:
        for chunks in (self.new, self.old):
            chunks[:] = [kept for chunk in chunks if (kept := self.retention(chunk, watermark)).num_rows]

    def commit(self) -> State:
        chunks = [*self.old, *self.new]
        return replace(self.state, clocks=self.clocks, rows=pa.concat_tables(chunks) if chunks else None)


@pytest.fixture(autouse=True, scope="module")
def in_chunks() -> Iterator[None]:
    OPENED.append(ChunkStore)
    yield
    OPENED.pop()


@pytest.mark.parametrize("text", texts.EVERYTHING)
@settings(max_examples=15)
@given(rows=busy_streams, seed=st.integers(0, 2**32), eager=st.booleans())
def test_patterns_give_the_reference(text: str, rows: Streams, seed: int, eager: bool) -> None:
    assert_as_the_reference(compiled(text), rows, seed, eager)


@settings(max_examples=15)
@given(**with_streams(drawn_program, max_events=9), seed=SEEDS)
def test_programs_give_the_reference(text: str, stream: Streams, seed: int) -> None:
    assert_program_as_the_reference(compiled_rules(text), stream, seed)
