"""Where the matches of a stream go, each once: functions for `foreachBatch`.

Spark may run a micro-batch again after a crash, with the same number and the same rows. So its rows lie in a partition
that has its number, and replace what is there: what an attempt before has left, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tocsin import errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMN = "batch"  # the number of the micro-batch, in what is written
HINT = 'choose another name: `once(path, column="micro_batch")`.'
LATE = "late"  # the column that `match(…, late=True)` adds


def once(
    path: str, *, format: str = "parquet", late: str | None = None, column: str = COLUMN, **options: str
) -> Callable[[DataFrame, int], None]:
    """Write every micro-batch exactly once below a directory, as the partition `batch=<number>`.

    Any reader of partitioned files reads it, also while the query runs; there is no log beside the files that a reader
    would have to know. One directory belongs to one checkpoint: a new checkpoint numbers micro-batches from 0, and
    would replace what an earlier one has written.

    Parameters
    ----------
    path
        The directory.
    format
        The format of the files, as Spark calls it.
    late
        A second directory for late events: the result of `match(…, late=True)` is split. Without it, late events are
        rows among the matches.
    column
        The name of the partition column.
    options
        Options of Spark's writer.

    Returns
    -------
    function
        For `DataStreamWriter.foreachBatch`.

    Raises
    ------
    InvalidInputError
        From the function: when a column has the name of the partition, or the column of late events is missing.
    """
    from pyspark.sql import functions as F

    def write(frame: DataFrame, batch: int, to: str) -> None:
        numbered = frame.withColumn(column, F.lit(batch))
        # Spark writes beside the partition and puts it into its place when it is complete; no others are touched.
        dynamic = numbered.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        dynamic.partitionBy(column).format(format).options(**options).save(to)

    def write_once(frame: DataFrame, batch: int) -> None:
        check_columns(frame, column)
        if late is None:
            write(frame, batch, path)
            return
        if LATE not in frame.columns:
            raise errors.InvalidInputError(
                "There is no column `late` that holds the late events.", hint="ask for it: `match(…, late=True)`."
            )
        # Two outputs of one micro-batch: without this Spark would search, and step the state, twice.
        frame.persist()
        try:
            write(frame.where(F.col(LATE).isNull()).drop(LATE), batch, path)
            write(frame.where(F.col(LATE).isNotNull()).select(LATE), batch, late)
        finally:
            frame.unpersist()

    return write_once


def check_columns(frame: DataFrame, column: str = COLUMN, *, hint: str = HINT) -> None:
    """Refuse matches with a column that is called like the number of the micro-batch, in Spark's eyes.

    Raises `InvalidInputError` when there is one.
    """
    alike = next((name for name in frame.columns if name.casefold() == column.casefold()), None)
    if alike is not None:
        raise errors.InvalidInputError(
            f"The matches have a column `{alike}`, and `{column}` is what the number of the micro-batch is called.",
            hint=hint,
        )
