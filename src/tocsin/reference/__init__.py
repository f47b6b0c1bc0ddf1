"""The reference evaluator: an executable specification, slow and simple, which shares no code with the engines.

>>> import tocsin
>>> p = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 10 SECONDS")
>>> tocsin.reference.evaluate(p, {"A": [{"ts": 1}], "B": [{"ts": 2}]})
[{'start': 1, 'end': 2, 'a': {'ts': 1}, 'b': {'ts': 2}}]
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Protocol, overload

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_of_acel
from tocsin.algebra.programs import Program
from tocsin.algebra.units import check_unit
from tocsin.reference import policies, programs
from tocsin.reference.matches import Candidate, Evaluation
from tocsin.reference.outputs import MatchRow, match_rows, rows_over_all
from tocsin.reference.stream import Event, Rows, check_columns, ingest, partitions
from tocsin.reference.timeouts import timeouts
from tocsin.reference.values import counting

__all__ = ["MatchRow", "evaluate", "events"]


class HasQuery(Protocol):
    """What `tocsin.pattern` returns, as far as the reference is concerned."""

    @property
    def query(self) -> alg.Query:
        """The meaning."""


class HasProgram(Protocol):
    """What `tocsin.rules` returns, as far as the reference is concerned."""

    @property
    def program(self) -> Program:
        """The meaning."""


@overload
def evaluate(
    pattern: HasQuery | alg.Query,
    rows: Rows,
    *,
    time: str = "ts",
    tie: str | Sequence[str] | None = None,
    type: str = "type",
    time_unit: str | None = None,
) -> list[dict[str, Any]]: ...


@overload
def evaluate(
    pattern: HasProgram | Program,
    rows: Rows,
    *,
    time: str = "ts",
    tie: str | Sequence[str] | None = None,
    type: str = "type",
    time_unit: str | None = None,
) -> dict[str, list[dict[str, Any]]]: ...


def evaluate(
    pattern: HasQuery | alg.Query | HasProgram | Program,
    rows: Rows,
    *,
    time: str = "ts",
    tie: str | Sequence[str] | None = None,
    type: str = "type",
    time_unit: str | None = None,
) -> list[dict[str, Any]] | dict[str, list[dict[str, Any]]]:
    """Every match of a pattern, or of each rule of a program, on plain rows.

    Parameters
    ----------
    pattern
        What `tocsin.pattern` or `tocsin.rules` returns, or a query or program of the algebra.
    rows
        Rows per event type, or one list of rows with a type column.
    time
        The time column: datetimes, or integers. Rows without a time take part in nothing.
    tie
        Columns that order events of one instant, before their type and values do.
    type
        The type column, when `rows` is one list.
    time_unit
        What integer times count: `"s"`, `"ms"`, `"us"` (the default) or `"ns"`.

    Returns
    -------
    list of dict
        `start`, `end` and one entry per variable (the row, a list of rows, or None), or the RETURN columns; by
        partition, then in the order of SEMANTICS R5. For a program a dict from the name of each rule to its list.

    Warns
    -----
    TocsinWarning
        When an ACEL pattern goes by the order of events that nothing orders.
    """
    check_unit(time_unit)
    program = _program(pattern)
    query: Any = getattr(pattern, "query", pattern)
    if program is None and not isinstance(query, alg.Query):
        raise _no_pattern(pattern, "pattern")
    ties = _ties(tie)
    check_columns(rows, time=time, tie=ties, type_column=type)
    with counting(time_unit):
        if program is not None:
            return programs.run(program, rows, time=time, tie=ties, type_column=type)[0]
        streams = partitions(ingest(rows, time=time, tie=ties, type_column=type), query.partition)
        if query is not pattern and not ties:
            _warn_of_ties(query, streams)
        return _reported(query, streams)


def events(
    program: HasProgram | Program,
    rows: Rows,
    *,
    time: str = "ts",
    tie: str | Sequence[str] | None = None,
    type: str = "type",
    time_unit: str | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """Every event that a program emits on plain rows.

    Parameters
    ----------
    program
        What `tocsin.rules` returns, or a program of the algebra.
    rows, time, tie, type, time_unit
        As for `evaluate`.

    Returns
    -------
    dict
        Template → rows, each with its time and its attributes; one for every match and `emit`, also where all values
        are equal (SEMANTICS R30).
    """
    known = _program(program)
    if known is None:
        raise _no_pattern(program, "rules")
    check_columns(rows, time=time, tie=_ties(tie), type_column=type)
    check_unit(time_unit)
    with counting(time_unit):
        return programs.run(known, rows, time=time, tie=_ties(tie), type_column=type)[1]


def _program(given: Any) -> Program | None:
    found = getattr(given, "program", given)
    return found if isinstance(found, Program) else None


def _no_pattern(given: Any, made_by: str) -> errors.InvalidInputError:
    return errors.InvalidInputError(
        f"The reference evaluates what `tocsin.{made_by}` returns, not a {type(given).__name__}.",
        hint=f"write `tocsin.{made_by}(…)` around the text.",
    )


def _ties(tie: str | Sequence[str] | None) -> list[str]:
    return [] if tie is None else [tie] if isinstance(tie, str) or not isinstance(tie, Iterable) else list(tie)


def _warn_of_ties(query: alg.Query, streams: list[list[Event]]) -> None:
    """ACEL goes by positions, which among events of one instant their type and values decide (R7, R16)."""
    if not any(is_of_acel(node) for node in query.pattern.walk()):
        return
    for stream in streams:
        for one, other in pairwise(stream):
            if one.ts == other.ts and (one.type, one.row) != (other.type, other.row):
                warnings.warn(
                    errors.TocsinWarning(
                        "TIED_EVENTS",
                        f"Several events have the time {one.time}, and nothing but their type and values orders them.",
                        hint="`;`, `:`, `+` and `@+` go by the order of events: name columns for it, `tie='seq'`.",
                    ),
                    stacklevel=3,
                )
                return


def _reported(query: alg.Query, streams: list[list[Event]]) -> list[dict[str, Any]]:
    found = [match for stream in streams for match in _matches(query, stream)]
    if query.over_all_matches:
        return rows_over_all(query, found)
    status: dict[str, Any] = {"status": "match", "missing": None} if query.timeouts else {}
    reported: list[dict[str, Any]] = [*match_rows(query, found, [status] * len(found))]
    if query.timeouts:
        late = [one for stream in streams for one in timeouts(query, stream)]
        missing = [{"status": "timeout", "missing": name} for _, name in late]
        reported += match_rows(query, [match for match, _ in late], missing)
    return reported


def _matches(query: alg.Query, events: list[Event]) -> list[Candidate]:
    evaluation = Evaluation(events, query.window_us)
    return policies.apply(query, evaluation.settle(evaluation.matches(query.pattern)), events)
