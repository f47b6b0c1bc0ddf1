"""A task as the arrays that generated code takes, and its result as Python's integers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels import compile
from tocsin.kernels.layout import Merged
from tocsin.kernels.model import Integers
from tocsin.kernels.trends import loose, sliding
from tocsin.kernels.trends.amounts import Digits
from tocsin.kernels.trends.code import Code
from tocsin.kernels.trends.limbs import DIGIT, to_int
from tocsin.kernels.trends.machine import Machine
from tocsin.kernels.trends.sliding_code import SlidingCode
from tocsin.kernels.trends.steps import Steps
from tocsin.kernels.trends.sums import NO_KEY, Sum
from tocsin.kernels.trends.walks import Walk

MOST_STARTS = 4096  # kept at once
FIRST_ROOM = 8  # digits that most numbers need


def digits(machine: Machine, events: Merged, letters: Integers, window_us: int | None, weight_digits: int) -> Integers:
    """For every group, how many digits no number of it can exceed.

    A state on a cycle can take any subset of the events of its letters: one bit each. Every other state takes one
    event, so that it multiplies by how many there are.
    """
    loops = _loop_letters(machine)
    bits = np.zeros(len(letters), np.int64)
    for letter in range(len(machine.letters)):
        if loops >> letter & 1:
            bits += (letters >> letter) & 1
    most_bits, most_events = _most_in_window(events, bits, window_us)
    choices = np.ceil(np.log2(most_events + 2)).astype(np.int64) * (len(machine.entered) + 2)
    return np.asarray((most_bits + choices) // DIGIT + weight_digits + 2, np.int64)


def _most_in_window(events: Merged, bits: Integers, window_us: int | None) -> tuple[Integers, Integers]:
    """For every group at least as many bits, and as many events, as lie in one window.

    Blocks of the length of a window are counted: one window touches two of them at most.
    """
    sizes = events.group_to - events.group_from
    sums = np.concatenate(([0], np.cumsum(bits)))
    if window_us is None:
        return sums[events.group_to] - sums[events.group_from], sizes
    group = np.repeat(np.arange(len(sizes)), sizes)
    chosen = np.repeat(events.group_from - np.cumsum(sizes) + sizes, sizes) + np.arange(len(group))
    block = events.times[chosen] // window_us
    is_first = np.concatenate(([True], (block[1:] != block[:-1]) | (group[1:] != group[:-1])))
    first = np.flatnonzero(is_first)
    ends = np.append(first[1:], len(block))
    found = []
    for counts in (sums[chosen[ends - 1] + 1] - sums[chosen[first]], ends - first):
        largest = np.zeros(len(sizes), np.int64)
        np.maximum.at(largest, group[first], counts)
        found.append(2 * largest)
    return found[0], found[1]


def _loop_letters(machine: Machine) -> int:
    """The letters of moves between states that can reach each other, as bits."""
    reach = {(source, target) for source, _, target in machine.moves}
    while True:
        more = {(one, other) for one, middle in reach for again, other in reach if again == middle} - reach
        if not more:
            break
        reach |= more
    return sum({1 << letter for source, letter, target in machine.moves if (target, source) in reach})


def counted(
    walk: Walk,
    events: Merged,
    letters: Integers,
    labels: Integers,
    follows: NDArray[np.bool_],
    weights: Sequence[tuple[int, Digits]],
    keys: Sequence[tuple[int, Integers]],
    window_us: int | None,
    room: int,
) -> dict[int, Sum]:
    """The sums of all groups by label; `room` digits are enough for each number."""
    code = Code(walk, bool(weights), bool(keys), window_us is not None)
    size = 1 + len(weights)
    search = compile.fast(code.text())
    longest = max((weight.shape[1] for _, weight in weights), default=1)
    padded = [np.pad(weight, ((0, 0), (0, longest - weight.shape[1]))).reshape(-1) for _, weight in weights]
    at_once = 1 if window_us is None else max(MOST_STARTS, _largest_instant(events))
    most_labels = int(labels.max(initial=0)) + 1

    def bank(sums: int, digits: int = room) -> tuple[Digits, Integers]:
        return np.zeros(sums * size * digits, np.uint64), np.full(sums * len(keys), NO_KEY, np.int64)

    numbers, ranks = bank(most_labels, 2 * room + 2)
    search(
        *(events.group_from, events.group_to, events.own_low, events.own_high),
        *(events.times, letters, follows, labels),
        np.concatenate([np.empty(0, np.uint64), *padded]),
        *(np.array([of for of, _ in weights], np.int64), longest),
        np.concatenate([np.empty(0, np.int64), *(key for _, key in keys)]),
        np.array([of for of, _ in keys], np.int64),
        *(room, at_once, window_us or 0),
        *bank(code.layout.sums),
        *bank(at_once * code.layout.columns),
        np.zeros(at_once, np.int64),
        *(numbers, ranks),
    )
    found, least = numbers.reshape(most_labels, size, -1), ranks.reshape(most_labels, len(keys))
    return {
        label: (
            to_int(found[label, 0]),
            tuple(to_int(number) for number in found[label, 1:]),
            tuple(least[label].tolist()),
        )
        for label in np.flatnonzero(found[:, 0].any(axis=1)).tolist()
    }


def _largest_instant(events: Merged) -> int:
    if not len(events.times):
        return 1
    ends = np.flatnonzero(np.diff(events.times, append=events.times[-1] - 1) != 0)
    return int(np.diff(ends, prepend=-1).max())


# --- with a window that slides --------------------------------------------------------------------


def slid(
    steps: Steps,
    events: Merged,
    letters: Integers,
    labels: Integers,
    weights: Sequence[tuple[int, Digits]],
    window_us: int | None,
    *,
    jit: bool = True,
) -> dict[int, Sum]:
    """The sums of all groups by label, by the steps of a walk."""
    code = SlidingCode(steps, [of for of, _ in weights])
    search = (compile.fast if jit else compile.plain)(text_of(loose, sliding) + "\n\n" + code.text())
    size, first = 1 + len(weights), 1 + len(steps.entries)
    most_labels = int(labels.max(initial=0)) + 1
    longest = max((weight.shape[1] for _, weight in weights), default=1)
    padded = [np.pad(weight, ((0, 0), (0, longest - weight.shape[1]))).reshape(-1) for _, weight in weights]
    is_light = longest == 1 and all(int(weight.max(initial=0)) < loose.LIGHT for weight in padded)
    given = (
        *(events.group_from, events.group_to, events.own_low, events.own_high),
        *(events.times, letters, labels),
        np.concatenate([np.empty(0, np.int64), *(each.astype(np.int64) for each in padded)]),
        *(np.array([of for of, _ in weights], np.int64), longest, window_us or 0, is_light),
        *(steps.starts, steps.ahead, steps.behind, steps.ones, first),
    )
    room = FIRST_ROOM
    while True:
        n = np.zeros((first + most_labels) * (loose.HEAD + size * room), np.int64)
        n[1 :: loose.HEAD + size * room] = 1
        if search(*given, room, n, np.zeros(size, np.int64)):
            break
        room *= 2
    found = n.reshape(first + most_labels, -1)[first:, loose.HEAD :].reshape(most_labels, size, room)
    return {
        label: (loose.to_int(found[label, 0]), tuple(map(loose.to_int, found[label, 1:])), ())
        for label in np.flatnonzero(found[:, 0].any(axis=1)).tolist()
    }


@cache
def text_of(*modules: Any) -> str:
    """The functions of some modules as one text to be compiled."""
    constants = {
        name: value for module in modules for name, value in vars(module).items() if name.isupper() and value is not None
    }
    functions: list[Callable[..., Any]] = [each for module in modules for each in module.FUNCTIONS]
    lines = [f"{name} = {value}" for name, value in constants.items() if isinstance(value, int)]
    return "\n".join(
        ["Array = object", *lines, *(f"\n\n@compiled\n{inspect.getsource(function)}" for function in functions)]
    )
