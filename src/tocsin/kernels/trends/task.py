"""Run a search over the events of a task: choose numbers that are long enough, and return Python's integers.

Plain Python counts with its own integers. Compiled code counts groups of events together whose results have about the
same length (`log_matches`): in int64 if they fit, and otherwise modulo as many primes as they need, some at a time
where memory is scarce. Where neighbours are compared the bound is far too high, so doubles are tried first. They are
exact up to 2⁵³, and beyond it their largest count is a better bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels import compile
from tocsin.kernels.lists import Merged
from tocsin.kernels.model import Integers
from tocsin.kernels.trends import blocks, chains, semirings
from tocsin.kernels.trends.blocks import Stages
from tocsin.kernels.trends.chains import Conditions
from tocsin.kernels.trends.machine import Machine
from tocsin.kernels.trends.semirings import DOUBLES, INTEGERS, KEYS, RESIDUES, Semiring
from tocsin.kernels.trends.totals import Weights
from tocsin.language.ast import Selection

DOUBLE_BITS, INTEGER_BITS = 53, 62
MANY_NEIGHBOURS = 512  # in a window or group, so that a tree pays
LANES = 32
MOST_STARTS = 4096  # of a block
MOST_NUMBERS = 1 << 26  # in memory for one block, and of all weights
MOST_DOUBLE = 2.0**1000

Logs = NDArray[np.float64]
Sum = tuple[int, tuple[int, ...], tuple[int, ...]]  # how many paths, their totals and their least keys
Counts = dict[int, list[int]]  # label → count and totals


@dataclass(frozen=True)
class Task:
    """The events of a task, and what is added up over their paths."""

    stages: Stages  # how paths grow
    # The events, the symbols that each can be, as bits, the label of each, and whether it is the very next one after
    # the one before it.
    events: Merged
    symbols: Integers
    labels: Integers
    follows: NDArray[np.bool_]
    window_us: int | None
    # For every total the symbols it weighs, as bits, and weights; None: every weight is 1.
    totals: Sequence[tuple[int, Weights | None]]
    # For every extreme the symbols it ranks, as bits, and the key of each event; the least key counts.
    extremes: Sequence[tuple[int, Integers]]
    conditions: Conditions

    def sums(self, *, jit: bool) -> dict[int, Sum]:
        """The totals of all paths, by the label of their first event; labels without a path are left out."""
        counted = self._counted() if jit else self._integers(self.events, Weights.integers, None)[0]
        keys: Counts = {}
        if self.extremes:
            numbers = Numbers(KEYS, np.int64 if jit else None, list(self.extremes))
            keys = _by_label(self._search(numbers, self.events)[0], 1 + len(self.extremes))
        return {
            label: (numbers[0], tuple(numbers[1:]), tuple(keys[label][1:] if self.extremes else ()))
            for label, numbers in counted.items()
            if numbers[0]
        }

    # --- counts -----------------------------------------------------------------------------------

    def _counted(self) -> Counts:
        """Count groups together whose results have about the same length."""
        matches, events = log_matches(self.stages.machine, self.events, self.symbols, self._ends)
        weight = max((0 if each is None else each.bits for _, each in self.totals), default=0)
        bits = np.ceil(matches + events + weight + np.log2(max(len(matches), 1)) + 2)
        lengths = np.where(bits <= INTEGER_BITS, 0, np.ceil(np.log2(np.maximum(bits, 1))))
        found: Counts = {}
        for length in np.unique(lengths).tolist():
            some = lengths == length
            per_count = int(np.ceil(events[some].max())) + weight
            for label, numbers in self._exact(self.events.of(some), int(bits[some].max()), per_count).items():
                known = found.get(label, [0] * len(numbers))
                found[label] = [one + other for one, other in zip(known, numbers, strict=True)]
        return found

    def _exact(self, events: Merged, bits: int, per_count: int) -> Counts:
        """Count; no result has more bits, and no total `per_count` bits more than its count."""
        if self._is_chained and bits > DOUBLE_BITS:
            found, (peak, total) = self._integers(events, _doubles, np.float64)
            if total < MOST_DOUBLE:
                # Totals of natural numbers only grow; others may have been larger in between.
                is_signed = any(each is not None and each.mantissas.min(initial=0) < 0 for _, each in self.totals)
                more = per_count if is_signed else 0
                bits = min(bits, _length(total) + more)
                if _length(peak) + more <= DOUBLE_BITS and bits <= INTEGER_BITS:
                    return found
        if bits <= INTEGER_BITS:
            return self._integers(events, lambda each: each.mantissas << each.shifts, np.int64)[0]
        return self._residues(events, semirings.width_for(bits))

    def _integers(self, events: Merged, weights: Callable[[Weights], Any], dtype: Any) -> tuple[Counts, Any]:
        """Count in numbers of one place; in chains also the largest number of a start, and the sum of these of all."""
        fields = [(symbols, None if each is None else weights(each)) for symbols, each in self.totals]
        numbers = Numbers(DOUBLES if dtype is np.float64 else INTEGERS, dtype, fields)
        found, peak = self._search(numbers, events)
        return _by_label(found, 1 + len(self.totals)), peak

    def _residues(self, events: Merged, width: int) -> Counts:
        size = 1 + len(self.totals)
        weighed = [each for _, each in self.totals if each is not None]
        stages = len(self.stages.stages)
        sums = LANES * self._most_compared if self._is_chained else (1 + stages) * (2 * stages + 4)
        step = max(1, MOST_NUMBERS // (sums * size + len(weighed) * len(self.symbols)))
        chosen = semirings.primes(width)
        found: list[NDArray[np.uint32]] = []
        for first in range(0, width, step):
            some = chosen[first : first + step]
            fields = [
                (symbols, None if each is None else semirings.residues(each.mantissas, each.shifts, some))
                for symbols, each in self.totals
            ]
            numbers = Numbers(RESIDUES, np.uint32, fields, some)
            found.append(self._search(numbers, events)[0].reshape(-1, len(some)))
        return _by_label(semirings.integers(np.concatenate(found, axis=1)), size)

    # --- searches ---------------------------------------------------------------------------------

    @property
    def _is_chained(self) -> bool:
        return bool(self.conditions.tests) and self.stages.selection is Selection.ANY

    @cached_property
    def _ends(self) -> Integers:
        return self.events.window_ends(self.window_us)

    @cached_property
    def _most_compared(self) -> int:
        """How many events of compared variables a window, or a group without one, may hold."""
        names = self.conditions.tests
        bits = sum(1 << number for number, (name, _) in enumerate(self.stages.machine.symbols) if name in names)
        return int(most_in_window(self.events, self.symbols & bits != 0, self._ends).max(initial=0))

    def _search(self, numbers: Numbers, events: Merged) -> tuple[Any, Any]:
        """The results of a search; in chains also the largest number of a start, and the sum of these of all."""
        jit, unit = numbers.dtype is not None, (1 + len(numbers.fields)) * len(numbers.moduli)
        labels = int(self.labels.max(initial=0)) + 1
        groups = events.group_from, events.group_to, events.own_low, events.own_high
        given = (*groups, events.times, self.symbols, self.labels, *numbers.weights()), self.window_us or 0
        of_results = np.int64 if numbers.dtype is np.float64 else numbers.dtype
        orders = None
        if self._is_chained and jit and self._most_compared > MANY_NEIGHBOURS:
            orders = self.conditions.orders()
        conditions = self.conditions if orders is None else replace(self.conditions, tests={})
        fits, columns = conditions.compiled()
        search: Any = semirings.function(
            chains.search if self._is_chained else blocks.search, numbers.semiring, fits, jit=jit
        )
        if not self._is_chained:
            wide = unit * (1 if self.window_us is None else 1 + len(self.stages.stages))
            starts = 0 if self.window_us is None else min(MOST_STARTS, MOST_NUMBERS // wide)
            o = numbers.filled(labels * unit)
            rest = self.follows, max(starts, _largest_instant(events)), self.stages.tables()
            arguments = *given, (numbers.head(wide), len(numbers.moduli), o), *rest
            search(*(arguments if jit else compile.as_lists(arguments)), *columns)
            return o, ()
        lanes, most = LANES if self.window_us else 1, MOST_NUMBERS
        tables = chains.tables(self.stages, list(self.conditions.tests))
        none = np.zeros(0, np.int64)
        while True:
            o, peak = numbers.filled(labels * unit, of_results), numbers.filled(2)
            ordered = *(orders or (none, none)), orders is not None
            in_numbers = numbers.head(lanes * unit), len(numbers.moduli), o
            of_chains = *given, in_numbers, ordered, (lanes, most), peak, tables
            code = search(*(of_chains if jit else compile.as_lists(of_chains)), *columns)
            if code == chains.FINE:
                return o, peak
            lanes, most = max(lanes // 2, 1), most if lanes > 1 else most << 30


@dataclass(frozen=True)
class Numbers:
    """The representation of numbers in one run."""

    semiring: Semiring
    dtype: Any  # what arrays hold; None: lists of Python's integers, which are not compiled
    # For every number behind the count the symbols it weighs, as bits, and the weight of every event at every place;
    # None: every weight is 1.
    fields: Sequence[tuple[int, Any]]
    moduli: Sequence[int] = (0,)  # of each place; 0: there is none

    def weights(self) -> tuple[Any, Integers]:
        """All weights one behind the other; the symbols of each number, and where its weights begin or −1."""
        table, length = [], 0
        for symbols, each in self.fields:
            table.append((symbols, -1 if each is None else length))
            length += 0 if each is None else np.size(each)
        known = [each for _, each in self.fields if each is not None]
        joined: Any = [number for each in known for number in each]
        if self.dtype is not None:
            joined = np.concatenate([np.empty(0, self.dtype), *(np.ravel(each) for each in known)]).astype(self.dtype)
        return joined, np.array(table, np.int64).reshape(-1)

    def head(self, length: int) -> Any:
        """The modulus m of each of so many places; −1/m modulo 2³² and the number 1 for all that differ."""
        inverses = [-pow(modulus, -1, 2**32) % 2**32 if modulus else 0 for modulus in self.moduli]
        ones = [self.semiring.one % modulus if modulus else self.semiring.one for modulus in self.moduli]
        found = [*list(self.moduli) * (length // len(self.moduli)), *inverses, *ones]
        return found if self.dtype is None else np.array(found, self.dtype)

    def filled(self, length: int, dtype: Any = None) -> Any:
        """Zeros."""
        made = [self.semiring.zero] * length
        return made if self.dtype is None else np.array(made, dtype or self.dtype)


def _doubles(weights: Weights) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        return np.ldexp(weights.mantissas.astype(np.float64), weights.shifts)


def _length(number: float) -> int:
    """The bits of a count that was rounded some times."""
    return math.frexp(number)[1] + 1


def _by_label(found: Any, size: int) -> Counts:
    numbers = found if isinstance(found, list) else found.tolist()
    return {place // size: numbers[place : place + size] for place in range(0, len(numbers), size)}


def _largest_instant(events: Merged) -> int:
    if not len(events.times):
        return 1
    ends = np.flatnonzero(np.diff(events.times, append=events.times[-1] - 1) != 0)
    return int(np.diff(ends, prepend=-1).max())


# --- bounds ---------------------------------------------------------------------------------------


def most_in_window(events: Merged, is_counted: NDArray[np.bool_], ends: Integers) -> Integers:
    """For every group, how many of some events lie in one window at most."""
    if not len(events.group_from):
        return np.zeros(0, np.int64)
    sums = np.concatenate(([0], np.cumsum(is_counted)))
    return np.asarray(np.maximum.reduceat(sums[ends] - sums[:-1], events.group_from), np.int64)


def log_matches(machine: Machine, events: Merged, symbols: Integers, ends: Integers) -> tuple[Logs, Logs]:
    """For every group the binary logarithms of bounds on its matches, and on the events of one; `ends`: of windows.

    A path visits the strongly connected components of the automaton one after the other. In a component with a cycle it
    can take any subset of the events: one bit for each. Every other state takes one event: a factor of their number.
    """
    flags = [(symbols >> number & 1).astype(np.bool_) for number in range(len(machine.symbols))]
    most = [most_in_window(events, flag, ends) for flag in flags]
    reach = machine.reach
    after: dict[int, Logs] = {}  # state → paths that go on from its component, with what they take there
    # Whoever is reached comes first: it reaches fewer states, or lies on the cycle that the others lead to.
    states = range(1, len(machine.entered))
    for state in sorted(states, key=lambda state: (reach[state].bit_count(), -(reach[state] >> state & 1))):
        if state in after:
            continue
        is_cyclic = reach[state] >> state & 1
        component = [state]
        if is_cyclic:
            component = [other for other in states if reach[other] == reach[state] and reach[state] >> other & 1]
        leaving = {target for source, _, target in machine.moves if source in component and target not in component}
        found = np.full(len(events.group_from), 0.0 if machine.finals & set(component) else -np.inf)
        for target in sorted(leaving):
            found = np.logaddexp2(found, after[target])
        taken = sorted({machine.entered[other] for other in component})
        if is_cyclic:
            found = found + sum(most[symbol] for symbol in taken)
        else:
            found = found + np.log2(np.maximum(most[taken[0]], 1))
        after |= dict.fromkeys(component, found)
    total = np.full(len(events.group_from), -np.inf)
    for source, symbol, target in machine.moves:
        if source == 0:
            starts = np.add.reduceat(flags[symbol], events.group_from, dtype=np.int64) if len(total) else total
            total = np.logaddexp2(total, np.log2(np.maximum(starts, 1)) + after[target])
    return total, np.log2(np.maximum(sum(most), 1))
