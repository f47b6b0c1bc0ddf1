"""The command line, without Spark: help, refusals, checks."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion
from tests.cli.support import tocsin
from tools import find_java
from typer.main import get_command
from typer.testing import CliRunner

from tocsin.api import EXPLAIN_MODES
from tocsin.cli import files, session
from tocsin.cli.app import app
from tocsin.cli.arguments import FLAGS, OF_PYTHON
from tocsin.cli.check import read_schema
from tocsin.cli.demo import coloured
from tocsin.errors import JavaNotFoundError
from tocsin.options import BATCH, OPTIONS, STREAM, strategies_in

SCHEMA = ["--schema", "A=ts timestamp, k string, x int", "--schema", "B=ts timestamp, k string, x int"]


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    path = tmp_path / "pairs.sase"
    path.write_text("PATTERN SEQ(A a, B b)\nWHERE a.k = b.k\nWITHIN 10 SECONDS\n")
    return str(path)


# --- help -----------------------------------------------------------------------------------------


def test_help_names_the_commands_and_the_first_step() -> None:
    shown = tocsin("--help").output
    assert all(command in shown for command in ("run", "check", "explain", "demo"))
    assert "tocsin demo" in shown


@pytest.mark.parametrize("command", ["run", "check", "explain"])
def test_help_of_a_command_teaches_by_example(command: str) -> None:
    assert f"tocsin {command} takeover.sase" in tocsin(command, "--help").output


@pytest.mark.parametrize("command", ["run", "check", "explain", "demo"])
def test_help_shows_one_example_per_line(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = [line.rstrip() for line in tocsin(command, "--help").output.splitlines()]
    examples = [line for line in lines if line.startswith(f"  tocsin {command}")]
    assert examples
    assert all(line.count(f"tocsin {command}") <= 1 for line in lines)
    # Nothing is broken by the width: an example that goes on says so.
    after = [lines[lines.index(example) + 1] for example in examples]
    assert all(example.endswith("\\") == bool(follows) for example, follows in zip(examples, after, strict=True))


def test_help_texts(snapshot: SnapshotAssertion) -> None:
    """As they are written, not as this version of rich sets them."""
    commands = get_command(app).commands
    options = {
        name: [f"{' '.join(one.opts)} = {one.default}: {getattr(one, 'help', '')}" for one in command.params]
        for name, command in commands.items()
    }
    texts = [f"tocsin {name}: {command.help}\n" + "\n".join(options[name]) for name, command in commands.items()]
    assert "\n\n".join(texts) == snapshot


@pytest.mark.parametrize(("command", "place"), [("run", BATCH), ("stream", STREAM)])
def test_help_in_a_new_process_lists_the_strategies(command: str, place: str) -> None:
    """Nothing but the command line has been imported there."""
    run = subprocess.run(
        [sys.executable, "-c", f"from tocsin.cli.app import app; app(['{command}', '--help'])"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "400"},
    )
    (line,) = (line for line in run.stdout.splitlines() if "--strategy" in line)
    assert all(name in line for name in strategies_in(place) if command == "run" or name != "join")


def test_every_option_of_match_has_a_flag() -> None:
    flags = {command: options_of(command) for command in ("run", "stream")}
    for name, option in OPTIONS.items():
        # A stream runs on Spark.
        assert (FLAGS.get(name) in flags["stream"]) == (name not in (*OF_PYTHON, "engine")), name
        assert (FLAGS.get(name) in flags["run"]) == (name not in OF_PYTHON and BATCH not in option.no_effect), name


def options_of(command: str) -> set[str]:
    found = get_command(app).commands[command].params
    return {flag for one in found for flag in one.opts}


@pytest.mark.parametrize("command", ["run", "stream"])
@pytest.mark.parametrize("size", ["many", "0GB", "1GB per key"])
def test_a_memory_that_is_none_is_refused_before_spark_starts(command: str, size: str, pattern: str) -> None:
    shown = refused(command, pattern, "--input", "A=a.csv", "--max-task-memory", size)
    assert f"`--max-task-memory {size}`" in shown


def test_help_of_explain_names_every_mode() -> None:
    assert all(mode in tocsin("explain", "--help").output for mode in EXPLAIN_MODES)


def test_the_version_is_told() -> None:
    assert tocsin("--version").output.startswith("tocsin 0.")


# --- refusals before Spark starts -----------------------------------------------------------------


def refused(*arguments: str, stdin: str | None = None) -> str:
    result = tocsin(*arguments, stdin=stdin)
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr
    return result.stderr


def test_a_missing_pattern_file_is_named_with_the_nearest(pattern: str) -> None:
    shown = refused("run", pattern.replace("pairs", "pair"), "--input", "A=x.csv")
    assert "[INPUT_NOT_READABLE]" in shown
    assert f"did you mean `{pattern}`?" in shown


def test_a_pattern_that_is_not_utf8_is_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "old.sase"
    path.write_bytes("PATTERN SEQ(A a, B b)\nWHERE a.k = 'für'\n".encode("latin1"))
    shown = refused("check", str(path))
    assert "[INPUT_NOT_READABLE]" in shown
    assert "is not UTF-8 text: line 2 holds the byte 0xfc." in shown
    assert "did you mean" not in shown
    result = CliRunner().invoke(app, ["check", "-"], input=path.read_bytes())
    assert result.exit_code == 1
    assert "Stdin is not UTF-8 text" in result.stderr


def test_a_pattern_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "marked.sase"
    path.write_bytes("PATTERN A a\r\nWITHIN 1 HOUR\r\n".encode("utf-8-sig"))
    assert tocsin("check", str(path)).exit_code == 0


def test_a_directory_is_no_pattern_file(tmp_path: Path) -> None:
    shown = refused("check", str(tmp_path))
    assert "Is a directory" in shown
    assert "did you mean" not in shown


def test_a_mistake_in_a_pattern_is_shown_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "wrong.sase"
    path.write_text("PATTERN SEQ(A a, B b)\nWHERE c.x > 1\n")
    shown = refused("check", str(path))
    assert "[UNKNOWN_VARIABLE]" in shown
    assert f"at {path}:2:7" in shown


def test_wrong_variables_and_wrong_attributes_are_reported_together() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE c.x > 1 AND a.nope > c.y AND b.k > 1 WITHIN 1 HOUR"
    shown = refused("check", "-", *SCHEMA, stdin=text)
    conditions = re.findall(r"^\[([A-Z_]+)\]", shown, re.MULTILINE)
    assert conditions == ["UNKNOWN_VARIABLE", "UNKNOWN_ATTRIBUTE", "UNKNOWN_VARIABLE", "TYPE_MISMATCH"]
    formula = "(A ; B) FILTER c[x > 1] AND A[nope > 1]"
    shown = refused("check", "-", "--language", "acel", *SCHEMA, stdin=formula)
    assert "binds no variable `c`" in shown
    assert "has no attribute `nope`" in shown


def test_a_wrong_variable_and_a_missing_file_are_reported_together(tmp_path: Path) -> None:
    missing = f"A={tmp_path / 'none.csv'}"
    for command in ("run", "check", "explain"):
        shown = refused(command, "-", "--input", missing, stdin="PATTERN A a WHERE c.x > 1 WITHIN 1 HOUR")
        assert "The pattern has no variable `c`." in shown
        assert f"There is no file or directory `{tmp_path / 'none.csv'}`." in shown


def test_an_event_type_is_described_once(pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.Inputs, "load", lambda *_: dict.fromkeys("AB"))
    shown = refused("check", pattern, *SCHEMA, "--input", "A=a.csv", "--input", "B=b.csv")
    assert "`--schema` and `--input` both describe the event type `A`." in shown


def test_check_and_explain_take_tie_columns(pattern: str) -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.ts = b.ts WITHIN 1 SECOND"
    assert "[CONTRADICTORY_DISTANCES]" in refused("check", "-", stdin=text)
    for schema in ([], SCHEMA):
        shown = tocsin("check", "-", *schema, "--tie", "x", stdin=text)
        assert shown.exit_code == 0, shown.output
    assert "Choose one with `--tie`." in refused("check", "-", *SCHEMA, "--tie", "seq", stdin=text)
    assert "`--tie` has no effect without `inputs`" in refused("explain", pattern, "--tie", "x")


@pytest.mark.parametrize(
    "options", [("--input", "A=a.csv"), ("--mode", "cost"), ("--time", "at"), ("--tie", "x"), ("--strategy", "join")]
)
def test_explain_of_a_program_refuses_what_is_said_of_inputs(tmp_path: Path, options: tuple[str, str]) -> None:
    path = tmp_path / "p.parte"
    path.write_text("template A { x : Integer } rule R where a : A { x > 5 }")
    assert f"`{options[0]}` has no effect on a program" in refused("explain", str(path), *options)


def test_options_of_check_and_explain_without_effect_are_refused(pattern: str) -> None:
    shown = refused("check", pattern, *SCHEMA, "--type-column", "kind")
    assert "`--type-column` has no effect without a single `--input`" in shown
    for command in ("check", "explain"):
        assert "`--function` has no effect on a pattern" in refused(command, pattern, "--function", "f=boolean")


def test_a_pattern_can_come_from_stdin() -> None:
    assert "<stdin>:1:9" in refused("check", "-", stdin="PATTERN QES(A a)")


def test_the_ending_tells_the_language(tmp_path: Path) -> None:
    path = tmp_path / "p.parte"
    path.write_text("template A { x : Integer } rule R where a : A { x > 5 } when then")
    shown = tocsin("check", str(path))
    assert shown.exit_code == 0, shown.output
    assert "Rule R" in shown.stdout


def test_a_formula_of_acel_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "p.acel"
    path.write_text("AGG y[top <- max(t.amount)](Login ; Transfer+ AS t) FILTER y[top > 1000] WITHIN 10 MINUTES")
    without = tocsin("check", str(path))
    assert without.exit_code == 0, without.output
    assert "batch on Spark, reference" in without.stdout
    shown = tocsin("explain", str(path))
    assert shown.exit_code == 0, shown.output
    assert "automaton: one shuffle, then events are read in order" in shown.stdout
    schemas = ["--schema", "Login=ts timestamp", "--schema", "Transfer=ts timestamp, amount double"]
    result = tocsin("check", str(path), *schemas)
    assert result.exit_code == 0, result.output
    assert "struct<top:double>" in result.stdout
    path.write_text("Transfer AS t FILTER t[amuont > 1000]")
    shown = refused("check", str(path), *schemas)
    assert "[UNKNOWN_ATTRIBUTE]" in shown
    assert f"at {path}:1:24" in shown


def test_what_spark_does_not_run_is_refused_before_it_starts(tmp_path: Path) -> None:
    path = tmp_path / "p.sase"
    path.write_text("AGG y[s <- sum(B.x)](A ; B+) WITHIN 6 us RETURN FIRST(y.s), COUNT(*)")
    shown = refused("run", str(path), "--language", "acel", "--input", "A=nowhere.csv")
    assert "[NOT_YET_SUPPORTED] FIRST over all matches" in shown


def test_a_language_can_be_told(pattern: str) -> None:
    assert "There is no SEQ in ACEL." in refused("check", pattern, "--language", "acel")
    assert "[INVALID_OPTION]" in refused("check", pattern, "--language", "sql")


def test_no_input_is_refused(pattern: str) -> None:
    assert "--input Login=logins.parquet" in refused("run", pattern)


def test_a_missing_input_is_named_with_the_nearest(pattern: str, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("ts\n")
    shown = refused("run", pattern, "--input", str(tmp_path / "event.csv"))
    assert "[INPUT_NOT_READABLE]" in shown
    assert "did you mean" in shown


def test_an_unknown_ending_is_refused(pattern: str, tmp_path: Path) -> None:
    (tmp_path / "events.xls").write_text("")
    assert "does not tell its format" in refused("run", pattern, "--input", str(tmp_path / "events.xls"))


def test_a_directory_of_two_formats_or_none_is_refused(pattern: str, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    assert "no data file" in refused("run", pattern, "--input", str(folder))
    (folder / "a.csv").write_text("ts\n")
    (folder / "b.json").write_text("{}\n")
    (folder / "_SUCCESS").write_text("")
    assert "different formats (csv, json)" in refused("run", pattern, "--input", str(folder))


def test_a_type_without_input_is_refused(pattern: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts\n")
    shown = refused("run", pattern, "--input", f"A={tmp_path / 'a.csv'}")
    assert "[UNKNOWN_EVENT_TYPE]" in shown
    assert "--input B=PATH" in shown


def test_two_inputs_need_their_types_once_each(pattern: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts\n")
    assert "does not say which event type" in refused("run", pattern, "--input", f"A={path}", "--input", str(path))
    assert "given twice" in refused("run", pattern, "--input", f"A={path}", "--input", f"A={path}")


def test_a_partition_directory_is_a_path_and_not_a_type(tmp_path: Path) -> None:
    assert files.Inputs.of([f"{tmp_path}/day=2026-01-01"]).paths == {files.SINGLE: f"{tmp_path}/day=2026-01-01"}
    assert files.Inputs.of(["A=day=1/a.csv"]).paths == {"A": "day=1/a.csv"}


@pytest.mark.parametrize("option", [("--format", "orc"), ("--mode", "replace")])
def test_unknown_formats_and_modes_are_refused(pattern: str, tmp_path: Path, option: tuple[str, str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts\n")
    shown = refused(
        "run", pattern, "--input", f"A={path}", "--input", f"B={path}", "--out", str(tmp_path / "out"), *option
    )
    assert "[INVALID_OPTION]" in shown
    # Also when nothing would be written.
    assert "[INVALID_OPTION]" in refused("run", pattern, "--input", f"A={path}", "--input", f"B={path}", *option)


def test_a_strategy_that_does_not_exist_and_a_limit_of_nothing_are_refused(pattern: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts\n")
    inputs = ("--input", f"A={path}", "--input", f"B={path}")
    assert "did you mean `kernel`?" in refused("run", pattern, *inputs, "--strategy", "kernels")
    assert "`--max-matches-per-start 0` is not a positive integer" in refused(
        "run", pattern, *inputs, "--max-matches-per-start", "0"
    )


def test_an_output_that_is_there_an_input_or_a_file_is_refused(pattern: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts\n")
    (tmp_path / "out").mkdir()
    inputs = ("--input", f"A={path}", "--input", f"B={path}")
    assert "is there already" in refused("run", pattern, *inputs, "--out", str(tmp_path / "out"))
    assert "is also an input" in refused("run", pattern, *inputs, "--out", str(path), "--mode", "overwrite")
    assert "is also an input" in refused("run", pattern, *inputs, "--out", str(tmp_path), "--mode", "overwrite")
    shown = refused("run", pattern, *inputs, "--out", pattern, "--mode", "overwrite")
    assert "is a file" in shown
    assert "cannot be written to" in refused("run", pattern, *inputs, "--out", f"{pattern}/below")


def test_a_directory_without_permission_is_refused(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts\n")
    monkeypatch.setattr(os, "access", lambda *_: False)
    shown = refused("run", pattern, "--input", f"A={path}", "--input", f"B={path}", "--out", str(tmp_path / "new"))
    assert "[OUTPUT_NOT_WRITABLE]" in shown


def test_an_output_whose_parent_cannot_be_made_is_refused(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts\n")
    inputs = ("--input", f"A={path}", "--input", f"B={path}")
    for out in (f"{pattern}/deep/below", str(tmp_path / ("x" * 300))):
        assert "[OUTPUT_NOT_WRITABLE]" in refused("run", pattern, *inputs, "--out", out)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.csv", "pairs.sase"]

    # As in /proc, where the permissions of the superuser promise what the file system refuses.
    def refuse(*_: object, **__: object) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(files.tempfile, "mkdtemp", refuse)
    shown = refused("run", pattern, *inputs, "--out", str(tmp_path / "nope" / "x"))
    assert "[OUTPUT_NOT_WRITABLE]" in shown
    assert "No such file or directory" in shown


def test_an_output_behind_a_closed_directory_is_refused(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts\n")
    closed, exists = tmp_path / "closed" / "out", Path.exists

    def entering(self: Path) -> bool:
        if self == closed:
            raise PermissionError(13, "Permission denied")
        return exists(self)

    monkeypatch.setattr(Path, "exists", entering)
    inputs = ("--input", f"A={path}", "--input", f"B={path}")
    assert "[OUTPUT_NOT_WRITABLE]" in refused("run", pattern, *inputs, "--out", str(closed))
    assert "[INPUT_NOT_READABLE]" in refused("run", pattern, "--input", str(closed))


# --- check and explain ----------------------------------------------------------------------------


def test_check_reports_distances_lifetimes_keys_and_state(pattern: str) -> None:
    result = tocsin("check", pattern, *SCHEMA, "--rate", "A=100/s", "--rate", "B=5/s", "--lateness", "10 seconds")
    assert result.exit_code == 0
    for heading in ("Result", "Temporal network", "Lifetimes", "Keys", "State", "Engines"):
        assert f"== {heading} ==" in result.stdout
    assert "2 000" in result.stdout


def test_check_without_schemas_tells_what_needs_none(pattern: str) -> None:
    result = tocsin("check", pattern, "--rate", "A=100/s", "--lateness", "10 seconds")
    assert result.exit_code == 0
    assert result.stdout.startswith("Names and structure are fine; add --schema TYPE=… or --input TYPE=PATH to check")
    for heading in ("Temporal network", "Lifetimes", "Keys", "State", "Engines"):
        assert f"== {heading} ==" in result.stdout
    assert "== Result ==" not in result.stdout
    assert "2 000" in result.stdout
    report = json.loads(tocsin("check", pattern, "--format", "json").stdout)
    assert report["ok"]
    assert report["columns"] is None
    assert report["lifetimes_us"] == {"a": 9_999_999, "b": 0}


@pytest.mark.parametrize(
    ("limit", "condition"),
    [("4GB", None), ("1 KiB", "STATE_TOO_LARGE"), ("1 kB per key", "STATE_UNKNOWN"), ("lots", "INVALID_OPTION")],
)
def test_check_refuses_what_may_keep_more_than_there_is_room_for(
    pattern: str, limit: str, condition: str | None
) -> None:
    arguments = ("check", pattern, *SCHEMA, "--rate", "A=100/s", "--rate", "B=5/s", "--max-state", limit)
    if condition is None:
        assert tocsin(*arguments).exit_code == 0
    else:
        assert f"[{condition}]" in refused(*arguments)


def test_a_limit_needs_rates_schemas_and_a_window(pattern: str) -> None:
    limit = ("--max-state", "4GB")
    assert "the rate of `A` is not known" in refused("check", pattern, *SCHEMA, *limit)
    assert "the schema of `A` is not known" in refused("check", pattern, "--rate", "A=1/s", "--rate", "B=1/s", *limit)
    assert "[UNBOUNDED_PATTERN]" in refused("check", "-", *limit, stdin="PATTERN SEQ(A a, B b)")


def test_a_limit_of_formulas_and_of_live_keys(tmp_path: Path) -> None:
    formula = tmp_path / "fall.acel"
    formula.write_text("(A AS x ; A AS y) WITHIN 10 SECONDS PARTITION BY k")
    given = ("check", str(formula), "--schema", "A=ts timestamp, k bigint", "--rate", "A=2/s per key")
    assert "[STATE_UNKNOWN]" in refused(*given, "--max-state", "1MB")
    assert "may keep 640 kB" in refused(*given, "--max-state", "64kB", "--live-keys", "1000")
    assert tocsin(*given, "--max-state", "1MB", "--live-keys", "1000").exit_code == 0
    assert tocsin(*given, "--max-state", "1kB per key").exit_code == 0


def test_check_without_schemas_names_the_unbounded_pair() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.k = b.k"
    assert "Unbounded: `a` and `b`" in tocsin("check", "-", stdin=text).stdout
    assert "[UNBOUNDED_PATTERN]" in refused("check", "-", "--streaming", stdin=text)


def test_check_speaks_json_to_tools(pattern: str) -> None:
    good = json.loads(tocsin("check", pattern, *SCHEMA, "--format", "json").stdout)
    assert good["ok"]
    assert good["lifetimes_us"] == {"a": 9_999_999, "b": 0}
    assert good["keys"] == ["a.k = b.k"]
    result = tocsin("check", pattern, "--schema", "A=ts timestamp", "--schema", "B=ts timestamp", "--format", "json")
    assert result.exit_code == 1
    bad = json.loads(result.stdout)
    assert not bad["ok"]
    assert [one["condition"] for one in bad["error"]["errors"]] == ["UNKNOWN_ATTRIBUTE"] * 2


def test_check_reads_schemas_from_json(pattern: str, tmp_path: Path) -> None:
    plain, spark = tmp_path / "a.json", tmp_path / "b.json"
    plain.write_text('{"ts": "timestamp", "k": "string"}')
    place = {"type": "struct", "fields": [{"name": "lat", "type": "double"}]}
    fields = [
        {"name": "ts", "type": "timestamp"},
        {"name": "k", "type": "string"},
        {"name": "place", "type": place},
        {"name": "tags", "type": {"type": "array", "elementType": "string", "containsNull": True}},
        {"name": "more", "type": {"type": "map", "keyType": "string", "valueType": "long"}},
    ]
    spark.write_text(json.dumps({"type": "struct", "fields": fields}))
    result = tocsin("check", pattern, "--schema", f"A={plain}", "--schema", f"B={spark}")
    assert result.exit_code == 0
    assert "place:struct<lat:double>" in result.stdout


@pytest.mark.parametrize("content", ["[1, 2]", "{", '{"fields": [{}]}', '{"ts": 5}'])
def test_a_file_that_is_no_schema_is_refused(pattern: str, tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    assert "is not a schema" in refused("check", pattern, "--schema", f"A={path}")


def test_a_schema_that_is_not_there_or_not_readable_is_refused(pattern: str) -> None:
    assert "[INPUT_NOT_READABLE]" in refused("check", pattern, "--schema", "A=nowhere.json")
    assert "not an attribute and its type" in refused("check", pattern, "--schema", "A=ts")
    assert "is not the name of a type" in refused("check", pattern, "--schema", "A=ts int<", *SCHEMA[2:])


def test_a_missing_comma_in_a_schema_is_refused(pattern: str) -> None:
    shown = refused("check", pattern, "--schema", "A=ts timestamp k string", *SCHEMA[2:])
    assert "[INVALID_OPTION]" in shown
    assert "--schema 'A=ts timestamp, k string'" in shown
    assert "is a comma missing?" in refused("check", pattern, "--schema", "A=ts timestamp, tags array<int> k string")


@pytest.mark.parametrize(
    "kind",
    [
        "timestamp not null",
        "double precision",
        "decimal(10, 2) NOT NULL COMMENT 'in euro'",
        "interval day to second",
        "struct<lat: double, at: struct<x: int>>",
        "map<string, array<int>>",
        "varchar(10) collate UTF8_LCASE",
    ],
)
def test_types_of_several_words_are_types(kind: str) -> None:
    assert read_schema("A", f"ts timestamp, x {kind}, k string") == {"ts": "timestamp", "x": kind, "k": "string"}


def test_times_of_a_wrong_type_are_told_in_words_of_the_shell(pattern: str) -> None:
    shown = refused("check", pattern, "--schema", "A=ts string, k string", "--schema", "B=ts string, k string")
    assert shown.count("[TIME_TYPE]") == 2
    assert "`2026-01-31T08:00:00.123456Z`" in shown
    assert "--time" in shown


def test_check_refuses_an_unbounded_pattern_for_a_stream() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.k = b.k"
    assert "Unbounded: `a` and `b`" in tocsin("check", "-", *SCHEMA, stdin=text).stdout
    shown = refused("check", "-", *SCHEMA, "--streaming", stdin=text)
    assert "[UNBOUNDED_PATTERN]" in shown


def test_check_tells_warnings_and_what_does_not_run_on_spark() -> None:
    text = "AGG y[s <- sum(B.x)](A ; B+) WITHIN (10 SECONDS, 1 SECOND) RETURN FIRST(y.s), COUNT(*)"
    result = tocsin("check", "-", *SCHEMA, "--language", "acel", stdin=text)
    assert result.exit_code == 0
    assert "[SLIDE_IGNORED]" in result.stderr
    assert "reference only: FIRST over all matches" in result.stdout
    assert "batch on Spark, reference" in tocsin("check", "-", *SCHEMA, stdin="PATTERN SEQ(A a, B+ b)").stdout
    assert "batch on Spark, reference" in tocsin("check", "-", stdin="PATTERN SEQ(A a, B+ b)").stdout


def test_rates_and_lateness_are_checked(pattern: str) -> None:
    shown = refused("check", pattern, *SCHEMA, "--rate", "A=fast", "--lateness", "soon")
    assert "A" in shown
    assert "`soon` is not a length of time" in shown
    assert "[INVALID_OPTION]" in refused("check", pattern, *SCHEMA, "--format", "xml")


def test_explain_shows_query_plan_network_and_strategy(pattern: str) -> None:
    shown = tocsin("explain", pattern).stdout
    for heading in ("Query", "Logical plan", "Temporal network", "Rules", "Statistics", "Strategy"):
        assert f"== {heading} ==" in shown
    assert "shuffle by time slices of 160 s" in shown


def test_explain_takes_a_strategy(pattern: str) -> None:
    assert "kernel: one scan and one shuffle" in tocsin("explain", pattern).stdout
    assert "kernel: asked for" in tocsin("explain", pattern, "--strategy", "kernel").stdout
    assert "did you mean `kernel`?" in refused("explain", pattern, "--strategy", "kernl")


# --- the environment ------------------------------------------------------------------------------


def test_without_the_extras_one_sentence_says_what_to_install() -> None:
    program = "import sys; sys.modules['typer'] = None; from tocsin.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "The command `tocsin` needs the packages typer and rich: pip install 'tocsin[cli]'\n"


def test_without_spark_one_sentence_says_what_to_install(pattern: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("type,ts,k\n")
    program = (
        "import sys; sys.modules['pyspark'] = sys.modules['pyspark.sql'] = None; from tocsin.cli import main; main()"
    )
    command = [sys.executable, "-c", program, "run", pattern, "--input", str(tmp_path / "a.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'tocsin[spark]'" in done.stderr


def _fake_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return home


def test_a_java_is_found_by_java_home_then_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named, on_path = _fake_java(tmp_path / "named", "21.0.1"), _fake_java(tmp_path / "path", "17.0.2")
    monkeypatch.setenv("JAVA_HOME", str(named))
    monkeypatch.setenv("PATH", f"{on_path / 'bin'}:/usr/bin:/bin")
    assert session.java_home() == named
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path / "old", "1.8.0_1")))
    assert session.java_home() == on_path


def test_no_java_or_an_old_one_is_one_clear_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "USUAL_HOMES", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(JavaNotFoundError, match="none was found in JAVA_HOME or on the PATH") as nothing:
        session.java_home()
    assert "openjdk-17-jre-headless" in str(nothing.value)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(session.shutil, "which", lambda _: None)
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path / "old", "11.0.1")))
    with pytest.raises(JavaNotFoundError, match=r"old is version 11\."):
        session.java_home()


def test_a_command_without_any_java_ends_with_one_sentence(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "USUAL_HOMES", ())
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "a.csv").write_text("type,ts,k\n")
    told, hint = refused("run", pattern, "--input", str(tmp_path / "a.csv")).splitlines()
    assert told == ("[JAVA_NOT_FOUND] Spark needs a JDK 17 or newer, and none was found in JAVA_HOME or on the PATH.")
    assert hint.startswith("Hint: install one")


def test_make_without_any_java_says_so_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(find_java, "USUAL_PLACES", ())
    monkeypatch.setattr(find_java, "MACOS_TOOL", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert find_java.main() == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith("Tocsin needs a JDK 17 or newer: install openjdk-17-jre-headless")


# --- the demo -------------------------------------------------------------------------------------


def shown_on(*, is_terminal: bool) -> list[str]:
    colours = "standard" if is_terminal else "auto"
    console = Console(file=io.StringIO(), force_terminal=is_terminal, width=200, color_system=colours)
    console.print(coloured("\nPATTERN SEQ(A a, B b)\nWHERE   a.k = 'x'\n"), end="\n\n")
    return console.file.getvalue().split("\n")  # type: ignore[attr-defined]


def test_the_pattern_of_the_demo_is_coloured_on_a_terminal_and_plain_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert shown_on(is_terminal=False) == ["  PATTERN SEQ(A a, B b)", "  WHERE   a.k = 'x'", "", ""]
    assert any("\x1b[" in line for line in shown_on(is_terminal=True))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("frod",), "There is no demo `frod`"),
        (("bank", "--picture", "x.svg"), "draws no picture"),
        (("--picture", "fraud.png"), "not the name of a .svg file"),
    ],
)
def test_a_demo_that_is_not_there_is_refused_before_spark_starts(arguments: tuple[str, ...], problem: str) -> None:
    result = CliRunner().invoke(app, ["demo", *arguments])
    assert result.exit_code == 1
    assert problem in result.stderr
