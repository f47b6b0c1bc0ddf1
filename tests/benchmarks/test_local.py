"""The comparison without Spark: all contestants that are installed find the same, and what differs is noticed."""

from __future__ import annotations

import json
import time
from importlib import util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from benchmarks.local import contestants, report
from benchmarks.local.__main__ import main
from benchmarks.local.measure import Job, measure
from benchmarks.local.questions import Question, questions
from benchmarks.race import Contestant, StoppedError, limited
from benchmarks.report import put_between

ROWS = 2_000
NAMES = [question.name for question in questions()]
INSTALLED = {name for name in ("duckdb", "polars") if util.find_spec(name)}


@pytest.mark.compiled
@pytest.mark.parametrize("form", report.FORMS)
def test_all_that_are_installed_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr("benchmarks.local.__main__.keep_to", lambda cores: None)  # other tests may have all
    out = tmp_path / "local.json"
    options = ["--rows", str(ROWS), "--repeat", "1", "--warmup", "0", "--no-memory", "--data", str(tmp_path / "data")]
    assert main([*options, "--forms", form, "--out", str(out)]) == 0
    records = json.loads(out.read_text())["records"]
    assert [record["question"] for record in records] == NAMES
    assert sum(record["matches"] for record in records if record["question"].startswith(("seq2-27", "count"))) > 100
    for record in records:
        found = record["contestants"]
        assert {name for name, one in found.items() if one["status"] == "ok"} >= {"tocsin", *INSTALLED}, record
        assert {one["status"] for one in found.values()} <= {"ok", "skipped"}


def job(tmp_path: Path, question: str, *only: str) -> Job:
    return Job(question, ROWS, "arrow", repeat=1, warmup=0, data=str(tmp_path), only=only)


def test_memory_is_that_of_one_contestant_in_a_process_of_its_own(tmp_path: Path) -> None:
    found = measure(job(tmp_path, "seq2-27%", "duckdb"), print)
    memory = found["contestants"]["duckdb"]["memory"]
    assert memory["result"] > 0 and 0 < memory["before"] <= memory["peak"]


def test_a_contestant_that_finds_other_matches_is_named_and_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = contestants.contestants

    def with_one_that_errs(question: Question, form: str, **options: Any) -> tuple[Contestant, ...]:
        (right,) = (one for one in known(question, form, **options) if one.name == "duckdb")
        first = next(iter(right.variants.values()))
        # As many matches, of which one is another.
        wrong = {"": lambda events, ready: pa.concat_tables([(found := first(events, ready))[1:], found[1:2]])}
        return (right, Contestant("again", right.variants), Contestant("errs", wrong))

    monkeypatch.setattr("benchmarks.local.measure.contestants", with_one_that_errs)
    found = measure(job(tmp_path, "seq2-27%"), print, with_memory=False)
    assert {name: one["status"] for name, one in found["contestants"].items()} == {
        "duckdb": "ok",
        "again": "ok",
        "errs": "wrong",
    }
    assert found["wrong"].startswith("errs: finds ")
    assert found["contestants"]["errs"]["median_s"] is None


def test_what_is_not_installed_is_skipped_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contestants.util, "find_spec", lambda name: None)
    found = measure(job(tmp_path, "seq2-27%", "duckdb", "polars"), print, with_memory=False)
    for name, one in found["contestants"].items():
        assert (one["status"], one["reason"]) == ("skipped", f'{name} is not installed: pip install "tocsin[bench]"')


def test_a_run_that_takes_too_long_is_stopped() -> None:
    began = time.perf_counter()
    with pytest.raises(StoppedError, match=r"after 0\.05 s"), limited(0.05):
        while time.perf_counter() < began + 10:
            pass
    assert time.perf_counter() < began + 5


def record(question: str, form: str, seconds: dict[str, float], *, rows: int = 10_000_000, peak: int = 200) -> Any:
    found = {
        name: {
            "status": "ok",
            "variant": "",
            "median_s": median,
            "events_per_s": rows / median,
            "memory": {"before": 100, "peak": peak},
        }
        for name, median in seconds.items()
    }
    ratios = {name: median / seconds["tocsin"] for name, median in seconds.items() if name != "tocsin"}
    facts = {"question": question, "title": "t", "form": form, "rows": rows, "input_bytes": 50, "matches": 1234}
    return {**facts, "wrong": None, "contestants": found, "ratios": ratios}


def verdict(target: str, *records: Any) -> bool | None:
    (found,) = (line for line in report.verdicts(records) if line.target.startswith(target))
    return found.passed


def test_targets_are_judged_at_ten_million_events() -> None:
    for tocsin, passed in ((1.0, True), (1.5, False)):
        seconds = {"tocsin": tocsin, "duckdb": 1.0}
        assert verdict("seq2-sparse", record("seq2-sparse", "arrow", seconds)) is passed
        assert verdict("seq2-sparse", record("seq2-sparse", "arrow", seconds, rows=1_000_000)) is None
    assert verdict("count in memory", record("count", "arrow", {"tocsin": 2.0})) is True
    assert verdict("count in memory", record("count", "arrow", {"tocsin": 2.1})) is False
    assert verdict("memory", record("rule", "arrow", {"tocsin": 1.0}, peak=250)) is True
    assert verdict("memory", record("rule", "arrow", {"tocsin": 1.0}, peak=251)) is False
    beside = record("rule", "arrow", {"tocsin": 1.0})
    for tocsin, passed in ((2.6, True), (2.7, False)):
        assert verdict("Parquet", beside, record("rule", "parquet", {"tocsin": tocsin, "read": 1.0})) is passed


def test_the_report_stands_between_its_markers(tmp_path: Path) -> None:
    facts = {"date": "2026-01-01T00:00:00", "commit": "abc", "cpus": 2, "cpu": "a CPU", "memory_gib": 24.0}
    facts |= {"system": "Linux", "python": "3.11", "versions": {"duckdb": "2.0.0"}, "cores": 2, "repeat": 5}
    wrong = record("rule", "arrow", {"tocsin": 2.0, "duckdb": 1.0}) | {"wrong": "duckdb: finds 3 matches"}
    text = report.markdown({"environment": facts, "records": [wrong]})
    assert "| `rule` t | 10M | 1,234 | 2 | 1 | 0.50 |" in text
    assert "**WRONG RESULT: rule, arrow, 10M events: duckdb: finds 3 matches**" in text
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nearlier\n{report.END}\nafter\n", encoding="utf-8")
    put_between(report.BEGIN, report.END, text, page)
    written = page.read_text(encoding="utf-8")
    assert written.startswith("before\n") and written.endswith("\nafter\n") and "earlier" not in written
    with pytest.raises(ValueError, match="no markers"):
        put_between("<!-- a -->", "<!-- b -->", text, page)
