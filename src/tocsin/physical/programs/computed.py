"""Values of emitted events that only Python computes: their native parts are columns, and workers compute the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.algebra import nodes as alg
from tocsin.analysis.inference import Environment
from tocsin.analysis.inference import type_of as inferred
from tocsin.kernels.expressions import interpret
from tocsin.kernels.expressions.of_rules import only_in_python
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.sase.printer import print_expression
from tocsin.physical.compat import make_ready_for_python, schema_of
from tocsin.physical.schemas import type_of
from tocsin.physical.shapes import SparkTypes, arrow_type
from tocsin.physical.sliced.gather import as_array

ROW = "__tocsin_row"
HINT = 'say what your function gives: `tocsin.function(…, gives="double", pure=True)`.'


@dataclass(frozen=True)
class Split:
    """A query whose values are all native, and those of the original: expressions over its columns, or its own."""

    query: alg.Query
    values: tuple[tuple[str, ex.Expression | None], ...]
    texts: tuple[str, ...]

    @property
    def is_native(self) -> bool:
        """Whether there is nothing left for Python."""
        return all(value is None for _, value in self.values)


def split(query: alg.Query) -> Split:
    """Take the values of a query apart: the largest parts that Spark computes become columns.

    Examples
    --------
    >>> from tocsin.language.registered import function
    >>> x = ex.Arithmetic("+", ex.Attribute("a", ("x",)), ex.Literal(1))
    >>> called = rx.Apply("f", function(abs, gives="bigint", pure=True), (x, ex.Literal(2)))
    >>> made = split(alg.Query(alg.Event("A", "a"), returns=(alg.Returned("y", called),)))
    >>> [returned.expression == x for returned in made.query.returns], made.is_native
    ([True], False)
    """
    returns: list[alg.Returned] = []
    values: list[tuple[str, ex.Expression | None]] = []

    def part(node: ex.Expression) -> ex.Expression:
        if any(map(_is_pythons, node.walk())):
            return node.map_children(part)
        if not ex.variables_in(node):
            return node
        name = f"__tocsin_p{len(returns)}"
        returns.append(alg.Returned(name, node))
        return ex.Attribute(ROW, (name,))

    for returned in query.returns:
        if any(map(_is_pythons, returned.expression.walk())):
            values.append((returned.name, part(returned.expression)))
        else:
            returns.append(returned)
            values.append((returned.name, None))
    texts = tuple(print_expression(returned.expression) for returned in query.returns)
    return Split(replace(query, returns=tuple(returns)), tuple(values), texts)


def _is_pythons(node: ex.Expression) -> bool:
    return only_in_python(node) and not isinstance(node, rx.ListOf)


def computed(frame: DataFrame, made: Split) -> DataFrame:
    """The values of the original query, from the DataFrame of the native ones. Nothing runs."""
    schema = schema_of(frame)
    environment = Environment(lambda reference: type_of(schema[reference.path[0]].dataType))
    dtypes: list[T.DataType] = []
    for name, value in made.values:
        if value is None:
            dtypes.append(schema[name].dataType)
        else:
            gives = value.function.gives if isinstance(value, rx.Apply) else None
            dtypes.append(SparkTypes({}).fixed(inferred(value, environment), gives))
    make_ready_for_python(frame)
    fields = [T.StructField(name, dtype) for (name, _), dtype in zip(made.values, dtypes, strict=True)]
    values = Values(made.values, tuple(map(arrow_type, dtypes)), made.texts)
    return frame.mapInArrow(values, T.StructType(fields))


@dataclass(frozen=True)
class Values:
    """What a worker does: the columns it is given, and those it computes, of these types; `texts` are for messages."""

    values: tuple[tuple[str, ex.Expression | None], ...]
    types: tuple[pa.DataType, ...]
    texts: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One batch for each."""
        calls = [None if value is None else interpret.value(value) for _, value in self.values]
        for batch in batches:
            rows = [{ROW: (row,)} for row in batch.to_pylist()]
            columns = [
                batch.column(name) if call is None else as_array([call(row) for row in rows], dtype, text, HINT)
                for (name, _), call, dtype, text in zip(self.values, calls, self.types, self.texts, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=[name for name, _ in self.values])
