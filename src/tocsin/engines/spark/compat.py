"""DataFrames on every kind of Spark session: the only place that asks what is one.

A classic session and a Spark Connect session have different classes, and platforms bring their own; `isinstance` would
refuse some of them. So a DataFrame is a value with a DataFrame's schema and methods. Reading a schema is a call to the
server on Connect, so callers read it once and keep it.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as T

BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
NO_BYTE_LIMIT = str(2**31 - 1)
PARTITIONS = "spark.sql.shuffle.partitions"
TASKS_PER_CORE = 4  # so that no core waits long for the last task
TASK_BYTES = 32 << 20  # of the inputs, where more tasks than that read them
SIZE = re.compile(r"Statistics\(sizeInBytes=(?P<number>[\d.E+]+) (?P<unit>\w+)")
SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
UNKNOWN_BYTES = 2**60  # what is this large is a guess
_sizes: WeakKeyDictionary[DataFrame, int | None] = WeakKeyDictionary()  # a plan is printed once for each DataFrame
MARKS = ("schema", "select", "toDF", "unionByName", "isStreaming")


def is_dataframe(value: Any) -> TypeGuard[DataFrame]:
    """Whether a value is a Spark DataFrame of any session, without touching the session."""
    # Of the class, not of the value: asking a DataFrame for an attribute may ask the server.
    return all(hasattr(type(value), mark) for mark in MARKS)


def is_streaming(frame: DataFrame) -> bool:
    """Whether a DataFrame is a stream."""
    return bool(frame.isStreaming)


def has_streams(inputs: Any) -> bool:
    """Whether any input is a streaming DataFrame."""
    given = inputs.values() if isinstance(inputs, Mapping) else (inputs,)
    # Each DataFrame once, since the question may be a call to the server.
    frames = {id(frame): frame for frame in given if is_dataframe(frame)}
    return any(map(is_streaming, frames.values()))


def has_python_state(frame: DataFrame) -> bool:
    """Whether the plan of a streaming DataFrame has an operator with a state in Python: Spark runs one in a query.

    Only the printed plan shows it, for library code leaves the JVM alone and Spark Connect has none.
    """
    return "InPandasWithState" in _explained(frame, "simple")


def _explained(frame: DataFrame, mode: str) -> str:
    """The text of a plan; nothing where it cannot be shown yet, which Spark refuses in its own words."""
    shown = _Shown(sys.stdout)
    with contextlib.redirect_stdout(shown):
        try:
            frame.explain(mode=mode)
        except Exception:
            return ""
    return shown.text


class _Shown:
    """The text that this thread prints; that of others passes."""

    def __init__(self, stdout: Any) -> None:
        self.stdout, self.own, self.text = stdout, threading.get_ident(), ""

    def write(self, text: str) -> int:
        if threading.get_ident() != self.own:
            return int(self.stdout.write(text))
        self.text += text
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stdout, name)


def schema_of(frame: DataFrame) -> T.StructType:
    """The schema, by one call to the session."""
    return frame.schema


def ignores_case(frame: DataFrame) -> bool:
    """Whether the session of a DataFrame takes `x` and `X` for one name, by one call to it."""
    return str(frame.sparkSession.conf.get("spark.sql.caseSensitive")).lower() != "true"


def is_schema(value: Any) -> TypeGuard[T.StructType]:
    """Whether a value is a Spark schema."""
    return hasattr(type(value), "fieldNames") and hasattr(type(value), "simpleString")


# --- the number of tasks --------------------------------------------------------------------------


def search_tasks(frames: Iterable[DataFrame]) -> int | None:
    """How many tasks search the events of DataFrames; None: as many as adaptive execution makes of what is shuffled.

    Few events may have many matches, so that a search must not be left to fewer tasks than there are cores, as
    adaptive execution does with little data. Asked for a number of partitions, Spark keeps to it: the session's
    partitions, or where these are many, no more than the cores and the size of the inputs ask for.
    """
    given = {id(frame): frame for frame in frames}
    session = next(iter(given.values())).sparkSession
    most, cores = _number(session.conf.get(PARTITIONS)), _cores(session)
    if most is None or cores is None:
        return None
    if most <= TASKS_PER_CORE * cores:
        return most
    sizes = [_size_of(frame) for frame in given.values()]
    if any(size is None for size in sizes):
        return None
    return min(most, max(TASKS_PER_CORE * cores, sum(size or 0 for size in sizes) // TASK_BYTES))


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _cores(session: SparkSession) -> int | None:
    """How many tasks run at a time; None where only the server knows."""
    return None if _is_connect(session) else int(session.sparkContext.defaultParallelism)


def _size_of(frame: DataFrame) -> int | None:
    """How many bytes Spark expects of a DataFrame, by its printed plan; None where it does not know."""
    if frame not in _sizes:
        found = SIZE.search(_explained(frame, "cost"))
        size = None if found is None else float(found["number"]) * 1024.0 ** SIZE_UNITS.index(found["unit"])
        _sizes[frame] = int(size) if size is not None and size < UNKNOWN_BYTES else None
    return _sizes[frame]


def _is_connect(session: SparkSession) -> bool:
    return "connect" in type(session).__module__


# --- Python workers -------------------------------------------------------------------------------


def make_ready_for_python(frame: DataFrame) -> None:
    """Set the session of a DataFrame up for Python workers, where the user has not said how."""
    session = frame.sparkSession
    _use_own_python(session)
    _fill_batches_by_rows_alone(session)


def _use_own_python(session: SparkSession) -> None:
    """Make Python workers beside the driver run the driver's Python, unless the user has named another.

    Spark starts whatever `python3` is on the path, which is seldom the one of the virtual environment that a script was
    started with. On a local master that one is right; on a cluster only the user knows what the executors have.
    """
    if _is_connect(session):
        return
    context = session.sparkContext
    is_local = str(context.master).split("[")[0] == "local"
    if is_local and "PYSPARK_PYTHON" not in os.environ and context.getConf().get("spark.pyspark.python") is None:
        context.pythonExec = sys.executable


def _fill_batches_by_rows_alone(session: SparkSession) -> None:
    """Let the number of rows alone end a batch that goes to Python, unless the user has set how many bytes may.

    To end it by bytes, Spark measures all columns of the batch again after every row, which takes longer than to scan,
    filter and convert the rows together (6M rows of six columns: 3.5 s with it, 1.3 s without). The largest limit
    turns that off, as it was up to Spark 4.0. A session that limits no rows needs its bytes limited.
    """
    is_set = session.conf.get(BATCH_BYTES, None) is not None
    if not is_set and int(session.conf.get(BATCH_ROWS) or 0) > 0 and session.conf.isModifiable(BATCH_BYTES):
        session.conf.set(BATCH_BYTES, NO_BYTE_LIMIT)
