"""What is known of a query before anything runs: all that is wrong with it, lifetimes, keys and sizes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema
from tocsin.analysis.keys import keys
from tocsin.analysis.lifetimes import lifetimes
from tocsin.analysis.schema import bind
from tocsin.analysis.sizes import size_report
from tocsin.analysis.temporal import network
from tocsin.options import check_rates, collecting, microseconds, schemas_of
from tocsin.physical.claims import unsupported
from tocsin.reports import CheckReport


def checked(
    query: alg.Query,
    schemas: Any,
    rates: Mapping[str, Any] | None,
    *,
    time: str | Mapping[str, str],
    clock: str,
    type: str,
    lateness: str | dt.timedelta | None,
    streaming: bool,
    warnings: tuple[errors.TocsinWarning, ...],
) -> CheckReport:
    """Check a query against schemas; see `Pattern.check`. `clock` is the time attribute all types share, if any."""
    given = schemas_of(schemas, alg.event_types(query.pattern), type)
    problems: list[errors.TocsinError] = []
    columns: tuple[tuple[str, str], ...] = ()
    is_integer = False
    known: Mapping[str, Schema] = {}
    with collecting(problems):
        bound = bind(query, given, time=time)
        columns = tuple((name, str(kind)) for name, kind in bound.columns)
        is_integer, known = bound.has_integer_time, bound.schemas
    distances = None
    with collecting(problems):
        distances = network(query, clock, integer_time=is_integer)
        if streaming:
            distances.require_bounded()
    late_us = 0
    with collecting(problems):
        late_us = microseconds(lateness)
    with collecting(problems):
        check_rates(rates, query.pattern)
    errors.raise_all(problems)
    assert distances is not None
    lives = lifetimes(query, distances)
    refusal = unsupported(query)
    return CheckReport(
        columns=columns,
        network=distances,
        lifetimes=lives,
        keys=keys(query),
        sizes=size_report(query, lives, rates, schemas=known, lateness_us=late_us) if rates else None,
        unbounded=distances.unbounded_pair(),
        refusal=None if refusal is None else refusal.message,
        warnings=warnings + distances.warnings,
    )
