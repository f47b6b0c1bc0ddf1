"""Several kernels over the same rows: equal candidates are one list, and what patterns begin with is found once.

`common` gives kernels one numbering of flags and types, so that rows are made for all of them. `SharedLoops` runs those
that split rows alike: their lists are sorted once, and the prefixes that they share become tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tocsin.errors import TooManyMatchesError, TooMuchMemoryError
from tocsin.kernels.conditions import anonymous
from tocsin.kernels.lists import Lists, lists
from tocsin.kernels.matches import Limits
from tocsin.kernels.model import Matches, Rows, Source
from tocsin.kernels.nested_loops import Kernel
from tocsin.kernels.run import Arrays, Runner
from tocsin.kernels.search.program import Program, beginning, begun_program, program
from tocsin.language import expressions as ex
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY
from tocsin.optimizer.shared_prefixes import Prefix, first_variables, longest, prefixes

OWN = ("own_low", "own_high")


def common(
    kernels: Sequence[Kernel], groups: Sequence[int] | None = None
) -> tuple[tuple[Source, ...], tuple[Kernel, ...]]:
    """The distinct candidates of all kernels, and the kernels with the flags and types of all.

    Kernels of different `groups` get their rows separately, and have no flag in common.
    """
    found = prefixes([kernel.query for kernel in kernels])
    types = tuple(sorted({name for kernel in kernels for name in kernel.types}))
    known: dict[object, Source] = {}
    changed = []
    for number, kernel in enumerate(kernels):
        place = longest(found, number)
        begun = () if place is None else first_variables(kernel.query, found[place].size)
        sources = []
        for source in kernel.sources:
            # Lists of a prefix must be the same for all: not without the NULLs that only one pattern has no use for.
            conditions = kernel.conditions.flags.get(source.variable, ()) if source.variable in begun else None
            own = _with_key(source, kernel, source.conditions if conditions is None else conditions)
            key = (groups and groups[number], own.types, frozenset(map(anonymous, own.conditions)))
            one = known.setdefault(key, _named(own, len(known)))
            if not source.is_negated and one.is_negated:
                one = known[key] = replace(one, is_negated=False)
            sources.append(replace(source, bit=one.bit, conditions=own.conditions))
        changed.append(replace(kernel, sources=tuple(sources), types=types))
    return tuple(known.values()), tuple(changed)


def _with_key(source: Source, kernel: Kernel, conditions: tuple[ex.Expression, ...]) -> Source:
    """Rows are made for several keys, so that an event without this one is told by its flag (R11)."""
    keys = (
        ex.IsNull(ex.Attribute(source.variable, (name,)), negated=True) for name in kernel.query.partition.attributes
    )
    return replace(source, conditions=tuple(dict.fromkeys((*conditions, *keys))))


def _named(source: Source, bit: int) -> Source:
    """The source under a name that no variable has."""
    name = f"s{bit}"
    conditions = tuple(ex.renamed(condition, lambda _: name) for condition in source.conditions)
    return replace(source, variable=name, bit=bit, conditions=conditions)


@dataclass(frozen=True)
class SharedLoops:
    """Kernels with one numbering of flags, the same partition and the same slices."""

    kernels: tuple[Kernel, ...]  # the kernels, as `common` gives them
    sources: tuple[Source, ...]  # the candidates of all, as `common` gives them

    @cached_property
    def prefixes(self) -> list[Prefix]:
        """Beginnings that they have in common."""
        return prefixes([kernel.query for kernel in self.kernels])

    def find(
        self,
        rows: Sequence[Rows],
        *,
        most: int = MOST_MATCHES_PER_START,
        memory: int = MOST_MEMORY,
        jit: bool | None = None,
    ) -> Iterator[tuple[int, Matches]]:
        """The matches of every kernel with its number, one kernel after the other; limits are those of `Kernel.find`.

        Each kernel has rows of its own: they differ in columns and in `event`, not in order.
        """
        views = _Views(self, rows)
        tables: list[Arrays | None] = []
        for prefix in self.prefixes:
            tables.append(self._table(prefix, tables, views, most, memory, jit))
        for number, kernel in enumerate(self.kernels):
            listed, place = views.of(number), longest(self.prefixes, number)
            table = None if place is None else tables[place]
            if place is None or table is None:
                made = program(kernel.searched, kernel.conditions.tests)
            else:
                prefix = self.prefixes[place]
                made = begun_program(kernel.searched, kernel.conditions.tests, prefix.size)
                listed.arrays.update(self._renamed(table, prefix, number))
            runner = Runner(made, kernel.setting(rows[number]), kernel.limits(most, memory), jit)
            for matches in kernel.kept(runner, rows[number], listed):
                yield number, matches

    def _table(
        self,
        prefix: Prefix,
        tables: Sequence[Arrays | None],
        views: _Views,
        most: int,
        memory: int,
        jit: bool | None,
    ) -> Arrays | None:
        """The rows of a prefix, with the names of its first member; None when there are too many to keep them."""
        number = prefix.members[0]
        kernel, listed = self.kernels[number], views.of(number)
        begun = 0
        if prefix.before is not None and (before := tables[prefix.before]) is not None:
            begun = self.prefixes[prefix.before].size
            listed.arrays.update(self._renamed(before, self.prefixes[prefix.before], number))
        known = beginning(kernel.query.core, prefix.size, kernel.conditions.tests, begun)
        windows = [self.kernels[member].query.window_us for member in prefix.members]
        widest = None if None in windows else max(window for window in windows if window is not None)
        setting = replace(kernel.setting(views.rows[number]), window_us=widest)
        first = beginning(kernel.query.core, begun, (), 0) if begun else known
        made = Program(known.kinds, [first, known] if begun else [known], given=1 if begun else 0)
        place = len(made.tables) - 1
        try:
            found = Runner(made, setting, Limits(most, memory), jit).table(place, known, listed, listed.arrays, most)
        except (TooManyMatchesError, TooMuchMemoryError):  # of the beginning: the patterns may have few
            return None
        return {name.replace(f"t{place}", "t0", 1): array for name, array in found.items()}  # as if it were the first

    def _renamed(self, table: Arrays, prefix: Prefix, number: int) -> Arrays:
        """The rows of a prefix, with the names that another member has for its variables."""
        first, own = self.kernels[prefix.members[0]], self.kernels[number]
        pairs = zip(first_variables(first.query, prefix.size), first_variables(own.query, prefix.size), strict=True)
        new = {first.numbers[one]: own.numbers[other] for one, other in pairs}
        found: Arrays = {}
        for name, array in table.items():
            head, _, short = name.rpartition("_")
            found[f"{head}_{new[short]}" if short in new and head.startswith("t0") else name] = array
        return found


class _Views:
    """The lists of all sources, sorted once, as each kernel calls them."""

    def __init__(self, together: SharedLoops, rows: Sequence[Rows]) -> None:
        self.together, self.rows = together, rows
        # A column that several kernels read is one array.
        columns = list({id(column[0]): column for one in rows for column in one.columns}.values())
        places = {id(column[0]): place for place, column in enumerate(columns)}
        self.numbers = [[places[id(column[0])] for column in one.columns] for one in rows]
        bits = {source.bit: source.variable for source in together.sources}
        needed: dict[str, dict[int, None]] = {}
        self.names: list[dict[str, str]] = []
        for number, kernel in enumerate(together.kernels):
            self.names.append({source.variable: bits[source.bit] for source in kernel.sources})
            for variable, own in kernel.conditions.columns.items():
                joint = needed.setdefault(self.names[number][variable], {})
                joint |= dict.fromkeys(self.numbers[number][column] for column in own)
        used = {name for names in self.names for name in names.values()}
        sources = [source for source in together.sources if source.variable in used]
        self.lists = lists(
            replace(rows[0], columns=tuple(columns)),
            sources,
            {source.variable: source.variable for source in sources},
            {name: tuple(joint) for name, joint in needed.items()},
        )

    def of(self, number: int) -> Lists:
        """The lists under the names of one kernel."""
        kernel, known = self.together.kernels[number], self.lists.arrays
        found = Lists(self.lists.groups, self.lists.bases, {name: known[name] for name in OWN}, {})
        for source in kernel.sources:
            name, short = self.names[number][source.variable], kernel.numbers[source.variable]
            found.rows[source.variable] = self.lists.rows[name]
            for what in ("ts", "row", "from", "to", "kind", "pos"):
                if f"{what}_{name}" in known:
                    found.arrays[f"{what}_{short}"] = known[f"{what}_{name}"]
            for column in kernel.conditions.columns.get(source.variable, ()):
                for what in ("c", "null"):
                    joint = f"{what}_{name}_{self.numbers[number][column]}"
                    if joint in known:
                        found.arrays[f"{what}_{short}_{column}"] = known[joint]
        return found
