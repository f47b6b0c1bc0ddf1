"""Small event streams that come with Tocsin, for examples and a first try. No Spark and no download needed.

`bank` is one morning of a small bank, with account takeovers; `fraud` are 21 transfers and a claim, with money mules
and a refund scam (figure 7.3 of the dissertation that rules come from). Larger streams are made by
`datasets.diffusion` and `datasets.months`.

>>> from tocsin import datasets
>>> datasets.load("bank")[0]["type"]
'Login'
"""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from tocsin import errors

QUERIES = {"bank": ".sase", "fraud": ".parte"}
NAMES = tuple(QUERIES)
NUMBERS: dict[tuple[str, str], Callable[[str], Any]] = {
    ("bank", "amount"): float,
    ("fraud", "amount"): int,
    ("fraud", "id"): int,
    ("fraud", "transaction_id"): int,
}


def path(name: str) -> Path:
    """The CSV file of a bundled stream, to be read by Spark.

    >>> path("bank").name
    'bank.csv'
    """
    if name not in NAMES:
        raise errors.InvalidOptionError(
            f"There is no bundled stream `{errors.named(name)}`.", hint=errors.did_you_mean(name, NAMES, "bundled")
        )
    return Path(str(resources.files("tocsin.datasets") / f"{name}.csv"))


def pattern_path(name: str) -> Path:
    """The query, or the program of rules, that goes with a bundled stream.

    >>> pattern_path("bank").name, pattern_path("fraud").name
    ('bank.sase', 'fraud.parte')
    """
    return path(name).with_suffix(QUERIES[name])


def load(name: str) -> list[dict[str, Any]]:
    """The events of a bundled stream as plain rows, one list with a type column; what is empty is None.

    >>> sorted({event["type"] for event in load("bank")})
    ['Alert', 'Login', 'PasswordChange', 'Transfer']
    """

    def value(column: str, text: str) -> Any:
        if not text:
            return None
        if column == "ts":
            return dt.datetime.fromisoformat(text)
        return NUMBERS.get((name, column), str)(text)

    return [{column: value(column, text) for column, text in row.items()} for row in _rows(path(name))]


def known_routes() -> list[tuple[str, str]]:
    """The table `known_route` of the stream `fraud`: between whom money usually goes.

    >>> ("E", "F") in known_routes()
    True
    """
    return [(row["originator"], row["destination"]) for row in _rows(path("fraud").with_name("fraud_routes.csv"))]


def _rows(file: Path) -> Iterator[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)
