"""Short bursts of transfers with mules that split money: the workload that count-limited stores lose matches on.

Groups of four transfers, money that comes in and goes out in three parts, are hidden among unrelated transfers. A
quarter of the groups is on common routes, a quarter below 100 €; the others are true cases. It is the generator of the
dissertation that rules come from (§7.4), seeded. Two weeks are 14 milliseconds here, and no millisecond has more than
ten transfers, spread over two sources.

Choices that the dissertation leaves open: groups begin in the first ten seconds, whatever their number, so that
they seldom overlap and the largest workload needs a seventh of the allowed rate; outgoing transfers come 0 to 13
milliseconds after the incoming one, so that every group lies within the window. A transfer that finds its millisecond
full is drawn again, a group as a whole and with a new start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.datasets.generated import Columns, Integers

WINDOW_MS = 14
RATE_PER_MS = 10
LAST_START_MS = 10_000
SOURCES = 2
PUBLISHED_GROUPS = (10, 100, 1000)
PUBLISHED_UNRELATED = (0, 100, 1000, 10_000)
# Euros of one outgoing transfer of a group, ends included; the incoming one is three times as large.
ABOVE, BELOW = (34, 998), (1, 32)


@dataclass(frozen=True)
class Trace:
    """A workload: the transfers in order of time, and what is to be found in them.

    Attributes
    ----------
    transfers
        `ts` in microseconds, `id`, `originator`, `destination`, `amount`, and the `source` that reports it.
    cases
        The true cases: ids of the incoming transfer and of the three outgoing ones, a row each.
    """

    transfers: Columns
    cases: Integers


def is_common_route(originator: int, destination: int) -> bool:
    """Whether money usually goes this way: by the number of an account, alike for all accounts of a group.

    >>> is_common_route(2, 4), is_common_route(3, 5)
    (False, True)
    """
    return originator % 2 == 1


def trace(groups: int, unrelated: int, *, seed: int, amounts: tuple[int, int] = ABOVE) -> Trace:
    """Make a workload; the same seed gives the same transfers.

    Parameters
    ----------
    groups
        Groups of four transfers; half of them, rounded up, are true cases.
    unrelated
        Single transfers on accounts of their own.
    seed
        The seed of the random numbers.
    amounts
        The least and the largest amount that a true case, or one on a common route, sends on at a time.

    Examples
    --------
    >>> one = trace(10, 100, seed=1)
    >>> len(one.transfers["id"]), len(one.cases)
    (140, 6)
    """
    chance = np.random.default_rng(seed)
    quarter = groups // 4
    is_common = np.arange(groups) >= groups - quarter
    is_below = (np.arange(groups) >= groups - 2 * quarter) & ~is_common
    used = np.zeros(LAST_START_MS + WINDOW_MS, dtype=np.int64)

    def start_and_parts(number: int) -> Integers:
        start = chance.integers(LAST_START_MS, size=(number, 1))
        return np.hstack([start, start + chance.integers(WINDOW_MS, size=(number, 3))])

    times = _placed(used, groups, start_and_parts)
    each = np.where(is_below, _drawn(chance, BELOW, groups), _drawn(chance, amounts, groups))
    alone = _placed(used, unrelated, lambda number: chance.integers(LAST_START_MS, size=(number, 1)))
    is_large = chance.random(unrelated) < 0.5
    single = np.where(is_large, _drawn(chance, (100, 998), unrelated), _drawn(chance, (1, 98), unrelated))

    # Of a group five accounts: where money comes from, the mule, and three that it goes to. Of others two.
    account = 2 * (5 * np.arange(groups)[:, None] + np.arange(5)) + is_common[:, None]
    others = np.arange(unrelated)[:, None] * 2 + np.arange(2) + 5 * groups
    others = 2 * others + (chance.random(unrelated) < 0.9)[:, None]
    ids = np.arange(4 * groups).reshape(groups, 4)
    transfers = {
        "ts": 1000 * np.concatenate([times.ravel(), alone.ravel()]),
        "id": np.arange(4 * groups + unrelated),
        "originator": np.concatenate([account[:, [0, 1, 1, 1]].ravel(), others[:, 0]]),
        "destination": np.concatenate([account[:, 1:].ravel(), others[:, 1]]),
        "amount": np.concatenate([(each[:, None] * [3, 1, 1, 1]).ravel(), single]),
        "source": chance.integers(SOURCES, size=4 * groups + unrelated),
    }
    order = np.argsort(transfers["ts"], kind="stable")
    return Trace(Columns({name: values[order] for name, values in transfers.items()}), ids[~is_common & ~is_below])


def one_after_another(traces: Sequence[Trace]) -> Trace:
    """Several workloads as one: each has its own time, ids and accounts, so that nothing of two of them can match.

    >>> both = one_after_another([trace(10, 0, seed=seed) for seed in (1, 2)])
    >>> len(both.transfers["id"]), len(both.cases)
    (80, 12)
    """
    moved: list[dict[str, Any]] = []
    cases = []
    at = ids = accounts = 0
    for each in traces:
        columns = each.transfers
        cases.append(each.cases + ids)
        moved.append(
            dict(columns)
            | {"ts": columns["ts"] + at, "id": columns["id"] + ids}
            | {name: columns[name] + accounts for name in ("originator", "destination")}
        )
        at += 1000 * (LAST_START_MS + 2 * WINDOW_MS)
        ids += len(columns["id"])
        # Even, so that the numbers still mark common routes.
        accounts += 2 * (int(max(columns["destination"], default=0)) // 2 + 1)
    names = traces[0].transfers
    joined = Columns({name: np.concatenate([one[name] for one in moved]) for name in names})
    return Trace(joined, np.concatenate(cases))


def _drawn(chance: np.random.Generator, ends: tuple[int, int], number: int) -> Integers:
    return chance.integers(ends[0], ends[1], size=number, endpoint=True)


def _placed(used: Integers, number: int, draw: Any) -> Integers:
    """Milliseconds of so many drawn units, drawn again where one is full; `used` counts what stands in each."""
    times = draw(number)
    while True:
        again = _beyond_rate(used, times)
        if not again.any():
            np.add.at(used, times.ravel(), 1)
            return np.asarray(times)
        times[again] = draw(int(again.sum()))


def _beyond_rate(used: Integers, times: Integers) -> NDArray[np.bool_]:
    """The units that have an event for which those before it, of earlier units too, leave no room."""
    slots = times.ravel()
    order = np.argsort(slots, kind="stable")
    ordered = slots[order]
    place = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    full = np.zeros(len(slots), dtype=np.bool_)
    full[order] = place + used[ordered] >= RATE_PER_MS
    return np.asarray(full.reshape(times.shape).any(axis=1))
