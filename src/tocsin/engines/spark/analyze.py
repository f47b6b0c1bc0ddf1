"""Statistics of the inputs of a query, by one Spark job over them: the one place of the library that runs a job.

Each partition of the input gives one row: how many events of each type and from when to when, how many satisfy each
variable's own conditions, sketches of the keys, a sample of them, and its time range. These rows are then added up to
one, which comes to the driver. Nothing is kept or cached.

================  ======================================================================
`__tocsin_us_3`   time of the row in microseconds when it is an event of the fourth type, else NULL
`__tocsin_is_2`   1 when the row may be bound to the third variable, else 0
`__tocsin_key_0`  hash of the row's key; from 1 on, of the attributes that conditions equate
================  ======================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import reduce
from itertools import pairwise
from operator import and_, or_
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.keys import keys
from tocsin.engines.spark.columns import Binding, Compiler
from tocsin.engines.spark.inputs import Inputs, Part, Stream, part_of
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import aggregate, select, union
from tocsin.engines.spark.typed_columns import Kind, null, value_of
from tocsin.language import expressions as ex
from tocsin.optimizer.estimate import equated
from tocsin.optimizer.query_parts import is_plain, own_conditions
from tocsin.optimizer.statistics import KeyStatistics, Layout, Statistics, TypeStatistics

SAMPLE = 0.05
MOST_SAMPLED = 10_000  # keys of one partition
FEWEST_SAMPLED = 100  # below, the heaviest key of the sample says nothing
SEED = 42
INPUT, PART = "__tocsin_input", "__tocsin_part"
PART_FIELDS = {INPUT: "input", "first": "first", "last": "last"}
TIME, HIT, HASH, SAMPLED = "__tocsin_us_", "__tocsin_is_", "__tocsin_key_", "__tocsin_sampled"
Path = tuple[str, ...]


def analyze(query: alg.Query, inputs: Inputs, *, sample: float = SAMPLE) -> Statistics:
    """Measure the inputs of a query. This runs one Spark job that reads them once.

    `sample` is the share of the rows by which the heaviest key is found. Raises `InvalidOptionError` when it is no
    share, `InvalidInputError` when an input is a stream.
    """
    if not isinstance(sample, int | float) or not 0 <= sample <= 1:
        raise errors.InvalidOptionError(
            f"`sample` is {errors.shown(sample)}.", hint="give a share of the rows, from 0 to 1."
        )
    if inputs.is_streaming:
        raise errors.InvalidInputError(
            "`analyze` measures tables, and the input is a stream, which has no end.",
            hint="measure a table of past events, or declare rates.",
        )
    survey = _Survey(query, inputs, sample)
    return survey.statistics(survey.frame().collect()[0].asDict())


class _Survey:
    """The measurements of the inputs, as one row, and their meaning."""

    def __init__(self, query: alg.Query, inputs: Inputs, sample: float) -> None:
        self.query = query
        self.sample = sample
        self.streams = inputs.streams
        self.types = list(self.streams)
        positive = {name: kind.types for name, kind in query.variables.items()}
        negated = {name: (kind,) for name, kind in alg.negated_variables(query.pattern).items()}
        self.variables: dict[str, tuple[str | None, ...]] = positive | negated
        # By event type, the attributes that are hashed: the key, and whatever conditions equate.
        self.key = self._key_paths()
        self.values = self._value_paths()
        self.hashed = [self.key, *self.values.values()]

    def _key_paths(self) -> dict[str, tuple[Path, ...]]:
        attributes = self.query.partition.attributes
        if attributes:
            return {kind: tuple((name,) for name in attributes) for kind in self.types}
        if not is_plain(self.query):
            return {}
        covering = [each for each in keys(self.query).classes if each.covers_all]
        return {
            kind: (path,)
            for each in covering[:1]
            for variable, path in each.members
            for kind in self.variables[variable]
            if kind is not None
        }

    def _value_paths(self) -> dict[str, dict[str, tuple[Path, ...]]]:
        found: dict[str, dict[str, tuple[Path, ...]]] = {}
        for variable, path in (each for conjunct in self.query.conjuncts for each in equated(conjunct) or ()):
            for kind in filter(None, self.variables.get(variable, ())):
                found.setdefault(".".join(path), {})[kind] = (path,)
        return found

    def frame(self) -> DataFrame:
        """One row with all measurements."""
        frames: dict[int, list[Stream]] = {}
        for stream in self.streams.values():
            frames.setdefault(id(stream.frame), []).append(stream)
        rows = union([self._marked(number, streams) for number, streams in enumerate(frames.values())], by_name=True)
        times = [F.col(f"{TIME}{place}") for place in range(len(self.types))]
        # By name: how it is measured in each partition, and how these measurements are put together.
        measures = {"rows": (F.count(F.lit(1)), F.sum)}
        for place, time in enumerate(times):
            measures[f"count{place}"] = (F.count(time), F.sum)
            measures[f"first{place}"] = (F.min(time), F.min)
            measures[f"last{place}"] = (F.max(time), F.max)
        for place in range(len(self.variables)):
            measures[f"hits{place}"] = (F.sum(F.col(f"{HIT}{place}")), F.sum)
        for place in range(len(self.hashed)):
            measures[f"distinct{place}"] = (F.hll_sketch_agg(F.col(f"{HASH}{place}")), _estimated)
        measures["sampled"] = (F.slice(F.collect_list(F.col(SAMPLED)), 1, MOST_SAMPLED), _flattened)
        parts = aggregate(
            rows,
            [F.col(INPUT), F.col(PART)],
            F.min(F.least(*times)).alias("first"),
            F.max(F.greatest(*times)).alias("last"),
            *(measure.alias(name) for name, (measure, _) in measures.items()),
        )
        ranges = F.struct(*(F.col(name).alias(alias) for name, alias in PART_FIELDS.items()))
        return aggregate(
            parts,
            [],
            *(put_together(F.col(name)).alias(name) for name, (_, put_together) in measures.items()),
            F.collect_list(ranges).alias("parts"),
        )

    def _marked(self, number: int, streams: list[Stream]) -> DataFrame:
        """The rows of one DataFrame, reduced to what is measured."""
        here = {stream.type: _Events(part_of(stream)) for stream in streams}
        nothing = null(T.LongType())
        times = [here[kind].micros if kind in here else nothing for kind in self.types]
        hits = [self._hits(variable, types, here) for variable, types in self.variables.items()]
        hashes = [
            # The value of whichever type a row has.
            F.coalesce(*(here[kind].hash(paths) for kind, paths in wanted.items() if kind in here), nothing)
            for wanted in self.hashed
        ]
        return select(
            here[streams[0].type].part.renamed,
            F.lit(number).alias(INPUT),
            # A task may read several files, not in order of time; a plan that searches them where they lie minds runs
            # of time, not tasks.
            F.concat_ws(":", F.spark_partition_id(), F.input_file_name()).alias(PART),
            *(time.alias(f"{TIME}{place}") for place, time in enumerate(times)),
            *(hit.cast("bigint").alias(f"{HIT}{place}") for place, hit in enumerate(hits)),
            *(one.alias(f"{HASH}{place}") for place, one in enumerate(hashes)),
            F.when(F.rand(SEED) < self.sample, hashes[0]).alias(SAMPLED),
        )

    def _hits(self, variable: str, types: Iterable[str | None], here: Mapping[str, _Events]) -> Column:
        """Whether a row may be bound to a variable."""
        conditions = own_conditions(self.query).get(variable, ())
        tests = [here[kind].satisfies(variable, conditions) for kind in types if kind is not None and kind in here]
        return F.coalesce(reduce(or_, tests), F.lit(False)) if tests else F.lit(False)

    def statistics(self, found: Mapping[str, Any]) -> Statistics:
        """The row of measurements as statistics."""
        types = {
            name: TypeStatistics(found[f"count{place}"] or 0, found[f"first{place}"], found[f"last{place}"])
            for place, name in enumerate(self.types)
        }
        firsts = [one.first_us for one in types.values() if one.first_us is not None]
        lasts = [one.last_us for one in types.values() if one.last_us is not None]
        selectivity = {}
        for place, (variable, kinds) in enumerate(self.variables.items()):
            there = sum(types[kind].count for kind in kinds if kind in types)
            selectivity[variable] = (found[f"hits{place}"] or 0) / there if there else 1.0
        return Statistics(
            rows=found["rows"] or 0,
            duration_us=max(lasts) - min(firsts) + 1 if firsts else 1,
            types=types,
            selectivity=selectivity,
            keys=self._key_statistics(found) if self.key else None,
            layout=_layout([part.asDict() for part in found["parts"]]),
            distinct={name: found[f"distinct{place}"] or 0 for place, name in enumerate(self.values, start=1)},
            source="measured",
        )

    def _key_statistics(self, found: Mapping[str, Any]) -> KeyStatistics:
        sampled = found["sampled"] or []
        is_enough = len(sampled) >= FEWEST_SAMPLED
        heaviest = Counter(sampled).most_common(1)[0][1] / len(sampled) if is_enough else None
        return KeyStatistics(max(found["distinct0"] or 0, 1), heaviest)


class _Events:
    """The events of one type among the rows of a renamed DataFrame."""

    def __init__(self, part: Part) -> None:
        self.part = part
        is_own = part.is_of(part.types)
        self.micros = part.micros if is_own is None else F.when(is_own, part.micros)

    def satisfies(self, variable: str, conditions: Iterable[ex.Expression]) -> Column:
        """Whether a row is of the type, has a time, and makes the conditions TRUE."""
        known = dict(self.part.columns)
        for conjunct in conditions:
            for reference in ex.references_in(conjunct):
                # A variable of several types may have conditions on an attribute that this one lacks: it is NULL.
                known.setdefault(reference.path[0], (F.lit(None), T.NullType()))
        compiler = Compiler({variable: Binding(known)})
        return reduce(and_, [self.micros.isNotNull(), *map(compiler.condition, conditions)])

    def hash(self, paths: Iterable[Path]) -> Column:
        """A hash of attributes, the same for equal integers of any width; NULL for other rows."""
        event = Binding(self.part.columns)
        values = [value_of(*event.attribute(path)) for path in paths]
        columns = [value.number if value.kind is Kind.INTEGER else value.column for value in values]
        return F.when(self.micros.isNotNull(), F.xxhash64(*columns))


def _estimated(sketches: Column) -> Column:
    return F.hll_sketch_estimate(F.hll_union_agg(sketches))


def _flattened(lists: Column) -> Column:
    return F.flatten(F.collect_list(lists))


def _layout(parts: list[dict[str, Any]]) -> Layout:
    """Whether the parts lie one after the other in time; parts of different inputs hold different types, and do not."""
    ranges = sorted((part["first"], part["last"]) for part in parts if part["first"] is not None)
    apart = all(earlier[1] <= later[0] for earlier, later in pairwise(ranges))
    return Layout(
        parts=len(ranges),
        is_clustered=bool(ranges) and apart and len({part["input"] for part in parts}) == 1,
        widest_us=max((last - first + 1 for first, last in ranges), default=0),
    )
