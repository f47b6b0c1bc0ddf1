"""Strategies, one file each: what each refuses, which search or joins it runs, how `explain` describes it.

`register` adds a strategy here and to `tocsin.options`, which checks `match(strategy=...)`. `STRATEGIES` lists all of
them in the order in which `explain` prints them.
"""

from __future__ import annotations

from collections.abc import Mapping

from tocsin import options
from tocsin.algebra import nodes as alg
from tocsin.errors import UnsupportedError
from tocsin.optimizer.choose import WEIGHED
from tocsin.plan.strategies.aggregate import AGGREGATE
from tocsin.plan.strategies.automaton import AUTOMATON
from tocsin.plan.strategies.clustered import CLUSTERED
from tocsin.plan.strategies.join import COUNT, JOIN, SLIDING_WINDOW
from tocsin.plan.strategies.kernel import KERNEL, refused_on_streams, searching, unsupported
from tocsin.plan.strategies.trend import TREND
from tocsin.plan.strategy import Strategy

__all__ = [
    "AGGREGATE",
    "AUTOMATON",
    "JOIN",
    "KERNEL",
    "STRATEGIES",
    "TREND",
    "Strategy",
    "refusals",
    "refused_on_streams",
    "register",
    "searching",
    "unsupported",
    "weighed",
]
STRATEGIES: dict[str, Strategy] = {}
# Where one of these is possible, it is best; elsewhere `explain` does not mention it.
COUNTING = (COUNT.name, TREND.name)


def register(strategy: Strategy) -> None:
    """Add a strategy that users ask for with `match(strategy=...)`; `auto` weighs only `optimizer.choose.WEIGHED`."""
    STRATEGIES[strategy.name] = strategy
    options.STRATEGIES[strategy.name] = strategy.places


for _strategy in (JOIN, SLIDING_WINDOW, COUNT, TREND, KERNEL, CLUSTERED, AUTOMATON, AGGREGATE):
    register(_strategy)


def refusals(query: alg.Query, *, one_input: bool = True) -> Mapping[str, UnsupportedError | None]:
    """For each strategy the first construct that it cannot run, or None.

    Examples
    --------
    >>> a, b = alg.Event("A", "a"), alg.Repeat(alg.Event("B", "b"), 1, None)
    >>> query = alg.Query(alg.Within(alg.Sequence((a, b)), 10))
    >>> found = refusals(query)
    >>> found["kernel"] is None, found["join"].message
    (True, 'The iteration of `b` does not run as joins.')
    """
    return {name: strategy.refuses(query, one_input=one_input) for name, strategy in STRATEGIES.items()}


def weighed(query: alg.Query, wanted: str = "auto", *, one_input: bool = True) -> list[tuple[str, str | None]]:
    """The strategies that the planner weighs, and why each cannot run: `WEIGHED`, and the one that is asked for.

    Counting is listed only where it is possible. An automaton is for what nothing else runs, and then there is nothing
    to weigh.
    """
    if wanted != AUTOMATON.name and KERNEL.refuses(query) is not None and AUTOMATON.refuses(query) is None:
        refusal = None if wanted == "auto" else STRATEGIES[wanted].refuses(query, one_input=one_input)
        counted = TREND.refuses(query) is None
        asked = [(wanted, refusal.message)] if refusal is not None else []
        also = [wanted] if wanted not in ("auto", TREND.name) and not asked else []
        able = [*([TREND.name] if counted else []), *also]
        return [*asked, *((name, None) for name in (*able, AUTOMATON.name))]
    found: list[tuple[str, str | None]] = []
    for name, strategy in STRATEGIES.items():
        if name == wanted or name in WEIGHED:
            refusal = strategy.refuses(query, one_input=one_input)
            if name == wanted or name not in COUNTING or refusal is None:
                found.append((name, None if refusal is None else refusal.message))
    return found
