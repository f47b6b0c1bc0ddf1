"""Several kernels on Spark: one DataFrame of the events that can take part in any match, one shuffle, one search.

Kernels with nested keys are one *group*: its rows are split by the coarser key, and each kernel splits them further. A
row is sent once to every group that has a use for it, in the same shuffle, so that the inputs are read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.algebra.programs import Rule
from tocsin.engines.spark import match_ids as identity
from tocsin.engines.spark.bags import Bag
from tocsin.engines.spark.columns import Binding, Compiler
from tocsin.engines.spark.compat import make_ready_for_python
from tocsin.engines.spark.inputs import Inputs, Part
from tocsin.engines.spark.scan import Mixed, Scan, event_types, made_type, spark_shapes
from tocsin.engines.spark.search import bindings_of, variable_type
from tocsin.engines.spark.slices import Group, distribute_to
from tocsin.engines.spark.spark_types import Shape
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select
from tocsin.engines.spark.typed_columns import Kind, Value
from tocsin.engines.worker.tasks import HALVES, RULE, Member, Task, placed, search_groups
from tocsin.kernels.nested_loops import Kernel
from tocsin.kernels.reach import width_us
from tocsin.kernels.shared import common
from tocsin.language import expressions as ex
from tocsin.plan import manifest as names
from tocsin.plan.choose_columns import manifest_of
from tocsin.plan.manifest import Manifest, Reader
from tocsin.plan.rule_plan import Key, groups_of


@dataclass(frozen=True)
class Searched:
    """The matches of all members, each in its row."""

    # `__tocsin_rule`, `__tocsin_start` and `__tocsin_end` in microseconds, the two halves of `match_id`, and
    # `__tocsin_v0` … for the variables
    frame: DataFrame
    kinds: tuple[T.DataType, ...]
    # by number of the member, its variables: the number of the column that holds each, and its attributes
    places: Mapping[int, Mapping[str, tuple[int, Shape]]]


def search(
    readers: Mapping[int, Reader[Kernel]],
    inputs: Inputs,
    parts: Sequence[Part],
    *,
    most: int,
    memory: int,
    mixed: Sequence[Mixed] = (),
    kinds: Iterable[T.DataType] = (),
) -> Searched:
    """Find the matches of all searches in events of these parts, and pass on those that were found before.

    `readers` are the searches by the number of their matches in the result; `mixed` are DataFrames with the events of
    several parts, earlier matches among them, and `kinds` the types of their variables.
    """
    given = [reader.search for reader in readers.values()]
    of_group, group_keys = groups_of([kernel.query.partition.attributes for kernel in given])
    sources, kernels = common(given, of_group)
    renumbered = [replace(reader, search=kernel) for reader, kernel in zip(readers.values(), kernels, strict=True)]
    manifest = manifest_of(renumbered, event_types(inputs), made_type, sources=sources)
    scan = Scan(manifest, parts, mixed)
    groups = []
    for number, key in enumerate(group_keys):
        own = [kernel for kernel, group in zip(kernels, of_group, strict=True) if group == number]
        groups.append(_group(manifest, scan, own, key))
    frame = scan.frame()
    make_ready_for_python(frame)
    before = F.col(names.PASSED_ON).getField(names.FIRST_HALF) if scan.passes_on else None
    rows = distribute_to(frame, scan.names, groups, scan.micros, before)
    shapes = [spark_shapes(own) for own in manifest.shapes]
    held = list(kinds)
    places = [
        placed([variable_type(inputs, gathered, own[gathered.name]) for gathered in layout.gathered], held)
        for layout, own in zip(manifest.layouts, shapes, strict=True)
    ]
    members = [
        Member(reader.search, layout, reader.id is not None, number, own)
        for number, reader, layout, own in zip(readers, renumbered, manifest.layouts, places, strict=True)
    ]
    widths = [groups[group].width_us for group in of_group]
    task = Task(search_groups(sources, kernels, members, widths), most, memory)
    schema = T.StructType().add(RULE, T.IntegerType())
    for name in HALVES:
        schema = schema.add(name, T.LongType())
    for place, kind in enumerate(held):
        schema = schema.add(names.variable(place), kind)
    found = {
        number: dict(zip(shape, zip(own, shape.values(), strict=True), strict=True))
        for number, shape, own in zip(readers, shapes, places, strict=True)
    }
    return Searched(rows.mapInArrow(task, schema), tuple(held), found)


def _group(manifest: Manifest, scan: Scan, kernels: Sequence[Kernel], key: Key) -> Group:
    """How rows are split for some kernels."""
    widths = [width_us(kernel) for kernel in kernels]
    assert all(width is not None for width in widths)  # else they are not searched for together
    return Group(
        scan.keys([manifest.keys[name] for name in key if not manifest.packing.has_key]),
        max(width for width in widths if width is not None),
        max(kernel.back_us for kernel in kernels),
        max(kernel.ahead_us for kernel in kernels),
        frozenset(source.bit for kernel in kernels for source in kernel.sources),
        manifest.packing,
    )


# --- the result -----------------------------------------------------------------------------------


def bindings_in(searched: Searched, number: int, rule: Rule) -> dict[str, Binding | Bag]:
    """What expressions over the matches of a rule mean by its variables."""
    held = searched.places[number]
    shapes = {name: shape for name, (_, shape) in held.items()}
    return bindings_of(rule.query, shapes, [place for place, _ in held.values()])


def shown(
    searched: Searched, found: Mapping[int, Rule], wanted: Sequence[Rule], time_kind: Kind, *others: Column
) -> DataFrame:
    """The matches of the rules that were found, by number, with a column for every rule that is wanted."""
    is_of = {rule.name: F.col(RULE) == number for number, rule in found.items()}
    structs = {}
    for number, rule in found.items():
        compiler = Compiler(bindings_in(searched, number, rule))
        variables = (compiler.output(ex.Variable(name)).alias(name) for name in rule.query.variables)
        structs[rule.name] = F.when(is_of[rule.name], F.struct(*variables))
    return select(
        searched.frame,
        F.cases((is_own, F.lit(name)) for name, is_own in is_of.items()).alias("rule"),
        identity.text(F.col(names.FIRST_HALF), F.col(names.SECOND_HALF)).alias("match_id"),
        Value(F.col(names.START), time_kind, in_micros=True).output.alias("start"),
        Value(F.col(names.END), time_kind, in_micros=True).output.alias("end"),
        *(structs.get(rule.name, F.lit(None)).alias(rule.name) for rule in wanted),
        *others,
    )
