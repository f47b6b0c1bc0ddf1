"""A search: a query compiled to something that finds its matches among rows, whatever the algorithm.

Engines read a search's attributes to decide what of an event is shipped, call `find`, and ask nothing else.

class       algorithm
-----       ---------
Kernel      nested loops over lists of candidates
RunKernel   a register automaton that reads events in order
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tocsin.analysis.types import Kind
from tocsin.automata import most_events
from tocsin.automata.model import Automaton
from tocsin.kernels.model import Carried, Matches, Rows, Source, Template
from tocsin.kernels.reach import Reach
from tocsin.language import expressions as ex
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY


@dataclass(frozen=True, kw_only=True)
class Search(Reach, ABC):
    """A compiled query. It can be pickled; generated code is compiled where it runs."""

    sources: tuple[Source, ...]  # the candidates that flags of rows stand for: a bit each
    carried: tuple[Carried, ...]  # the columns its rows bring, beside time, flags and partition
    types: tuple[str, ...]  # the event types of the pattern, sorted; `Rows.kinds` counts in it
    wants: Mapping[str, tuple[str, ...]]  # by event type, the attributes that `Rows.event` must return
    # Whether matches are found link by link, because a policy leaves at most one event to each next element.
    walks: bool = False

    @abstractmethod
    def find(
        self, rows: Rows, *, most: int = MOST_MATCHES_PER_START, memory: int = MOST_MEMORY, jit: bool | None = None
    ) -> Iterator[Matches]:
        """Find the matches of a task's rows, some at a time; none twice.

        Raises an error when one start has more than `most` matches, or when those that must be held at once take more
        than `memory` bytes. `jit` is whether to compile; None: when there are many rows.
        """

    # --- rows -------------------------------------------------------------------------------------

    @property
    def numbers(self) -> dict[str, str]:
        """The short names of its sources in generated code."""
        return {source.variable: f"v{number}" for number, source in enumerate(self.sources)}

    @property
    def needs_kinds(self) -> bool:
        """Whether `Rows.kinds` is needed."""
        return any(len(source.types) > 1 for source in self.sources)

    @property
    def automaton(self) -> Automaton | None:
        """The automaton that reads the events; None: the search is not one."""
        return None

    @property
    def has_variables(self) -> bool:
        """Whether sources are variables of the pattern: each has its types, and a lifetime on streams."""
        return self.automaton is None

    @property
    def most_events(self) -> int | None:
        """The most events of a match, where an automaton bounds them."""
        return None if self.automaton is None else most_events(self.automaton)

    # --- matches ----------------------------------------------------------------------------------

    @property
    def templates(self) -> tuple[Template, ...]:
        """The kinds of events that matches make."""
        return ()

    @property
    def aggregates(self) -> Mapping[ex.Expression, Kind]:
        """The aggregates that matches bring in place of bags, and their types."""
        return {}

    @property
    def hidden(self) -> frozenset[str]:
        """The variables whose events matches do not bring."""
        return frozenset()

    @property
    def hides_events(self) -> bool:
        """Whether no variable need hold the first and the last event of a match (R8, R22)."""
        return False

    @property
    def binds_rows(self) -> bool:
        """Whether a match brings every event that it binds, and each is a row: ids of events then identify it."""
        return self.automaton is None
