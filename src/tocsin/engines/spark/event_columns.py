"""What Spark computes of single events, as SQL: the columns of a manifest, which events travel, and their flags."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_
from typing import assert_never

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.analysis.names import RESERVED_PREFIX
from tocsin.engines.spark import match_ids as identity
from tocsin.engines.spark.columns import Binding, Compiler
from tocsin.engines.spark.inputs import Part
from tocsin.engines.spark.match_ids import text_of
from tocsin.engines.spark.spark_types import to_spark
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.tables import Question, answered
from tocsin.engines.spark.typed_columns import TIMES, Kind, Value, null, value_of
from tocsin.kernels.conditions import anonymous
from tocsin.kernels.model import WORD_BITS, Held, Source
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.plan import manifest as names
from tocsin.plan.manifest import (
    Attribute,
    Content,
    Digest,
    Key,
    Manifest,
    Position,
    Shape,
    Text,
    Tie,
    Time,
    TrimmedDigest,
    TypeName,
    Word,
    position,
)
from tocsin.plan.manifest import Value as ManifestValue

FIXED_WIDTH: tuple[type[T.DataType], ...] = (
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.BooleanType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)
NOTHING = (F.lit(None), T.NullType())


class EventColumns:
    """The columns of a manifest, and its conditions on single events."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        asked = [node for source in manifest.sources for node in _asked(source)]
        # Variables that ask the same of an event are answered by one join.
        alike = {key: number for number, key in enumerate(dict.fromkeys(map(anonymous, asked)))}
        self.names = {node: f"__tocsin_has{alike[anonymous(node)]}" for node in asked}
        self.by_type: dict[str, list[Source]] = {}
        for source in manifest.sources:
            for kind in source.types:
                self.by_type.setdefault(kind, []).append(source)

    def answered(self, part: Part) -> DataFrame:
        """The events of a part with what DataFrames answer of them."""
        questions: dict[str, Question] = {}
        for source in self._sources(part):
            for node in _asked(source):
                compiler = self._compiler(part, self._shape(source.variable), source.variable)
                values = [compiler.value(argument) for argument in node.arguments]
                questions[self.names[node]] = Question(node, values, self.names[node])
        if not questions:
            return part.renamed
        return answered(part.renamed, list(questions.values()), [column.text for column, _ in part.columns.values()])

    def _compiler(self, part: Part, shape: Shape | None, *variables: str) -> Compiler:
        """What compiles expressions over an event of a part, whose attributes have these types in the query."""
        columns: Mapping[str, tuple[Column, T.DataType]] = part.columns
        if shape is not None:
            wanted = {name: to_spark(dtype) for name, dtype in shape.items()}
            columns = {name: (part.cast(name, dtype), dtype) for name, dtype in wanted.items()}
        answers: dict[ex.Expression, Value] = {
            node: Value(F.col(name), Kind.BOOLEAN) for node, name in self.names.items()
        }
        return Compiler({name: Binding(columns) for name in variables}, answers)

    # --- columns ----------------------------------------------------------------------------------

    def values(self, part: Part) -> list[Column]:
        """The columns of a part's events; the bits come last."""
        return [*(self._value(part, content) for content in self.manifest.columns.values()), self._bits(part)]

    def _value(self, part: Part, content: Content) -> Column:
        match content:
            case Attribute():
                return _attribute(part, content)
            case ManifestValue():
                return self._held(part, content)
            case Key():
                return _key(part, content)
            case Time():
                return part.micros
            case Tie():
                dtype = to_spark(content.type)
                return value_of(part.cast(content.attribute, dtype), dtype).column
            case TypeName():
                return _type_name(part)
            case Text():
                return text_of(part.columns, without=part.time)
            case Position():
                return _position(part, content)
            case Digest():
                return _digest(part, content)
            case TrimmedDigest():
                return _trimmed_digest(part, content)
            case Word():
                return self._word(part, content.number)
            case _:
                assert_never(content)

    def _held(self, part: Part, content: ManifestValue) -> Column:
        def value(kind: str) -> Column:
            one = content.values[kind]
            compiler = self._compiler(part, one.shape, *ex.variables_in(one.expression))
            return _held_as(compiler.value(one.expression), content.held)

        return part.choose({kind: anonymous(one.expression) for kind, one in content.values.items()}, value)

    def _shape(self, source: str) -> Shape | None:
        return self.manifest.source_shapes.get(source)

    # --- which events -----------------------------------------------------------------------------

    def filter(self, part: Part) -> Column:
        """Of an event that cannot take part nothing is shipped; its conditions are written so that files see them."""
        manifest = self.manifest
        tests = [part.columns[part.time][0].isNotNull()]
        if not manifest.crosses_partitions:
            tests += self._has_key(part)
        if not manifest.counts_every_event:
            sources = self._sources(part)
            if not sources:
                return F.lit(False)
            candidates = [self._is_candidate(part, source) for source in sources]
            known = [candidate for candidate in candidates if candidate is not None]
            if len(known) == len(candidates) and any(source.conditions for source in sources):
                tests.append(reduce(or_, known))  # which says the type as well
            elif (of_type := part.is_of(part.types)) is not None:
                tests.append(of_type)
        return reduce(and_, tests)

    def _has_key(self, part: Part) -> list[Column]:
        """`[k]`: an event with NULL takes part in nothing; one without the attribute is in no partition (R11)."""
        partition = self.manifest.partition
        if any(name not in part.columns for name in partition.attributes):
            return [F.lit(False)]
        return [part.columns[name][0].isNotNull() for name in partition.same]

    def _sources(self, part: Part) -> list[Source]:
        own = set(part.types)
        return [source for source in self.manifest.sources if not own.isdisjoint(source.types)]

    def _is_alone(self, part: Part, source: Source) -> bool:
        """Whether the events of a variable's types that are left after the filter are all candidates for it."""
        own = set(source.types) & set(part.types)
        return not self.manifest.counts_every_event and all(len(self.by_type[kind]) == 1 for kind in own)

    def _is_candidate(self, part: Part, source: Source) -> Column | None:
        """Whether an event may be bound to a variable; None: every one may."""
        of_type = part.is_of(set(source.types) & set(part.types))
        tests = [*([] if of_type is None else [of_type]), *self._conditions(part, source)]
        return reduce(and_, tests) if tests else None

    def _conditions(self, part: Part, source: Source) -> list[Column]:
        compiler = self._compiler(part, self._shape(source.variable), source.variable)
        return [compiler.condition(condition) for condition in source.conditions]

    # --- bits -------------------------------------------------------------------------------------

    def _bits(self, part: Part) -> Column:
        """The bits of a part's events."""
        packing = self.manifest.packing
        # By type, so that a row's type is compared once for all variables.
        kinds = {kind: kind for kind in self.manifest.types}
        bits = F.coalesce(part.choose(kinds, lambda kind: self._flags(part, kind)), F.bigint(names.OWN_COPY))
        if packing.has_key:
            (attribute,) = self.manifest.partition.attributes
            key = part.columns[attribute][0].cast("bigint") if attribute in part.columns else null(T.LongType())
            bits = bits.bitwiseOR(F.coalesce(F.shiftleft(key, names.KEY_AT + 1), F.bigint(1 << names.KEY_AT)))
        return bits

    def _flags(self, part: Part, kind: str) -> Column:
        """The bits of an event of one type: which variables it may be bound to, and the number of its type."""
        packing = self.manifest.packing
        always = names.OWN_COPY
        if packing.kinds:
            always |= self.manifest.types.index(kind) << packing.kinds_at
        if packing.words:
            return F.bigint(always)
        places = {source.bit: names.FLAGS_AT + source.bit for source in self.manifest.sources}
        return self._flagged(part, kind, always, places)

    def _word(self, part: Part, number: int) -> Column:
        """A column of flags, where these do not fit into the bits."""
        places = {
            source.bit: source.bit % WORD_BITS for source in self.manifest.sources if source.bit // WORD_BITS == number
        }
        kinds = {kind: kind for kind in self.manifest.types}
        return F.coalesce(part.choose(kinds, lambda kind: self._flagged(part, kind, 0, places)), F.bigint(0))

    def _flagged(self, part: Part, kind: str, always: int, places: Mapping[int, int]) -> Column:
        """The flags of an event of one type at these places, and what is always there."""
        sometimes = []
        takes_part = self._has_key(part) if self.manifest.crosses_partitions else []
        for source in self.by_type.get(kind, ()):
            if source.bit not in places:
                continue
            bit = 1 << places[source.bit]
            tests = takes_part + ([] if self._is_alone(part, source) else self._conditions(part, source))
            if tests:
                sometimes.append(F.when(reduce(and_, tests), F.bigint(bit)).otherwise(F.bigint(0)))
            else:
                always |= bit
        return _any_bit([F.bigint(always), *sometimes])


def _any_bit(numbers: list[Column]) -> Column:
    """The bits of all numbers; in a tree, since Spark's parser goes as deep as a chain is long."""
    if len(numbers) > names.MOST_FLAGS:
        half = len(numbers) // 2
        return _any_bit(numbers[:half]).bitwiseOR(_any_bit(numbers[half:]))
    return reduce(lambda bits, bit: bits.bitwiseOR(bit), numbers)


def _asked(source: Source) -> list[rx.InTable]:
    nodes = (node for condition in source.conditions for node in condition.walk())
    return [node for node in nodes if isinstance(node, rx.InTable) and node.table.rows is None]


# --- columns of any manifest ----------------------------------------------------------------------


def _attribute(part: Part, column: Attribute) -> Column:
    """An attribute of a part's events; NULL in those of other types."""
    dtype = to_spark(column.type)
    if column.types.isdisjoint(part.types):
        return null(dtype)
    if isinstance(dtype, FIXED_WIDTH) and column.name in part.columns:
        # As wide when it is NULL: not worth a look at the type.
        return part.cast(column.name, dtype)
    return part.choose(dict.fromkeys(column.types), lambda _: part.cast(column.name, dtype))


def _held_as(value: Value, held: Held) -> Column:
    match held:
        case Held.INTEGER if value.kind in TIMES:
            return value.micros
        case Held.INTEGER:
            return value.number.cast("bigint")
        case Held.FLOAT:
            return value.number.cast("double")
        case Held.RANK if value.kind is Kind.INTEGER:
            return value.column.cast("decimal(20,0)")
        case Held.BOOLEAN | Held.RANK:
            return value.column
        case _:
            assert_never(held)


def _key(part: Part, column: Key) -> Column:
    """A key that is equal exactly when SQL's grouping says so, in every input."""
    dtype = to_spark(column.type)
    if column.attribute not in part.columns:
        return null(dtype)
    value = value_of(*part.columns[column.attribute])
    if value.kind in TIMES and isinstance(dtype, T.LongType):
        return value.micros
    if value.kind is Kind.DOUBLE:
        # −0.0 is 0.0 here; as bits they differ.
        return F.when(value.column == 0.0, F.lit(0.0)).otherwise(value.column)
    return value.column if value.kind is Kind.INTERVAL else part.cast(column.attribute, dtype)


def _type_name(part: Part) -> Column:
    return F.lit(part.type) if part.kind is None else F.coalesce(part.kind, F.lit(""))


def _position(part: Part, column: Position) -> Column:
    ties = (part.cast(one.attribute, to_spark(one.type)) for one in column.ties)
    parts = position(part.micros, ties, _type_name(part), text_of(part.columns, without=part.time))
    return F.struct(*(found.alias(name) for name, found in parts.items()))


def _digest(part: Part, column: Digest) -> Column:
    """A digest of whole events; what we have added to an event is no part of it."""
    own = {name: typed for name, typed in part.columns.items() if not name.startswith(RESERVED_PREFIX)}
    if column.types is not None:
        return _digest_of(part, column.types, own, column.half, column.id)
    # Also of types that the pattern does not name; these need not have the `id` column.
    id = column.id if column.id in own else None
    made = identity.names_of(part.type if part.kind is None else part.kind, own, id=id)
    return identity.digests(made, own, id=id)[column.half]


def _trimmed_digest(part: Part, column: TrimmedDigest) -> Column:
    """A digest of what PROJECT leaves of events."""
    kept = {name: part.columns.get(name, NOTHING) if name in column.kept else NOTHING for name in column.attributes}
    return _digest_of(part, column.types, kept, column.half, None)


def _digest_of(part: Part, types: frozenset[str], columns: identity.Typed, half: int, id: str | None) -> Column:
    """A digest of the events of these types, 0 for others."""
    own = types.intersection(part.types)
    if not own:
        return F.bigint(0)
    # One hash with names chosen by type, not one per type, which would be as many times the text to plan.
    named = part.choose({kind: kind for kind in own}, lambda kind: identity.names_of(kind, columns, id=id))
    made = identity.digests(named, columns, id=id)[half]
    is_of_them = None if own.issuperset(part.types) and not part.has_others else part.is_of(own)
    return made if is_of_them is None else F.when(is_of_them, made).otherwise(F.bigint(0))
