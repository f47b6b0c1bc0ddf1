"""Programs of rules on Spark's streams: the rows of the sink are those of the batch, each once."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.rules.support import ABC, compiled
from tests.streaming.queries import FAR, Folder, observed, settings
from tests.streaming.support import arrivals

import tocsin
from tocsin import datasets, errors, reference

S = 1_000_000
TEMPLATES = "".join(f"template {name} {{ k : String, x : Integer }}\n" for name in "ABE")
LOW = """
    rule Low where a : A b : B { k = a.k } when b in a [0 s, 4 s]
      then emit E at a.timestamp with { k = a.k, x = a.x + b.x }
"""
HIGH = """
    rule High where e : E no a : A { k = e.k } when no a in e [1 s, 5 s]
    rule All where e : E all f : E { k = e.k, count(f) >= 2 } when all f in e [0 s, 3 s]
"""
KEYED = TEMPLATES + LOW + HIGH
LOOSE = f"""{TEMPLATES}
    rule Low where a : A b : B {{ x = a.x }} when b in a [0 s, 4 s]
      then emit E at max(a.timestamp, b.timestamp) with {{ k = lowered(b.k), x = a.x + 1 }}
    rule High where e : E a : A {{ k = e.k }} c : A {{ x >= e.x }} when a in e [-4 s, 4 s] c in e [0 s, 4 s]
    rule Near where a : A {{ x >= 1 }} b : B when b in a [0 s, 4 s] select contiguous
    rule Beside where e : E a : A when a in e [0 s, 4 s] select contiguous
"""
COLUMNS = "type string, ts bigint, k string, x bigint"


def lowered(text: str | None) -> str | None:
    return None if text is None else text.lower()


def program(text: str) -> tocsin.Rules:
    return compiled(text, functions={"lowered": tocsin.function(lowered, gives="string", pure=True)})


def busy(chance: random.Random, size: int, types: str = "AB") -> list[dict[str, Any]]:
    return [
        {
            "type": chance.choice(types),
            "ts": chance.randrange(15) * S,
            "k": chance.choice(["p", "q", "Q", None]),
            "x": chance.choice([0, 1, 2, None]),
        }
        for _ in range(size)
    ]


def by_type(rows: list[dict[str, Any]], types: str = "AB") -> dict[str, list[dict[str, Any]]]:
    return {kind: [row for row in rows if row["type"] == kind] for kind in types}


def ids(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["rule"], []).append(row["match_id"])
    return {rule: sorted(own) for rule, own in found.items()}


def referenced(asked: tocsin.Rules, rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    found = reference.evaluate(asked, rows)
    return {name: sorted(row.match_id for row in own) for name, own in found.items() if own}


def given(frame: DataFrame, *, by_type: bool) -> DataFrame | dict[str, DataFrame]:
    """One DataFrame with a type column, or one for each type."""
    if not by_type:
        return frame
    return {name: frame.where(f"type = '{name}'").drop("type") for name in "ABE"}


@pytest.mark.parametrize(
    ("text", "store", "partitions", "split", "id", "strategy"),
    [
        (KEYED, "rocksdb", 2, False, None, "auto"),
        (LOOSE, "default", 1, True, None, "auto"),
        pytest.param(LOOSE, "rocksdb", 2, False, "x", "auto", marks=pytest.mark.slow),
        (KEYED, "default", 2, False, None, "aggregate"),
    ],
    ids=["keyed", "loose", "with_id", "aggregate"],
)
def test_requirement_46_a_stream_gives_the_matches_of_the_batch_over_a_restart(
    spark: SparkSession,
    tmp_path: Path,
    text: str,
    store: str,
    partitions: int,
    split: bool,
    id: str | None,
    strategy: str,
) -> None:
    """Keyed in two shards, without a key in one; events of a type that rules emit come from outside too."""
    chance = random.Random(text)
    rows, asked = busy(chance, 40, "AABBE"), program(text)
    with settings(spark, store=store, partitions=partitions):
        folder = Folder(spark, tmp_path, COLUMNS)

        def run() -> list[dict[str, Any]]:
            stream = folder.read()
            beats = stream.where("type = 'clock'").select("ts") if split else None
            options = {"lateness": "2 seconds", "heartbeats": beats, "id": id, "strategy": strategy}
            return observed(folder.run(asked.match(given(stream, by_type=split), **options)))

        order = arrivals([row["ts"] for row in rows], 2 * S, chance)
        ends = [0, *sorted(chance.sample(range(1, len(rows)), 2)), len(rows)]
        first, second, third = ([rows[place] for place in order[begin:end]] for begin, end in pairwise(ends))
        folder.add(first)
        folder.add(second)
        run()
        folder.add(third)
        folder.add([{"type": "clock", "ts": FAR}])
        told = run()  # a restart from the checkpoint
        found = folder.written()
        batch = asked.match(given(_whole(spark, rows), by_type=split), id=id)
        expected = [row.asDict(recursive=True) for row in batch.collect()]
    assert _plain(found) == _plain(expected)
    assert set(ids(found)) == {rule.name for rule in asked.program.rules}
    if id is None:
        assert ids(found) == _of_whole(asked, rows, "ABE" if split else asked.program.emitted)
    assert told[-1]["remembered"] == 0  # requirement 32
    assert sum(one["late"] for one in told) == 0


def test_repetitions_are_ordered_by_tie_columns(spark: SparkSession, tmp_path: Path) -> None:
    asked = program(TEMPLATES + "rule Rise where a : A b : B+ { k = a.k } when b in a [0 s, 4 s]")
    rows = [{"type": "A", "ts": 0, "k": "p", "x": 0}]
    rows += [{"type": "B", "ts": 1, "k": "p", "x": x} for x in (2, 0, 1)]
    with settings(spark, partitions=1):
        folder = Folder(spark, tmp_path, COLUMNS)
        folder.add(rows)
        folder.add([{"type": "clock", "ts": FAR}])
        folder.run(asked.match(folder.read(), lateness="0 seconds", tie="x"))
        found = folder.written()
        batch = asked.match(_whole(spark, rows), tie="x").count()
    wanted = reference.evaluate(asked, by_type(rows), tie="x")["Rise"]
    assert len(wanted) == batch == 7
    assert ids(found) == {"Rise": sorted(row["match_id"] for row in wanted)}


def _whole(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame([tuple(row.values()) for row in rows], COLUMNS)


def _plain(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(sorted(row.items(), key=lambda item: item[0])) for row in rows)


def _of_whole(asked: tocsin.Rules, rows: list[dict[str, Any]], bare: Iterable[str]) -> dict[str, list[str]]:
    """The ids of the reference; events of the `bare` types have no type column."""
    rows_of = by_type(rows, "ABE")
    for name in bare:
        rows_of[name] = [{column: row[column] for column in row if column != "type"} for row in rows_of[name]]
    return referenced(asked, rows_of)


def test_the_shipped_fraud_program_streams_as_it_runs_in_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    """All its rules over their trace: times with a zone, absences, a gathering, lists, a table."""
    asked = tocsin.rules(
        datasets.pattern_path("fraud").read_text("utf-8"), tables={"known_route": datasets.known_routes()}
    )
    rows = sorted(datasets.load("fraud"), key=lambda row: row["ts"])
    columns = dict.fromkeys(name for row in rows for name in row)
    frame = spark.createDataFrame(rows)
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    schema = ", ".join(f"{name} {kinds[name]}" for name in columns)
    with settings(spark, partitions=2):
        folder = Folder(spark, tmp_path, schema)
        said = [
            {name: value.isoformat() if isinstance(value, dt.datetime) else value for name, value in row.items()}
            for row in rows
        ]
        half = len(said) // 2
        folder.add(said[:half])
        folder.add(said[half:])
        end = rows[-1]["ts"] + dt.timedelta(days=60)
        folder.add([{"type": "clock", "ts": end.isoformat()}])
        folder.run(asked.match(folder.read(), lateness="1 minute"))
        found = folder.written()
        batch = [row.asDict(recursive=True) for row in asked.match(spark.createDataFrame(rows, schema)).collect()]
    assert ids(found) == ids(batch)
    assert _plain(found) == _plain(batch)
    assert set(ids(found)) == {rule.name for rule in asked.program.rules}


def test_the_limit_of_matches_is_settable_on_the_fraud_programs_stream(spark: SparkSession, tmp_path: Path) -> None:
    """A hub that sends 50 equal transfers has 19,600 ways to choose three: a larger limit lets the stream go on."""
    asked = tocsin.rules(
        datasets.pattern_path("fraud").read_text("utf-8"), tables={"known_route": datasets.known_routes()}
    )
    schema = (
        "type string, ts timestamp, id bigint, originator string, destination string, amount double, "
        "transaction_id bigint, reason string"
    )
    begin = dt.datetime(2018, 1, 1, tzinfo=dt.UTC)
    transfers = [("S", "HUB", 300.0), *(("HUB", f"R{number}", 100.0) for number in range(50))]
    rows: list[dict[str, Any]] = [
        {
            "type": "MoneyTransferred",
            "ts": (begin + dt.timedelta(minutes=number)).isoformat(),
            "id": number,
            "originator": one,
            "destination": other,
            "amount": amount,
        }
        for number, (one, other, amount) in enumerate(transfers)
    ]
    with settings(spark, partitions=1):
        folder = Folder(spark, tmp_path, schema)
        folder.add([*rows, {"type": "clock", "ts": (begin + dt.timedelta(days=60)).isoformat()}])
        options: dict[str, Any] = {"rules": ["FraudDiffusion"], "lateness": "1 minute"}
        with pytest.raises(Exception, match="TOO_MANY_MATCHES"):
            folder.run(asked.match(folder.read(), **options, max_matches_per_start=1_000))
        folder.run(asked.match(folder.read(), **options, max_matches_per_start=20_000))
        assert spark.read.parquet(str(tmp_path / "out")).count() == 19_600


def test_requirement_31_heartbeats_tell_what_is_missing_two_strata_high(spark: SparkSession, tmp_path: Path) -> None:
    """Vector 9.9 on inputs of their own: only the heartbeats move time on."""
    asked = compiled(
        f"""{ABC} template E {{ x : Integer }}
        rule Timeout where a : A no b : B {{ x = a.x }} when no b in a [0 s, 5 s]
          then emit E at a.timestamp + 5 seconds with {{ x = a.x }}
        rule Alarm where e : E no c : C {{ x = e.x }} when no c in e [0 s, 2 s]"""
    )
    with settings(spark):
        inputs = {name: Folder(spark, tmp_path / name, "ts bigint, x bigint") for name in "ABC"}
        beats = Folder(spark, tmp_path / "beats", "ts bigint")
        inputs["A"].add([{"ts": 0, "x": 7}])
        inputs["B"].add([])
        inputs["C"].add([])

        def run(at: int) -> list[str]:
            beats.add([{"ts": at}])
            frames = {name: folder.read() for name, folder in inputs.items()}
            inputs["A"].run(asked.match(frames, lateness="0 seconds", heartbeats=beats.read()))
            return sorted(row["rule"] for row in inputs["A"].written())

        assert run(5 * S) == []
        assert run(5 * S + 1) == ["Timeout"]
        assert run(7 * S) == ["Timeout"]
        assert run(7 * S + 1) == ["Alarm", "Timeout"]
        assert run(86_400 * S) == ["Alarm", "Timeout"]


def test_one_rule_late_events_and_the_state_of_another_program(spark: SparkSession, tmp_path: Path) -> None:
    asked = program(KEYED)
    with settings(spark, partitions=2):
        folder = Folder(spark, tmp_path, COLUMNS)
        folder.add([{"type": "A", "ts": 10 * S, "k": "p", "x": 1}, {"type": "A", "ts": None, "k": "p"}])
        folder.add([{"type": "B", "ts": 12 * S, "k": "p", "x": 2}, {"type": "Z", "ts": 40 * S}])
        folder.add([{"type": "B", "ts": 13 * S, "k": "p", "x": 3}])
        query = folder.run(asked.matches("High", folder.read(), lateness="1 second", late=True))
        rows = folder.written()
        told = observed(query)
        with pytest.raises(Exception, match="STATE_MISMATCH"):
            folder.add([{"type": "B", "ts": 50 * S, "k": "p", "x": 3}])
            folder.run(
                program(KEYED.replace("[1 s, 5 s]", "[1 s, 6 s]")).matches(
                    "High", folder.read(), lateness="1 s", late=True
                )
            )
    assert [row["late"] for row in rows if row["late"]] == ['{"type":"B","ts":13000000,"k":"p","x":3}']
    assert [row["e"] for row in rows if row["e"]] == [{"ts": 10 * S, "k": "p", "x": 3}]
    assert [sum(one[name] for one in told) for name in ("seen", "bad", "events", "late", "matches")] == [5, 1, 2, 1, 1]


def test_what_rules_emit_is_handed_over_durably_and_once(spark: SparkSession, tmp_path: Path) -> None:
    """Two queries: the events of the first are files, which the second reads; both restart in the middle."""
    low, high = compiled(TEMPLATES + LOW), compiled(TEMPLATES + HIGH)
    rows = sorted(busy(random.Random(5), 30), key=lambda row: row["ts"])
    with settings(spark, partitions=2):
        first, second = Folder(spark, tmp_path / "low", COLUMNS), Folder(spark, tmp_path / "high")

        def run() -> None:
            first.run(low.events("E", first.read(), lateness="0 seconds"))
            source = spark.readStream.schema(COLUMNS).json(str(first.path / "in"))
            events = spark.readStream.schema("ts bigint, k string, x bigint").parquet(str(first.path / "out"))
            given = {"A": source.where("type = 'A'").drop("type"), "E": events}
            beats = source.where("type = 'clock'").select("ts")
            # What is handed over comes up to four seconds after its own time: so far apart are the events of Low.
            second.run(high.match(given, lateness="4 seconds", heartbeats=beats))

        first.add(rows[:15])
        run()
        first.add([*rows[15:], {"type": "clock", "ts": FAR}])
        run()
        run()  # nothing new, and nothing twice
        found = second.written()
    expected = referenced(compiled(KEYED), by_type(rows))
    expected.pop("Low")
    assert ids(found) == expected
    assert set(expected) == {"High", "All"}


ASKING = f"""{TEMPLATES}
    rule Low where a : A {{ known(x) }} b : B {{ k = a.k, not known(x) }} when b in a [0 s, 4 s]
      then emit E at a.timestamp with {{ k = a.k, x = a.x }}
    rule High where e : E a : A {{ k = e.k, known(x) }} no b : B {{ k = e.k, known(x) }}
      when a in e [0 s, 4 s] no b in e [1 s, 3 s]
"""


@pytest.mark.parametrize("split", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_tables_that_are_dataframes_are_joined_to_the_events(spark: SparkSession, tmp_path: Path, split: bool) -> None:
    """NULLs of events and of the table are UNKNOWN, as in the batch; a stream is no table."""
    rows = busy(random.Random(3), 60, "AABBE")
    table = [(1,), (2,)] if split else [(1,), (None,)]  # with a NULL nothing is known not to be there
    asked = compiled(ASKING, tables={"known": spark.createDataFrame(table, "x bigint")})
    with settings(spark, partitions=2):
        folder = Folder(spark, tmp_path, COLUMNS)
        folder.add(rows[:30])
        folder.add([*rows[30:], *({"type": kind, "ts": FAR, "k": "z"} for kind in "ABE")])
        folder.run(asked.match(given(folder.read(), by_type=split), lateness="20 s"))
        batch = asked.match(given(_whole(spark, rows), by_type=split))
        expected = [row.asDict(recursive=True) for row in batch.collect()]
    assert _plain(folder.written()) == _plain(expected)
    assert {row["rule"] for row in expected} == ({"Low", "High"} if split else {"High"})
    stream = Folder(spark, tmp_path / "table", "x bigint").read()
    with pytest.raises(errors.InvalidInputError, match="`known` is a stream"):
        compiled(ASKING, tables={"known": stream}).match(given(folder.read(), by_type=split), lateness="20 s")


def test_what_does_not_run_on_streams_is_told_before_it_starts(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.createDataFrame([(1,)], "x bigint")
    text = """template A { x : Integer } template E { x : Integer }
        rule R where a : A then emit E at a.timestamp with { x = a.x }"""
    asked = compiled(f"{text} rule S where e : E {{ known(x) }}", tables={"known": table})
    folder = Folder(spark, tmp_path, "ts bigint, x bigint")
    with pytest.raises(errors.UnsupportedError, match="about `E`, which rules emit"):
        asked.match({"A": folder.read()}, lateness="1 second")
    assert "rule S, not on streams" in str(asked.check())
    with pytest.raises(errors.InvalidOptionError, match="How late"):
        compiled("template A { x : Integer } rule R where a : A").match({"A": folder.read()})


@pytest.mark.parametrize("whole", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_rates_of_a_program_are_guarded_and_bound_what_all_strata_remember(
    spark: SparkSession, tmp_path: Path, whole: bool
) -> None:
    """Rows that no rule takes are counted too, and so are those of a type that rules emit as well."""
    asked = program(KEYED)
    rates = {"A": "2/s", "B": "1/s", "E": "1/s"}
    rows = [{"type": kind, "ts": at * S, "k": "p", "x": at} for at in range(12) for kind in "AABE"]
    with settings(spark, partitions=2):
        folder = Folder(spark, tmp_path, COLUMNS)
        for begin in range(0, len(rows), 12):
            folder.add(rows[begin : begin + 12])
        folder.add([{"type": "B", "ts": 11 * S + 5, "k": None, "x": 1}, {"type": "E", "ts": 12 * S, "k": None}])
        folder.add([{"type": kind, "ts": FAR, "k": "z", "x": 0} for kind in "ABE"])
        inputs = given(folder.read(), by_type=not whole)
        told = observed(folder.run(asked.match(inputs, lateness="0 s", rates=rates)))
    known = asked.check(rates=rates, streaming=True)
    assert known.events is not None
    (bound,) = {one["bound"] for one in told}
    assert 0 < max(one["remembered"] for one in told) <= bound <= known.events
    assert [one["over"] for one in told[:-2]] == [{"A": 0, "B": 0, "E": 0}] * (len(told) - 2)
    assert [one["over"]["B"] for one in told[-2:]] == [1, 0]


@pytest.mark.parametrize("whole", [True, False])
def test_what_rules_emit_and_others_send_has_no_bound_without_a_rate(
    spark: SparkSession, tmp_path: Path, whole: bool
) -> None:
    """In one DataFrame of all types the guard tells of those that are sent. What multiplies beyond numbers has none."""
    asked, rates = program(KEYED), {"A": "2/s", "B": "1/s"}
    with settings(spark):
        folder = Folder(spark, tmp_path, COLUMNS)
        folder.add([{"type": "E", "ts": at, "k": "p", "x": 0} for at in range(5)])
        told = observed(folder.run(asked.match(given(folder.read(), by_type=not whole), lateness="0 s", rates=rates)))
        assert [one.get("bound") is not None for one in told] == [whole] * len(told)
        assert [one["over"] for one in told] == [{"A": 0, "B": 0, **({"E": 5} if whole else {})}]
        others = [f"x{at}" for at in range(9)]
        large = program(
            f"""{TEMPLATES} rule R where a : A {" ".join(f"{name} : A" for name in others)}
            when {" ".join(f"{name} in a [0 s, 1 day]" for name in others)}
            then emit E at a.timestamp with {{ k = a.k, x = a.x }}
            rule S where e : E a : A when a in e [0 s, 1 day]"""
        )
        huge = Folder(spark, tmp_path / "huge", COLUMNS)
        huge.add([{"type": "A", "ts": 1}])
        (one,) = observed(huge.run(large.match(huge.read(), rules=["S"], lateness="0 s", rates={"A": "100/s"})))
        assert one.get("bound") is None


def test_rates_of_what_a_program_does_not_know_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    asked, frame = program(KEYED), Folder(spark, tmp_path, COLUMNS).read()
    with pytest.raises(errors.QueryErrors) as caught:
        asked.match(frame, rates={"Bee": "1/s"}, lateness="soon")
    assert [type(one) for one in caught.value.errors] == [errors.InvalidOptionError] * 2
    with pytest.raises(errors.InvalidOptionError, match="no template of the program"):
        asked.events("E", frame, rates={"Bee": "1/s"})
