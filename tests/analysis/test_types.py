"""Types read from Spark's names, and the rules of every operator and function."""

from __future__ import annotations

import datetime as dt

import pytest

from tocsin import errors
from tocsin.analysis import types
from tocsin.analysis.inference import Environment, Inference, type_of
from tocsin.analysis.result_types import common_type
from tocsin.analysis.types import DataType, Kind, from_spark_name
from tocsin.language import expressions as ex
from tocsin.language.functions import AGGREGATES, FUNCTIONS
from tocsin.language.sase.parser import parse

ATTRIBUTES = {
    "flag": types.BOOLEAN,
    "n": types.INTEGER,
    "x": types.DOUBLE,
    "price": types.DECIMAL,
    "name": types.STRING,
    "ts": types.TIMESTAMP,
    "day": types.DATE,
    "wait": types.INTERVAL,
    "raw": types.BINARY,
    "place": types.struct_of([("lat", types.DOUBLE)]),
    "tags": types.array_of(types.STRING),
    "extra": from_spark_name("map<string,int>"),
    "nothing": types.NULL,
}
ENVIRONMENT = Environment(lambda reference: ATTRIBUTES[reference.path[0]])


def expression(text: str) -> ex.Expression:
    (column,) = parse(f"PATTERN A a RETURN {text} AS result").returns
    return column.expression


def typed(text: str) -> str:
    return str(type_of(expression(text), ENVIRONMENT))


def refused(text: str) -> errors.TocsinError:
    with pytest.raises(errors.TocsinError) as caught:
        typed(text)
    return caught.value


# --- Spark's names --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("boolean", Kind.BOOLEAN),
        ("tinyint", Kind.INTEGER),
        ("smallint", Kind.INTEGER),
        ("int", Kind.INTEGER),
        ("bigint", Kind.INTEGER),
        ("BIGINT", Kind.INTEGER),
        ("long", Kind.INTEGER),
        ("float", Kind.DOUBLE),
        ("double", Kind.DOUBLE),
        ("decimal(10,2)", Kind.DECIMAL),
        ("decimal", Kind.DECIMAL),
        ("numeric(3)", Kind.DECIMAL),
        ("string", Kind.STRING),
        ("string collate UTF8_LCASE", Kind.STRING),
        ("varchar(10)", Kind.STRING),
        ("char(3)", Kind.STRING),
        ("timestamp", Kind.TIMESTAMP),
        ("timestamp_ntz", Kind.TIMESTAMP),
        ("date", Kind.DATE),
        ("interval day to second", Kind.INTERVAL),
        ("interval second", Kind.INTERVAL),
        ("interval year to month", Kind.OTHER),
        ("interval month", Kind.OTHER),
        ("binary", Kind.BINARY),
        ("void", Kind.NULL),
        ("map<string,struct<x:int>>", Kind.OTHER),
        ("variant", Kind.OTHER),
        ("time(6)", Kind.OTHER),
        ("double NOT NULL", Kind.DOUBLE),
    ],
)
def test_a_type_is_known_by_the_name_spark_gives_it(name, kind):
    assert from_spark_name(name).kind is kind


def test_nested_types_are_read_to_the_bottom():
    found = from_spark_name("struct<place:struct<lat:double,lon:double>,tags:array<varchar(5)>,m:map<int,int>>")
    assert [name for name, _ in found.fields] == ["place", "tags", "m"]
    assert dict(found.fields)["place"] == types.struct_of([("lat", types.DOUBLE), ("lon", types.DOUBLE)])
    assert dict(found.fields)["tags"] == types.array_of(types.STRING)
    assert str(dict(found.fields)["m"]) == "map<int,int>"


def test_field_names_may_hold_anything_but_a_colon_or_be_quoted():
    found = from_spark_name("struct<PM 2.5:double,`a``b:c`:int,  d : string>")
    assert [name for name, _ in found.fields] == ["PM 2.5", "a`b:c", "d"]
    assert from_spark_name("struct<>").fields == ()


@pytest.mark.parametrize("name", ["", "struct<a:int", "struct<a>", "array<int>>", "decimal(10", "<int>", "int,"])
def test_what_is_not_the_name_of_a_type_is_refused(name):
    with pytest.raises(errors.InvalidOptionError, match="not the name of a type"):
        from_spark_name(name)


def test_the_width_of_a_number_is_kept_and_not_compared():
    assert from_spark_name("tinyint") == from_spark_name("bigint")
    assert from_spark_name("tinyint").width_bytes == 1


def test_numbers_have_a_common_type_and_text_has_none_with_them():
    assert common_type([types.INTEGER, types.DECIMAL]) == types.DECIMAL
    assert common_type([types.DECIMAL, types.DOUBLE]) == types.DOUBLE
    assert common_type([types.DATE, types.TIMESTAMP]) == types.TIMESTAMP
    assert common_type([types.NULL, types.NULL]) == types.NULL
    assert common_type([types.STRING, types.INTEGER]) is None
    assert common_type([]) == types.NULL


# --- operators ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "bigint"),
        ("1.5", "double"),
        ("'a'", "string"),
        ("TRUE", "boolean"),
        ("NULL", "void"),
        ("5 SECONDS", "interval"),
        ("TIMESTAMP '2026-01-01 00:00:00'", "timestamp"),
        ("DATE '2026-01-01'", "date"),
        ("a.n + 1", "bigint"),
        ("a.n + 1.5", "double"),
        ("a.n * a.price", "decimal"),
        ("a.price - a.x", "double"),
        ("a.n / 2", "double"),
        ("a.price / 2", "double"),
        ("a.n % 2", "bigint"),
        ("a.n + NULL", "bigint"),
        ("NULL / a.n", "double"),
        ("-a.n", "bigint"),
        ("-a.wait", "interval"),
        ("a.name || 'x'", "string"),
        ("a.name || NULL", "string"),
        ("a.ts - a.ts", "interval"),
        ("a.ts - a.day", "interval"),
        ("a.day - a.day", "interval"),
        ("a.ts + 5 SECONDS", "timestamp"),
        ("5 SECONDS + a.ts", "timestamp"),
        ("a.ts - 5 SECONDS", "timestamp"),
        ("a.day + 1 DAY", "timestamp"),
        ("a.wait + 5 SECONDS", "interval"),
        ("a.wait * 2", "interval"),
        ("2.5 * a.wait", "interval"),
        ("a.wait / 2", "interval"),
        ("a.wait / 1 HOUR", "double"),
        ("a.n + 5 SECONDS", "bigint"),
        ("5 SECONDS - a.n", "bigint"),
        ("2 * 5 SECONDS + a.n", "bigint"),
        ("a.n > 1", "boolean"),
        ("a.n = a.x", "boolean"),
        ("a.name < 'x'", "boolean"),
        ("a.flag = TRUE", "boolean"),
        ("a.ts > a.day", "boolean"),
        ("a.raw = a.raw", "boolean"),
        ("a.place = NULL", "boolean"),
        ("a.n < 5 SECONDS", "boolean"),
        ("a.n < CASE WHEN a.flag THEN 5 SECONDS ELSE 10 SECONDS END", "boolean"),
        ("a.ts - a.ts <= 5 SECONDS", "boolean"),
        ("a.n IN (1, 2.5, NULL)", "boolean"),
        ("a.n BETWEEN 1 AND 2.5", "boolean"),
        ("a.name LIKE 'x%'", "boolean"),
        ("a.tags IS NULL", "boolean"),
        ("NOT a.flag", "boolean"),
        ("a.flag AND NULL", "boolean"),
        ("CASE WHEN a.flag THEN 1 ELSE 2.5 END", "double"),
        ("CASE WHEN a.flag THEN NULL END", "void"),
        ("CASE a.n WHEN 1 THEN 'one' END", "string"),
        ("a.place", "struct<lat:double>"),
    ],
)
def test_an_expression_has_the_type_of_its_rule(text, expected):
    assert typed(text) == expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a.name = 5", "write '5' in quotes"),
        ("a.n = '5'", "write 5 without quotes"),
        ("a.name > a.n", "convert one of them before matching"),
        ("a.n IN (1, 'x')", ""),
        ("a.n BETWEEN 1 AND 'x'", ""),
        ("a.flag = 1", "different kinds"),
        ("a.ts > '2026-01-01'", "TIMESTAMP '2026-01-01 00:00:00'"),
        ("a.day = '2026-01-01'", "DATE '2026-01-01'"),
        ("a.ts > 5", "a timestamp is no number"),
        ("a.ts > 5 SECONDS", "b.ts - a.ts <= 5 SECONDS"),
        ("a.ts - a.ts <= 5", "5 SECONDS"),
        ("a.ts + 5", "needs a unit"),
        ("a.ts + a.ts", "b.ts - a.ts"),
        ("5 SECONDS - a.ts", ""),
        ("a.wait * a.wait", ""),
        ("a.wait % 2", ""),
        ("2 / a.wait", ""),
        ("a.wait + 1", "needs a unit"),
        ("a.name + a.name", "`||`"),
        ("a.name * 2", "numbers"),
        ("a.name || a.n", "no single way"),
        ("-a.name", ""),
        ("a.flag + 1", ""),
        ("a.place = a.place", "name a field"),
        ("a.tags = a.tags", "name a field"),
        ("a.extra = a.extra", ""),
        ("a.n AND a.flag", "IS NOT NULL"),
        ("NOT a.name", ""),
        ("a.n LIKE 'x%'", ""),
        ("CASE WHEN a.n THEN 1 END", ""),
        ("CASE WHEN a.flag THEN 1 ELSE 'x' END", ""),
        ("coalesce(a.n, 'x')", ""),
        ("nullif(a.n, 'x')", ""),
    ],
)
def test_values_that_do_not_fit_together_are_a_type_mismatch(text, hint):
    problem = refused(text)
    assert problem.condition == "TYPE_MISMATCH"
    assert hint in str(problem.hint)
    assert problem.where is not None


# --- functions and aggregates ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abs(a.n)", "bigint"),
        ("abs(a.ts - a.ts)", "interval"),
        ("ceil(a.x)", "bigint"),
        ("floor(a.price)", "decimal"),
        ("round(a.x)", "double"),
        ("round(a.x, 2)", "double"),
        ("round(a.n)", "bigint"),
        ("sqrt(a.n)", "double"),
        ("power(a.n, 2)", "double"),
        ("mod(a.n, 2)", "bigint"),
        ("mod(a.n, 2.5)", "double"),
        ("sign(a.n)", "double"),
        ("lower(a.name)", "string"),
        ("upper(NULL)", "string"),
        ("trim(a.name)", "string"),
        ("length(a.name)", "bigint"),
        ("concat(a.name, 'x', a.name)", "string"),
        ("substring(a.name, 1, 2)", "string"),
        ("substring(a.name, 2)", "string"),
        ("coalesce(NULL, a.n, 1.5)", "double"),
        ("coalesce(a.place, a.place)", "struct<lat:double>"),
        ("nullif(a.n, 0)", "bigint"),
        ("greatest(a.n, a.x)", "double"),
        ("least(a.ts, a.ts)", "timestamp"),
        ("COUNT(*)", "bigint"),
        ("COUNT(a.tags)", "bigint"),
        ("COUNT(DISTINCT a.name)", "bigint"),
        ("SUM(a.n)", "bigint"),
        ("SUM(a.price)", "decimal"),
        ("SUM(a.x + 1)", "double"),
        ("AVG(a.n)", "double"),
        ("STDDEV(a.n)", "double"),
        ("RANGE(a.x)", "double"),
        ("MIN(a.name)", "string"),
        ("MAX(a.ts)", "timestamp"),
        ("FIRST(a.place)", "struct<lat:double>"),
        ("LAST(a.n)", "bigint"),
        ("COLLECT(a.name)", "array<string>"),
    ],
)
def test_a_function_gives_what_its_table_says(text, expected):
    assert typed(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "sqrt()",
        "sqrt(1, 2)",
        "round(a.x, 1, 2)",
        "concat()",
        "substring(a.name)",
        "sqrt(a.name)",
        "lower(a.n)",
        "concat(a.name, a.n)",
        "round(a.x, 1.5)",
        "greatest(a.n, a.tags)",
        "SUM(a.name)",
        "AVG(a.ts)",
        "STDDEV(a.flag)",
        "RANGE(a.ts)",
        "MIN(a.place)",
    ],
)
def test_wrong_arguments_are_refused_by_number_and_by_kind(text):
    problem = refused(text)
    assert problem.condition == "WRONG_ARGUMENTS"
    assert problem.where is not None


def test_an_unknown_function_is_answered_with_the_nearest_name():
    problem = refused("sqrtt(a.n)")
    assert problem.condition == "UNKNOWN_FUNCTION"
    assert str(problem.hint).startswith("did you mean `sqrt`?")


def test_one_mistake_is_reported_once_and_two_mistakes_both():
    inference = Inference(ENVIRONMENT)
    inference.condition(expression("(a.name + 1) * 2 > 5 AND a.n LIKE 'x' AND no_function(a.n) = 'x'"))
    assert [problem.condition for problem in inference.problems] == [
        "TYPE_MISMATCH",
        "TYPE_MISMATCH",
        "UNKNOWN_FUNCTION",
    ]


def test_a_condition_must_be_true_or_false():
    inference = Inference(ENVIRONMENT)
    inference.condition(expression("a.n + 1"))
    inference.condition(ex.Literal(None))
    (problem,) = inference.problems
    assert problem.message == "`a.n + 1` is an integer, not a condition."


def test_literals_made_in_python_have_types_too():
    assert type_of(ex.Timestamp(dt.datetime(2026, 1, 1)), ENVIRONMENT) == types.TIMESTAMP
    assert type_of(ex.Literal(value=True), ENVIRONMENT) == types.BOOLEAN


def test_a_named_column_has_the_type_of_the_column():
    environment = Environment(lambda reference: types.NULL, columns={"total": types.DOUBLE})
    assert type_of(ex.Name("total"), environment) == types.DOUBLE
    with pytest.raises(errors.AmbiguousReferenceError, match="not a RETURN column"):
        type_of(ex.Name("totl"), environment)


def test_no_function_is_called_like_an_aggregate():
    assert not FUNCTIONS.keys() & AGGREGATES.keys()


def test_every_type_prints_a_name_that_reads_back():
    for found in ATTRIBUTES.values():
        assert from_spark_name(str(found)) == found


def test_types_are_values():
    assert hash(DataType(Kind.STRING)) == hash(types.STRING)
