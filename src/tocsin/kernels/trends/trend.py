"""Aggregation over all matches of a task: its rows in, exact totals out, by the label of a match's first event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels import compile
from tocsin.kernels.expressions.slots import Test
from tocsin.kernels.instants import apart
from tocsin.kernels.kernel import Kernel
from tocsin.kernels.layout import Merged, merged
from tocsin.kernels.model import Integers, Rows, is_flagged
from tocsin.kernels.search.conditions import Columns
from tocsin.kernels.trends import exact, pairs
from tocsin.kernels.trends.amounts import Digits, Parts
from tocsin.kernels.trends.amounts import parts as parts_of
from tocsin.kernels.trends.answers import Answer, Totals
from tocsin.kernels.trends.machine import Machine
from tocsin.kernels.trends.steps import Steps, steps
from tocsin.kernels.trends.sums import NO_KEY, Sum, one, plus
from tocsin.kernels.trends.walks import Group, Walk
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection

if TYPE_CHECKING:
    from tocsin.kernels.trends.arrays import Compared

Given = tuple[Merged, Integers, Integers, list[tuple[int, Digits]], int | None]
# Fewer events are counted in plain Python before numba is there; longer numbers are quicker in Python's own.
FEW_EVENTS, MOST_DIGITS = 5_000, 96


@dataclass(frozen=True)
class Measure:
    """A number over all (match, event) pairs of a variable.

    Attributes
    ----------
    what
        "tally" (how many have a value), "sum", "min" or "max".
    variable
        Whose events.
    column
        The carried column of the values; None for a tally of the events themselves.
    """

    what: str
    variable: str
    column: int | None = None


@dataclass(frozen=True)
class Trend:
    """A query whose matches are words, compiled for counting. It can be pickled."""

    kernel: Kernel
    machine: Machine
    measures: tuple[Measure, ...]
    answers: tuple[Answer, ...] = ()
    tests: Mapping[str, tuple[Test, ...]] = field(default_factory=dict)  # variable → conditions between its neighbours
    places: Mapping[tuple[str, ex.Expression], int] = field(default_factory=dict)  # where the values they compare are
    by_position: bool = False  # whether events of one instant follow each other in their order (ACEL, R7)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each measure is."""
        return tuple(measure.what for measure in self.measures)

    def totals(self, rows: Rows, labels: Integers | None = None, *, jit: bool | None = None) -> dict[int, Totals]:
        """The totals of all matches whose start the task owns, by the label of its row.

        Parameters
        ----------
        rows
            The rows.
        labels
            A small number for each row, from 0 on; None: all are added up together.
        jit
            Whether to compile; None: when there are many rows.
        """
        letters = self._letters(rows)
        chosen = np.arange(len(letters)) if self.kernel.counts_every_event else np.flatnonzero(letters)
        events = merged(rows, chosen)
        window_us = self.kernel.query.window_us
        if self.by_position or rows.instants is not None:
            events, window_us = apart(events, window_us, rows.instants)
        chosen = events.rows
        columns = _Columns.of(self, rows, chosen)
        neighbours = Neighbours(self.tests, self._test_columns(rows), rows, chosen) if self.tests else None
        found = _Task(
            self,
            events,
            letters[chosen],
            np.zeros(len(chosen), np.int64) if labels is None else labels[chosen],
            columns,
            window_us,
            neighbours,
        )
        is_large = len(chosen) >= FEW_EVENTS if jit is None else jit
        sums = found.compiled() if is_large and compile.has_numba() else found.plain(range(len(events.group_from)))
        return {label: columns.totals(words) for label, words in sums.items()}

    def _letters(self, rows: Rows) -> Integers:
        """The letters that every row can be, as bits."""
        bits = {source.variable: source.bit for source in self.kernel.sources}
        several = {source.variable for source in self.kernel.sources if len(source.types) > 1}
        found = np.zeros(len(rows.ts), np.int64)
        for number, (variable, kind) in enumerate(self.machine.letters):
            flag = is_flagged(rows.flags, bits[variable])
            if variable in several:
                assert rows.kinds is not None
                flag = flag & (rows.kinds == self.kernel.types.index(kind))
            found |= flag.astype(np.int64) << number
        return found

    def letters_of(self, variable: str) -> int:
        """The letters of a variable, as bits."""
        return sum(1 << number for number, (name, _) in enumerate(self.machine.letters) if name == variable)

    @cached_property
    def walk(self) -> Walk:
        """How words grow."""
        return Walk(self.machine, self.kernel.query.selection, frozenset(self.tests))

    @cached_property
    def steps(self) -> Steps | None:
        """How words grow inside a window that slides, where that can be done."""
        return steps(self.walk, has_window=self.kernel.query.window_us is not None)

    def _test_columns(self, rows: Rows) -> Columns:
        numbers = {source.variable: f"v{number}" for number, source in enumerate(self.kernel.sources)}
        nullable = frozenset(number for number, (_, nulls) in enumerate(rows.columns) if nulls is not None)
        return Columns(numbers, self.places, nullable)


@dataclass(frozen=True)
class Neighbours:
    """The conditions between neighbours, and the events they are asked of."""

    tests: Mapping[str, tuple[Test, ...]]
    columns: Columns
    rows: Rows
    chosen: Integers

    @cached_property
    def accepts(self) -> pairs.Accepts:
        """As a function of Python."""
        return pairs.accepts(self.tests, self.columns, self.rows, self.chosen)

    def compared(self, *, as_order: bool) -> Compared:
        """As compiled code needs them; as an order where that is wanted and possible."""
        from tocsin.kernels.trends.arrays import Compared

        orders = pairs.orders(self.tests, self.columns, self.rows, self.chosen) if as_order else None
        if orders is not None:
            return Compared(list(self.tests), orders, pairs.fits_text({}, self.columns), ())
        given = self.tests, self.columns
        return Compared(
            list(self.tests), None, pairs.fits_text(*given), pairs.fits_arrays(*given, self.rows, self.chosen)
        )


@dataclass(frozen=True)
class _Columns:
    """The measures of a task as totals of natural numbers and least keys."""

    measures: tuple[Measure, ...]
    letters: tuple[int, ...]  # of each measure
    weights: tuple[tuple[int, str, Digits], ...]  # measure, part, weights
    keys: tuple[tuple[int, Integers, NDArray[Any]], ...]  # measure, keys, and the values they stand for
    parts: Mapping[int, Parts]

    @classmethod
    def of(cls, trend: Trend, rows: Rows, chosen: Integers) -> _Columns:
        weights: list[tuple[int, str, Digits]] = []
        keys: list[tuple[int, Integers, NDArray[Any]]] = []
        found: dict[int, Parts] = {}
        for number, measure in enumerate(trend.measures):
            if measure.column is None:
                weights.append((number, "", np.ones((len(chosen), 1), np.uint64)))
                continue
            values, nulls = rows.columns[measure.column]
            values, nulls = values[chosen], None if nulls is None else nulls[chosen]
            if measure.what == "tally":
                known = np.ones(len(chosen), np.uint64) if nulls is None else (~nulls).astype(np.uint64)
                weights.append((number, "", known[:, None]))
            elif measure.what == "sum":
                found[number] = parts_of(values, nulls)
                weights += [(number, part, weight) for part, weight in found[number].weights.items()]
            else:
                keys.append((number, *_keys(values, nulls, largest_first=measure.what == "max")))
        letters = tuple(trend.letters_of(measure.variable) for measure in trend.measures)
        return cls(trend.measures, letters, tuple(weights), tuple(keys), found)

    @property
    def empty(self) -> Sum:
        return one(len(self.weights), len(self.keys))

    def totals(self, words: Sum) -> Totals:
        """The measures, from the totals and keys of their parts."""
        count, totals, keys = words
        of: dict[int, dict[str, int]] = {}
        for (number, part, _), total in zip(self.weights, totals, strict=True):
            of.setdefault(number, {})[part] = total
        found: dict[int, Any] = {
            number: self.parts[number].amount(of.get(number, {}))
            if measure.what == "sum"
            else of.get(number, {}).get("", 0)
            for number, measure in enumerate(self.measures)
            if measure.what in ("sum", "tally")
        }
        for (number, _, values), key in zip(self.keys, keys, strict=True):
            found[number] = None if key == NO_KEY else values[key].item()
        return Totals(count, tuple(found[number] for number in range(len(self.measures))))


def _keys(values: NDArray[Any], nulls: Any, *, largest_first: bool) -> tuple[Integers, NDArray[Any]]:
    """For every value a key, the least for the one that is asked for, and the values by key."""
    known, ranks = np.unique(values, return_inverse=True)
    keys = ranks.reshape(-1).astype(np.int64)
    if largest_first:
        known, keys = known[::-1], len(known) - 1 - keys
    return (keys if nulls is None else np.where(nulls, NO_KEY, keys)), known


@dataclass(frozen=True)
class _Task:
    trend: Trend
    events: Merged
    letters: Integers
    labels: Integers
    columns: _Columns
    window_us: int | None
    neighbours: Neighbours | None = None

    # --- plain ------------------------------------------------------------------------------------

    def plain(self, groups: Sequence[int]) -> dict[int, Sum]:
        """The sums of some groups by label, in Python's own integers."""
        found: dict[int, Sum] = {}
        for group in groups:
            low, high = int(self.events.group_from[group]), int(self.events.group_to[group])
            own = int(self.events.own_low[group]), int(self.events.own_high[group])
            started = exact.totals(self._group(low, high), self.trend.walk, self.columns.empty, self.window_us, own)
            for start, words in started:
                label = int(self.labels[low + start])
                found[label] = plus(found.get(label), words) or words
        return found

    def _group(self, low: int, high: int) -> Group:
        accepts = None if self.neighbours is None else self.neighbours.accepts
        letters = [
            tuple(number for number in range(len(self.trend.machine.letters)) if bits >> number & 1)
            for bits in self.letters[low:high].tolist()
        ]
        weights = [
            (self.columns.letters[number], [_number(row) for row in weight[low:high].tolist()])
            for number, _, weight in self.columns.weights
        ]
        keys = [(self.columns.letters[number], values[low:high].tolist()) for number, values, _ in self.columns.keys]
        return Group(
            self.events.times[low:high].tolist(),
            letters,
            [
                [tuple(values[event] if of >> letter & 1 else 0 for of, values in weights) for letter in found]
                for event, found in enumerate(letters)
            ],
            [
                [tuple(values[event] if of >> letter & 1 else NO_KEY for of, values in keys) for letter in found]
                for event, found in enumerate(letters)
            ],
            self._follows[low:high].tolist() if self._is_contiguous else (),
            None if accepts is None else lambda variable, one, other: accepts(variable, low + one, low + other),
        )

    @property
    def _is_contiguous(self) -> bool:
        return self.trend.kernel.query.selection in (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS)

    @cached_property
    def _follows(self) -> NDArray[np.bool_]:
        """Whether each event is the very next one after the one before it, and later."""
        found = np.zeros(len(self.letters), np.bool_)
        if self._is_contiguous:
            assert self.events.places is not None
            found[1:] = (np.diff(self.events.places) == 1) & (np.diff(self.events.times) > 0)
            found[self.events.group_from[self.events.group_from < len(found)]] = False
        return found

    # --- compiled ---------------------------------------------------------------------------------

    def compiled(self) -> dict[int, Sum]:
        """The same, compiled, but for groups with numbers that are too long for it."""
        from tocsin.kernels.trends import arrays

        weights = [(self.columns.letters[number], weight) for number, _, weight in self.columns.weights]
        steps = None if self.columns.keys else self.trend.steps
        given = self.events, self.letters, self.labels, weights, self.window_us
        if steps is not None:
            return arrays.slid(steps, *given)
        if self.neighbours is not None:
            sums = self._chained(given)
            return self.plain(range(len(self.events.group_from))) if sums is None else sums
        digits = arrays.digits(self.trend.machine, self.events, self.letters, self.window_us, self._weight_digits)
        is_short = digits <= MOST_DIGITS
        found = self.plain(np.flatnonzero(~is_short).tolist())
        if is_short.any():
            sums = arrays.counted(
                self.trend.walk,
                self.events.of(is_short),
                self.letters,
                self.labels,
                self._follows,
                weights,
                [(self.columns.letters[number], keys) for number, keys, _ in self.columns.keys],
                self.window_us,
                int(digits[is_short].max()),
            )
            for label, words in sums.items():
                found[label] = plus(found.get(label), words) or words
        return found

    def _chained(self, given: Given) -> dict[int, Sum] | None:
        """The same where neighbours are compared; None where that is left to Python."""
        from tocsin.kernels.trends import arrays

        walk = self.trend.walk
        assert self.neighbours is not None
        if walk.selection is not Selection.ANY or self.columns.keys:
            return None
        as_order = arrays.has_many_neighbours(walk, self.events, self.letters, self.window_us)
        return arrays.chained(walk, self.neighbours.compared(as_order=as_order), *given)

    @property
    def _weight_digits(self) -> int:
        return max((weight.shape[1] for _, _, weight in self.columns.weights), default=1)


def _number(digits: list[int]) -> int:
    return sum(digit << (32 * place) for place, digit in enumerate(digits))
