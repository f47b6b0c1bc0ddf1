"""`python -m benchmarks.fraud_state`: what a live program would hold of months of transfers, by its window.

A gathering (`FraudDiffusionInAll`) needs the events themselves: an incoming or outgoing transfer until its window has
passed. A chain of joins for `FraudDiffusion` also keeps what it has joined so far, pairs and triples. Both are counted
on the stream, at every instant; the peak is told, and how often the mean number of events of a window it is.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import session
from benchmarks.settings import parse_size, size
from tocsin.datasets.generated import Columns, Integers
from tocsin.datasets.months import DAY_US, Months, months

WINDOWS_DAYS = (1, 2, 4, 7, 14, 28)
LEAST_AMOUNT = 100
WIDE = 10**8  # more than there are accounts


def peak(births: Integers, deaths: Integers) -> int:
    """How many intervals [birth, death] share an instant, at most."""
    ends = np.searchsorted(np.sort(deaths), births, side="left")
    order = np.argsort(births, kind="stable")
    return int((np.arange(1, len(births) + 1) - ends[order]).max(initial=0))


def uncommon(stream: Months) -> Columns:
    """The transfers on unknown routes, in order of time."""
    transfers, routes = stream.transfers, stream.routes
    known = np.isin(
        transfers["originator"] * WIDE + transfers["destination"],
        routes["originator"] * WIDE + routes["destination"],
    )
    return Columns({name: values[~known] for name, values in transfers.items()})


def counted(transfers: Columns, days: int) -> dict[str, Any]:
    """The peaks for one window."""
    window = days * DAY_US
    times, originators, destinations = (transfers[name] for name in ("ts", "originator", "destination"))
    incoming = np.flatnonzero(transfers["amount"] >= LEAST_AMOUNT)
    by_originator = np.lexsort((times, originators))
    key = originators[by_originator] * WIDE
    at = (times - times[0]) // 1_000_000  # seconds are less than WIDE
    ordered = key + at[by_originator]
    low = np.searchsorted(ordered, destinations[incoming] * WIDE + at[incoming], side="left")
    high = np.searchsorted(ordered, destinations[incoming] * WIDE + at[incoming] + window // 1_000_000, side="right")
    numbers = high - low
    deaths = np.repeat(times[incoming] + window, numbers)
    places = np.repeat(low, numbers) + np.arange(numbers.sum()) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    pair_births = times[by_originator][places]
    rank = places - np.repeat(low, numbers)  # with the one of rank r, r triples are complete
    triple_births = np.repeat(pair_births, rank)
    return {
        "days": days,
        "mean_events": round(len(times) * min(1.0, window / (times[-1] - times[0]))),
        "events": peak(times, times + window),
        "pairs": peak(pair_births, deaths),
        "triples": peak(triple_births, np.repeat(deaths, rank)),
    }


def table(records: list[dict[str, Any]]) -> str:
    lines = [
        "| window, days | events that the gathering holds | ÷ rate × window | a chain of joins holds besides: pairs "
        "| triples |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {one['days']} | {one['events']:,} | {one['events'] / one['mean_events']:.2f} | {one['pairs']:,} | "
        f"{one['triples']:,} |"
        for one in records
    ]
    return "\n".join(lines)


def main() -> int:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.fraud_state",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--rows", default="10M", help="number of transfers (10M)")
    made.add_argument("--days", type=int, default=60, help="how long the stream is (60)")
    made.add_argument("--out", type=Path, default=Path("build/bench/fraud-state.json"), help="where the result goes")
    given = made.parse_args()
    rows = parse_size(given.rows)
    transfers = uncommon(months(rows, days=given.days))
    records = [counted(transfers, days) for days in WINDOWS_DAYS]
    result = {"environment": session.environment(rows=rows, days=given.days), "records": records}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{size(rows)} transfers in {given.days} days\n\n{table(records)}\n\nWritten: {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
