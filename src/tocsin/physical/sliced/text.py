"""An event's attributes as canonical text (R16), as far as it orders events: natively, so that Spark computes it.

The text is the JSON of the attributes by name, without the names: events whose texts are compared are of one type and
have the same. Its order is that of code points.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import types as T

from tocsin.physical import instants
from tocsin.physical.identity import JSON_OPTIONS
from tocsin.physical.sliced.order import end_of
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.values import Kind, kind_of

Typed = Mapping[str, tuple[Column, T.DataType]]


def text_of(columns: Typed, *, without: str) -> Column:
    """The text of an event; its time, the same for all that are compared, is left out."""
    others = {name: typed for name, typed in columns.items() if name != without}
    return _object(others, end=end_of(others, without))


def _object(columns: Typed, *, begin: str = "", end: str = "}") -> Column:
    values = [F.coalesce(_value(*columns[name]), F.lit("null")) for name in sorted(columns)]
    return F.concat(F.lit(begin), F.concat_ws(",", *values), F.lit(end)) if values else F.lit(begin + end)


def _value(column: Column, dtype: T.DataType) -> Column:
    """A value as JSON; NULL when it is NULL."""
    if isinstance(dtype, T.StructType):
        fields = {field.name: (column.getField(field.name), field.dataType) for field in dtype.fields}
        return F.when(column.isNotNull(), _object(fields, begin="{"))
    match kind_of(dtype):
        case Kind.INTEGER | Kind.BOOLEAN:
            return column.cast("string")
        case Kind.DOUBLE:
            return number_text(column.cast("double"))
        case Kind.INSTANT:
            return instants.micros_of_instant(column).cast("string")
        case Kind.LOCAL:
            return instants.micros_of_local(column).cast("string")
        case Kind.INTERVAL:
            return instants.micros_of_interval(column).cast("string")
        case Kind.STRING:
            return _quoted(column)
        case _ if isinstance(dtype, T.BinaryType):
            return F.concat(F.lit('"'), F.lower(F.hex(column)), F.lit('"'))
        case _ if isinstance(dtype, T.ArrayType | T.MapType | T.VariantType):
            return F.to_json(column, JSON_OPTIONS)
        case _:
            return F.concat(F.lit('"'), column.cast("string"), F.lit('"'))


def _quoted(column: Column) -> Column:
    listed = F.to_json(F.array(column))
    return F.when(column.isNotNull(), F.substring(listed, 2, F.length(listed) - 2))


def number_text(column: Column) -> Column:
    """A DOUBLE as Python writes it: with an exponent from 1e16 on and below 1e-4, where Java does from 1e7 and 1e-3."""
    size, java = F.abs(column), column.cast("string")
    plain = _trimmed(java.try_cast("decimal(38,21)"))
    is_plain = ((size >= 1e7) & (size < 1e16)) | ((size >= 1e-4) & (size < 1e-3))
    digits = F.regexp_replace(F.substring_index(java, "E", 1), r"\.0$", "")
    exponent = F.substring_index(java, "E", -1)
    sign = F.when(exponent.startswith("-"), "-").otherwise("+")
    scientific = F.concat(digits, F.lit("e"), sign, _two_digits(F.regexp_replace(exponent, "-", "")))
    has_exponent = ((size >= 1e16) | (size < 1e-4)) & (size > 0) & (size < float("inf"))
    return F.when(is_plain, plain).when(has_exponent, scientific).otherwise(java)


def _two_digits(digits: Column) -> Column:
    return F.when(F.length(digits) < 2, F.lpad(digits, 2, "0")).otherwise(digits)


def _trimmed(column: Column) -> Column:
    text = F.rtrim(column.cast("string"), "0")
    return F.when(text.endswith("."), F.concat(text, F.lit("0"))).otherwise(text)
