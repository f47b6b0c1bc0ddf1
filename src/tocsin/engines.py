"""The engines, imported when they are asked for: neither Spark nor arrays are needed to read and check a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program
from tocsin.options import check_columns

if TYPE_CHECKING:
    from tocsin.physical.engine import Prepared
    from tocsin.physical.programs.run import Run
    from tocsin.physical.streaming.programs.run import LiveRun

ENGINES = ("spark", "local")
FORMS = ("matches", "compact")


def check_choice(engine: str, form: str) -> None:
    """Refuse an engine, or a form of the result, that there is not."""
    for what, given, known in (("engine", engine, ENGINES), ("form of a result", form, FORMS)):
        if given not in known:
            raise errors.InvalidOptionError(
                f"There is no {what} `{given}`.", hint=errors.did_you_mean(given, known, f"{what.split()[0]}s")
            )


def prepared(
    query: alg.Query,
    inputs: Any,
    *,
    time: str | Mapping[str, str],
    tie: str | Iterable[str] | None,
    type: str,
    id: str | None,
    strategy: str,
    **options: Any,
) -> Prepared:
    """A query that fits its DataFrames."""
    if isinstance(tie, Iterable) and not isinstance(tie, str):
        tie = tuple(tie)
    check_columns(time=time, type=type, tie=tie, id=id)
    with _needing_spark():
        from tocsin.physical.engine import prepare
    return prepare(query, inputs, time=time, tie=tie, type=type, id=id, strategy=strategy, **options)


def matched_locally(
    query: alg.Query,
    inputs: Any,
    *,
    time: str | Mapping[str, str],
    tie: str | Iterable[str] | None,
    type: str,
    id: str | None,
    **options: Any,
) -> Any:
    """The matches of a query in this process, as an Arrow table."""
    check_columns(time=time, type=type, tie=tie, id=id)
    with _needing_arrow():
        from tocsin.physical import local
    return local.match(query, inputs, time=time, tie=tie, type=type, id=id, **options)


def program_run(
    program: Program,
    inputs: Any,
    *,
    engine: str,
    time: str | Mapping[str, str],
    tie: str | Iterable[str] | None,
    type: str,
    id: str | None,
    strategy: str = "auto",
) -> Run[Any]:
    """A program and its inputs on an engine."""
    ties = (tie,) if isinstance(tie, str) else tuple(tie or ())
    check_columns(time=time, type=type, tie=ties or None, id=id)
    check_choice(engine, FORMS[0])
    from tocsin.physical.programs.claims import check_strategy
    from tocsin.physical.programs.run import Columns, Run, times_of

    check_strategy(strategy)
    columns = Columns(times_of(program, time), ties, type, id)
    if engine == "local":
        with _needing_arrow():
            from tocsin.physical.programs.local import Local
        return Run(program, Local(inputs, program, columns), columns, strategy)
    with _needing_spark():
        from tocsin.physical.programs.spark import Spark
    return Run(program, Spark(inputs, program.read, type), columns, strategy)


def program_asked(
    program: Program, inputs: Any, engine: str, columns: Mapping[str, Any], streaming: Mapping[str, Any]
) -> Run[Any] | LiveRun:
    """The same on batches or on streams, as the inputs are; `streaming` is what `stream_options` gives."""
    run = program_run(program, inputs, engine=engine, **columns)
    if engine == "local":
        return run
    from tocsin.physical.engine import Options
    from tocsin.physical.streaming.programs.run import LiveRun, has_streams

    options = Options(**streaming)
    return LiveRun(program, inputs, run.columns, options, run.strategy) if has_streams(inputs) else run


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
