"""The columns of a manifest as SQL over the DataFrame that an event lies in."""

from __future__ import annotations

from typing import assert_never

from pyspark.sql import types as T

from tocsin.analysis.names import RESERVED_PREFIX
from tocsin.kernels.model import Held
from tocsin.language import expressions as ex
from tocsin.physical import identity
from tocsin.physical.columns import Compiler
from tocsin.physical.sliced.parts import Part
from tocsin.physical.sliced.text import text_of
from tocsin.physical.spark_types import to_spark
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.values import TIMES, Kind, micros_of, value_of
from tocsin.plan.layout import position
from tocsin.plan.manifest import Attribute, Digest, Key, Position, Tie, TrimmedDigest

FIXED_WIDTH: tuple[type[T.DataType], ...] = (
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.BooleanType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)
NOTHING = (F.lit(None), T.NullType())


def attribute(part: Part, column: Attribute) -> Column:
    """An attribute of a part's events; NULL in those of other types."""
    dtype = to_spark(column.type)
    if column.types.isdisjoint(part.types):
        return F.lit(None).cast(dtype)
    if isinstance(dtype, FIXED_WIDTH) and column.name in part.columns:
        # As wide when it is NULL: not worth a look at the type.
        return cast(part, column.name, dtype)
    return part.choose({kind: ("", lambda part: cast(part, column.name, dtype)) for kind in column.types})


def held_as(compiler: Compiler, expression: ex.Expression, held: Held) -> Column:
    """A value as workers hold it."""
    value = compiler.value(expression)
    match held:
        case Held.INTEGER if value.kind in TIMES:
            return value.micros
        case Held.INTEGER:
            return value.number.cast("bigint")
        case Held.FLOAT:
            return value.number.cast("double")
        case Held.RANK if value.kind is Kind.INTEGER:
            return value.column.cast("decimal(20,0)")
        case Held.BOOLEAN | Held.RANK:
            return value.column
        case _:
            assert_never(held)


def key(part: Part, column: Key) -> Column:
    """A key that is equal exactly when SQL's grouping says so, in every input."""
    dtype = to_spark(column.type)
    if column.attribute not in part.columns:
        return F.lit(None).cast(dtype)
    value = value_of(*part.columns[column.attribute])
    if value.kind in TIMES and isinstance(dtype, T.LongType):
        return value.micros
    if value.kind is Kind.DOUBLE:
        # −0.0 is 0.0 here; as bits they differ.
        return F.when(value.column == 0.0, F.lit(0.0)).otherwise(value.column)
    return value.column if value.kind is Kind.INTERVAL else cast(part, column.attribute, dtype)


def tie(part: Part, column: Tie) -> Column:
    """What orders events of one instant."""
    dtype = to_spark(column.type)
    return value_of(cast(part, column.attribute, dtype), dtype).column


def type_name(part: Part) -> Column:
    """The type of an event."""
    if part.type_column is None:
        return F.lit(part.name)
    return F.coalesce(part.columns[part.type_column][0], F.lit(""))


def place(part: Part, column: Position) -> Column:
    """The place of an event in the order of all events."""
    ties = (cast(part, one.attribute, to_spark(one.type)) for one in column.ties)
    parts = position(time_of(part), ties, type_name(part), text_of(part.columns, without=part.time))
    return F.struct(*(found.alias(name) for name, found in parts.items()))


def digest(part: Part, column: Digest) -> Column:
    """A digest of whole events; what we have added to an event is no part of it."""
    own = {name: typed for name, typed in part.columns.items() if not name.startswith(RESERVED_PREFIX)}
    if column.types is not None:
        return _digest_of(part, column.types, own, column.half, column.id)
    # Also of types that the pattern does not name; these need not have the `id` column.
    id = column.id if column.id in own else None
    if part.type_column is None:
        names = identity.names_of(part.name or "", own, id=id)
    else:
        names = identity.names_of_any(part.columns[part.type_column][0], own, id=id)
    return identity.digests(names, own, id=id)[column.half]


def trimmed_digest(part: Part, column: TrimmedDigest) -> Column:
    """A digest of what PROJECT leaves of events."""
    kept = {name: part.columns.get(name, NOTHING) if name in column.kept else NOTHING for name in column.attributes}
    return _digest_of(part, column.types, kept, column.half, None)


def _digest_of(part: Part, types: frozenset[str], columns: identity.Typed, half: int, id: str | None) -> Column:
    """A digest of the events of these types, 0 for others."""
    own = types.intersection(part.types)
    if not own:
        return F.bigint(0)
    # One hash with names chosen by type, not one per type, which would be as many times the text to plan.
    named = {kind: (kind, lambda part, kind=kind: identity.names_of(kind, columns, id=id)) for kind in own}
    made = identity.digests(part.choose(named), columns, id=id)[half]
    is_of_them = None if own.issuperset(part.types) and not part.has_others else part.is_of(own)
    return made if is_of_them is None else F.when(is_of_them, made).otherwise(F.bigint(0))


def cast(part: Part, attribute: str, dtype: T.DataType) -> Column:
    """An attribute in a type that all event types agree on; NULL where it is not there."""
    if attribute not in part.columns:
        return F.lit(None).cast(dtype)
    column, own = part.columns[attribute]
    return column if own == dtype else column.cast(dtype)


def time_of(part: Part) -> Column:
    """The time of an event in microseconds."""
    return micros_of(part.columns[part.time][0], part.time_kind)
