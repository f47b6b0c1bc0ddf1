"""Several kernels on Spark: one DataFrame of the events that can take part in any match, one shuffle, one search.

Kernels with nested keys are one *group*: its rows are split by the coarser key, and each kernel splits them further. A
row is sent once to every group that has a use for it, in the same shuffle, so that the inputs are read once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.algebra.programs import Rule
from tocsin.engines.spark.bags import Bag
from tocsin.engines.spark.columns import Binding, Compiler
from tocsin.engines.spark.compat import make_ready_for_python, search_tasks
from tocsin.engines.spark.inputs import Inputs, Part
from tocsin.engines.spark.scan import Mixed, Scan, event_types, made_type, spark_shapes
from tocsin.engines.spark.search import bindings_of, variable_type
from tocsin.engines.spark.slices import Group, distribute_to
from tocsin.engines.spark.spark_types import Shape
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select
from tocsin.engines.spark.typed_columns import Kind, Value
from tocsin.engines.worker.tasks import OF_MATCH, RULE, Member, Task, placed, search_groups
from tocsin.kernels.nested_loops import Kernel
from tocsin.kernels.reach import width_us
from tocsin.kernels.shared import common
from tocsin.language import expressions as ex
from tocsin.options import Options
from tocsin.plan import manifest as names
from tocsin.plan.choose_columns import manifest_of
from tocsin.plan.manifest import Layout, Manifest, Reader
from tocsin.plan.rule_plan import Key, groups_of


class Places:
    """The columns of a result that several searches share: each variable has one, those of one type share theirs."""

    def __init__(self) -> None:
        self.kinds: list[T.DataType] = []  # the types of the columns
        # by number of the search, its variables: the number of the column that holds each, and its attributes
        self.of: dict[int, Mapping[str, tuple[int, Shape]]] = {}

    def add(self, number: int, inputs: Inputs, layout: Layout, shape: Mapping[str, Shape]) -> tuple[int, ...]:
        """Add the variables of a search; return the numbers of their columns."""
        kinds = [variable_type(inputs, gathered, shape[gathered.name]) for gathered in layout.gathered]
        own = placed(kinds, self.kinds)
        self.of[number] = dict(zip(shape, zip(own, shape.values(), strict=True), strict=True))
        return own

    @property
    def schema(self) -> T.StructType:
        """The columns of matches: the search, their interval in microseconds, their id, the variables."""
        schema = T.StructType().add(RULE, T.IntegerType())
        for name in OF_MATCH:
            schema = schema.add(name, T.StringType() if name == names.MATCH_ID else T.LongType())
        for place, kind in enumerate(self.kinds):
            schema = schema.add(names.variable(place), kind)
        return schema

    def bindings(self, number: int, rule: Rule) -> dict[str, Binding | Bag]:
        """The bindings of a rule's variables, for expressions over its matches."""
        held = self.of[number]
        shapes = {name: shape for name, (_, shape) in held.items()}
        return bindings_of(rule.query, shapes, [place for place, _ in held.values()])


def search(
    readers: Mapping[int, Reader[Kernel]],
    inputs: Inputs,
    parts: Sequence[Part],
    mixed: Sequence[Mixed],
    places: Places,
    options: Options,
) -> DataFrame:
    """Find the matches of all searches in events of these parts, and pass on those that were found before.

    `readers` are the searches by the number of their matches in the result, whose columns `places` has; `mixed` are
    DataFrames with the events of several parts, earlier matches among them.
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
    before = F.xxhash64(F.col(names.PASSED_ON).getField(names.MATCH_ID)) if scan.passes_on else None
    tasks = search_tasks(stream.frame for stream in inputs.streams.values())
    rows = distribute_to(frame, scan.names, groups, scan.micros, tasks, before)
    members = [
        Member(one.search, layout, one.id is not None, number, places.add(number, inputs, layout, spark_shapes(shape)))
        for number, one, layout, shape in zip(readers, renumbered, manifest.layouts, manifest.shapes, strict=True)
    ]
    widths = [groups[group].width_us for group in of_group]
    searched = search_groups(sources, kernels, members, widths)
    return rows.mapInArrow(Task(searched, options.max_matches_per_start, options.task_bytes), places.schema)


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


def shown(
    frame: DataFrame,
    places: Places,
    found: Mapping[int, Rule],
    wanted: Sequence[Rule],
    time_kind: Kind,
    *others: Column,
) -> DataFrame:
    """The matches of the rules that were found, by number, with a column for every rule that is wanted."""
    is_of = {rule.name: F.col(RULE) == number for number, rule in found.items()}
    structs = {}
    for number, rule in found.items():
        compiler = Compiler(places.bindings(number, rule))
        variables = (compiler.output(ex.Variable(name)).alias(name) for name in rule.query.variables)
        structs[rule.name] = F.when(is_of[rule.name], F.struct(*variables))
    return select(
        frame,
        F.cases((is_own, F.lit(name)) for name, is_own in is_of.items()).alias("rule"),
        F.col(names.MATCH_ID).alias("match_id"),
        Value(F.col(names.START), time_kind, in_micros=True).output.alias("start"),
        Value(F.col(names.END), time_kind, in_micros=True).output.alias("end"),
        *(structs.get(rule.name, F.lit(None)).alias(rule.name) for rule in wanted),
        *others,
    )
