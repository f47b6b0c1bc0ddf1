"""What is shipped of an event, as a column of the DataFrame that it lies in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from pyspark.sql import types as T

from tocsin.kernels.model import Carried, Held
from tocsin.language import expressions as ex
from tocsin.physical import identity, instants
from tocsin.physical.sliced.parts import Part
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.values import TIMES, Kind, Value, kind_of, value_of

NARROW: dict[type[T.DataType], int] = {T.ByteType: 8, T.ShortType: 16, T.IntegerType: 32}
FIXED_WIDTH: tuple[type[T.DataType], ...] = (
    *NARROW,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.BooleanType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


@dataclass(eq=False)
class Attribute:
    """The value of a column that holds an attribute of the types that ask for it."""

    name: str
    dtype: T.DataType
    types: frozenset[str]

    def __call__(self, part: Part) -> Column:
        """The attribute of a part's events; NULL in those of other types."""
        if self.types.isdisjoint(part.types):
            return F.lit(None).cast(self.dtype)
        if isinstance(self.dtype, FIXED_WIDTH) and self.name in part.columns:
            # As wide when it is NULL: not worth a look at the type.
            return cast(part, self.name, self.dtype)
        return part.choose({kind: ("", lambda part: cast(part, self.name, self.dtype)) for kind in self.types})


def digest_of(part: Part, kinds: set[str], columns: identity.Typed, number: int, *, id: str | None = None) -> Column:
    """A digest of the events of these types, 0 for others."""
    own = kinds.intersection(part.types)
    if not own:
        return F.bigint(0)
    # One hash with names chosen by type, not one per type, which would be as many times the text to plan.
    names_by_kind = {kind: (kind, lambda part, kind=kind: identity.names_of(kind, columns, id=id)) for kind in own}
    made = identity.digests(part.choose(names_by_kind), columns, id=id)[number]
    is_of_them = None if own.issuperset(part.types) and not part.has_others else part.is_of(own)
    return made if is_of_them is None else F.when(is_of_them, made).otherwise(F.bigint(0))


def digest_of_all(part: Part, columns: identity.Typed, number: int, *, id: str | None = None) -> Column:
    """A digest of every event, also of types that the pattern does not name; these need not have the `id` column."""
    id = id if id in columns else None
    if part.type_column is None:
        names = identity.names_of(part.name or "", columns, id=id)
    else:
        names = identity.names_of_any(part.columns[part.type_column][0], columns, id=id)
    return identity.digests(names, columns, id=id)[number]


def cast(part: Part, attribute: str, dtype: T.DataType) -> Column:
    """An attribute in a type that all event types agree on; NULL where it is not there."""
    if attribute not in part.columns:
        return F.lit(None).cast(dtype)
    column, own = part.columns[attribute]
    return column if own == dtype else column.cast(dtype)


def micros_of(time: Column, kind: Kind) -> Column:
    """A time column in microseconds."""
    match kind:
        case Kind.INSTANT:
            return instants.micros_of_instant(time)
        case Kind.LOCAL:
            return instants.micros_of_local(time)
        case _:
            return time.cast("bigint")


def key_value(part: Part, attribute: str, kinds: set[Kind]) -> Column:
    """A key that is equal exactly when SQL's grouping says so, in every input."""
    if attribute not in part.columns:
        return F.lit(None)
    value: Value = value_of(*part.columns[attribute])
    if value.kind in TIMES and len(kinds) > 1:
        return value.micros
    if value.kind is Kind.DOUBLE:
        # −0.0 is 0.0 here; as bits they differ.
        return F.when(value.column == 0.0, F.lit(0.0)).otherwise(value.column)
    return value.column


def plain_attribute(carried: Carried) -> str | None:
    """The attribute that a carried column is, when it is nothing more."""
    found = set()
    for expression in carried.expressions.values():
        if not isinstance(expression, ex.Attribute) or len(expression.path) != 1:
            return None
        found.add(expression.path[0])
    return found.pop() if len(found) == 1 else None


def is_held_as(dtype: T.DataType, held: Held) -> bool:
    """Whether a worker can take a shipped column of this type as it is."""
    kind = kind_of(dtype)
    match held:
        case Held.INTEGER:
            return kind in (Kind.INTEGER, Kind.INSTANT, Kind.LOCAL)
        case Held.FLOAT:
            return kind is Kind.DOUBLE
        case Held.BOOLEAN:
            return kind is Kind.BOOLEAN
        case Held.RANK:
            return kind in (Kind.STRING, Kind.DECIMAL) or isinstance(dtype, T.BinaryType)
        case _:
            assert_never(held)
