"""Streams drawn for a query of any language or a program of rules, so that most of them hold a match.

A *core* is one event for each that some match must bind, in the order of the pattern, with random attributes; for a
rule its conditions are solved. The reference evaluator accepts or rejects it; the first of a few cores that matches is
kept. Further events are added afterwards: they tie with the core, repeat it, come between its events, or belong to no
pattern at all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from tests.candidates import TooManyCandidatesError, few_candidates
from tests.solving import TIME, Typed, solved

from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program
from tocsin.analysis.acel import translate as translate_formula
from tocsin.analysis.sase import translate
from tocsin.language import ast
from tocsin.language.acel import ast as acel
from tocsin.testing import formulas, strategies
from tocsin.testing.streams import HALVES, KEYS, LONGEST_STREAM_S, NEAR, SECOND, SEEDS, TYPES, WHOLE, Streams, spread

MOST_TRIES = 24
MOST_TRIES_OF_RULES = 10
MOST_CORE_EVENTS = 6
MOST_EMITTED = 12
# How many pairs of candidates the reference may join for a stream: it takes some hundredths of a second.
MOST_PAIRS = 30_000
# Columns that order events of one instant.
Tie = str | tuple[str, ...] | None


def drawn_for(
    queries: st.SearchStrategy[Any],
    meaning: Callable[[Any], alg.Query | Program] = lambda query: query,
    *,
    max_events: int = 9,
    named: tuple[str, str] = ("query", "rows"),
    tie: str | None = None,
) -> dict[str, st.SearchStrategy[Any]]:
    """Two arguments of a property: a query and a stream for it.

    Parameters
    ----------
    queries
        Where the queries come from: trees, texts, whatever `meaning` takes.
    meaning
        Their algebra; needed unless they are queries or programs of the algebra themselves.
    max_events
        How many events a stream has at the most.
    named
        The names of the two arguments.
    tie
        The column that orders events of one instant; the events of a repetition of a rule are then of one instant.

    Examples
    --------
    >>> sorted(drawn_for(strategies.queries(), meaning))
    ['query', 'rows']
    """
    query = st.shared(queries)
    return {named[0]: query, named[1]: query.flatmap(lambda one: fitting(meaning(one), max_events=max_events, tie=tie))}


def meaning(query: ast.Query | acel.Query) -> alg.Query:
    """The algebra of a query."""
    return translate(query).query if isinstance(query, ast.Query) else translate_formula(query).query


def cases(features: strategies.Features = strategies.LANGUAGE, **options: Any) -> dict[str, st.SearchStrategy[Any]]:
    """Two arguments of a property: a query of SASE+ and a stream for it; the options are those of `drawn_for`."""
    return drawn_for(strategies.queries(features), meaning, **options)


def formula_cases(**options: Any) -> dict[str, st.SearchStrategy[Any]]:
    """Two arguments of a property: a query of ACEL and a stream for it; the options are those of `drawn_for`."""
    return drawn_for(formulas.queries(), meaning, **options)


@st.composite
def queries_with_streams(
    draw: st.DrawFn, features: strategies.Features = strategies.LANGUAGE, *, number: int = 1, max_events: int = 9
) -> tuple[ast.Query, list[Streams]]:
    """A query and some streams that fit it."""
    query = draw(strategies.queries(features))
    return query, [draw(fitting(meaning(query), max_events=max_events)) for _ in range(number)]


def fitting(query: alg.Query | Program, *, max_events: int = 9, tie: str | None = None) -> st.SearchStrategy[Streams]:
    """Streams for a query or a program: seven of eight are built around a match, the others are any."""
    return SEEDS.map(lambda seed: seeded(query, seed, max_events=max_events, tie=tie))


def has_match(query: alg.Query | Program, rows: Streams, *, tie: Tie = None) -> bool:
    """Whether the reference finds a match, or a time-out where they are asked for; in a program, of some rule."""
    if isinstance(query, Program):
        return any(reference.evaluate(query, rows, tie=tie).values())
    return bool(matches_of(query, rows, tie=tie))


def matches_of(query: alg.Query, rows: Streams, *, tie: Tie = None) -> list[Any]:
    """The matches that the reference finds for a query, and its time-outs, whatever it returns of them."""
    plain = replace(query, returns=(), group_by=(), having=None, over_all_matches=False, every_us=None)
    return reference.evaluate(plain, rows, tie=tie)


def decides(tie: Tie, query: alg.Query, rows: Streams) -> bool:
    """Whether a query has other matches without the columns that order events of one instant."""
    with_ties, without = (sorted(map(repr, matches_of(query, rows, tie=each))) for each in (tie, None))
    return with_ties != without


def _endless(node: alg.Node) -> int:
    return sum(
        isinstance(each, alg.RepeatAdjacent) or (isinstance(each, alg.Repeat) and (each.most is None or each.most > 2))
        for each in node.walk()
    )


def seeded(
    query: alg.Query | Program,
    seed: int,
    *,
    max_events: int = 9,
    types: Sequence[str] = TYPES,
    tie: str | None = None,
) -> Streams:
    """The stream of a seed for a query or a program, with events of these types."""
    choose = random.Random(seed)
    if isinstance(query, alg.Query) and _endless(query.pattern) > 1:
        max_events = min(max_events, 6)  # exponentially many matches, and ways to find each
    if choose.random() < 1 / 8:
        rows = spread(types, max_events, seed)
        if _is_small(query, rows, tie):
            return rows
    if isinstance(query, Program):
        core, queries = _core_of_rule(query, choose, types, tie), [rule.query for rule in query.rules]
    else:
        core, queries = _core(query, choose, tie), [query]
    # Where every event counts, or some events must be absent or few, further ones mostly break the match.
    strict = any(each.selection is not ast.Selection.ANY or any(alg.around_in(each.pattern)) for each in queries)
    others = max_events - len(core)
    others = choose.randint(0, max(0, others // 2 if strict else others))
    read = [name for each in queries for name in alg.event_types(each.pattern) if name in types]
    rows = _by_type([*core, *_noise(core, others, read or types, types, choose)], types)
    return rows if _is_small(query, rows, tie) else _by_type(core, types)


def _is_small(query: alg.Query | Program, rows: Streams, tie: str | None) -> bool:
    """Whether the reference can evaluate a query on a stream in a test's time."""
    if isinstance(query, Program):
        return _emits_few(query, rows, tie)
    repeats = [each for each in query.pattern.walk() if isinstance(each, (alg.Repeat, alg.RepeatAdjacent))]
    if _endless(query.pattern) <= 1 and all(isinstance(each.part, alg.Event) for each in repeats):
        return True  # as nearly always; no need to try
    return _has_match_soon(query, rows, tie) is not None


def _has_match_soon(query: alg.Query, rows: Streams, tie: str | None) -> bool | None:
    """Whether there is a match; None if the reference would join too many pairs of candidates to find out."""
    try:
        with few_candidates(MOST_PAIRS):
            return has_match(query, rows, tie=tie)
    except TooManyCandidatesError:
        return None


def _core(query: alg.Query, choose: random.Random, tie: str | None) -> list[Typed]:
    core: list[Typed] = []
    most = MOST_CORE_EVENTS
    for _ in range(MOST_TRIES):
        kinds = _bound(query.pattern, choose)[:most]
        core = list(zip(kinds, _rows(len(kinds), choose), strict=True))
        matches = _has_match_soon(query, _by_type(core, TYPES), tie)
        if matches:
            break
        if matches is None:
            most = max(1, len(core) - 1)
    return core


def _core_of_rule(program: Program, choose: random.Random, types: Sequence[str], tie: str | None) -> list[Typed]:
    timed = program.timed(TIME)
    kept: list[Typed] = []
    for _ in range(MOST_TRIES_OF_RULES):
        rule = choose.choice(timed.rules)
        core = solved(timed, rule, choose, outside=types, is_tied=tie is not None)
        rows = _by_type(core, types)
        if len(core) > MOST_CORE_EVENTS or not _emits_few(program, rows, tie):
            continue
        found = reference.evaluate(program, rows, tie=tie)[rule.name]
        kept = core if found else kept
        if found and (tie is None or len(found) != len(reference.evaluate(program, rows)[rule.name])):
            break  # with ties, one that they decide on
    return kept


def _emits_few(program: Program, rows: Streams, tie: str | None) -> bool:
    """Whether rules emit so few events that the reference can evaluate the rules that read them."""
    for stratum in sorted({rule.stratum for rule in program.rules})[1:]:
        below = replace(program, rules=tuple(rule for rule in program.rules if rule.stratum < stratum))
        if sum(map(len, reference.events(below, rows, tie=tie).values())) > MOST_EMITTED:
            return False
    return True


def _noise(
    core: Sequence[Typed], number: int, read: Sequence[str], types: Sequence[str], choose: random.Random
) -> list[Typed]:
    known = list(core)
    latest = max((row["ts"] for _, row in core), default=0)
    for _ in range(number):
        if known and choose.random() < 0.15:
            kind, row = choose.choice(known)  # an equal event
            known.append((kind, dict(row)))
            continue
        kind = choose.choice(read) if choose.random() < 0.8 else choose.choice(types)
        second = choose.randint(0, LONGEST_STREAM_S) * SECOND + choose.choice(NEAR)
        (row,) = _rows(1, choose)
        time = choose.choice([second, latest, latest + SECOND, choose.choice(known)[1]["ts"] if known else second])
        known.append((kind, row | {"ts": None if choose.random() < 0.03 else time}))
    return known[len(core) :]


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


def _by_type(events: Sequence[Typed], types: Sequence[str]) -> Streams:
    rows: Streams = {name: [] for name in types}
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
        case _:
            raise errors.unknown_node(node, "The choice of fitting events")
