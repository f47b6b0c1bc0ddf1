"""The longest matches of an iteration are read off windows (O2): the reference's, in any number per window."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.test_acel import assert_equal, tables_of
from tests.engines.test_equals_reference import compiled
from tests.fitting import drawn_for

import tocsin
from tocsin import reference
from tocsin.engines.local import match as local
from tocsin.kernels.nested_loops import Kernel
from tocsin.options import Options
from tocsin.testing.streams import Streams

COPIES = st.sampled_from(["{2,}", "+", "{1,3}", "{3,}", "*", "{2}"])
WHERE = st.sampled_from(["", "", "WHERE a.x > 0", "WHERE a.x > 0 AND a.v < 2", "WHERE a[i].x >= a[i-1].x"])
PARTITIONS = st.sampled_from(["", "PARTITION BY k"])
WITHIN = st.sampled_from(["WITHIN 3 SECONDS", "WITHIN 1 SECOND", "WITHIN 8 SECONDS", ""])
AFTER = st.sampled_from(
    ["", "", "AFTER MATCH SKIP PAST LAST", "AFTER MATCH SKIP TO NEXT", "AFTER MATCH SKIP TO LAST a"]
)
RETURN = st.sampled_from(
    [
        "",
        "RETURN COUNT(*) AS n, SUM(a.x) AS s",
        # All that follow need no bags.
        "RETURN COUNT(a) AS n, SUM(a.x) AS s",
        "RETURN COUNT(a.x) AS n, AVG(a.x) AS m, MIN(a.x) AS low, MAX(a.v) AS high, RANGE(a.v) AS r",
        "RETURN SUM(a.v) AS s, AVG(a.v) AS m, MIN(a.v) AS low, FIRST(a.k) AS f, a[last].x AS l, a[1].v AS o",
        "RETURN RANGE(a.x) AS r, LAST(a.k) AS k HAVING COUNT(a.v) > 2",
        "RETURN COUNT(a) AS n, MAX(a.x) AS high HAVING n > 1 AND (SUM(a.x) > 1 OR high IS NULL)",
    ]
)


def pattern_of(clauses: tuple[str, ...]) -> tocsin.Pattern:
    copies, *others = clauses
    return compiled(f"PATTERN A{copies} a {' '.join(others)} OUTPUT longest")


@settings(max_examples=80, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    **drawn_for(
        st.tuples(COPIES, WHERE, PARTITIONS, WITHIN, AFTER, RETURN).map(pattern_of),
        lambda pattern: pattern.query,
        named=("pattern", "rows"),
    ),
    tie=st.sampled_from([None, "x"]),
)
def test_they_are_those_of_the_reference(pattern: tocsin.Pattern, rows: Streams, tie: str | None) -> None:
    found = local.match(pattern.query, tables_of(rows), Options(tie=tie)).to_pylist()
    assert_equal(pattern, found, reference.evaluate(pattern.query, rows, tie=tie))


@pytest.mark.parametrize(
    ("returns", "least"),
    [
        ("COUNT(v) AS n HAVING n >= 3", 3),
        ("SUM(v.x) AS s HAVING COUNT(v) >= 4", 4),
        ("v[last].x HAVING COUNT(v) > 4", 5),
    ],
)
def test_having_reads_the_aggregates_of_windows(returns: str, least: int) -> None:
    pattern = tocsin.pattern(f"PATTERN V+ v WITHIN 1 HOUR OUTPUT longest RETURN {returns}")
    assert pattern.match({"V": seconds(9)}, engine="local").num_rows == 9 - least + 1


def seconds(number: int) -> list[dict[str, Any]]:
    return [{"ts": second * 1_000_000, "x": second} for second in range(number)]


@pytest.mark.long
def test_windows_of_thousands_of_events_cost_what_their_events_cost() -> None:
    pattern = tocsin.pattern(
        "PATTERN V{3,} v WHERE v.x >= 0 WITHIN 10000 SECONDS OUTPUT longest "
        "RETURN COUNT(v) AS n, AVG(v.x) AS m, MAX(v.x) AS high, v[last].x AS l"
    )
    tracemalloc.start()
    try:
        found = pattern.match({"V": seconds(2_000)}, engine="local").sort_by("start").to_pylist()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    last = 1_999
    assert [tuple(row[name] for name in ("n", "m", "high", "l")) for row in found] == [
        (2_000 - first, (first + last) / 2, last, last) for first in range(1_998)
    ]
    assert most < 16_000_000  # bags would take 2,000 × 1,000 × 8 bytes


@pytest.mark.long
def test_a_window_may_have_thousands_of_events() -> None:
    pattern = tocsin.pattern(
        "PATTERN V{3,} v WHERE v.x % 2 = 0 WITHIN 10000 SECONDS AFTER MATCH SKIP PAST LAST "
        "OUTPUT longest RETURN COUNT(v) AS n, AVG(v.x) AS m"
    )
    found = pattern.match({"V": seconds(25_000)}, engine="local").sort_by("start").to_pylist()
    assert [(row["n"], row["m"]) for row in found] == [(5_000, 4_999.0), (5_000, 14_999.0), (2_500, 22_499.0)]
    many = tocsin.pattern("PATTERN V{3,} v WITHIN 200 SECONDS OUTPUT longest RETURN COUNT(v) AS n, AVG(v.x) AS m")
    counts = many.match({"V": seconds(400)}, engine="local").sort_by("start")["n"].to_pylist()
    assert counts == [200] * 201 + list(range(199, 2, -1))


def test_nothing_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernel, "kept", lambda *_: pytest.fail("the search enumerates"))
    found = tocsin.pattern("PATTERN V+ v WITHIN 1 HOUR OUTPUT longest").match({"V": seconds(60)}, engine="local")
    assert found.num_rows == 60


@pytest.mark.parametrize(
    ("where", "line"),
    [("v.x > 1", "O2: read the longest match of each start off its window"), ("v[i].x > v[i-1].x", "search")],
)
def test_explain_names_it(where: str, line: str) -> None:
    pattern = tocsin.pattern(f"PATTERN V{{3,}} v WHERE {where} WITHIN 1 HOUR OUTPUT longest")
    assert f"  {line}, report longest" in str(pattern.explain())
