"""Who runs a workload: each gives a DataFrame with `start`, `end` and the columns of the shape, one row per match.

==============  =====================================================================================================
naive           joins with inequalities, as the query is written
hand            the best Spark plan an engineer would write; several are tried and the fastest counts
nfa             one operator with an automaton in plain Python, over sorted groups
limit           no matches: scan, filter, shuffle and sort of the columns that any plan with one shuffle must move
scan            no matches: scan and filter alone
tocsin          `tocsin.pattern(text).match(df)`, without the column `match_id`
tocsin+id       the same with `match_id`
tocsin:NAME     the same as tocsin with `strategy=NAME`
==============  =====================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from benchmarks.calibrate import Ready
from benchmarks.contestants import engine, limits, manual, naive, nfa

Build = Callable[[DataFrame, Ready], DataFrame]


@dataclass(frozen=True)
class Contestant:
    """One row of a result: its plans by name (the fastest counts), and whether it finds matches at all."""

    name: str
    variants: dict[str, Build]
    finds_matches: bool = True


def contestants(*, strategies: tuple[str, ...] = (), all_variants: bool = True) -> tuple[Contestant, ...]:
    """All contestants, in the order of the report."""
    by_hand: dict[str, Build] = {
        "buckets": manual.buckets,
        "arrays": manual.arrays,
        "wide buckets": manual.wide_buckets,
        "chain": manual.chain,
    }
    by_automaton: dict[str, Build] = {"partitions": nfa.partitions, "groups": nfa.groups}
    if not all_variants:
        by_hand = {name: by_hand[name] for name in ("buckets", "arrays")}
        by_automaton = {"partitions": nfa.partitions}
    return (
        Contestant("naive", {"": naive.theta}),
        Contestant("hand", by_hand),
        Contestant("nfa", by_automaton),
        Contestant("limit", {"": limits.limit}, finds_matches=False),
        Contestant("scan", {"": limits.scan}, finds_matches=False),
        Contestant("tocsin", {"": engine.matcher()}),
        Contestant("tocsin+id", {"": engine.matcher(with_id=True)}),
        *(Contestant(f"tocsin:{name}", {"": engine.matcher(strategy=name)}) for name in strategies),
    )
