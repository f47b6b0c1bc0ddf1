"""RETURN and HAVING over bags of events: what Spark computes on arrays is what the reference computes on lists."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import types as T

import tocsin
from tocsin.algebra import nodes as alg
from tocsin.engines.spark.bags import Bag, Binding, event_in
from tocsin.engines.spark.columns import Compiler
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select, where
from tocsin.reference.conditions import interpret
from tocsin.reference.outputs import _returned
from tocsin.reference.stream import Event
from tocsin.testing.cases import frozen

FIELDS = (
    "ts bigint, i int, j bigint, f double, s string, t timestamp, d decimal(10,2), k boolean, n int, w interval day to "
    "second, p struct<q: int>"
)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
PATTERN = "PATTERN SEQ(A? a, B+ b, C* c)"


def element() -> T.StructType:
    schema = T._parse_datatype_string(FIELDS)
    assert isinstance(schema, T.StructType)
    return schema


@pytest.fixture(scope="module")
def schema(spark: SparkSession) -> T.StructType:
    struct = element()
    return (
        T.StructType()
        .add("row", T.LongType())
        .add("a", struct)
        .add("b", T.ArrayType(struct))
        .add("c", T.ArrayType(struct))
    )


def bindings(schema: T.StructType) -> dict[str, Binding | Bag]:
    struct = schema["a"].dataType
    assert isinstance(struct, T.StructType)
    fields = {field.name: (field.name, field.dataType) for field in struct.fields}
    return {"a": event_in(F.col("a"), fields), "b": Bag(F.col("b"), fields), "c": Bag(F.col("c"), fields)}


# --- values and expressions -----------------------------------------------------------------------

INTS = st.none() | st.integers(-3, 3)
LONGS = st.none() | st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 2**62])
DOUBLES = st.none() | st.sampled_from([0.0, -0.0, 0.1, 1.5, -2.25, 1e17, -1e17, math.nan, math.inf, -math.inf])
EVENTS = st.fixed_dictionaries(
    {
        "ts": st.integers(0, 9),
        "i": INTS,
        "j": LONGS,
        "f": DOUBLES,
        "s": st.none() | st.sampled_from(["", "a", "b", "Å"]),
        "t": st.none() | st.integers(-5, 5).map(lambda n: EPOCH + dt.timedelta(hours=n)),
        "d": st.none() | st.integers(-200, 200).map(lambda n: decimal.Decimal(n).scaleb(-2)),
        "k": st.none() | st.booleans(),
        "n": st.none(),
        "w": st.none() | st.integers(-5, 5).map(lambda n: dt.timedelta(seconds=n)),
        "p": st.none() | st.fixed_dictionaries({"q": INTS}),
    }
)
BAGS = st.fixed_dictionaries(
    {
        "a": st.none() | EVENTS,
        "b": st.lists(EVENTS, min_size=1, max_size=4),
        "c": st.none() | st.lists(EVENTS, max_size=3),
    }
)


@dataclass(frozen=True)
class Family:
    """What may meet in one expression.

    Where an integer beside a double stays one in the reference (`COALESCE(b.f, b.j)`), it is a double on Spark, which
    has one type per column. That can be seen only near 64 bits, so that only integers meet there.
    """

    attributes: tuple[str, ...]
    literals: tuple[str, ...]
    operators: str
    functions: tuple[str, ...]


COMMON = ("COUNT", "SUM", "MIN", "MAX", "RANGE", "FIRST", "LAST")
# A sum beyond 64 bits stops the whole job, so that large numbers are not added up here.
WIDE = Family(("i", "j", "n", "p.q"), ("0", "1", "-2", "NULL"), "+-*%", ("COUNT", "MIN", "MAX", "FIRST", "LAST"))
MIXED = Family(("i", "f", "n", "p.q"), ("0", "1", "2.5", "0.0", "NULL"), "+-*/%", (*COMMON, "AVG", "STDDEV"))


@st.composite
def numbers(draw: st.DrawFn, family: Family, leaves: st.SearchStrategy[str], depth: int = 2) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(leaves)
    one = draw(numbers(family, leaves, depth - 1))
    other = draw(numbers(family, leaves, depth - 1) | st.sampled_from(family.literals))
    forms = [f"({{one}} {op} {{other}})" for op in family.operators]
    forms += ["(-{one})", "ABS({one})", "COALESCE({one}, {other})", "GREATEST({one}, {other})"]
    forms += ["NULLIF({one}, {other})", "CASE WHEN {test} THEN {one} ELSE {other} END"]
    test = draw(truths(family, leaves, depth - 1))
    return draw(st.sampled_from(forms)).format(one=one, other=other, test=test)


@st.composite
def truths(draw: st.DrawFn, family: Family, leaves: st.SearchStrategy[str], depth: int = 2) -> str:
    if depth == 0 or draw(st.booleans()):
        one, other = draw(leaves), draw(leaves | st.sampled_from(family.literals))
        forms = [f"{{one}} {op} {{other}}" for op in ("=", "!=", "<", "<=", ">", ">=")]
        forms += ["{one} IS NULL", "{one} IS NOT NULL", "{one} IN (1, {other})", "{one} BETWEEN {other} AND 2"]
        return draw(st.sampled_from(forms)).format(one=one, other=other)
    left, right = draw(truths(family, leaves, depth - 1)), draw(truths(family, leaves, depth - 1))
    return draw(st.sampled_from(["({0} AND {1})", "({0} OR {1})", "(NOT ({0}))"])).format(left, right)


@st.composite
def aggregates(draw: st.DrawFn, family: Family) -> str:
    variable = draw(st.sampled_from("abc"))
    inner = st.sampled_from([f"{variable}.{name}" for name in family.attributes])
    function = draw(st.sampled_from(family.functions))
    distinct = draw(st.sampled_from(["", "", "DISTINCT "])) if function == "COUNT" else ""
    return f"{function}({distinct}{draw(numbers(family, inner))})"


@st.composite
def expressions(draw: st.DrawFn) -> str:
    family = draw(st.sampled_from([WIDE, MIXED]))
    references = [
        f"{variable}{index}.{name}"
        for variable in "bc"
        for index in ("[1]", "[2]", "[4]", "[first]", "[last]")
        for name in family.attributes
    ]
    references += [f"a.{name}" for name in family.attributes] + ["COUNT(a)", "COUNT(b)", "COUNT(c)"]
    leaves = st.sampled_from(references) | aggregates(family)
    return draw(numbers(family, leaves) | truths(family, leaves))


def events_of(rows: list[dict[str, Any]] | None) -> tuple[Event, ...]:
    return tuple(Event("X", row["ts"], row["ts"], row, place, place) for place, row in enumerate(rows or []))


def bags_of(match: dict[str, Any]) -> dict[str, tuple[Event, ...]]:
    found = {name: events_of(match[name]) for name in "bc"} | {"a": events_of(match["a"] and [match["a"]])}
    return {name: events for name, events in found.items() if events}


def computed(
    spark: SparkSession, schema: T.StructType, texts: list[str], matches: list[dict[str, Any]]
) -> tuple[alg.Query, list[Row]]:
    columns = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
    query = tocsin.pattern(f"{PATTERN} WITHIN 10 SECONDS RETURN {columns}").query
    compiler = Compiler(bindings(schema))
    rows = [(number, match["a"], match["b"], match["c"]) for number, match in enumerate(matches)]
    frame = spark.createDataFrame(rows, schema)
    out = [compiler.output(one.expression).alias(one.name) for one in query.returns]
    return query, sorted(select(frame, F.col("row"), *out).collect(), key=lambda row: row["row"])


def plain(value: Any) -> Any:
    if isinstance(value, Row):
        return {name: plain(one) for name, one in value.asDict().items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) else value


def differences(
    spark: SparkSession, schema: T.StructType, texts: list[str], matches: list[dict[str, Any]]
) -> dict[str, Any]:
    query, rows = computed(spark, schema, texts, matches)
    found = {}
    for match, row in zip(matches, rows, strict=True):
        bags = bags_of(match)
        for text, returned in zip(texts, query.returns, strict=True):
            expected = _returned(query, returned.expression, bags)
            if frozen(plain(row[returned.name])) != frozen(expected):
                found[text] = (match, plain(row[returned.name]), expected)
    return found


@pytest.fixture(params=["true", "false"], ids=["ANSI", "no ANSI"], scope="module")
def session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield spark
    assert before is not None
    spark.conf.set("spark.sql.ansi.enabled", before)


# --- tests ----------------------------------------------------------------------------------------


# A Spark job takes long, so that one example is many expressions over many matches, and is not made smaller when it
# fails: what differs is shown by itself.
@pytest.mark.filterwarnings("ignore:.*NULL_COMPARISON")
@settings(
    phases=[Phase.explicit, Phase.generate],
    max_examples=max(4, (settings.default or settings()).max_examples // 8),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large],
)
@given(texts=st.lists(expressions(), min_size=25, max_size=40), matches=st.lists(BAGS, min_size=10, max_size=20))
def test_every_expression_over_bags_has_the_value_the_reference_gives_it(
    session: SparkSession, schema: T.StructType, texts: list[str], matches: list[dict[str, Any]]
) -> None:
    assert differences(session, schema, texts, matches) == {}


NUMERIC = ("i", "j", "f", "d", "n")
EVERY = [
    *(f"{name}({variable}.{column})" for variable in "abc" for column in NUMERIC for name in
      ("COUNT", "SUM", "MIN", "MAX", "AVG", "RANGE", "STDDEV", "FIRST", "LAST", "COLLECT")
      if column != "j" or name not in ("SUM", "RANGE")),
    *(f"{name}({variable}.{column})" for variable in "bc" for column in ("s", "t", "k", "w", "p.q") for name in
      ("COUNT", "MIN", "MAX", "FIRST", "LAST", "COLLECT")),
    *(f"COUNT(DISTINCT {variable}.{column})" for variable in "bc" for column in "ijfdstkw"),
    *(f"{variable}{index}.{column}" for variable in "bc" for index in ("", "[1]", "[3]", "[first]", "[last]")
      for column in ("i", "f", "s", "t", "d", "w", "p", "p.q")),
    "a", "b", "c", "COUNT(a)", "COUNT(b)", "COUNT(c)", "a.p", "a.p.q",
    "COUNT(a.i IS NULL)", "COUNT(b.i IS NULL)", "COUNT(c.i IS NULL)",
    "SUM(DISTINCT b.i)", "AVG(DISTINCT b.f)", "STDDEV(DISTINCT b.i)", "COLLECT(DISTINCT b.s)",
    "SUM(b.i * 2)", "SUM(b.d * 2)", "SUM(b.i + b.f)", "AVG(b.j + 1)", "COLLECT(b.t + 1 HOUR)", "COLLECT(b.w * 2)",
    "COLLECT(b.p)", "FIRST(b.p)", "MAX(b.t) - MIN(b.t)", "b[last].t - b[first].t", "MAX(b.t + 1 HOUR)",
    "MAX(UPPER(b.s))", "COUNT(b) + COUNT(c) > 2 AND SUM(b.i) > 0",
]  # fmt: skip


@settings(max_examples=2)
@given(matches=st.lists(BAGS, min_size=30, max_size=30))
def test_every_aggregate_and_index_of_every_type_has_the_value_the_reference_gives_it(
    session: SparkSession, schema: T.StructType, matches: list[dict[str, Any]]
) -> None:
    assert differences(session, schema, EVERY, matches) == {}


def one_event(**values: Any) -> dict[str, Any]:
    return {name: None for name in element().names} | {"ts": 1} | values


def test_sums_are_exact_and_stop_the_job_when_the_result_is_beyond_64_bits(
    session: SparkSession, schema: T.StructType
) -> None:
    most = 2**63 - 1

    def matches(*bags: list[int]) -> list[dict[str, Any]]:
        return [{"a": None, "b": [one_event(j=value) for value in bag], "c": None} for bag in bags]

    fitting = matches([most, 1, -5], [-most, -1], [2**62, 2**62, -(2**62)])
    _, rows = computed(session, schema, ["SUM(b.j)", "AVG(b.j)"], fitting)
    assert [row.c0 for row in rows] == [most - 4, -(2**63), 2**62]
    assert differences(session, schema, ["AVG(b.j)"], matches([most, 1])) == {}
    assert differences(session, schema, ["RANGE(b.j)"], matches([most, 0], [-1, most - 1], [])) == {}
    for text, bag in (("SUM(b.j)", [most, 1]), ("SUM(b.j)", [-most, -2]), ("RANGE(b.j)", [-1, most])):
        with pytest.raises(Exception, match="NUMBER_TOO_LARGE"):
            computed(session, schema, [text], matches(bag))


def test_sums_of_doubles_keep_what_cancels(session: SparkSession, schema: T.StructType) -> None:
    matches = [{"a": None, "b": [one_event(f=value) for value in (1e17, 1.0, -1e17)], "c": None}]
    _, (row,) = computed(session, schema, ["SUM(b.f)", "AVG(b.f)"], matches)
    assert row.c0 == 1.0
    assert row.c1 == pytest.approx(1 / 3)


def test_having_keeps_the_matches_for_which_it_is_true(spark: SparkSession, schema: T.StructType) -> None:
    text = f"{PATTERN} WITHIN 10 SECONDS RETURN COUNT(b) AS n HAVING n > 1 AND SUM(c.i) >= 0 AND b[first].i = 1"
    having = tocsin.pattern(text).query.having
    assert having is not None
    event = one_event(i=1)
    matches: list[dict[str, Any]] = [
        {"a": None, "b": [event, event], "c": None},
        {"a": None, "b": [event], "c": None},
        {"a": None, "b": [event, event], "c": [one_event(i=-1)]},
        {"a": None, "b": [one_event(), event], "c": None},
    ]
    rows = [(number, match["a"], match["b"], match["c"]) for number, match in enumerate(matches)]
    kept = where(spark.createDataFrame(rows, schema), Compiler(bindings(schema)).condition(having))
    expected = [number for number, match in enumerate(matches) if interpret(having, bags_of(match), {}) is True]
    assert sorted(row["row"] for row in kept.collect()) == expected == [0]


def test_a_bag_is_returned_under_the_names_of_its_attributes_whatever_its_fields_are_called(
    spark: SparkSession,
) -> None:
    frame = spark.sql("SELECT ARRAY(NAMED_STRUCT('f0', 1, 'f1', 'x')) AS held UNION ALL SELECT ARRAY()")
    bag = Bag(F.col("held"), {"X": ("f0", T.IntegerType()), "x": ("f1", T.StringType())})
    rows = select(frame, bag.event.alias("b"), bag.attributes(("x",)).alias("x")).collect()
    assert sorted(repr(plain(row.b)) for row in rows) == ["None", "[{'X': 1, 'x': 'x'}]"]
    assert sorted(repr(row.x) for row in rows) == ["None", "['x']"]
