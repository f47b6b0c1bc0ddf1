"""`tocsin run` and `tocsin demo` on a local Spark."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.cli.support import done, tocsin

from tocsin import datasets
from tocsin.cli import files
from tocsin.errors import OutputNotWritableError

BANK = (str(datasets.pattern_path("bank")), "--input", str(datasets.path("bank")))
TAKEN_OVER = ["chloe", "iris", "jonas"]


@pytest.fixture
def pair(tmp_path: Path, spark: SparkSession) -> tuple[str, str]:
    pattern, events = tmp_path / "pair.sase", tmp_path / "events.csv"
    pattern.write_text("PATTERN SEQ(A a, B b) WITHIN 10 US\n")
    events.write_text('type,ts,note\nA,1,"say ""hi"""\nB,2,\nA,,lost\nB,50,\n')
    return str(pattern), str(events)


def test_without_out_the_first_matches_are_shown_and_everything_is_counted(spark: SparkSession) -> None:
    result = done("run", *BANK)
    assert all(user in result.stdout for user in TAKEN_OVER)
    assert "154 events read; 3 matches." in result.stderr


def test_events_without_a_time_are_counted(pair: tuple[str, str]) -> None:
    assert "4 events read, 1 of them without a time; 1 match." in done("run", pair[0], "--input", pair[1]).stderr


def test_many_matches_are_shown_in_part(tmp_path: Path, spark: SparkSession) -> None:
    pattern, events = tmp_path / "p.sase", tmp_path / "a.csv"
    pattern.write_text("PATTERN A a")
    events.write_text("ts\n" + "\n".join(map(str, range(25))))
    result = done("run", str(pattern), "--input", f"A={events}")
    assert "The first 20 of 25; write all of them with --out PATH." in result.stderr


def test_a_formula_of_acel_runs_with_the_events_of_every_input(tmp_path: Path, spark: SparkSession) -> None:
    pattern = tmp_path / "p.acel"
    pattern.write_text("AGG y[n <- count(A)](A@+ : B) RETURN y.n")
    for name, times in {"A": (1, 2, 5), "B": (3, 7), "X": (6,)}.items():
        (tmp_path / f"{name}.csv").write_text("ts\n" + "\n".join(map(str, times)))
    inputs = [part for name in "ABX" for part in ("--input", f"{name}={tmp_path / name}.csv")]
    result = done("run", str(pattern), *inputs)
    # The X stands between the last A and the last B.
    assert "6 events read; 2 matches." in result.stderr


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_matches_are_written_as_spark_writes_them(
    spark: SparkSession, pair: tuple[str, str], tmp_path: Path, format: str
) -> None:
    out = tmp_path / "deep" / "out"
    result = done("run", pair[0], "--input", pair[1], "--out", str(out), "--format", format)
    assert f"Written to {out} as {format}." in result.stderr
    (row,) = spark.read.format(format).load(str(out)).select("start", "end", "a.note").collect()
    assert tuple(row) == (1, 2, 'say "hi"')


def test_csv_has_a_header_and_events_as_json(pair: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done("run", pair[0], "--input", pair[1], "--out", str(out), "--format", "csv")
    (row,) = [row for part in out.glob("*.csv") for row in csv.DictReader(part.read_text().splitlines())]
    assert list(row) == ["match_id", "start", "end", "a", "b"]
    assert json.loads(row["a"]) == {"type": "A", "ts": 1, "note": 'say "hi"'}


@pytest.fixture
def precise(tmp_path: Path, spark: SparkSession) -> tuple[str, ...]:
    """Events a microsecond apart, in every form of time that JSON may have, beside text that only looks like times."""
    pattern, first, second = tmp_path / "p.sase", tmp_path / "a.json", tmp_path / "b.csv"
    pattern.write_text("PATTERN SEQ(A a, B b) WITHIN 10 US\n")
    first.write_text('{"ts": "2026-01-31T08:00:00.123456+01:00", "account": "12345", "door": "12:30"}\n')
    second.write_text('ts,note\n2026-01-31 07:00:00.123457,"two\nlines"\n2026-01-31T09:00:00Z,\n')
    return str(pattern), "--input", f"A={first}", "--input", f"B={second}"


def test_times_are_read_and_written_to_the_microsecond(precise: tuple[str, ...], tmp_path: Path) -> None:
    done("run", *precise, "--out", str(tmp_path / "json"), "--format", "json")
    (row,) = [json.loads(part.read_text()) for part in (tmp_path / "json").glob("*.json") if part.stat().st_size]
    start, end = "2026-01-31T07:00:00.123456Z", "2026-01-31T07:00:00.123457Z"
    assert (row["start"], row["end"]) == (start, end)
    assert row["a"] == {"account": "12345", "door": "12:30", "ts": start}
    assert row["b"] == {"ts": end, "note": "two\nlines"}
    done("run", *precise, "--out", str(tmp_path / "csv"), "--format", "csv")
    parts = [part.read_text().splitlines() for part in (tmp_path / "csv").glob("*.csv")]
    (cells,) = [row for lines in parts for row in csv.DictReader(lines)]
    assert (cells["start"], cells["end"]) == (start, end)
    assert (json.loads(cells["a"]), json.loads(cells["b"])) == (row["a"], row["b"])


def test_times_of_shown_events_keep_their_microseconds(precise: tuple[str, ...]) -> None:
    shown = done("run", *precise).stdout
    assert "2026-01-31 07:00:00.123456" in shown
    assert '"ts":"2026-01-31T07:00:00.123457Z"' in shown


def test_times_without_a_zone_are_written_without_one(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT timestamp_ntz'2026-01-31 08:00:00.000001' AS at")
    files.write(frame, str(tmp_path / "out"), "json", "error")
    (part,) = (tmp_path / "out").glob("*.json")
    assert json.loads(part.read_text()) == {"at": "2026-01-31T08:00:00.000001"}


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T08:00:00.5Z",
        "2026-01-31T08:00",
        "2026-1-31 8:00:00",
        "2026-01-31 08:00:00+00",
        "2026-01-31T08:00:00.123456789+0100",
        "2026-01-31 08:00:00 UTC",
        "2026-01-31T08:00:00 Europe/Paris",
    ],
)
def test_common_forms_of_time_are_understood(spark: SparkSession, tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"ts": text}))
    assert files.read(spark, str(tmp_path / "a.json")).dtypes == [("ts", "timestamp")]


def test_a_time_that_is_not_understood_is_told_in_words_of_the_shell(pair: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text('{"type": "A", "ts": "31.1.2026 8 Uhr"}\n')
    for command in ("run", "check", "explain"):
        result = tocsin(command, pair[0], "--input", str(tmp_path / "e.json"))
        assert result.exit_code == 1
        assert "[TIME_TYPE]" in result.stderr
        assert "`2026-01-31T08:00:00.123456Z`" in result.stderr
        assert "withColumn" not in result.stderr


def rows_in(spark: SparkSession, out: Path) -> int:
    return spark.read.parquet(str(out)).count()


def test_an_existing_result_is_kept_replaced_or_extended_as_asked(
    spark: SparkSession, pair: tuple[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run = ("run", pair[0], "--input", pair[1], "--out", str(out))
    done(*run)
    assert tocsin(*run).exit_code == 1
    assert rows_in(spark, out) == 1
    done(*run, "--mode", "append")
    assert rows_in(spark, out) == 2
    done(*run, "--mode", "overwrite")
    assert rows_in(spark, out) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.csv", "out", "pair.sase"]


def test_a_run_that_fails_changes_nothing(spark: SparkSession, pair: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = ("run", pair[0], "--input", pair[1], "--out", str(out))
    done(*run)
    Path(pair[1]).write_text("type,ts,note\nA,1,x\nB,2,y,one too many\n")
    result = tocsin(*run, "--mode", "overwrite")
    assert result.exit_code == 1
    assert "[INPUT_NOT_READABLE]" in result.stderr
    assert pair[1] in result.stderr
    assert "org.apache" not in result.stderr
    assert rows_in(spark, out) == 1
    result = tocsin(*run[:-1], str(tmp_path / "fresh"))
    assert result.exit_code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.csv", "out", "pair.sase"]


def test_an_interrupted_exchange_puts_the_old_result_back(
    spark: SparkSession, pair: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    done("run", pair[0], "--input", pair[1], "--out", str(out))
    rename = Path.rename

    def fails_once(self: Path, target: Path) -> Any:
        if ".new-" in self.name:
            raise OSError("disk gone")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails_once)
    with pytest.raises(OutputNotWritableError, match="disk gone"):
        files.write(spark.range(3).toDF("start"), str(out), "parquet", "overwrite")
    assert rows_in(spark, out) == 1


@pytest.mark.parametrize(
    ("name", "content"), [("bad.parquet", "garbage"), ("bad.json", '{"type": "A", "ts": 1}\n{"type": "B", "ts"\n')]
)
def test_a_corrupt_file_is_named(
    spark: SparkSession, pair: tuple[str, str], tmp_path: Path, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    result = tocsin("run", pair[0], "--input", str(tmp_path / name))
    assert result.exit_code == 1
    assert "[INPUT_NOT_READABLE]" in result.stderr
    assert name in result.stderr


def test_a_directory_of_files_is_one_input(spark: SparkSession, pair: tuple[str, str], tmp_path: Path) -> None:
    for name, path in (("A", "day=1"), ("B", "day=2")):
        folder = tmp_path / name / path
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text("ts\n1\n2\n")
    result = done("run", pair[0], "--input", f"A={tmp_path / 'A'}", "--input", f"B={tmp_path / 'B'}")
    assert "4 events read; 1 match." in result.stderr


def test_options_reach_the_library(spark: SparkSession, tmp_path: Path) -> None:
    pattern, events = tmp_path / "p.txt", tmp_path / "events.json"
    pattern.write_text("PATTERN SEQ(A a, B b) WITHIN 10 US RETURN a.nr AS first, b.nr AS second")
    events.write_text('{"kind": "A", "at": 1, "nr": 7}\n{"kind": "B", "at": 2, "nr": 8}\n')
    options = ("--time", "at", "--type-column", "kind", "--tie", "nr", "--id", "nr", "--language", "sase")
    assert "7" in done("run", str(pattern), "--input", str(events), *options).stdout
    result = tocsin("run", str(pattern), "--input", str(events), "--type-column", "kind")
    assert "There is no time column `ts`" in result.stderr
    assert "Choose one with `--time`." in result.stderr


def test_check_and_explain_look_at_files(spark: SparkSession) -> None:
    assert "amount   double" in done("check", *BANK, "--rate", "Login=5/s").stdout
    shown = done("explain", *BANK, "--mode", "formatted").stdout
    assert "== Spark plan ==" in shown
    assert "PushedFilters" in shown


@pytest.mark.parametrize("command", ["run", "check", "explain"])
def test_wrong_variables_and_columns_that_a_file_has_not_are_reported_together(
    command: str, pair: tuple[str, str]
) -> None:
    pattern, events = pair
    Path(pattern).write_text("PATTERN SEQ(A a, B b) WHERE c.note = 'x' AND a.nope = 'y' WITHIN 10 US\n")
    shown = tocsin(command, pattern, "--input", events)
    assert shown.exit_code == 1
    assert "[UNKNOWN_VARIABLE] The pattern has no variable `c`." in shown.stderr
    assert "[UNKNOWN_ATTRIBUTE] Event type `A` has no attribute `nope`." in shown.stderr


def test_check_requires_the_type_column_of_a_single_file(pair: tuple[str, str]) -> None:
    pattern, events = pair
    assert "`kind`" in tocsin("check", pattern, "--input", events, "--type-column", "kind").stderr


def test_the_demo_of_the_bank_draws_three_matches(spark: SparkSession) -> None:
    shown = done("demo", "bank").stdout
    assert "  PATTERN SEQ(Login l, PasswordChange p, Transfer t)" in shown.splitlines()
    assert shown.count("└──") >= 3
    for user in TAKEN_OVER:
        assert any(line.startswith(user) and "L" in line and "P" in line and "T" in line for line in shown.splitlines())
    assert "Starting Spark" in shown
    assert "154 events read; 3 matches." in shown


def test_the_demo_finds_the_three_frauds_and_says_why_others_are_none(spark: SparkSession, tmp_path: Path) -> None:
    saved = tmp_path / "deep" / "fraud.svg"
    shown = done("demo", "--picture", str(saved)).stdout
    lines = shown.splitlines()
    assert "  rule FraudPassThrough where" in lines
    assert "FraudPassThrough of 2 and 10: 120 € from C to D, then 120 € to N" in lines
    assert "FraudDiffusion of 4, 6, 9 and 200: 320 € from G to H, then 105 € to K, 105 € to M and 100 € to T" in lines
    assert (
        "FraudDiffusionInAll of 4, 6, 9 and 200: 320 € from G to H, then 105 € to K, 105 € to M and 100 € to T" in lines
    )
    refunds = "310 € from R to S, then 310 € to R, and a claim"
    assert [line for line in lines if line.startswith("FraudRefundScam of")] == [
        f"FraudRefundScam of 13 and 201: {refunds}",
        f"FraudRefundScam of 13 and 5003: {refunds}",
    ]
    assert any(line.startswith("account H") and "IOO" in line for line in lines)
    not_found = shown.partition("Not found, and why:")[2]
    assert "FraudPassThrough of 7 and 5004: 1240 € from E to F, then 1240 € to W; money usually goes" in not_found
    assert "FraudDiffusion of 5, 8, 12 and 37001" in not_found
    assert "more than 14 days lie between" in not_found
    assert "Nothing follows 1: 453 € to B." in not_found
    assert "== State ==" in shown
    assert saved.read_text(encoding="utf-8").count("FraudRefundScam") == 2


@pytest.mark.spark
def test_a_real_run_is_quiet_plain_and_exits_with_its_code(tmp_path: Path) -> None:
    environment = {**os.environ, "NO_COLOR": "1", "SPARK_LOCAL_DIRS": str(tmp_path)}
    command = [sys.executable, "-m", "tocsin.cli", "run", *BANK, "--out", str(tmp_path / "out"), "--format", "json"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "154 events read; 3 matches.",
        f"Written to {tmp_path / 'out'} as json.",
    ]
    lines = [line for part in (tmp_path / "out").glob("*.json") for line in part.read_text().splitlines()]
    users = [json.loads(line)["user"] for line in lines]
    assert sorted(users) == TAKEN_OVER


# --- strategies and limits ------------------------------------------------------------------------


def test_every_strategy_finds_the_same(spark: SparkSession) -> None:
    shown = [done("run", *BANK, "--strategy", name).stdout for name in ("join", "kernel", "sliding-window")]
    assert shown[0] == shown[1] == shown[2]


def test_a_limit_stops_a_pattern_that_explodes(tmp_path: Path, spark: SparkSession) -> None:
    pattern, events = tmp_path / "p.sase", tmp_path / "a.csv"
    pattern.write_text("PATTERN A+ a WITHIN 1 SECOND")
    events.write_text("ts\n" + "\n".join(map(str, range(10))))
    assert "10 events read; 1,023 matches." in done("run", str(pattern), "--input", f"A={events}").stderr
    options = ("--max-matches-per-start", "100", "--time-unit", "us")
    result = tocsin("run", str(pattern), "--input", f"A={events}", *options)
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "[TOO_MANY_MATCHES] From one event on, the iteration of `a` has more than 100 matches"
    )
    assert "`--max-matches-per-start` moves the limit" in result.stderr
    result = tocsin("run", str(pattern), "--input", f"A={events}", "--max-task-memory", "1kB", "--time-unit", "us")
    assert result.exit_code == 1
    assert result.stderr.startswith("[TOO_MUCH_MEMORY]"), result.stderr
    assert "`--max-task-memory` moves the limit" in result.stderr


def test_rates_reach_the_choice_of_a_plan(tmp_path: Path, spark: SparkSession) -> None:
    pattern, events = tmp_path / "p.sase", tmp_path / "a.csv"
    pattern.write_text("PATTERN A+ a WITHIN 1 SECOND")
    events.write_text("ts\n1\n")
    shown = done("run", str(pattern), "--input", f"A={events}", "--rate", "A=1000000/s")
    assert "[EXPLOSION_EXPECTED]" in shown.stderr


def test_contiguity_counts_the_events_of_every_input(tmp_path: Path, spark: SparkSession) -> None:
    pattern = tmp_path / "p.sase"
    pattern.write_text("PATTERN SEQ(A a, B b) WITHIN 10 US SEMANTICS contiguous")
    for name, times in {"A": (1, 5), "B": (2, 7), "C": (6,)}.items():
        (tmp_path / f"{name}.csv").write_text("ts\n" + "\n".join(map(str, times)))
    two = [argument for name in "AB" for argument in ("--input", f"{name}={tmp_path / name}.csv")]
    assert "2 matches." in done("run", str(pattern), *two).stderr
    assert "1 match." in done("run", str(pattern), *two, "--input", f"C={tmp_path}/C.csv").stderr


def test_rows_over_all_matches_are_shown_and_written(tmp_path: Path, spark: SparkSession) -> None:
    pattern, events = tmp_path / "p.sase", tmp_path / "events.csv"
    events.write_text("type,ts,k\nA,1,x\nA,2,y\nB,3,x\nB,4,x\n")
    pattern.write_text("PATTERN SEQ(A a, B b) WITHIN 10 US RETURN a.k, COUNT(*) AS n GROUP BY a.k")
    shown = done("run", str(pattern), "--input", str(events))
    assert [line.split() for line in shown.stdout.splitlines() if line.split()[-1:] == ["2"]] == [
        ["x", "2"],
        ["y", "2"],
    ]
    done("run", str(pattern), "--input", str(events), "--out", str(tmp_path / "out"), "--format", "json")
    written = spark.read.json(str(tmp_path / "out")).orderBy("k").collect()
    assert [tuple(row) for row in written] == [("x", 2), ("y", 2)]
