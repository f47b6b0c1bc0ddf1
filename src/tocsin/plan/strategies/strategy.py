"""A strategy: one way to run a rule.

A strategy states what it refuses and chooses a search, or joins, for the rest; it contains no loop. Engines know forms,
not strategies: to add a strategy of an existing form, write one file and register it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from tocsin.algebra import nodes as alg
from tocsin.errors import InternalError, UnsupportedError
from tocsin.options import BATCH, LOCAL, STREAM
from tocsin.plan.constructs import ON_SPARK

if TYPE_CHECKING:
    from tocsin.analysis.schema import BoundQuery
    from tocsin.kernels.searches import Search
    from tocsin.plan.plan import Plan

EVERYWHERE = frozenset({LOCAL, BATCH, STREAM})


class Form(Enum):
    """What an engine does with a rule."""

    SEARCH = "one exchange, then a search"
    CLUSTERED = "a search where the input lies, then one across the edges of its parts"
    TREND = "one exchange, then a count that builds no match"
    COUNTS = "window aggregates of Spark"
    JOINS = "joins of Spark"


class Strategy(ABC):
    """One way to run a rule."""

    name: ClassVar[str]  # what users call it
    form: ClassVar[Form] = Form.SEARCH  # what engines do with it
    places: ClassVar[frozenset[str]] = EVERYWHERE  # where it runs: locally, on batches, on streams

    @abstractmethod
    def refuses(self, query: alg.Query, *, engine: str = ON_SPARK, one_input: bool = True) -> UnsupportedError | None:
        """Why the strategy does not run a query, or None.

        Parameters
        ----------
        query
            The query.
        engine
            Where it is to run, in words.
        one_input
            Whether all events come from one DataFrame.
        """

    def requires(self, query: alg.Query, *, engine: str = ON_SPARK, one_input: bool = True) -> None:
        """Raise what the strategy refuses."""
        refusal = self.refuses(query, engine=engine, one_input=one_input)
        if refusal is not None:
            raise refusal

    def search(self, bound: BoundQuery) -> Search:
        """Compile a query that the strategy does not refuse; only for forms with a search."""
        raise InternalError(f"The strategy `{self.name}` has no search.")

    def slice_us(self, plan: Plan) -> int | None:
        """The width of time slices; None: as wide as the search makes them."""
        if plan.options.slice_us is not None or plan.options.known is None:
            return plan.options.slice_us
        return plan.choice.slice_us

    @abstractmethod
    def describe(self, plan: Plan) -> str:
        """What runs, in words."""

    def describe_query(self, query: alg.Query, slice_us: int | None) -> str | None:
        """What would run, as far as a query alone shows it; None where it shows nothing."""
        return None
