"""The results of `python -m benchmarks.local` as Markdown: targets, seconds by form of the events, memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.race import problems
from benchmarks.report import machine, table
from benchmarks.settings import size
from benchmarks.targets import Verdict

BEGIN, END = "<!-- local: written by `python -m benchmarks.local --update-docs` -->", "<!-- end of local -->"
FORMS = {"arrow": "Arrow tables in memory", "parquet": "Parquet files"}
HEADS = {"tocsin": "`tocsin`", "tocsin id=": "`tocsin id=`", "duckdb": "DuckDB", "polars": "Polars", "read": "reading"}
NAMES = ("question", "form")  # of a record
FULL_ROWS = 10_000_000
MIB = 2**20
Record = Mapping[str, Any]


def markdown(result: Mapping[str, Any]) -> str:
    """The whole report."""
    facts, records = result["environment"], result["records"]
    times = f"Medians of {facts['repeat']} runs in turns, {facts['cores']} cores for each."
    parts = [f"{machine(facts)} {times}"]
    parts += [f"**{words}**" for words in problems(records, *NAMES)]
    lines = [(line.target, line.wanted, line.measured or "–", line.word) for line in verdicts(records)]
    parts += ["### Targets of the local engine", table(("target", "wanted", "measured", ""), lines)]
    for form, words in FORMS.items():
        if chosen := [record for record in records if record["form"] == form]:
            parts += [f"### Seconds, from {words}", _seconds(chosen)]
            if any(one["memory"] for record in chosen for one in record["contestants"].values()):
                parts += [f"### Memory beyond that before the run, from {words}", _memory(chosen)]
    return "\n\n".join(parts) + "\n"


def _seconds(records: Sequence[Record]) -> str:
    names = _names(records)
    others = [name for name in ("duckdb", "polars") if name in names]
    heads = ("question", "events", "matches", *(HEADS[name] for name in names), *(f"÷ {HEADS[one]}" for one in others))
    rows = []
    for record in records:
        ratios = (f"{record['ratios'][one]:.2f}" if one in record["ratios"] else "–" for one in others)
        cells = (_time(record["contestants"].get(name)) for name in names)
        matches = "–" if record["matches"] is None else f"{record['matches']:,}"
        rows.append((_title(record), size(record["rows"]), matches, *cells, *ratios))
    return table(heads, rows)


def _memory(records: Sequence[Record]) -> str:
    names = _names(records)
    heads = ("question", "events", "columns used, MiB", *(f"{HEADS[name]}, MiB" for name in names))
    rows = []
    for record in records:
        cells = (_extra(record["contestants"].get(name), record["input_bytes"]) for name in names)
        rows.append((_title(record), size(record["rows"]), f"{record['input_bytes'] / MIB:.0f}", *cells))
    return table(heads, rows)


def _names(records: Sequence[Record]) -> list[str]:
    return [name for name in HEADS if any(name in record["contestants"] for record in records)]


def _title(record: Record) -> str:
    return f"`{record['question']}` {record['title']}"


def _time(found: Record | None) -> str:
    if found is None:
        return "–"
    if found["median_s"] is None:
        return found["status"]
    return f"{found['median_s']:.3g}" + (f" ({found['variant']})" if found["variant"] else "")


def _extra(found: Record | None, used: int) -> str:
    if not found or not found["memory"]:
        return "–"
    extra = _more(found)
    return f"{extra / MIB:.0f} ({extra / used:.1f} ×)"


def _more(found: Record) -> int:
    return found["memory"]["peak"] - found["memory"]["before"]


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """The targets of the local engine, compared at the largest number of events."""
    rows = max((record["rows"] for record in records), default=0)
    known = {(record["question"], record["form"]): record for record in records if record["rows"] == rows}
    found = list(_verdicts(known))
    return [Verdict(one.target, one.wanted, one.measured, one.passed if rows >= FULL_ROWS else None) for one in found]


def _verdicts(known: Mapping[tuple[str, str], Record]) -> Iterator[Verdict]:
    for question, wanted in (("seq2-sparse", 0.7), ("seq3-sparse", 0.7), ("seq2-27%", 1.0)):
        ratio = known.get((question, "arrow"), {"ratios": {}})["ratios"].get("duckdb")
        yield _least(f"{question} in memory, against DuckDB", wanted, ratio, "×")
    for question, wanted in (("count", 5.0), ("count-keyed", 5.0), ("acel", 3.0), ("rule", 3.0)):
        speed = _own(known, question, "arrow").get("events_per_s")
        yield _least(f"{question} in memory", wanted, speed and speed / 1e6, "M events/s")
    slower = {
        question: own / (beside + alone)
        for question, form in known
        if form == "arrow"
        and (own := _own(known, question, "parquet").get("median_s"))
        and (beside := _own(known, question, "arrow").get("median_s"))
        and (alone := known[question, "parquet"]["contestants"].get("read", {}).get("median_s"))
    }
    yield _most("Parquet, against in memory and reading", 1.3, slower)
    needed = {
        question: _more(own) / record["input_bytes"]
        for (question, form), record in known.items()
        if form == "arrow" and (own := record["contestants"].get("tocsin", {})).get("memory")
    }
    yield _most("memory, against the columns used", 3.0, needed)


def _own(known: Mapping[tuple[str, str], Record], question: str, form: str) -> Record:
    return known.get((question, form), {"contestants": {}})["contestants"].get("tocsin", {})


def _least(target: str, wanted: float, found: float | None, unit: str) -> Verdict:
    words = f"≥ {wanted:.2f} {unit}"
    return (
        Verdict(target, words, f"{found:.2f} {unit}", found >= wanted) if found else Verdict(target, words, None, None)
    )


def _most(target: str, wanted: float, found: Mapping[str, float]) -> Verdict:
    words = f"≤ {wanted:.2f} ×"
    if not found:
        return Verdict(target, words, None, None)
    worst = max(found, key=found.__getitem__)
    return Verdict(target, words, f"{found[worst]:.2f} × at worst ({worst})", found[worst] <= wanted)
