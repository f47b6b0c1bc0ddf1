"""Parquet files, and datasets of them, as lazy tables with a piece for each row group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.parquet import ParquetFile

from tocsin.engines.local.inferred_types import INSTANT
from tocsin.engines.local.normal_columns import normalized
from tocsin.engines.local.unreadable import of_one_schema, reading, require_distinct
from tocsin.engines.worker.arrays import of_numbers, of_values
from tocsin.engines.worker.lazy_tables import LazyTable


def lazy_table(given: str, paths: Sequence[Path], folders: Sequence[Mapping[str, pa.Scalar]]) -> LazyTable:
    """The rows of files, and the columns that the folders around each of them add."""
    files = [_File.at(path, folder) for path, folder in zip(paths, folders, strict=True)]
    with of_one_schema(given):
        schema = pa.unify_schemas([file.schema for file in files], promote_options="permissive")
    owner = f"`{given}`"
    types = {field.name: field.type for field in schema}
    pieces = [RowGroup(file, number, types, owner) for file in files for number in range(file.metadata.num_row_groups)]
    return LazyTable(normalized(schema.empty_table(), owner).schema, pieces)


@dataclass(frozen=True)
class _File:
    """A Parquet file: its columns, with those of the folders around it."""

    path: Path
    folder: Mapping[str, pa.Scalar]
    metadata: Any
    own: pa.Schema  # of the file alone

    @classmethod
    def at(cls, path: Path, folder: Mapping[str, pa.Scalar]) -> _File:
        """Read what a file says of itself."""
        with reading(path, "parquet"), _opened(path) as file:
            require_distinct(file.schema_arrow.names, path)
            leaves = (file.schema.column(place) for place in range(len(file.schema)))
            # Spark writes instants in a physical type of their own, of which Arrow makes times without a zone.
            is_instant = iter([leaf.physical_type == "INT96" for leaf in leaves])
            fields = [(field.name, _with_instants(field.type, is_instant)) for field in file.schema_arrow]
            return cls(path, folder, file.metadata, pa.schema(fields))

    @property
    def schema(self) -> pa.Schema:
        """All columns; folders overrule what the file has under the same name."""
        types = {field.name: field.type for field in self.own}
        return pa.schema(types | {name: value.type for name, value in self.folder.items()})

    @cached_property
    def places(self) -> dict[str, int]:
        """The places of columns that are not nested."""
        described = self.metadata.schema
        return {described.column(place).path: place for place in range(len(described))}


def _opened(path: Path, metadata: Any = None) -> ParquetFile:
    return ParquetFile(path, metadata=metadata, coerce_int96_timestamp_unit="us")


def _with_instants(dtype: pa.DataType, is_instant: Iterator[bool]) -> pa.DataType:
    """A type in which the leaves that are instants have a time zone."""
    if pa.types.is_struct(dtype):
        return pa.struct([(field.name, _with_instants(field.type, is_instant)) for field in dtype])
    if pa.types.is_list(dtype):
        return pa.list_(_with_instants(dtype.value_type, is_instant))
    if pa.types.is_map(dtype):
        key = _with_instants(dtype.key_type, is_instant)
        return pa.map_(key, _with_instants(dtype.item_type, is_instant))
    return INSTANT if next(is_instant, False) else dtype


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file as a piece of a table."""

    file: _File
    number: int
    types: Mapping[str, pa.DataType]  # of the columns of the table, before they are normal
    owner: str

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(self.file.metadata.row_group(self.number).num_rows)

    def column(self, name: str) -> pa.ChunkedArray:
        """Read a column; one that the file lacks is NULL."""
        return normalized(pa.table({name: self._read(name).cast(self.types[name])}), self.owner).column(0)

    def _read(self, name: str) -> pa.ChunkedArray:
        if name in self.file.folder:
            return pa.chunked_array([pa.repeat(self.file.folder[name], self.num_rows)])
        if name not in self.file.own.names:
            return pa.chunked_array([pa.nulls(self.num_rows)])
        with reading(self.file.path, "parquet"), _opened(self.file.path, self.file.metadata) as file:
            return file.read_row_group(self.number, columns=[name]).column(name)

    def bounds(self, name: str) -> pa.Array | None:
        """The least and the greatest value, where the file has them in a form that is certain."""
        place = self.file.places.get(name)
        if place is None or name in self.file.folder:
            return None
        known = self.file.metadata.row_group(self.number).column(place).statistics
        if known is None or not known.has_min_max:
            return None
        dtype = self.types[name]
        if pa.types.is_signed_integer(dtype) or pa.types.is_floating(dtype):
            return of_numbers(np.array([known.min, known.max]))
        if pa.types.is_string(dtype) and isinstance(known.min, str):
            return of_values([known.min, known.max], pa.string())
        if dtype == INSTANT and known.physical_type == "INT64":
            return of_numbers(np.array([known.min_raw, known.max_raw])).cast(dtype)
        return None


# --- datasets -------------------------------------------------------------------------------------


def lazy_dataset(dataset: Any, owner: str) -> LazyTable | None:
    """The rows of a dataset of pyarrow; None if it is not made of Parquet files, or has a filter."""
    if getattr(getattr(dataset, "format", None), "default_extname", None) != "parquet":
        return None
    try:
        fragments = [*dataset.get_fragments()]
    except ValueError:  # a dataset with a filter gives none
        return None
    parts = [part for fragment in fragments for part in fragment.split_by_row_group()]
    pieces = [Fragment(part, dataset.schema, owner) for part in parts]
    return LazyTable(normalized(dataset.schema.empty_table(), owner).schema, pieces)


@dataclass(frozen=True)
class Fragment:
    """A row group of a dataset as a piece of a table."""

    fragment: Any
    schema: pa.Schema
    owner: str

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(sum(group.num_rows for group in self.fragment.row_groups))

    def column(self, name: str) -> pa.ChunkedArray:
        """Read a column."""
        with reading(self.fragment.path, "parquet"):
            found = self.fragment.to_table(schema=self.schema, columns=[name])
        return normalized(found, self.owner).column(0)

    def bounds(self, name: str) -> pa.Array | None:
        """The least and the greatest value of numbers and texts."""
        (group,) = self.fragment.row_groups
        known, dtype = (group.statistics or {}).get(name), self.schema.field(name).type
        if known is None:
            return None
        if pa.types.is_signed_integer(dtype) or pa.types.is_floating(dtype):
            return of_numbers(np.array([known["min"], known["max"]]))
        return of_values([known["min"], known["max"]], pa.string()) if pa.types.is_string(dtype) else None
