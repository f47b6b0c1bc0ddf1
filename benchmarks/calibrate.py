"""Thresholds that give a workload the selectivity it names, found by counting matches in the stream itself."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.automaton import Automaton
from benchmarks.shapes import Shape, Step
from benchmarks.streams import Events, generate
from benchmarks.workloads import Workload

ROUNDS = 16
CLOSE = 0.05  # the search ends this near to what is wanted
TOO_MANY = 8  # counting ends at this multiple of what is wanted
NEGATED_PER_WINDOW = 1.0


@dataclass(frozen=True)
class Ready:
    """A workload with all thresholds, for one stream.

    `candidates` are the events that each positive step keeps; `matches` is the number of matches where it was counted.
    """

    workload: Workload
    shape: Shape
    rows: int
    span_us: int
    candidates: tuple[int, ...]
    matches: int | None

    @property
    def pairs(self) -> float:
        """How many pairs a join with inequalities must look at, at least: those of the first two steps."""
        first, second, *_ = self.candidates
        return first * second / (self.workload.stream.keys_at(self.rows) if self.shape.is_keyed else 1)


def calibrate(workload: Workload, rows: int, *, seed: int = 1, cache: Path | None = None) -> Ready:
    """Choose the thresholds of a workload; what was chosen is remembered in `cache`."""
    kept = cache / f"{workload.name}-{rows}rows-seed{seed}.json" if cache else None
    print_of = repr((workload.stream.name_at(rows, seed), asdict(replace(workload, tags=frozenset()))))
    if kept and kept.exists():
        known = json.loads(kept.read_text(encoding="utf-8"))
        if known["of"] == print_of:
            shape = _with_thresholds(workload.shape, known["above"])
            return Ready(workload, shape, rows, known["span_us"], tuple(known["candidates"]), known["matches"])
    ready = _calibrate(workload, rows, generate(workload.stream, rows, seed))
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        above = [step.above for step in ready.shape.steps]
        facts = {"span_us": ready.span_us, "candidates": ready.candidates, "matches": ready.matches}
        kept.write_text(json.dumps({"of": print_of, "above": above, **facts}), encoding="utf-8")
    return ready


def _calibrate(workload: Workload, rows: int, events: Events) -> Ready:
    shape, matches = workload.shape, None
    if workload.selectivity is not None:
        shape, matches = _search(workload, events, workload.selectivity * rows)
    elif workload.share is not None:
        shape = _thresholds(shape, events, workload.share)
        matches = count(shape, events)
    candidates = tuple(int(kept(step, events).sum()) for step in shape.positives)
    return Ready(workload, shape, rows, events.span_us, candidates, matches)


def _search(workload: Workload, events: Events, wanted: float) -> tuple[Shape, int]:
    """The share of events that the filters must keep; matches grow about with its n-th power for n steps."""
    steps = len(workload.shape.positives)
    window_us = workload.chosen_at_us or workload.shape.window_us
    asked = replace(workload.shape, window_us=window_us)
    low, high = 0.0, 1.0
    share = _first_guess(asked, events, wanted)
    best: tuple[float, Shape] | None = None
    for _ in range(ROUNDS):
        shape = _thresholds(asked, events, share)
        found = count(shape, events, most=int(TOO_MANY * wanted) + 1)
        error = abs(np.log((found + 0.5) / (wanted + 0.5)))
        if best is None or error < best[0]:
            best = (error, shape)
        if error < CLOSE:
            break
        low, high = (share, high) if found < wanted else (low, share)
        step = share * ((wanted + 0.5) / (found + 0.5)) ** (1 / steps)
        share = step if low < step < high else float(np.sqrt(max(low, high / 100) * high))
    assert best is not None
    shape = replace(best[1], window_us=workload.shape.window_us)
    return shape, count(shape, events)


def _first_guess(shape: Shape, events: Events, wanted: float) -> float:
    """What Poisson arrivals would need: a start has λ^(n−1) ÷ (n−1)! continuations when λ events come in a window."""
    keys = len(np.unique(events.keys)) if shape.is_keyed else 1
    totals = [int(events.of(step.type).sum()) for step in shape.positives]
    expected = float(totals[0])
    for number, total in enumerate(totals[1:], start=1):
        expected *= total * shape.window_us / events.span_us / keys / number
    return float(min(0.9, (wanted / expected) ** (1 / len(totals))))


def _thresholds(shape: Shape, events: Events, share: float) -> Shape:
    """Each positive step keeps this share of its type; a negated one keeps about one event per window."""
    found: list[float] = []
    for step in shape.steps:
        values = events.values[events.of(step.type)]
        part = (
            min(1.0, NEGATED_PER_WINDOW * events.span_us / (len(values) * shape.window_us))
            if step.is_negated
            else share
        )
        at = len(values) - max(1, min(len(values), round(part * len(values))))
        # Four digits, so that the text of the query says exactly what is compared.
        found.append(
            round(float(np.partition(values, at)[at]), 4) - 0.0001 if at else float(np.floor(values.min()) - 1)
        )
    return _with_thresholds(shape, [round(value, 4) for value in found])


def _with_thresholds(shape: Shape, above: list[float | None]) -> Shape:
    return replace(
        shape, steps=tuple(replace(step, above=value) for step, value in zip(shape.steps, above, strict=True))
    )


def kept(step: Step, events: Events) -> NDArray[np.bool_]:
    """Which events a step may bind."""
    mask = events.of(step.type)
    return mask if step.above is None else mask & (events.values > step.above)


def flags_of(shape: Shape, events: Events) -> NDArray[np.int64]:
    """The flags that `Automaton` reads."""
    ordered = (*shape.positives, *(step for step in shape.steps if step.is_negated))
    flags = np.zeros(len(events), dtype=np.int64)
    for bit, step in enumerate(ordered):
        flags |= kept(step, events).astype(np.int64) << bit
    return flags


def count(shape: Shape, events: Events, *, most: int | None = None) -> int:
    """How many matches there are; not counted beyond `most`."""
    if len(shape.steps) == 2 and shape.gap is None and not shape.is_keyed:
        return _pairs(shape, events)
    flags = flags_of(shape, events)
    rows = np.nonzero(flags)[0]
    if shape.is_keyed:
        rows = rows[np.argsort(events.keys[rows], kind="stable")]
    automaton, total, key, found = Automaton(shape), 0, -1, []
    columns = (events.ts[rows], flags[rows], rows, events.values[rows], events.keys[rows])
    for ts, flag, id, value, of_key in zip(*(column.tolist() for column in columns), strict=True):
        if shape.is_keyed and of_key != key:
            key = of_key
            automaton.reset()
        automaton.feed(ts, flag, id, value, found)
        if found:
            total += len(found)
            found.clear()
            if most is not None and total > most:
                break
    return total


def _pairs(shape: Shape, events: Events) -> int:
    first, second = (events.ts[kept(step, events)] for step in shape.steps)
    later = np.searchsorted(second, first, side="right")
    ends = np.searchsorted(second, first + shape.window_us, side="left")
    return int((ends - later).sum())
