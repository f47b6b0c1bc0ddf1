"""What the batch engine has set itself to reach, and whether a result reaches it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.settings import size

FEWEST_ROWS = 1_000_000  # fewer events measure how Spark starts
SWEEPS_THAT_STAY_LEVEL = ("n", "m (increasing)", "m (threshold)", "W")


@dataclass(frozen=True)
class Verdict:
    """One line of the report; `measured` is None where the result does not tell."""

    target: str
    wanted: str
    measured: str | None
    passed: bool | None

    @property
    def word(self) -> str:
        if self.passed is None:
            return "not measured" if self.measured is None else "too few events"
        return "pass" if self.passed else "**fail**"


def verdicts(records: list[dict[str, Any]]) -> list[Verdict]:
    """All targets."""
    found = list(_verdicts(records))
    if all(record["rows"] < FEWEST_ROWS for record in records):
        return [replace(verdict, passed=None) for verdict in found]
    return found


def _verdicts(records: list[dict[str, Any]]) -> list[Verdict]:
    speed = [record for record in records if record["purpose"] == "speed"]
    return [
        _headline(speed),
        _least("as fast as the best plan by hand, everywhere", speed, "hand", 0.9),
        _least("strong filters, against scan + filter", _tagged(speed, "strong"), "scan", 0.7),
        _least("as fast as the automaton, everywhere", speed, "nfa", 1.0),
        _least("dense windows, against the automaton", _tagged(speed, "dense"), "nfa", 3.0),
        *(_fall(speed, sweep) for sweep in SWEEPS_THAT_STAY_LEVEL),
        *_cores([record for record in records if record["purpose"] == "cores"]),
        *_memory([record for record in records if record["purpose"] == "memory"]),
        _flink(speed),
    ]


def _tagged(records: list[dict[str, Any]], tag: str) -> list[dict[str, Any]]:
    return [record for record in records if tag in record["tags"]]


def _headline(speed: list[dict[str, Any]]) -> Verdict:
    target, wanted = "keyed SEQ(3), sparse, against the limit", "≥ 0.90 × at 10M"
    records = [record for record in _tagged(speed, "headline") if record["ratios"].get("limit")]
    if not records:
        return Verdict(target, wanted, None, None)
    record = max(records, key=lambda record: record["rows"])
    ratio = record["ratios"]["limit"]
    is_full = record["rows"] >= 10_000_000
    return Verdict(target, wanted, f"{ratio:.2f} × at {size(record['rows'])}", ratio >= 0.9 if is_full else None)


def _least(target: str, records: list[dict[str, Any]], other: str, wanted: float) -> Verdict:
    found = [(record["ratios"][other], record) for record in records if other in record["ratios"]]
    if not found:
        return Verdict(target, f"≥ {wanted:.2f} ×", None, None)
    ratio, record = min(found, key=lambda pair: pair[0])
    missed = sum(ratio < wanted for ratio, _ in found)
    words = f"{ratio:.2f} × at worst ({record['workload']}, {size(record['rows'])}); {missed} of {len(found)} below"
    return Verdict(target, f"≥ {wanted:.2f} ×", words, missed == 0)


def _fall(speed: list[dict[str, Any]], sweep: str) -> Verdict:
    target, wanted = f"throughput falls little over {sweep}", "≤ 2.00 ×"
    falls = []
    for rows in sorted({record["rows"] for record in speed}):
        points = sorted(
            (record["at"], own)
            for record in speed
            if record["sweep"] == sweep and record["rows"] == rows and (own := _throughput(record))
        )
        if len(points) > 1:
            falls.append((points[0][1] / min(own for _, own in points), points[0][0], points[-1][0], rows))
    if not falls:
        return Verdict(target, wanted, None, None)
    worst, first, last, rows = max(falls)
    return Verdict(target, wanted, f"{worst:.2f} × from {first:g} to {last:g} at {size(rows)}", worst <= 2)


def _cores(records: list[dict[str, Any]]) -> Iterator[Verdict]:
    def faster(one: float, most: float, cores: int) -> tuple[str, bool]:
        return f"{most / one:.2f} × with {cores}", most / one >= 1.6

    yield from _pairs(records, "cores", "2 cores against 1", "≥ 1.60 ×", _throughput, faster)


def _memory(records: list[dict[str, Any]]) -> Iterator[Verdict]:
    def bounded(small: float, large: float, rows: int) -> tuple[str, bool]:
        words = f"{small / 2**20:.0f} → {large / 2**20:.0f} MiB ({large / small:.2f} ×) at {size(rows)}"
        return words, large / small <= 2

    def peak(record: dict[str, Any]) -> float | None:
        # A plan without Python workers has nothing to bound, and a run that failed shows nothing.
        return record["memory"].get("workers") or None if _throughput(record) else None

    title = "memory of the Python workers stays bounded"
    yield from _pairs(records, "rows", title, "≤ 2.00 × for 10 × the events", peak, bounded)


def _pairs(
    records: list[dict[str, Any]],
    by: str,
    target: str,
    wanted: str,
    value: Callable[[dict[str, Any]], float | None],
    judge: Callable[[float, float, int], tuple[str, bool]],
) -> Iterator[Verdict]:
    """Compare the records of a workload that differ in `by`: the smallest with the largest."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        same = record["rows"] if by == "cores" else record["cores"]
        groups.setdefault((record["workload"], same), []).append(record)
    found = False
    for (workload, same), group in groups.items():
        group.sort(key=lambda record: record[by])
        least, most = value(group[0]), value(group[-1])
        if len(group) > 1 and least and most:
            words, passed = judge(least, most, group[-1][by])
            at = f" at {size(same)}" if by == "cores" else ""
            found = True
            yield Verdict(f"{target}: {workload}{at}", wanted, words, passed)
    if not found:
        yield Verdict(target, wanted, None, None)


def _flink(speed: list[dict[str, Any]]) -> Verdict:
    target, wanted = "unkeyed SEQ1(2) at 27 %: Flink's interval join on such cores", "≥ 2.5 M events/s"
    found = [
        (record["rows"], own) for record in speed if record["workload"] == "seq2-27%" and (own := _throughput(record))
    ]
    if not found:
        return Verdict(target, wanted, None, None)
    rows, own = max(found)
    return Verdict(target, wanted, f"{own / 1e6:.2f} M events/s at {size(rows)}", own >= 2.5e6)


def _throughput(record: dict[str, Any]) -> float | None:
    return record["contestants"].get("tocsin", {}).get("events_per_s")
