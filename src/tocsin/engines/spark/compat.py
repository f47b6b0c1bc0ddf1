"""DataFrames on every kind of Spark session: the only place that asks what is one.

A classic session and a Spark Connect session have different classes, and platforms bring their own; `isinstance` would
refuse some of them. So a DataFrame is a value with a DataFrame's schema and methods. Reading a schema is a call to the
server on Connect, so callers read it once and keep it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as T

BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
NO_BYTE_LIMIT = str(2**31 - 1)
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
    shown = _Shown(sys.stdout)
    with contextlib.redirect_stdout(shown):
        try:
            frame.explain()
        except Exception:  # a plan that cannot be shown yet is refused by Spark in its own words
            return False
    return "InPandasWithState" in shown.text


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
    if "connect" in type(session).__module__:
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
