"""The keywords of `match`, `check` and `explain`, and the way from a query with checked options to an engine.

An engine is imported when it is asked for: neither Spark nor arrays are needed to read and check a pattern.
"""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program
from tocsin.analysis.rates import parse_rates
from tocsin.optimizer.statistics import Statistics
from tocsin.options import BATCH, LOCAL, NOTHING, OPTIONS, STREAM, Demands, Options, strategies_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tocsin.engines.rule_run import Run
    from tocsin.engines.spark.engine import Prepared

P = ParamSpec("P")
R = TypeVar("R")
PLACES = {LOCAL: 'with `engine="local"`', BATCH: "on a batch", STREAM: "on a stream", NOTHING: "without `inputs`"}
LIMITS = ("max_matches_per_start", "max_task_memory")
# The strategies in which nothing counts the matches of a start.
UNLIMITED = ("join", "sliding-window", "count", "trend")


class InputOptions(TypedDict, total=False):
    """The keywords of every method that reads inputs or their schemas; `Options` has the defaults."""

    time: str | Mapping[str, str]
    tie: str | Iterable[str] | None
    type: str
    time_unit: str | None


class ExplainOptions(InputOptions, total=False):
    """The keywords of `explain`."""

    id: str | None
    strategy: str
    lateness: str | dt.timedelta | None
    statistics: Statistics | None
    emit: str


class MatchOptions(ExplainOptions, total=False):
    """The keywords of `match`: all options."""

    rates: Mapping[str, Any] | None
    max_matches_per_start: int
    max_task_memory: int | str
    engine: str
    form: str
    shards: int | None
    heartbeats: DataFrame | Mapping[str, DataFrame] | None
    late: bool | str
    idle_timeout: str | dt.timedelta | None


class CheckOptions(InputOptions, total=False):
    """The keywords of `check`; `Demands` has the defaults."""

    lateness: str | dt.timedelta | None
    streaming: bool
    max_state: str | int | None
    live_keys: int | None


class RulesCheckOptions(CheckOptions, total=False):
    """The keywords of `check` of rules."""

    guarantees: bool


def with_options(keywords: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Show options, and their defaults, in the signature of a method that takes them as `**options`."""
    defaults = {each.name: each.default for each in (*fields(Options), *fields(Demands))}
    kinds = {name: kind.__forward_arg__ for name, kind in keywords.__annotations__.items()}

    def shown(method: Callable[P, R]) -> Callable[P, R]:
        own = inspect.signature(method)
        *before, _ = own.parameters.values()
        options = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name])
            for name, default in defaults.items()
            if name in kinds
        ]
        method.__signature__ = own.replace(parameters=[*before, *options])  # type: ignore[attr-defined]
        return method

    return shown


def _check_keywords(given: Mapping[str, Any], keywords: Any) -> None:
    """Refuse a keyword that a method does not have, as Python does for those of a signature."""
    known = keywords.__annotations__
    for name in given:
        if name not in known:
            raise TypeError(f"There is no option `{name}`; {errors.did_you_mean(name, known, 'options')}")


def check_demands(rates: Any, given: Mapping[str, Any], keywords: Any) -> Demands:
    """The options of `check`; an InvalidOptionError is raised for columns and switches that are none."""
    _check_keywords(given, keywords)
    return Demands(rates=rates, **given)


def check_options(
    given: Mapping[str, Any],
    inputs: Any,
    keywords: Any = MatchOptions,
    *,
    check_rates: Callable[[Any], object] = parse_rates,
    of_rules: bool = False,
) -> Options:
    """The options of a method: all that is wrong is raised at once, and so are options that would change nothing.

    `check_rates` raises for rates that do not fit the query.
    """
    _check_keywords(given, keywords)
    problems: list[errors.TocsinError] = []
    with errors.collecting(problems):
        if given.get("rates") is not None:
            check_rates(given["rates"])
    options = Options()
    with errors.collecting(problems):
        options = Options.checked(given, of_rules=of_rules)
        errors.raise_all([*_ineffective(options, inputs)])
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


def _ineffective(options: Options, inputs: Any) -> Iterator[errors.TocsinError]:
    """Options that have no effect on these inputs, or beside others."""
    place, strategy = place_of(options.engine, inputs), options.strategy
    given = [name for name, option in OPTIONS.items() if option.is_given(getattr(options, name))]
    for name in given:
        if place in OPTIONS[name].no_effect:
            yield _without_effect(name, PLACES[place], OPTIONS[name].no_effect[place])
    if "type" in given and isinstance(inputs, Mapping):
        yield _without_effect("type", "on one input for each event type", "it names the type column of a single input")
    able = strategies_in(LOCAL)
    if place == LOCAL and strategy not in able:
        yield errors.InvalidOptionError(
            f'The strategy `{strategy}` is Spark\'s and does not run with `engine="local"`.',
            hint=errors.did_you_mean(strategy, able, "strategies of the local engine"),
        )
    for name in given:
        if name in (*LIMITS, "id") and "form" in given:
            why = "a compact row holds any number of matches, without ids"
            yield _without_effect(name, 'with `form="compact"`', why)
        elif name in LIMITS and strategy in UNLIMITED:
            why = "this strategy does not search start by start"
            yield _without_effect(name, f'with `strategy="{strategy}"`', why)
    if place == BATCH and "rates" in given and "statistics" in given:
        yield _without_effect("rates", "beside `statistics=`", "these have the number of events of each type already")


def _without_effect(name: str, where: str, why: str) -> errors.InvalidOptionError:
    return errors.InvalidOptionError(f"`{name}=` has no effect {where}: {why}.", hint=f"leave out `{name}=`.")


# --- the engines ----------------------------------------------------------------------------------


def prepared(query: alg.Query, inputs: Any, options: Options) -> Prepared:
    """A query that fits its DataFrames."""
    with needing(*SPARK):
        from tocsin.engines.spark.engine import prepare
    return prepare(query, inputs, options, warns=True)


def matched_locally(query: alg.Query, inputs: Any, options: Options) -> Any:
    """The matches of a query in this process, as an Arrow table."""
    with needing(*ARROW):
        from tocsin.engines.local import match as local
    return local.match(query, inputs, options, warns=True)


def program_run(program: Program, inputs: Any, options: Options) -> Run[Any]:
    """A program on an engine, on batches or streams as its inputs are; it counts in the unit of integer times."""
    from tocsin.plan.program_plan import program_plan, times_of

    options = replace(options, time=times_of(program, options.time))
    engine: Any
    if options.engine == "local":
        with needing(*ARROW):
            from tocsin.engines.local.rule_tables import Local
        engine = Local(inputs, program, options)
    else:
        with needing(*SPARK):
            from tocsin.engines.spark.rule_engine import Spark
        engine = Spark(inputs, program.read, options.type)
    is_streaming = place_of(options.engine, inputs) == STREAM
    shares = engine.whole is not None
    plan = program_plan(program, options, engine.schemas, shared_input=shares, is_streaming=is_streaming)
    if is_streaming:
        from tocsin.engines.stream.program_run import LiveRun

        return LiveRun(plan, engine)
    from tocsin.engines.rule_run import Run

    return Run(plan, engine)


@contextmanager
def needing(packages: Collection[str], problem: str) -> Iterator[None]:
    """Report that packages of the extra `spark` are missing, where imports need them."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] not in packages:
            raise
        raise errors.MissingExtraError(problem, hint="pip install 'tocsin[spark]'.") from None


SPARK = (("pyspark",), "Matching needs Apache Spark, and pyspark is not installed.")
ARROW = (("pyarrow", "numpy"), "The local engine needs pyarrow and numpy.")
