"""Values that only Python computes: user-defined functions and aggregates in RETURN, HAVING and emitted events.

Input    a query, and the DataFrame of its matches with native values only
Output   the DataFrame with all values, and without the rows that HAVING refuses

The largest parts that Spark computes become columns (`tocsin.plan.prepare.split`); workers compute the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.analysis.inference import Environment
from tocsin.analysis.inference import type_of as inferred
from tocsin.analysis.types import DataType, Kind
from tocsin.engines.spark.compat import make_ready_for_python, schema_of
from tocsin.engines.spark.spark_types import arrow_type, not_made, to_spark, type_of
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select, where
from tocsin.engines.worker.gather import OF_MONOIDS, as_array
from tocsin.expressions import interpret
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.sase.printer import print_expression
from tocsin.plan.prepare import ROW, VALUE, Split

KEPT = "__tocsin_kept"
OF_FUNCTIONS = 'declare the type of the function\'s result: `tocsin.function(…, gives="double", pure=True)`.'


def computed(
    frame: DataFrame, made: Split, *, before: Sequence[str] = (), after: Sequence[str] = (), always: Sequence[str] = ()
) -> DataFrame:
    """The values of the original query, from the DataFrame of the native ones. Nothing runs.

    `before` and `after` are columns that stay as they are, on both sides of the values. HAVING keeps rows where one of
    `always` is not NULL: other outputs of a stream.
    """
    schema = schema_of(frame)

    def typed(reference: ex.Attribute) -> DataType:
        if reference.variable == ROW:
            return type_of(schema[reference.path[0]].dataType)
        bag = schema[reference.variable].dataType
        assert isinstance(bag, T.ArrayType)
        return type_of(bag.elementType)

    def type_in_result(name: str, value: ex.Expression | None) -> T.DataType:
        if value is None:
            return schema[name].dataType
        found = inferred(value, Environment(typed))
        if found.kind is Kind.OTHER:  # a map comes to Python as a list of pairs
            raise not_made(found.exact)
        return to_spark(found)

    values: list[tuple[str, ex.Expression | None, str]] = [
        *((name, None, name) for name in before),
        *((name, value, text) for (name, value), text in zip(made.values, made.texts, strict=True)),
        *((name, None, name) for name in after),
    ]
    if made.having is not None:
        values.append((KEPT, made.having, print_expression(made.having)))
    make_ready_for_python(frame)
    fields = [T.StructField(name, type_in_result(name, value)) for name, value, _ in values]
    work = Values(tuple(values), tuple(arrow_type(field.dataType) for field in fields), made.collected)
    found = frame.mapInArrow(work, T.StructType(fields))
    if made.having is None:
        return found
    kept = reduce(or_, (F.col(name).isNotNull() for name in always), F.col(KEPT))
    return select(where(found, kept), *(F.col(name) for name, _, _ in values[:-1]))


@dataclass(frozen=True)
class Values:
    """A worker's task: columns that pass, and those that it computes, of these types; texts are for messages."""

    values: tuple[tuple[str, ex.Expression | None, str], ...]
    types: tuple[pa.DataType, ...]
    collected: tuple[str, ...] = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One batch for each."""
        calls = [None if value is None else interpret.value(value) for _, value, _ in self.values]
        for batch in batches:
            rows = list(map(self._bags, batch.to_pylist()))
            columns = []
            for (name, value, text), call, dtype in zip(self.values, calls, self.types, strict=True):
                if call is None:
                    columns.append(batch.column(name))
                else:
                    hint = OF_FUNCTIONS if isinstance(value, rx.Apply) else OF_MONOIDS
                    columns.append(as_array([call(row) for row in rows], dtype, text, hint))
            yield pa.RecordBatch.from_arrays(columns, names=[name for name, _, _ in self.values])

    def _bags(self, row: dict[str, Any]) -> dict[str, Sequence[dict[str, Any]]]:
        members = {name: [{VALUE: value} for value in row[name] or ()] for name in self.collected}
        return {ROW: (row,), **members}
