"""The engines, imported when they are asked for: neither Spark nor arrays are needed to read and check a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program
from tocsin.analysis.limits import parse_limit
from tocsin.analysis.rates import Rate
from tocsin.options import STREAM, engine_options, place_of

if TYPE_CHECKING:
    from tocsin.physical.engine import Prepared
    from tocsin.physical.programs.run import Run
    from tocsin.physical.streaming.programs.run import LiveRun

COLUMNS = ("time", "tie", "type", "id", "time_unit")


def prepared(
    query: alg.Query, inputs: Any, given: Mapping[str, Any], rates: Mapping[str, Rate] | None = None
) -> Prepared:
    """A query that fits its DataFrames; `given` are options of `match` that `check_options` has accepted."""
    with _needing_spark():
        from tocsin.physical.engine import prepare
    return prepare(query, inputs, **_columns(given), **engine_options(given), rates=rates or {}, warns=True)


def matched_locally(query: alg.Query, inputs: Any, given: Mapping[str, Any]) -> Any:
    """The matches of a query in this process, as an Arrow table."""
    with _needing_arrow():
        from tocsin.physical import local
    return local.match(
        query,
        inputs,
        **_columns(given),
        max_matches_per_start=given["max_matches_per_start"],
        max_task_memory=parse_limit(given["max_task_memory"]).bytes,
        strategy=given["strategy"],
        is_compact=given["form"] == "compact",
        warns=True,
    )


def program_run(
    program: Program,
    inputs: Any,
    *,
    engine: str,
    time: str | Mapping[str, str],
    tie: str | Iterable[str] | None,
    type: str,
    id: str | None,
    time_unit: str | None = None,
    **search: Any,
) -> Run[Any]:
    """A program and its inputs on an engine, its durations in the unit of integer times.

    `search` are the fields of `tocsin.physical.programs.run.Search`.
    """
    from tocsin.physical.programs.run import Columns, timed_run, times_of

    ties = (tie,) if isinstance(tie, str) else tuple(tie or ())
    columns = Columns(times_of(program, time), ties, type, id)
    if engine == "local":
        with _needing_arrow():
            from tocsin.physical.programs.local import Local
        return timed_run(program, Local(inputs, program, columns), columns, time_unit, search)
    with _needing_spark():
        from tocsin.physical.programs.spark import Spark
    return timed_run(program, Spark(inputs, program.read, type), columns, time_unit, search)


def program_asked(
    program: Program, inputs: Any, given: Mapping[str, Any], rates: Mapping[str, Rate]
) -> Run[Any] | LiveRun:
    """A program on batches or on streams, as the inputs are; `given` as for `prepared`."""
    search = {name: given[name] for name in ("strategy", "max_matches_per_start", "statistics")}
    search["max_task_memory"] = parse_limit(given["max_task_memory"]).bytes
    run = program_run(program, inputs, engine=given["engine"], **_columns(given), **search)
    if place_of(given["engine"], inputs) != STREAM:
        return run
    from tocsin.physical.engine import Options
    from tocsin.physical.streaming.programs.run import LiveRun

    options = Options(**engine_options(given), rates=rates).counting(run.unit)
    return LiveRun(run.unit.program(program), inputs, run.columns, options)


def _columns(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in COLUMNS if name in given}


@contextmanager
def _needing_spark() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] != "pyspark":
            raise
        raise errors.MissingExtraError(
            "Matching needs Apache Spark, and pyspark is not installed.", hint="pip install 'tocsin[spark]'."
        ) from None


@contextmanager
def _needing_arrow() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] not in ("pyarrow", "numpy"):
            raise
        raise errors.MissingExtraError(
            "The local engine needs pyarrow and numpy.", hint="pip install 'tocsin[spark]'."
        ) from None
