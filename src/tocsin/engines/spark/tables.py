"""Reference tables of rules as Columns: a few rows are written out, a DataFrame is joined to the events.

Whether a table has a row is UNKNOWN when an argument is NULL, and when only a NULL of the table hides it: three-valued,
as `IN` is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

from pyspark.sql import DataFrame

from tocsin import errors
from tocsin.engines.spark.compat import is_dataframe, is_streaming, schema_of
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import aggregate, join_on, select, where, with_columns
from tocsin.engines.spark.typed_columns import NUMBERS, TIMES, Kind, Value, compare, is_one_of, literal, value_of
from tocsin.language import rule_expressions as rx

FOUND, HIDDEN = "__tocsin_found", "__tocsin_hidden"


# --- rows -----------------------------------------------------------------------------------------


def listed(node: rx.InTable, values: Sequence[Value]) -> Column:
    """Whether a table that was given as rows has one of these values."""
    rows = [[literal(value) for value in row] for row in sorted(node.table.rows or (), key=repr)]
    for row in rows:
        for value, held in zip(values, row, strict=True):
            _require_alike(node, value.kind, held.kind)
    if not rows:
        found = F.lit(False)
    elif len(values) == 1:
        found = is_one_of(values[0], [row[0] for row in rows])
    else:
        equal = ([compare("=", *pair) for pair in zip(values, row, strict=True)] for row in rows)
        found = reduce(or_, (reduce(and_, each) for each in equal))
    return F.when(_are_known(values), found)


def _are_known(values: Sequence[Value]) -> Column:
    return reduce(and_, (value.column.isNotNull() for value in values))


def _require_alike(node: rx.InTable, asked: Kind, held: Kind) -> None:
    """Refuse to ask a table for values that are of another kind than its own."""
    kinds = {asked, held} - {Kind.NULL}
    if len(kinds) > 1 and not kinds <= NUMBERS and not kinds <= TIMES:
        raise errors.TypeMismatchError(
            f"The table `{node.name}` holds a {held.value}, and is asked for a {asked.value}.",
            where=node.where,
            hint="give it rows of the values that it is asked for.",
        )


# --- DataFrames -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """Whether a DataFrame has a row of these values. `name` is the column of the answer."""

    node: rx.InTable
    values: Sequence[Value]
    name: str


def answered(frame: DataFrame, questions: Sequence[Question], columns: Sequence[str]) -> DataFrame:
    """A frame with these columns of it, and the answers."""
    kept = [F.col(name) for name in columns]
    for question in questions:
        frame = _answered(frame, question, kept)
        kept.append(F.col(question.name))
    return frame


def _answered(frame: DataFrame, question: Question, kept: Sequence[Column]) -> DataFrame:
    """A left join to the different rows, so that every event stays one; Spark decides how to do it."""
    table = question.node.table.frame
    if not is_dataframe(table):
        raise errors.InvalidInputError(
            f"The table `{question.node.name}` is a {type(table).__name__}, not a Spark DataFrame.",
            hint="give it as a Spark DataFrame or as rows.",
        )
    if is_streaming(table):
        raise errors.InvalidInputError(
            f"The table `{question.node.name}` is a stream, and a table is there before the events.",
            hint="read it with `spark.read`.",
        )
    schema = schema_of(table)
    number = range(len(schema.fields))
    held = table.toDF(*map(_held, number))
    values = [value_of(F.col(_held(place)), field.dataType) for place, field in enumerate(schema.fields)]
    for value, other in zip(question.values, values, strict=True):
        _require_alike(question.node, value.kind, other.kind)
    pairs = [_met(*pair) for pair in zip(question.values, values, strict=True)]
    asked = [F.col(f"{question.name}_{place}") for place in number]
    keys = [key.alias(_held(place)) for place, (_, key) in enumerate(pairs)]
    frame = with_columns(frame, *(one.alias(name.text) for (one, _), name in zip(pairs, asked, strict=True)))
    whole = select(where(held, _are_known(values)), *keys).distinct()
    whole = with_columns(whole, F.lit(True).alias(FOUND))
    is_it = reduce(and_, (name == F.col(_held(place)) for place, name in enumerate(asked)))
    frame = join_on(frame, whole, is_it, "left")
    answer = F.when(reduce(or_, (name.isNull() for name in asked)), F.lit(None).cast("boolean"))
    answer = answer.when(F.col(FOUND), F.lit(True))
    if any(field.nullable for field in schema.fields):
        # Rows with a NULL are few, if there are any: one row with all of them.
        rows = F.collect_set(F.struct(*keys)).alias(HIDDEN)
        frame = frame.crossJoin(aggregate(where(held, ~_are_known(values)), [], rows))

        def may_be(row: Column) -> Column:
            fields = (row.getField(_held(place)) for place in number)
            return reduce(and_, (field.isNull() | (field == name) for field, name in zip(fields, asked, strict=True)))

        answer = answer.when(F.exists(F.col(HIDDEN), may_be), F.lit(None).cast("boolean"))
    return select(frame, *kept, answer.otherwise(F.lit(False)).alias(question.name))


def _held(place: int) -> str:
    return f"__tocsin_k{place}"


def _met(asked: Value, held: Value) -> tuple[Column, Column]:
    """Two columns whose equality is that of the values, and of which different ones are different values."""
    if asked.kind in TIMES:
        return asked.micros, held.micros
    if Kind.DOUBLE in (asked.kind, held.kind):
        return asked.number.cast("double"), held.number.cast("double")
    return asked.number, held.number
