"""What the native engine refuses before it touches any DataFrame."""

from __future__ import annotations

import pytest

import tocsin
from tocsin.plan.joins.refusals import unsupported

CLAIMED = [
    "PATTERN A a",
    "PATTERN SEQ(A a, AND(B b, OR(C c, SEQ(D d, E e))), F f) WHERE a.x = f.x",
    "PATTERN SEQ(A a, B? b, C c) WITHIN 1 MINUTE",
    "PATTERN SEQ(NOT N m, A a, NOT B b, C c, NOT D d) WHERE b.x > c.x WITHIN 1 MINUTE",
    "PATTERN SEQ(A a, B{9} b, C{0,4} c) WHERE b[i].x > b[i-1].x AND SUM(c.x) < 9 WITHIN 1 MINUTE RETURN b.x, c[last].x",
    "PATTERN SEQ(A a, B b) PARTITION BY k WHERE [j] WITHIN 1 MINUTE RETURN a.x, COUNT(b) AS n HAVING n > 0",
]

REFUSED = {
    "PATTERN SEQ(A a, B+ b) WITHIN 1 MINUTE": "The iteration of `b`",
    "PATTERN SEQ(A a, B b){2} WITHIN 1 MINUTE": "The iteration of `a`, `b`",
    "PATTERN SEQ(A a, B{10} b) WITHIN 1 MINUTE": "The iteration of `b`",
    "PATTERN SEQ(A a, B{2,5} b) WITHIN 1 MINUTE": "The iteration of `b`",
    "PATTERN SEQ(B{2} b, A `b[1]`)": "The iteration of `b` beside a variable that is called like one of its copies",
    "PATTERN SEQ(A a, B b) SEMANTICS next": "SEMANTICS next",
    "PATTERN SEQ(A a, B b) AFTER MATCH SKIP PAST LAST EVENT": "AFTER MATCH SKIP PAST LAST",
    "PATTERN SEQ(A a, B b) OUTPUT longest": "OUTPUT longest",
    "PATTERN SEQ(A a, B b) OUTPUT count": "Aggregation over all matches",
    "PATTERN SEQ(A a, B b) RETURN COUNT(*)": "Aggregation over all matches",
    "PATTERN SEQ(A a, B b) RETURN a.x, SUM(b.y) GROUP BY a.x": "Aggregation over all matches",
    "PATTERN SEQ(A a, B b) WITHIN 1 MINUTE WITH TIMEOUTS": "WITH TIMEOUTS",
}


@pytest.mark.parametrize("text", CLAIMED)
def test_what_can_be_joined_is_claimed(text: str) -> None:
    assert unsupported(tocsin.pattern(text).query) is None


@pytest.mark.parametrize(("text", "construct"), REFUSED.items())
def test_a_refusal_names_the_construct_and_another_way(text: str, construct: str) -> None:
    refusal = unsupported(tocsin.pattern(text).query)
    assert refusal is not None
    assert refusal.condition == "OPTION_REFUSED"
    assert refusal.message.startswith(construct)
    assert "leave out `strategy=`" in str(refusal)


def test_a_refusal_shows_the_place() -> None:
    refusal = unsupported(tocsin.pattern("PATTERN SEQ(A a, B+ b)", name="mine.sase").query)
    assert refusal is not None
    assert "at mine.sase:1:18" in str(refusal)


def test_too_many_alternatives_are_refused() -> None:
    parts = ", ".join(f"A? a{number}" for number in range(12))
    refusal = unsupported(tocsin.pattern(f"PATTERN SEQ({parts}) WITHIN 1 MINUTE").query)
    assert refusal is not None
    assert "more than 256 ways" in refusal.message


def test_many_differing_absences_of_the_same_bindings_are_refused() -> None:
    branches = ", ".join(f"SEQ(A a, NOT B n{number}, C c)" for number in range(4))
    refusal = unsupported(tocsin.pattern(f"PATTERN OR({branches}) WITHIN 1 MINUTE").query)
    assert refusal is not None
    assert "under many different NOTs" in refusal.message


def test_a_sliding_window_needs_a_window() -> None:
    query = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k").query
    assert unsupported(query) is None
    refusal = unsupported(query, sliding=True)
    assert refusal is not None
    assert "without WITHIN" in refusal.message
