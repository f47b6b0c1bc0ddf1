"""Flink beside Tocsin: what it is asked, and what happens where it is missing. Flink itself runs in the benchmark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.calibrate import Ready
from benchmarks.flink import __main__ as flink
from benchmarks.flink import process, sql
from benchmarks.flink.process import Flink, Insert
from benchmarks.race import Entry, Race
from benchmarks.shapes import Shape, Step

SHAPE = Shape((Step("e1", "A", 0.5), Step("e2", "B", 0.25)), 10_000_000, is_keyed=True)
READY = Ready(flink.asked_of()[1], SHAPE, 10, 10_000_000, (1, 1), None)
# Answers as `benchmarks/flink/job.py` does, among other words; an INSERT writes two matches, and an empty file.
STAND_IN = """\
#!{python}
import json, pathlib, re, sys
folders = {{}}
for line in sys.stdin:
    asked = json.loads(line)
    print("Flink's own words", flush=True)
    for statement in asked if isinstance(asked, list) else []:
        if found := re.search(r"TABLE (\\w+) .*'path' = '(.*?)'", statement, re.S):
            folders[found[1]] = pathlib.Path(found[2])
    if isinstance(asked, str) and (folder := folders.get(asked.split()[2])):
        folder.mkdir()
        (folder / "part-0").write_text("1,5,10,11,0.5\\n2,5,12,11,0.5\\n")
        (folder / "part-1").touch()
    print(json.dumps({{"net_s": 0.25, "wall_s": 1.0}}), flush=True)
"""


def test_conditions_windows_and_keys_are_written_as_flink_reads_them() -> None:
    first, _, both = sql.views(SHAPE)
    assert first.startswith("CREATE VIEW e1 AS SELECT `key` AS k, id, us, ts, `type`, `value` FROM given WHERE")
    assert both.endswith("WHERE (`type` = 'A' AND `value` > 0.5) OR (`type` = 'B' AND `value` > 0.25)")
    assert "BETWEEN e1.ts AND e1.ts + INTERVAL '10' SECOND AND" in sql.interval_join(SHAPE)
    assert "PATTERN (A X*? B) WITHIN INTERVAL '10' SECOND" in sql.match_recognize(SHAPE)


def test_answers_are_told_from_flinks_own_words_and_rows_come_by_files(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(STAND_IN.format(python=sys.executable), encoding="utf-8")
    python.chmod(0o755)
    running = Flink(python, SHAPE, tmp_path / "events", tmp_path, cores=2)
    try:
        assert running.seconds(Insert("SELECT 1")) == 0.25
        assert running.rows(Insert("SELECT 1"))["e1_id"].to_pylist() == [10, 12]
    finally:
        running.close()


def test_a_flink_that_ends_says_where_to_look(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"Flink has ended; .*flink\.log says why"):
        Flink(Path("/bin/false"), SHAPE, tmp_path / "events", tmp_path, cores=2)


def test_where_flink_cannot_be_installed_it_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = subprocess.CompletedProcess([], 1, "", "warning\nERROR: No matching distribution found")
    monkeypatch.setattr(process.subprocess, "run", lambda *_, **__: refused)
    reason = process.python_of(tmp_path / "flink")
    assert reason == f"apache-flink {process.VERSION} cannot be installed: ERROR: No matching distribution found"
    entries = [Entry(one) for one in flink.contestants("next", reason) if one.missing]
    assert Race(flink._Runner(None), READY, lambda _: None, 0, 1).run(entries, print) is None
    assert [(entry.contestant.name, entry.status, entry.reason) for entry in entries] == [
        ("flink", "skipped", reason),
        ("scan", "skipped", reason),
    ]
