"""Several kernels on Spark: one DataFrame of the events that can take part in any match, one shuffle, one search.

Kernels with nested keys are one *group*: its rows are split by the coarser key, and each kernel splits them further. A
row is sent once to every group that has a use for it, in the same shuffle, so that the inputs are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.algebra.tree_text import to_text
from tocsin.kernels.kernel import Kernel
from tocsin.kernels.model import Carried, Held, Source
from tocsin.kernels.reach import width_us
from tocsin.kernels.shared import common, flagging
from tocsin.physical.compat import make_ready_for_python
from tocsin.physical.inputs import Inputs
from tocsin.physical.sliced import layout as names
from tocsin.physical.sliced.events import Shipper, counting
from tocsin.physical.sliced.layout import Layout, Packing
from tocsin.physical.sliced.matches import variable_type
from tocsin.physical.sliced.needs import Needs
from tocsin.physical.sliced.parts import Part
from tocsin.physical.sliced.places import HALVES, RULE, placed
from tocsin.physical.sliced.slices import Group, distribute_to
from tocsin.physical.sliced.worker import Member, Task, search_groups
from tocsin.physical.spark_types import Shape
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.sql.frames import select, union, where
from tocsin.plan.groups import Key, groups_of

MOST_GROUPS = 1 << (names.MOST_BITS - names.GROUP_AT)


@dataclass(frozen=True)
class RuleSearch:
    """A query to be searched for beside others.

    Attributes
    ----------
    number
        What its matches are called in the result.
    kernel
        The query, compiled.
    needs
        The attributes of each variable that the result needs.
    id
        The column that identifies its events, when there is one.
    """

    number: int
    kernel: Kernel
    needs: Needs
    id: str | None


@dataclass(frozen=True)
class Mixed:
    """One DataFrame with the events of several parts, so that it is read once.

    Attributes
    ----------
    frame
        The rows.
    parts
        Where a condition holds, a row is an event of this part.
    kept
        Where it is a match that was found before, to be passed on; None: nowhere.
    columns
        The columns of such a match.
    """

    frame: DataFrame
    parts: tuple[tuple[Column, Part], ...]
    kept: Column | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Searched:
    """The matches of all members, each in its row.

    Attributes
    ----------
    frame
        `__tocsin_rule`, `__tocsin_start` and `__tocsin_end` in microseconds, the two halves of `match_id`, and
        `__tocsin_v0` … for the variables.
    kinds
        The types of these.
    places
        By number of the member, its variables: the number of the column that holds each, and its attributes.
    """

    frame: DataFrame
    kinds: tuple[T.DataType, ...]
    places: Mapping[int, Mapping[str, tuple[int, Shape]]]


def fits(kernels: Sequence[Kernel]) -> bool:
    """Whether the events of these kernels can say in their bits for which of them they are."""
    return len(_groups(kernels)[1]) <= MOST_GROUPS


def search(
    members: Sequence[RuleSearch],
    inputs: Inputs,
    parts: Sequence[Part],
    *,
    most: int,
    memory: int,
    mixed: Sequence[Mixed] = (),
    kinds: Iterable[T.DataType] = (),
) -> Searched:
    """The matches of all members, and those that are passed on.

    Parameters
    ----------
    members
        The queries.
    inputs
        The event types that they read.
    parts
        The DataFrames that events come from.
    most
        How many matches one start may have.
    memory
        How many bytes a task may hold for matches.
    mixed
        Those with the events of several parts, matches that were found before included.
    kinds
        The types of the variables of these matches.
    """
    of_group, keys = _groups([member.kernel for member in members])
    sources, kernels = common([member.kernel for member in members], of_group)
    renumbered = [replace(member, kernel=kernel) for member, kernel in zip(members, kernels, strict=True)]
    shipper = JointShipper(renumbered, sources, inputs, parts, mixed)
    groups = []
    for number, key in enumerate(keys):
        own = [kernel for kernel, group in zip(kernels, of_group, strict=True) if group == number]
        groups.append(shipper.group(own, key))
    frame = shipper.frame()
    make_ready_for_python(frame)
    before = F.col(names.PASSED_ON).getField(names.FIRST_HALF) if shipper.passes_on else None
    rows = distribute_to(frame, shipper.names, groups, shipper.micros, before)
    held = list(kinds)
    places = [
        placed([variable_type(inputs, gathered, shapes[gathered.name]) for gathered in layout.gathered], held)
        for layout, shapes in zip(shipper.layouts, shipper.shapes, strict=True)
    ]
    searches = [
        Member(member.kernel, layout, member.id is not None, to_text(member.kernel.query), member.number, own)
        for member, layout, own in zip(renumbered, shipper.layouts, places, strict=True)
    ]
    widths = [groups[group].width_us for group in of_group]
    task = Task(search_groups(sources, kernels, searches, widths), most, memory)
    schema = T.StructType().add(RULE, T.IntegerType())
    for name in HALVES:
        schema = schema.add(name, T.LongType())
    for place, kind in enumerate(held):
        schema = schema.add(names.variable(place), kind)
    found = {
        member.number: dict(zip(shapes, zip(own, shapes.values(), strict=True), strict=True))
        for member, shapes, own in zip(members, shipper.shapes, places, strict=True)
    }
    return Searched(rows.mapInArrow(task, schema), tuple(held), found)


def _groups(kernels: Sequence[Kernel]) -> tuple[list[int], list[Key]]:
    return groups_of([kernel.query.partition.attributes for kernel in kernels])


@dataclass
class _Merged:
    """A column that holds one value of some events, and another of others."""

    name: str
    held: Held
    values: dict[str, tuple[Hashable, Callable[[Part], Column]]] = field(default_factory=dict)

    def takes(self, held: Held, values: Mapping[str, tuple[Hashable, Callable[[Part], Column]]]) -> bool:
        same = all(self.values.get(kind, value)[0] == value[0] for kind, value in values.items())
        # What is ranked may be of any type, and a column has one.
        return held is self.held and same and (held is not Held.RANK or self.values.keys() == values.keys())


class JointShipper:
    """Decides what is shipped for several kernels: flags, times, keys and digests once, values that differ for each."""

    def __init__(
        self,
        members: Sequence[RuleSearch],
        sources: Sequence[Source],
        inputs: Inputs,
        single: Sequence[Part],
        mixed: Sequence[Mixed],
    ) -> None:
        self.single, self.mixed = single, mixed
        self.passes_on = any(one.kept is not None for one in mixed)
        parts = [*single, *(part for one in mixed for _, part in one.parts)]
        kernels = [member.kernel for member in members]
        flags = flagging(sources, kernels)
        plain = replace(inputs, id=None)
        self.every = Shipper(flags, plain, {}, with_digests=True, given=parts)
        columns = self.every.columns
        own = [
            Shipper(member.kernel, inputs, member.needs, with_digests=False, columns=columns, given=parts)
            for member in members
        ]
        self.packing = self.packing_of(kernels)
        gathered = [shipper.gathered(self.packing) for shipper in own]
        wants = [shipper.wants() for shipper in own]
        time, self.micros = self.every.time()
        self.keys: dict[str, str] = {}
        self.merged: list[_Merged] = []
        identified = {
            id: Shipper(flags, replace(inputs, id=id), {}, with_digests=True, columns=columns, given=parts)
            for id in dict.fromkeys(member.id for member in members)
        }
        digests = {id: (shipper.digest(0), shipper.digest(1)) for id, shipper in identified.items()}
        self.layouts = [
            Layout(
                self.packing,
                time,
                () if self.packing.has_key else tuple(map(self.key, member.kernel.query.partition.attributes)),
                tuple(self._carried(shipper, carried) for carried in member.kernel.carried),
                counting(held, time),
                digests[member.id],
                wants=wanted,
            )
            for member, shipper, held, wanted in zip(members, own, gathered, wants, strict=True)
        ]
        self.shapes = [shipper.shapes for shipper in own]
        self.every.add_words(self.packing)

    def packing_of(self, kernels: Sequence[Kernel]) -> Packing:
        """How the bits of rows are laid out."""
        wanting = max(sum(1 for attributes in kernel.wants.values() if attributes) for kernel in kernels)
        return self.every.packing(wanting)

    def key(self, attribute: str) -> str:
        """The column of a key."""
        if attribute not in self.keys:
            self.keys[attribute] = self.every.key(attribute)
        return self.keys[attribute]

    def _carried(self, shipper: Shipper, carried: Carried) -> str:
        known = shipper.shipped_anyway(carried)
        if known is not None:
            return known
        values = shipper.held(carried)
        column = next((one for one in self.merged if one.takes(carried.held, values)), None)
        if column is None:
            column = _Merged("", carried.held)
            self.merged.append(column)
            chosen = column.values
            column.name = shipper.add(lambda part: part.choose(chosen))
        column.values |= {kind: value for kind, value in values.items() if kind not in column.values}
        return column.name

    def group(self, kernels: Sequence[Kernel], key: Key) -> Group:
        """How rows are split for some kernels."""
        widths = [width_us(kernel) for kernel in kernels]
        assert all(width is not None for width in widths)  # else they are not searched for together
        by: tuple[Column, ...] = tuple(F.col(self.key(name)) for name in key)
        if self.packing.has_key:
            by = (F.shiftright(F.col(names.BITS), names.KEY_AT),)
        return Group(
            by,
            max(width for width in widths if width is not None),
            max(kernel.back_us for kernel in kernels),
            max(kernel.ahead_us for kernel in kernels),
            frozenset(source.bit for kernel in kernels for source in kernel.sources),
            self.packing,
        )

    @property
    def names(self) -> list[str]:
        """The columns that travel."""
        shipped = [*(column.name for column in self.every.columns), names.BITS]
        return [*shipped, names.PASSED_ON] if self.passes_on else shipped

    def frame(self) -> DataFrame:
        """A row per event, and one for each match that is passed on."""
        frames = [self._mixed(one) for one in sorted(self.mixed, key=lambda one: one.kept is None)]  # types come first
        for part in self.single:
            columns = self.every.values(part, self.packing)
            columns += [F.lit(None).alias(names.PASSED_ON)] if self.passes_on else []
            frames.append(select(where(part.renamed, self.every.filter(part)), *columns))
        return union(frames)

    def _mixed(self, mixed: Mixed) -> DataFrame:
        """The events of several parts, and the matches among them, by one look at each row."""
        events = [(is_own, part, self.every.values(part, self.packing)) for is_own, part in mixed.parts]
        passes = [is_own & self.every.filter(part) for is_own, part, _ in events]
        passes += [] if mixed.kept is None else [mixed.kept]
        chosen = []
        for place, name in enumerate(name for name in self.names if name != names.PASSED_ON):
            branches = [(is_own, columns[place]) for is_own, _, columns in events]
            value = F.cases(branches) if branches else F.lit(None)
            chosen.append((F.coalesce(value, F.bigint(names.OWN_COPY)) if name == names.BITS else value).alias(name))
        if mixed.kept is not None:
            match = F.struct(*(F.col(name).alias(name) for name in mixed.columns))
            chosen.append(F.when(mixed.kept, match).alias(names.PASSED_ON))
        elif self.passes_on:
            chosen.append(F.lit(None).alias(names.PASSED_ON))
        return select(where(mixed.frame, reduce(or_, passes)), *chosen)
