"""What matches that were found together emit: computed from their rows, without searching for them again."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Rule, emitting
from tocsin.physical.bags import Bag, event_in
from tocsin.physical.columns import Binding, Compiler
from tocsin.physical.compat import schema_of
from tocsin.physical.programs.run import Run
from tocsin.physical.sql import functions as F
from tocsin.physical.sql.frames import select, where


def emitted_in(run: Run[DataFrame], found: DataFrame, template: str) -> DataFrame:
    """The events of a template that the matches of `Rules.match` emit."""
    schema = schema_of(found)
    frames = [
        run.as_events(emit, _values(rule, emit, found, schema))
        for rule in run.program.rules
        for emit in rule.emits
        if emit.type == template and rule.name in schema.names
    ]
    return run.engine.union(template, frames)


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
