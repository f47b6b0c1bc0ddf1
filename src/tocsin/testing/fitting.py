"""Streams drawn for a query of any language, so that most of them hold a match.

A *core* is one event for each that some match must bind, in the order of the pattern, with random attributes. The
reference evaluator accepts or rejects it; the first of a few cores that matches is kept. Further events are added
afterwards: they tie with the core, repeat it, come between its events, or belong to no pattern at all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tocsin import reference
from tocsin.algebra import nodes as alg
from tocsin.language.ast import Selection
from tocsin.testing.streams import HALVES, KEYS, LONGEST_STREAM_S, NEAR, SECOND, SEEDS, TYPES, WHOLE, Streams, spread

MOST_TRIES = 24
MOST_CORE_EVENTS = 6


def drawn_for(
    queries: st.SearchStrategy[Any],
    meaning: Callable[[Any], alg.Query] = lambda query: query,
    *,
    max_events: int = 9,
    named: tuple[str, str] = ("query", "rows"),
) -> dict[str, st.SearchStrategy[Any]]:
    """Two arguments of a property: a query and a stream for it.

    Parameters
    ----------
    queries
        Where the queries come from: trees, texts, whatever `meaning` takes.
    meaning
        Their algebra; needed unless they are queries of the algebra themselves.
    max_events
        How many events a stream has at the most.
    named
        The names of the two arguments.

    Examples
    --------
    >>> from tocsin.analysis.translate import translate
    >>> from tocsin.testing.strategies import queries
    >>> sorted(drawn_for(queries(), lambda tree: translate(tree).query))
    ['query', 'rows']
    """
    query = st.shared(queries)
    return {named[0]: query, named[1]: query.flatmap(lambda one: fitting(meaning(one), max_events=max_events))}


def fitting(query: alg.Query, *, max_events: int = 9) -> st.SearchStrategy[Streams]:
    """Streams for a query: seven of eight are built around a match, the others are any."""
    # Two iterations without end have exponentially many matches, and ways to find each.
    most = max_events if _endless(query.pattern) < 2 else min(max_events, 6)
    return st.builds(_seeded, st.just(query), st.just(most), SEEDS)


def has_match(query: alg.Query, rows: Streams) -> bool:
    """Whether the reference finds a match, or a time-out where they are asked for."""
    plain = replace(query, returns=(), group_by=(), having=None, over_all_matches=False, every_us=None)
    return bool(reference.evaluate(plain, rows))


def _endless(node: alg.Node) -> int:
    return sum(
        isinstance(each, alg.RepeatAdjacent) or (isinstance(each, alg.Repeat) and (each.most is None or each.most > 2))
        for each in node.walk()
    )


def _seeded(query: alg.Query, max_events: int, seed: int) -> Streams:
    choose = random.Random(seed)
    return spread(TYPES, max_events, seed) if choose.random() < 1 / 8 else _around(query, max_events, choose)


def _around(query: alg.Query, max_events: int, choose: random.Random) -> Streams:
    core: list[tuple[str, dict[str, Any]]] = []
    for _ in range(MOST_TRIES):
        types = _bound(query.pattern, choose)[:MOST_CORE_EVENTS]
        core = list(zip(types, _rows(len(types), choose), strict=True))
        if has_match(query, _by_type(core)):
            break
    others = max_events - len(core)
    # Where every event counts, or some event must be absent, further ones mostly break the match.
    strict = query.selection is not Selection.ANY or any(isinstance(node, alg.Absent) for node in query.pattern.walk())
    others = choose.randint(0, max(0, others // 2 if strict else others))
    named = alg.event_types(query.pattern) or TYPES
    latest = max((row["ts"] for _, row in core), default=0)
    for _ in range(others):
        if core and choose.random() < 0.15:
            kind, row = choose.choice(core)  # an equal event
            core.append((kind, dict(row)))
            continue
        kind = choose.choice(named) if choose.random() < 0.8 else choose.choice(TYPES)
        second = choose.randint(0, LONGEST_STREAM_S) * SECOND + choose.choice(NEAR)
        (row,) = _rows(1, choose)
        time = choose.choice([second, latest, latest + SECOND, choose.choice(core)[1]["ts"] if core else second])
        core.append((kind, row | {"ts": None if choose.random() < 0.03 else time}))
    return _by_type(core)


def _rows(number: int, choose: random.Random) -> list[dict[str, Any]]:
    """Rows of a core: times that do not decrease, mostly one key, values that are often equal."""
    at, key, common = 0, choose.choice(KEYS[:5]), choose.choice(WHOLE[:-1])
    alike = choose.random()
    rows = []
    for _ in range(number):
        at += choose.choice([SECOND, SECOND // 2, 1, 1, 1, 1, 1, 0])
        rows.append(
            {
                "ts": at,
                "k": key if choose.random() < 0.85 else choose.choice(KEYS),
                "x": common if choose.random() < alike else choose.choice(WHOLE),
                "v": choose.choice(HALVES if choose.random() < 0.2 else HALVES[:-1]),
            }
        )
    return rows


def _by_type(events: Sequence[tuple[str, dict[str, Any]]]) -> Streams:
    rows: Streams = {name: [] for name in TYPES}
    for kind, row in events:
        rows[kind].append(row)
    return rows


def _bound(node: alg.Node, choose: random.Random) -> list[str]:
    """The types of the events of one match, in an order in which they may come."""
    match node:
        case alg.Event(type, _) | alg.NextOf(type, _):
            return [type or choose.choice(TYPES)]
        case alg.Sequence(parts) | alg.Adjacent(parts):
            return [each for part in parts for each in _bound(part, choose)]
        case alg.All(parts):
            return [each for part in choose.sample(parts, len(parts)) for each in _bound(part, choose)]
        case alg.Any(parts) | alg.Both(parts):
            return _bound(choose.choice(parts), choose)
        case alg.Repeat(part, least, most):
            copies = max(least, choose.choice([1, 1, 2]))
            copies = copies if most is None else min(copies, most)
            return [each for _ in range(copies) for each in _bound(part, choose)]
        case alg.RepeatAdjacent(part):
            return [each for _ in range(choose.choice([1, 1, 2])) for each in _bound(part, choose)]
        case alg.Gather(part, type, _):
            return [*_bound(part, choose), type]
        case alg.Around() | alg.Filter() | alg.Within() | alg.Bind() | alg.Project() | alg.Derive() | alg.Emit():
            return _bound(node.part, choose)
    raise TypeError(f"no events for {node!r}")
