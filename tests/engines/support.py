"""Small helpers of the Spark tests: plain rows in, plain rows out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

import tocsin


def frames(spark: SparkSession, rows: Mapping[str, Sequence[tuple[Any, ...]]], schema: str) -> dict[str, DataFrame]:
    """One DataFrame of the same schema per event type."""
    return {name: spark.createDataFrame(list(events), schema) for name, events in rows.items()}


def found(text: str, inputs: Any, **options: Any) -> list[dict[str, Any]]:
    """The matches of a pattern as dictionaries, sorted by the text of all but their `match_id`."""
    rows = [plain(row) for row in tocsin.pattern(text).match(inputs, **options).collect()]
    return sorted(rows, key=lambda row: repr(list(row.values())[1:]))


def plain(value: Any) -> Any:
    """Rows as dictionaries, all the way down."""
    if isinstance(value, Row):
        return {name: plain(one) for name, one in value.asDict().items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def bound(text: str, inputs: Any, attribute: str = "ts", **options: Any) -> list[dict[str, Any]]:
    """Per match, one attribute of every variable."""
    rows = found(text, inputs, **options)
    return [
        {name: event and event[attribute] for name, event in row.items() if name not in ("match_id", "start", "end")}
        for row in rows
    ]


def physical_plan(frame: DataFrame, capsys: Any) -> str:
    """Spark's own text of the plan."""
    capsys.readouterr()
    frame.explain("formatted")
    return str(capsys.readouterr().out)


@contextmanager
def light_settings(spark: SparkSession, partitions: int = 1) -> Iterator[SparkSession]:
    """The session without what costs a five-event query most of its time: adaptive plans and compiled stages."""
    settings = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield spark
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))
