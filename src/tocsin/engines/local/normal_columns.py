"""Columns of tables in the types that Spark has too; values that do not fit into them are refused with their column."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tocsin import errors
from tocsin.engines.worker.arrow_types import normal
from tocsin.engines.worker.event_tables import SLICE
from tocsin.engines.worker.threads import in_threads

LEAST, MOST = -(2**63), 2**63 - 1
# Lists and mappings inside each other; Arrow's own recursion crashes the process on a list that holds itself.
MOST_NESTED = 100
# The first and the last time that Python has, as numbers of Arrow.
DAYS = tuple(day.toordinal() - dt.date(1970, 1, 1).toordinal() for day in (dt.date.min, dt.date.max))
INSTANTS = tuple(
    (time - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) for time in (dt.datetime.min, dt.datetime.max)
)
YEARS = {pa.date32(): DAYS, pa.timestamp("us"): INSTANTS, pa.timestamp("us", "UTC"): INSTANTS}


def normalized(table: pa.Table, owner: str) -> pa.Table:
    """The table with the types that Spark has too; values that do not fit into them are refused."""

    def checked(number: int) -> pa.ChunkedArray:
        field, column = table.schema.field(number), table.column(number)
        place = f"The column `{field.name}` of {owner}"
        _require_shallow_type(place, field.type)
        _require_readable(place, column)
        try:
            column = normal(pa.table({field.name: _plain(column)})).column(0)
        except pa.ArrowException:
            raise _not_fitting(place, field.type) from None
        _require_years(place, column)
        return column

    columns = (in_threads if table.num_rows > SLICE else map)(checked, range(table.num_columns))
    return pa.table(dict(zip(table.column_names, columns, strict=True))) if table.num_columns else table


def _require_readable(place: str, column: pa.ChunkedArray) -> None:
    """Refuse texts that are not UTF-8, which files may hold, and time zones that do not exist."""
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        try:
            pc.assume_timezone(pa.nulls(1, pa.timestamp("us")), column.type.tz)
        except pa.ArrowException:
            raise errors.InvalidInputError(
                f"{place} has the time zone `{column.type.tz}`, which does not exist.",
                hint="cast it to one that does: `column.cast(pyarrow.timestamp('us', 'UTC'))`.",
            ) from None
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        try:
            column.validate(full=True)
        except pa.ArrowException:
            raise errors.InvalidInputError(
                f"{place} holds a text that is not UTF-8.", hint="read it as binary, or decode it first."
            ) from None


def _require_years(place: str, column: pa.ChunkedArray) -> None:
    """Refuse dates and times that Python has none for, in UTC or in the column's time zone."""
    try:
        is_held = all(map(_has_years, _times_in(column)))
    except (OverflowError, ValueError):
        is_held = False
    if not is_held:
        raise errors.InvalidInputError(
            f"{place} holds a time outside of the years 1 to 9999.",
            hint="filter such rows out, or give the times as integers of microseconds.",
        )


def _times_in(values: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """The dates and times of a column, or inside of its values; of maps and the like, the values that hold them."""
    dtype = values.type
    if pa.types.is_struct(dtype):
        for place in range(dtype.num_fields):
            yield from _times_in(pc.struct_field(values, [place]))
    elif pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        yield from _times_in(pc.list_flatten(values))
    elif _holds_times(dtype):
        yield values


def _has_years(times: pa.ChunkedArray) -> bool:
    """Whether Python has all of these times; what cannot be told by their numbers is tried."""
    bounds = YEARS.get(times.type)
    if bounds is None:
        (pc.min_max(times).as_py if pa.types.is_timestamp(times.type) else times.to_pylist)()
        return True
    found = pc.min_max(times.cast(pa.int32() if pa.types.is_date32(times.type) else pa.int64()))
    return not found["min"].is_valid or bounds[0] <= found["min"].as_py() <= found["max"].as_py() <= bounds[1]


def _holds_times(dtype: pa.DataType) -> bool:
    inner = [dtype.field(number).type for number in range(dtype.num_fields)]
    return pa.types.is_timestamp(dtype) or pa.types.is_date(dtype) or any(map(_holds_times, inner))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Unsigned integers as those of 64 bits that Spark has, and views and run-end encoded columns as values."""
    if pa.types.is_run_end_encoded(column.type):
        column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], column.type.value_type)
    if pa.types.is_unsigned_integer(column.type):
        return column.cast(pa.int64())
    plain = _without_views(column.type)
    return column if plain == column.type else column.cast(plain)


def _without_views(dtype: pa.DataType) -> pa.DataType:
    """A type whose texts are strings, as Arrow computes with no views inside of other values."""
    is_a = pa.types
    if is_a.is_string_view(dtype) or is_a.is_binary_view(dtype):
        return pa.string() if is_a.is_string_view(dtype) else pa.binary()
    if is_a.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, _without_views(dtype.value_type), dtype.ordered)
    if is_a.is_list(dtype) or is_a.is_large_list(dtype):
        inner = dtype.value_field.with_type(_without_views(dtype.value_type))
        return pa.list_(inner) if is_a.is_list(dtype) else pa.large_list(inner)
    if is_a.is_struct(dtype):
        return pa.struct([field.with_type(_without_views(field.type)) for field in dtype.fields])
    return dtype


def _not_fitting(place: str, dtype: pa.DataType) -> errors.InvalidInputError:
    if pa.types.is_integer(dtype):
        return errors.InvalidInputError(
            f"{place} is {dtype} and holds an integer over {MOST}, which does not fit into 64 bits with a sign.",
            hint="convert it to a decimal, or to a string.",
        )
    if pa.types.is_timestamp(dtype) or pa.types.is_duration(dtype):
        return errors.InvalidInputError(
            f"{place} is {dtype} and holds a time that is no whole number of microseconds within 64 bits.",
            hint="round it first: `pyarrow.compute.floor_temporal(column, unit='microsecond')`, or `.dt.floor('us')`.",
        )
    return errors.InvalidInputError(f"{place} has the type {dtype}, which cannot be read.", hint="convert it first.")


def _require_shallow_type(place: str, dtype: pa.DataType) -> None:
    level = [dtype]
    for _ in range(MOST_NESTED + 1):
        level = [each.field(number).type for each in level for number in range(each.num_fields)]
    if level:
        raise errors.InvalidInputError(
            f"{place} has a type that is nested more than {MOST_NESTED} levels deep.",
            hint="keep only the part that you need.",
        )
