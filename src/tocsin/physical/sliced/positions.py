"""Where an event stands among all others (R16): by time, tie columns, type and text, as one value.

Events that are found far apart, in other partitions or other tasks, meet in FIRST and LAST over all matches. There this
value tells which of them comes first, to Spark and to Python alike (`order.place_of`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import types as T

from tocsin import errors
from tocsin.physical.inputs import Inputs
from tocsin.physical.sliced.parts import Part
from tocsin.physical.sliced.text import text_of
from tocsin.physical.sliced.values import cast, micros_of
from tocsin.physical.spark_types import shape_of
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F


def position(time: Any, ties: Iterable[Any], kind: Any, text: Any) -> dict[str, Any]:
    """The parts of a position by name, in the order in which they count."""
    return {"time": time, **{f"tie{number}": tie for number, tie in enumerate(ties)}, "type": kind, "text": text}


def position_of(part: Part, inputs: Inputs) -> Column:
    """The position of an event of a part."""
    time = micros_of(part.columns[part.time][0], part.time_kind)
    ties = (cast(part, name, dtype) for name, dtype in tie_types(inputs).items())
    parts = position(time, ties, type_of(part), text_of(part.columns, without=part.time))
    return F.struct(*(column.alias(name) for name, column in parts.items()))


def position_type(inputs: Inputs) -> T.StructType:
    """What `position_of` gives."""
    parts = position(T.LongType(), tie_types(inputs).values(), T.StringType(), T.StringType())
    return T.StructType([T.StructField(name, dtype) for name, dtype in parts.items()])


def type_of(part: Part) -> Column:
    """The type of an event of a part."""
    if part.type_column is None:
        return F.lit(part.name)
    return F.coalesce(part.columns[part.type_column][0], F.lit(""))


def tie_types(inputs: Inputs) -> dict[str, T.DataType]:
    """The tie columns in the types that all inputs agree on."""
    every = (*inputs.streams.values(), *inputs.others.values())
    schemas = [T.StructType([stream.schema[name] for name in inputs.ties]) for stream in every]
    try:
        return shape_of("tie", schemas)
    except errors.TypeMismatchError:
        raise errors.TypeMismatchError(
            "The columns of `tie` cannot be compared between inputs: "
            f"{' and '.join(dict.fromkeys(schema.simpleString() for schema in schemas))}.",
            hint="`tie=` names columns that have one type in all inputs.",
        ) from None
