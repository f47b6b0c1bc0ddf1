"""The events of variables of a match as Columns: one event, or a bag of events, and aggregates over a bag.

A bag is an array of structs in order of position, or `Copies`: as many columns as it has events. An array is never
exploded: aggregates within one match are higher-order functions on it. A sum of integers beyond 64 bits fails the job
(D24).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import types as T

from tocsin import errors
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.typed_columns import Kind, Value, null
from tocsin.language import expressions as ex

# Every sum of 64-bit integers fits, and one more digit, which Spark wants for the sum of two, still fits 38.
WIDE_INTEGER = "decimal(38,0)"


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

    def chosen(self, index: ex.Index) -> Binding:
        """The event an index means, as of a bag of this one event; an unbound one when there is none (R15)."""
        is_outside = isinstance(index, ex.Fixed) and index.number != 1
        return replace(self, is_bound=False) if is_outside else self

    def only_if_bound(self, value: Value) -> Value:
        """A value computed for the event, not for an event of NULLs: `COUNT(b.x IS NULL)` of none is 0."""
        if self.is_bound and self.exists is None:
            return value
        test = F.lit(False) if self.exists is None or not self.is_bound else self.exists
        return value.held_in(F.when(test, value.column))

    def values(self, compute: Callable[[Binding], Value]) -> Values:
        """The value of `compute` for the event, NULL when there is none."""
        value = self.only_if_bound(compute(self))
        return Values(F.array(value.column), value)


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

        return Values(F.coalesce(F.transform(self.held, column), F.array()), kinds[0])


@dataclass(frozen=True)
class Values:
    """An array of values, never NULL itself. `each` has their kind; its column means nothing."""

    array: Column
    each: Value

    def fold(self, function: str, *, distinct: bool = False) -> Value:
        """An aggregate of the values, in the order of their events (R18)."""
        element = self.each.held_in
        match function:
            case "first":
                return element(F.get(self.array, F.lit(0)))
            case "last":
                return element(F.get(self.array, F.array_size(self.array) - 1))
            case "min":
                return element(F.array_min(self.array))
            case "max":
                return element(F.array_max(self.array))
            case "range":
                low, high = element(F.array_min(self.array)), element(F.array_max(self.array))
                return range_of(low, high, errors.NumberTooLargeError.of_match(function))
            case _:
                pass  # the others leave NULLs out
        known = F.array_compact(self.array)
        if distinct:
            # In arrays −0.0 and 0.0 are different values to Spark.
            is_double = self.each.kind is Kind.DOUBLE
            known = F.array_distinct(F.transform(known, lambda value: value + 0.0) if is_double else known)
        count = F.array_size(known).cast("bigint")
        match function:
            case "count":
                return Value(count, Kind.INTEGER)
            case "collect":
                return Value(F.transform(known, lambda value: element(value).output), Kind.OTHER)
            case "sum" if self.each.kind in (Kind.DOUBLE, Kind.DECIMAL):
                return decimal_sum(element(self._total(known)))
            case "sum":
                # The sum is exact, so that one on the way may well be beyond 64 bits.
                whole = self._total(known).try_cast("bigint")
                return Value(fitting(whole, errors.NumberTooLargeError.of_match(function)), Kind.INTEGER)
            case "avg":
                return Value(self._mean(known, count), Kind.DOUBLE)
            case "stddev":
                return Value(self._deviation(known, count), Kind.DOUBLE)
            case _:
                raise errors.InternalError(f"There is no aggregate `{function}`.")

    def _total(self, known: Column) -> Column:
        if self.each.kind is Kind.DOUBLE:
            return _double_sum(known)
        # With 38 digits Spark would give up one after the point when it adds.
        wide = f"decimal(37,{self.each.scale})" if self.each.kind is Kind.DECIMAL else WIDE_INTEGER
        return F.aggregate(
            known, F.lit(0).cast(wide), lambda total, value: F.try_add(total, value.try_cast(wide)).try_cast(wide)
        )

    def _mean(self, known: Column, count: Column) -> Column:
        return F.try_divide(self._total(known).cast("double"), count.cast("double"))

    def _deviation(self, known: Column, count: Column) -> Column:
        """Of the population, from the differences to the mean."""
        mean = self._mean(known, count)
        # The mean is put beside each value, for inside a lambda it would be computed again for every one.
        means = F.array_repeat(mean, count.cast("int"))
        # Not `pow`, whose last digit depends on the machine.
        squares = F.zip_with(known, means, lambda value, m: (value.cast("double") - m) * (value.cast("double") - m))
        return F.sqrt(F.try_divide(_double_sum(squares), count.cast("double")))


def decimal_sum(total: Value) -> Value:
    """A sum in the type that sums of decimals have; other sums as they are."""
    if total.kind is not Kind.DECIMAL:
        return total
    return total.held_in(total.column.cast(f"decimal(38,{total.scale})"))


def range_of(low: Value, high: Value, too_large: errors.NumberTooLargeError) -> Value:
    """The distance of the extremes of some values."""
    apart = F.try_subtract(high.number, low.number)
    if low.kind is Kind.INTEGER:
        apart = F.when(high.column.isNotNull(), fitting(apart, too_large))
    return low.held_in(apart)


def fitting(whole: Column, too_large: errors.NumberTooLargeError) -> Column:
    """An aggregate of integers that is NULL only where it needs more than 64 bits, which stops the query (D24)."""
    return F.coalesce(whole, F.raise_error(str(too_large)).cast("bigint"))


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
    """A bag of at least one event, whose events are columns of one row; an array only where a user asks for it."""

    copies: tuple[Binding, ...] = ()

    @property
    def size(self) -> Column:
        """How many events there are."""
        return F.bigint(len(self.copies))

    @cached_property
    def event(self) -> Column:
        """All its events."""
        return self.held

    def chosen(self, index: ex.Index) -> Binding:
        """The event an index means; an unbound one when there is none (R15)."""
        place = _place(index)
        place = len(self.copies) - 1 if place is None else place
        return self.copies[place] if 0 <= place < len(self.copies) else replace(self.copies[0], is_bound=False)

    def attributes(self, path: tuple[str, ...]) -> Column:
        """The values of an attribute as an array."""
        return F.array(*(copy.attribute(path)[0] for copy in self.copies))

    def values(self, compute: Callable[[Binding], Value]) -> Values:
        """The values of `compute` for each event, in their order."""
        found = [compute(copy) for copy in self.copies]
        return Values(F.array(*(value.column for value in found)), found[0])
