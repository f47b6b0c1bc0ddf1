"""The workloads: their selectivity is as named, and every contestant finds what the reference finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.automaton import Automaton
from benchmarks.calibrate import Ready, calibrate, count, flags_of
from benchmarks.settings import QUICK, Settings, sessions, unknown
from benchmarks.shapes import Shape, Step, text_of
from benchmarks.streams import MILLISECOND, MINUTE, Events, Stream, generate, table_of
from benchmarks.workloads import iteration, sequence, workloads
from pyspark.sql import SparkSession

import tocsin

BY_NAME = {workload.name: workload for workload in workloads()}
# Few keys, so that 300 events hold matches of every shape. Times tie: a segment reports two values at once.
SMALL = generate.__wrapped__(Stream("merged", 3), 300, 7)
DENSE = replace(generate.__wrapped__(Stream("uniform", 4), 300, 7), ts=np.repeat(np.arange(150) * MILLISECOND, 2))
SHAPES = {
    "sequence": (DENSE, sequence(*"ABC", window_us=20 * MILLISECOND, gap=0.1)),
    "keyed": (DENSE, sequence(*"ABC", window_us=60 * MILLISECOND, keyed=True)),
    "thresholds": (SMALL, Shape((Step("e1", "Q", 12.0), Step("e2", "V", 90.0)), 5 * MINUTE)),
    "iteration": (DENSE, iteration("A", 3, window_us=20 * MILLISECOND)),
    "increasing": (DENSE, iteration("A", 4, window_us=60 * MILLISECOND, gap=0.0, keyed=True)),
    "absence": (DENSE, sequence("A", "B", "C", window_us=20 * MILLISECOND, absent="B")),
    "two absences": (
        SMALL,
        Shape(
            (
                Step("e1", "Q"),
                Step("n", "PM10", 20.0, is_negated=True),
                Step("e2", "V"),
                Step("m", "Temp", 14.0, is_negated=True),
                Step("e3", "Hum"),
            ),
            2 * MINUTE,
        ),
    ),
}


def ids_by_reference(shape: Shape, events: Events) -> set[tuple[int, ...]]:
    rows = table_of(events, time="bigint").to_pylist()
    types = {step.type for step in shape.steps}
    inputs = {type: [row for row in rows if row["type"] == type] for type in types}
    found = tocsin.reference.evaluate(tocsin.pattern(text_of(shape)), inputs)
    names = [name for name in shape.columns if name not in ("value", "key")]
    return {tuple(match["ids"]) if shape.is_iteration else tuple(match[name] for name in names) for match in found}


def ids_by_automaton(shape: Shape, events: Events) -> list[tuple[int, ...]]:
    flags, found = flags_of(shape, events), []
    groups = np.unique(events.keys) if shape.is_keyed else [None]
    for key in groups:
        rows = np.nonzero(flags if key is None else flags * (events.keys == key))[0]
        columns = (events.ts[rows], flags[rows], rows, events.values[rows])
        found += Automaton(shape).matches(zip(*(column.tolist() for column in columns), strict=True))
    return [match[2] for match in found]


@pytest.mark.parametrize("name", SHAPES)
def test_the_automaton_finds_what_the_reference_finds(name: str) -> None:
    events, shape = SHAPES[name]
    expected = ids_by_reference(shape, events)
    found = ids_by_automaton(shape, events)
    assert len(expected) > 3
    assert len(found) == len(set(found)) == count(shape, events)
    assert set(found) == expected


@pytest.mark.parametrize("name", ["sequence", "increasing", "two absences"])
def test_every_plan_finds_what_the_reference_finds(spark: SparkSession, tmp_path: Path, name: str) -> None:
    import pyarrow.parquet as pq
    from benchmarks.contestants import contestants

    events, shape = SHAPES[name]
    pq.write_table(table_of(events), tmp_path / "events.parquet")
    frame = spark.read.parquet(str(tmp_path))
    ready = Ready(BY_NAME["seq3-sparse"], shape, len(events), events.span_us, (1, 1), None)
    expected = ids_by_reference(shape, events)
    for contestant in contestants():
        if not contestant.finds_matches or contestant.name.startswith("tocsin"):
            continue
        for variant, build in contestant.variants.items():
            found = spark.createDataFrame(build(tmp_path, ready)) if contestant.reads_files else build(frame, ready)
            assert tuple(found.columns) == ("start", "end", *shape.columns)
            ids = [name for name in shape.columns if name not in ("value", "key")]
            rows = [tuple(row[0]) if shape.is_iteration else tuple(row) for row in found.select(*ids).collect()]
            assert len(rows) == len(set(rows)), (contestant.name, variant)
            assert set(rows) == expected, (contestant.name, variant)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("seq2-3%", 200_000),
        ("keys-seq-8", 200_000),
        ("keys-iter-8", 200_000),
        # Enough rows for some thirty matches: one event more or less is many matches more or less.
        ("nseq", 1_000_000),
        ("seqn-4", 1_000_000),
        ("iter-increasing-5", 1_000_000),
    ],
)
def test_the_selectivity_is_as_promised(tmp_path: Path, name: str, rows: int) -> None:
    workload = BY_NAME[name]
    ready = calibrate(workload, rows, cache=tmp_path)
    assert workload.selectivity is not None and ready.matches is not None
    assert ready.matches / rows == pytest.approx(workload.selectivity, rel=0.15)
    assert ready.matches == count(ready.shape, generate(workload.stream, rows, 1))
    assert calibrate(workload, rows, cache=tmp_path) == ready


def test_every_workload_is_a_query_that_tocsin_understands() -> None:
    schema = {"id": "bigint", "ts": "timestamp", "type": "string", "key": "int", "value": "double"}
    for workload in workloads():
        pattern = tocsin.pattern(text_of(workload.shape))
        columns = pattern.check({step.type: schema for step in workload.shape.steps}).columns
        assert tuple(name for name, _ in columns) == workload.shape.columns, workload.name


def test_workloads_are_chosen_by_name_and_sessions_of_other_cores_stand_apart() -> None:
    assert unknown(("seq3-*", "cores", "seq9")) == ["seq9"]
    assert unknown(QUICK) == []
    chosen = list(sessions(Settings(rows=(1_000,), only=("seqn-*", "cores"))))
    assert [one.cores for one in chosen] == [2, 1, 2]
    assert [job.workload for job in chosen[0].jobs] == [f"seqn-{n}" for n in range(2, 7)]
    assert Settings.from_json(Settings(only=("a", "b")).to_json()) == Settings(only=("a", "b"))


def test_the_command_explains_itself_and_refuses_names_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "--update-docs RESULT.json" in capsys.readouterr().out
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*BY_NAME, "cores", "memory"]
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "seq9"])
    assert "no workload is called seq9" in capsys.readouterr().err
