"""`Strategy`, one way to run a query, and the constructs that only some strategies run.

A strategy refuses the queries that it cannot run, and chooses a search or joins for the others. It contains no loop:
engines run its `form`. To add a strategy of an existing form, write one file in `plan/strategies/` and register it;
CONTRIBUTING.md describes how. The functions above the class find predicates of ACEL, constructs of rules and values
that Python computes, so that all strategies refuse them in the same words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from tocsin.algebra import nodes as alg
from tocsin.errors import InternalError, UnsupportedError
from tocsin.gaps import Gaps
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.ast import Selection
from tocsin.language.sase.printer import print_expression
from tocsin.optimizer.query_parts import OF_RULES, alone, is_pythons
from tocsin.options import BATCH, LOCAL, STREAM
from tocsin.source import Where

if TYPE_CHECKING:
    from tocsin.analysis.schema import BoundQuery
    from tocsin.kernels.reach import Search
    from tocsin.plan.plan import Plan


ON_SPARK, LOCALLY = "on Spark", "locally"
HINT = "`tocsin.reference.evaluate(pattern, rows)` runs every pattern on plain Python rows."
ANY_TYPE = "No language writes an event of any type, and no engine runs one."
CONTIGUOUS = (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS)


def counts_other_types(query: alg.Query) -> bool:
    """Whether events of types that the pattern does not name change what is found: by who stands beside whom (R17)."""
    by_neighbours = (alg.Adjacent, alg.RepeatAdjacent, alg.NextOf)
    return query.selection in CONTIGUOUS or any(isinstance(node, by_neighbours) for node in query.pattern.walk())


def refused_as_rule(query: alg.Query, engine: str) -> UnsupportedError | None:
    """The first construct of a rule that no strategy runs yet, or None."""
    found = of_rules(query, engine)
    if found is None:
        return None
    gap, construct, where = found
    return UnsupportedError(f"{construct} does not run {engine} yet.", gap=gap, where=where)


def foreign_expression(query: alg.Query) -> tuple[str, Where] | None:
    """The first expression that joins and loops do not compute, in words, and its place; None when there is none.

    Examples
    --------
    >>> one = alg.Filter(alg.Event("A", "A"), ex.Every("A", ex.Attribute("A", ("x",))))
    >>> foreign_expression(alg.Query(one))
    ('The predicate `A[x]` of a FILTER', None)
    """
    found = _first(query.expressions(), lambda node: isinstance(node, ex.Every | ex.BagPredicate))
    return None if found is None else (f"The predicate `{print_expression(found)}` of a FILTER", found.where)


def of_rules(query: alg.Query, engine: str) -> tuple[Gaps, str, Where] | None:
    """The first construct of a rule that no strategy runs: its gap, its words and its place; None when all run."""
    for owner, conjunct in _conjuncts_of(query):
        for part in conjunct.walk():
            if isinstance(part, rx.InTable) and part.table.rows is None:
                if engine != ON_SPARK:
                    return Gaps.TABLE_OF_SPARK, f"The table `{part.name}`, which is a DataFrame,", part.where
                if owner is None or alone(conjunct) != owner:
                    construct = f"The table `{part.name}`, a DataFrame for several events,"
                    return Gaps.TABLE_OF_SEVERAL_EVENTS, construct, part.where
    return None


def _conjuncts_of(query: alg.Query) -> Iterator[tuple[str | None, ex.Expression]]:
    """Every conjunct with the variable that it may be a condition on alone, then all values, which are of none."""
    gathered = {node.variable for node in alg.gatherings_in(query.pattern)}
    for node in query.pattern.walk():
        match node:
            case alg.Filter():
                for conjunct in ex.conjuncts(node.condition):
                    only = alone(conjunct)
                    yield (None if only in gathered else only), conjunct
            case alg.Around():
                yield from ((node.variable, conjunct) for conjunct in ex.conjuncts(node.condition))
            case _:
                continue
    yield from ((None, expression) for expression in query.outputs)


def only_in_kernels(query: alg.Query) -> tuple[str, Where] | None:
    """The first thing of a rule that kernels run, and joins and automata do not."""
    for node in alg.gatherings_in(query.pattern):
        return "`all` of a rule", node.where
    if query.unordered:
        return "`unordered`", query.pattern.where
    found = _first(query.conditions(), lambda node: isinstance(node, OF_RULES))
    return None if found is None else (f"`{print_expression(found)}` of a rule", found.where)


def of_python(query: alg.Query) -> tuple[str, Where] | None:
    """The first value that Python computes and joins do not, in words, and its place."""
    found = _first(query.expressions(), is_pythons)
    return None if found is None else (f"`{print_expression(found)}`", found.where)


def _first(expressions: Iterable[ex.Expression], wanted: Callable[[ex.Expression], bool]) -> ex.Expression | None:
    return next((node for expression in expressions for node in expression.walk() if wanted(node)), None)


# --- strategies -----------------------------------------------------------------------------------


EVERYWHERE = frozenset({LOCAL, BATCH, STREAM})


class Form(Enum):
    """What an engine does with a rule."""

    SEARCH = "one exchange, then a search"
    CLUSTERED = "a search where the input lies, then one across the edges of its parts"
    TREND = "one exchange, then a count that builds no match"
    COUNTS = "window aggregates of Spark"
    JOINS = "joins of Spark"


class Strategy(ABC):
    """One way to run a query. `NestedLoops` in `plan/strategies/kernel.py` is the base of strategies with loops."""

    name: ClassVar[str]  # for `match(strategy=...)`
    form: ClassVar[Form] = Form.SEARCH  # how engines run it
    places: ClassVar[frozenset[str]] = EVERYWHERE  # where it runs: locally, on batches, on streams

    @abstractmethod
    def refuses(self, query: alg.Query, *, engine: str = ON_SPARK, one_input: bool = True) -> UnsupportedError | None:
        """Return the error for the first construct that the strategy cannot run, or None.

        `engine` ends a message, `ON_SPARK` or `LOCALLY`; `one_input` is whether all events come from one DataFrame.
        Return `OptionRefusedError` if another strategy runs the query, and `UnsupportedError` with a gap if none does.
        """

    def requires(self, query: alg.Query, *, engine: str = ON_SPARK, one_input: bool = True) -> None:
        """Raise the error of `refuses`."""
        refusal = self.refuses(query, engine=engine, one_input=one_input)
        if refusal is not None:
            raise refusal

    def search(self, bound: BoundQuery) -> Search:
        """Compile a query that the strategy does not refuse; only for forms with a search."""
        raise InternalError(f"The strategy `{self.name}` has no search.")

    def slice_us(self, plan: Plan) -> int | None:
        """Return the width of time slices on a Spark batch; None for 16 times the reach of the pattern.

        Slices are never narrower than the reach of the pattern, so that an event lies in few of them
        (`kernels.reach.width_us`). The local engine and streams have no slices and ignore the width.
        """
        if plan.options.slice_us is not None or plan.options.known is None:
            return plan.options.slice_us
        return plan.choice.slice_us

    @abstractmethod
    def describe(self, plan: Plan) -> str:
        """Return the lines that `explain` prints: what is scanned, shuffled and searched.

        `explain` without inputs makes a plan without types, in which only the search and the joins can be read.
        """
