"""A kernel finds what the reference finds, whatever the pattern, the policies, the slices and the code it runs as."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tocsin
from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.analysis.schema import bind
from tocsin.kernels.expressions.interpret import holds, slot_values
from tocsin.kernels.kernel import Kernel, kernel
from tocsin.kernels.model import Bag, Held, Rows
from tocsin.language import ast
from tocsin.reference.stream import ingest
from tocsin.testing.strategies import ATTRIBUTES, EVERYTHING, TYPES, Streams, queries, streams


def compiled(query: str | ast.Query) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(query)


def kernel_of(query: str | ast.Query) -> Kernel:
    return kernel(bind(compiled(query).query, dict.fromkeys(TYPES, ATTRIBUTES)))


def rows_of(made: Kernel, streams: Streams, slice_us: int | None) -> tuple[Rows, list[dict[str, Any]]]:
    """The events of a stream as a task gets them, and the input row behind each."""
    events = ingest(streams, time="ts", tie=(), type_column="type")
    partition = made.query.partition
    kept: list[tuple[Any, int, int]] = []  # event, slice, partition
    keys: dict[Any, int] = {}
    for event in events:
        if any(event.row[name] is None for name in partition.same):
            continue
        key = keys.setdefault(tuple(event.row[name] for name in partition.attributes), len(keys))
        places = [0]
        if slice_us is not None:
            low, high = (event.ts - made.ahead_us) // slice_us, (event.ts + made.back_us) // slice_us
            places = list(range(low, high + 1))
        kept += [(event, place, key) for place in places]
    flags = []
    for event, _, _ in kept:
        bits = 0
        for source in made.sources:
            passes = event.type in source.types and all(
                holds(condition)({source.variable: [event.row]}) for condition in source.conditions
            )
            bits |= passes << source.bit
        flags.append(bits)
    columns = []
    for column in made.carried:
        values: list[Any] = []
        for event, _, _ in kept:
            expression = column.expressions.get(event.type or "")
            values += [None] if expression is None else slot_values(expression, [event.row], column.held)
        if column.held is Held.RANK:
            order = {value: rank for rank, value in enumerate(sorted({v for v in values if v is not None}))}
            values = [None if value is None else order[value] for value in values]
        dtype = {Held.FLOAT: np.float64, Held.BOOLEAN: np.bool_}.get(column.held, np.int64)
        nulls = np.array([value is None for value in values], dtype=np.bool_)
        filled = np.array([0 if value is None else value for value in values], dtype=dtype)
        columns.append((filled, nulls if nulls.any() else None))
    if made.crosses_partitions or not partition.attributes:
        order_of = {id(event): event.position for event in events}
    else:
        counted: Counter[Any] = Counter()
        order_of = {}
        for event in events:
            key = tuple(event.row[name] for name in partition.attributes)
            order_of[id(event)] = counted[key]
            counted[key] += 1
    integers = {"dtype": np.int64}
    rows = Rows(
        ts=np.array([event.ts for event, _, _ in kept], **integers),
        flags=np.array(flags, **integers),
        partition=np.array([key for _, _, key in kept], **integers) if partition.attributes else None,
        slice=np.array([place for _, place, _ in kept], **integers) if slice_us is not None else None,
        width_us=slice_us or 0,
        columns=tuple(columns),
        kinds=np.array([made.types.index(e.type) if e.type in made.types else -1 for e, _, _ in kept], **integers),
        order=np.array([order_of[id(event)] for event, _, _ in kept], **integers) if made.needs_order else None,
        event=lambda row: kept[row][0].row,
    )
    return rows, [event.row for event, _, _ in kept]


def found(made: Kernel, streams: Streams, slice_us: int | None = None, jit: bool = False) -> Counter[Any]:
    """The matches as multisets of values, which is all that tells them apart."""
    rows, inputs = rows_of(made, streams, slice_us)
    counted: Counter[Any] = Counter()
    for matches in made.find(rows, jit=jit):
        for number in range(len(matches)):
            bindings = []
            for variable, held in matches.events.items():
                if isinstance(held, Bag):
                    members = held.rows[held.offsets[number] : held.offsets[number + 1]].tolist()
                else:
                    members = [int(held[number])] if held[number] >= 0 else []
                bindings += [(variable, tuple(map(str, inputs[row].values()))) for row in members]
            counted[(int(matches.start[number]), int(matches.end[number]), tuple(sorted(bindings)))] += 1
    return counted


def expected(query: alg.Query, rows: list[dict[str, Any]]) -> Counter[Any]:
    counted: Counter[Any] = Counter()
    for row in rows:
        bindings = []
        for variable in query.variables:
            held = row[variable]
            members = held if isinstance(held, list) else [] if held is None else [held]
            bindings += [(variable, tuple(map(str, member.values()))) for member in members]
        counted[(row["start"], row["end"], tuple(sorted(bindings)))] += 1
    return counted


def check(query: ast.Query, rows: Streams, slice_us: int | None, jit: bool = False) -> None:
    bare = ast.Query(**{**vars(query), "returns": (), "having": None, "group_by": ()})
    pattern = compiled(bare)
    made = kernel_of(bare)
    wanted = expected(pattern.query, reference.evaluate(pattern, rows))
    width = None if slice_us is None or not made.can_slice else max(slice_us, made.ahead_us, made.back_us)
    assert found(made, rows, width, jit) == wanted


@settings(max_examples=400)
@given(query=queries(EVERYTHING), rows=streams(), slice_us=st.sampled_from([None, 1, 3_000_000]))
def test_a_kernel_finds_what_the_reference_finds(query: ast.Query, rows: Streams, slice_us: int | None) -> None:
    check(query, rows, slice_us)
