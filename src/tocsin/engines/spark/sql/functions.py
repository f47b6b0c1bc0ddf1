"""Spark's functions, under PySpark's names: Columns and plain values in, Columns out. A string is a literal here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from itertools import chain

from pyspark.sql import functions as spark_functions

from tocsin.engines.spark.sql.column import Case, Column, Operand, Plain, bigint_literal, identifier, literal, operand

# --- values ---------------------------------------------------------------------------------------


def lit(value: Plain) -> Column:
    """A literal; an integer is INT where it fits, else BIGINT."""
    return Column(literal(value))


def bigint(value: int) -> Column:
    """A literal BIGINT."""
    return Column(bigint_literal(value))


def col(name: str) -> Column:
    """The column of this name, whatever characters it has: a dot is one of them."""
    return Column(identifier(name))


def when(condition: Column, value: Operand) -> Case:
    """The value where the condition holds; more branches follow by `when` and `otherwise`."""
    return Case.of([(condition, value)])


cases = Case.of


def struct(*columns: Column) -> Column:
    """A struct of Columns with aliases, which name its fields."""
    fields = ((lit(name), column) for column in columns for name in column.names)
    return _call("named_struct", *chain.from_iterable(fields))


# --- functions whose arguments are a list ---------------------------------------------------------


def _call(name: str, *arguments: Operand) -> Column:
    return Column(f"{name}({', '.join(map(operand, arguments))})")


def __getattr__(name: str) -> Callable[..., Column]:
    """Spark's function of this name, unless this module defines it in a form of its own: `F.coalesce(a, b)`."""
    if name.startswith("_") or not hasattr(spark_functions, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(_call, name)


# --- functions with a form of their own -----------------------------------------------------------


def count_distinct(column: Column) -> Column:
    """How many different values there are."""
    return Column(f"count(DISTINCT {column.text})")


def greatest(*columns: Column) -> Column:
    """The greatest of one or more values; Spark's own takes two at least."""
    return columns[0] if len(columns) == 1 else _call("greatest", *columns)


def least(*columns: Column) -> Column:
    """The least of one or more values; Spark's own takes two at least."""
    return columns[0] if len(columns) == 1 else _call("least", *columns)


def extract(field: str, source: Column) -> Column:
    """A field of a time or an interval: DAY, HOUR, …."""
    return Column(f"extract({field} FROM {source.text})")


def rtrim(column: Column, characters: str) -> Column:
    """The string without these characters at its end."""
    return _call("rtrim", characters, column)


def timestamp_add(unit: str, quantity: Column, time: Column) -> Column:
    """A time, moved: by so many MICROSECOND, DAY, …."""
    return Column(f"timestampadd({unit}, {quantity.text}, {time.text})")


def to_json(column: Column, options: Mapping[str, str] | None = None) -> Column:
    """The value as the text of JSON."""
    if not options:
        return _call("to_json", column)
    return _call("to_json", column, _call("map", *chain.from_iterable(options.items())))


# --- functions of functions -----------------------------------------------------------------------

_depth = ContextVar("_depth", default=0)


def _lambda(number: int, body: Callable[..., Column]) -> Column:
    """A lambda, whose parameters have names that no lambda around it has.

    One that is made before, and then stands inside, cannot mention them: there the same names do no harm.
    """
    depth = _depth.get()
    token = _depth.set(depth + number)
    try:
        parameters = [col(f"__tocsin_x{place}") for place in range(depth, depth + number)]
        names = ", ".join(one.text for one in parameters)
        return Column(f"{names if number == 1 else f'({names})'} -> {body(*parameters).text}")
    finally:
        _depth.reset(token)


def transform(array: Column, function: Callable[[Column], Column]) -> Column:
    """The value of a function for each element."""
    return _call("transform", array, _lambda(1, function))


def exists(array: Column, condition: Callable[[Column], Column]) -> Column:
    """Whether a condition holds for an element."""
    return _call("exists", array, _lambda(1, condition))


def zip_with(one: Column, other: Column, function: Callable[[Column, Column], Column]) -> Column:
    """The value of a function for each pair of elements."""
    return _call("zip_with", one, other, _lambda(2, function))


def aggregate(
    array: Column,
    start: Column,
    merge: Callable[[Column, Column], Column],
    finish: Callable[[Column], Column] | None = None,
) -> Column:
    """Merge each element into the value so far."""
    last = () if finish is None else (_lambda(1, finish),)
    return _call("aggregate", array, start, _lambda(2, merge), *last)
