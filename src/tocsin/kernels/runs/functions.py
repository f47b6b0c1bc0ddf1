"""The generated functions of an automaton, and how they are called: arrays grow as needed, matches come in parts.

A search gives up where one start has too many matches, or too many runs differ at one event: an error is better than a
task that never ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.errors import TooManyMatchesError, TooMuchSearchError
from tocsin.kernels import compile
from tocsin.kernels.expressions.code import require_shallow
from tocsin.kernels.expressions.folds import BOOLEAN, DOUBLE, INTEGER, KEY, OBJECT
from tocsin.kernels.lists import Merged
from tocsin.kernels.matches import check_memory
from tocsin.kernels.model import Integers, Mask
from tocsin.kernels.runs.found import Graphs, Paths
from tocsin.kernels.runs.object_registers import EVALUATOR, Evaluator, Objects
from tocsin.kernels.runs.texts import ARENA, AT, GRAPHS, INPUTS, LIVE, MATCHES, POOL
from tocsin.kernels.runs.writers import ReplayCode, SearchCode
from tocsin.kernels.search.helpers import DEEP, DONE, FULL, GROW, TOO_MANY, WIDE
from tocsin.optimizer.choose import MOST_MEMORY

Columns = tuple[tuple[NDArray[Any], Mask | None], ...]
Arrays = dict[str, NDArray[Any]]
DTYPES: Mapping[str, Any] = {INTEGER: np.int64, DOUBLE: np.float64, BOOLEAN: np.bool_, OBJECT: object, KEY: object}
# At first: matches per call, nodes of the arena, live runs, and how deep a way may be.
ROOM, NODES, RUNS, DEPTH = 1 << 16, 1 << 12, 1 << 6, 1 << 7
# Runs that differ in state or registers at one event, in compiled code and with objects in plain Python.
MOST_RUNS, MOST_PLAIN_RUNS = 1 << 20, 1 << 16

STEPS = ("out_step", "out_event", "out_before", "out_number")  # outputs with an entry per step


@dataclass(frozen=True)
class Task:
    """The input of a search: events in order with their letters and values, the window, and its limits."""

    events: Merged
    letters: Integers
    columns: Columns
    objects: Evaluator
    window_us: int | None
    most: int
    jit: bool | None
    memory: int = MOST_MEMORY


@dataclass(frozen=True)
class Search:
    """The search of an automaton, and what its arrays are called; it can be pickled."""

    text: str
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    registers: tuple[tuple[str, str], ...]  # arrays of live runs, and how they are held
    states: int
    labels: tuple[int, ...] = ()  # where ways are followed by labels: the label of each step
    is_plain: bool = False  # registers are Python objects: never compiled

    def paths(self, task: Task) -> Iterator[Paths]:
        """The matches of all groups, some at a time."""
        for found in self._calls(task):
            yield Paths(*(found[name] for name in MATCHES))

    def graphs(self, task: Task) -> Iterator[Graphs]:
        """The matches of all groups as graphs, one for each end."""
        for found in self._calls(task):
            yield Graphs(*(found[name] for name in GRAPHS if name != "out_number"))

    def _calls(self, task: Task) -> Iterator[Arrays]:
        """Call the function until it has visited every group; the outputs, as far as they are filled."""
        events = task.events
        arrays = {"times": events.times, "words": task.letters, **{name: getattr(events, name) for name in INPUTS[2:]}}
        arrays |= in_order(task.columns, events.rows) | self._work(len(task.letters))
        window = task.window_us or 0
        room, nodes = ROOM, 4 * ROOM
        status = -1
        call = compile.Call(self.text, len(task.letters), False if self.is_plain else task.jit)
        most_runs = MOST_PLAIN_RUNS if self.is_plain else MOST_RUNS
        while status != DONE:
            outputs = {
                name: np.empty(nodes if name in STEPS else room + (name == "out_to"), np.int64) for name in self.outputs
            }
            given: dict[str, Any] = {**arrays, **outputs, EVALUATOR: task.objects}
            status, count, steps, _ = call(window, task.most, *(given[name] for name in self.parameters))
            call.buys()
            if count:
                sizes = {name: steps if name in STEPS else count for name in outputs} | {"out_to": count + 1}
                yield {name: array[: sizes[name]] for name, array in outputs.items()}
            match status:
                case _ if status == TOO_MANY:
                    raise too_many_matches(task.most)
                case _ if status == GROW:
                    _grow(arrays, (*ARENA, "g_list", *(("stack_node",) if self.is_graphing else ())))
                    arrays["a_mark"][:] = -1
                case _ if status == WIDE:
                    if arrays["live_node"].shape[1] >= 2 * most_runs:
                        raise too_many_runs(most_runs)
                    _grow(arrays, (*LIVE, *(name for name, _ in self.registers)))
                    size = 4 * arrays["live_node"].shape[1]
                    arrays["h_stamp"], arrays["h_slot"] = np.full(size, -1, np.int64), np.zeros(size, np.int64)
                case _ if status == DEEP:
                    _grow(arrays, ("stack_node", "stack_depth", "path", *POOL[:-1]))
                case _ if status == FULL and not count:
                    room, nodes = 2 * room, 2 * nodes
                case _:
                    pass  # done, or full of what was yielded
            if status in (DONE, FULL) and room == ROOM:
                continue
            held = sum(arrays[name].nbytes for name in (*ARENA, *LIVE, *(name for name, _ in self.registers)))
            check_memory(held + sum(array.nbytes for array in outputs.values()), task.memory, copies=1)

    @property
    def is_graphing(self) -> bool:
        """Whether graphs come out."""
        return self.outputs == GRAPHS

    def _work(self, rows: int) -> Arrays:
        at = np.zeros(len(AT), np.int64)
        at[AT.index("place")] = -1
        return {
            "at": at,
            **{name: np.full(NODES, -1, np.int32) for name in (*ARENA, "g_list")},
            **{name: np.empty((2, RUNS), np.int32) for name in LIVE},
            **{name: np.empty((2, RUNS), DTYPES[held]) for name, held in self.registers},
            "h_stamp": np.full(4 * RUNS, -1, np.int64),
            "h_slot": np.zeros(4 * RUNS, np.int64),
            "s_stamp": np.full(self.states, -1, np.int64),
            "s_slot": np.zeros(self.states, np.int64),
            "stack_node": np.empty(NODES if self.is_graphing else DEPTH, np.int32),
            **{name: np.empty(DEPTH, np.int32) for name in ("stack_depth", "path")},
            "counts": np.zeros(rows, np.int32),
            **{name: np.empty(DEPTH, np.int32) for name in POOL},
            "pool_key": np.empty(DEPTH, np.int64),
            "labels": np.array(self.labels, np.int64),
        }


@dataclass(frozen=True)
class Replaying:
    """The derived events of matches, computed by a generated function from their steps; it can be pickled."""

    text: str
    inputs: tuple[str, ...]  # the names of what is given beside the steps of matches
    outputs: tuple[tuple[int, int, str], ...]  # template, field and how it is held
    is_plain: bool = False  # registers are Python objects: never compiled

    def values(
        self, paths: Paths, given: Mapping[str, Any], counts: Mapping[int, int], jit: bool | None = None
    ) -> dict[tuple[int, int], Sequence[Any]]:
        """The values of every field of every derived event, by template; NULLs are masked, or None among objects."""
        made: list[tuple[NDArray[Any], Mask]] = [
            (np.zeros(counts[template], DTYPES[held]), np.zeros(counts[template], np.bool_))
            for template, _, held in self.outputs
        ]
        inputs = (paths.offsets, paths.steps, paths.events, *(given[name] for name in self.inputs))
        call = compile.Call(self.text, len(paths.steps), False if self.is_plain else jit)
        call(*inputs, *(array for pair in made for array in pair))
        found: dict[tuple[int, int], Any] = {}
        for (template, place, held), (values, nulls) in zip(self.outputs, made, strict=True):
            if held == OBJECT:
                found[template, place] = values.tolist()
            else:
                found[template, place] = np.ma.MaskedArray(values, nulls) if nulls.any() else values
        return found


def in_order(columns: Columns, rows: Integers) -> Arrays:
    """The columns in the order of the events read; a column without NULLs has a mask of zeros."""
    arrays: Arrays = {}
    for place, (values, nulls) in enumerate(columns):
        arrays[f"c{place}"] = values[rows]
        arrays[f"n{place}"] = np.zeros(len(rows), np.bool_) if nulls is None else nulls[rows]
    return arrays


def _grow(arrays: Arrays, names: tuple[str, ...]) -> None:
    """Twice the room, with what is there."""
    for name in names:
        arrays[name] = np.concatenate((arrays[name], np.empty_like(arrays[name])), axis=-1)


def search_of(code: SearchCode) -> Search:
    """The search that code writes."""
    text = require_shallow(code.text())
    return Search(
        text,
        code.parameters,
        code.outputs,
        tuple(code.registers.arrays.items()),
        code.tables.automaton.number_of_states,
        code.tables.labels if code.follows_words else (),
        isinstance(code.registers, Objects),
    )


def replay_of(code: ReplayCode) -> Replaying:
    """The replay that code writes."""
    text = require_shallow(code.text())
    return Replaying(text, tuple(code.registers.parameters), code.outputs, isinstance(code.registers, Objects))


def too_many_matches(most: int) -> TooManyMatchesError:
    """One start has more matches than allowed."""
    return TooManyMatchesError(
        f"From one event on, the pattern has more than {most:,} matches.",
        hint="a shorter window, a stricter condition or `@+` in place of `+` has fewer matches; "
        '`form="compact"` holds any number of them; `max_matches_per_start=` moves the limit.',
    )


def too_many_runs(most: int) -> TooMuchSearchError:
    """A FILTER has to know more than can be followed."""
    return TooMuchSearchError(
        f"At one event more than {most:,} partial matches differ in what a FILTER still has to know of them.",
        hint="a shorter window or a stricter condition has fewer of them; a condition on the result of an AGG over `+` "
        "must know every value that some of the events can have.",
    )
