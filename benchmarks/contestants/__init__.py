"""Who runs a workload: each gives a table with `start`, `end` and the columns of the shape, one row per match.

All but `duckdb` and `polars`, which read the same Parquet files and give Arrow tables, build Spark DataFrames.

==============  =====================================================================================================
naive           joins with inequalities, as the query is written
hand            the best Spark plan an engineer would write; several are tried and the fastest counts
nfa             one operator with an automaton in plain Python, over sorted groups
duckdb          SQL for DuckDB, several plans (`benchmarks.local.duck`)
polars          expressions for Polars, several plans (`benchmarks.local.polar`)
limit           no matches: scan, filter, shuffle and sort of the columns that any plan with one shuffle must move
scan            no matches: scan and filter alone
tocsin          `tocsin.pattern(text).match(df)`, without the column `match_id`
tocsin+id       the same with `match_id`
tocsin:NAME     the same as tocsin with `strategy=NAME`
==============  =====================================================================================================
"""

from __future__ import annotations

from benchmarks.contestants import engine, limits, manual, naive, nfa
from benchmarks.local.contestants import on_files
from benchmarks.race import Build, Contestant


def contestants(
    *,
    strategies: tuple[str, ...] = (),
    all_variants: bool = True,
    cores: int = 2,
    time: str = "timestamp",
    timeout_s: float = 600.0,
) -> tuple[Contestant, ...]:
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
        *on_files(cores=cores, time=time, timeout_s=timeout_s),
        Contestant("limit", {"": limits.limit}, finds_matches=False),
        Contestant("scan", {"": limits.scan}, finds_matches=False),
        Contestant("tocsin", {"": engine.matcher()}),
        Contestant("tocsin+id", {"": engine.matcher(with_id=True)}),
        *(Contestant(f"tocsin:{name}", {"": engine.matcher(strategy=name)}) for name in strategies),
    )
