"""The DataFrames that a query reads, each with the event types it holds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.physical.inputs import Inputs, Stream
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.values import Kind


@dataclass(frozen=True)
class Part:
    """Events that one DataFrame holds: those of one type, or of several told apart by a type column."""

    frame: DataFrame
    streams: tuple[Stream, ...]  # none: a type that the pattern does not name
    schema: T.StructType
    time: str
    time_kind: Kind
    type_column: str | None
    name: str | None  # the only type
    has_others: bool  # rows of types that the pattern does not name are not filtered out
    computed: Mapping[str, tuple[Column, T.DataType]] | None = None  # the columns, when they are not those of the frame

    @cached_property
    def columns(self) -> dict[str, tuple[Column, T.DataType]]:
        """Its columns by name; renamed by place, so that no two names clash whatever the session's rules on case."""
        if self.computed is not None:
            return dict(self.computed)
        return {field.name: (F.col(_input(number)), field.dataType) for number, field in enumerate(self.schema.fields)}

    @cached_property
    def renamed(self) -> DataFrame:
        """The DataFrame with these names."""
        return self.frame.toDF(*map(_input, range(len(self.schema.fields))))

    @property
    def types(self) -> tuple[str, ...]:
        """The types that the pattern names."""
        return tuple(stream.type for stream in self.streams)

    def is_of(self, types: Iterable[str]) -> Column | None:
        """Whether a row is of one of these types; None when all rows are."""
        if self.type_column is None:
            return None
        return _is_one_of(self.columns[self.type_column][0], types)

    def choose(self, values: Mapping[str, tuple[Hashable, Callable[[Part], Column]]]) -> Column:
        """For the events of each type its value; equal keys mean the same value, which is written once."""
        groups: dict[Hashable, list[str]] = {}
        for name in self.types:
            if name in values:
                groups.setdefault(values[name][0], []).append(name)
        if not groups:
            return F.lit(None)
        made = {key: values[members[0]][1](self) for key, members in groups.items()}
        if self.type_column is None:
            return next(iter(made.values()))
        *tested, (last, _) = groups.items()
        is_complete = not self.has_others and sum(map(len, groups.values())) == len(self.types)
        if not is_complete:
            tested = list(groups.items())
        elif not tested:
            return made[last]
        column = self.columns[self.type_column][0]
        chosen = F.cases((_is_one_of(column, members), made[key]) for key, members in tested)
        return chosen.otherwise(made[last]) if is_complete else chosen


def _is_one_of(column: Column, values: Iterable[str]) -> Column:
    wanted = sorted(values)
    return column == wanted[0] if len(wanted) == 1 else column.isin(wanted)


def _input(number: int) -> str:
    return f"__tocsin_in{number}"


def part_of(stream: Stream) -> Part:
    """A DataFrame with the events of one type."""
    return Part(stream.frame, (stream,), stream.schema, stream.time, stream.time_kind, None, stream.type, False)


def parts_of(inputs: Inputs, *, others: bool) -> list[Part]:
    """The DataFrames to read; those of types that the pattern does not name only when they count."""
    streams = tuple(inputs.streams.values())
    first = streams[0]
    if first.type_column is not None:
        return [Part(first.frame, streams, first.schema, first.time, first.time_kind, first.type_column, None, others)]
    return [
        Part(
            one.frame,
            (one,) if one.type in inputs.streams else (),
            one.schema,
            one.time,
            one.time_kind,
            None,
            one.type,
            False,
        )
        for one in (*streams, *(inputs.others.values() if others else ()))
    ]
