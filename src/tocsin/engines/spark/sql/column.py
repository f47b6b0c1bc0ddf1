"""A Column as SQL text: PySpark's operators and methods, as far as plans use them, with PySpark's meaning.

Settings change how Spark reads text: `escapedStringLiterals` (backslashes), `doubleQuotedIdentifiers` (double quotes),
`variable.substitute` (`${name}`), `quotedRegexColumnNames` (names in backticks), `timestampType` (what TIMESTAMP is).
So literals, names and types are written in a form that none of them touches.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import assert_never

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as spark
from pyspark.sql import types as T

Plain = bool | int | float | str | Decimal | None

RESERVED_NAME = re.compile(r"__tocsin_\w+", re.ASCII)
SUBSTITUTED = "${"


def literal(value: Plain) -> str:
    """A literal, of the type that PySpark's `lit` gives it.

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


def bigint_literal(value: int) -> str:
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


def _operator(symbol: str) -> Callable[[Column, Operand], Column]:
    return lambda one, other: Column(f"({one.text} {symbol} {operand(other)})")


def _test(words: str) -> Callable[[Column], Column]:
    return lambda one: Column(f"({one.text} {words})")


@dataclass(frozen=True, eq=False)
class Column:
    """An expression.

    >>> x = Column("x")
    >>> print(((x + 1 > 2) & x.isNotNull() & ~(x == 7)).text)
    (((x + 1) > 2) AND (x IS NOT NULL) AND (NOT (x = 7)))
    >>> print(x.cast("bigint").alias("y").named)
    CAST(x AS bigint) AS `y`
    """

    text: str  # needs no parentheses as an operand
    names: tuple[str, ...] = ()  # in a result; several are those of a generator's columns. An operand has none

    @property
    def named(self) -> str:
        """The expression and what it is called."""
        match [identifier(name) for name in self.names]:
            case []:
                return self.text
            case [name]:
                return f"{self.text} AS {name}"
            case several:
                return f"{self.text} AS ({', '.join(several)})"

    def __bool__(self) -> bool:
        raise TypeError("A Column is neither true nor false: combine Columns with `&`, `|` and `~`.")

    # --- operators --------------------------------------------------------------------------------

    __add__, __sub__, __mul__ = _operator("+"), _operator("-"), _operator("*")
    __lt__, __le__, __gt__, __ge__ = _operator("<"), _operator("<="), _operator(">"), _operator(">=")
    __eq__ = _operator("=")  # type: ignore[assignment]
    __ne__ = _operator("!=")  # type: ignore[assignment]
    __hash__ = object.__hash__
    eqNullSafe = _operator("<=>")  # NULL equals NULL
    div = _operator("DIV")  # the whole quotient, rounded towards zero
    bitwiseAND, bitwiseXOR = _operator("&"), _operator("^")
    like = _operator("LIKE")  # with the backslash as escape
    isNull, isNotNull = _test("IS NULL"), _test("IS NOT NULL")

    def __and__(self, other: Column) -> Column:
        return _chained("AND", self, other)

    def __or__(self, other: Column) -> Column:
        return _chained("OR", self, other)

    def __invert__(self) -> Column:
        return Column(f"(NOT {self.text})")

    # --- methods ----------------------------------------------------------------------------------

    def bitwiseOR(self, other: Column) -> Column:
        """The bits of either."""
        return _chained("|", self, other)

    def isin(self, options: Iterable[Operand]) -> Column:
        """Whether it is one of several values."""
        return Column(f"({self.text} IN ({', '.join(map(operand, options))}))")

    def cast(self, dtype: T.DataType | str) -> Column:
        """The value in another type."""
        return Column(f"CAST({self.text} AS {type_name(dtype)})")

    def try_cast(self, dtype: T.DataType | str) -> Column:
        """The value in another type, NULL where it has none there."""
        return Column(f"TRY_CAST({self.text} AS {type_name(dtype)})")

    def getField(self, name: str) -> Column:
        """A field of a struct."""
        return Column(field_of(self.text, name))

    __getitem__ = getField

    def alias(self, *names: str) -> Column:
        """The Column under a name; a generator of several columns has as many names."""
        return Column(self.text, names)

    def over(
        self, partition: Sequence[Column], order: Column, *, later_by: tuple[int, int | None] | None = None
    ) -> Column:
        """A window function over the rows of a partition.

        With `later_by`, over those whose order, a BIGINT, is larger by at least and at most so much; None: any more.
        """
        parts = [f"PARTITION BY {', '.join(column.text for column in partition)}"] if partition else []
        parts.append(f"ORDER BY {order.text}")
        if later_by is not None:
            low, high = later_by
            end = "UNBOUNDED" if high is None else bigint_literal(high)
            parts.append(f"RANGE BETWEEN {bigint_literal(low)} FOLLOWING AND {end} FOLLOWING")
        return Column(f"{self.text} OVER ({' '.join(parts)})")


Operand = Column | Plain


def operand(value: Operand) -> str:
    """A Column, or a plain value as a literal, inside an expression."""
    return value.text if isinstance(value, Column) else literal(value)


@dataclass(frozen=True, eq=False)
class _Chain(Column):
    """Operands of one associative operator, side by side: nested, a long one would exhaust the stack of the parser."""

    operator: str = ""
    operands: tuple[str, ...] = ()


def _chained(operator: str, *columns: Column) -> Column:
    operands: list[str] = []
    for column in columns:
        if isinstance(column, _Chain) and column.operator == operator:
            operands += column.operands
        else:
            operands.append(column.text)
    return _Chain(f"({f' {operator} '.join(operands)})", (), operator, tuple(operands))


@dataclass(frozen=True, eq=False)
class Case(Column):
    """`CASE WHEN … THEN …`: NULL where no condition holds, until `otherwise` says what."""

    branches: str = ""

    @staticmethod
    def of(branches: Iterable[tuple[Column, Operand]], *, after: str = "") -> Case:
        """The value of the first condition that holds; `after` is the text of branches before these."""
        text = after + "".join(f" WHEN {condition.text} THEN {operand(value)}" for condition, value in branches)
        return Case(f"CASE{text} END", (), text)

    def when(self, condition: Column, value: Operand) -> Case:
        """One more branch, for what the conditions before leave."""
        return Case.of([(condition, value)], after=self.branches)

    def otherwise(self, value: Operand) -> Column:
        """The value where no condition holds."""
        return Column(f"CASE{self.branches} ELSE {operand(value)} END")


# --- applied to a DataFrame: as few calls to Spark as there can be --------------------------------


def select(frame: DataFrame, *columns: Column) -> DataFrame:
    """These columns of each row."""
    if any(map(_is_misread, columns)):
        return frame.select(*map(to_spark, columns))
    return frame.selectExpr(*(column.named for column in columns))


def with_columns(frame: DataFrame, *columns: Column) -> DataFrame:
    """All columns of the frame, and these, whose names are new."""
    return frame.selectExpr("*", *(column.named for column in columns))


def where(frame: DataFrame, condition: Column) -> DataFrame:
    """The rows where a condition is TRUE."""
    return frame.filter(condition.text)


def join_on(one: DataFrame, other: DataFrame, condition: Column, how: str) -> DataFrame:
    """The pairs of rows where a condition is TRUE, as PySpark's `how` has it."""
    return one.join(other, to_spark(condition), how)


def union(frames: Sequence[DataFrame], *, by_name: bool = False) -> DataFrame:
    """All rows of frames with the same columns.

    Spark analyzes a union with all that is in it, at once. Of n frames, n log n are analyzed in pairs of pairs, and n²
    one after the other.
    """
    found = list(frames)
    while len(found) > 1:
        pairs = [
            one.unionByName(other) if by_name else one.union(other)
            for one, other in zip(found[::2], found[1::2], strict=False)
        ]
        found = [*pairs, *found[2 * len(pairs) :]]
    return found[0]


def repartition(frame: DataFrame, *by: Column, partitions: int | None = None) -> DataFrame:
    """The rows, those together that agree on these values, in so many partitions; None: as the session says."""
    return frame.repartition(*(() if partitions is None else (partitions,)), *map(to_spark, by))


def repartition_by_range(frame: DataFrame, by: Column) -> DataFrame:
    """The rows, those together that agree on a value, in partitions that follow each other in its order."""
    return frame.repartitionByRange(to_spark(by))


def aggregate(frame: DataFrame, by: Sequence[Column], *aggregates: Column) -> DataFrame:
    """One row per group, or one in all: the values it agrees on, and the aggregates."""
    return frame.groupBy(*map(to_spark, by)).agg(*map(to_spark, aggregates))


def to_spark(column: Column) -> SparkColumn:
    """A Column of PySpark."""
    if _is_misread(column):
        return spark.expr(column.text).alias(*column.names)
    return spark.expr(column.named)


def _is_misread(column: Column) -> bool:
    """Whether Spark would put a setting in place of a name."""
    return any(SUBSTITUTED in name for name in column.names)
