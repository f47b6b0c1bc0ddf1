"""Columns of generated events: as arrays, as plain rows, as an Arrow table, and in Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

Integers: TypeAlias = NDArray[np.int64]
TIME = "ts"


class Columns(dict[str, Integers]):
    """Arrays of equal length, by name; `ts` is in microseconds since 1970, UTC.

    >>> Columns(ts=np.array([5]), id=np.array([7])).rows()
    [{'ts': 5, 'id': 7}]
    """

    def rows(self) -> list[dict[str, int]]:
        """The events as plain rows."""
        lists = {name: values.tolist() for name, values in self.items()}
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]

    def table(self) -> pa.Table:
        """The events as an Arrow table; the time is a timestamp in UTC."""
        import pyarrow as pa

        def array(name: str) -> Any:
            return pa.array(self[name]).cast(pa.timestamp("us", "UTC")) if name == TIME else pa.array(self[name])

        return pa.table({name: array(name) for name in self})

    def write(self, folder: Path, *, files: int = 1) -> None:
        """Write the events as Parquet, in the order they have, in so many files of about equal size."""
        import pyarrow.parquet as pq

        folder.mkdir(parents=True, exist_ok=True)
        table = self.table()
        size = -(-max(table.num_rows, 1) // files)
        for number in range(files):
            pq.write_table(table.slice(number * size, size), folder / f"part-{number:03}.parquet")


def write_all(folder: Path, columns: Mapping[str, Columns], *, files: int = 1) -> None:
    """Write several kinds of events, each into a folder of its name."""
    for name, each in columns.items():
        each.write(folder / name, files=files)
