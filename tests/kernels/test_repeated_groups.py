"""Conditions on variables of repeated groups are about all copies, however deep in the group the variables stand."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.test_acel import assert_equal, tables_of
from tests.engines.test_equals_reference import compiled
from tests.fitting import fitting

from tocsin import reference
from tocsin.engines.local import match as local
from tocsin.options import Options

PARTS = st.sampled_from(
    [
        "OR(A a, B b)",
        "OR(A a, A b)",
        "OR(SEQ(A a, B b), B d)",
        "OR(AND(A a, B b), A d)",
        "OR(SEQ(A a, NOT C n, B b), A d)",
        "OR(A{1,2} a, B b)",
        "SEQ(OR(A a, B b), A d)?",
        "SEQ(OR(A a, B b), B d){1,2}",
    ]
)
AROUND = st.sampled_from(["SEQ({0}, A e)", "SEQ(A e, {0})", "AND({0}, B e)"])
COPIES = st.sampled_from(["{2}", "{1,2}", "{2,3}", "+"])
INDEX = st.sampled_from(["[1]", "[first]", "[last]", "[2]", "", "[i]", "[i-1]"])
SIDES = st.sampled_from(
    ["a{0}.x <= 1", "a{0}.x > b{1}.x", "a{0}.x = e{1}.x", "b{0}.x < 2", "COUNT(a) >= 2", "SUM(b.x) > 1"]
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    group = draw(AROUND).format(draw(PARTS))
    said = [draw(SIDES).format(draw(INDEX), draw(INDEX)) for _ in range(draw(st.integers(1, 2)))]
    said += ["n.x > a.x"] if " n," in group and draw(st.booleans()) else []
    return f"PATTERN {group}{draw(COPIES)} WHERE {' AND '.join(said)} WITHIN 9 SECONDS"


@settings(max_examples=250, suppress_health_check=list(HealthCheck), deadline=None)
@given(text=queries(), data=st.data())
def test_they_are_those_of_the_reference(text: str, data: st.DataObject) -> None:
    pattern = compiled(text)
    rows = data.draw(fitting(pattern.query, max_events=9))
    found = local.match(pattern.query, tables_of(rows), Options(strategy="kernel")).to_pylist()
    assert_equal(pattern, found, reference.evaluate(pattern.query, rows))
