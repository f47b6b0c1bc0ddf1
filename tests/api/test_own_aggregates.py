"""Aggregates of users that fail, say the wrong type, or change what they are given: told as such, never as ours."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import tocsin
from tocsin import errors

ROWS = [{"type": "A", "ts": time, "x": time} for time in range(1, 4)]
TEXT = "AGG Y[p <- own(A.x)](A+) WITHIN 100 MICROSECONDS RETURN Y.p AS p"


def multiply(left: Any, right: Any) -> Any:
    return left * right


def found(**given: Any) -> list[Any]:
    own = tocsin.Monoid(**{"zero": 1, "combine": multiply, **given})
    pattern = tocsin.pattern(TEXT, language="acel", aggregates={"own": own})
    return sorted(pattern.match({"A": ROWS}, engine="local").to_pydict()["p"])


def extended(left: list[Any], right: list[Any]) -> list[Any]:
    left.extend(right)
    return left


def updated(left: dict[Any, Any], right: dict[Any, Any]) -> dict[Any, Any]:
    right.update(left)
    return right


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"combine": lambda left, right: left / 0}, "`combine` of the aggregate `own` failed for 1, 1: ZeroDivision"),
        ({"combine": lambda left: left}, r"`combine` of the aggregate `own` failed for 1, 1: TypeError"),
        (
            {"lift": lambda x: x.y},
            r"`lift` of the aggregate `own` failed for 1: AttributeError[^\n]*\n  at line \d+ of",
        ),
        ({"finish": lambda x: {}[x]}, "`finish` of the aggregate `own` failed for 1: KeyError"),
    ],
)
def test_a_function_that_fails_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(errors.UserFunctionError, match=said):
        found(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"zero": [], "lift": lambda x: [x], "combine": extended},
        {"zero": {}, "lift": lambda x: {x: 1}, "combine": updated},
        {"zero": ([],), "lift": lambda x: ([x],), "combine": lambda left, right: extended(left[0], right[0]) and left},
    ],
    ids=["the first", "the second", "inside"],
)
def test_a_combine_that_changes_its_arguments_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(errors.UserFunctionError, match=r"`combine` of the aggregate `own` changed its arguments"):
        found(**given, finish=len, gives="int")


def test_a_combine_that_makes_a_new_value_is_not() -> None:
    counted = found(zero=[], lift=lambda x: [x], combine=lambda left, right: left + right, finish=len, gives="int")
    assert counted == [1, 1, 1, 2, 2, 2, 3]
    assert found() == [1, 2, 2, 3, 3, 6, 6]


@pytest.mark.parametrize("gives", ["doubel", "map<string,int>", "number", ""])
def test_a_type_that_there_is_not_is_refused(gives: str) -> None:
    with pytest.raises(errors.InvalidOptionError, match="is not the name of a type"):
        found(gives=gives)


def test_a_type_that_is_no_text_is_refused() -> None:
    with pytest.raises(errors.InvalidOptionError, match="`gives=7` of a Monoid is not the name of a type"):
        tocsin.Monoid(zero=1, combine=multiply, gives=7)  # type: ignore[arg-type]


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(errors.TypeMismatchError, match="is '1', which is not of the type"):
        found(finish=str, gives="int")


def test_an_aggregate_can_be_pickled_and_is_one_for_each_name() -> None:
    own = tocsin.Monoid(zero=1, combine=multiply)
    assert own.guarded("a") is own.guarded("a") is not own.guarded("b")
    assert pickle.loads(pickle.dumps(own.guarded("a"))).fold([2, 3]) == 6


@pytest.mark.spark
def test_a_function_that_fails_on_a_worker_is_named(spark: Any) -> None:
    own = tocsin.Monoid(zero=1, combine=lambda left, right: left / 0)
    df = spark.createDataFrame([(1, 1), (2, 2)], "ts bigint, x bigint")
    pattern = tocsin.pattern(TEXT, language="acel", aggregates={"own": own})
    with pytest.raises(Exception, match=r"USER_FUNCTION_FAILED\] `combine` of the aggregate `own` failed for 1, 1"):
        pattern.match({"A": df}).collect()
