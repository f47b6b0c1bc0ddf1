"""`python -m benchmarks.fraud`: the shipped rules over months of transfers, with windows of 14 days.

Rules A, B (three transfers; all transfers) and C run in batch over `tocsin.datasets.months`. Every planned case must be
found and no near miss, and on a sample of accounts the matches must be those that DuckDB finds by SQL written by hand.
Runs take turns with the limit: a scan, the look-up of routes, the filter, one shuffle and a sort of the same columns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tocsin
from benchmarks import fraud_oracle, session
from benchmarks.settings import parse_size, size
from tocsin import datasets
from tocsin.datasets.months import Months, months

# How many accounts' matches are compared with the oracle.
SAMPLE = 2000


@dataclass(frozen=True)
class Question:
    """A rule, its scenario, and whether only transfers on unknown routes take part."""

    rule: str
    scenario: str
    title: str
    only_unknown: bool = True


QUESTIONS = (
    Question("FraudPassThrough", "A", "A: passed on"),
    Question("FraudDiffusion", "B", "B: in three parts"),
    Question("FraudDiffusionInAll", "B", "B: in any number of parts"),
    Question("FraudRefundScam", "C", "C: sent back and claimed", only_unknown=False),
)


def made(transfers: int, days: int, seed: int, folder: Path) -> tuple[Path, Months]:
    """The stream, and its files, which are written once."""
    stream = months(transfers, days=days, seed=seed)
    place = folder / f"months-{size(transfers)}-{days}-{seed}"
    if not (place / "done").exists():
        stream.write(place)
        (place / "done").touch()
    return place, stream


def program() -> tocsin.Rules:
    """The shipped rules, with known routes as an attribute of transfers."""
    text = datasets.pattern_path("fraud").read_text(encoding="utf-8")
    text = text.replace("known_route(originator, destination)", "is_known")
    return tocsin.rules(text.replace("amount      : Amount,", "amount      : Amount, is_known : Boolean", 1))


def inputs(spark: SparkSession, question: Question, place: Path) -> dict[str, DataFrame]:
    """The files; whether the route of a transfer is known is looked up when they are read, where a rule asks."""
    claims = spark.read.parquet(str(place / "claims")).withColumn("reason", F.lit("sent by mistake"))
    transfers = spark.read.parquet(str(place / "transfers"))
    if question.only_unknown:
        routes = spark.read.parquet(str(place / "routes")).withColumn("is_known", F.lit(True))
        transfers = transfers.join(routes, ["originator", "destination"], "left")
        transfers = transfers.withColumn("is_known", F.coalesce("is_known", F.lit(False)))
    return {"MoneyTransferred": transfers, "FraudulentTransactionClaimed": claims}


def limit(question: Question, transfers: DataFrame) -> DataFrame:
    """What any plan with one shuffle does with the transfers that can take part."""
    if question.only_unknown:
        return transfers.filter("NOT is_known").repartition("originator").sortWithinPartitions("originator", "ts")
    keys = ["originator", "destination"]
    return transfers.repartition(*keys).sortWithinPartitions(*keys, "ts")


def found_ids(rule: str, matches: DataFrame) -> list[tuple[Any, ...]]:
    """Each match as the ids of its transfers; what was gathered as their number and sum."""
    names = [name for name in matches.columns if name not in ("match_id", "start", "end", "claim")]
    columns = []
    for name in names:
        if name == "outgoing" and rule == "FraudDiffusionInAll":
            columns += [F.size(name), F.aggregate(F.col(f"{name}.amount"), F.lit(0).cast("bigint"), lambda a, b: a + b)]
        else:
            columns.append(F.col(f"{name}.id"))
    table = matches.select(F.col("incoming.destination").alias("account"), *columns).toPandas()
    return [tuple(int(value) for value in row) for row in table.itertuples(index=False)]


def judged(question: Question, found: list[tuple[Any, ...]], stream: Months, place: Path) -> dict[str, Any]:
    """Compare with the truth and with the oracle."""
    mules = set(stream.mules[question.scenario].tolist())
    planned = {tuple(case) for case in stream.cases[question.scenario].tolist()}
    mine = {row[1:] for row in found if row[0] in mules}
    if question.rule == "FraudDiffusionInAll":
        mine, planned = {row[:1] for row in mine}, {case[:1] for case in planned}
    accounts = sample_of(stream, found)
    wanted = fraud_oracle.matches(question.rule, place, accounts)
    sampled = sorted(row for row in found if row[0] in set(accounts))
    return {
        "planned": len(planned),
        "planned_found": len(planned & mine),
        "near_misses_found": len(mine - planned),
        "sampled": len(wanted),
        "is_exact": sampled == wanted,
    }


def sample_of(stream: Months, found: list[tuple[Any, ...]]) -> list[int]:
    """Accounts of matches and any others: of each half as many."""
    chance = np.random.default_rng(0)
    known = np.unique(np.array([row[0] for row in found], dtype=np.int64))
    anyone = np.unique(stream.transfers["destination"])
    some = [chance.permutation(accounts)[: SAMPLE // 2] for accounts in (known, anyone)]
    return [int(account) for account in np.unique(np.concatenate(some))]


def _run(build: Callable[[], DataFrame]) -> float:
    """Seconds to plan and to run, into a sink that keeps nothing."""
    began = time.perf_counter()
    build().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def measure(spark: SparkSession, question: Question, place: Path, stream: Months, repeat: int) -> dict[str, Any]:
    given = inputs(spark, question, place)
    rules = program()

    def matched() -> DataFrame:
        found: DataFrame = rules.matches(question.rule, given)
        return found

    found = found_ids(question.rule, matched())
    record = {"rule": question.rule, "title": question.title, "matches": len(found)}
    record |= judged(question, found, stream, place)
    # The run whose matches were compared has warmed up.
    times: dict[str, list[float]] = {"tocsin": [], "limit": []}
    for _ in range(repeat):
        for name, build in (("limit", lambda: limit(question, given["MoneyTransferred"])), ("tocsin", matched)):
            times[name].append(_run(build))
    return record | {"times": times, "seconds": {name: statistics.median(some) for name, some in times.items()}}


def table(records: list[dict[str, Any]], rows: int) -> str:
    lines = [
        "| rule | matches | planned cases found | equal to DuckDB on a sample | M transfers/s | ÷ limit |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in records:
        seconds = one["seconds"]
        lines.append(
            f"| {one['title']} | {one['matches']:,} | {one['planned_found']:,} of {one['planned']:,} | "
            f"{'yes' if one['is_exact'] else '**no**'}, {one['sampled']:,} matches | "
            f"{rows / seconds['tocsin'] / 1e6:.2f} | {seconds['limit'] / seconds['tocsin']:.2f} |"
        )
    return "\n".join(lines)


def main() -> int:
    made_parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fraud", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made_parser.add_argument
    add("--rows", default="10M", help="number of transfers (10M)")
    add("--days", type=int, default=60, help="how long the stream is (60)")
    add("--only", nargs="+", metavar="RULE", help="rules to measure (all)")
    add("--repeat", type=int, default=3, help="timed runs (3)")
    add("--seed", type=int, default=1, help="seed of the stream (1)")
    add("--data", type=Path, default=Path("build/bench-data"), help="where the stream is kept")
    add("--out", type=Path, default=Path("build/bench/fraud.json"), help="where the result goes")
    given = made_parser.parse_args()
    rows = parse_size(given.rows)
    place, stream = made(rows, given.days, given.seed, given.data)
    spark = session.start(cores=2, partitions=8, memory="6g", scratch=given.data / "spark")
    records = []
    for question in QUESTIONS:
        if not given.only or question.rule in given.only:
            records.append(measure(spark, question, place, stream, given.repeat))
            print(f"  {question.title}: {json.dumps(records[-1])}", flush=True)
    result = {"environment": session.environment(rows=rows, days=given.days), "records": records}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\n{size(rows)} transfers in {given.days} days\n\n{table(records, rows)}\n\nWritten: {given.out}")
    spark.stop()
    good = (
        one["is_exact"] and one["planned_found"] == one["planned"] and not one["near_misses_found"] for one in records
    )
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
