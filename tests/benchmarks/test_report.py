"""What the benchmarks tell: tables, targets, plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from benchmarks import report, svg
from benchmarks.race import ratios
from benchmarks.targets import verdicts

MILLION = 1_000_000


def record(workload: str, *, rows: int = 10 * MILLION, **own: Any) -> dict[str, Any]:
    seconds = own.pop("seconds")
    contestants = {
        name: {
            "status": "ok" if took else "not yet",
            "reason": "",
            "variant": "",
            "median_s": took,
            "events_per_s": rows / took if took else None,
        }
        for name, took in seconds.items()
    }
    plain = {"title": workload, "purpose": "speed", "cores": 2, "sweep": None, "at": None, "tags": [], "memory": {}}
    return {
        **plain,
        "workload": workload,
        "rows": rows,
        "matches": 30,
        "selectivity": 30 / rows,
        "wrong": None,
        "contestants": contestants,
        "ratios": ratios(contestants),
        **own,
    }


def result(*records: dict[str, Any]) -> dict[str, Any]:
    facts = {"date": "2026-01-01T00:00:00", "commit": "abc", "cpus": 2, "cpu": "a CPU", "memory_gib": 24.0}
    facts |= {"system": "Linux", "python": "3.11", "versions": {"pyspark": "4.3.0"}, "cores": 2}
    facts |= {"partitions": 8, "layout": "ordered", "repeat": 3}
    return {"environment": facts, "records": list(records)}


def verdict(target: str, *records: dict[str, Any]) -> bool | None:
    (found,) = [line for line in verdicts(list(records)) if line.target.startswith(target)]
    return found.passed


def test_a_ratio_is_the_throughput_of_tocsin_by_that_of_the_other() -> None:
    assert ratios({"tocsin": {"median_s": 2.0}, "nfa": {"median_s": 6.0}, "naive": {"median_s": None}}) == {"nfa": 3.0}
    assert ratios({"tocsin": {"median_s": None}, "nfa": {"median_s": 6.0}}) == {}


@pytest.mark.parametrize(("limit", "passed"), [(1.0, True), (0.9, True), (0.8, False)])
def test_the_headline_is_judged_at_ten_million_events(limit: float, passed: bool) -> None:
    seconds = {"tocsin": 1.0, "limit": limit}
    assert verdict("keyed SEQ(3)", record("seq3-sparse", tags=["headline"], seconds=seconds)) is passed
    assert verdict("keyed SEQ(3)", record("seq3-sparse", rows=MILLION, tags=["headline"], seconds=seconds)) is None


def test_one_row_below_the_plan_by_hand_fails_the_target_that_speaks_of_all() -> None:
    good, bad = {"tocsin": 1.0, "hand": 1.0}, {"tocsin": 1.0, "hand": 0.5}
    assert verdict("as fast as the best plan", record("a", seconds=good), record("b", seconds=good)) is True
    assert verdict("as fast as the best plan", record("a", seconds=good), record("b", seconds=bad)) is False
    assert verdict("as fast as the best plan", record("a", seconds={"tocsin": None, "hand": 1.0})) is None


def test_a_sweep_may_fall_by_half() -> None:
    def sweep(last: float) -> list[dict[str, Any]]:
        return [record(f"seqn-{n}", sweep="n", at=n, seconds={"tocsin": took}) for n, took in ((2, 1.0), (6, last))]

    assert verdict("throughput falls little over n", *sweep(2.0)) is True
    assert verdict("throughput falls little over n", *sweep(2.1)) is False


def test_cores_and_memory_are_compared_per_workload() -> None:
    cores = [record("u", purpose="cores", cores=cores, seconds={"tocsin": 3.0 / cores}) for cores in (1, 2)]
    assert verdict("2 cores against 1", *cores) is True
    memory = [
        record(
            "u", purpose="memory", rows=rows, seconds={"tocsin": 1.0}, memory={"workers": peak, "worker": 1, "jvm": 1}
        )
        for rows, peak in ((MILLION, 100), (10 * MILLION, 900))
    ]
    assert verdict("memory of the Python workers", *memory) is False


def test_the_report_shows_what_is_not_there_and_shouts_what_is_wrong() -> None:
    text = report.markdown(
        result(
            record("a", seconds={"tocsin": 2.0, "hand": 1.0, "nfa": None}),
            record("b", seconds={"tocsin": 1.0}, wrong="nfa: finds 3 matches, most find 4"),
        )
    )
    assert "| `a` a | 10M | 0.0003 % | 5.00 | – | 0.50 | not yet | – | – | – | – |" in text
    assert "**WRONG RESULTS**" in text and "nfa: finds 3 matches" in text


def test_plots_are_valid_xml_with_a_mark_per_point(tmp_path: Path) -> None:
    sweep = [
        record(f"seqn-{n}", sweep="n", at=n, seconds={"tocsin": 1.0 + n, "hand": 2.0, "nfa": None}) for n in range(2, 7)
    ]
    written = report.write_plots(result(record("a <&> b", seconds={"tocsin": 1.0, "limit": 0.5}), *sweep), tmp_path)
    assert [path.name for _, path in written] == ["throughput.svg", "n.svg"]
    bars, lines = (ElementTree.parse(path).getroot() for _, path in written)
    assert [element.text for element in bars.iter() if element.text == "a <&> b"]
    circles = [element for element in lines.iter() if element.tag.endswith("circle")]
    assert len(circles) == 2 * 5
    for circle in circles:
        assert 0 < float(circle.get("cx", "")) < 640 and 0 < float(circle.get("cy", "")) < 360


@pytest.mark.parametrize("log", [False, True])
def test_a_plot_of_one_point_or_none_is_still_a_plot(log: bool) -> None:
    for points in ([(1.0, 2.0)], []):
        text = svg.lines("t", {"a": points}, x_label="x", y_label="y", log_x=log, log_y=log)
        assert ElementTree.fromstring(text).tag.endswith("svg")


def test_the_docs_are_updated_between_the_markers_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"before\n{report.BEGIN}\nan earlier run\n{report.END}\nafter\n", encoding="utf-8")
    for _ in range(2):
        report.update_docs(result(record("a", seconds={"tocsin": 2.0, "hand": 1.0})), page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "an earlier run" not in text
    assert text.count("### Targets") == 1
    assert "(images/benchmark-throughput.svg)" in text and (tmp_path / "images" / "benchmark-throughput.svg").exists()
