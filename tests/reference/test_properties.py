"""Laws that hold whatever the query: the reference is checked against the shape of its own definition."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fitting import cases, queries_with_streams

from tocsin import reference
from tocsin.algebra import nodes as alg
from tocsin.analysis.sase import translate
from tocsin.language import ast
from tocsin.testing.cases import assert_same_rows, frozen
from tocsin.testing.strategies import EVERYTHING, TIMEOUTS, Features, queries, streams

PLAIN = Features(iteration=True, absence=True, aggregates=True, most_events=3)
Stream = dict[str, list[dict[str, Any]]]


def rows(query: ast.Query, stream: Stream) -> list[dict[str, Any]]:
    return reference.evaluate(translate(query).query, stream)


@given(**cases(EVERYTHING, named=("query", "stream")), random=st.randoms())
def test_the_order_of_arrival_changes_nothing(query: ast.Query, stream: Stream, random: Any) -> None:
    shuffled = {kind: random.sample(events, len(events)) for kind, events in stream.items()}
    assert_same_rows(rows(query, shuffled), rows(query, stream))


@given(**cases(PLAIN, named=("query", "stream")), selection=st.sampled_from(ast.Selection))
def test_every_selection_keeps_some_of_the_any_matches(
    query: ast.Query, stream: Stream, selection: ast.Selection
) -> None:
    every = {frozen(row) for row in rows(query, stream)}
    assert {frozen(row) for row in rows(replace(query, selection=selection), stream)} <= every


@given(**cases(PLAIN, named=("query", "stream")), selection=st.sampled_from(ast.Selection))
def test_after_match_and_output_only_take_away(query: ast.Query, stream: Stream, selection: ast.Selection) -> None:
    selected = replace(query, selection=selection)
    every = {frozen(row) for row in rows(selected, stream)}
    skipping = replace(selected, after_match=ast.AfterMatch(ast.Skip.PAST_LAST))
    for reduced in (skipping, replace(selected, output=ast.Output.LONGEST)):
        assert {frozen(row) for row in rows(reduced, stream)} <= every


@given(**cases(PLAIN, named=("query", "stream")))
def test_matches_never_overlap_when_the_search_skips_past_the_last_event(query: ast.Query, stream: Stream) -> None:
    partitioned = replace(query, partition_by=(), where_clause=None)
    skipping = replace(partitioned, after_match=ast.AfterMatch(ast.Skip.PAST_LAST))
    intervals = [(row["start"], row["end"]) for row in rows(skipping, stream)]
    assert all(end <= start for (_, end), (start, _) in pairwise(intervals))


@given(**cases(replace(PLAIN, absence=False), named=("query", "stream")))
def test_a_longer_window_never_loses_a_match(query: ast.Query, stream: Stream) -> None:
    windowed = replace(query, within=query.within or ast.Window(3_000_000))
    longer = replace(windowed, within=ast.Window(windowed.within.size_us + 1_000_000))
    short, long = (Count(frozen(row) for row in rows(one, stream)) for one in (windowed, longer))
    assert short <= long
    assert all(row["end"] - row["start"] < windowed.within.size_us for row in rows(windowed, stream))


@given(**cases(replace(PLAIN, absence=False), named=("query", "stream")))
def test_another_event_never_takes_an_any_match_away_without_absence(query: ast.Query, stream: Stream) -> None:
    fewer = {kind: events[:-1] for kind, events in stream.items()}
    assert Count(frozen(row) for row in rows(query, fewer)) <= Count(frozen(row) for row in rows(query, stream))


@given(**cases(PLAIN, named=("query", "stream")))
def test_the_parts_of_an_or_may_stand_in_any_order(query: ast.Query, stream: Stream) -> None:
    def mirrored(element: ast.Element) -> ast.Element:
        if not isinstance(element, ast.Composite):
            return element
        parts = tuple(mirrored(part) for part in element.parts)
        turned = element.operator is not ast.Operator.SEQ
        return replace(element, parts=parts[::-1] if turned else parts)

    assert_same_rows(rows(replace(query, pattern=mirrored(query.pattern)), stream), rows(query, stream))


@given(**cases(PLAIN, named=("query", "stream")))
def test_partitions_are_independent(query: ast.Query, stream: Stream) -> None:
    keyed = replace(query, partition_by=(ast.Key("k"),))
    keys = {row["k"] for events in stream.values() for row in events}
    apart = [
        row
        for key in keys
        for row in rows(keyed, {kind: [row for row in events if row["k"] == key] for kind, events in stream.items()})
    ]
    assert_same_rows(apart, rows(keyed, stream))


@settings(max_examples=30)
@given(queries(PLAIN), streams(max_events=6))
def test_count_is_the_number_of_matches(query: ast.Query, stream: Stream) -> None:
    counted = rows(replace(query, output=ast.Output.COUNT), stream)
    assert counted == [{"count": len(rows(query, stream))}]


@given(streams(types=("A",), max_events=7))
def test_kleene_plus_finds_every_increasing_subset(stream: Stream) -> None:
    """Note 2 of SEMANTICS §3: chains of strictly increasing time, counted by dynamic programming."""
    per_instant: dict[int, int] = {}
    for row in stream["A"]:
        if row["ts"] is not None:
            per_instant[row["ts"]] = per_instant.get(row["ts"], 0) + 1
    chains = 1
    for number in per_instant.values():
        chains *= 1 + number
    query = alg.Query(alg.Repeat(alg.Event("A", "a"), 1, None))
    assert len(reference.evaluate(query, stream)) == chains - 1


class Count(dict[Any, int]):
    """A bag with inclusion."""

    def __init__(self, items: Any) -> None:
        super().__init__()
        for item in items:
            self[item] = self.get(item, 0) + 1

    def __le__(self, other: dict[Any, int]) -> bool:
        return all(number <= other.get(item, 0) for item, number in self.items())


# --- time-outs ------------------------------------------------------------------------------------


def held_before(missing: str, names: list[str], row: dict[str, Any]) -> Any:
    """What a row binds to the variables before one."""
    return frozen([row[name] for name in names[: names.index(missing)]])


@settings(max_examples=200)
@given(queries_with_streams(replace(TIMEOUTS, returns=False)))
def test_no_time_out_is_the_beginning_of_a_match(case: tuple[ast.Query, list[Stream]]) -> None:
    query, (stream,) = case
    names = list(translate(query).query.variables)
    numbered = {kind: [{**row, "id": number} for number, row in enumerate(events)] for kind, events in stream.items()}
    found = rows(query, numbered)
    for late in (row for row in found if row["status"] == "timeout"):
        assert all(late[name] is None for name in names[names.index(late["missing"]) :])
        began = held_before(late["missing"], names, late)
        matches = (row for row in found if row["status"] == "match")
        assert all(held_before(late["missing"], names, match) != began for match in matches)
