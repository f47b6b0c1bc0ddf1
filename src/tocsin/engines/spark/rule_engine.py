"""Programs of rules on Spark DataFrames: what rules emit is one lazy DataFrame for each template. Nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Rule, Template, emitting
from tocsin.analysis.schema import Schemas
from tocsin.analysis.types import DataType
from tocsin.engines.rule_run import Run, lacks
from tocsin.engines.spark.bags import Bag, event_in
from tocsin.engines.spark.columns import Binding, Compiler
from tocsin.engines.spark.compat import is_dataframe, schema_of
from tocsin.engines.spark.computed import computed
from tocsin.engines.spark.engine import Prepared, resolved
from tocsin.engines.spark.inputs import Stream, require_type_column, stream_of
from tocsin.engines.spark.spark_types import in_type, to_spark, types_in
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select, union, where
from tocsin.engines.spark.strata import Strata
from tocsin.engines.spark.typed_columns import null
from tocsin.plan.plan import Plan
from tocsin.plan.prepare import split


class Spark:
    """Spark as an engine of programs; `types` are the event types that rules read."""

    def __init__(self, inputs: Any, types: Sequence[str], type_column: str) -> None:
        self.inputs, self.types, self.type_column = inputs, types, type_column
        if is_dataframe(inputs):
            require_type_column(type_column, schema_of(inputs))
        elif not isinstance(inputs, Mapping):
            raise errors.InvalidInputError(
                f"`inputs` is a {type(inputs).__name__}, neither a DataFrame nor a mapping from event types to them.",
                hint="pass `{'Login': logins, 'Transfer': transfers}`, or one DataFrame with a type column.",
            )
        else:
            wrong = [name for name, frame in inputs.items() if not is_dataframe(frame)]
            if wrong:
                raise errors.InvalidInputError(
                    f"The input of `{wrong[0]}` is a {type(inputs[wrong[0]]).__name__}, not a Spark DataFrame.",
                    hint='make one with `spark.createDataFrame(...)`, or choose `engine="local"`.',
                )

    @property
    def whole(self) -> DataFrame | None:
        """The one DataFrame with a type column."""
        return self.inputs if is_dataframe(self.inputs) else None

    @cached_property
    def schemas(self) -> Schemas:
        """The attributes of the user's inputs, by event type."""
        if self.whole is not None:
            return dict.fromkeys(self.types, types_in(schema_of(self.whole)))
        return {name: types_in(schema_of(frame)) for name, frame in self.given.items()}

    @cached_property
    def given(self) -> Mapping[str, DataFrame]:
        """The user's DataFrames by event type."""
        if self.whole is None:
            found: Mapping[str, DataFrame] = self.inputs
            return found
        return {name: where(self.whole, F.col(self.type_column) == F.lit(name)) for name in self.types}

    def match(self, plan: Plan, inputs: DataFrame | Mapping[str, DataFrame]) -> DataFrame:
        """The matches of a rule."""
        return Prepared(plan, resolved(plan.rule.written, inputs, plan.options)).matches()

    def returned(self, query: alg.Query, matched: Callable[[alg.Query], DataFrame]) -> DataFrame:
        """The matches of a query; what only Python computes of their values is computed after the search."""
        made = split(query)
        found = matched(made.query)
        return found if made.is_native else computed(found, made)

    def chosen(self, frame: DataFrame, columns: Mapping[str, str], types: Mapping[str, DataType]) -> DataFrame:
        """These columns under new names, in these types."""
        values = (in_type(F.col(name), types[new]).alias(new) for name, new in columns.items())
        return select(frame, *values)

    def given_events(self, template: Template, columns: Sequence[str]) -> DataFrame | None:
        """The user's events of a template that rules emit too; what a shared DataFrame has no column for is NULL."""
        frame = self.given.get(template.name)
        if frame is None:
            return None
        names = schema_of(frame).names
        missing = [name for name in columns if name not in names]
        if missing and (self.whole is None or columns[0] in missing):
            raise lacks(template, missing[0], names)
        return select(frame, *((null() if name in missing else F.col(name)).alias(name) for name in columns))

    def derived(self, run: Run[DataFrame], template: str) -> Stream:
        """The events of a template that rules emit: their schema; where they come from, the plan says."""
        schema = T.StructType(
            [T.StructField(name, to_spark(found)) for name, found in run.plan.types_of(template).items()]
        )
        some = self.whole if self.whole is not None else next(iter(self.given.values()))
        return stream_of(template, some, schema, None, run.plan.times[template])

    def together(self, run: Run[DataFrame], wanted: Sequence[Rule]) -> DataFrame:
        """The matches of several rules in one plan."""
        return Strata(self, run, wanted).frame()

    def union(self, frames: Sequence[DataFrame]) -> DataFrame:
        """All rows."""
        return union(frames)


def emitted_in(run: Run[DataFrame], found: DataFrame, template: str) -> DataFrame:
    """The events of a template that the matches of `Rules.match` emit."""
    schema = schema_of(found)
    frames = [
        run.as_events(emit, _values(rule, emit, found, schema))
        for rule in run.program.rules
        for emit in rule.emits
        if emit.type == template and rule.name in schema.names
    ]
    return union(frames)


def _values(rule: Rule, emit: alg.Emit, found: DataFrame, schema: T.StructType) -> DataFrame:
    held = schema[rule.name].dataType
    assert isinstance(held, T.StructType)
    bindings: dict[str, Binding | Bag] = {}
    for field in held.fields:
        event = field.dataType.elementType if isinstance(field.dataType, T.ArrayType) else field.dataType
        assert isinstance(event, T.StructType)
        fields = {one.name: (one.name, one.dataType) for one in event.fields}
        column = F.col(rule.name).getField(field.name)
        bindings[field.name] = (
            Bag(column, fields) if isinstance(field.dataType, T.ArrayType) else event_in(column, fields)
        )
    compiler = Compiler(bindings)
    own = where(found, F.col("rule") == F.lit(rule.name))
    returns = emitting(rule, emit).returns
    return select(own, *(compiler.output(each.expression).alias(each.name) for each in returns))
