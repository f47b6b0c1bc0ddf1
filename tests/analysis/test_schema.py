"""Binding a query to schemas: what is unknown, what does not fit, and what the result holds."""

from __future__ import annotations

import pytest
from tests.analysis.patterns import either, event, query, sequence

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema
from tocsin.analysis.sase import translate
from tocsin.analysis.schema import BoundQuery, bind
from tocsin.language import expressions as ex
from tocsin.language.sase.parser import parse
from tocsin.source import CallSite

LOGIN = {"at": "timestamp", "user": "string", "place": "struct<lat:double,lon:double>", "tries": "int"}
TRANSFER = {"at": "timestamp", "account": "string", "amount": "double", "user": "string"}
ALERT = {"at": "timestamp", "user": "string", "level": "int"}
SCHEMAS = {"Login": LOGIN, "Transfer": TRANSFER, "Alert": ALERT}


def bound(text: str, schemas: dict[str, dict[str, str]] = SCHEMAS, time: str = "at") -> BoundQuery:
    return bind(translate(parse(text, "fraud.sase")).query, schemas, time=time)


def problems(text: str, schemas: dict[str, dict[str, str]] = SCHEMAS) -> list[errors.TocsinError]:
    with pytest.raises(errors.TocsinError) as caught:
        bound(text, schemas)
    return list(caught.value.errors) if isinstance(caught.value, errors.QueryErrors) else [caught.value]


def problem(text: str, schemas: dict[str, dict[str, str]] = SCHEMAS) -> errors.TocsinError:
    (found,) = problems(text, schemas)
    return found


def columns(text: str) -> dict[str, str]:
    return {name: str(found) for name, found in bound(text).columns}


def test_an_unknown_attribute_is_shown_where_it_stands_with_the_nearest_name():
    found = problem("PATTERN SEQ(Login a, Transfer b)\nWHERE  b.acount = a.user\nWITHIN 10 MINUTES")
    assert str(found) == (
        "[UNKNOWN_ATTRIBUTE] Event type `Transfer` has no attribute `acount`.\n"
        "  at fraud.sase:2:10\n"
        "2 | WHERE  b.acount = a.user\n"
        "             ^^^^^^\n"
        "Hint: did you mean `account`? `Transfer` has: account, amount, at, user."
    )


def test_an_unknown_field_is_shown_where_it_stands():
    found = problem("PATTERN Login a WHERE a.place.latt > 1")
    assert found.message == "`place` of event type `Login` has no field `latt`."
    assert found.hint == "did you mean `lat`? `place` is a struct; its fields: lat, lon."
    assert found.where is not None
    assert found.where.excerpt()[1].strip() == "^^^^"


def test_a_field_of_something_that_is_no_struct_is_unknown():
    assert problem("PATTERN Login a WHERE a.tries.much > 1").hint == "`tries` is an integer; its fields: none."


def test_a_nested_field_has_its_own_type():
    assert columns("PATTERN Login a WHERE a.place.lat > 50 RETURN a.place.lat") == {"lat": "double"}


def test_an_unknown_event_type_is_reported_once_and_drags_nothing_along():
    found = problem("PATTERN SEQ(Logn a, Transfer b, Logn c) WHERE a.whatever = b.amount AND c.more > 1")
    assert found.condition == "UNKNOWN_EVENT_TYPE"
    assert found.where is not None
    assert found.where.describe() == "fraud.sase:1:13"
    assert str(found.hint).startswith("did you mean `Login`?")


def test_all_problems_come_together_in_the_order_of_the_text():
    found = problems(
        "PATTERN SEQ(Login a, NOT Alarm n, Transfer b)\n"
        "WHERE a.usr = b.user AND b.amount > 'x' AND a.tries + 1 AND n.x = 1\n"
        "WITHIN 1 HOUR\n"
        "RETURN lower(a.tries) AS size, b.acount AS account"
    )
    assert [each.condition for each in found] == [
        "UNKNOWN_EVENT_TYPE",
        "UNKNOWN_ATTRIBUTE",
        "TYPE_MISMATCH",
        "TYPE_MISMATCH",
        "WRONG_ARGUMENTS",
        "UNKNOWN_ATTRIBUTE",
    ]
    starts = [each.where.start for each in found]
    assert starts == sorted(starts)


def test_the_condition_of_an_absence_knows_its_variable():
    text = "PATTERN SEQ(Login a, NOT Alert n, Transfer b) WHERE n.{} = a.user WITHIN 1 HOUR"
    assert bound(text.format("user")).query is not None
    assert problem(text.format("usr")).message == "Event type `Alert` has no attribute `usr`."


def test_a_variable_of_two_types_needs_the_attribute_in_both():
    core = either(event("x", "Login"), event("x", "Transfer"))

    def asking(name: str) -> alg.Query:
        return query(core, ex.IsNull(ex.Attribute("x", (name,))))

    assert bind(asking("user"), SCHEMAS, time="at").schemas.keys() == {"Login", "Transfer"}
    with pytest.raises(errors.UnknownAttributeError, match="`Login` has no attribute `amount`"):
        bind(asking("amount"), SCHEMAS, time="at")
    clash = SCHEMAS | {"Transfer": TRANSFER | {"user": "bigint"}}
    with pytest.raises(errors.TypeMismatchError, match="a string in `Login` and an integer in `Transfer`"):
        bind(asking("user"), clash, time="at")


def test_a_partition_attribute_must_be_in_every_type_negated_ones_included():
    text = "PATTERN SEQ(Login a, NOT Alert n, Transfer b) PARTITION BY user WITHIN 1 HOUR"
    assert bound(text).query is not None
    lacking = SCHEMAS | {"Alert": {"at": "timestamp", "usr": "string"}}
    found = problem(text, lacking)
    assert found.message == "Event type `Alert` has no attribute `user`, by which the query is partitioned."
    assert str(found.hint).startswith("did you mean `usr`?")
    clash = SCHEMAS | {"Alert": ALERT | {"user": "bigint"}}
    assert problem(text, clash).condition == "TYPE_MISMATCH"


def test_a_partition_by_a_struct_is_refused():
    assert problem("PATTERN Login a PARTITION BY place").condition == "TYPE_MISMATCH"


def test_the_time_attribute_must_be_there_and_tell_time():
    sequence_of_two = query(sequence("a", "b"))
    with pytest.raises(errors.MissingColumnError, match="`A` has no time attribute `ts`"):
        bind(sequence_of_two, {"A": {"tss": "timestamp"}, "B": {"ts": "timestamp"}})
    with pytest.raises(errors.TimeTypeError, match="`ts` of `B` is a string"):
        bind(sequence_of_two, {"A": {"ts": "timestamp"}, "B": {"ts": "string"}})
    with pytest.raises(errors.TimeTypeError, match="a timestamp in `A` and an integer in `B`"):
        bind(sequence_of_two, {"A": {"ts": "timestamp"}, "B": {"ts": "bigint"}})
    with pytest.raises(errors.MissingColumnError, match="`B` has no time attribute named in `time`"):
        bind(sequence_of_two, {"A": {"t": "int"}, "B": {"u": "int"}}, time={"A": "t"})


def test_each_type_may_have_a_time_attribute_of_its_own():
    found = bind(query(sequence("a", "b")), {"A": {"t": "int"}, "B": {"u": "int"}}, time={"A": "t", "B": "u"})
    assert found.time == {"A": "t", "B": "u"}
    assert found.has_integer_time


def test_a_malformed_type_name_is_an_invalid_option():
    with pytest.raises(errors.InvalidOptionError):
        bind(query(event("a")), {"A": {"ts": "struct<"}})


def test_return_columns_have_types():
    assert columns(
        "PATTERN SEQ(Login a, Transfer+ b) WITHIN 1 HOUR "
        "RETURN a.user, SUM(b.amount) AS total, b.amount AS amounts, b[last].at - a.at AS span, COUNT(b) AS n"
    ) == {
        "user": "string",
        "total": "double",
        "amounts": "array<double>",
        "span": "interval",
        "n": "bigint",
    }


def test_without_return_there_is_a_struct_per_variable_and_an_array_of_an_iterated_one():
    assert columns("PATTERN SEQ(Login? a, Alert+ b) WITHIN 1 HOUR") == {
        "a": "struct<at:timestamp,user:string,place:struct<lat:double,lon:double>,tries:bigint>",
        "b": "array<struct<at:timestamp,user:string,level:bigint>>",
    }


def test_groups_and_having_are_checked():
    grouped = "PATTERN SEQ(Login a, Transfer+ b) WITHIN 1 HOUR RETURN a.{}, COUNT(*) AS n GROUP BY a.{} HAVING {}"
    assert [name for name, _ in bound(grouped.format("user", "user", "n > 3")).columns] == ["user", "n"]
    assert problem(grouped.format("user", "user", "n > 'x'")).condition == "TYPE_MISMATCH"
    assert problem(grouped.format("place", "place", "n > 3")).message == "GROUP BY `place` is a struct."
    assert problem(grouped.format("user", "user", "n + 1")).condition == "TYPE_MISMATCH"


def test_with_integer_time_intervals_count_microseconds():
    schemas = {"Login": {"at": "bigint"}, "Transfer": {"at": "bigint"}}
    text = "PATTERN SEQ(Login a, Transfer b) WHERE b.at - a.at <= {}"
    assert bound(text.format("5 SECONDS"), schemas).has_integer_time
    assert bound(text.format("5000000"), schemas).has_integer_time
    assert problem(text.format("5000000")).condition == "TYPE_MISMATCH"


def test_conditions_of_events_and_values_of_emitted_ones_are_checked_too():
    own = alg.Event("A", "a", ex.Comparison(">", ex.Attribute("a", ("y",)), ex.Literal(1)))
    emitted = alg.Emit(own, "C", ex.Attribute("a", ("ts",)), (("z", ex.Attribute("a", ("z",))),))
    with pytest.raises(errors.QueryErrors) as caught:
        bind(alg.Query(emitted), {"A": {"ts": "timestamp"}})
    assert [each.condition for each in caught.value.errors] == ["UNKNOWN_ATTRIBUTE", "UNKNOWN_ATTRIBUTE"]


def test_an_event_of_any_type_may_have_each_schema():
    core = sequence(alg.Event(None, "a"), event("b"))
    asked = query(core, ex.IsNull(ex.Attribute("a", ("x",))))
    assert bind(asked, {"B": {"ts": "timestamp", "x": "int"}}).schemas.keys() == {"B"}


def test_a_query_built_in_python_points_at_its_line():
    site = CallSite("program.py", 3)
    asked = query(event("a"), ex.IsNull(ex.Attribute("a", ("y",), where=site)))
    with pytest.raises(errors.UnknownAttributeError) as caught:
        bind(asked, {"A": {"ts": "timestamp"}})
    assert caught.value.where == site


def test_a_variable_nobody_declared_is_named():
    asked = query(event("a"), ex.IsNull(ex.Attribute("b", ("x",))))
    with pytest.raises(errors.UnknownVariableError, match="no variable `b`"):
        bind(asked, {"A": {"ts": "timestamp"}})


def test_a_schema_answers_for_its_attributes():
    schema = Schema.of("Login", LOGIN)
    assert str(schema.lookup(("place", "lon"))) == "double"
    with pytest.raises(errors.UnknownAttributeError):
        schema.lookup(("place", "alt"))
