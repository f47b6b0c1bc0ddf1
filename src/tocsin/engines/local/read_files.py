"""Files → tables with the columns and types that `tocsin.cli.files.read` gives on Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa

from tocsin.engines.local.inferred_types import typed
from tocsin.engines.local.paths import DataFile, data_files
from tocsin.engines.worker.arrays import of_values
from tocsin.engines.worker.lazy_tables import LazyTable


def table_at(path: str | os.PathLike[str]) -> pa.Table | LazyTable:
    """The events in a file, in a directory of files, or in all files that a glob matches.

    Raises `InputNotReadableError` for what is not there, has several formats or cannot be read.
    """
    given = os.fspath(path)
    kind, files = data_files(given)
    folders = _folders(files)
    if kind == "parquet":
        from tocsin.engines.local.parquet import lazy_table

        return lazy_table(given, [file.path for file in files], folders)
    from tocsin.engines.local.text_files import text_columns

    columns, sizes = text_columns(given, kind, files)
    for name in folders[0]:
        parts = [pa.repeat(folder[name], size) for folder, size in zip(folders, sizes, strict=True)]
        columns[name] = pa.chunked_array(parts)
    return pa.table(columns)


def _folders(files: Sequence[DataFile]) -> list[dict[str, pa.Scalar]]:
    """For each file, the values of the columns that folders such as `day=1` add."""
    found: list[dict[str, pa.Scalar]] = [{} for _ in files]
    for place, (name, _) in enumerate(files[0].partition):
        texts = pa.chunked_array([of_values([file.partition[place][1] for file in files], pa.string())])
        values = typed(texts)
        if pa.types.is_boolean(values.type):  # a type that Spark gives no partition
            values = texts
        for folder, value in zip(found, values, strict=True):
            folder[name] = value
    return found
