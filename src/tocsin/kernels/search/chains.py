"""A look ahead for iterations with conditions between neighbours: which candidates begin a choice that is long enough.

Among n candidates in a window there are exponentially many ways to begin an iteration such as nine rising values, and
few of them may have an end. `chains[i · length + k]` is the earliest time at which k more events can follow candidate
i, each a neighbour of the one before that the conditions accept. A walk that takes i only where enough of them end
within the window has no dead ends left that neighbours decide.

The table costs a look at every pair of candidates in one window, so that it is made for a group only once the walk has
made more choices there than an easy one would.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.kernels.expressions.slots import Test
from tocsin.kernels.search.conditions import Candidate, Checks
from tocsin.kernels.search.state import Many
from tocsin.kernels.search.writer import Writer
from tocsin.language import expressions as ex
from tocsin.optimizer.query_parts import is_between_neighbours

# Choices per candidate of a group after which its table is made.
EASY = 8
# Longer iterations look as far as this.
MOST_AHEAD = 16


@dataclass(frozen=True)
class Chains:
    """The table of one iteration, and the code that makes and reads it."""

    writer: Writer
    checks: Checks
    variable: str
    name: str
    least: int
    window_us: int
    tests: tuple[Test, ...]

    @property
    def table(self) -> str:
        """The name of its array."""
        return f"chains_{self.name}"

    @property
    def length(self) -> int:
        """How many numbers it holds for a candidate."""
        return min(self.least, MOST_AHEAD)

    @property
    def beginnings(self) -> tuple[str, ...]:
        """What a group begins with."""
        return (f"choices_{self.name} = 0", f"is_ahead_{self.name} = False")

    def make_when_hard(self) -> None:
        """Count a choice; at one too many, fill the table from the last candidate of the group to the first."""
        writer, name = self.writer, self.name
        writer.line(f"choices_{name} += 1")
        with writer.block(f"if not is_ahead_{name} and choices_{name} > {EASY} * (z_{name} - a_{name}):"):
            writer.line(f"is_ahead_{name} = True")
            with writer.block(f"for one_{name} in range(z_{name} - 1, a_{name} - 1, -1):"):
                self._fill()

    def _fill(self) -> None:
        writer, name, table, length = self.writer, self.name, self.table, self.length
        one, other, step = f"one_{name}", f"other_{name}", f"step_{name}"
        writer.line(f"{table}[{one} * {length}] = ts_{name}[{one}]")
        with writer.block(f"for {step} in range(1, {length}):"):
            writer.line(f"{table}[{one} * {length} + {step}] = MOST")
        writer.line(f"{other} = first_after(ts_{name}, ts_{name}[{one}], {one} + 1, z_{name})")
        writer.line(f"last_{name} = plus(ts_{name}[{one}], {self.window_us - 1})")
        pair = Many(self.pair, "0", "1")
        writer.line(f"{self.pair}[0] = {one}")
        with writer.block(f"while {other} < z_{name} and ts_{name}[{other}] <= last_{name}:"):
            candidate = Candidate(self.variable, other, "1")
            tests = [self.checks.check(test, {self.variable: pair}, candidate) for test in self.tests]
            with writer.condition(*filter(None, tests)), writer.block(f"for {step} in range(1, {length}):"):
                least = f"min({table}[{one} * {length} + {step}], {table}[{other} * {length} + {step} - 1])"
                writer.line(f"{table}[{one} * {length} + {step}] = {least}")
            writer.line(f"{other} += 1")

    @property
    def pair(self) -> str:
        """The name of the array that holds the first of two neighbours."""
        return f"pair_{self.name}"

    def goes_on(self, index: str, number: str, latest: str) -> str:
        """The condition that a candidate, taken as event `number` (from 0), can be followed by all that must follow."""
        ahead = f"min({self.least - 1} - {number}, {self.length - 1})"
        reached = f"{self.table}[{index} * {self.length} + {ahead}] <= {latest}"
        return f"(not is_ahead_{self.name} or {number} >= {self.least} or {reached})"


def between_neighbours(test: Test, variable: str) -> bool:
    """Whether a conjunct speaks of every two neighbours of an iteration, and of nothing else."""
    is_own = ex.variables_in(test.conjunct) == {variable} and not test.folds
    return is_own and is_between_neighbours(test.conjunct)
