"""One way to run a case file on every engine: the reference, local, batches on Spark by each strategy, a Spark stream.

`pairs` lists every case with every engine, `ways_of` the strategies by which an engine runs it, and `runner` runs one.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.streaming.queries import FAR, Folder

import tocsin
from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.algebra.nodes import ordered_by_ties
from tocsin.analysis.temporal import network
from tocsin.engines.spark.engine import prepare
from tocsin.options import Options
from tocsin.plan.strategies import refusals, refused_on_streams
from tocsin.testing.cases import Case, load_cases, parse_cases

ARROW_TYPES = {"boolean": pa.bool_(), "bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}
SPARK_TYPES = {arrow: name for name, arrow in ARROW_TYPES.items()}
NAMES = {bool: "boolean", int: "bigint", float: "double", str: "string"}


def cases_of_page(page: Path) -> list[Case]:
    """The cases that a page of the docs shows."""
    blocks = re.findall(r"^```case\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [case for block in blocks for case in parse_cases(block, page.name)]


ROOT = Path(__file__).parents[1]
CASES = load_cases(ROOT / "tests" / "cases") + cases_of_page(ROOT / "docs" / "explanation" / "coming-from.md")
VALID = [case for case in CASES if case.error is None]
# `make test` runs each so manieth case on Spark, and `make test-slow` every one by every strategy.
SPARK_TAKES, STREAMS_TAKE = 9, 60

Rows = list[dict[str, Any]]


def compiled(case: Case) -> tocsin.Pattern:
    return _compiled(case.pattern, case.language, f"{case.file}:{case.line}")


@cache
def _compiled(text: str, language: str, name: str) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(text, language=language, name=name)


def compiled_anew() -> None:
    """Compile every case again: for tests that change what a pattern means."""
    _compiled.cache_clear()


# --- the engines ----------------------------------------------------------------------------------


def by_reference(case: Case) -> Rows:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return reference.evaluate(compiled(case), case.inputs(), tie=case.tie)


def locally(case: Case, strategy: str = "auto") -> Rows:
    found = compiled(case).match(tables(case), tie=case.tie, engine="local", strategy=strategy)
    return [dict(row) for row in found.to_pylist()]


def on_spark(case: Case, spark: SparkSession, strategy: str) -> Rows:
    frames = {kind: spark.createDataFrame(table) for kind, table in tables(case).items()}
    # Slices as narrow as the pattern allows, so that matches straddle them.
    options = {"slice_us": 1} if strategy in ("kernel", "automaton") else {}
    made = prepare(compiled(case).query, frames, Options(tie=case.tie, strategy=strategy, **options))
    return rows_of(made.matches())


def on_a_stream(case: Case, spark: SparkSession, folder: Path) -> Rows:
    """Half of the events, the other half, then a time that is later than everything."""
    inputs: dict[str, Folder] = {}
    for kind, table in tables(case).items():
        schema = ", ".join(f"`{field.name}` {SPARK_TYPES[field.type]}" for field in table.schema)
        inputs[kind] = Folder(spark, folder / kind, schema)
        half = (table.num_rows + 1) // 2
        for part in (table.slice(0, half), table.slice(half)):
            inputs[kind].add(part.to_pylist())
    beats = Folder(spark, folder / "beats", "ts bigint")
    for times in ([], [{"ts": FAR}]):
        beats.add(times)
    # The cases list events in any order, so all of them are in time.
    found = compiled(case).match(
        {kind: each.read() for kind, each in inputs.items()},
        tie=case.tie,
        heartbeats=beats.read(),
        lateness=f"{FAR // 2} us",
    )
    beats.run(found)
    return beats.written()


def rows_of(frame: DataFrame) -> Rows:
    return [row.asDict(recursive=True) for row in frame.collect()]


# --- the events of a case -------------------------------------------------------------------------


def tables(case: Case) -> dict[str, pa.Table]:
    """The events, each type with the attributes that the format of the cases promises."""
    rows = case.inputs()
    used = dict.fromkeys(re.findall(r"\.(\w+)", case.pattern), "bigint")
    anywhere = used | column_types([row for events in rows.values() for row in events])
    made = {}
    for kind in sorted({*rows, *alg.event_types(compiled(case).query.pattern)}):
        types = column_types(rows[kind]) if rows.get(kind) else {"id": "string", "ts": "bigint"} | anywhere
        schema = pa.schema([(name, ARROW_TYPES[type_name]) for name, type_name in types.items()])
        made[kind] = pa.Table.from_pylist(rows.get(kind, []), schema=schema)
    return made


def column_types(rows: Rows) -> dict[str, str]:
    types: dict[str, str] = {}
    for row in rows:
        for name, value in row.items():
            found = NAMES[type(value)] if value is not None else None
            known = types.get(name)
            types[name] = found if known in (None, "", found) or (known, found) == ("bigint", "double") else known
            types[name] = types[name] or known or ""
    return {name: type_name or "bigint" for name, type_name in types.items()}


# --- which engine runs which case -----------------------------------------------------------------


def strategies(case: Case) -> tuple[str, ...]:
    """The strategies that claim a case; `clustered` needs an input in order of time."""
    return _strategies(compiled(case), bool(case.tie))


@cache
def _strategies(pattern: tocsin.Pattern, has_ties: bool) -> tuple[str, ...]:
    query = pattern.query
    refused = refusals(ordered_by_ties(query) if has_ties else query)
    return tuple(name for name, refusal in refused.items() if refusal is None and name != "clustered")


def is_live(case: Case) -> bool:
    """Whether a stream runs the case: bounded, and reported while it goes on."""
    query = compiled(case).query
    query = ordered_by_ties(query) if case.tie else query
    if not strategies(case) or refused_on_streams(query, "auto") is not None:
        return False
    try:
        network(query, integer_time=True).require_bounded()
    except errors.TocsinError:
        return False
    return True


def ways_of(engine: str, case: Case) -> tuple[str, ...]:
    """The strategies by which an engine runs a case: none where it refuses the case."""
    claimed = strategies(case)
    match engine:
        case "reference":
            return ("auto",)
        case "local":
            return ("auto", *(one for one in ("automaton", "aggregate") if one in claimed)) if claimed else ()
        case "spark":  # one of them, in turn
            return (claimed[VALID.index(case) // SPARK_TAKES % len(claimed)],) if claimed else ()
        case "all of spark":
            return claimed
        case "stream":
            return ("auto",) if is_live(case) else ()
    raise ValueError(engine)


def pairs() -> Iterator[Any]:
    """Every case with every engine, as parameters of one test; Spark takes about a second for each strategy."""
    on_spark = {"spark": SPARK_TAKES, "all of spark": 0, "stream": STREAMS_TAKE}
    for number, case in enumerate(VALID):
        for engine in ("reference", "local"):
            yield pytest.param(engine, case, id=f"{case} {engine}")
        for engine, every in on_spark.items():
            is_soon = every and number % every == 0
            if is_soon or engine != "spark":
                marks = [pytest.mark.spark, *(() if is_soon else [pytest.mark.slow])]
                yield pytest.param(engine, case, id=f"{case} {engine}", marks=marks)


def runner(engine: str, session: Callable[[], SparkSession], folder: Path) -> Callable[..., Rows]:
    """What runs a case on an engine by a strategy; the session starts only for engines on Spark."""
    match engine:
        case "reference":
            return lambda case, strategy: by_reference(case)
        case "local":
            return locally
        case "spark" | "all of spark":
            return lambda case, strategy: on_spark(case, session(), strategy)
        case "stream":
            return lambda case, strategy: on_a_stream(case, session(), folder)
    raise ValueError(engine)
