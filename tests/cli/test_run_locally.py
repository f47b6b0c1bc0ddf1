"""`tocsin run --engine local`: what Spark gives, without it."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.cli.support import PROGRAM, done, tocsin

from tocsin import datasets

BANK = (str(datasets.pattern_path("bank")), "--input", str(datasets.path("bank")))
LOCAL = ("--engine", "local")
PAIR = "PATTERN SEQ(A a, B b) WITHIN 10 US\n"
EVENTS = 'type,ts,note\nA,1,"say ""hi"""\nB,2,\nA,,lost\nB,50,\n'


def refused(*arguments: str) -> str:
    result = tocsin(*arguments)
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "pair.sase").write_text(PAIR)
    (tmp_path / "events.csv").write_text(EVENTS)
    return str(tmp_path / "pair.sase"), "--input", str(tmp_path / "events.csv"), *LOCAL


# Every type of column, and texts that need care in files.
VALUES = [
    {"x": 1.0, "s": 'say "hi", all', "n": 1, "t": "2026-01-31T08:00:00.5+01:00", "b": True},
    {"x": 12345678.5, "s": "", "n": -(2**63), "o": {"y": 1e-5, "t": "2026-01-31 08:00"}, "l": [1, None]},
    {"x": 1e-7, "s": "two\nlines\t\u0001", "d": 12345678901234567890, "o": {"z": "ä\\😀"}, "l": []},
    {"x": 1.5e300, "s": "\\", "ll": [{"m": ["x", None]}, {"m": None}], "n": 7},
    {"x": -0.0, "s": None, "l": None},
]


@pytest.fixture
def every(tmp_path: Path) -> tuple[str, ...]:
    """A pattern over events with values of every type, and its inputs."""
    rows = [{"type": "AB"[place % 2], "ts": place, **row} for place, row in enumerate([*VALUES, *reversed(VALUES)])]
    (tmp_path / "every.sase").write_text(
        "PATTERN SEQ(A a, B b) WITHIN 2 US RETURN a, b.x, b.s, b.n, b.t, b.b, b.d, b.l"
    )
    (tmp_path / "events.json").write_text("\n".join(map(json.dumps, rows)))
    return str(tmp_path / "every.sase"), "--input", str(tmp_path / "events.json")


def rows_of(spark: SparkSession, out: Path, kind: str) -> list[str]:
    if kind == "csv":  # Spark's own writer cuts off blanks around texts, which are kept here
        texts = [part.read_bytes().decode() for part in out.glob("*.csv")]
        rows = [row for text in texts for row in csv.DictReader(io.StringIO(text, newline=""))]
        return sorted(repr({name: normal(value) for name, value in row.items()}) for row in rows)
    return sorted(map(repr, spark.read.format(kind).load(str(out)).collect()))


def normal(value: str) -> Any:
    """A cell as a number or JSON, where it is one."""
    try:
        return json.loads(value)
    except ValueError:
        return value.strip("".join(map(chr, range(33))))


@pytest.mark.parametrize("kind", ["parquet", "json", "csv"])
def test_files_have_the_rows_and_types_that_spark_writes(
    spark: SparkSession, every: tuple[str, ...], tmp_path: Path, kind: str
) -> None:
    for engine in ("spark", "local"):
        result = done("run", *every, "--engine", engine, "--out", str(tmp_path / engine), "--format", kind)
        assert "10 events read; 5 matches." in result.stderr
        assert f"Written to {tmp_path / engine} as {kind}." in result.stderr
    assert len(rows_of(spark, tmp_path / "local", kind)) == 5
    assert rows_of(spark, tmp_path / "local", kind) == rows_of(spark, tmp_path / "spark", kind)
    if kind == "parquet":
        schemas = [spark.read.parquet(str(tmp_path / engine)).schema for engine in ("local", "spark")]
        assert schemas[0] == schemas[1]


def test_what_is_shown_is_what_spark_shows(spark: SparkSession, every: tuple[str, ...]) -> None:
    for arguments in (BANK, every):
        local, on_spark = done("run", *arguments, *LOCAL), done("run", *arguments)
        assert local.stdout == on_spark.stdout
        assert local.stderr == on_spark.stderr


def test_groups_are_shown_in_the_order_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "p.sase").write_text("PATTERN A a RETURN a.k, COUNT(*) AS n, AVG(a.x) AS mean GROUP BY a.k")
    (tmp_path / "a.csv").write_text("ts,k,x\n1,b,1\n2,,2\n3,a,\n4,b,2\n")
    arguments = (str(tmp_path / "p.sase"), "--input", f"A={tmp_path / 'a.csv'}")
    assert done("run", *arguments, *LOCAL).stdout == done("run", *arguments).stdout


def test_many_matches_are_shown_in_part(tmp_path: Path) -> None:
    (tmp_path / "p.sase").write_text("PATTERN A a")
    (tmp_path / "a.csv").write_text("ts\n" + "\n".join(map(str, range(25))))
    result = done("run", str(tmp_path / "p.sase"), "--input", f"A={tmp_path / 'a.csv'}", *LOCAL)
    assert "The first 20 of 25; write all of them with --out PATH." in result.stderr


def test_events_without_a_time_are_counted(pair: tuple[str, ...]) -> None:
    assert "4 events read, 1 of them without a time; 1 match." in done("run", *pair).stderr


def test_events_of_every_input_count_where_they_matter(tmp_path: Path) -> None:
    (tmp_path / "p.acel").write_text("AGG y[n <- count(A)](A@+ : B) RETURN y.n")
    for name, times in {"A": (1, 2, 5), "B": (3, 7), "X": (6,)}.items():
        (tmp_path / f"{name}.csv").write_text("ts\n" + "\n".join(map(str, times)))
    inputs = [part for name in "ABX" for part in ("--input", f"{name}={tmp_path / name}.csv")]
    assert "6 events read; 2 matches." in done("run", str(tmp_path / "p.acel"), *inputs, *LOCAL).stderr


def test_an_existing_result_is_kept_replaced_or_extended_as_asked(pair: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    run = ("run", *pair, "--out", str(out))
    done(*run)
    assert "is there already" in refused(*run)
    assert pq.read_table(out).num_rows == 1
    done(*run, "--mode", "append")
    assert pq.read_table(out).num_rows == 2
    done(*run, "--mode", "overwrite")
    assert pq.read_table(out).num_rows == 1
    assert sorted(path.name for path in out.parent.iterdir()) == ["out"]


def test_a_run_that_fails_changes_nothing(pair: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done("run", *pair, "--out", str(out))
    Path(pair[2]).write_text("type,ts,note\nA,1,x\nB,2,y,one too many\n")
    assert "[INPUT_NOT_READABLE]" in refused("run", *pair, "--out", str(out), "--mode", "overwrite")
    assert pq.read_table(out).num_rows == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.csv", "out", "pair.sase"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--rate", "A=1/s"), "`--rate` has no effect with `--engine local`"),
        (("--strategy", "join"), "The strategy `join` is Spark's and does not run with `--engine local`"),
        (("--strategy", "trend", "--max-matches-per-start", "5"), "`--max-matches-per-start` has no effect with"),
        (("--out", "s3://bucket/out"), "`s3://bucket/out` is a URL, and the local engine writes files of this machine"),
        (("--format", "xml"), "There is no format `xml`"),
        (("--time", "at"), "There is no time column `at`"),
        (("--type-column", "kind"), "There is no type column `kind`"),
        (("--tie", "seq"), "Choose one with `--tie`"),
        (("--id", "nr"), "Choose one with `--id`"),
        (("--max-task-memory", "1B"), "[TOO_MUCH_MEMORY]"),
        (("--engine", "flink"), "`--engine flink` is none of 'spark', 'local'"),
    ],
)
def test_what_does_not_run_or_has_no_effect_is_refused_by_name(
    pair: tuple[str, ...], more: tuple[str, ...], message: str
) -> None:
    assert message in refused("run", *pair, *more)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (("A=none.csv", "B={}"), "There is no file or directory `none.csv`"),
        (("A=*.none", "B={}"), "No file matches `*.none`"),
        (("A=s3://bucket/a.csv", "B={}"), "`s3://bucket/a.csv` is a URL, and the local engine reads files of this"),
        (("A={}",), "reads events of `B`, and no `--input` has them"),
    ],
)
def test_inputs_are_checked(tmp_path: Path, inputs: tuple[str, ...], message: str) -> None:
    (tmp_path / "p.sase").write_text(PAIR)
    (tmp_path / "a.csv").write_text("ts\n1\n")
    given = [part for each in inputs for part in ("--input", each.format(tmp_path / "a.csv"))]
    assert message in refused("run", str(tmp_path / "p.sase"), *given, *LOCAL)


def test_a_type_column_beside_inputs_by_type_is_refused(pair: tuple[str, ...]) -> None:
    shown = refused(
        "run", pair[0], "--input", f"A={pair[2]}", "--input", f"B={pair[2]}", "--type-column", "note", *LOCAL
    )
    assert "`--type-column` has no effect on one input for each event type" in shown


def test_wrong_variables_and_columns_that_a_file_has_not_are_reported_together(pair: tuple[str, ...]) -> None:
    Path(pair[0]).write_text("PATTERN SEQ(A a, B b) WHERE c.note = 'x' AND a.nope = 'y' WITHIN 10 US\n")
    for inputs in (pair[1:3], ("--input", f"A={pair[2]}", "--input", f"B={pair[2]}")):
        shown = refused("run", pair[0], *inputs, *LOCAL)
        assert "[UNKNOWN_VARIABLE] The pattern has no variable `c`." in shown
        assert "[UNKNOWN_ATTRIBUTE] Event type `A` has no attribute `nope`." in shown


def test_a_limit_is_told_in_words_of_the_shell(tmp_path: Path) -> None:
    (tmp_path / "p.sase").write_text("PATTERN A+ a WITHIN 1 SECOND")
    (tmp_path / "a.csv").write_text("ts\n" + "\n".join(map(str, range(10))))
    arguments = (str(tmp_path / "p.sase"), "--input", f"A={tmp_path / 'a.csv'}", "--time-unit", "us", *LOCAL)
    assert "10 events read; 1,023 matches." in done("run", *arguments).stderr
    shown = refused("run", *arguments, "--max-matches-per-start", "100")
    assert shown.startswith("[TOO_MANY_MATCHES]")
    assert "`--max-matches-per-start" in shown


# --- programs -------------------------------------------------------------------------------------

WITH_NEVER = f"{PROGRAM}rule Never where s : Sent {{ amount > 10000 }}\n"


@pytest.fixture
def program(tmp_path: Path) -> tuple[str, ...]:
    texts = {
        "p.parte": WITH_NEVER,
        "sent.csv": "ts,account,amount\n0,1,500\n1000000,2,50\n2000000,3,900\n3000000,4,800\n",
        "claims.csv": "ts,account\n4000000,1\n5000000,2\n",
        "known.csv": "account\n4\n7\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return (
        str(tmp_path / "p.parte"),
        *("--input", f"Sent={tmp_path}/sent.csv", "--input", f"Claim={tmp_path}/claims.csv"),
        *("--table", f"known={tmp_path}/known.csv", "--time-unit", "us"),
    )


def test_rules_have_the_folders_and_rows_that_spark_writes(
    spark: SparkSession, program: tuple[str, ...], tmp_path: Path
) -> None:
    for engine in ("spark", "local"):
        result = done("run", *program, "--engine", engine, "--out", str(tmp_path / engine), "--format", "json")
        assert "rules/, events/ and summary.json" in result.stderr
    summaries = [json.loads((tmp_path / engine / "summary.json").read_text()) for engine in ("spark", "local")]
    assert (
        summaries[1]
        == summaries[0]
        == {
            "rules": {"Large": 2, "Claimed": 2, "Never": 0, "Unclaimed": 1},
            "events": {"Alert": 2},
        }
    )
    for name in ("rules/Large", "rules/Claimed", "rules/Unclaimed", "events/Alert"):
        found = [rows_of(spark, tmp_path / engine / name, "json") for engine in ("spark", "local")]
        assert found[0] == found[1] != []


def test_without_out_the_matches_of_rules_are_counted(spark: SparkSession, program: tuple[str, ...]) -> None:
    assert done("run", *program, *LOCAL).stdout == done("run", *program).stdout


def test_rules_refuse_what_rules_have_not(program: tuple[str, ...]) -> None:
    assert "Rules do not run with the strategy `kernel`" in refused("run", *program, *LOCAL, "--strategy", "kernel")


def test_a_program_of_rules_reads_one_file_of_all_types(tmp_path: Path) -> None:
    arguments = (str(datasets.pattern_path("fraud")), "--input", str(datasets.path("fraud")))
    text = Path(arguments[0]).read_text()
    table = tmp_path / "known.csv"
    table.write_text("originator,destination\n" + "".join(f"{one},{two}\n" for one, two in datasets.known_routes()))
    assert "known_route" in text
    shown = done("run", *arguments, "--table", f"known_route={table}", *LOCAL).stdout
    assert [line.split()[-1] for line in shown.splitlines() if "FraudPassThrough" in line] == ["1"]


# --- a process of its own -------------------------------------------------------------------------

WITHOUT = """
import sys


class Refusing:
    @staticmethod
    def find_spec(name, *_):
        if name in ("pyspark", "py4j"):
            raise ModuleNotFoundError(name=name)


sys.meta_path.insert(0, Refusing)
from tocsin.cli import main

try:
    main()
finally:
    print(sorted({"pyspark", "py4j", "pandas", "numba"} & {*sys.modules}), file=sys.stderr)
"""


def test_a_real_run_needs_no_spark_no_java_and_no_pandas(tmp_path: Path) -> None:
    environment = {**os.environ, "NO_COLOR": "1", "JAVA_HOME": str(tmp_path), "PATH": ""}
    command = [sys.executable, "-c", WITHOUT, "run", *BANK, *LOCAL, "--out", str(tmp_path / "out"), "--format", "json"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "154 events read; 3 matches.",
        f"Written to {tmp_path / 'out'} as json.",
        "[]",
    ]
    lines = [line for part in (tmp_path / "out").glob("*.json") for line in part.read_text().splitlines()]
    assert sorted(json.loads(line)["user"] for line in lines) == ["chloe", "iris", "jonas"]


def test_a_run_inside_of_another_program_leaves_its_pandas_alone(pair: tuple[str, ...]) -> None:
    program = "import sys; from typer.testing import CliRunner; from tocsin.cli.app import app; "
    program += f"print(CliRunner().invoke(app, {['run', *pair]!r}).exit_code); import pyarrow as pa; "
    program += "print(len(pa.table({'x': [1]}).to_pandas()))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["0", "1"]
