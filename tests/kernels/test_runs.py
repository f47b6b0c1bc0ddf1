"""An automaton over columns finds what its formula means, whatever the order of rows, the slices and the partitions."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.automata.formulas import SECOND, by_reference, cases, stream, values_of

from tocsin import automata
from tocsin.algebra import nodes as alg
from tocsin.analysis import types
from tocsin.analysis.attributes import Schema
from tocsin.analysis.schema import BoundQuery
from tocsin.errors import TooManyMatchesError, TooMuchSearchError
from tocsin.expressions import interpret
from tocsin.kernels.expressions.slots import slot_values
from tocsin.kernels.model import Bag, Carried, Held, Matches, Rows
from tocsin.kernels.runs import functions
from tocsin.kernels.runs.automaton_tables import tables
from tocsin.kernels.runs.functions import replay_of, search_of
from tocsin.kernels.runs.object_registers import Objects
from tocsin.kernels.runs.packed import ways
from tocsin.kernels.runs.register_automaton import RunKernel, run_kernel
from tocsin.kernels.runs.writers import ReplayCode, SearchCode
from tocsin.language import expressions as ex
from tocsin.reference.stream import Event

ATTRIBUTES = {"ts": types.INTEGER, "x": types.INTEGER, "v": types.DOUBLE, "k": types.STRING}
POSITION = alg.Order.POSITION
A, B, C = (alg.Event(name, name) for name in "ABC")
SUM = (alg.Fold("s", "sum", "B", ("x",)),)


def kernel_of(node: alg.Node, window_us: int | None = None) -> RunKernel:
    pattern = node if window_us is None else alg.Within(node, window_us)
    schemas = {name: Schema.of(name, ATTRIBUTES) for name in alg.event_types(pattern)}
    times = dict.fromkeys(schemas, "ts")
    return run_kernel(BoundQuery(alg.Query(pattern), schemas, times, types.INTEGER, ()))


def rows_of(kernel: RunKernel, events: list[Event], *, width_us: int | None = None, seed: int = 0) -> Rows:
    """Events as a task gets them: in any order, with copies in the slices that must see them."""
    choose = random.Random(seed)
    sent = []
    for place, event in enumerate(events):
        flags = 0
        for source in kernel.sources:
            tests = [interpret.holds(one) for one in source.conditions]
            if event.type in source.types and all(test({source.variable: (event.row,)}) for test in tests):
                flags |= 1 << source.bit
        if flags or kernel.counts_every_event:
            own = None if width_us is None else event.ts // width_us
            sent.append((event, place, flags, own))
            if own is None or width_us is None:
                continue
            if event.ts < own * width_us + kernel.ahead_us:
                sent.append((event, place, flags, own - 1))
            if event.ts >= (own + 1) * width_us - kernel.back_us:
                sent.append((event, place, flags, own + 1))
    choose.shuffle(sent)
    numbers = {name: number for number, name in enumerate(kernel.types)}

    def event_of(row: int) -> dict[str, Any]:
        event = sent[row][0]
        return {name: event.row.get(name) for name in kernel.wants.get(event.type or "", ())}

    return Rows(
        ts=np.array([event.ts for event, *_ in sent], np.int64),
        flags=np.array([flags for _, _, flags, _ in sent], np.int64),
        slice=None if width_us is None else np.array([own for *_, own in sent], np.int64),
        width_us=width_us or 0,
        kinds=np.array([numbers.get(event.type or "", 0) for event, *_ in sent], np.int64),
        order=np.array([place for _, place, *_ in sent], np.int64),
        columns=tuple(column_of(one, [event for event, *_ in sent]) for one in kernel.carried),
        event=event_of,
    )


def column_of(carried: Carried, events: list[Event]) -> tuple[Any, Any]:
    """A column as a task makes it; the place of a text among all is its rank."""
    assert carried.held is not Held.RANK or carried.family is not None
    values = [
        slot_values(carried.expressions[event.type], [event.row], carried.held)[0]
        if event.type in carried.expressions
        else None
        for event in events
    ]
    if carried.held is Held.RANK:
        values = [None if value is None else ["p", "pq", "q"].index(value) for value in values]
    dtype = {Held.FLOAT: np.float64, Held.BOOLEAN: np.bool_}.get(carried.held, np.int64)
    nulls = np.array([value is None for value in values], np.bool_)
    known = np.array([0 if value is None else value for value in values], dtype)
    return known, nulls if nulls.any() else None


def shown(kernel: RunKernel, matches: Matches, rows: Rows, events: list[Event]) -> list[tuple[Any, ...]]:
    """Matches as `tests.automata.formulas` compares them; a match's positions are those of its times."""
    assert rows.order is not None
    found = []
    for number in range(len(matches)):
        held = []
        for name, one in matches.events.items():
            bag = one.rows[one.offsets[number] : one.offsets[number + 1]] if isinstance(one, Bag) else one[[number]]
            held += [(name, *event_of(kernel, matches, rows, events, int(row))) for row in bag if row >= 0]
        found.append((int(matches.start[number]), int(matches.end[number]), tuple(sorted(held))))
    return found


def event_of(kernel: RunKernel, matches: Matches, rows: Rows, events: list[Event], row: int) -> tuple[int, Any]:
    assert rows.order is not None
    made = matches.made
    if made is None or row < made.base:
        return int(rows.order[row]), ()
    row -= made.base
    place = int(rows.order[made.rows[row]])
    template = kernel.templates[int(made.templates[row])]
    if template.is_derived:
        columns = made.columns[int(made.templates[row])]
        values = {
            name: plain(column[int(made.places[row])])
            for name, column in zip(template.attributes, columns, strict=True)
        }
    else:
        values = {name: events[place].row.get(name) for name in template.attributes}
    return place, values_of(values)


def plain(value: Any) -> Any:
    """A value of an array as Python has it."""
    return None if value is np.ma.masked else value.item() if isinstance(value, np.generic) else value


def by_kernel(
    node: alg.Node,
    events: list[Event],
    window_us: int | None = None,
    *,
    generated: bool = True,
    jit: bool | None = None,
    **options: Any,
) -> list[tuple[Any, ...]]:
    kernel = kernel_of(node, window_us)
    if not generated:
        kernel = without_numbers(kernel)
    rows = rows_of(kernel, events, **options)
    return [one for matches in kernel.find(rows, jit=jit) for one in shown(kernel, matches, rows, events)]


def without_numbers(kernel: RunKernel) -> RunKernel:
    """The kernel with registers that are Python objects."""
    has_window = kernel.query.window_us is not None
    return replace(
        kernel,
        search=search_of(SearchCode(kernel.tables, Objects(kernel.tables), has_window)),
        graphing=search_of(SearchCode(kernel.tables, Objects(kernel.tables), has_window, as_graphs=True)),
        replaying=replay_of(ReplayCode(kernel.tables, Objects(kernel.tables))),
        wants=dict.fromkeys(kernel.types, tuple(ATTRIBUTES)),
    )


def expected(node: alg.Node, events: list[Event], window_us: int | None = None) -> list[tuple[Any, ...]]:
    found = by_reference(node, events, window_us)
    return sorted((events[start].ts, events[end].ts, held) for start, end, held in found)


def names_every_type(node: alg.Node) -> bool:
    return not any(isinstance(one, alg.Event) and one.type is None for one in node.walk())


def check(node: alg.Node, events: list[Event], window_us: int | None, seed: int) -> None:
    assume(names_every_type(node) and alg.event_types(node))
    wanted = expected(node, events, window_us)
    assert sorted(by_kernel(node, events, window_us, seed=seed, generated=False)) == wanted
    assert sorted(by_kernel(node, events, window_us, seed=seed, jit=False)) == wanted
    if window_us is not None:
        for width_us in (window_us, 2 * window_us):
            found = by_kernel(node, events, window_us, seed=seed, width_us=width_us, jit=False)
            assert sorted(found) == wanted


@settings(max_examples=400)
@given(**cases(), seed=st.integers(0, 9))
def test_a_kernel_finds_what_its_formula_means(
    node: alg.Node, events: list[Event], window_us: int | None, seed: int
) -> None:
    check(node, events, window_us, seed)


@pytest.mark.slow
@settings(max_examples=3000)
@given(**cases(depth=4), seed=st.integers(0, 9))
def test_deep_formulas_too(node: alg.Node, events: list[Event], window_us: int | None, seed: int) -> None:
    check(node, events, window_us, seed)


# --- graphs ---------------------------------------------------------------------------------------


def steps_of(kernel: RunKernel, rows: Rows, jit: bool | None) -> tuple[int, list[Any]]:
    """The number of matches that graphs tell, and the matches they are."""
    told, found = 0, []
    for some in kernel.graphs(rows, jit=jit):
        told += sum(some.counts)
        for number in range(len(some)):
            begin, end = some.offsets[number], some.offsets[number + 1]
            nodes = [column[begin:end].tolist() for column in (some.steps, some.events, some.before)]
            ended = list(ways(*nodes, int(some.roots[number])))
            assert min(rows.ts[start] for start, _ in ended) == rows.ts[some.starts[number]]
            found += [(start, int(some.ends[number]), tuple(path)) for start, path in ended]
    return told, sorted(found)


@settings(max_examples=200)
@given(**cases())
def test_graphs_hold_the_same_matches(node: alg.Node, events: list[Event], window_us: int | None) -> None:
    assume(names_every_type(node) and alg.event_types(node))
    kernel = kernel_of(node, window_us)
    assume(not kernel.tables.is_ambiguous)
    rows = rows_of(kernel, events)
    told, found = steps_of(without_numbers(kernel), rows_of(without_numbers(kernel), events), None)
    assert (told, found) == steps_of(kernel, rows, False)
    assert told == len(found) == len(set(found))
    if window_us is not None:
        by_end = kernel.as_graphs(dict.fromkeys(kernel.types, ()))
        sliced = rows_of(by_end, events, width_us=window_us)
        assert steps_of(by_end, sliced, False)[0] == told
        ends = [int(end) for some in by_end.graphs(sliced, jit=False) for end in some.ends]
        assert len({sliced.order[end] for end in ends}) == len(ends)
    giving = {step.number for step in kernel.tables.steps if step.gives}
    bound = [one for one in found if any(step in giving for step, _ in one[2])]
    assert len(bound) == sum(len(matches) for matches in kernel.find(rows, jit=False))


@pytest.mark.compiled
def test_a_graph_counts_what_nobody_could_list() -> None:
    node = alg.Sequence((A, alg.Repeat(B, 1, None, POSITION), C), POSITION)
    events = stream(("A", 0, {}), *(("B", second, {}) for second in range(1, 301)), ("C", 400, {}))
    kernel = kernel_of(node)
    for jit in (False, True):
        (some,) = kernel.graphs(rows_of(kernel, events), jit=jit)
        assert some.counts == [2**300 - 1]
        assert len(some.steps) <= 4 * len(events)


@pytest.mark.compiled
def test_compiled_code_finds_the_same() -> None:
    pattern = alg.Derive(alg.Sequence((A, alg.Repeat(B, 1, None, POSITION), C), POSITION), "y", SUM)
    above = ex.Every("y", ex.Comparison(">", ex.Attribute("y", ("s",)), ex.Literal(3)))
    choose = random.Random(5)
    rows = [(choose.choice("ABC"), second, {"x": choose.choice([0, 1, 2, None])}) for second in range(200)]
    events = stream(*rows)
    node = alg.Filter(pattern, above)
    plain = by_kernel(node, events, 12 * SECOND, jit=False)
    assert len(plain) > 100
    assert sorted(by_kernel(node, events, 12 * SECOND, jit=True)) == sorted(plain)
    kernel = kernel_of(node, 12 * SECOND)
    sent = rows_of(kernel, events)
    assert steps_of(kernel, sent, True) == steps_of(kernel, sent, False)


# --- tables ---------------------------------------------------------------------------------------


def table(node: alg.Node) -> Any:
    return tables(automata.automaton(node))


def test_an_aggregate_that_nobody_asks_decides_nothing() -> None:
    pattern = alg.Sequence((A, alg.Repeat(B, 1, None, POSITION), C), POSITION)
    plain, derived = table(pattern), table(alg.Derive(pattern, "y", SUM))
    assert derived.deciding == frozenset() and len(derived.replayed) == 1
    assert derived.automaton.number_of_states == plain.automaton.number_of_states
    asked = alg.Filter(
        alg.Derive(pattern, "y", SUM), ex.Every("y", ex.Comparison(">", ex.Attribute("y", ("s",)), ex.Literal(1)))
    )
    assert len(table(asked).deciding) == 1


def test_waiting_needs_no_event_that_nothing_asks_for() -> None:
    assert not table(alg.Sequence((A, B), POSITION)).counts_every_event
    assert table(alg.Adjacent((A, B))).counts_every_event
    assert table(alg.Sequence((A, alg.NextOf("B", "B")), POSITION)).counts_every_event


@pytest.mark.parametrize(
    ("node", "is_ambiguous"),
    [
        (alg.Sequence((A, B), POSITION), False),
        (alg.Repeat(A, 1, None, POSITION), False),
        (alg.Any((A, B)), False),
        (alg.Any((A, alg.Bind(A, "x"))), False),
        (alg.Project(alg.Sequence((A, alg.Repeat(B, 1, None, POSITION), A), POSITION), (("A", None),)), True),
        (alg.Project(alg.Adjacent((A, B)), (("A", None),)), False),
    ],
)
def test_what_may_be_found_twice(node: alg.Node, is_ambiguous: bool) -> None:
    assert table(node).is_ambiguous == is_ambiguous


# --- room and limits ------------------------------------------------------------------------------


@settings(max_examples=100)
@given(**cases())
def test_a_search_that_begins_without_room_finds_the_same(
    node: alg.Node, events: list[Event], window_us: int | None
) -> None:
    assume(names_every_type(node) and alg.event_types(node))
    wanted = expected(node, events, window_us)
    kernel = kernel_of(node, window_us)
    graphs = None if kernel.tables.is_ambiguous else steps_of(kernel, rows_of(kernel, events), False)
    with pytest.MonkeyPatch.context() as patched:
        for name in ("ROOM", "NODES", "RUNS", "DEPTH"):
            patched.setattr(functions, name, 1)
        for one in (kernel, without_numbers(kernel)):
            rows = rows_of(one, events)
            found = [each for matches in one.find(rows, jit=False) for each in shown(one, matches, rows, events)]
            assert sorted(found) == wanted
            assert graphs is None or steps_of(one, rows, False) == graphs


def test_many_runs_that_share_a_history_have_room_when_they_end() -> None:
    above = ex.Every("y", ex.Comparison(">", ex.Attribute("y", ("s",)), ex.Literal(10)))
    pattern = alg.Derive(alg.Sequence((A, alg.Repeat(B, 1, None, POSITION), C), POSITION), "y", SUM)
    node = alg.Project(alg.Filter(pattern, above), (("A", None), ("C", None)))
    # Every subset of the Bs has a sum of its own, and none is part of a match: 4,095 runs of one history.
    events = stream(("A", 0, {}), *(("B", 1 + place, {"x": 2**place}) for place in range(12)), ("C", 20, {}))
    assert [(start // SECOND, end // SECOND) for start, end, _ in by_kernel(node, events, jit=False)] == [(0, 20)]


def test_too_many_matches_of_one_start_are_an_error() -> None:
    node = alg.Sequence((A, alg.Repeat(B, 1, None, POSITION)), POSITION)
    events = stream(("A", 0, {}), *(("B", second, {}) for second in range(1, 9)))
    kernel = kernel_of(node)
    rows = rows_of(kernel, events)
    assert sum(len(matches) for matches in kernel.find(rows, most=255)) == 255
    for one in (kernel, without_numbers(kernel)):
        with pytest.raises(TooManyMatchesError, match="more than 254 matches"):
            list(one.find(rows_of(one, events), most=254))


def test_too_many_runs_that_a_filter_must_tell_apart_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    above = ex.Every("y", ex.Comparison(">", ex.Attribute("y", ("s",)), ex.Literal(10**6)))
    node = alg.Filter(alg.Derive(alg.Repeat(B, 1, None, POSITION), "y", SUM), above)
    events = stream(*(("B", second, {"x": 2**second}) for second in range(9)))  # every subset has a sum of its own
    kernel = kernel_of(node)
    monkeypatch.setattr(functions, "MOST_RUNS", 256)
    monkeypatch.setattr(functions, "MOST_PLAIN_RUNS", 256)
    for one in (kernel, without_numbers(kernel)):
        with pytest.raises(TooMuchSearchError, match="more than 256 partial matches differ"):
            list(one.find(rows_of(one, events), jit=False))
    monkeypatch.setattr(functions, "MOST_RUNS", 1 << 20)
    assert list(kernel.find(rows_of(kernel, events), jit=False)) == []
