"""The bag of an iterated variable whose events are columns of one row: its size is known before any row is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import types as T

from tocsin import errors
from tocsin.language import expressions as ex
from tocsin.physical.bags import Bag, Binding, Values
from tocsin.physical.spark_types import Shape
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.values import Value, null


@dataclass(frozen=True)
class Copies(Bag):
    """A bag that never needs to be an array, except where a user asks for it."""

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
        match index:
            case ex.Fixed():
                place = index.number
            case ex.Edge.FIRST:
                place = 1
            case ex.Edge.LAST:
                place = len(self.copies)
            case _:
                raise errors.InternalError("A running index has no event outside a condition of WHERE.")
        if 1 <= place <= len(self.copies):
            return self.copies[place - 1]
        return Binding({name: (F.lit(None), dtype) for name, (_, dtype) in self.fields.items()}, is_bound=False)

    def attributes(self, path: tuple[str, ...]) -> Column:
        """The values of an attribute as an array."""
        if not self.copies:
            return null(T.ArrayType(self.type_of(path)))
        return F.array(*(copy.attribute(path)[0] for copy in self.copies))

    def values(self, compute: Callable[[Binding], Value]) -> Values:
        """What `compute` gives for each event, in their order."""
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
