"""Who runs without Spark: Tocsin's local engine, DuckDB, Polars, and what reading the files alone takes.

==============  =====================================================================================================
tocsin          `tocsin.pattern(text).match(events, engine="local")`
tocsin id=      the same with `id="id"`: a match is identified by the ids of its events instead of all their columns
duckdb          SQL, several plans (`duck`)
polars          expressions, several plans (`polar`)
read            no matches: `pyarrow.parquet` reads the columns that the question needs
==============  =====================================================================================================
"""

from __future__ import annotations

import glob
from collections.abc import Callable
from importlib import util
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

import tocsin
from benchmarks.calibrate import Ready
from benchmarks.local.questions import RULE, Question
from benchmarks.race import Build, Contestant, StoppedError
from benchmarks.shapes import Shape

MOST_PAIRS = 5e8
Events = pa.Table | str  # in memory, or a glob of Parquet files


def contestants(question: Question, form: str, *, cores: int, timeout_s: float) -> tuple[Contestant, ...]:
    """All contestants for events in one form, "arrow" or "parquet", in the order of the report."""
    counts = question.is_count

    def only_read(files: str, ready: Ready) -> pa.Table:
        return read(files, columns_of(ready.shape, counts=counts))

    return (
        Contestant("tocsin", _by_tocsin(question)),
        # A count has no matches to identify.
        *(() if counts else [Contestant("tocsin id=", _by_tocsin(question, id="id"))]),
        *_others(counts=counts, cores=cores, timeout_s=timeout_s),
        *([Contestant("read", {"": only_read}, finds_matches=False)] if form == "parquet" else []),
    )


def on_files(*, cores: int, time: str, timeout_s: float) -> tuple[Contestant, ...]:
    """DuckDB and Polars beside Spark: they read the Parquet files of a folder."""

    def of_folder(build: Build) -> Build:
        return lambda folder, ready: build(glob_of(folder), ready)

    return tuple(
        Contestant(
            one.name,
            {name: of_folder(build) for name, build in one.variants.items()},
            reads_files=True,
            missing=one.missing,
        )
        for one in _others(cores=cores, time=time, timeout_s=timeout_s)
    )


def glob_of(folder: Path) -> str:
    return f"{folder}/*.parquet"


def columns_of(shape: Shape, *, counts: bool = False) -> list[str]:
    """The columns of the events that a question needs."""
    return ["ts", "type", *(["key"] if shape.is_keyed else []), *([] if counts else ["id", "value"])]


def read(files: str, columns: list[str] | None = None) -> pa.Table:
    """Columns of Parquet files, in memory."""
    return ds.dataset(sorted(glob.glob(files))).to_table(columns=columns)


def _by_tocsin(question: Question, id: str | None = None) -> dict[str, Build]:
    def match(events: Events, ready: Ready) -> pa.Table:
        text = question.text(ready.shape)
        options = {"time": "ts", "type": "type", "id": id, "engine": "local"}
        if question.language == "parte":
            return tocsin.rules(text).matches(RULE, events, **options)
        language = "acel" if question.language == "acel" else "sase"
        return tocsin.pattern(text, language=language).match(events, **options)

    return {"": match}


def _others(
    *, counts: bool = False, cores: int, time: str = "timestamp", timeout_s: float
) -> tuple[Contestant, Contestant]:
    return (
        _if_installed("duckdb", lambda: _by_duckdb(counts, cores, time, timeout_s)),
        _if_installed("polars", lambda: _by_polars(counts)),
    )


def _if_installed(name: str, plans: Callable[[], dict[str, Build]]) -> Contestant:
    if util.find_spec(name) is None:
        return Contestant(name, {}, missing=f'{name} is not installed: pip install "tocsin[bench]"')
    return Contestant(name, plans())


def _by_duckdb(counts: bool, cores: int, time: str, timeout_s: float) -> dict[str, Build]:
    from benchmarks.local import duck

    def run(plan: duck.Plan) -> Build:
        def build(events: Events, ready: Ready) -> pa.Table:
            given = f"read_parquet('{events}')" if isinstance(events, str) else events
            return duck.answer(plan(ready.shape), given, threads=cores, time=time, timeout_s=timeout_s)

        return build

    return {name: run(plan) for name, plan in (duck.COUNTS if counts else duck.PLANS).items()}


def _by_polars(counts: bool) -> dict[str, Build]:
    from benchmarks.local import polar

    def run(name: str, plan: polar.Plan) -> Build:
        def build(events: Events, ready: Ready) -> pa.Table:
            # Polars cannot be stopped, and such a join may need more memory than there is.
            if name == "join_where" and ready.pairs > MOST_PAIRS:
                raise StoppedError(f"before it looks at {ready.pairs:.0e} pairs")
            return polar.answer(plan, ready.shape, events)

        return build

    return {name: run(name, plan) for name, plan in (polar.COUNTS if counts else polar.PLANS).items()}
