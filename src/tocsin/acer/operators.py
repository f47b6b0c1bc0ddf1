"""The four operators: A, and S&P, T-CER and R-CER, which are made of it (paper 000, Listings 3 to 5)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from tocsin import errors
from tocsin.acer.arrow import annotated_schema
from tocsin.acer.clock import duration, length
from tocsin.acer.dataframes import Operator, source
from tocsin.acer.events import Event
from tocsin.acer.fast import Fold, Instants, Slices, Sliding
from tocsin.acer.functions import function as user_function
from tocsin.acer.listings import Collected, Sequences, Shared, UserAggregate
from tocsin.acer.literal import Literal, Unwrapped
from tocsin.acer.model import Machine
from tocsin.acer.windows import Windows, checked, legal_for_spans, slices
from tocsin.algebra.units import parse_limit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Duration = str | int | dt.timedelta
Names = str | Sequence[str]
SPAN = ("start", "end")
MOST_STATE = "1 MB"
MOST_LOOPS = 1_000_000  # windows that one event may lie in, where the construction makes them all
DEFAULT_DISTANCE = 16  # D_W of the literal R-CER, in ticks of δ


def aggregate(
    df: DataFrame,
    *,
    time: str = "ts",
    key: Names | None = None,
    advance: Duration,
    size: Duration,
    lateness: Duration | None = None,
    update: Callable[..., Any],
    output: Callable[..., Any],
    schema: str | T.StructType | None = None,
    granularity: Duration = "1 microsecond",
    construction: str = "fast",
    watermark: Duration | None = None,
    shards: int | None = None,
    heartbeats: DataFrame | None = None,
    idle_timeout: Duration | None = None,
) -> DataFrame:
    """The Aggregate A: a state for each key and window, that events update and results are made of.

    A DataFrame comes back and nothing runs until you use it; of a streaming DataFrame, a streaming one.

    Parameters
    ----------
    df
        The events. Rows without a time take part in nothing.
    time
        The time column: a timestamp, or an integer in microseconds.
    key
        The columns whose values events of one window have in common (f_K); None: all events together.
    advance, size
        WA and WS: windows are [i·advance, i·advance + size) for all integers i; `"10 minutes"`, a timedelta or
        microseconds. They overlap when they advance by less than their size.
    lateness
        L: for how long after its end a window still takes events of a stream that come after the watermark. It then
        gives its results again, with `revision` one more. By default not at all.
    update
        f_U, `(state, event) → state`, or `(state, event, window) → state`; the state of a new window is None. Events of
        a window come in order of time. An event is a tuple with names: `event.amount`.
    output
        f_O, `state → rows`, or `(state, window) → rows`: a list of rows, one row, or None. A row is a tuple in the
        order of `schema`, or a mapping.
    schema
        The columns of a row, `"low double, high double"` or a StructType. It may be left out where `output` is
        annotated to return a NamedTuple, a dataclass or a TypedDict, or a list of them.
    granularity
        δ: times are multiples of it.
    construction
        `"fast"`, or `"literal"`: with a state for each window, as the paper has it. The results are the same.
    watermark
        How far the watermark of a stream stays behind its latest event; by default what `withWatermark` says.
    shards, heartbeats, idle_timeout
        As for `Pattern.match`, on streams.

    Returns
    -------
    DataFrame
        The key columns, the time (the right boundary of the window − δ), with `lateness` also `revision`, then the
        columns of `schema`.

    Examples
    --------
    >>> def add(state, event):
    ...     return (state or 0) + event.amount
    >>> aggregate(df, key="user", advance="1 minute", size="5 minutes", update=add, output=lambda total: (total,),
    ...     schema="total double")  # doctest: +SKIP
    """
    events = source(df, time, key or (), (), granularity, construction, watermark, shards, heartbeats, idle_timeout)
    windows = checked(duration("advance", advance), duration("size", size), events.unit)
    late_us = 0 if lateness is None else duration("lateness", lateness)
    listing = UserAggregate(
        user_function(update, "update", events.clock, ("state", "event"), window=True),
        user_function(output, "output", events.clock, ("state",), window=True),
        events.unit,
    )
    kind = Literal if events.is_literal or not windows.overlap else Sliding
    return Operator(
        events,
        kind(windows, listing, late_us, events.clock, takes_late=True),
        events.payload(_required(schema, annotated_schema(output, "output")), ("revision",) if late_us else ()),
        has_revision=late_us > 0,
        windows=windows,
        said=(windows, late_us, events.key, events.ties),
        functions=(update, output),
    ).frame()


def sort_and_preprocess(
    df: DataFrame,
    function: Callable[[list[Event]], Any],
    *,
    time: str = "ts",
    key: Names | None = None,
    schema: str | T.StructType | None = None,
    granularity: Duration = "1 microsecond",
    construction: str = "fast",
    watermark: Duration | None = None,
    shards: int | None = None,
    heartbeats: DataFrame | None = None,
    idle_timeout: Duration | None = None,
) -> DataFrame:
    """S&P: sort events, and process those together that have one time and one key (Listing 3).

    Parameters
    ----------
    df, time, granularity, construction, watermark, shards, heartbeats, idle_timeout
        As for `aggregate`.
    function
        f_P, `events → rows`: what becomes of the events of one time and key. `lambda events: events[0]` removes
        duplicates.
    key
        The columns of the key (f_K); None: all columns, so that only equal events are processed together (f_K*).
    schema
        The columns of a row; by default those that the function is annotated to give, or else those of the events. Rows
        may be events.

    Returns
    -------
    DataFrame
        The key columns, the time of the events, the columns of `schema`; of a batch in order of time.
    """
    events = source(df, time, key, (), granularity, construction, watermark, shards, heartbeats, idle_timeout)
    processing, unit = user_function(function, "function", events.clock, ("events",)), events.unit
    machine: Machine = Instants(processing)
    if events.is_literal:
        machine = Literal(checked(unit, unit, unit), Collected(processing), clock=events.clock)
    return Operator(
        events,
        machine,
        events.payload(annotated_schema(function, "function") if schema is None else schema),
        is_instant=True,
        said=(unit, events.key),
        functions=(function,),
    ).frame()


def time_cer(
    df: DataFrame,
    function: Callable[[Any, Event], tuple[Any, Any]],
    *,
    within: Duration,
    time: str = "ts",
    key: Names | None = None,
    advance: Duration | None = None,
    size: Duration | None = None,
    ties: Names = (),
    schema: str | T.StructType | None = None,
    granularity: Duration = "1 microsecond",
    construction: str = "fast",
    watermark: Duration | None = None,
    shards: int | None = None,
    heartbeats: DataFrame | None = None,
    idle_timeout: Duration | None = None,
) -> DataFrame:
    """T-CER: find sequences that span less than a known time, wherever they lie, each once (Listing 4).

    Parameters
    ----------
    df, time, granularity, construction, watermark, shards, heartbeats, idle_timeout
        As for `aggregate`.
    function
        f_C, `(state, event) → (state, rows)`: a row for each sequence that is complete with the event. It is given
        the events of a window in order, with None as the first state, and must find a sequence whenever it is given all
        its events. A row is `(start, end, …)`: the times of the sequence's first and last event, as events have them,
        and the columns of `schema`.
    within
        D: the times of a sequence's first and last event are less than this apart; others are left out.
    key
        The columns whose values all events of a sequence have in common; None: there is none.
    advance, size
        WA and WS of the windows, by default D and 2 D; WA ≤ WS − D + δ and WS ≥ D.
    ties
        Columns that order events of one time. Without it their order is fixed, and arbitrary.
    schema
        The columns of a row after `start` and `end`; `""` when there are none. It may be left out where the function is
        annotated, `-> tuple[State, list[Found]]`.

    Returns
    -------
    DataFrame
        The key columns, the time (the end − δ of the last window that holds the sequence), `start`, `end`, the columns
        of `schema`.

    Raises
    ------
    InvalidOptionError
        When some sequence would lie in no window: the inequality that is broken.
    """
    events = source(df, time, key or (), ties, granularity, construction, watermark, shards, heartbeats, idle_timeout)
    unit, span = events.unit, duration("within", within)
    if span < 1:
        raise errors.InvalidOptionError("`within` is no time at all.", hint='write `within="10 minutes"`.')
    span = -(-span // max(unit, 1)) * unit  # the same sequences: no two times lie between two ticks
    windows = checked(
        span if advance is None else duration("advance", advance),
        2 * span if size is None else duration("size", size),
        unit,
    )
    legal_for_spans(windows, span)
    finding = user_function(function, "function", events.clock, ("state", "event"))
    annotated = annotated_schema(function, "function", in_pair=True)
    if annotated is not None:  # a row begins with the times of the sequence
        annotated = T.StructType(annotated.fields[len(SPAN) :])
    times = [T.StructField(name, T.LongType()) for name in SPAN]
    shown = T.StructType([*times, *events.payload(_required(schema, annotated), SPAN).fields])
    used = windows if events.is_literal else slices(windows, span)
    listing = Sequences(finding, span, used, tuple(shown.names))
    machine: Machine = Slices(used, listing, clock=events.clock, asked=windows)
    if events.is_literal:
        _require_few(windows)
        machine = Literal(windows, listing, clock=events.clock)
    return Operator(
        events,
        machine,
        shown,
        spans=len(SPAN),
        windows=used,
        said=(windows, span, events.key, events.ties),
        functions=(function,),
    ).frame()


def rule_cer(
    df: DataFrame,
    function: Callable[[Any, Event], tuple[Any, Any]],
    *,
    time: str = "ts",
    key: Names | None = None,
    ties: Names = (),
    schema: str | T.StructType | None = None,
    max_state: str | int | None = MOST_STATE,
    granularity: Duration = "1 microsecond",
    construction: str = "fast",
    watermark_distance: Duration | None = None,
    watermark: Duration | None = None,
    shards: int | None = None,
    heartbeats: DataFrame | None = None,
    idle_timeout: Duration | None = None,
) -> DataFrame:
    """R-CER: a function with a state over all events of a key, in order of time (Listing 5).

    Parameters
    ----------
    df, time, granularity, construction, watermark, shards, heartbeats, idle_timeout
        As for `aggregate`.
    function
        f_M, `(state, event) → (state, rows)`; the first state is None. The rows have the time of the event.
    key
        The columns of the key; None: all events have one state, and one task runs them.
    ties
        f_T: columns that order events of one time. Without it their order is fixed, and arbitrary.
    schema
        The columns of a row; by default those that the function is annotated to give, or else those of the events. Rows
        may be events.
    max_state
        How large the state of a key may become while it grows with the number of events, `"1 MB"`; beyond, the job
        stops with STATE_GROWS. A state that does not grow may have any size; None lets it grow.
    watermark_distance
        D_W of the literal construction: how far apart watermarks are at most. The fast one needs none.

    Returns
    -------
    DataFrame
        The key columns, the time of the event, the columns of `schema`.
    """
    events = source(df, time, key or (), ties, granularity, construction, watermark, shards, heartbeats, idle_timeout)
    mapping, unit = user_function(function, "function", events.clock, ("state", "event")), events.unit
    most = None if max_state is None else parse_limit(max_state).bytes
    distance = DEFAULT_DISTANCE * unit
    if watermark_distance is not None:
        distance = checked(duration("watermark_distance", watermark_distance), unit, unit).advance
    machine: Machine = Fold(mapping, most)
    if events.is_literal:
        windows = checked(unit, distance + unit, unit)
        _require_few(windows)
        listing = Shared(mapping, distance, unit, most)
        machine = Unwrapped(windows, listing, clock=events.clock, distance=distance)
    return Operator(
        events,
        machine,
        events.payload(annotated_schema(function, "function", in_pair=True) if schema is None else schema),
        said=(unit, distance, events.key, events.ties),
        functions=(function,),
    ).frame()


def _require_few(windows: Windows) -> None:
    number = -(-windows.size // windows.advance)
    if number > MOST_LOOPS:
        raise errors.InvalidOptionError(
            f"The literal construction would put every event into {number:,} windows, each {length(windows.advance)} "
            "after the other.",
            hint='choose a coarser `granularity=`, or `construction="fast"`, which gives the same.',
        )


def _required(schema: Any, annotated: T.StructType | None) -> Any:
    if schema is None and annotated is None:
        raise errors.InvalidOptionError(
            "There is no `schema`, and the function is not annotated with what it gives.",
            hint='name the columns of the result: `schema="low double, high double"`.',
        )
    return annotated if schema is None else schema
