"""`tocsin stream`: folders that grow, restarts, and one clear sentence for all that may be wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from tocsin.cli.app import app

PATTERN = "PATTERN SEQ(Login l, Transfer t) PARTITION BY user WITHIN 10 MINUTES RETURN l.user, t.amount\n"
LOGIN = {"type": "Login", "ts": "2026-03-02T08:00:00Z", "user": "ada", "amount": None}
TRANSFER = {"type": "Transfer", "ts": "2026-03-02T08:04:00Z", "user": "ada", "amount": 2400.0}


class Shop:
    """A pattern, a folder that grows, and a command that matches it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pattern = path / "p.sase"
        self.pattern.write_text(PATTERN)
        self.folder = path / "in"
        self.folder.mkdir()
        self.written = ("--checkpoint", str(path / "checkpoint"), "--out", str(path / "out"))

    def add(self, name: str, *events: dict[str, Any] | str) -> None:
        """A file that is complete when it is there."""
        lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
        (self.path / "made").write_text("".join(f"{line}\n" for line in lines))
        (self.path / "made").rename(self.folder / name)

    def arguments(self, *more: str) -> list[str]:
        return ["stream", str(self.pattern), "--input", str(self.folder), "--lateness", "1 minute", *more]

    def run(self, *more: str) -> Result:
        return CliRunner().invoke(app, self.arguments(*more))

    def amounts(self, spark: SparkSession) -> list[float]:
        return sorted(row.amount for row in spark.read.parquet(str(self.path / "out")).collect())


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def refused(result: Result, condition: str) -> str:
    """The message of an error: one condition, no trace of a stack."""
    assert result.exit_code == 1, result.output
    assert result.stderr.startswith(f"[{condition}] "), result.stderr
    assert "Traceback" not in result.output
    assert "\tat " not in result.output
    return result.stderr


# --- what it does ---------------------------------------------------------------------------------


def test_matches_are_shown_as_json_lines(spark: SparkSession, shop: Shop) -> None:
    shop.add("1.json", LOGIN, TRANSFER, '{"type": "Transfer", "ts": "2026-03-02T08:0')
    result = shop.run("--once")
    assert result.exit_code == 0, result.output
    (match,) = [json.loads(line) for line in result.stdout.splitlines()]
    assert (match["user"], match["amount"], match["end"]) == ("ada", 2400.0, "2026-03-02T08:04:00.000000Z")
    line, summary = result.stderr.splitlines()
    assert line.startswith("batch 0  events 3 (")
    assert "  matches 1  late 0  bad 1  state 2 events, " in line
    assert "  watermark 2026-03-02T08:03:00.000Z (" in line
    assert summary == ("3 events in 1 micro-batch; 1 match; 0 late, 1 without a time; 2 remembered now, 2 at the peak.")


def test_a_restart_goes_on_and_late_events_go_beside_the_matches(spark: SparkSession, shop: Shop) -> None:
    late = shop.path / "late"
    options = (*shop.written, "--late", str(late), "--once", "--rate", "Login=1/h", "--rate", "Transfer=1/h")
    before = spark.conf.get("spark.sql.shuffle.partitions")
    shop.add("1.json", LOGIN, TRANSFER)
    assert shop.run(*options).exit_code == 0
    shop.add("2.json", {**TRANSFER, "ts": "2026-03-02T08:05:00Z", "amount": 7.5}, {**LOGIN, "user": "old"})
    result = shop.run(*options)
    assert result.exit_code == 0, result.output
    assert "`Transfer` comes faster than its declared rate: 1 event beyond it in micro-batch 1" in result.stderr
    assert "state 3 of 2 events" in result.stderr
    assert "1 of `Transfer` beyond the declared rate." in result.stderr
    assert shop.amounts(spark) == [7.5, 2400.0]
    (row,) = spark.read.parquet(str(late)).collect()
    assert json.loads(row.late)["user"] == "old"
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_an_input_per_type_and_folders_that_are_empty_yet(spark: SparkSession, shop: Shop) -> None:
    other = shop.path / "transfers"
    other.mkdir()
    shop.add("1.csv", "ts,user", "2026-03-02T08:00:00Z,ada")
    arguments = [
        *("stream", str(shop.pattern), "-i", f"Login={shop.folder}", "-i", f"Transfer={other}", "--once"),
        *("--input-format", "csv", "--schema", "Transfer=ts timestamp, user string, amount double"),
        *shop.written,
        *("--format", "json", "--state-store", "rocksdb", "--shards", "1"),
    ]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    (other / "1.csv").write_text("ts,user,amount\n2026-03-02T08:04:00Z,ada,5\n")
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    (row,) = spark.read.json(str(shop.path / "out")).collect()
    assert (row.user, row.amount, row.end) == ("ada", 5.0, "2026-03-02T08:04:00.000000Z")
    message = refused(CliRunner().invoke(app, [*arguments[:-4], "--state-store", "default"]), "INVALID_OPTION")
    assert "differs from what the checkpoint" in message


def test_a_restart_takes_the_columns_that_it_began_with(spark: SparkSession, shop: Shop) -> None:
    shop.add("1.json", {**LOGIN, "amount": 1.5})
    assert shop.run(*shop.written, "--once").exit_code == 0
    (shop.folder / "1.json").unlink()  # into an archive; what is there now has integers, and a column more
    shop.add("2.json", {**TRANSFER, "note": "of no use", "amount": 3})
    result = shop.run(*shop.written, "--once")
    assert result.exit_code == 0, result.output
    assert shop.amounts(spark) == [3.0]
    assert "double" in (shop.path / "checkpoint" / "tocsin-schemas.json").read_text()


def test_acel_formulas_stream_too(spark: SparkSession, shop: Shop) -> None:
    formula = shop.path / "p.acel"
    formula.write_text("(Login AS l ; Transfer AS t) WITHIN 10 MINUTES RETURN t.amount")
    shop.add("1.json", LOGIN, TRANSFER, {**LOGIN, "ts": "2026-03-02T09:00:00Z"})
    result = CliRunner().invoke(app, ["stream", str(formula), "--input", str(shop.folder), "--once"])
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["amount"] for line in result.stdout.splitlines()] == [2400.0]


def test_programs_of_rules_stream_too(spark: SparkSession, shop: Shop) -> None:
    program = shop.path / "p.parte"
    program.write_text(
        """
        template Request { id : Integer }
        template Reply   { id : Integer }
        rule NoReply where request : Request  no reply : Reply { id = request.id }
        when no reply in request [0 seconds, 5 seconds]
        """
    )
    shop.add("1.json", *({"type": "Request", "ts": 1_000_000 * number, "id": number} for number in (1, 2)))
    shop.add("2.json", {"type": "Reply", "ts": 3_000_000, "id": 1}, {"type": "Reply", "ts": 60_000_000, "id": 9})
    command = ["stream", str(program), "--input", str(shop.folder), "--once", "--lateness", "1 second"]
    result = CliRunner().invoke(app, [*command, "--rate", "Request=1/s", "--rate", "Reply=1/s"])
    assert result.exit_code == 0, result.output
    (match,) = [json.loads(line) for line in result.stdout.splitlines()]
    assert (match["rule"], match["NoReply"]["request"]["id"]) == ("NoReply", 2)
    assert "; 1 match; " in result.stderr
    assert "(bound: 14)" in result.stderr
    refused(CliRunner().invoke(app, [*command, "--emit", "sometimes"]), "INVALID_OPTION")


# --- what it refuses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "condition", "words"),
    [
        (["--out", "{}/out"], "INVALID_OPTION", "--checkpoint DIR"),
        (["--late", "{}/late"], "INVALID_OPTION", "--out DIR"),
        (["--late", "{}/late", "--strict", "--out", "{}/out", "--checkpoint", "{}/c"], "INVALID_OPTION", "one of them"),
        (["--once", "--heartbeat"], "INVALID_OPTION", "`--heartbeat` follows the wall clock"),
        (["--once", "--idle-timeout", "1 minute"], "INVALID_OPTION", "`--idle-timeout` follows the wall clock"),
        (["--format", "csv"], "INVALID_OPTION", "There is no format `csv`."),
        (["--state-store", "rocks"], "INVALID_OPTION", "did you mean `rocksdb`?"),
        (["--trigger", "often"], "INVALID_OPTION", "`often` is not a length of time."),
        (["--shards", "0"], "INVALID_OPTION", "`--shards 0`"),
        (["--input-format", "avro"], "INVALID_OPTION", "There is no input format `avro`."),
        (["--checkpoint", "{}/p.sase/c", "--out", "{}/out"], "OUTPUT_NOT_WRITABLE", "The checkpoint cannot be kept"),
        (["--checkpoint", "{}/c", "--out", "{}/c/out"], "OUTPUT_NOT_WRITABLE", "lie in each other"),
        (["--checkpoint", "{}/c", "--out", "{}/in"], "OUTPUT_NOT_WRITABLE", "is also an input"),
        (["--checkpoint", "{}/c", "--out", "{}/full"], "OUTPUT_NOT_WRITABLE", "is new: it would replace it."),
        (["--schema", "ts timestamp user string"], "INVALID_OPTION", "is a comma missing?"),
        (["--table", "known=x.csv"], "INPUT_NOT_READABLE", "There is no file or directory `x.csv`."),
    ],
)
def test_what_cannot_be_is_refused_before_spark_starts(
    shop: Shop, options: list[str], condition: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("session", "stream"):
        monkeypatch.setattr(f"tocsin.cli.{module}.start", lambda: pytest.fail("Spark was started"))
    shop.add("1.json", LOGIN)
    (shop.path / "full").mkdir()
    (shop.path / "full" / "old.parquet").write_text("old")
    assert words in refused(shop.run(*(option.format(shop.path) for option in options)), condition)


def test_paths_that_lead_nowhere_are_told(shop: Shop) -> None:
    def run(path: Path) -> Result:
        return CliRunner().invoke(app, ["stream", str(shop.pattern), "--input", str(path)])

    assert f"did you mean `{shop.folder}`?" in refused(run(shop.path / "inn"), "INPUT_NOT_READABLE")
    assert "a folder to which files are added" in refused(run(shop.pattern), "INPUT_NOT_READABLE")
    assert "holds no data file" in refused(run(shop.folder), "INPUT_NOT_READABLE")


def test_a_pattern_without_a_bound_or_without_room_is_refused(spark: SparkSession, shop: Shop) -> None:
    shop.add("1.json", LOGIN, TRANSFER)
    rates = ("--rate", "Login=100/s", "--rate", "Transfer=1/s")
    assert "may keep" in refused(shop.run(*rates, "--max-state", "10kB"), "STATE_TOO_LARGE")
    shop.pattern.write_text("PATTERN SEQ(Login l, Transfer t) PARTITION BY user")
    refused(shop.run(), "UNBOUNDED_PATTERN")
    shop.pattern.write_text("PATTERN Login l WITHIN 1 SECOND RETURN l.user AS Batch")
    assert "`RETURN … AS …`" in refused(shop.run(*shop.written), "INVALID_INPUT")


def test_the_memory_of_a_task_is_limited(spark: SparkSession, shop: Shop) -> None:
    shop.add("1.json", LOGIN, TRANSFER)
    refused(shop.run("--once", "--max-task-memory", "1B"), "TOO_MUCH_MEMORY")
    assert "nothing to watch" in refused(shop.run("--once", "--strategy", "join"), "INVALID_OPTION")
    by_automaton = shop.run("--once", "--strategy", "automaton")
    assert "; 0 matches; " in by_automaton.stderr, by_automaton.output  # it waits for the watermark


def test_shards_without_a_key_are_refused(spark: SparkSession, shop: Shop) -> None:
    shop.add("1.json", LOGIN, TRANSFER)
    shop.pattern.write_text("PATTERN SEQ(Login l, Transfer t) WITHIN 1 MINUTE")
    assert "`--shards 2` has no effect on this stream" in refused(shop.run("--once", "--shards", "2"), "INVALID_OPTION")


def test_wrong_variables_and_wrong_columns_are_reported_together(spark: SparkSession, shop: Shop) -> None:
    shop.add("1.json", LOGIN, TRANSFER)
    shop.pattern.write_text("PATTERN SEQ(Login l, Transfer t) WHERE x.user = 'ada' AND l.nope = 1 WITHIN 1 MINUTE")
    shown = refused(shop.run("--once"), "UNKNOWN_VARIABLE")
    assert "[UNKNOWN_ATTRIBUTE] Event type `Login` has no attribute `nope`." in shown


def test_a_late_event_stops_a_strict_stream(spark: SparkSession, shop: Shop) -> None:
    shop.add("1.json", TRANSFER)
    assert shop.run(*shop.written, "--once", "--strict").exit_code == 0
    shop.add("2.json", LOGIN)
    assert "Go on without `--strict`" in refused(shop.run(*shop.written, "--once", "--strict"), "LATE_EVENTS")
    assert "; 1 late, " not in shop.run(*shop.written, "--once", "--strict").stderr
    assert "; 1 late, " in shop.run(*shop.written, "--once").stderr


def garbage(*names: str) -> Callable[[Path], None]:
    def damage(checkpoint: Path) -> None:
        for name in names:
            for file in checkpoint.glob(name):
                file.write_text("garbage")

    return damage


def replaced(name: str, one: bytes, other: bytes) -> Callable[[Path], None]:
    """Bits that are flipped so that the file is still JSON."""

    def damage(checkpoint: Path) -> None:
        for file in checkpoint.glob(name):
            written = file.read_bytes()
            assert one in written
            file.write_bytes(written.replace(one, other))

    return damage


def test_a_checkpoint_that_cannot_be_used_is_one_sentence(spark: SparkSession, shop: Shop) -> None:
    checkpoint, kept = shop.path / "checkpoint", shop.path / "kept"
    shop.add("1.json", LOGIN, {**LOGIN, "user": "bela", "amount": 1.5})
    assert shop.run(*shop.written, "--once").exit_code == 0
    shop.add("2.json", TRANSFER)
    checkpoint.rename(kept)
    damages = [garbage("offsets/0"), garbage("commits/0"), garbage("metadata"), garbage("state/0/*/*.delta")]
    flipped = [
        replaced("sources/0/0", b"/in/", b"/io/"),
        replaced("sources/0/0", b"file:", b"fild:"),
        replaced("state/0/*/_metadata/schema", b'"binary"', b'"cinary"'),
        replaced("tocsin-schemas.json", b"timestamp", b"timestbmp"),
    ]
    for damage in (*damages, *flipped):
        shutil.copytree(kept, checkpoint)
        for check in checkpoint.rglob(".*.crc"):
            check.unlink()
        damage(checkpoint)
        message = refused(shop.run(*shop.written, "--once"), "STATE_MISMATCH")
        assert re.search(r"The checkpoint `.*` cannot be used: .*\.\nHint: start with a new", message), message
        assert "Python Proxy" not in message
        assert damage in damages or re.search(r"its file `[\w./-]+` ", message), message
        shutil.rmtree(checkpoint)
    kept.rename(checkpoint)
    shop.pattern.write_text(PATTERN.replace("10 MINUTES", "20 MINUTES"))
    assert "another query wrote it" in refused(shop.run(*shop.written, "--once"), "STATE_MISMATCH")
    shop.pattern.write_text(PATTERN)
    result = shop.run(*shop.written, "--once")
    assert result.exit_code == 0, result.output
    assert shop.amounts(spark) == [2400.0]


# --- as a process ---------------------------------------------------------------------------------


class Process:
    """A command that runs; what it says goes to files."""

    def __init__(self, shop: Shop, *more: str) -> None:
        self.out, self.err = shop.path / "stdout", shop.path / "stderr"
        environment = {**os.environ, "NO_COLOR": "1", "SPARK_LOCAL_DIRS": str(shop.path)}
        command = [sys.executable, "-m", "tocsin.cli", *shop.arguments(*more)]
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, env=environment, start_new_session=True)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def wait_for(self, words: str) -> None:
        """Wait until it says something."""
        patience = time.monotonic() + 240
        while words not in self.err.read_text() and self.process.poll() is None and time.monotonic() < patience:
            time.sleep(0.2)
        assert words in self.err.read_text()

    def stopped(self, sent: signal.Signals) -> str:
        """What it has said, after a signal to it and to all that it has started, as a terminal sends it."""
        os.killpg(self.process.pid, sent)
        assert self.process.wait(timeout=120) == 0, self.err.read_text()
        assert self.out.read_text() == ""
        return self.err.read_text()


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_stream_goes_on_until_it_is_stopped_and_a_restart_goes_on_from_there(spark: SparkSession, shop: Shop) -> None:
    """By a supervisor's signal; Ctrl-C stops another below."""
    shop.add("1.json", LOGIN, {**LOGIN, "user": "bela"}, TRANSFER)
    with Process(shop, *shop.written, "--trigger", "200 ms") as process:
        process.wait_for("batch 0  ")
        shop.add("2.json", {**TRANSFER, "user": "bela", "amount": 1.5})
        process.wait_for("batch 1  ")
        said = process.stopped(signal.SIGTERM)
    assert "Traceback" not in said
    *_, summary, place = said.splitlines()
    assert summary.startswith("4 events in 2 micro-batches; 2 matches; 0 late"), said
    assert place == f"Written to {shop.path / 'out'} as parquet."
    shop.add("3.json", {**TRANSFER, "ts": "2026-03-02T08:09:00Z", "amount": 3.5})
    again = shop.run(*shop.written, "--once")
    assert again.exit_code == 0, again.output
    assert shop.amounts(spark) == [1.5, 3.5, 2400.0]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_micro_batch_that_fails_is_told_without_a_stack(spark: SparkSession, shop: Shop) -> None:
    shop.add("1.json", LOGIN, TRANSFER)
    assert shop.run(*shop.written, "--once").exit_code == 0
    shop.pattern.write_text(PATTERN.replace("10 MINUTES", "20 MINUTES"))
    shop.add("2.json", LOGIN)
    command = [sys.executable, "-m", "tocsin.cli", *shop.arguments(*shop.written, "--once")]
    refusal = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refusal.returncode == 1
    assert refusal.stdout == ""
    message, hint = refusal.stderr.splitlines()
    assert message.startswith("[STATE_MISMATCH] The state in the checkpoint cannot be used: another query wrote it")
    assert hint.startswith("Hint: start with a new checkpoint directory")


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_clock_on_the_wall_tells_an_absence(shop: Shop) -> None:
    """Without heartbeats nobody would know that no transfer has come: no event moves time on."""
    shop.pattern.write_text("PATTERN SEQ(Login l, NOT Transfer t) PARTITION BY user WITHIN 1 SECOND RETURN l.user\n")
    shop.add("1.json", {**LOGIN, "ts": "2026-03-02T08:00:00Z"})
    with Process(shop, *shop.written, "--heartbeat", "--trigger", "200 ms") as process:
        process.wait_for("  matches 1  ")
        assert "; 1 match; " in process.stopped(signal.SIGINT)


def test_what_a_query_left_that_was_killed_before_it_read_anything_is_removed(spark: SparkSession, shop: Shop) -> None:
    offsets = shop.path / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.af6d238d-dfb5-41e5-b124-e439af0b83af.tmp").write_text("")
    shop.add("1.json", LOGIN, TRANSFER)
    result = shop.run(*shop.written, "--once")
    assert result.exit_code == 0, result.output
    assert shop.amounts(spark) == [2400.0]


def test_other_sources_than_the_checkpoint_has_are_one_sentence(spark: SparkSession, shop: Shop) -> None:
    shop.add("1.json", LOGIN, TRANSFER)
    assert shop.run(*shop.written, "--once").exit_code == 0
    inputs = ("--input", f"Login={shop.folder}", "--input", f"Transfer={shop.folder}")
    arguments = ["stream", str(shop.pattern), *inputs, "--lateness", "1 minute", *shop.written, "--once"]
    said = refused(CliRunner().invoke(app, arguments), "STATE_MISMATCH")
    assert "There are [1] sources in the checkpoint offsets" in said
