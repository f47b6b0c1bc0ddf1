"""What users touch: `pattern()` compiles a query, `Pattern.match` runs it, `check` and `explain` tell about it.

Compiling needs no Spark; pyspark is imported when DataFrames come in.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import warnings as python_warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.text import to_text
from tocsin.analysis.compile import compiled
from tocsin.analysis.rates import parse_rates
from tocsin.analysis.temporal import network
from tocsin.engines import check_choice, matched_locally, prepared
from tocsin.explain.check import Demands, checked
from tocsin.explain.plan import network_text, plan_with_inputs, plan_without_inputs
from tocsin.language import ast
from tocsin.language.acel import ast as acel
from tocsin.language.builder import Draft
from tocsin.language.monoids import Monoid, registered
from tocsin.optimizer.choose import MOST_MATCHES_PER_START
from tocsin.optimizer.statistics import Statistics
from tocsin.options import check_columns, check_rates, collecting, microseconds, stream_options
from tocsin.physical.claims import unsupported
from tocsin.physical.joins.plan import common_clock
from tocsin.reports import CheckReport, Report, query_html, sections

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


EXPLAIN_MODES = ("simple", "extended", "codegen", "cost", "formatted")


def pattern(
    query: str | Draft | ast.Query,
    *,
    language: str = "sase",
    name: str | None = None,
    aggregates: Mapping[str, Monoid] | None = None,
) -> Pattern:
    """Compile a query: syntax, names and structure are checked, and all problems are shown at once.

    Parameters
    ----------
    query
        The text of a query, or one made with `tocsin.builder`.
    language
        The language of a text: `"sase"` or `"acel"`.
    name
        What messages call the text, such as the name of its file.
    aggregates
        Aggregates of your own that the text uses, `{"product": tocsin.Monoid(zero=1, combine=operator.mul)}`. The
        reference evaluator runs them.

    Returns
    -------
    Pattern
        To be matched against DataFrames, checked and explained, as often as you like.

    Raises
    ------
    QuerySyntaxError
        When the text is not a query; it shows the place and what was expected there.
    QueryBindingError
        When names or clauses do not fit together.

    Warns
    -----
    TocsinWarning
        When the query runs, but may not say what was meant.

    Examples
    --------
    >>> import tocsin
    >>> p = tocsin.pattern('''
    ...     PATTERN SEQ(Login a, Transfer b)
    ...     WHERE   a.user = b.user AND b.amount > 1000
    ...     WITHIN  10 MINUTES
    ... ''')
    >>> p.query.window_us
    600000000
    >>> tocsin.pattern("(Login AS l ; Transfer AS t) FILTER t[amount > 1000]", language="acel").query.variables["t"]
    Kind(types=('Transfer',), iterated=False, optional=False)
    """
    text, tree, translation = compiled(query, language, name or "<pattern>", registered(aggregates))
    for warning in translation.warnings:
        python_warnings.warn(warning, stacklevel=2)
    return Pattern(text, tree, translation.query, translation.warnings)


@dataclass(frozen=True, repr=False)
class Pattern:
    """A compiled query; made by `tocsin.pattern`.

    Attributes
    ----------
    text
        The query as text.
    tree
        Its syntax tree.
    query
        Its meaning, a query of the algebra.
    warnings
        What the compiler warned of.
    """

    text: str
    tree: ast.Query | acel.Query
    query: alg.Query
    warnings: tuple[errors.TocsinWarning, ...] = ()

    def match(
        self,
        inputs: DataFrame | Mapping[str, DataFrame],
        *,
        time: str | Mapping[str, str] = "ts",
        tie: str | Iterable[str] | None = None,
        type: str = "type",
        id: str | None = None,
        rates: Mapping[str, Any] | None = None,
        strategy: str = "auto",
        lateness: str | dt.timedelta | None = None,
        statistics: Statistics | None = None,
        max_matches_per_start: int = MOST_MATCHES_PER_START,
        engine: str = "spark",
        form: str = "matches",
        shards: int | None = None,
        emit: str = "auto",
        heartbeats: DataFrame | Mapping[str, DataFrame] | None = None,
        late: bool | str = False,
        idle_timeout: str | dt.timedelta | None = None,
    ) -> Any:
        """Find every match. A plain DataFrame comes back; nothing runs until you use it.

        Streaming DataFrames give a streaming DataFrame: the same matches, each once. Sink, trigger and checkpoint are
        yours.

        Parameters
        ----------
        inputs
            One DataFrame per event type, `{"Login": logins, "Transfer": transfers}`, or one DataFrame with a type
            column. Types may have different columns.
        time
            The time column: a timestamp, or an integer in microseconds; a mapping when it differs per type. Events
            without a time take part in nothing.
        tie
            Columns that order events of one instant, where order matters.
        type
            The type column, when `inputs` is one DataFrame.
        id
            A column that identifies an event. Without it, an event is known by its values, and equal rows are
            told apart by counting them, which costs a shuffle of the matches.
        rates
            Events per second of each type, `{"Login": "100/s"}`: the choice of a plan counts with them when there are
            no statistics. A stream tells when an input sends more, and how much it may remember by them.
        strategy
            `"auto"` chooses; `"kernel"` runs every pattern; `"join"` and `"sliding-window"` are Spark's own joins, for
            patterns without open iterations and policies; `"clustered"` shuffles nothing, for input in order of time;
            `"automaton"` reads events one by one, which is how ACEL runs; `"aggregate"` needs nothing but aggregates
            over overlapping windows, for patterns of bounded span.
        lateness
            How late events may come on a stream, `"10 seconds"`: by default what `withWatermark` says of the time
            column. A batch has no late events.
        statistics
            What `analyze` has measured, or what you know: `Statistics.of(...)`.
        max_matches_per_start
            How many matches may begin with one event. Beyond, the job stops with TOO_MANY_MATCHES: an iteration
            under any-match has a match for every subset of its events.
        engine
            `"spark"`, or `"local"`: the same search in this process, without a JVM, on Arrow tables, pandas DataFrames
            or lists of dicts; it gives an Arrow table.
        form
            `"matches"`, a row for each, or `"compact"`: a row for each event that matches end at, with their exact
            number and what they share, however many they are; `enumerate` lists them.
        shards
            How many parts the keys of a stream are spread over; by default as many as Spark has shuffle partitions.
        emit
            When the matches of a stream are given. `"auto"`: as soon as nothing can change them, for many patterns with
            their last event. `"watermark"`: when no earlier one can come any more.
        heartbeats
            A stream with a time column that tells how far time has come where inputs are silent; or one for some of
            them, by event type. Without it, only events move time on.
        late
            Whether events that came too late are rows of the result of a stream: all columns NULL but `late`, which
            holds the event as JSON, and is NULL for matches. `"fail"` stops the stream with LATE_EVENTS instead.
        idle_timeout
            An input that has been silent for so long, by the clock on the wall, holds time back no more; what it then
            tells of the past is late. By default every input is waited for.

        Returns
        -------
        DataFrame
            `match_id`, `start`, `end`, then the RETURN columns, or one struct per variable, NULL when unbound.
            Compact: `start`, `end`, `matches`, `starts`, `events`, `graph`.

        Raises
        ------
        TocsinError
            When the query and the inputs do not fit together: all that is wrong, before anything runs.

        Examples
        --------
        >>> p = pattern("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 10 MINUTES")
        >>> p.match({"A": logins, "B": transfers}).show()  # doctest: +SKIP
        """
        problems: list[errors.TocsinError] = []
        with collecting(problems):
            check_rates(rates, self.query.pattern)
        streaming: dict[str, Any] = {}
        with collecting(problems):
            streaming = stream_options(lateness, shards, heartbeats, late, idle_timeout)
        errors.raise_all(problems)
        if statistics is None and rates:
            statistics = Statistics.of(rates=rates)
        check_choice(engine, form)
        columns: dict[str, Any] = {"time": time, "tie": tie, "type": type, "id": id}
        if engine == "local":
            return matched_locally(
                self.query,
                inputs,
                **columns,
                max_matches_per_start=max_matches_per_start,
                strategy=strategy,
                is_compact=form == "compact",
            )
        refusal = unsupported(self.query)
        if refusal is not None:
            raise refusal
        options: dict[str, Any] = {"statistics": statistics, "max_matches_per_start": max_matches_per_start}
        options["rates"] = parse_rates(rates)
        made = prepared(self.query, inputs, **columns, strategy=strategy, emit=emit, **options, **streaming)
        if form == "compact":
            return made.compact(self.query)
        if made.choice.warning is not None:
            python_warnings.warn(errors.TocsinWarning("EXPLOSION_EXPECTED", made.choice.warning), stacklevel=2)
        return made.matches()

    def enumerate(self, row: Any) -> Iterator[dict[str, Any]]:
        """The matches of a compact row, one by one and only as far as you take them.

        Parameters
        ----------
        row
            A row of `match(…, form="compact")`: Spark's `Row`, or a mapping.

        Returns
        -------
        iterator of dict
            `start`, `end`, and the RETURN columns or what each variable holds: the same matches, without their ids.

        Raises
        ------
        InvalidInputError
            When the row is no compact row, or one of another pattern.
        """
        from tocsin.physical.compacted import enumerated

        return enumerated(self.query, row)

    def analyze(
        self,
        inputs: DataFrame | Mapping[str, DataFrame],
        *,
        time: str | Mapping[str, str] = "ts",
        type: str = "type",
        sample: float = 0.05,
    ) -> Statistics:
        """Measure the inputs for the choice of a plan. This runs one Spark job, which reads them once.

        Parameters
        ----------
        inputs, time, type
            As for `match`.
        sample
            The share of the rows by which the heaviest key is found.

        Returns
        -------
        Statistics
            Counts, rates, how many events pass each variable's own conditions, keys and their skew, and whether the
            input is clustered by time. Pass it to `match` and `explain`; it can be printed and stored.
        """
        made = prepared(self.query, inputs, time=time, tie=None, type=type, id=None, strategy="auto")
        from tocsin.physical.analyze import analyze

        return analyze(made.query, made.inputs, sample=sample)

    def check(
        self,
        schemas: DataFrame | StructType | Mapping[str, DataFrame | StructType | Mapping[str, str]],
        rates: Mapping[str, Any] | None = None,
        *,
        time: str | Mapping[str, str] = "ts",
        type: str = "type",
        lateness: str | dt.timedelta | None = None,
        streaming: bool = False,
        max_state: str | int | None = None,
        live_keys: int | None = None,
    ) -> CheckReport:
        """Check the query against the schemas of its event types, and tell what is known before anything runs.

        Parameters
        ----------
        schemas
            For each event type a DataFrame, a Spark schema, or `{"attribute": "bigint"}`; or one DataFrame with a type
            column, whose columns every event type then has.
        rates
            Events per second of each type, `{"Login": "100/s"}`: then the report says how much a live query remembers.
        time
            The time attribute, or a mapping when it differs per type.
        type
            The type column, when `schemas` is one DataFrame.
        lateness
            How late events may come, `"10 seconds"` or a timedelta; they are remembered that much longer.
        streaming
            Refuse a query that no finite state can run.
        max_state
            Refuse a query that may keep more than this, `"4GB"` or `"64 kB per key"`, or of which it is not known.
        live_keys
            How many keys have events within the longest time that events are kept: what rates per key, `"5/h per key"`,
            add up to.

        Raises
        ------
        TocsinError
            The one thing that is wrong, or a `QueryErrors` with all of them.

        Examples
        --------
        >>> p = pattern("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 10 SECONDS")
        >>> schema = {"ts": "timestamp", "k": "bigint"}
        >>> print(p.check({"A": schema, "B": schema}).lifetimes)
        variable  lifetime
        a         9.999999 s
        b         0 s
        """
        check_columns(time=time, type=type)
        return checked(
            self.query,
            schemas,
            Demands(rates, lateness, streaming, max_state, live_keys),
            time=time,
            clock=self._clock(time),
            type=type,
            warnings=self.warnings,
        )

    def explain(
        self,
        inputs: DataFrame | Mapping[str, DataFrame] | None = None,
        *,
        mode: str = "simple",
        time: str | Mapping[str, str] = "ts",
        tie: str | Iterable[str] | None = None,
        type: str = "type",
        id: str | None = None,
        strategy: str = "auto",
        statistics: Statistics | None = None,
        lateness: str | dt.timedelta | None = None,
        emit: str = "auto",
    ) -> Report:
        r"""Tell how the query is understood and run: its plan, and with inputs Spark's own.

        Parameters
        ----------
        inputs
            As for `match`; without them, all that can be said without data.
        mode
            The mode of Spark's plan, as for `DataFrame.explain`: simple, extended, codegen, cost or formatted.
        time, tie, type, id, strategy, statistics, lateness, emit
            As for `match`; the last two for streams.

        Returns
        -------
        Report
            A text with stable headings.

        Examples
        --------
        >>> report = pattern("PATTERN SEQ(A a, B b) WITHIN 10 SECONDS").explain()
        >>> print(report.partition("== Strategy ==\n")[2])
        kernel: one scan and one shuffle find any number of events, where every join reads and shuffles again
        strategy           cost
        join               not known
        kernel     chosen  not known
        clustered          not possible: it is not known whether the input lies in order of time; `analyze` tells
        sliced kernel: one shuffle, then a compiled search
          scan A a
          scan B b
          shuffle by time slices of 160 s
               with copies of events up to 10 s after a slice
          search
        """
        if mode not in EXPLAIN_MODES:
            raise errors.InvalidOptionError(
                f"There is no mode `{mode}`.", hint=errors.did_you_mean(mode, EXPLAIN_MODES, "modes")
            )
        check_columns(time=time, type=type)
        made = None
        if inputs is not None:
            columns: dict[str, Any] = {"time": time, "tie": tie, "type": type, "id": id}
            late_us = None if lateness is None else microseconds(lateness)
            options: dict[str, Any] = {"statistics": statistics, "lateness_us": late_us, "emit": emit}
            made = prepared(self.query, inputs, **columns, strategy=strategy, **options)
        distances = network(self.query, self._clock(time)) if made is None else made.distances
        parts = {
            "Query": self.text.strip("\n"),
            "Logical plan": to_text(self.query),
            "Temporal network": network_text(distances),
        }
        if made is None:
            parts |= plan_without_inputs(self.query, distances, time, self._clock(time), strategy, statistics)
        else:
            parts |= plan_with_inputs(made)
        if made is not None:
            # Spark prints its plan and does not give it.
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                made.matches().explain(mode=mode)
            parts["Spark plan"] = printed.getvalue().strip("\n")
        return Report(sections(parts))

    def __repr__(self) -> str:
        """The text of the query."""
        return self.text.strip("\n")

    def _repr_html_(self) -> str:
        return query_html(self.text)

    def _clock(self, time: str | Mapping[str, str]) -> str:
        if isinstance(time, str):
            return time
        return common_clock(time[name] for name in alg.event_types(self.query.pattern) if name in time)
