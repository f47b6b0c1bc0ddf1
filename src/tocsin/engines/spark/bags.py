"""The events of variables of a match as Columns: one event, or a bag of events, and aggregates over a bag.

A bag is an array of structs in order of position, or `Copies`: as many columns as it has events. An array is never
exploded: aggregates within one match are higher-order functions on it. A sum of integers beyond 64 bits fails the job
(D24).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import types as T

from tocsin import errors
from tocsin.engines.spark.spark_types import Shape
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.typed_columns import Kind, Value, null
from tocsin.language import expressions as ex

# Every sum of 64-bit integers fits, and one more digit, which Spark wants for the sum of two, still fits 38.
WIDE_INTEGER = "decimal(38,0)"
UNKNOWN_SCALE = 18  # of decimals that are computed and not a column


@dataclass(frozen=True)
class Binding:
    """The event of one variable."""

    columns: Mapping[str, tuple[Column, T.DataType]]
    is_bound: bool = True  # False when no match of the frame has such an event
    # Where some matches have it and others do not: whether one has. The columns are NULL where it is FALSE.
    exists: Column | None = None

    def attribute(self, path: tuple[str, ...]) -> tuple[Column, T.DataType]:
        """An attribute, or a field within one."""
        if path[0] not in self.columns:
            raise errors.UnknownAttributeError(
                f"There is no attribute `{path[0]}`.", hint=errors.did_you_mean(path[0], self.columns, "known")
            )
        column, dtype = self.columns[path[0]]
        for name in path[1:]:
            if not isinstance(dtype, T.StructType) or name not in dtype.names:
                raise errors.UnknownAttributeError(f"`{'.'.join(path)}` has no field `{name}`.")
            column, dtype = column.getField(name), dtype[name].dataType
        return (column, dtype) if self.is_bound else (null(dtype), dtype)

    @cached_property
    def event(self) -> Column:
        """The whole event as a struct, NULL when there is none."""
        if not self.is_bound:
            return null(T.StructType([T.StructField(name, dtype) for name, (_, dtype) in self.columns.items()]))
        whole = F.struct(*(column.alias(name) for name, (column, _) in self.columns.items()))
        return whole if self.exists is None else F.when(self.exists, whole)

    @property
    def size(self) -> Column:
        """How many events there are, as BIGINT."""
        known = F.lit(self.is_bound) if self.exists is None else F.coalesce(self.exists, F.lit(False))
        return known.cast("int").cast("bigint")

    def only_if_bound(self, value: Value) -> Value:
        """A value computed for the event, not for an event of NULLs: `COUNT(b.x IS NULL)` of none is 0."""
        if self.is_bound and self.exists is None:
            return value
        test = F.lit(False) if self.exists is None or not self.is_bound else self.exists
        return Value(F.when(test, value.column), value.kind, value.in_micros)


Fields = Mapping[str, tuple[str, T.DataType]]


def event_in(held: Column, fields: Fields) -> Binding:
    """The event in a struct column that is NULL where the variable is unbound.

    `fields` has, by attribute name, the name of the struct's field and its type.
    """
    columns = {name: (held.getField(field), dtype) for name, (field, dtype) in fields.items()}
    return Binding(columns, exists=held.isNotNull())


def _place(index: ex.Index) -> int | None:
    """The place of an event in a bag, from 0; None: the last."""
    match index:
        case ex.Fixed():
            return index.number - 1
        case ex.Edge():
            return 0 if index is ex.Edge.FIRST else None
        case _:
            raise errors.InternalError("A running index has no event outside a condition of WHERE.")


@dataclass(frozen=True)
class Bag:
    """The events of an iterated variable: an array of structs in order of position, NULL or empty when it is unbound.

    `fields` has, by attribute name, the name of the struct's field and its type.
    """

    held: Column
    fields: Fields

    def one(self, event: Column) -> Binding:
        """One of its events, given as its struct."""
        return Binding({name: (event.getField(field), dtype) for name, (field, dtype) in self.fields.items()})

    @property
    def size(self) -> Column:
        """How many events there are, as BIGINT."""
        return F.coalesce(F.array_size(self.held), F.lit(0)).cast("bigint")

    @cached_property
    def event(self) -> Column:
        """All its events, NULL when there is none."""
        return F.when(F.array_size(self.held) > 0, F.transform(self.held, lambda event: self.one(event).event))

    def chosen(self, index: ex.Index) -> Binding:
        """The event an index means; all its columns are NULL when there is none (R15)."""
        place = _place(index)
        return self.one(F.get(self.held, F.array_size(self.held) - 1 if place is None else F.lit(place)))

    def type_of(self, path: tuple[str, ...]) -> T.DataType:
        """The type of an attribute."""
        return self.one(self.held).attribute(path)[1]

    def attributes(self, path: tuple[str, ...]) -> Column:
        """The values of an attribute as an array, NULLs included; NULL when there is no event."""
        return F.when(
            F.array_size(self.held) > 0, F.transform(self.held, lambda event: self.one(event).attribute(path)[0])
        )

    def values(self, compute: Callable[[Binding], Value]) -> Values:
        """The values of `compute` for each event, in their order."""
        kinds: list[Value] = []

        def column(event: Column) -> Column:
            kinds.append(compute(self.one(event)))
            return kinds[-1].column

        array = F.coalesce(F.transform(self.held, column), F.array())
        return Values(array, kinds[0].kind, kinds[0].in_micros)


@dataclass(frozen=True)
class Values:
    """An array of values of one kind; never NULL itself."""

    array: Column
    kind: Kind
    in_micros: bool = False

    def fold(self, function: str, *, distinct: bool = False, dtype: T.DataType | None = None) -> Value:
        """An aggregate of the values, in the order of their events (R18); `dtype` is their type, when it is known."""
        match function:
            case "first":
                return self._element(F.get(self.array, F.lit(0)))
            case "last":
                return self._element(F.get(self.array, F.array_size(self.array) - 1))
            case "min":
                return self._element(F.array_min(self.array))
            case "max":
                return self._element(F.array_max(self.array))
            case "range":
                low, high = self._element(F.array_min(self.array)), self._element(F.array_max(self.array))
                apart = F.try_subtract(high.number, low.number)
                if self.kind is not Kind.INTEGER:
                    return Value(apart, self.kind)
                return Value(F.when(high.column.isNotNull(), fitting(apart, "range")), self.kind)
            case _:
                pass  # the others leave NULLs out
        known = F.array_compact(self.array)
        if distinct:
            known = distinct_of(known, self.kind)
        count = F.array_size(known).cast("bigint")
        match function:
            case "count":
                return Value(count, Kind.INTEGER)
            case "collect":
                return Value(F.transform(known, lambda value: self._element(value).output), Kind.OTHER)
            case "sum":
                return self._sum(known, dtype)
            case "avg":
                return Value(self._mean(known, count, dtype), Kind.DOUBLE)
            case "stddev":
                return Value(self._deviation(known, count, dtype), Kind.DOUBLE)
            case _:
                raise errors.InternalError(f"There is no aggregate `{function}`.")

    def _element(self, column: Column) -> Value:
        return Value(column, self.kind, self.in_micros)

    def _sum(self, known: Column, dtype: T.DataType | None) -> Value:
        total = self._total(known, dtype)
        if self.kind in (Kind.DOUBLE, Kind.DECIMAL):
            return decimal_sum(Value(total, self.kind), dtype)
        # The sum is exact, so that one on the way may well be beyond 64 bits.
        return Value(fitting(total.try_cast("bigint"), "sum"), Kind.INTEGER)

    def _total(self, known: Column, dtype: T.DataType | None) -> Column:
        if self.kind is Kind.DOUBLE:
            return _double_sum(known)
        wide = WIDE_INTEGER
        if self.kind is Kind.DECIMAL:
            scale = scale_of(dtype)
            # With 38 digits Spark would give up one after the point when it adds.
            wide = f"decimal(37,{scale})"
        return F.aggregate(
            known, F.lit(0).cast(wide), lambda total, value: F.try_add(total, value.try_cast(wide)).try_cast(wide)
        )

    def _mean(self, known: Column, count: Column, dtype: T.DataType | None) -> Column:
        return F.try_divide(self._total(known, dtype).cast("double"), count.cast("double"))

    def _deviation(self, known: Column, count: Column, dtype: T.DataType | None) -> Column:
        """Of the population, from the differences to the mean."""
        mean = self._mean(known, count, dtype)
        # The mean is put beside each value, for inside a lambda it would be computed again for every one.
        means = F.array_repeat(mean, count.cast("int"))
        # Not `pow`, whose last digit depends on the machine.
        squares = F.zip_with(known, means, lambda value, m: (value.cast("double") - m) * (value.cast("double") - m))
        return F.sqrt(F.try_divide(_double_sum(squares), count.cast("double")))


def scale_of(dtype: T.DataType | None) -> int:
    """How many digits behind the point a decimal has."""
    return dtype.scale if isinstance(dtype, T.DecimalType) else UNKNOWN_SCALE


def decimal_sum(total: Value, dtype: T.DataType | None) -> Value:
    """A sum in the type that sums of decimals have; other sums as they are."""
    if total.kind is not Kind.DECIMAL:
        return total
    return Value(total.column.cast(f"decimal(38,{scale_of(dtype)})"), total.kind)


def fitting(whole: Column, function: str) -> Column:
    """An aggregate of integers that is NULL only where it needs more than 64 bits, which stops the query (D24)."""
    problem = str(errors.NumberTooLargeError.of_match(function))
    return F.coalesce(whole, F.raise_error(F.lit(problem)).cast("bigint"))


def distinct_of(array: Column, kind: Kind) -> Column:
    """An array without repetition; the first of equal values stays."""
    # Spark tells −0.0 from 0.0 in arrays.
    return F.array_distinct(F.transform(array, lambda value: value + 0.0) if kind is Kind.DOUBLE else array)


def _double_sum(known: Column) -> Column:
    """A compensated sum (Neumaier): what rounding loses at each step is added up beside it, and added in the end."""

    def add(total: Column, value: Column) -> Column:
        grown = total["sum"] + value
        lost = F.when(F.abs(total["sum"]) >= F.abs(value), (total["sum"] - grown) + value).otherwise(
            (value - grown) + total["sum"]
        )
        return F.struct(grown.alias("sum"), (total["lost"] + lost).alias("lost"))

    def finish(total: Column) -> Column:
        # Beyond the doubles, and with infinities, there is nothing to make good.
        return F.when(F.isnan(total["lost"]), total["sum"]).otherwise(total["sum"] + total["lost"])

    start = F.struct(F.lit(0.0).alias("sum"), F.lit(0.0).alias("lost"))
    return F.aggregate(known, start, add, finish)


@dataclass(frozen=True)
class Copies(Bag):
    """A bag whose events are columns of one row; it is an array only where a user asks for it."""

    copies: tuple[Binding, ...] = ()

    @property
    def size(self) -> Column:
        """How many events there are."""
        return F.bigint(len(self.copies))

    @cached_property
    def event(self) -> Column:
        """All its events, NULL when there is none."""
        return self.held

    def chosen(self, index: ex.Index) -> Binding:
        """The event an index means; an unbound one when there is none (R15)."""
        place = _place(index)
        place = len(self.copies) - 1 if place is None else place
        if 0 <= place < len(self.copies):
            return self.copies[place]
        return Binding({name: (F.lit(None), dtype) for name, (_, dtype) in self.fields.items()}, is_bound=False)

    def attributes(self, path: tuple[str, ...]) -> Column:
        """The values of an attribute as an array."""
        if not self.copies:
            return null(T.ArrayType(self.type_of(path)))
        return F.array(*(copy.attribute(path)[0] for copy in self.copies))

    def values(self, compute: Callable[[Binding], Value]) -> Values:
        """The values of `compute` for each event, in their order."""
        if not self.copies:
            return super().values(compute)
        found = [compute(copy) for copy in self.copies]
        return Values(F.array(*(value.column for value in found)), found[0].kind, found[0].in_micros)


def copies_of(shape: Shape, copies: tuple[Binding, ...]) -> Copies:
    """The bag of these events, all of one shape."""
    fields = {name: (name, dtype) for name, dtype in shape.items()}
    nothing = null(T.ArrayType(T.StructType([T.StructField(name, dtype) for name, dtype in shape.items()])))
    held = F.array(*(copy.event for copy in copies)) if copies else nothing
    return Copies(held, fields, copies)
