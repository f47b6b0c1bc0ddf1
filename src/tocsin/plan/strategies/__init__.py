"""Strategies, one file each: what each refuses, what it chooses to run, how it describes itself.

`STRATEGIES` lists all of them in the order in which `explain` shows them. `register` adds one from elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from tocsin import options
from tocsin.algebra import nodes as alg
from tocsin.errors import UnsupportedError
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
# Weighed only where they are asked for: the windows of the papers are there to compare with.
ON_REQUEST = (SLIDING_WINDOW.name, AUTOMATON.name, AGGREGATE.name)
# Where one of these is possible it is best, and otherwise not worth a word.
COUNTING = (COUNT.name, TREND.name)


def register(strategy: Strategy) -> None:
    """Make a strategy known to `match(strategy=)`; `auto` does not choose it."""
    STRATEGIES[strategy.name] = strategy
    options.STRATEGIES[strategy.name] = strategy.places


for _strategy in (JOIN, SLIDING_WINDOW, COUNT, TREND, KERNEL, CLUSTERED, AUTOMATON, AGGREGATE):
    register(_strategy)
BUILT_IN = frozenset(STRATEGIES)


def refusals(query: alg.Query, *, one_input: bool = True) -> Mapping[str, UnsupportedError | None]:
    """For each strategy the first construct that it cannot run, or None.

    Examples
    --------
    >>> a, b = alg.Event("A", "a"), alg.Repeat(alg.Event("B", "b"), 1, None)
    >>> query = alg.Query(alg.Within(alg.Sequence((a, b)), 10))
    >>> [name for name, refusal in refusals(query).items() if refusal is None and name in BUILT_IN]
    ['kernel', 'clustered', 'automaton', 'aggregate']
    """
    return {name: strategy.refuses(query, one_input=one_input) for name, strategy in STRATEGIES.items()}


def weighed(query: alg.Query, wanted: str = "auto", *, one_input: bool = True) -> list[tuple[str, str | None]]:
    """What the planner weighs: strategies, and why each cannot run.

    Counting is listed only where it is possible. An automaton is for what nothing else runs, and then there is nothing
    to weigh.
    """
    if wanted != AUTOMATON.name and KERNEL.refuses(query) is not None and AUTOMATON.refuses(query) is None:
        refusal = None if wanted == "auto" else STRATEGIES[wanted].refuses(query, one_input=one_input)
        counted = TREND.refuses(query) is None
        asked = [(wanted, refusal.message)] if refusal is not None else []
        able = [*([TREND.name] if counted else []), *([wanted] if wanted == AGGREGATE.name and not asked else [])]
        return [*asked, *((name, None) for name in (*able, AUTOMATON.name))]
    found: list[tuple[str, str | None]] = []
    for name, strategy in STRATEGIES.items():
        if name == wanted or (name in BUILT_IN and name not in ON_REQUEST):
            refusal = strategy.refuses(query, one_input=one_input)
            if name == wanted or name not in COUNTING or refusal is None:
                found.append((name, None if refusal is None else refusal.message))
    return found
