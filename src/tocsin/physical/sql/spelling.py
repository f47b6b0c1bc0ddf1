"""Literals, names and types as text that means the same in every session.

Settings change how Spark reads text: `escapedStringLiterals` (backslashes), `doubleQuotedIdentifiers` (double quotes),
`variable.substitute` (`${name}`), `quotedRegexColumnNames` (names in backticks), `timestampType` (what TIMESTAMP is).
So nothing is written that one of them could touch.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import assert_never

from pyspark.sql import types as T

Plain = bool | int | float | str | Decimal | None

RESERVED_NAME = re.compile(r"__tocsin_\w+", re.ASCII)
SUBSTITUTED = "${"


def literal(value: Plain) -> str:
    """A literal, of the type that PySpark's `lit` gives it.

    Examples
    --------
    >>> print(literal(7), literal(2**40), literal(-1), literal(0.1), literal(Decimal("1.50")), literal("it's"))
    7 1099511627776L (-1) 0.1D 1.50BD CAST(X'69742773' AS STRING)
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            quoted = _quoted(value)
            return f"CAST(X'{value.encode().hex().upper()}' AS STRING)" if quoted is None else quoted
        case float() if math.isnan(value) or math.isinf(value):
            return f"CAST('{value}' AS DOUBLE)"
        case float():
            return _signed(f"{value!r}D")
        case Decimal():
            return _signed(f"{value}BD")
        case int():
            return _signed(str(value) if -(2**31) <= value < 2**31 else f"{value}L")
        case _:
            assert_never(value)


def bigint(value: int) -> str:
    """A literal BIGINT, however small."""
    return _signed(f"{value}L")


def _signed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _quoted(text: str) -> str | None:
    """Text in quotes; None when its characters would be read in several ways."""
    if not text.isprintable() or "'" in text or "\\" in text:
        return None
    # Literals side by side are one literal, so that a reference can be cut in two.
    return "'" + text.replace(SUBSTITUTED, "$' '{") + "'"


def identifier(name: str) -> str:
    """The name of a column.

    Examples
    --------
    >>> print(identifier("__tocsin_c0"), identifier("a`b"))
    __tocsin_c0 `a``b`
    """
    # Without backticks no session takes it for a pattern of names.
    return name if RESERVED_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def field_of(struct: str, name: str) -> str:
    """A field of a struct."""
    quoted = _quoted(name)
    # After a function, a name in backticks is never a pattern of names.
    return f"coalesce({struct}).{identifier(name)}" if quoted is None else f"{struct}[{quoted}]"


def type_name(dtype: T.DataType | str) -> str:
    """A type; a text stands for itself. There is no way to write that arrays and maps hold no NULL.

    Examples
    --------
    >>> print(type_name(T.StructType().add("a:b", "timestamp").add("c", T.ArrayType(T.LongType()), False)))
    STRUCT<`a:b`: TIMESTAMP_LTZ, `c`: ARRAY<bigint> NOT NULL>
    """
    match dtype:
        case str():
            return dtype
        case T.StructType():
            fields = (
                f"{identifier(field.name)}: {type_name(field.dataType)}{'' if field.nullable else ' NOT NULL'}"
                for field in dtype.fields
            )
            return f"STRUCT<{', '.join(fields)}>"
        case T.ArrayType():
            return f"ARRAY<{type_name(dtype.elementType)}>"
        case T.MapType():
            return f"MAP<{type_name(dtype.keyType)}, {type_name(dtype.valueType)}>"
        case T.TimestampType():
            return "TIMESTAMP_LTZ"
        case T.UserDefinedType():
            return type_name(dtype.sqlType())
        case _:
            return dtype.simpleString()
