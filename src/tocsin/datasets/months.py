"""Months of transfers of a bank: skewed, with a daily rhythm, with frauds among them and what only looks like one.

Accounts have regular counterparties, and send most of their money to them: these are the known routes. A few accounts
are hubs, merchants that many pay and employers that pay many; all their routes are known. Some transfers go anywhere.
How active accounts are is skewed, amounts are log-normal and in whole euros, nights and weekends are quiet.

Frauds are those of `fraud.parte`: A passes money on, B splits it into three, C gets money back and claims it too. Each
has a mule (or a victim) of its own, whom nobody else sends money on unknown routes, so that of such an account exactly
the true cases are to be found; a quarter as many near misses break one condition each. Elsewhere chance may make
matches that nobody planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tocsin.datasets.generated import Columns, Integers, write_all

FIRST_DAY_US = 1_767_571_200_000_000  # Monday, 2026-01-05
DAY_US = 86_400_000_000
WINDOW_DAYS = 14
# Per hour of a day, and per day of a week: how much is sent.
HOURS = np.array([2, 1, 1, 1, 1, 2, 5, 10, 14, 15, 15, 14, 15, 14, 13, 13, 13, 13, 12, 11, 9, 7, 5, 3])
WEEKDAYS = np.array([10, 9, 9, 9, 11, 6, 5])
COUNTERPARTIES = 8
TO_HUBS, FROM_HUBS, UNKNOWN = 0.45, 0.08, 0.02
TRANSFERS_PER_ACCOUNT = 50


@dataclass(frozen=True)
class Months:
    """A stream and its truth.

    Attributes
    ----------
    transfers
        `ts` in microseconds, `id`, `originator`, `destination`, `amount`, in order of time.
    claims
        `ts`, `transaction_id`: transfers that are claimed to be a mistake.
    routes
        `originator`, `destination`: the known routes, each once.
    cases
        By scenario (A, B, C): ids of the transfers of every planned case, a row each.
    mules
        By scenario: the accounts that cases and near misses are about.
    """

    transfers: Columns
    claims: Columns
    routes: Columns
    cases: Mapping[str, Integers]
    mules: Mapping[str, Integers]

    def write(self, folder: Path, *, files: int = 8) -> None:
        """Write `transfers`, `claims` and `routes` as folders of Parquet files."""
        write_all(folder, {"transfers": self.transfers}, files=files)
        write_all(folder, {"claims": self.claims, "routes": self.routes})


def months(transfers: int, *, days: int = 60, seed: int = 1, cases: int | None = None) -> Months:
    """Make a stream; the same seed gives the same transfers.

    Parameters
    ----------
    transfers
        How many transfers there are beside the planned ones, in so many days.
    days
        How long the stream is; planned cases need more than 29.
    seed
        The seed of the random numbers.
    cases
        Planned cases of each scenario; by default one for 10,000 transfers, and at least 8.

    Examples
    --------
    >>> made = months(1000, seed=1)
    >>> {name: found.shape for name, found in made.cases.items()}
    {'A': (8, 2), 'B': (8, 4), 'C': (8, 2)}
    """
    chance = np.random.default_rng(seed)
    planned = max(8, transfers // 10_000) if cases is None else cases
    accounts = max(100, transfers // TRANSFERS_PER_ACCOUNT)
    hubs = max(4, accounts // 2000)
    routes = _routes(chance, accounts, hubs)
    usual = _usual(chance, transfers, accounts, hubs, routes, days)
    frauds = Planner(chance, accounts, days, planned)
    columns = Columns({name: np.concatenate([values, frauds.column(name)]) for name, values in usual.items()})
    order = np.argsort(columns["ts"], kind="stable")
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(1, len(order) + 1)  # ids in order of time
    ids = number[transfers:]
    columns = Columns({name: values[order] for name, values in columns.items()})
    return Months(
        Columns(
            {"ts": columns["ts"], "id": np.arange(1, len(order) + 1)} | {n: columns[n] for n in usual if n != "ts"}
        ),
        _claims(chance, columns["ts"], frauds, ids, days),
        Columns(originator=routes // accounts, destination=routes % accounts),
        {name: ids[rows] for name, rows in frauds.cases().items()},
        {name: np.unique(np.array(some)) for name, some in frauds.mules.items()},
    )


def _routes(chance: np.random.Generator, accounts: int, hubs: int) -> Integers:
    """The known routes as `originator × accounts + destination`, sorted: regular ones, and those of hubs."""
    originators = np.repeat(np.arange(hubs, accounts), COUNTERPARTIES)
    regular = originators * accounts + chance.integers(hubs, accounts, size=len(originators))
    everybody = np.arange(hubs, accounts)
    merchants = np.repeat(everybody, 3)
    paid = merchants * accounts + _skewed(chance, hubs, len(merchants))
    employers = chance.integers(hubs, size=len(everybody)) * accounts + everybody
    return np.unique(np.concatenate([regular, paid, employers]))


def _skewed(chance: np.random.Generator, number: int, size: int) -> Integers:
    """Numbers below `number`, the first ones much more often: as one over their rank, roughly."""
    return np.minimum((number ** chance.random(size)).astype(np.int64), number) - 1


def _usual(
    chance: np.random.Generator, number: int, accounts: int, hubs: int, routes: Integers, days: int
) -> dict[str, Integers]:
    """Transfers of a day like any other: most on known routes, some anywhere between people."""
    kind = chance.random(number)
    from_hub, to_hub = routes // accounts < hubs, routes % accounts < hubs
    route = np.empty(number, dtype=np.int64)
    is_unknown = kind < UNKNOWN
    is_paid = (kind >= UNKNOWN) & (kind < UNKNOWN + FROM_HUBS)
    is_bought = (kind >= UNKNOWN + FROM_HUBS) & (kind < UNKNOWN + FROM_HUBS + TO_HUBS)
    is_regular = kind >= UNKNOWN + FROM_HUBS + TO_HUBS
    for chosen, some in ((is_paid, routes[from_hub]), (is_bought, routes[to_hub])):
        route[chosen] = some[chance.integers(len(some), size=int(chosen.sum()))]
    some = routes[~from_hub & ~to_hub]
    # A power of a uniform number: some accounts are far more active than others.
    route[is_regular] = some[(chance.random(int(is_regular.sum())) ** 1.5 * len(some)).astype(np.int64)]
    unknown = int(is_unknown.sum())
    people = accounts - hubs
    sender = hubs + (chance.random(unknown) ** 1.5 * people).astype(np.int64)
    receiver = hubs + (sender - hubs + chance.integers(1, people, size=unknown)) % people
    route[is_unknown] = sender * accounts + receiver
    return {
        "ts": _times(chance, number, days),
        "originator": route // accounts,
        "destination": route % accounts,
        "amount": np.maximum(1, np.exp(chance.normal(3.9, 1.1, size=number))).astype(np.int64),
    }


def _times(chance: np.random.Generator, number: int, days: int) -> Integers:
    weights = WEEKDAYS[np.arange(days) % 7]
    day = np.searchsorted(np.cumsum(weights) / weights.sum(), chance.random(number), side="right")
    hour = np.searchsorted(np.cumsum(HOURS) / HOURS.sum(), chance.random(number), side="right")
    return FIRST_DAY_US + day * DAY_US + hour * (DAY_US // 24) + chance.integers(DAY_US // 24, size=number)


def _claims(chance: np.random.Generator, times: Integers, frauds: Planner, ids: Integers, days: int) -> Columns:
    """Claims of the planned cases, and a tenth as many again, of any transfer; in order of time."""
    rows = np.array([row for row, _ in frauds.claimed], dtype=np.int64)
    late = np.array([late for _, late in frauds.claimed], dtype=np.int64)
    anyone = chance.integers(1, len(times) + 1, size=max(1, len(rows) // 10))
    about = np.concatenate([ids[rows], anyone])
    at = times[about - 1] + np.concatenate([late, chance.integers(DAY_US, 5 * DAY_US, size=len(anyone))])
    order = np.argsort(at, kind="stable")
    return Columns(ts=at[order], transaction_id=about[order])


class Planner:
    """Plans cases and near misses, each with an account of its own beyond those of everybody else."""

    def __init__(self, chance: np.random.Generator, accounts: int, days: int, cases: int) -> None:
        self.chance, self.accounts, self.days = chance, accounts, days
        self.rows: list[tuple[int, int, int, int]] = []
        self.found: dict[str, list[list[int]]] = {"A": [], "B": [], "C": []}
        self.mules: dict[str, list[int]] = {"A": [], "B": [], "C": []}
        self.claimed: list[tuple[int, int]] = []
        self.next_account = accounts
        for number in range(cases + cases // 4):
            flaw = None if number < cases else number % 3
            for scenario, plan in (("A", self._pass_through), ("B", self._diffusion), ("C", self._refund)):
                mule = self._account()
                self.mules[scenario].append(mule)
                rows = plan(mule, flaw)
                if flaw is None:
                    self.found[scenario].append(rows)

    def cases(self) -> dict[str, Integers]:
        """By scenario, the rows of each case."""
        widths = {"A": 2, "B": 4, "C": 2}
        return {
            name: np.array(some, dtype=np.int64).reshape(len(some), widths[name]) for name, some in self.found.items()
        }

    def column(self, name: str) -> Integers:
        """A column of the planned transfers."""
        place = ("ts", "originator", "destination", "amount").index(name)
        return np.array([row[place] for row in self.rows], dtype=np.int64)

    def _account(self) -> int:
        self.next_account += 1
        return self.next_account - 1

    def _add(self, ts: int, originator: int, destination: int, amount: int) -> int:
        self.rows.append((ts, originator, destination, amount))
        return len(self.rows) - 1

    def _begin(self) -> int:
        """A time that leaves 15 days for what follows."""
        return FIRST_DAY_US + int(self.chance.integers((self.days - WINDOW_DAYS - 1) * DAY_US))

    def _later(self, ts: int) -> int:
        return ts + int(self.chance.integers(1, WINDOW_DAYS * DAY_US))

    def _pass_through(self, mule: int, flaw: int | None) -> list[int]:
        """All that comes in goes out; flaws: not all of it, too late, below 100 €."""
        ts, amount = self._begin(), int(self.chance.integers(150, 5000)) if flaw != 2 else 99
        incoming = self._add(ts, self._account(), mule, amount)
        at = ts + WINDOW_DAYS * DAY_US + 1 if flaw == 1 else self._later(ts)
        return [incoming, self._add(at, mule, self._account(), amount - (1 if flaw == 0 else 0))]

    def _diffusion(self, mule: int, flaw: int | None) -> list[int]:
        """Three parts of what comes in; flaws: too little in all, the last too late, below 100 €."""
        ts, part = self._begin(), int(self.chance.integers(50, 1500)) if flaw != 2 else 33
        incoming = self._add(ts, self._account(), mule, 3 * part)
        parts = [part, part, part * 2 // 3 - 2 if flaw == 0 else part]
        times = sorted(self._later(ts) for _ in parts)
        if flaw == 1:
            times[-1] = ts + WINDOW_DAYS * DAY_US + 1
        return [incoming, *(self._add(at, mule, self._account(), one) for at, one in zip(times, parts, strict=True))]

    def _refund(self, victim: int, flaw: int | None) -> list[int]:
        """Money comes, goes back, and is claimed; flaws: another such transfer, back too much, claimed too late."""
        ts, amount, swindler = self._begin(), int(self.chance.integers(150, 3000)), self._account()
        incoming = self._add(ts, swindler, victim, amount)
        back = self._later(ts)
        refund = self._add(back, victim, swindler, amount * 6 // 5 if flaw == 1 else amount)
        if flaw == 0:
            self._add(back - 1, swindler, victim, amount)
        late = WINDOW_DAYS * DAY_US + 1 if flaw == 2 else int(self.chance.integers(1, WINDOW_DAYS * DAY_US))
        self.claimed.append((incoming, late))
        return [incoming, refund]
