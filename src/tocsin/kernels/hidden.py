"""Bags that need not be built, because the result has only aggregates of them that sums and extremes give (D50)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tocsin.algebra import nodes as alg
from tocsin.analysis.types import Kind
from tocsin.kernels.expressions.leaves import Test
from tocsin.kernels.expressions.prefixes import SUMMED
from tocsin.kernels.ranges import RANGED
from tocsin.language import expressions as ex

NUMBERS = (Kind.INTEGER, Kind.DOUBLE)


def aggregates_only(
    returns: Iterable[alg.Returned], names: Iterable[str], prepare: Callable[[ex.Expression], Test | None]
) -> dict[ex.Expression, Test]:
    """The aggregates of those variables of which nothing else is asked, each in a test that kernels can compute.

    A result without named values shows every event. `prepare` makes a test of a condition, or None.
    """
    spoken = [node for returned in returns for node in _mentions(returned.expression)]
    found: dict[ex.Expression, Test] = {}
    for name in names if spoken else ():
        own = dict.fromkeys(node for node in spoken if name in ex.variables_in(node))
        tests = {node: _test(node, prepare) for node in own}
        found |= {node: test for node, test in tests.items() if test is not None} if None not in tests.values() else {}
    return found


def of_range(
    query: alg.Query, name: str, prepare: Callable[[ex.Expression], Test | None]
) -> tuple[dict[ex.Expression, Test], frozenset[str]] | None:
    """The aggregates of a variable whose bags are ranges of a list, and the variable unless its edges are shown too.

    None when the result shows more than aggregates and the first or last event, so that bags are built.
    """
    outputs = [*(each.expression for each in query.returns), *([query.having] if query.having else [])]
    spoken = dict.fromkeys(node for output in outputs for node in _mentions(output) if name in ex.variables_in(node))
    tests = {node: _test(node, prepare, RANGED) for node in spoken if not _is_edge(node)}
    known = {node: test for node, test in tests.items() if test is not None}
    if len(known) < len(tests):
        return None
    return known, frozenset({name} if len(known) == len(spoken) else ())


def _is_edge(node: ex.Expression) -> bool:
    """Whether only the first or the last event of a bag is needed."""
    match node:
        case ex.Aggregate(function="first" | "last"):
            return not node.distinct
        case ex.Attribute(index=ex.Edge() | ex.Fixed(number=1)):
            return True
        case _:
            return False


def _mentions(node: ex.Expression) -> Iterator[ex.Expression]:
    """The aggregates of an expression, and what it says of events outside them."""
    if isinstance(node, ex.Aggregate | ex.Attribute | ex.Variable):
        yield node
        return
    for child in node.children():
        yield from _mentions(child)


def _test(
    node: ex.Expression, prepare: Callable[[ex.Expression], Test | None], functions: frozenset[str] = SUMMED
) -> Test | None:
    if not isinstance(node, ex.Aggregate) or node.function not in functions or node.distinct:
        return None
    test = prepare(ex.Comparison("=", node, ex.Literal(0)))
    return test if test is not None and len(test.folds) == 1 and test.folds[0].kind in NUMBERS else None
