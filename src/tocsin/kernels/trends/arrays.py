"""A task as the arrays that generated code takes, and its result as Python's integers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels import compile
from tocsin.kernels.layout import Merged
from tocsin.kernels.model import Integers
from tocsin.kernels.trends import chains, loose, sliding
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
LANES, FIRST_CHAINED_ROOM = 32, 3
MANY_NEIGHBOURS = 512  # that a tree is worth


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
) -> dict[int, Sum]:
    """The sums of all groups by label, by the steps of a walk."""
    light = [weight.shape[1] == 1 and int(weight.max(initial=0)) < loose.LIGHT for _, weight in weights]
    code = SlidingCode(steps, [of for of, _ in weights], light)
    search = compile.fast(code.text(), text_of(*loose.FUNCTIONS, *sliding.FUNCTIONS))
    size, first = 1 + len(weights), 1 + len(steps.entries)
    most_labels = int(labels.max(initial=0)) + 1
    longest = max((weight.shape[1] for _, weight in weights), default=1)
    given = (
        *(events.group_from, events.group_to, events.own_low, events.own_high),
        *(events.times, letters, labels, *_weights(weights, longest), window_us or 0),
        *(steps.starts, steps.ahead, steps.behind, steps.ones, first),
    )
    room = FIRST_ROOM
    while True:
        n = np.zeros((first + most_labels) * (loose.HEAD + size * room), np.int64)
        n[1 :: loose.HEAD + size * room] = 1
        if search(*given, room, n, np.zeros(size, np.int64)):
            break
        room *= 2
    return _sums(n.reshape(first + most_labels, -1)[first:, loose.HEAD :].reshape(most_labels, size, room))


# --- with neighbours that are compared ------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """What is known of neighbours.

    Attributes
    ----------
    variables
        The variables with conditions.
    orders
        What events ask and give (`pairs.orders`), or None.
    text, columns
        The function that compares two events, and the columns it needs.
    """

    variables: Sequence[str]
    orders: tuple[Integers, Integers] | None
    text: str
    columns: Sequence[NDArray[Any]]


def has_many_neighbours(walk: Walk, events: Merged, letters: Integers, window_us: int | None) -> bool:
    """Whether a window, or a group without one, may hold so many events of compared variables that a tree pays."""
    bits = sum(1 << number for number, (name, _) in enumerate(walk.machine.letters) if name in walk.compared)
    most, _ = _most_in_window(events, (letters & bits != 0).astype(np.int64), window_us)
    return int(most.max(initial=0)) > MANY_NEIGHBOURS


def chained(
    walk: Walk,
    compared: Compared,
    events: Merged,
    letters: Integers,
    labels: Integers,
    weights: Sequence[tuple[int, Digits]],
    window_us: int | None,
) -> dict[int, Sum] | None:
    """The sums of all groups by label, under `any`; None where they need too much memory."""
    machine = walk.machine
    moves = [(state, target, walk.are_neighbours(state, letter)) for state, letter, target in machine.moves if state]
    entered = sorted({(letter, target) for _, letter, target in machine.moves})
    targets = [
        (letter, target, (0, letter, target) in machine.moves, any(target == each for _, each, _ in moves))
        for letter, target in entered
    ]
    states = range(len(machine.entered))
    trees = dict.fromkeys(target for _, target, is_neighbour in moves if is_neighbour)
    none = np.zeros((len(compared.variables), 0), np.int64)
    asks, gives = compared.orders or (none, none)
    search: Any = compile.fast(f"{compared.text}\n\n{text_of(chains.search)}", text_of(*chains.FUNCTIONS))
    size, most_labels = 1 + len(weights), int(labels.max(initial=0)) + 1
    longest = max((weight.shape[1] for _, weight in weights), default=1)
    room = FIRST_CHAINED_ROOM + longest
    while True:
        o = np.zeros((most_labels, size, room), np.int64)
        code = search(
            *(events.group_from, events.group_to, events.own_low, events.own_high),
            *(events.times, letters, labels, *_weights(weights, longest), window_us or 0),
            np.array(moves, np.int64).reshape(-1, 3),
            np.array(targets, np.int64),
            np.array([state in machine.finals for state in states]),
            np.array([_number(compared.variables, machine.variable(state)) for state in states], np.int64),
            np.array([_number(list(trees), state) for state in states], np.int64),
            *(asks, gives, compared.orders is not None, LANES if window_us else 1, room, o.reshape(-1)),
            *compared.columns,
        )
        if code == chains.FINE:
            return _sums(o)
        if code == chains.TOO_LARGE:
            return None
        room *= 2


def _number(known: Sequence[Any], one: Any) -> int:
    return known.index(one) if one in known else -1


def _weights(weights: Sequence[tuple[int, Digits]], longest: int) -> tuple[Integers, Integers, int]:
    """The weights of all totals one behind the other, the letters of each, and how many digits a weight has."""
    padded = [np.pad(weight, ((0, 0), (0, longest - weight.shape[1]))).reshape(-1) for _, weight in weights]
    whole = np.concatenate([np.empty(0, np.int64), *(each.astype(np.int64) for each in padded)])
    return whole, np.array([of for of, _ in weights], np.int64), longest


def _sums(found: Integers) -> dict[int, Sum]:
    return {
        label: (loose.to_int(found[label, 0]), tuple(map(loose.to_int, found[label, 1:])), ())
        for label in np.flatnonzero(found[:, 0].any(axis=1)).tolist()
    }


@cache
def text_of(*functions: Callable[..., Any]) -> str:
    """Some functions as one text to be compiled, with the numbers that their modules name."""
    modules = dict.fromkeys(inspect.getmodule(function) for function in functions)
    constants = {name: value for module in modules for name, value in vars(module).items() if isinstance(value, int)}
    lines = [f"{name} = {value}" for name, value in constants.items() if name.isupper()]
    texts = [f"@compiled\n{inspect.getsource(function)}" for function in functions]
    return "\n\n".join(["Array = object", *lines, *texts, ""])
