"""A kernel finds what the reference finds, whatever the pattern, the policies, the slices and the code it runs as."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fitting import queries_with_streams

import tocsin
from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.analysis.schema import bind
from tocsin.expressions.interpret import holds
from tocsin.kernels.expressions.slots import slot_values
from tocsin.kernels.model import Bag, Held, Rows
from tocsin.kernels.nested_loops import Kernel, kernel
from tocsin.language import ast
from tocsin.optimizer.choose import MOST_MATCHES_PER_START
from tocsin.reference.stream import ingest
from tocsin.testing.strategies import ATTRIBUTES, LANGUAGE, TYPES, Streams


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


def found(
    made: Kernel,
    streams: Streams,
    slice_us: int | None = None,
    jit: bool = False,
    most: int = MOST_MATCHES_PER_START,
) -> Counter[Any]:
    """The matches as multisets of values, which is all that tells them apart."""
    rows, inputs = rows_of(made, streams, slice_us)
    counted: Counter[Any] = Counter()
    for matches in made.find(rows, jit=jit, most=most):
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


def bare(query: ast.Query) -> ast.Query:
    """The query without its outputs, which are not a kernel's business."""
    return ast.Query(**{**vars(query), "returns": (), "having": None, "group_by": (), "every": None})


def check(query: ast.Query, rows: Streams, slice_us: int | None, jit: bool = False) -> int:
    """The kernel finds what the reference finds; how much that is."""
    pattern = compiled(bare(query))
    try:
        made = kernel_of(bare(query))
    except errors.UnsupportedError:
        return 0
    wanted = expected(pattern.query, reference.evaluate(pattern, rows))
    width = None if slice_us is None or not made.can_slice else max(slice_us, made.ahead_us, made.back_us)
    assert found(made, rows, width, jit) == wanted
    return wanted.total()


SLICES = st.sampled_from([None, 1, 700_001, 3_000_000])


def check_all(case: tuple[ast.Query, list[Streams]], slice_us: int | None, matched: Counter[bool]) -> None:
    query, several = case
    for rows in several:
        matched[check(query, rows, slice_us) > 0] += 1


@pytest.mark.long
def test_a_kernel_finds_what_the_reference_finds() -> None:
    matched: Counter[bool] = Counter()

    @settings(max_examples=200)
    @given(case=queries_with_streams(LANGUAGE, number=3), slice_us=SLICES)
    def run(case: tuple[ast.Query, list[Streams]], slice_us: int | None) -> None:
        check_all(case, slice_us, matched)

    run()
    # An engine that finds nothing must not look good.
    assert matched[True] >= 0.4 * matched.total()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_kernel_finds_what_the_reference_finds_in_many_streams() -> None:
    matched: Counter[bool] = Counter()

    @settings(max_examples=1_500)
    @given(case=queries_with_streams(LANGUAGE, number=4, max_events=11), slice_us=SLICES)
    def run(case: tuple[ast.Query, list[Streams]], slice_us: int | None) -> None:
        check_all(case, slice_us, matched)

    run()
    assert matched[True] >= 2_000


# What random queries met once and may not meet again.
CORNERS = [
    # A branch that iterates, iterated itself: two copies of one event, or one copy of two (R34).
    ("OR(A+ a, C c)+", "A1 A3 C2"),
    ("OR(A+ a, C c){1,2}", "A1 A3 C2"),
    ("SEQ(OR(A+ a, C c)+, B b)", "A1 A3 C2 B4"),
    # A branch that binds nothing still has its absence.
    ("SEQ(OR(B b, SEQ(NOT B n, A* a)), C c) WITHIN 5 SECONDS", "B1 C3"),
    ("SEQ(OR(B b, SEQ(NOT B n, A* a)), C c) WITHIN 5 SECONDS", "A1 B2 C3"),
    ("SEQ(OR(B b, SEQ(NOT B n, A* a), SEQ(NOT C m, A* d)), C c) WITHIN 5 SECONDS", "B1 C3"),
]


@pytest.mark.parametrize(("pattern", "stream"), CORNERS)
@pytest.mark.parametrize("slice_us", [None, 1])
def test_corners_that_random_queries_have_met(pattern: str, stream: str, slice_us: int | None) -> None:
    rows: Streams = {name: [] for name in TYPES}
    for word in stream.split():
        rows[word[0]].append({"ts": int(word[1:]) * 1_000_000, "k": "p", "x": 1, "v": 1.0})
    check(compiled(f"PATTERN {pattern}").tree, rows, slice_us)


# Steps that random queries seldom reach with a stream that tells right from wrong.
STEPS = [
    "SEQ(AND(A a, B b), C c) WITHIN 5 SECONDS",
    "SEQ(C c, AND(A+ a, SEQ(B b, C d))) WITHIN 6 SECONDS",
    "AND(A+ a, B b) WITHIN 3 SECONDS",
    "AND(A+ a, B b) WITHIN 3000001 MICROSECONDS",
    "AND(SEQ(A a, B b)+, C c) WITHIN 4 SECONDS",
    "SEQ(A a, B+ b, C c) WHERE b[last].x > 1 WITHIN 6 SECONDS SEMANTICS next",
    "SEQ(A a, B b, C c) WHERE COUNT(b.x) = 1 AND SUM(b.x) > 1 WITHIN 6 SECONDS SEMANTICS next",
    "SEQ(A a, B b) WITHIN 6 SECONDS SEMANTICS contiguous",
    "SEQ(A a, B+ b) PARTITION BY k WITHIN 6 SECONDS SEMANTICS partition-contiguous",
    "SEQ(A a, NOT B n, C* c) WITHIN 4 SECONDS",
    "SEQ(NOT B n, A* a, NOT B m, C c) WHERE m.x < c.x WITHIN 4 SECONDS",
    "SEQ(A+ a, NOT B n, C c) WHERE n.x > a.x WITHIN 5 SECONDS",
    "SEQ(A a, NOT B n, C c)+ WHERE n.x >= a.x WITHIN 6 SECONDS",
    "OR(SEQ(A a, B b), SEQ(A a, C b)) WITHIN 4 SECONDS",
    "OR(A a, OR(A a, B a)) WITHIN 4 SECONDS",
    "SEQ(A* a, B* b){1,2} WHERE COUNT(a) < 3 WITHIN 4 SECONDS",
    "SEQ(A a, B b)+ WHERE a[i].x <= b[i].x AND b[i].v > a[i-1].v WITHIN 5 SECONDS",
]


@pytest.mark.parametrize("text", STEPS)
@pytest.mark.parametrize("slice_us", [None, 1])
def test_every_step_agrees_on_busy_streams(text: str, slice_us: int | None) -> None:
    tree = compiled(f"PATTERN {text}").tree
    matched = 0
    for seed in range(40):
        choose = random.Random(seed)
        rows: Streams = {name: [] for name in TYPES}
        for _ in range(10):
            row = {"k": choose.choice("pq"), "x": choose.choice([0, 1, 2, None]), "v": choose.choice([0.5, 1.0])}
            rows[choose.choice(TYPES)].append({"ts": choose.randint(0, 6) * 1_000_000, **row})
        check(tree, rows, slice_us)
        matched += bool(reference.evaluate(compiled(tree), rows))
    assert matched >= 5


def test_an_absence_in_a_copy_asks_all_events_of_the_match() -> None:
    """R10: the blocker must be larger than both a's, not only than the one of its own copy."""
    row = {"k": "p", "v": 1.0}
    rows: Streams = {
        "A": [{"ts": 1, "x": 0, **row}, {"ts": 4, "x": 2, **row}],
        "B": [{"ts": 2, "x": 1, **row}],
        "C": [{"ts": 3, "x": 1, **row}, {"ts": 5, "x": 1, **row}],
    }
    check(compiled("PATTERN SEQ(A a, NOT B n, C c)+ WHERE n.x >= a.x WITHIN 1 SECOND").tree, rows, None)
