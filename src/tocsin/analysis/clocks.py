"""How integer times of inputs are read: in the unit that the user names, or in microseconds with a warning (R42)."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.units import Unit, check_unit, has_durations
from tocsin.analysis.type_names import from_spark_name
from tocsin.analysis.types import DataType, Kind

Schemas = Mapping[str, Mapping[str, str | DataType]]
TIMES = (Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL)


def unit_of(
    time_unit: str | None,
    schemas: Schemas,
    times: Mapping[str, str],
    queries: Iterable[alg.Query],
    *,
    warns: bool = True,
) -> Unit:
    """The unit in which the queries' durations are to count.

    `time_unit` is the choice of the user. Without a duration in any query no unit matters.

    Raises `InvalidOptionError` when there is no such unit, or a time column is a timestamp and has a unit already.
    """
    check_unit(time_unit)
    kinds = {
        name: {column: (from_spark_name(one) if isinstance(one, str) else one).kind for column, one in schema.items()}
        for name, schema in schemas.items()
    }
    clocks = {times[name]: known[times[name]] for name, known in kinds.items() if times.get(name) in known}
    is_timestamp = [name for name, kind in clocks.items() if kind is Kind.TIMESTAMP]
    if time_unit is not None and is_timestamp:
        raise errors.InvalidOptionError(
            f'`time_unit="{time_unit}"` is for integer times, and the time column `{is_timestamp[0]}` is a timestamp.',
            hint="leave out `time_unit=`: a timestamp has its unit.",
        )
    is_integer = [name for name, kind in clocks.items() if kind is Kind.INTEGER]
    if time_unit is None and warns and is_integer and has_durations(*queries):
        _warn(is_integer[0])
    others = {name for known in kinds.values() for name, kind in known.items() if kind in TIMES}
    return Unit(time_unit or "us", others)


def check_clock(
    time_unit: str | None,
    schemas: Schemas,
    time: str | Mapping[str, str],
    queries: Sequence[alg.Query],
) -> None:
    """Refuse a unit that the schemas or the durations do not allow."""
    times = dict.fromkeys(schemas, time) if isinstance(time, str) else time
    unit = unit_of(time_unit, schemas, times, queries, warns=False)
    for query in queries:
        unit.query(query)


def _warn(column: str) -> None:
    level, frame = 3, sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tocsin."):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        errors.TocsinWarning(
            "TIME_UNIT_ASSUMED",
            f"The time column `{column}` holds integers, which are read as microseconds.",
            hint='say what they count: `time_unit="us"`, or "s", "ms" or "ns".',
        ),
        stacklevel=level,
    )
