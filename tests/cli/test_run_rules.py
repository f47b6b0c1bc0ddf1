"""`tocsin run` of programs: all rules in one run, a folder for each rule and template."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cli.support import PROGRAM, tocsin

SENT = "ts,account,amount\n0,1,500\n1000000,2,50\n2000000,3,900\n3000000,4,800\n"
CLAIMS = "ts,account\n4000000,1\n5000000,2\n"


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    given = {"p.parte": PROGRAM, "sent.csv": SENT, "claims.csv": CLAIMS, "known.csv": "account\n4\n7\n"}
    for name, text in given.items():
        (tmp_path / name).write_text(text)
    return [
        str(tmp_path / "p.parte"),
        *("--input", f"Sent={tmp_path}/sent.csv", "--input", f"Claim={tmp_path}/claims.csv"),
        *("--table", f"known={tmp_path}/known.csv"),
    ]


def test_rules_and_templates_have_a_folder_each_and_there_is_a_summary(
    spark: SparkSession, tmp_path: Path, options: list[str]
) -> None:
    out = tmp_path / "found"
    result = tocsin("run", *options, "--out", str(out), "--format", "json")
    assert result.exit_code == 0, result.output
    assert json.loads((out / "summary.json").read_text()) == {
        "rules": {"Large": 2, "Claimed": 2, "Unclaimed": 1},
        "events": {"Alert": 2},
    }
    large = spark.read.json(str(out / "rules" / "Large")).select("start", "s.account").collect()
    assert sorted(map(tuple, large)) == [(0, 1), (2_000_000, 3)]
    alerts = spark.read.json(str(out / "events" / "Alert")).select("ts", "account", "amount").collect()
    assert sorted(map(tuple, alerts)) == [(1_000_000, 1, 500), (3_000_000, 3, 900)]
    (unclaimed,) = spark.read.json(str(out / "rules" / "Unclaimed")).select("a.account").collect()
    assert tuple(unclaimed) == (3,)
    assert "rules/, events/ and summary.json" in result.stderr
    again = tocsin("run", *options, "--out", str(out))
    assert "is there already" in again.output
    assert spark.catalog.listTables() == []


def test_the_memory_of_a_task_is_limited(spark: SparkSession, options: list[str]) -> None:
    result = tocsin("run", *options, "--max-task-memory", "1B", "--time-unit", "us")
    assert result.exit_code == 1
    assert result.stderr.startswith("[TOO_MUCH_MEMORY]"), result.stderr


def test_without_out_the_matches_are_counted(spark: SparkSession, options: list[str]) -> None:
    result = tocsin("run", *options)
    assert result.exit_code == 0, result.output
    assert [line.split()[-2:] for line in result.stdout.replace("│", " ").splitlines() if "aimed" in line] == [
        ["Claimed", "2"],
        ["Unclaimed", "1"],
    ]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--strategy", "join"], "Rules do not run with the strategy `join`"),
        (["--max-matches-per-start", "0"], "`--max-matches-per-start 0` is not a positive integer"),
        (["--table", "known=nowhere.csv"], "twice for the event type `known`"),
    ],
)
def test_what_is_for_patterns_is_refused(options: list[str], more: list[str], message: str) -> None:
    result = tocsin("run", *options, *more)
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())


def test_missing_inputs_and_what_does_not_run_are_told_before_spark_starts(tmp_path: Path) -> None:
    path, events = tmp_path / "p.parte", tmp_path / "a.csv"
    events.write_text("ts,x\n1,1\n")
    path.write_text(
        "template A { x : Integer } template B { x : Integer } rule R where a : A b : B when b in a [0 s, 1 s]"
    )
    result = tocsin("run", str(path), "--input", f"A={events}")
    assert "reads events of `B`, and no `--input` has them" in " ".join(result.output.split())
    pattern = tmp_path / "p.sase"
    pattern.write_text("PATTERN A a")
    result = tocsin("run", str(pattern), "--input", f"A={events}", "--table", f"t={events}")
    assert "`--table` is for programs of rules" in result.output
