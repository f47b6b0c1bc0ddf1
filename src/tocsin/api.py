"""Patterns: `pattern()` compiles a query, `Pattern.match` runs it, `check` and `explain` report on it.

Compiling needs no Spark; pyspark is imported when DataFrames come in.
"""

from __future__ import annotations

import contextlib
import io
import warnings as python_warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.nodes import ordered_by_ties
from tocsin.algebra.tree_text import to_text
from tocsin.algebra.units import counting
from tocsin.analysis.front_ends import compiled
from tocsin.analysis.rates import check_rates
from tocsin.engines.dispatch import (
    CheckOptions,
    ExplainOptions,
    InputOptions,
    MatchOptions,
    check_demands,
    check_options,
    matched_locally,
    prepared,
    with_options,
)
from tocsin.explain.pattern_report import checked
from tocsin.explain.planner import network_text, plan_sections
from tocsin.language import ast
from tocsin.language.acel import ast as acel
from tocsin.language.builder import Draft
from tocsin.language.grammars import LONGEST_TEXT
from tocsin.language.user_defined import Monoid, registered
from tocsin.optimizer.statistics import Statistics
from tocsin.options import (
    check_max_text,
    check_name,
)
from tocsin.plan.plan import unbound_plan
from tocsin.plan.strategies import unsupported
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
    max_text: int = LONGEST_TEXT,
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
        User-defined aggregates that the text uses, `{"product": tocsin.Monoid(zero=1, combine=operator.mul)}`.
    max_text
        The most characters a text may have; a longer one is refused before it is read.

    Returns
    -------
    Pattern
        To be matched against DataFrames, checked and explained, as often as you like.

    Raises
    ------
    QuerySyntaxError
        When the text is not a query; it shows the place and what was expected there.
    QueryBindingError
        When names or clauses do not fit together. Attributes need schemas: `check` and `match` compare them.

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
    check_max_text("max_text", max_text)
    check_name("name", name)
    text, tree, translation = compiled(query, language, name or "<pattern>", registered(aggregates), max_text)
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

    @with_options(MatchOptions)
    def match(self, inputs: DataFrame | Mapping[str, DataFrame], **options: Unpack[MatchOptions]) -> Any:
        """Find every match, as a DataFrame: nothing runs until you use it.

        Streaming DataFrames give a streaming DataFrame with each match once; sink, trigger and checkpoint are yours.

        Parameters
        ----------
        inputs
            One DataFrame per event type, `{"Login": logins, "Transfer": transfers}`, or one with a type column.
        time
            The time column, of timestamps or integers, or a mapping from event type to it. NULL times are ignored.
        tie
            Columns that order events of one instant, where order matters.
        type
            The type column, when `inputs` is one DataFrame.
        id
            A column that identifies an event. Without it, an event is its values, and equal rows are numbered.
        time_unit
            What an integer time column counts: `"s"`, `"ms"`, `"us"` (by default, with a warning where the query has a
            duration) or `"ns"`. Durations are converted to it; `start` and `end` are in it.
        rates
            Events per second of each type, `{"Login": "100/s"}`. They guide the choice of a plan without statistics,
            and bound the state of a stream, which reports inputs that send more.
        strategy
            `"auto"` chooses; `"kernel"` runs every pattern; `"join"` and `"sliding-window"` are Spark's own joins, for
            patterns without open iterations and policies; `"clustered"` shuffles nothing, for input in order of time;
            `"automaton"` reads events one by one, which is how ACEL runs; `"aggregate"` needs nothing but aggregates
            over overlapping windows, for patterns of bounded span.
        lateness
            How late events of a stream may come, `"10 seconds"`; by default what `withWatermark` sets.
        statistics
            What `analyze` has measured, or what you know: `Statistics.of(...)`.
        max_matches_per_start
            How many matches may begin with one event; beyond, the job stops with TOO_MANY_MATCHES.
        max_task_memory
            How much memory one task may use for matches: a number of bytes, or a text such as `"2GB"`. Beyond, the job
            stops with TOO_MUCH_MEMORY. The result of `engine="local"` counts too.
        engine
            `"spark"`, or `"local"`: in this process, without a JVM, from paths of files, Arrow tables, DataFrames of
            pandas or Polars, or lists of dicts to an Arrow table.
        form
            `"matches"`, a row for each, or `"compact"`: a row for each event that matches end at, with their exact
            number and what they share, however many they are; `enumerate` lists them.
        shards
            How many shards a keyed stream has; by default as many as Spark has shuffle partitions.
        emit
            When a stream emits matches: as soon as nothing can change them (`"auto"`), or in order (`"watermark"`).
        heartbeats
            A stream with a time column that advances the watermark of idle inputs; or several, by event type.
        late
            Whether events that came too late are rows of the result of a stream: all columns NULL but `late`, which
            holds the event as JSON, and is NULL for matches. `"fail"` stops the stream with LATE_EVENTS instead.
        idle_timeout
            Stop waiting for an input that has been idle for this long of wall-clock time. By default wait for all.

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
        check = partial(check_rates, pattern=self.query.pattern)
        asked = check_options(options, inputs, check_rates=check)
        if asked.engine == "local":
            return matched_locally(self.query, inputs, asked)
        refusal = unsupported(self.query)
        if refusal is not None:
            raise refusal
        made = prepared(self.query, inputs, asked)
        if asked.form == "compact":
            return made.compact()
        if made.plan.warning is not None:
            python_warnings.warn(errors.TocsinWarning("EXPLOSION_EXPECTED", made.plan.warning), stacklevel=2)
        return made.matches()

    def enumerate(self, row: Any) -> Iterator[dict[str, Any]]:
        """Yield the matches of a compact row, lazily.

        Parameters
        ----------
        row
            A row of `match(…, form="compact")`: Spark's `Row`, or a mapping.

        Returns
        -------
        iterator of dict
            `start`, `end`, and the RETURN columns or variables; no ids.

        Raises
        ------
        InvalidInputError
            When the row is no compact row, or one of another pattern.
        """
        from tocsin.engines.worker.compacted import enumerated

        return enumerated(self.query, row)

    @with_options(InputOptions)
    def analyze(
        self, inputs: DataFrame | Mapping[str, DataFrame], *, sample: float = 0.05, **options: Unpack[InputOptions]
    ) -> Statistics:
        """Measure the inputs for the choice of a plan. This runs one Spark job, which reads them once.

        Parameters
        ----------
        inputs, time, tie, type, time_unit
            As for `match`.
        sample
            The share of the rows by which the heaviest key is found.

        Returns
        -------
        Statistics
            Counts, rates, how many events pass each variable's own conditions, keys and their skew, and whether the
            input is clustered by time. Pass it to `match` and `explain`; it can be printed and stored.
        """
        made = prepared(self.query, inputs, check_options(options, inputs, InputOptions))
        from tocsin.engines.spark.analyze import analyze

        return analyze(made.plan.query, made.inputs, sample=sample).times(made.plan.options.unit.microseconds)

    @with_options(CheckOptions)
    def check(
        self,
        schemas: DataFrame | StructType | Mapping[str, DataFrame | StructType | Mapping[str, str]] | None = None,
        rates: Mapping[str, Any] | None = None,
        **options: Unpack[CheckOptions],
    ) -> CheckReport:
        """Check the query against the schemas of its event types, and report what is known before anything runs.

        Parameters
        ----------
        schemas
            For each event type a DataFrame, a Spark schema, or `{"attribute": "bigint"}`; or one DataFrame with a type
            column, whose columns every event type then has. Without schemas, the report has no result columns.
        rates
            Events per second of each type, `{"Login": "100/s"}`: the report then has how much a live query remembers.
        time, tie, type, time_unit
            As for `match`.
        lateness
            How late events may come, `"10 seconds"` or a timedelta; they are remembered that much longer.
        streaming
            Refuse a query that no finite state can run.
        max_state
            Refuse a query that may keep more than this, `"4GB"` or `"64 kB per key"`, or of which it is not known.
        live_keys
            How many keys have events at once: what rates per key, `"5/h per key"`, add up to.

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
        return checked(self.query, schemas, check_demands(rates, options, CheckOptions), self.warnings)

    @with_options(ExplainOptions)
    def explain(
        self,
        inputs: DataFrame | Mapping[str, DataFrame] | None = None,
        *,
        mode: str = "simple",
        **options: Unpack[ExplainOptions],
    ) -> Report:
        r"""Explain how the query is understood and run: its plan, and with inputs Spark's own.

        Parameters
        ----------
        inputs
            As for `match`; without them, all that can be said without data.
        mode
            The mode of Spark's plan, as for `DataFrame.explain`: simple, extended, codegen, cost or formatted.
        time, tie, type, id, time_unit, strategy, statistics, lateness, emit
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
        if not isinstance(mode, str) or mode not in EXPLAIN_MODES:
            raise errors.InvalidOptionError(
                f"There is no mode `{errors.named(mode)}`.", hint=errors.did_you_mean(mode, EXPLAIN_MODES, "modes")
            )
        asked = check_options(options, inputs, ExplainOptions)
        if inputs is None and mode != EXPLAIN_MODES[0]:
            raise errors.InvalidOptionError(
                "`mode=` has no effect without `inputs`: it is the mode of Spark's plan.", hint="leave out `mode=`."
            )
        query = ordered_by_ties(self.query) if asked.tie else self.query
        parts = {"Query": self.text.strip("\n"), "Logical plan": to_text(query)}
        if inputs is None:
            plan = unbound_plan(query, asked)
            parts |= {"Temporal network": network_text(plan.rule.network)} | plan_sections(plan)
        else:
            made = prepared(self.query, inputs, asked)
            with counting(made.plan.options.unit.microseconds):
                parts |= {"Temporal network": network_text(made.plan.rule.network)} | plan_sections(made.plan)
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
