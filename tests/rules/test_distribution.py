"""Requirements 42, 43, 44 and 47: rules on several executors, what they share there, and how events are looked up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.engines.support import light_settings
from tests.rules.support import ABC, S, compiled
from tests.rules.test_engines import plain
from tests.rules.test_sharing import LISTING_5_1, by_rule, drawn_program, timed

from tocsin.analysis.schema import bind
from tocsin.kernels.lists import lists
from tocsin.kernels.model import Rows
from tocsin.kernels.nested_loops import kernel
from tocsin.kernels.run import Runner
from tocsin.kernels.search.program import program as searches

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = "ts bigint, x bigint"
# Keys: x (R, S, T), x of another group (none: U, W), and what rules emit, read by two rules of which one emits again.
PROGRAM = (
    ABC
    + """
    template E { x : Integer }  template F { x : Integer }
    rule R where a : A b : B { x = a.x } c : C { x = a.x, x = b.x } when b in a [0 s, 3 s] c in b [0 s, 5 s]
      then emit E at max(b.timestamp, c.timestamp) with { x = a.x }
    rule S where p : A q : B { x = p.x } no r : D { x = p.x, x = q.x } when q in p [0 s, 3 s] no r in q [0 s, 5 s]
      then emit E at p.timestamp with { x = q.x } emit F at q.timestamp + 1 second with { x = p.x }
    rule T where p : A q : B { x = p.x } when q in p [-9 s, 3 s]
    rule U where a : A no b : B { x > a.x } when no b in a [0 s, 1 s]
    rule V where e : E d : D { x = e.x } when d in e [-2 s, 2 s] then emit F at d.timestamp with { x = 0 }
    rule W where e : E no f : E { x > e.x } when no f in e [-1 s, 3 s]
    rule X where f : F a : A { x > f.x } when a in f [0 s, 2 s]
    rule Y where a : A b : B+ { x = a.x } when b in a [0 s, 2 s] b in b [0 s, 1 s] select next
    """
)


def some_rows(seed: int, types: str = "ABCD", size: int = 120) -> dict[str, list[dict[str, int]]]:
    choose = Random(seed)
    return {
        name: [{"ts": choose.randrange(600) * S // 2, "x": choose.randrange(6)} for _ in range(size)] for name in types
    }


def frames(spark: SparkSession, stream: dict[str, list[dict[str, Any]]], schema: str = SCHEMA) -> dict[str, DataFrame]:
    return {name: spark.createDataFrame([tuple(row.values()) for row in some], schema) for name, some in stream.items()}


def found(frame: DataFrame) -> dict[str, Counter[str]]:
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    return {name: Counter(map(with_id, some)) for name, some in by_rule(rows).items()}


def with_id(row: dict[str, Any]) -> str:
    return f"{row['match_id']} {plain(row)}"


def locally(program: Any, stream: Any) -> dict[str, Counter[str]]:
    rows = by_rule(program.match(stream, engine="local").to_pylist())
    return {name: Counter(map(with_id, some)) for name, some in rows.items()}


@pytest.fixture(scope="module")
def light(spark: SparkSession) -> Iterator[SparkSession]:
    with light_settings(spark, 3) as light:
        yield light


# --- 42 -------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.slow), 7])
def test_requirement_42_any_number_of_partitions_gives_what_one_process_gives(
    light: SparkSession, partitions: int
) -> None:
    program, stream = compiled(PROGRAM), some_rows(42)
    wanted = locally(program, stream)
    assert all(sum(some.values()) > 3 for some in wanted.values())
    with light_settings(light, partitions) as session:
        assert found(program.match(frames(session, stream))) == wanted


@pytest.mark.spark
@pytest.mark.parametrize("seed", [pytest.param(3, marks=pytest.mark.slow), 8])
def test_random_programs_together_on_spark_are_as_locally(light: SparkSession, seed: int) -> None:
    program = compiled(drawn_program(seed))
    choose = Random(seed)
    stream = {
        name: [
            {
                "ts": choose.randrange(40) * S,
                "k": choose.choice(("p", "q", None)),
                "x": choose.choice((0, 1, 2, None)),
                "v": choose.choice((0.0, 1.5, None)),
            }
            for _ in range(40)
        ]
        for name in "ABC"
    }
    wanted = locally(program, stream)
    given = frames(light, stream, "ts bigint, k string, x bigint, v double")
    assert sum(map(len, wanted.values())) > 20
    assert found(program.match(given)) == {name: some for name, some in wanted.items()}


@pytest.mark.slow
@pytest.mark.spark
def test_requirement_42_executors_in_processes_of_their_own(tmp_path: Path) -> None:
    """Two executors that share no memory, each with Python workers of its own."""
    script = f"""
import os
from pyspark.sql import SparkSession
from tests.rules.support import compiled
from tests.rules.test_distribution import PROGRAM, found, frames, locally, some_rows

spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.executor.memory", "768m").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.adaptive.enabled", "false").config("spark.sql.shuffle.partitions", "5")
    .config("spark.local.dir", {str(tmp_path)!r}).config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
    .getOrCreate()
)
program, stream = compiled(PROGRAM), some_rows(7)
assert found(program.match(frames(spark, stream))) == locally(program, stream)
print("executors:", len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1)
spark.stop()
"""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "SPARK_HOME": str(Path(pyspark.__file__).parent), "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert "executors: 2" in done.stdout, done.stderr[-2000:]


# --- 43 -------------------------------------------------------------------------------------------


def physical(frame: DataFrame) -> Counter[str]:
    """How many times the plan reads a file, shuffles and runs Python."""
    text = frame._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    return Counter({name: text.count(name) for name in ("FileScan", "Exchange", "MapInArrow")})


@pytest.fixture
def one_file(light: SparkSession, tmp_path: Path) -> DataFrame:
    rows = [(name, row["ts"], row["x"]) for name, some in some_rows(43, "ABCDE").items() for row in some]
    light.createDataFrame(rows, f"type string, {SCHEMA}").write.parquet(str(tmp_path / "events"))
    return light.read.parquet(str(tmp_path / "events"))


@pytest.mark.spark
def test_requirement_43_rules_of_a_stratum_are_one_scan_one_shuffle_one_search(one_file: DataFrame) -> None:
    program = compiled(PROGRAM)
    together = program.match(one_file, rules=["R", "S", "T", "U"])
    assert physical(together) == {"FileScan": 1, "Exchange": 1, "MapInArrow": 1}
    alone = program.matches("R", one_file).union(
        program.matches("S", one_file).select("match_id", "start", "end", "p", "q", "p")
    )
    assert physical(alone)["FileScan"] == 2


@pytest.mark.spark
def test_requirement_43_what_rules_emit_is_found_once_whoever_reads_it(one_file: DataFrame) -> None:
    """Three strata: R and S emit E, which V and W read and which is in the result; V and S emit F, which X reads."""
    found = compiled(PROGRAM).match(one_file, rules=["R", "S", "V", "W", "X"])
    assert physical(found) == {"FileScan": 3, "Exchange": 3, "MapInArrow": 3}


@pytest.mark.spark
def test_requirement_43_listing_5_1_is_one_plan_with_one_search_per_stratum(one_file: DataFrame) -> None:
    program = compiled(LISTING_5_1)
    together = program.match(one_file)
    assert physical(together) == {"FileScan": 2, "Exchange": 2, "MapInArrow": 2}
    counts = {row["rule"]: row["count"] for row in together.groupBy("rule").count().collect()}
    assert counts == {name: program.matches(name, one_file).count() for name in ("First", "Second", "Third")}


KEYED = """
    template A { k : String, x : Integer } template B { k : String, x : Integer } template D { k : String, x : Integer }
    rule Both where a : A b : B { k = a.k, x = a.x } when b in a [0 s, 4 s]
    rule One where p : A q : B { k = p.k } no r : B { k = p.k, x > q.x } when q in p [0 s, 2 s] no r in q [0 s, 9 s]
      then emit D at q.timestamp with { k = p.k, x = q.x }
    rule Other where p : A q : A { x = p.x } when q in p [1 s, 3 s]
    rule Free where p : A q : B { k != p.k, x < p.x } when q in p [-1 s, 1 s]
    rule Next where d : D a : A { k = d.k } when a in d [0 s, 3 s]
"""


@pytest.mark.spark
@pytest.mark.parametrize("id", [None, "id"])
def test_rules_of_different_keys_share_a_scan_and_have_the_ids_that_they_have_alone(
    light: SparkSession, tmp_path: Path, id: str | None
) -> None:
    """Keys (k, x) and k are one group, x and none are others; some keys are NULL."""
    choose = Random(11)
    rows = [
        (number, choose.choice("AB"), choose.randrange(200) * S // 2, choose.choice(("p", "q", None)), number % 3)
        for number in range(260)
    ]
    light.createDataFrame(rows, "id bigint, type string, ts bigint, k string, x bigint").write.parquet(
        str(tmp_path / "events")
    )
    events = light.read.parquet(str(tmp_path / "events"))
    program = compiled(KEYED)
    together = program.match(events, id=id)
    assert physical(together) == {"FileScan": 2, "Exchange": 2, "MapInArrow": 2}
    found = [row.asDict() for row in together.select("rule", "match_id").collect()]
    for rule in ("Both", "One", "Other", "Free", "Next"):
        alone = [row["match_id"] for row in program.matches(rule, events, id=id).select("match_id").collect()]
        assert len(alone) > 3
        assert sorted(row["match_id"] for row in found if row["rule"] == rule) == sorted(alone)


CROSSED = """
    template T { origin : Integer, destination : Integer }
    template E { x : Integer }
    rule Passed where a : T b : T { origin = a.destination } when b in a [0 s, 8 s]
      then emit E at b.timestamp with { x = a.origin }
    rule Back where e : E t : T { destination = e.x, origin > 2 } no f : E { x > e.x } when
      t in e [-2 s, 5 s] no f in e [0 s, 1 s]
    rule Again where e : E no f : E { x > e.x } when no f in e [-1 s, 3 s]
"""


@pytest.mark.spark
@pytest.mark.parametrize("whole", [False, True])
def test_rules_with_keys_of_different_names_keep_them_and_what_they_emit_is_read_by_all(
    light: SparkSession, whole: bool
) -> None:
    """`Passed` and `Back` are split by their keys, by themselves; `Again` reads what the first emits."""
    choose = Random(19)
    rows = [
        {"ts": choose.randrange(400) * S // 2, "origin": choose.randrange(5), "destination": choose.randrange(5)}
        for _ in range(80)
    ]
    program = compiled(CROSSED)
    assert "  Passed: by itself" in str(program.explain()).splitlines()
    schema = "ts bigint, origin bigint, destination bigint"
    inputs: Any = frames(light, {"T": rows}, schema)
    if whole:
        inputs = inputs["T"].withColumn("type", F.lit("T")).withColumn("x", F.lit(0).cast("bigint"))
    found = [row.asDict(recursive=True) for row in program.match(inputs).collect()]
    wanted = by_rule(program.match({"T": rows}, engine="local").to_pylist())  # type: ignore[dict-item]
    assert all(len(some) > 10 for some in wanted.values())
    for name, some in wanted.items():
        own = [(row["start"], row["end"]) for row in found if row["rule"] == name]
        assert Counter(own) == Counter((row["start"], row["end"]) for row in some)


@pytest.mark.spark
def test_rules_with_more_conditions_than_bits_of_a_word_still_read_the_input_once(one_file: DataFrame) -> None:
    rules = [f"rule R{number} where a : A {{ x > {number} }}" for number in range(70)]
    assert physical(compiled(ABC + " ".join(rules)).match(one_file))["FileScan"] == 1


# --- 44 -------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_requirement_44_a_join_by_equality_is_the_work_of_several_tasks(light: SparkSession) -> None:
    """All events lie in one time slice, so that only the key can split them; without one they are one task's."""
    stream = {name: [{"ts": number * 1000, "x": number % 50} for number in range(200)] for name in "AB"}
    text = (
        ABC
        + "rule R where a : A b : B { x = a.x } when b in a [0 s, 5 s] rule S where a : A b : B when b in a [0 s, 5 s]"
    )
    program, given = compiled(text), frames(light, stream)
    for together in (True, False):
        tasks = {}
        for name in ("R", "S"):
            matches = program.match(given, rules=[name]) if together else program.matches(name, given)
            tasks[name] = matches.select(F.spark_partition_id().alias("task")).distinct().count()
        assert tasks["R"] > 1
        assert tasks["S"] == 1


# --- 47 -------------------------------------------------------------------------------------------


class Counting:
    """An array that counts how many of its elements were looked at."""

    def __init__(self, values: Any) -> None:
        self.values, self.looked_at = values, 0

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: int) -> Any:
        self.looked_at += 1
        return self.values[place]


def looked_at(size: int, events: int) -> int:
    """How many times of `b` a search looks at, over all `a`: each has one partner among `size` candidates."""
    text = ABC + "rule R where a : A b : B when b in a [1 s, 1 s]"
    (query,) = timed(text)
    made = kernel(bind(query, {name: {"ts": "bigint", "x": "bigint"} for name in "AB"}, time="ts"))
    far = size // events
    b = np.arange(size, dtype=np.int64) * 10 * S
    a = b[far // 2 :: far] - S
    ts = np.concatenate([a, b])
    bits = {source.variable: 1 << source.bit for source in made.sources}
    flags = np.concatenate([np.full(len(a), bits["a"]), np.full(len(b), bits["b"])])
    rows = Rows(ts, flags, columns=tuple((ts, None) for _ in made.carried))
    setting = made.setting(rows)
    listed = lists(rows, made.sources, setting.numbers, made.conditions.columns)
    times = Counting(listed.arrays["ts_v1"])
    listed.arrays["ts_v1"] = times  # type: ignore[assignment]
    runner = Runner(searches(made.searched, made.conditions.tests), setting, made.limits(1000, 1 << 30), jit=False)
    assert sum(len(matches) for matches in made.kept(runner, rows, listed)) == events
    return times.looked_at


def test_requirement_47_a_lookup_takes_a_logarithmic_number_of_steps() -> None:
    events = 8
    taken = {size: looked_at(size, events) / events for size in (2**8, 2**12, 2**16)}
    for size, steps in taken.items():
        assert steps <= 4 * np.log2(size) + 10
    # Sixteen times as many events are a constant number of steps more, not sixteen times as many.
    assert taken[2**16] - taken[2**12] <= 1.5 * (taken[2**12] - taken[2**8]) + 2
