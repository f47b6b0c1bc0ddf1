"""What a query reports: a row per match, RETURN columns, or aggregates over all matches (R4, R18, R40)."""

from __future__ import annotations

import datetime as dt
from typing import Any

from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.reference.aggregates import in_64_bits
from tocsin.reference.conditions import Bags, aggregate, interpret
from tocsin.reference.identity import Ids
from tocsin.reference.matches import Candidate
from tocsin.reference.stream import Event, group_key
from tocsin.reference.values import ticks


class MatchRow(dict[str, Any]):
    """A reported row: a dict of the columns asked for, which also remembers its match.

    `match_id`, `start` and `end` are attributes of every row. Without RETURN, `start` and `end` are columns too; a
    RETURN row holds just the RETURN columns, and still answers `row["start"]`, `row["end"]` and `row["match_id"]`.
    """

    def __init__(self, columns: dict[str, Any], *, ids: Ids, number: int, start: Any, end: Any) -> None:
        super().__init__(columns)
        self._ids, self._number = ids, number
        self.start = start
        self.end = end

    @property
    def match_id(self) -> str:
        """The match's id; all ids of a result are computed when the first is asked for."""
        return self._ids.all[self._number]

    def __missing__(self, key: str) -> Any:
        """The match's own columns, when RETURN has no column of that name."""
        if key in ("match_id", "start", "end"):
            return getattr(self, key)
        raise KeyError(key)


def match_rows(query: alg.Query, matches: list[Candidate], extra: list[dict[str, Any]]) -> list[MatchRow]:
    """The rows of the matches that HAVING wants, with their extra columns."""
    wanted = [
        (match, columns)
        for match, columns in zip(matches, extra, strict=True)
        if query.having is None or interpret(query.having, match.bags, {}) is True
    ]
    ids = Ids(query, [match for match, _ in wanted])
    return [_row(query, match, columns, ids, number) for number, (match, columns) in enumerate(wanted)]


def _row(query: alg.Query, match: Candidate, extra: dict[str, Any], ids: Ids, number: int) -> MatchRow:
    assert match.first is not None and match.last is not None  # a reported match has events
    bags = match.bags
    start, end = match.first.time, match.last.time
    for event in (event for events in bags.values() for event in events if event.type is None):
        for value in event.row.values():
            in_64_bits("sum", value)
    if query.returns:
        columns = {one.name: _returned(query, one.expression, bags) for one in query.returns}
    else:
        columns = {"start": start, "end": end}
        columns |= {name: _held(bags, name, kind) for name, kind in query.variables.items()}
    return MatchRow(columns | extra, ids=ids, number=number, start=start, end=end)


def _returned(query: alg.Query, expression: ex.Expression, bags: Bags) -> Any:
    kinds = query.variables
    if isinstance(expression, ex.Variable):
        return _held(bags, expression.name, kinds[expression.name])
    if (
        isinstance(expression, ex.Attribute)
        and expression.index is ex.Each.PLAIN
        and kinds[expression.variable].iterated
    ):
        events = bags.get(expression.variable)
        return None if events is None else [_raw(event, expression.path) for event in events]
    return interpret(expression, bags, {})


def _raw(event: Event, path: tuple[str, ...]) -> Any:
    found: Any = event.row
    for name in path:
        found = None if found is None else found.get(name)
    return found


def _held(bags: Bags, name: str, kind: alg.Kind) -> Any:
    """The row, the rows in order of time, or None when the variable is unbound."""
    events = bags.get(name)
    if not events:
        return None
    return [event.row for event in events] if kind.iterated else events[0].row


def rows_over_all(query: alg.Query, matches: list[Candidate]) -> list[dict[str, Any]]:
    """One row per window and group, or one row in all; without either there is a row even of no match (R40)."""
    is_grouped = query.group_by or query.every_us
    members: dict[tuple[Any, ...], list[Bags]] = {} if is_grouped else {(): []}
    known: dict[tuple[Any, ...], tuple[dict[str, Any], dict[ex.Expression, Any]]] = {} if is_grouped else {(): ({}, {})}
    for match in matches:
        keys = {one.expression: interpret(one.expression, match.bags, {}) for one in query.group_by}
        window = _window(query.every_us, match)
        group = (*window.values(), *map(group_key, keys.values()))
        members.setdefault(group, []).append(match.bags)
        known.setdefault(group, (window, keys))
    return [
        window | {one.name: _over(one.expression, members[group], keys) for one in query.returns}
        for group, (window, keys) in known.items()
        if query.having is None or _over(query.having, members[group], keys) is True
    ]


def _window(every_us: int | None, match: Candidate) -> dict[str, Any]:
    """The columns of the window in which a match starts; windows are counted from 1970."""
    first = match.first
    if every_us is None or first is None:
        return {}
    if isinstance(first.time, int):
        every = ticks(every_us)
        begin = first.ts - first.ts % every
        return {"window_start": begin, "window_end": begin + every}
    start = first.time - dt.timedelta(microseconds=first.ts % every_us)
    return {"window_start": start, "window_end": start + dt.timedelta(microseconds=every_us)}


def _over(expression: ex.Expression, members: list[Bags], keys: dict[ex.Expression, Any]) -> Any:
    """An expression of group keys and aggregates: both become constants, the rest is arithmetic."""

    def settle(node: ex.Expression) -> ex.Expression:
        if node in keys:
            return _Known(keys[node])
        if isinstance(node, ex.Aggregate):
            return _Known(aggregate(node, members, unbounded=True))
        return node.map_children(settle)

    return interpret(settle(expression), {}, {})


class _Known(ex.Literal):
    """A value computed already, of any type a column can have."""

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "where", None)
