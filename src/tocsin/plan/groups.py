"""Which queries are searched for together, and by which keys their rows are split. Known without Spark and arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema
from tocsin.kernels.reach import reach_of, width_us
from tocsin.optimizer.routes import crossed_keys, is_connected

Key = tuple[str, ...]


def is_joint(query: alg.Query) -> bool:
    """Whether a query's matches can be searched for beside those of others: in time slices, without positions."""
    reach = reach_of(query)
    is_alone = reach.needs_order or reach.compares_ties or reach.counts_every_event or query.over_all_matches
    return not is_alone and width_us(reach) is not None


def has_other_keys(query: alg.Query, schemas: Mapping[str, Schema]) -> bool:
    """Whether equalities of attributes with different names split a query's events better than time slices do.

    By itself it is then sent by these keys, or joined by them; beside others it would be searched for without.
    """
    if query.partition.attributes:
        return False
    keys = crossed_keys(query, schemas)
    return is_connected(query, schemas) if keys is None else len(set(keys.values())) > 1


def groups_of(keys: Sequence[Key]) -> tuple[list[int], list[Key]]:
    """The group of every key, and the key that the rows of every group are split by.

    Where keys are nested, that is the coarsest which is not empty: rows that agree on more of them are still together.

    Examples
    --------
    >>> groups_of([("k", "x"), (), ("k",), ("y",)])
    ([1, 0, 1, 2], [(), ('k',), ('y',)])
    """
    found: list[Key] = []
    for key in sorted(set(keys), key=lambda key: (len(key), key)):
        if not key or not any(known and set(known) <= set(key) for known in found):
            found.append(key)

    def group(own: Key) -> int:
        return next(place for place, key in enumerate(found) if (set(key) <= set(own) if key else not own))

    return [group(key) for key in keys], found
