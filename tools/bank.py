"""The stream `bank`: one morning of logins, password changes, transfers and alerts of a small bank.

Most of it is everyday noise. Three accounts are taken over: somebody logs in from a country that is not the customer's,
sets a new password and sends a large amount, all within a quarter of an hour. Four other customers come close and are
innocent: one is travelling, one sends too little, one takes too long, one changes the password first.

`python tools/bank.py > src/tocsin/datasets/bank.csv` writes the bundled file.
"""

from __future__ import annotations

import csv
import datetime as dt
import random
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO, TypeVar

Event = dict[str, Any]
Item = TypeVar("Item")

COLUMNS = ("type", "ts", "user", "country", "home", "amount")
MORNING = dt.datetime(2026, 3, 2, 8, 0, tzinfo=dt.UTC)
HOMES = {
    "ada": "GB",
    "bela": "HU",
    "chloe": "FR",
    "dmitri": "EE",
    "emre": "TR",
    "freya": "DK",
    "goran": "HR",
    "hana": "CZ",
    "iris": "PT",
    "jonas": "DE",
    "kaia": "NO",
    "luca": "IT",
}
COUNTRIES = ("BR", "CA", "IN", "SG", "US", "VN", "ZA")


def events(seed: int = 7) -> list[Event]:
    """The events in order of time; the same seed gives the same events on every machine.

    Examples
    --------
    >>> len(events()), events()[0]["user"]
    (154, 'goran')
    """
    # Of `random`, only `random()` is promised to give the same numbers in every Python.
    dice = random.Random(seed)
    made = [*_noise(dice), *_takeovers(dice), *_innocent()]
    return sorted(made, key=lambda event: (event["ts"], event["user"], event["type"]))


def _pick(dice: random.Random, items: Sequence[Item]) -> Item:
    return items[int(dice.random() * len(items))]


def _between(dice: random.Random, low: float, high: float) -> float:
    return low + dice.random() * (high - low)


def _event(type: str, user: str, minutes: float, *, country: str | None = None, amount: float | None = None) -> Event:
    ts = MORNING + dt.timedelta(seconds=round(minutes * 60))
    home = HOMES[user] if type == "Login" else None
    return {"type": type, "ts": ts, "user": user, "country": country, "home": home, "amount": amount}


def _noise(dice: random.Random) -> Iterator[Event]:
    for user, home in HOMES.items():
        for _ in range(4):
            at = _between(dice, 0, 220)
            yield _event("Login", user, at, country=home)
            for _ in range(int(dice.random() * 4)):
                at += _between(dice, 1, 6)
                amount = round(_between(dice, 5, 400), 2)
                yield _event("Transfer", user, at, amount=amount)
        if dice.random() < 0.5:
            yield _event("PasswordChange", user, _between(dice, 0, 220))
        if dice.random() < 0.6:
            yield _event("Alert", user, _between(dice, 0, 220))


def _takeovers(dice: random.Random) -> Iterator[Event]:
    for user, at in (("chloe", 42.0), ("jonas", 118.0), ("iris", 171.0)):
        yield _event("Login", user, at, country=_pick(dice, COUNTRIES))
        changed = at + _between(dice, 1, 5)
        yield _event("PasswordChange", user, changed)
        sent = changed + _between(dice, 2, 8)
        yield _event("Transfer", user, sent, amount=round(_between(dice, 1500, 9000), 2))
        if dice.random() < 0.7:
            yield _event("Alert", user, sent + _between(dice, 10, 30))


def _innocent() -> Iterator[Event]:
    # Travelling: no new password.
    yield _event("Login", "kaia", 60, country="US")
    yield _event("Transfer", "kaia", 64, amount=2400.0)
    # Too little.
    yield _event("Login", "emre", 95, country="CA")
    yield _event("PasswordChange", "emre", 97)
    yield _event("Transfer", "emre", 101, amount=80.0)
    # Too late: sixteen minutes from login to transfer.
    yield _event("Login", "hana", 140, country="SG")
    yield _event("PasswordChange", "hana", 149)
    yield _event("Transfer", "hana", 156, amount=3100.0)
    # The password was changed before the login from abroad.
    yield _event("PasswordChange", "luca", 200)
    yield _event("Login", "luca", 203, country="IN")
    yield _event("Transfer", "luca", 207, amount=1900.0)


def write(file: TextIO, seed: int = 7) -> None:
    """Write the events as CSV."""
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for event in events(seed):
        writer.writerow(event | {"ts": event["ts"].strftime("%Y-%m-%dT%H:%M:%SZ")})


if __name__ == "__main__":
    write(sys.stdout)
