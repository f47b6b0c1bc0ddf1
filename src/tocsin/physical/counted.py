"""Aggregates over all matches without a JVM: the same count as on Spark, in this process."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tocsin.algebra import nodes as alg
from tocsin.expressions import interpret
from tocsin.kernels.trends.request import keys_of, needs_of, requested_in
from tocsin.kernels.trends.totals import Totals
from tocsin.kernels.trends.trend import Trend
from tocsin.language import expressions as ex
from tocsin.physical.arrow_scan import Events, ship
from tocsin.physical.sliced.counting import TOTALS, WINDOW, added_up, counting
from tocsin.physical.sliced.worker import task_of
from tocsin.plan.manifest import Reader

Known = dict[ex.Expression, Any]


def rows_over_all(trend: Trend, events: Sequence[Events], ties: Sequence[str]) -> list[list[Any]]:
    """The window if there are windows, and the values of RETURN, for every group or for all."""
    needs = needs_of(keys_of(trend.kernel.query, trend.machine))
    reader = Reader(trend.kernel, needs, ties=tuple(ties), with_digests=False)
    manifest, table = ship([reader], events, named=alg.event_types(trend.kernel.query.pattern))
    (layout,) = manifest.layouts
    counted = list(task_of(counting(trend, layout)).run(table)) if table.num_rows else []
    return answered(trend, pa.Table.from_batches(counted) if counted else None)


def answered(trend: Trend, counted: pa.Table | None) -> list[list[Any]]:
    """The same, from what tasks have counted."""
    query = trend.kernel.query
    keys = keys_of(query, trend.machine)
    needs = needs_of(keys)
    groups: dict[tuple[Any, ...], list[Totals]] = {} if keys or query.every_us else {(): []}
    values: dict[tuple[Any, ...], list[Any]] = {(): []}
    attributes = [attribute for wanted in needs.values() for attribute in wanted]
    for row in counted.to_pylist() if counted is not None else []:
        totals = pickle.loads(row.pop(TOTALS))
        window = (row.pop(WINDOW),) if query.every_us else ()
        event = dict(zip(attributes, row.values(), strict=True))
        found = [interpret.value(key)({name: [event] for name in needs}) for key in keys.values()]
        name = (*window, *map(group_name, found))
        groups.setdefault(name, []).append(totals)
        values.setdefault(name, found)
    rows = []
    for name, totals_of in groups.items():
        known: Known = dict(zip(keys, values[name], strict=True))
        summed = added_up(totals_of, trend.kinds)
        for asked, answer in zip(requested_in(query), trend.answers, strict=True):
            known[asked.expression] = answer.of(summed)
        if query.having is None or settled(query.having, known) is True:
            window = name[:1] if query.every_us else ()
            rows.append([*window, *(settled(one.expression, known) for one in query.returns)])
    return rows


def group_name(value: Any) -> Any:
    """A value as a key of a dict: NaN is one value, and TRUE is not 1."""
    return "NaN" if value != value else (isinstance(value, bool), value)  # noqa: PLR0124


def settled(expression: ex.Expression, known: Known) -> Any:
    """The value of an expression of which some parts are known."""

    def settle(node: ex.Expression) -> ex.Expression:
        return ex.Literal(known[node]) if node in known else node.map_children(settle)

    return interpret.value(settle(expression))({})
