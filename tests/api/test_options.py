"""No engine ignores an option: every option of `match` has an effect where it is accepted, or is refused by name.

The walk is over every engine (local, batch, stream) × patterns and rules × every option × (valid, invalid). What a
valid option changes is read off what reaches the engine: rows on the local engine; on Spark the plan, the functions
that Python workers run, and warnings. Nothing runs on Spark.
"""

from __future__ import annotations

import dataclasses
import inspect
import random
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import tocsin
from tocsin import errors, reference
from tocsin.optimizer.statistics import Statistics
from tocsin.options import BATCH, LOCAL, OPTIONS, STREAM, Options
from tocsin.plan.strategies.aggregate import Aggregate
from tocsin.testing.streams import SEEDS

SECOND = 1_000_000
ANY = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 10 MINUTES")
ORDERED = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 10 MINUTES SEMANTICS partition-contiguous")
TEMPLATES = "template A { x : Integer  k : Integer }  template B { x : Integer  k : Integer }"
RULE = "rule R where a : A  b : B { k = a.k } when b in a [0 seconds, 10 minutes]"
RULES = tocsin.rules(f"{TEMPLATES} {RULE}")
RULES_IN_ORDER = tocsin.rules(f"{TEMPLATES} {RULE} select contiguous")
TIMES = (("A", 1, 2), ("B", 2, 10), ("B", 2, 9), ("A", 3, 1), ("B", 4, 0))  # as texts, 10 is before 9
ROWS = [
    {"type": kind, "kind": "BA"[kind == "B"], "ts": at * SECOND, "at": (at + 100) * SECOND, "seq": seq, "x": x, "k": 1}
    for x, (kind, at, seq) in enumerate(TIMES)
]

# A value for every option that has an effect where it is accepted.
VALID: dict[str, Any] = {
    "time": "at",
    "tie": ["seq"],
    "type": "kind",
    "id": "x",
    "time_unit": "s",
    "engine": "local",
    "form": "compact",
    "strategy": "aggregate",
    "max_matches_per_start": 1,
    "max_task_memory": "1 B",
    "statistics": Statistics.of({"A": 1e9, "B": 1e9}, duration=3_600 * SECOND),
    "rates": {"A": "1000000/s", "B": "1000000/s"},
    "lateness": "3 minutes",
    "shards": 7,
    "emit": "watermark",
    "heartbeats": ...,  # a stream of times, made where there is a session
    "late": True,
    "idle_timeout": "2 minutes",
}
INVALID: dict[str, list[Any]] = {
    "time": [None, 5, "", ["ts"], "nope"],
    "tie": [5, [5], "", "nope"],
    "type": [None, 5, "nope"],
    "id": [5, "", "nope"],
    "time_unit": [5, "", "minutes", ["s"]],
    "engine": [None, "sparc", ["local"]],
    "form": [None, "compcat", {}],
    "strategy": [None, "kernels", 5],
    "max_matches_per_start": [None, 0, -5, True, 1.5, "many"],
    "max_task_memory": [None, 0, -5, True, 1.5, "many", "1GB per key"],
    "statistics": [5, {"A": 3}],
    "rates": [5, {"A": "often"}],
    "lateness": ["soon", -1, "-3 seconds", "99999999999999 weeks"],
    "shards": [0, -1, "two", True],
    "emit": [None, "xyz", 3],
    "heartbeats": [5, {"A": 5}],
    "late": [None, "stop", 1],
    "idle_timeout": ["soon", 5],
}
FACES = ("pattern", "rules", "one rule")
PLACES = (LOCAL, BATCH, STREAM)
# A stream of rules emits its matches with the watermark anyway, and `form="compact"` is refused by rules.
OF_PATTERNS = ("emit", "form")


def asked(face: str, *, in_order: bool = False) -> Callable[..., Any]:
    if face == "pattern":
        return (ORDERED if in_order else ANY).match
    program = RULES_IN_ORDER if in_order else RULES
    if face == "rules":
        return program.match
    return lambda inputs, **options: program.matches("R", inputs, **options)


def inputs_of(spark: SparkSession, place: str) -> Any:
    """Rows with a type column, or a DataFrame of such."""
    if place == LOCAL:
        return ROWS
    if place == BATCH:
        return spark.createDataFrame(ROWS)
    texts = {"type": "'A'", "kind": "'A'"}
    stream = spark.readStream.format("rate").load()
    return stream.selectExpr(*(f"{texts.get(name, 'value')} AS {name}" for name in ROWS[0]))


def required(place: str) -> dict[str, Any]:
    return {LOCAL: {"engine": "local"}, BATCH: {}, STREAM: {"lateness": "1 minute"}}[place]


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Python workers are to run, in words; locally, whether windows are aggregated."""
    from pyspark.sql.classic.dataframe import DataFrame as Classic
    from pyspark.sql.pandas.group_ops import PandasGroupedOpsMixin

    seen: list[str] = []
    search = Aggregate.search
    monkeypatch.setattr(Aggregate, "search", lambda own, bound: (seen.append("aggregate"), search(own, bound))[1])
    for owner, name in ((Classic, "mapInArrow"), (PandasGroupedOpsMixin, "applyInPandasWithState")):
        monkeypatch.setattr(owner, name, _recorded(getattr(owner, name), seen))
    return seen


def _recorded(original: Any, seen: list[str]) -> Any:
    def recorded(this: Any, function: Any, *more: Any) -> Any:
        seen.append(re.sub(r" at 0x[0-9a-f]+|start_ms=\d+", "", repr(function)))
        return original(this, function, *more)

    return recorded


def outcome(face: str, inputs: Any, workers: list[str], option: str, options: dict[str, Any]) -> Any:
    """All that an option can change."""
    workers.clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = asked(face, in_order=option == "tie")(inputs, **options)
        except (errors.TooManyMatchesError, errors.TooMuchMemoryError) as problem:
            return str(problem)
    if not isinstance(found, DataFrame):
        return found.to_pylist(), list(workers)
    plan = found._jdf.queryExecution().analyzed().toString()  # type: ignore[operator]
    # Without the numbers of expressions and of the DataFrame that metrics are observed on, which are never the same.
    plan = re.sub(r"#\d+L?|@[0-9a-f]+|(?<=\]), \d+$", "", plan, flags=re.MULTILINE)
    return plan, list(workers), [str(one.message) for one in told]


def test_the_table_has_every_option_with_its_default() -> None:
    for method in (tocsin.Pattern.match, tocsin.Rules.match, tocsin.Rules.matches, tocsin.Rules.events):
        parameters = inspect.signature(method).parameters.values()
        options = {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY and one.name != "rules"}
        assert options == {name: option.default for name, option in OPTIONS.items()}, method
        fields = {one.name: one.default for one in dataclasses.fields(Options) if one.name not in ("slice_us", "unit")}
        assert options == fields, method
    assert VALID.keys() == INVALID.keys() == OPTIONS.keys()
    explained = inspect.signature(tocsin.Pattern.explain).parameters
    assert {name for name, one in explained.items() if one.kind is one.KEYWORD_ONLY} - {"mode"} <= OPTIONS.keys()


@pytest.mark.parametrize("method", [tocsin.Rules.match, tocsin.Rules.matches, tocsin.Rules.events])
def test_rules_show_the_options_of_patterns_and_take_no_others(method: Callable[..., Any]) -> None:
    known = inspect.signature(tocsin.Pattern.match).parameters
    own = inspect.signature(method).parameters
    assert {name: own[name] for name in OPTIONS} == {name: known[name] for name in OPTIONS}
    first = {"matches": ["R"], "match": [], "events": ["C"]}[method.__name__]
    emits = "then emit C at a.timestamp with { x = 1 }"
    program = tocsin.rules(f"template C {{ x : Integer }} {TEMPLATES} {RULE} {emits}")
    with pytest.raises(TypeError, match="no option `engin`"):
        method(program, *first, {}, engin="local")


@pytest.mark.parametrize(
    ("method", "first", "other"),
    [
        (ANY.match, [ROWS], "slice_us"),
        (ANY.analyze, [ROWS], "engine"),
        (ANY.explain, [], "engine"),
        (ANY.check, [], "guarantees"),
        (RULES.check, [], "strategy"),
    ],
)
def test_no_method_takes_an_option_that_its_signature_does_not_have(
    method: Callable[..., Any], first: list[Any], other: str
) -> None:
    assert other not in inspect.signature(method).parameters
    with pytest.raises(TypeError, match=f"no option `{other}`"):
        method(*first, **{other: None})


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("face", FACES)
def test_a_wrong_value_is_refused_by_name_on_every_engine(spark: SparkSession, face: str, place: str) -> None:
    inputs = inputs_of(spark, place)
    for option, values in INVALID.items():
        for value in values:
            with pytest.raises(errors.TocsinError) as refused:
                asked(face)(inputs, **{**required(place), option: value})
            # A column that is not there is named itself; so is an event type whose rate is none.
            assert re.search(rf"`{option}\b|strategy `{value}`|`{value}`|rate of `A`", str(refused.value)), (
                option,
                value,
            )


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("face", FACES)
def test_a_right_value_has_an_effect_or_is_refused_by_name(
    spark: SparkSession, workers: list[str], face: str, place: str
) -> None:
    inputs = inputs_of(spark, place)
    beats = None if place == LOCAL else inputs_of(spark, STREAM)
    plain = {option: outcome(face, inputs, workers, option, required(place)) for option in ("tie", "time")}
    for option, value in VALID.items():
        if option == "engine":  # tables of another kind, which is another input
            continue
        wanted = beats if value is ... else value
        options = {**required(place), option: wanted}
        if place in OPTIONS[option].no_effect and wanted is not None:
            with pytest.raises(errors.InvalidOptionError, match=f"`{option}=` has no effect"):
                asked(face)(inputs, **options)
        elif option == "form" and face != "pattern":
            with pytest.raises(errors.InvalidOptionError, match='`form="compact"` is not for rules'):
                asked(face)(inputs, **options)
        elif wanted is not None:
            changed = outcome(face, inputs, workers, option, options)
            assert changed != plain["tie" if option == "tie" else "time"] or (option == "emit" and face != "pattern"), (
                option
            )


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("face", FACES)
def test_the_same_options_have_the_same_outcome(spark: SparkSession, workers: list[str], face: str, place: str) -> None:
    """So that a difference above is an effect."""
    inputs = inputs_of(spark, place)
    for option in ("time", "tie"):
        one, again = (outcome(face, inputs, workers, option, required(place)) for _ in range(2))
        assert one == again


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "join"}, "The strategy `join` is Spark's"),
        ({"strategy": "count"}, "The strategy `count` is Spark's"),
        ({"form": "compact", "max_matches_per_start": 5}, "`max_matches_per_start=` has no effect with `form="),
        ({"form": "compact", "id": "x"}, "`id=` has no effect with `form="),
        ({"strategy": "trend", "max_matches_per_start": 5}, "`max_matches_per_start=` has no effect with `strategy="),
    ],
)
def test_options_that_have_no_effect_beside_others_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InvalidOptionError, match=message):
        ANY.match(ROWS, engine="local", **options)


@pytest.mark.filterwarnings("ignore:.*PARTITION_CONTIGUITY")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 10 MINUTES", "no key splits its events"),
        (
            "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10 MINUTES SEMANTICS contiguous",
            "`SEMANTICS contiguous` counts the events of all keys",
        ),
        ("PATTERN SEQ(A a, B b) WITHIN 10 MINUTES RETURN COUNT(*) AS n EVERY 1 HOUR", "no key splits its events"),
        (
            f"{TEMPLATES} rule R where a : A  b : B when b in a [0 seconds, 10 minutes]",
            "no attribute is the same in all events of rule R",
        ),
        (f"{TEMPLATES} {RULE} select contiguous", "`select contiguous` of rule R looks at events of all keys"),
    ],
    ids=["no key", "contiguous", "counted", "rules", "rules in order"],
)
def test_shards_are_refused_where_there_is_one(spark: SparkSession, text: str, reason: str) -> None:
    query = tocsin.rules(text) if text.startswith("template") else tocsin.pattern(text)
    stream = inputs_of(spark, STREAM)
    for shards in (None, 1):
        assert query.match(stream, lateness="1 minute", shards=shards).isStreaming
    with pytest.raises(errors.InvalidOptionError, match=f"`shards=7` has no effect on this stream: {reason}"):
        query.match(stream, lateness="1 minute", shards=7)


def test_a_type_column_is_for_one_input() -> None:
    rows = {kind: [row for row in ROWS if row["type"] == kind] for kind in "AB"}
    for face in FACES:
        with pytest.raises(errors.InvalidOptionError, match="`type=` has no effect on one input for each event type"):
            asked(face)(rows, engine="local", type="kind")


@pytest.mark.parametrize("option", ["tie", "type", "id", "time_unit", "lateness", "emit"])
def test_explain_without_inputs_refuses_what_is_said_of_inputs(option: str) -> None:
    with pytest.raises(errors.InvalidOptionError, match=f"`{option}=` has no effect without `inputs`"):
        ANY.explain(**{option: VALID[option]})
    with pytest.raises(errors.InvalidOptionError, match="`mode=` has no effect without `inputs`"):
        ANY.explain(mode="formatted")


@pytest.mark.parametrize(
    "options", [{"time": 5}, {"time": "nope"}, {"tie": 5}, {"tie": "nope"}, {"type": None}, {"type": "nope"}]
)
def test_the_reference_refuses_wrong_columns_too(options: dict[str, Any]) -> None:
    for query in (ANY, RULES):
        with pytest.raises(errors.TocsinError):
            reference.evaluate(query, ROWS, **options)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text(max_size=3), st.lists(st.text(max_size=2)),
    st.sampled_from([*VALID.values(), *(value for values in INVALID.values() for value in values)]),
)  # fmt: skip


@st.composite
def asked_for(draw: st.DrawFn) -> dict[str, Any]:
    """A few options with values that have an effect somewhere; or each may be wrong everywhere, or any."""
    names = draw(st.lists(st.sampled_from([*OPTIONS]), max_size=3, unique=True))
    if draw(st.booleans()):
        return {name: VALID[name] for name in names}
    return {name: draw(st.just(VALID[name]) | st.sampled_from(INVALID[name]) | VALUES) for name in names}


@settings(max_examples=200)
@given(asked_for(), st.sampled_from(FACES))
def test_whatever_is_asked_of_the_local_engine_is_done_or_refused(options: dict[str, Any], face: str) -> None:
    options["engine"] = "local"
    idle = [
        name for name, value in options.items() if LOCAL in OPTIONS[name].no_effect and OPTIONS[name].is_given(value)
    ]
    try:
        asked(face)(ROWS, **options)
    except errors.TocsinError as problem:
        assert any(f"`{name}" in str(problem) or str(value) in str(problem) for name, value in options.items())
    else:
        assert not idle


IN_PLACE = [name for name, option in OPTIONS.items() if LOCAL not in option.no_effect and name != "engine"]


def valid_options(seed: int) -> dict[str, Any]:
    """Some of the options that have an effect on the local engine, each with a value that has one."""
    choose = random.Random(seed)
    names = choose.sample(IN_PLACE, choose.choice((1, 1, 2, 3, 4)))
    return {"engine": "local", **{name: VALID[name] for name in names}}


def local_outcome(face: str, options: dict[str, Any], *, in_order: bool) -> tuple[Any, list[dict[str, Any]]]:
    """All that options change on the local engine, and the rows of the result."""
    searched: list[str] = []
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        search = Aggregate.search
        patch.setattr(Aggregate, "search", lambda own, bound: (searched.append("aggregate"), search(own, bound))[1])
        try:
            found = asked(face, in_order=in_order)(ROWS, **options).to_pylist()
        except (errors.TooManyMatchesError, errors.TooMuchMemoryError) as problem:
            return str(problem), []
    return (found, searched, [str(one.message) for one in told]), found


def may_show(name: str, rows: list[dict[str, Any]]) -> bool:
    """Whether an option changes a result: one without rows shows nothing, and a limit only where it is exceeded."""
    if name != "max_matches_per_start":
        return bool(rows)
    starts = [repr(row.get("R", row)["a"]) for row in rows]
    return len(set(starts)) < len(starts)


@pytest.mark.parametrize("face", FACES)
@settings(max_examples=150)
@given(options=SEEDS.map(valid_options))
def test_each_of_several_options_of_the_local_engine_has_an_effect(face: str, options: dict[str, Any]) -> None:
    """Leaving one out changes what comes out."""
    in_order = "tie" in options
    try:
        outcome, _ = local_outcome(face, options, in_order=in_order)
    except (errors.InvalidOptionError, errors.OptionRefusedError, errors.QueryErrors):
        return
    for name in options.keys() - {"engine"}:
        others = {other: value for other, value in options.items() if other != name}
        without, rows = local_outcome(face, others, in_order=in_order)
        assert outcome != without or not may_show(name, rows), name
