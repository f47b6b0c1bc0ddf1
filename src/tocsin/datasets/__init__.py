"""Small event streams that come with Tocsin, for examples and a first try. No Spark and no download needed.

>>> from tocsin import datasets
>>> datasets.load("bank")[0]["type"]
'Login'
"""

from __future__ import annotations

import csv
import datetime as dt
from importlib import resources
from pathlib import Path
from typing import Any

from tocsin import errors

NAMES = ("bank",)


def path(name: str) -> Path:
    """The CSV file of a bundled stream, to be read by Spark.

    Examples
    --------
    >>> path("bank").name
    'bank.csv'
    """
    if name not in NAMES:
        raise errors.InvalidOptionError(
            f"There is no bundled stream `{name}`.", hint=errors.did_you_mean(name, NAMES, "bundled")
        )
    return Path(str(resources.files("tocsin.datasets") / f"{name}.csv"))


def pattern_path(name: str) -> Path:
    """The query that goes with a bundled stream."""
    return path(name).with_suffix(".sase")


def load(name: str) -> list[dict[str, Any]]:
    """The events of a bundled stream as plain rows, one list with a type column.

    Examples
    --------
    >>> sorted({event["type"] for event in load("bank")})
    ['Alert', 'Login', 'PasswordChange', 'Transfer']
    """
    with path(name).open(encoding="utf-8", newline="") as file:
        return [
            {
                **row,
                "ts": dt.datetime.fromisoformat(row["ts"]),
                "amount": float(row["amount"]) if row["amount"] else None,
                "country": row["country"] or None,
                "home": row["home"] or None,
            }
            for row in csv.DictReader(file)
        ]
