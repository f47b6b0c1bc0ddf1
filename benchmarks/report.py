"""From a result to Markdown and plots, and into docs/benchmarks.md between its markers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import svg
from benchmarks.settings import size
from benchmarks.targets import verdicts
from benchmarks.workloads import workloads

BEGIN, END = "<!-- results: written by `python -m benchmarks --update-docs` -->", "<!-- end of results -->"
COMPARED = ("naive", "hand", "nfa", "duckdb", "polars", "limit", "scan")
HEADS = {
    "naive": "naive join",
    "hand": "by hand",
    "nfa": "NFA",
    "duckdb": "DuckDB",
    "polars": "Polars",
    "limit": "limit",
    "scan": "scan + filter",
}
PLOTTED = ("tocsin", *COMPARED)
# One colour per contestant in all pictures, whoever is missing.
SHADES = {HEADS.get(name, name): shade for name, shade in zip(PLOTTED, svg.COLOURS, strict=False)}
SWEEPS = {
    "selectivity": ("selectivity, %", "SEQ1(2) without a key, by output selectivity", True),
    "n": ("n", "SEQ_n, by number of types", False),
    "m (increasing)": ("m", "ITER^m, each value above the one before", False),
    "m (threshold)": ("m", "ITER^m, a threshold", False),
    "W": ("window, minutes", "SEQ1(2), by window", False),
    "keys (SEQ)": ("keys", "SEQ7(3), by number of keys", True),
    "keys (ITER)": ("keys", "ITER4^4, by number of keys", True),
}


def together(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several runs as one: of a job that several have, the last counts; the environment is that of the last."""
    jobs: dict[tuple[Any, ...], Any] = {}
    for result in results:
        for record in result["records"]:
            jobs[tuple(record[name] for name in ("purpose", "rows", "cores", "workload"))] = record
    commits = dict.fromkeys(result["environment"]["commit"] or "unknown" for result in results)
    order = {workload.name: number for number, workload in enumerate(workloads())}
    records = sorted(jobs.values(), key=lambda record: (record["rows"], order.get(record["workload"], len(order))))
    return {
        **results[-1],
        "environment": {**results[-1]["environment"], "commit": ", ".join(commits)},
        "records": records,
    }


def markdown(result: Mapping[str, Any], *, plots: Iterable[tuple[str, str]] = ()) -> str:
    """The whole report; `plots` are pairs of a title and the path of its picture."""
    records = result["records"]
    speed = [record for record in records if record["purpose"] == "speed"]
    parts = [_environment(result["environment"])]
    wrong = [record for record in records if record["wrong"]]
    if wrong:
        parts.append("**WRONG RESULTS**")
        parts.append(
            "\n".join(f"- {record['workload']}, {size(record['rows'])}: {record['wrong']}" for record in wrong)
        )
    parts.append("### Targets")
    parts.append(
        table(
            ("target", "wanted", "measured", ""),
            [(line.target, line.wanted, line.measured or "–", line.word) for line in verdicts(records)],
        )
    )
    if speed:
        parts += ["### Tocsin's throughput, and how many times that of the others", _ratio_table(speed)]
        parts += ["### Throughput of all, million events per second", _speed_table(speed)]
    parts += [_other_table(records)] if len(speed) < len(records) else []
    parts += [f"![{title}]({path})" for title, path in plots]
    return "\n\n".join(parts) + "\n"


def machine(facts: Mapping[str, Any]) -> str:
    """When a result was measured, at which commit, where and with what."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items() if version)
    return (
        f"Measured {facts['date'][:10]} at commit {facts['commit'] or 'unknown'}: "
        f"{facts['cpus']} CPUs ({facts['cpu']}), {facts['memory_gib']:g} GiB, {facts['system']}, "
        f"Python {facts['python']}, {versions}."
    )


def _environment(facts: Mapping[str, Any]) -> str:
    return (
        f"{machine(facts)} "
        f"`local[{facts['cores']}]`, {facts['partitions']} shuffle partitions, {facts['layout']} files, "
        f"medians of {facts['repeat']} interleaved run{'s'[: facts['repeat'] > 1]}."
    )


def _ratio_table(records: Sequence[Mapping[str, Any]]) -> str:
    heads = ("workload", "events", "matches ÷ events", "M events/s", *(f"÷ {HEADS[name]}" for name in COMPARED))
    rows = []
    for record in records:
        cells = (_ratio(record, name) for name in COMPARED)
        share = "–" if record["selectivity"] is None else f"{100 * record['selectivity']:.2g} %"
        rows.append((_title(record), size(record["rows"]), share, _speed(record, "tocsin"), *cells))
    return table(heads, rows)


def _speed_table(records: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for record in records for name in record["contestants"]))
    heads = ("workload", "events", *(HEADS.get(name, f"`{name}`") for name in names))
    return table(
        heads,
        [
            (f"`{record['workload']}`", size(record["rows"]), *(_speed(record, name) for name in names))
            for record in records
        ],
    )


def _other_table(records: Iterable[Mapping[str, Any]]) -> str:
    rows = []
    for record in records:
        if record["purpose"] == "speed":
            continue
        memory = record["memory"]
        cells = (f"{memory[name] / 2**20:.0f}" if memory else "–" for name in ("workers", "worker", "jvm"))
        rows.append(
            (f"`{record['workload']}`", size(record["rows"]), str(record["cores"]), _speed(record, "tocsin"), *cells)
        )
    heads = ("workload", "events", "cores", "M events/s", "all workers, MiB", "largest worker, MiB", "JVM, MiB")
    return "### Cores and memory, each in a session of its own\n\n" + table(heads, rows)


def _title(record: Mapping[str, Any]) -> str:
    return f"`{record['workload']}` {record['title']}"


def _ratio(record: Mapping[str, Any], name: str) -> str:
    if name in record["ratios"]:
        return f"{record['ratios'][name]:.2f}"
    return _status(record, name)


def _speed(record: Mapping[str, Any], name: str) -> str:
    found = record["contestants"].get(name, {})
    if found.get("events_per_s"):
        variant = f" ({found['variant']})" if found["variant"] else ""
        return f"{found['events_per_s'] / 1e6:.2f}{variant}"
    return _status(record, name)


def _status(record: Mapping[str, Any], name: str) -> str:
    status = record["contestants"].get(name, {}).get("status", "–")
    return {"ok": "–", "wrong": "**wrong**"}.get(status, status)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def plots(result: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Name, title and SVG text of every picture that the result can fill, at its largest size."""
    speed = [record for record in result["records"] if record["purpose"] == "speed"]
    if not speed:
        return
    rows = max(record["rows"] for record in speed)
    speed = [record for record in speed if record["rows"] == rows]
    single = {
        record["workload"]: {
            HEADS.get(name, name): record["contestants"][name]["events_per_s"] / 1e6
            for name in PLOTTED
            if record["contestants"].get(name, {}).get("events_per_s")
        }
        for record in speed
        if record["sweep"] is None
    }
    if single:
        title = f"Throughput at {size(rows)} events"
        yield "throughput", title, svg.bars(title, single, label="million events per second", colours=SHADES)
    for sweep, (label, words, is_log) in SWEEPS.items():
        records = [record for record in speed if record["sweep"] == sweep]
        if len(records) < 2:
            continue
        series: dict[str, list[tuple[float, float]]] = {}
        for name in PLOTTED:
            points = [
                (record["at"], record["contestants"][name]["events_per_s"] / 1e6)
                for record in records
                if record["contestants"].get(name, {}).get("events_per_s")
            ]
            if points:
                series[HEADS.get(name, name)] = points
        title = f"{words}, {size(rows)} events"
        text = svg.lines(
            title, series, x_label=label, y_label="million events per second", log_x=is_log, colours=SHADES
        )
        yield sweep.replace(" ", "-").replace("(", "").replace(")", "").lower(), title, text


def write_plots(result: Mapping[str, Any], folder: Path, *, prefix: str = "") -> list[tuple[str, Path]]:
    """Write all pictures; their titles and paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, title, text in plots(result):
        path = folder / f"{prefix}{name}.svg"
        path.write_text(text, encoding="utf-8")
        written.append((title, path))
    return written


def update_docs(result: Mapping[str, Any], page: Path) -> None:
    """Put the report between the markers of a page, and its pictures beside the others."""
    written = write_plots(result, page.parent / "images", prefix="benchmark-")
    report = markdown(result, plots=[(title, path.relative_to(page.parent).as_posix()) for title, path in written])
    put_between(BEGIN, END, report, page)


def put_between(begin: str, end: str, report: str, page: Path) -> None:
    """Replace what stands between two markers of a page."""
    text = page.read_text(encoding="utf-8")
    if begin not in text or end not in text.partition(begin)[2]:
        raise ValueError(f"{page} has no markers for the results")
    before, _, rest = text.partition(begin)
    page.write_text(f"{before}{begin}\n\n{report}\n{end}{rest.partition(end)[2]}", encoding="utf-8")
