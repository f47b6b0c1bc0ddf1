"""The columns of a variable in the result: those of its event type, or of all its types when OR branches differ."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types as T

from tocsin.errors import TypeMismatchError
from tocsin.physical.values import NUMBERS, Kind, kind_of

Shape = dict[str, T.DataType]


def shape_of(variable: str, schemas: Iterable[T.StructType]) -> Shape:
    """The attributes of a variable and their types, in the order of its inputs.

    Examples
    --------
    >>> one = T.StructType().add("x", "integer").add("s", "string")
    >>> shape_of("a", [one, T.StructType().add("x", "long")])
    {'x': LongType(), 's': StringType()}
    """
    shape: Shape = {}
    for schema in schemas:
        for field in schema.fields:
            known = shape.get(field.name, field.dataType)
            wider = _wider(known, field.dataType)
            if wider is None:
                raise TypeMismatchError(
                    f"`{variable}` has two event types, whose attribute `{field.name}` is "
                    f"{known.simpleString()} in one and {field.dataType.simpleString()} in the other.",
                    hint="convert one of them, or use two variables.",
                )
            shape[field.name] = wider
    return shape


def _wider(one: T.DataType, other: T.DataType) -> T.DataType | None:
    """A type that holds the values of both, if they can be compared at all."""
    if one == other or isinstance(other, T.NullType):
        return one
    if isinstance(one, T.NullType):
        return other
    kinds = {kind_of(one), kind_of(other)}
    if kinds == {Kind.INTEGER}:
        return T.LongType()
    if kinds == {Kind.STRING}:
        return T.StringType()
    return T.DoubleType() if kinds <= NUMBERS else None
