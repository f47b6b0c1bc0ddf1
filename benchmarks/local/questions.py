"""The questions that are measured without Spark: a workload each, and how to put it to Tocsin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchmarks.shapes import Shape, text_of
from benchmarks.streams import MILLISECOND, SECOND
from benchmarks.workloads import UNIFORM, Workload, sequence, workloads

Language = Literal["sase", "acel", "parte", "count"]
RULE = "Found"


@dataclass(frozen=True)
class Question:
    """A workload, and the language in which Tocsin reads it; `count` is SASE+ that returns the number of matches.

    Of a `count` the middle step is an iteration, B+, and no match is built: enumerating them is hopeless.
    """

    workload: Workload
    language: Language = "sase"

    @property
    def name(self) -> str:
        return self.workload.name

    @property
    def is_count(self) -> bool:
        return self.language == "count"

    def text(self, shape: Shape) -> str:
        return {"sase": text_of, "acel": formula_of, "parte": program_of, "count": count_of}[self.language](shape)


def questions() -> tuple[Question, ...]:
    """All of them, in the order of the report."""
    known = {workload.name: workload for workload in workloads()}
    sparse = sequence(*"ABC", window_us=10 * SECOND, keyed=True)
    kleene, keyed_kleene = (
        sequence(*"ABC", window_us=window_us, keyed=keyed)
        for window_us, keyed in ((50 * MILLISECOND, False), (50 * SECOND, True))
    )
    return (
        *(Question(known[name]) for name in ("seq2-sparse", "seq3-sparse", "seq2-27%")),
        Question(Workload("count", "COUNT(*) of SEQ(A, B+, C), 10 events of B a window", UNIFORM, kleene), "count"),
        Question(Workload("count-keyed", "the same by key", UNIFORM, keyed_kleene), "count"),
        Question(Workload("acel", "A ; B ; C by key, filters keep 20 % of each", UNIFORM, sparse, share=0.2), "acel"),
        Question(Workload("rule", "the same as a rule of PARTElang", UNIFORM, sparse, share=0.2), "parte"),
    )


def formula_of(shape: Shape) -> str:
    """A sequence in ACEL."""
    steps = " ; ".join(f"{step.type} AS {step.variable}" for step in shape.steps)
    filters = [f"{step.variable}[value > {step.above!r}]" for step in shape.steps if step.above is not None]
    filtered = f" FILTER {' AND '.join(filters)}" if filters else ""
    return f"({steps}){filtered}\n{_clauses(shape, 'PARTITION', 'WITHIN', 'RETURN')}"


def program_of(shape: Shape) -> str:
    """A keyed sequence as a rule; times are whole microseconds, so that less than a window is at most one less."""
    first = shape.steps[0]
    parts, distances = [], []
    for place, step in enumerate(shape.steps):
        conditions = [f"key = {first.variable}.key"] if place else []
        conditions += [f"value > {step.above!r}"] if step.above is not None else []
        parts.append(f"  {step.variable} : {step.type} {{ {', '.join(conditions)} }}")
        earlier = dict.fromkeys((shape.steps[place - 1], first)) if place else {}
        distances += [f"  {step.variable} in {one.variable} [1 us, {shape.window_us - 1} us]" for one in earlier]
    templates = [f"template {step.type} {{ id : Long, key : Integer, value : Double }}" for step in shape.steps]
    return "\n".join([*templates, f"rule {RULE} where", *parts, "when", *distances])


def count_of(shape: Shape) -> str:
    """How many matches the sequence has when its middle step is an iteration."""
    first, middle, last = (step.type for step in shape.steps)
    pattern = f"PATTERN SEQ({first} a, {middle}+ b, {last} c)"
    return f"{pattern}\n{_clauses(shape, 'PARTITION', 'WITHIN')}\nRETURN COUNT(*) AS n"


def _clauses(shape: Shape, *keywords: str) -> str:
    return "\n".join(line for line in text_of(shape).splitlines() if line.startswith(keywords))
