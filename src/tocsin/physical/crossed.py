"""Events sent by keys that variables have under different names: one row for each key that an event has.

A transfer is looked for as incoming money by its destination, and as outgoing money by its originator. Each row has the
roles it is there for; where both keys are equal, one row has both, so that no event meets itself as another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from pyspark.sql import types as T

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema
from tocsin.analysis.schema import BoundQuery, rebound
from tocsin.language import expressions as ex
from tocsin.optimizer.query_parts import map_nodes
from tocsin.optimizer.routes import Attributes, crossed_keys
from tocsin.physical.inputs import Inputs, Stream
from tocsin.physical.spark_types import types_in
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.sql.frames import where, with_columns

Names = tuple[str, ...]


def by_crossed_keys(bound: BoundQuery, inputs: Inputs) -> tuple[BoundQuery, Inputs]:
    """The query and its inputs, split by the keys that its conditions imply; as they are where there are none."""
    chosen = crossed_keys(bound.query, bound.schemas)
    if chosen is None or inputs.others:
        return bound, inputs
    roles = {names: number for number, names in enumerate(dict.fromkeys(chosen.values()))}
    query = _split(bound.query, chosen, roles)
    streams = {
        name: _sent(stream, [names for names in roles if names in _used(bound.query, chosen, name)], roles)
        for name, stream in inputs.streams.items()
    }
    schemas = {name: types_in(stream.schema) for name, stream in streams.items()}
    return rebound(bound, query, schemas), replace(inputs, streams=streams)


def named_keys(query: alg.Query, schemas: Mapping[str, Schema], plan: str) -> str:
    """A plan in words, with our keys in those of the query: `a.q = b.p`; roles are left out."""
    chosen = crossed_keys(query, schemas) or {}
    for place in range(len(next(iter(chosen.values()), ()))):
        plan = plan.replace(_key(place), " = ".join(f"{name}.{names[place]}" for name, names in chosen.items()))
    return re.sub(r"(?:  where| AND) \w+\.__tocsin_role\d+(?= AND|$)", "", plan, flags=re.MULTILINE)


def _key(place: int) -> str:
    return f"__tocsin_key{place}"


def _role(number: int) -> str:
    return f"__tocsin_role{number}"


def _used(query: alg.Query, chosen: Attributes, kind: str) -> set[Names]:
    """The keys by which events of a type are looked for."""
    found = {chosen[name] for name, held in query.variables.items() if name in chosen and kind in held.types}
    return found | {chosen[one.variable] for one in alg.around_in(query.pattern) if one.type == kind}


def _split(query: alg.Query, chosen: Attributes, roles: Mapping[Names, int]) -> alg.Query:
    """The query in parts of the stream, each variable with the events of its role."""
    plays = {name: ex.Attribute(name, (_role(roles[names]),)) for name, names in chosen.items()}

    def narrowed(node: alg.Node) -> alg.Node:
        if not isinstance(node, alg.Around):
            return node
        parts = [*ex.conjuncts(node.condition), plays[node.variable]]
        return replace(node, condition=ex.all_of(*parts))

    looks = {one.variable for one in alg.around_in(query.pattern)}
    wanted = [condition for name, condition in plays.items() if name not in looks]
    pattern = map_nodes(query.pattern, narrowed)
    inner = pattern.part if isinstance(pattern, alg.Within) else pattern
    if isinstance(inner, alg.Filter):
        inner = replace(inner, condition=ex.all_of(inner.condition, *wanted))
    else:
        inner = alg.Filter(inner, ex.all_of(*wanted), where=inner.where)
    keys = tuple(_key(place) for place in range(len(next(iter(chosen.values())))))
    return replace(
        query,
        pattern=replace(pattern, part=inner) if isinstance(pattern, alg.Within) else inner,
        partition=alg.Partition(keys=keys),
    )


def _sent(stream: Stream, used: Sequence[Names], roles: Mapping[Names, int]) -> Stream:
    """The events of a type, a row for each key, with its roles."""
    frame = stream.frame
    if stream.type_column is not None:
        frame = where(frame, F.col(stream.type_column) == F.lit(stream.type))
    values = {names: [F.col(name) for name in names] for names in used}
    rows = []
    for place, names in enumerate(used):
        row = F.struct(
            *(value.alias(_key(number)) for number, value in enumerate(values[names])),
            *(
                (_equal(values[names], values[other]) if other in values else F.lit(False)).alias(_role(number))
                for other, number in roles.items()
            ),
        )
        for other in used[:place]:
            row = F.when(~_equal(values[names], values[other]), row)
        rows.append(row)
    fields = [
        *(T.StructField(_key(number), stream.schema[name].dataType) for number, name in enumerate(used[0])),
        *(T.StructField(_role(number), T.BooleanType()) for number in roles.values()),
    ]
    sent = F.inline(F.array_compact(F.array(*rows)))
    schema = T.StructType([*stream.schema.fields, *fields])
    return replace(stream, frame=with_columns(frame, sent), schema=schema, type_column=None)


def _equal(ones: Sequence[Column], others: Sequence[Column]) -> Column:
    """Whether two keys are the same; NULL is a key like any other."""
    return reduce(and_, (one.eqNullSafe(other) for one, other in zip(ones, others, strict=True)), F.lit(True))
