"""From a query and checked options to an engine, which is imported when it is asked for.

Neither Spark nor arrays are needed to read and check a pattern.
"""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program
from tocsin.optimizer.statistics import Statistics
from tocsin.options import (
    BATCH,
    LOCAL,
    NOT_OF_RULES,
    NOTHING,
    OPTIONS,
    STREAM,
    Options,
    strategies_in,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tocsin.engines.rule_run import Run
    from tocsin.engines.spark.engine import Prepared

P = ParamSpec("P")
R = TypeVar("R")
PLACES = {LOCAL: 'with `engine="local"`', BATCH: "on a batch", STREAM: "on a stream", NOTHING: "without `inputs`"}
# The strategies in which nothing counts the matches of a start.
UNLIMITED = ("join", "sliding-window", "count", "trend")


class MatchOptions(TypedDict, total=False):
    """The options of `match` as keywords of a method; `Options` has their defaults."""

    time: str | Mapping[str, str]
    tie: str | Iterable[str] | None
    type: str
    id: str | None
    time_unit: str | None
    rates: Mapping[str, Any] | None
    strategy: str
    lateness: str | dt.timedelta | None
    statistics: Statistics | None
    max_matches_per_start: int
    max_task_memory: int | str
    engine: str
    form: str
    shards: int | None
    emit: str
    heartbeats: DataFrame | Mapping[str, DataFrame] | None
    late: bool | str
    idle_timeout: str | dt.timedelta | None


def with_options(method: Callable[P, R]) -> Callable[P, R]:
    """Show the options of `match` in the signature of a method that takes them as `**options`."""
    own = inspect.signature(method)
    *before, _ = own.parameters.values()
    defaults = {field.name: field.default for field in fields(Options)}
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind.__forward_arg__)
        for name, kind in MatchOptions.__annotations__.items()
    ]
    method.__signature__ = own.replace(parameters=[*before, *options])  # type: ignore[attr-defined]
    return method


def check_options(given: Mapping[str, Any], inputs: Any, *, of_rules: bool = False) -> Options:
    """The options of `match`: all that is wrong is raised at once, and so are options that would change nothing.

    Parameters
    ----------
    given
        Options of `match` by name.
    inputs
        The inputs: they tell a batch from a stream.
    of_rules
        Whether a program of rules is matched, and not a pattern.

    Raises
    ------
    InvalidOptionError
        For the one that is wrong, or a `QueryErrors` with all of them.
    """
    problems: list[errors.TocsinError] = []
    wrong = []
    for name, check in NOT_OF_RULES.items() if of_rules else ():
        with errors.collecting(problems):
            wrong.append(name)
            check(name, given.get(name, OPTIONS[name].default))
            wrong.pop()
    options = Options()
    with errors.collecting(problems):
        options = Options(**{name: value for name, value in given.items() if name not in wrong})
    errors.raise_all(problems)
    place = place_of(options.engine, inputs)
    for name, option in OPTIONS.items():
        if name in given and option.is_given(getattr(options, name)) and place in option.no_effect:
            problems.append(_without_effect(name, PLACES[place], option.no_effect[place]))
    problems += _beside_others(options, inputs, place)
    errors.raise_all(problems)
    return options


def place_of(engine: str, inputs: Any) -> str:
    """Where a query runs: `"local"`, `"batch"` or `"stream"`; `"nothing"` when it has no inputs yet."""
    from tocsin.engines.spark.compat import has_streams

    if inputs is None:
        return NOTHING
    if engine == LOCAL:
        return LOCAL
    return STREAM if has_streams(inputs) else BATCH


def _beside_others(options: Options, inputs: Any, place: str) -> Iterator[errors.TocsinError]:
    """Options that have no effect beside others, or on inputs of this form."""
    is_given = {name: option.is_given(getattr(options, name)) for name, option in OPTIONS.items()}
    if is_given["type"] and isinstance(inputs, Mapping):
        yield _without_effect("type", "on one input for each event type", "it names the type column of a single input")
    strategy = options.strategy
    able = strategies_in(LOCAL)
    if place == LOCAL and strategy not in able:
        yield errors.InvalidOptionError(
            f'The strategy `{strategy}` is Spark\'s and does not run with `engine="local"`.',
            hint=errors.did_you_mean(strategy, able, "strategies of the local engine"),
        )
    if is_given["form"]:
        why = "a compact row holds any number of matches, without ids"
        for name in ("max_matches_per_start", "max_task_memory", "id"):
            if is_given[name]:
                yield _without_effect(name, 'with `form="compact"`', why)
    elif strategy in UNLIMITED:
        why = "this strategy does not search start by start"
        for name in ("max_matches_per_start", "max_task_memory"):
            if is_given[name]:
                yield _without_effect(name, f'with `strategy="{strategy}"`', why)
    if place == BATCH and is_given["rates"] and is_given["statistics"]:
        yield _without_effect("rates", "beside `statistics=`", "these have the number of events of each type already")


def _without_effect(name: str, where: str, why: str) -> errors.InvalidOptionError:
    return errors.InvalidOptionError(f"`{name}=` has no effect {where}: {why}.", hint=f"leave out `{name}=`.")


# --- the engines ----------------------------------------------------------------------------------


def prepared(query: alg.Query, inputs: Any, options: Options) -> Prepared:
    """A query that fits its DataFrames."""
    with _needing_spark():
        from tocsin.engines.spark.engine import prepare
    return prepare(query, inputs, options, warns=True)


def matched_locally(query: alg.Query, inputs: Any, options: Options) -> Any:
    """The matches of a query in this process, as an Arrow table."""
    with _needing_arrow():
        from tocsin.engines.local import match as local
    return local.match(query, inputs, options, warns=True)


def program_run(program: Program, inputs: Any, options: Options) -> Run[Any]:
    """A program on an engine, on batches or streams as its inputs are; it counts in the unit of integer times."""
    from tocsin.engines.rule_run import timed_run, times_of

    options = replace(options, time=times_of(program, options.time))
    if options.engine == "local":
        with _needing_arrow():
            from tocsin.engines.local.rule_tables import Local
        return timed_run(program, Local(inputs, program, options), options)
    with _needing_spark():
        from tocsin.engines.spark.rule_engine import Spark
    engine = Spark(inputs, program.read, options.type)
    if place_of(options.engine, inputs) != STREAM:
        return timed_run(program, engine, options)
    from tocsin.engines.stream.program_run import LiveRun

    return timed_run(program, engine, options, LiveRun)


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
