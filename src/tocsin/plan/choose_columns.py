"""Choose what searches ship of an event: the columns of a `Manifest`, and their layouts.

A column that is there already is used again: an attribute of the result serves as time, key or value of a condition,
and searches that share rows share columns. Checkpoints know columns by name, so that the order of choices is fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema, column_types, types_with, variable_schemas
from tocsin.analysis.types import INTEGER, STRING, TIMES, DataType, Kind, struct_of
from tocsin.kernels.model import Carried, Held, Source
from tocsin.kernels.reach import Search
from tocsin.language import expressions as ex
from tocsin.plan import manifest as names
from tocsin.plan.manifest import (
    Attribute,
    Content,
    Digest,
    EventTypes,
    Gathered,
    Key,
    Layout,
    Manifest,
    Packing,
    Position,
    Reader,
    Shape,
    Text,
    Tie,
    Time,
    TrimmedDigest,
    TypeName,
    Value,
    Valued,
    Word,
)

PACKED_BYTES = (1, 2, 4)  # the widths of integer keys that fit into the bits of a row


def manifest_of(
    readers: Sequence[Reader[Search]],
    events: EventTypes,
    made: Callable[[DataType], Any],
    *,
    sources: Sequence[Source] | None = None,
    packs_key: bool = True,
    keys: Sequence[str] = (),
) -> Manifest:
    """Return the manifest of one search, or of several that share rows and then have common `sources`.

    `made` gives the engine's type of values that no event brings; with `packs_key` a narrow key is shipped in the bits
    of a row; `keys` are attributes that rows are distributed by, beside the partitions of the searches.
    """
    return _Builder(readers, events, made, sources, packs_key=packs_key).build(keys)


class _Builder:
    """Adds columns one by one."""

    def __init__(
        self,
        readers: Sequence[Reader[Search]],
        events: EventTypes,
        made: Callable[[DataType], Any],
        sources: Sequence[Source] | None,
        *,
        packs_key: bool,
    ) -> None:
        self.readers, self.events, self.made = readers, events, made
        self.searches = [reader.search for reader in readers]
        self.is_shared = sources is not None
        first = self.searches[0]
        self.sources = tuple(first.sources if sources is None else sources)
        self.columns: dict[str, Content] = {}
        self.columns_of: dict[str, list[str]] = {}  # by attribute, the columns that hold it as it is
        self.keys: dict[str, str] = {}
        self.digests: dict[str | None, tuple[str, ...]] = {}
        self.counts_every_event = not self.is_shared and first.counts_every_event
        partitions = {search.query.partition for search in self.searches}
        self.partition = partitions.pop() if len(partitions) == 1 else alg.Partition()
        self.id = self._id()
        self.packing = self._packing(packs_key=packs_key)
        self.variables = [variable_schemas(search.query.pattern, events.schemas) for search in self.searches]
        self.shapes = [
            {name: self._shape(name, held[name], wanted, reader.ties) for name, wanted in reader.needs.items()}
            for reader, held in zip(readers, self.variables, strict=True)
        ]

    def build(self, keys: Sequence[str]) -> Manifest:
        """Build the manifest."""
        numbers = range(len(self.readers))
        gathered = [[self._gathered(number, name) for name in self.readers[number].needs] for number in numbers]
        wants = [self._wants(search) for search in self.searches]
        time = self._time()
        if self.is_shared:
            for id in dict.fromkeys(reader.id for reader in self.readers):
                self._digests(id)
        layouts = [self._layout(number, time, gathered[number], wants[number]) for number in numbers]
        layouts = [self._ordered(layout, reader) for layout, reader in zip(layouts, self.readers, strict=True)]
        for attribute in keys:
            self._key(attribute)
        for number, name in enumerate(self.packing.words):
            self._add(Word(number), name)
        return Manifest(
            self.sources,
            self.searches[0].types,
            self.partition,
            self.packing,
            self.columns,
            tuple(layouts),
            tuple(self.shapes),
            self._source_shapes(),
            self.keys,
            self.counts_every_event,
            not self.is_shared and self.searches[0].crosses_partitions,
        )

    def _layout(
        self, number: int, time: str, gathered: Iterable[Gathered], wants: Mapping[str, tuple[tuple[str, str], ...]]
    ) -> Layout:
        reader = self.readers[number]
        search = reader.search
        return Layout(
            self.packing,
            time,
            () if self.packing.has_key else tuple(map(self._key, search.query.partition.attributes)),
            tuple(self._carried(search, carried) for carried in search.carried),
            tuple(one if one.columns else _counted(one, time) for one in gathered),
            self._digests(reader.id) if reader.with_digests and self.id is None else (),
            None if self.id is None else (self.id[0], self._attribute(*self.id, self.events.schemas)),
            wants=wants,
            templates=search.templates,
            trimmed=self._trimmed(search) if reader.with_digests else {},
        )

    def _ordered(self, layout: Layout, reader: Reader[Search]) -> Layout:
        """The layout with what orders events of one instant, where that matters."""
        search = reader.search
        if search.needs_order or search.compares_ties:
            layout = replace(layout, ties=tuple(map(self._tie, self.events.ties(reader.ties))))
        if search.needs_order:
            kind = self._named(names.TYPE, TypeName()) if self.counts_every_event else None
            layout = replace(layout, type=kind, text=self._named(names.TEXT, Text()))
        return layout

    def _id(self) -> tuple[str, DataType] | None:
        """The `id` column, and its type, where it is shipped in place of digests."""
        reader = self.readers[0]
        if reader.id is None or not reader.with_digests or not reader.digests_id or reader.search.hides_events:
            return None
        first, *others = (schema.attributes[reader.id] for schema in self.events.schemas.values())
        is_simple = first.kind in (Kind.INTEGER, Kind.STRING) and all(one.is_exactly(first) for one in others)
        return (reader.id, first) if is_simple else None

    # --- bits -------------------------------------------------------------------------------------

    def _packing(self, *, packs_key: bool) -> Packing:
        types = self.searches[0].types
        wanting = max(sum(1 for wanted in search.wants.values() if wanted) for search in self.searches)
        has_order = any(search.needs_order for search in self.searches) and not self.counts_every_event
        asks = (
            any(len(source.types) > 1 for source in self.sources)
            or (not self.is_shared and self.searches[0].needs_kinds)
            or wanting > 1
            or (self.id is not None and len(types) > 1)
            or (has_order and (self.is_shared or len(types) > 1))
        )
        packing = Packing(len(self.sources), max(len(types) - 1, 1).bit_length() if asks else 0)
        attributes = self.partition.attributes
        if not packs_key or len(attributes) != 1 or packing.size > names.KEY_AT:
            return packing
        known = [one.attributes[attributes[0]] for one in self._read if attributes[0] in one.attributes]
        widths = [_packed_bits(one) for one in known]
        return replace(packing, key_bits=max(widths) if widths and all(widths) else 0)

    @property
    def _read(self) -> tuple[Schema, ...]:
        return self.events.every if self.counts_every_event else tuple(self.events.schemas.values())

    def _source_shapes(self) -> dict[str, Shape]:
        """The sources of automata are no variables: a condition holds for events of all types, each with its own."""
        if not all(search.has_variables for search in self.searches):
            return {}
        return {source.variable: self._source_shape(source, source.conditions) for source in self.sources}

    def _source_shape(self, source: Source, expressions: Iterable[ex.Expression]) -> Shape:
        """The types of the attributes that expressions over an event of a source read."""
        nodes = (node for expression in expressions for node in expression.walk())
        read = dict.fromkeys(node.path[0] for node in nodes if isinstance(node, ex.Attribute))
        return column_types(source.variable, [self.events.schemas[name] for name in source.types], read)

    # --- columns ----------------------------------------------------------------------------------

    def _add(self, content: Content, name: str | None = None) -> str:
        name = name or names.column(len(self.columns))
        self.columns[name] = content
        if isinstance(content, Attribute):
            self.columns_of.setdefault(content.name, []).append(name)
        return name

    def _attributes(self, attribute: str) -> Iterator[tuple[str, Attribute]]:
        """The columns that hold an attribute as it is."""
        for name in self.columns_of.get(attribute, ()):
            content = self.columns[name]
            assert isinstance(content, Attribute)
            yield name, content

    def _named(self, name: str, content: Content) -> str:
        """A column that there is at most once."""
        return name if name in self.columns else self._add(content, name)

    def _shape(self, variable: str, held: Iterable[Schema], wanted: Sequence[str], ties: Sequence[str]) -> Shape:
        shape = column_types(variable, held, (name for name in wanted if name != names.POSITION))
        if names.POSITION not in wanted:
            return shape
        parts = names.position(INTEGER, (tie.type for tie in self.events.ties(ties)), STRING, STRING)
        return {**shape, names.POSITION: struct_of(parts.items())}

    def _gathered(self, number: int, variable: str) -> Gathered:
        """The columns that hold the events of a variable."""
        reader, shape, held = self.readers[number], self.shapes[number][variable], self.variables[number][variable]
        attributes = tuple(reader.needs[variable])
        columns: list[str | None] = []
        for name in attributes:
            types = types_with(held, name)
            is_key = self.packing.has_key and name == self.partition.attributes[0]
            if name == names.POSITION:
                columns.append(self._named(names.POSITION, Position(self.events.ties(reader.ties))))
            elif not types:
                columns.append(None)
            elif is_key and _packed_bits(shape[name]) == self.packing.key_bits:
                columns.append(names.KEY)
            else:
                columns.append(self._attribute(name, shape[name], types))
        made = (
            self.made(shape[name]) if column is None else None for name, column in zip(attributes, columns, strict=True)
        )
        is_iterated = reader.search.query.variables[variable].iterated
        return Gathered(variable, tuple(columns), is_iterated, attributes, tuple(made))

    def _wants(self, search: Search) -> dict[str, tuple[tuple[str, str], ...]]:
        """By event type, the attributes that conditions on Python values read, and their columns."""
        return {
            kind: tuple(
                (name, self._attribute(name, self.events.schemas[kind].attributes[name], [kind])) for name in wanted
            )
            for kind, wanted in search.wants.items()
            if wanted
        }

    def _attribute(self, attribute: str, dtype: DataType, types: Iterable[str]) -> str:
        """A column with an attribute of these types; one column serves all variables that ask for the same."""
        for name, content in self._attributes(attribute):
            if content.type.is_exactly(dtype):
                self.columns[name] = replace(content, types=content.types | frozenset(types))
                return name
        return self._add(Attribute(attribute, dtype, frozenset(types)))

    def _there(self, attribute: str, types: Iterable[str]) -> tuple[str, DataType] | None:
        """A column that is shipped anyway and holds an attribute as it is, for all these types; and its type."""
        wanted = frozenset(types)
        known = [self.events.schemas[name].attributes.get(attribute) for name in wanted]
        for name, content in self._attributes(attribute):
            dtype = content.type
            if all(one is not None and one.is_exactly(dtype) for one in known):
                self.columns[name] = replace(content, types=content.types | wanted)
                return name, dtype
        return None

    def _time(self) -> str:
        attributes = set(self.events.times[name] for name in self.events.schemas)
        if len(attributes) == 1 and not self.counts_every_event:
            (attribute,) = attributes
            types = {one.attributes[attribute].kind for one in self.events.schemas.values()}
            is_local = any(one.attributes[attribute].is_local for one in self.events.schemas.values())
            if types <= {Kind.INTEGER, Kind.TIMESTAMP} and not is_local:
                there = self._there(attribute, self.events.schemas)
                if there is not None:
                    return there[0]
        return self._add(Time(), names.TIME)

    def _key(self, attribute: str) -> str:
        if attribute not in self.keys:
            self.keys[attribute] = self._new_key(attribute)
        return self.keys[attribute]

    def _new_key(self, attribute: str) -> str:
        known = [one.attributes[attribute] for one in self._read if attribute in one.attributes]
        kinds = {(one.kind, one.is_local) for one in known}
        there = self._there(attribute, self.events.schemas)
        if there is not None and not self.counts_every_event and there[1].kind not in (Kind.DOUBLE, Kind.INTERVAL):
            return there[0]
        if len(kinds) > 1 and all(one.kind in TIMES for one in known):
            return self._add(Key(attribute, INTEGER))
        return self._add(Key(attribute, column_types(attribute, self._read, [attribute])[attribute]))

    def _tie(self, tie: Tie) -> str:
        known = next((name for name, content in self.columns.items() if content == tie), None)
        return known or self._add(tie)

    def _carried(self, search: Search, carried: Carried) -> str:
        attribute = _plain_attribute(carried)
        there = None if attribute is None else self._there(attribute, carried.expressions)
        if there is not None and _is_held_as(there[1], carried.held):
            return there[0]
        value = Value(carried.held, {kind: self._valued(search, one) for kind, one in carried.expressions.items()})
        if self.is_shared:
            for name, content in self.columns.items():
                if isinstance(content, Value) and content.can_hold(value):
                    self.columns[name] = replace(content, values={**value.values, **content.values})
                    return name
        return self._add(value)

    def _valued(self, search: Search, expression: ex.Expression) -> Valued:
        variable = next(iter(ex.variables_in(expression)), None)
        source = next((one for one in search.sources if one.variable == variable), None)
        if source is None or not search.has_variables:
            return Valued(expression, None)
        return Valued(expression, self._source_shape(source, [expression]))

    def _digests(self, id: str | None) -> tuple[str, ...]:
        if id not in self.digests:
            held = (one for search in self.searches for one in search.query.variables.values())
            types = frozenset(kind for one in held for kind in one.types if kind is not None)
            is_of_all = not self.is_shared and self.searches[0].hides_events
            found = (self._add(Digest(half, None if is_of_all else types, id)) for half in (0, 1))
            self.digests[id] = tuple(found)
        return self.digests[id]

    def _trimmed(self, search: Search) -> dict[int, tuple[str, str]]:
        """The digests of what PROJECT leaves of events, for each way it does."""
        types, found = frozenset(search.types), {}
        for number, one in enumerate(search.templates):
            if not one.is_derived:
                first, second = (self._add(TrimmedDigest(half, types, one.attributes, one.kept)) for half in (0, 1))
                found[number] = (first, second)
        return found


def _packed_bits(dtype: DataType) -> int:
    """How many bits a narrow integer has; 0 for other types."""
    is_narrow = dtype.kind is Kind.INTEGER and dtype.width_bytes in PACKED_BYTES
    return 8 * dtype.width_bytes if is_narrow else 0


def _counted(gathered: Gathered, time: str) -> Gathered:
    """A variable that is only counted: any column that every event has tells how many there are."""
    return replace(gathered, columns=(time,), attributes=("",), types=(None,))


def _plain_attribute(carried: Carried) -> str | None:
    """The attribute that a carried column is, when it is nothing more."""
    found = set()
    for expression in carried.expressions.values():
        if not isinstance(expression, ex.Attribute) or len(expression.path) != 1:
            return None
        found.add(expression.path[0])
    return found.pop() if len(found) == 1 else None


def _is_held_as(dtype: DataType, held: Held) -> bool:
    """Whether a worker can take a shipped column of this type as it is."""
    kinds = {
        Held.INTEGER: {Kind.INTEGER, Kind.TIMESTAMP},
        Held.FLOAT: {Kind.DOUBLE},
        Held.BOOLEAN: {Kind.BOOLEAN},
        Held.RANK: {Kind.STRING, Kind.DECIMAL, Kind.BINARY},
    }
    return dtype.kind in kinds[held]
