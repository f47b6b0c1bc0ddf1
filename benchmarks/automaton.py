"""A textbook automaton for skip-till-any-match in plain Python: partial matches per state, extended event by event.

It is a contestant (inside Spark, `contestants/nfa.py`) and counts matches when thresholds are chosen. Needs no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.shapes import Shape

NEVER = 2**63 - 1
FEWEST = 16

# A partial match is (start, last time, last value, ids, blocked): plain tuples are the fastest that Python has.
# An event later than `blocked` cannot extend it any more.
Run = tuple[int, int, float, tuple[int, ...], int]
# A match is (start, end, ids, value of the last event).
Match = tuple[int, int, tuple[int, ...], float]


class Automaton:
    """Fed with events in order of time.

    Bit i of an event's flags: it may be the i-th of n positive steps. Bit n + i: it may be the i-th negated step.
    """

    def __init__(self, shape: Shape) -> None:
        self.window_us = shape.window_us
        self.gap = shape.gap
        self.final = len(shape.positives) - 1
        self.states = tuple(range(self.final, 0, -1))
        # The state whose partial matches a negated step blocks: those that have passed the positive step before it.
        self.guards: list[int] = []
        passed = -1
        for step in shape.steps:
            if step.is_negated:
                self.guards.append(passed)
            else:
                passed += 1
        self.reset()

    def reset(self) -> None:
        """Forget all partial matches: another stream begins."""
        self.runs: list[list[Run]] = [[] for _ in range(self.final)]
        # Expired partial matches are swept out when a state has doubled, so that sweeping costs a constant per event.
        self.sweep_at = [FEWEST] * self.final

    def feed(self, ts: int, flags: int, id: int, value: float, found: list[Match]) -> None:
        """Take one event, and add the matches that it completes to `found`."""
        oldest, gap = ts - self.window_us, self.gap
        for state in self.states:
            if not flags >> state & 1:
                continue
            runs = self.runs[state - 1]
            if len(runs) > self.sweep_at[state - 1]:
                runs = self._sweep(state - 1, oldest, ts)
            if gap is None:
                extended = [run for run in runs if run[0] > oldest and run[1] < ts <= run[4]]
            else:
                extended = [run for run in runs if run[0] > oldest and value > run[2] + gap and run[1] < ts <= run[4]]
            if state == self.final:
                found.extend([(run[0], ts, (*run[3], id), value) for run in extended])
            else:
                self.runs[state].extend([(run[0], ts, value, (*run[3], id), NEVER) for run in extended])
        if flags & 1:
            if self.final == 0:
                found.append((ts, ts, (id,), value))
            else:
                self.runs[0].append((ts, ts, value, (id,), NEVER))
        if self.guards:
            self._block(ts, flags >> (self.final + 1))

    def _sweep(self, state: int, oldest: int, ts: int) -> list[Run]:
        alive = [run for run in self.runs[state] if run[0] > oldest and run[4] >= ts]
        self.runs[state] = alive
        self.sweep_at[state] = max(FEWEST, 2 * len(alive))
        return alive

    def _block(self, ts: int, flags: int) -> None:
        for number, state in enumerate(self.guards):
            if flags >> number & 1:
                self.runs[state] = [
                    (*run[:4], ts) if run[1] < ts < run[4] else run for run in self.runs[state] if run[4] >= ts
                ]

    def matches(self, events: Iterable[tuple[int, int, int, float]]) -> Iterator[Match]:
        """The matches of a whole stream of (ts, flags, id, value)."""
        found: list[Match] = []
        for event in events:
            self.feed(*event, found)
            if found:
                yield from found
                found.clear()
