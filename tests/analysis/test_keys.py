"""Equalities that join variables, and those that only seem to."""

from __future__ import annotations

from tests.analysis.patterns import between, both, either, event, query, repeat, sequence
from tests.analysis.test_temporal import many_choices

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema
from tocsin.analysis.keys import Keys, Path, keys
from tocsin.language import expressions as ex


def equal(x: str, y: str, one: str = "k", other: str = "k") -> ex.Expression:
    return ex.Comparison("=", ex.Attribute(x, (one,)), ex.Attribute(y, (other,)))


def equated(found: Keys, x: str, y: str) -> tuple[tuple[Path, Path], ...]:
    """The attributes of x and y that are equal in every match that binds both."""
    pairs = [pair for each in found.classes for one, other in each.equalities for pair in ((one, other), (other, one))]
    return tuple(sorted((one[1], other[1]) for one, other in pairs if (one[0], other[0]) == (x, y)))


def test_equalities_carry_over_to_one_key_for_all_variables():
    (found,) = keys(query(sequence("a", "b", "c"), equal("a", "b"), equal("c", "b"), within=10)).classes
    assert str(found) == "a.k = b.k = c.k"
    assert found.covers_all
    assert found.pairs == {("a", "b"), ("a", "c"), ("b", "c")}


def test_a_key_of_some_variables_serves_their_joins_only():
    found = keys(query(sequence("a", "b", "c"), equal("a", "b", "user", "account")))
    (one,) = found.classes
    assert not one.covers_all
    assert equated(found, "a", "b") == ((("user",), ("account",)),)
    assert equated(found, "b", "a") == ((("account",), ("user",)),)
    assert equated(found, "a", "c") == ()


def test_several_keys_stay_apart_and_the_covering_one_comes_first():
    found = keys(query(both("a", "b", "c"), equal("b", "c", "j", "j"), equal("a", "b"), equal("b", "c")))
    assert [str(each) for each in found.classes] == ["a.k = b.k = c.k", "b.j = c.j"]


def test_equality_does_not_carry_over_through_a_variable_that_may_be_unbound():
    chain = (equal("a", "b"), equal("b", "c"))
    (found,) = keys(query(sequence("a", repeat("b", 0, 1), "c"), *chain)).classes
    assert found.pairs == {("a", "b"), ("b", "c")} | {("a", "b")}
    assert not found.covers_all
    branches = keys(query(sequence("a", either("b", "x"), "c"), *chain))
    assert equated(branches, "a", "c") == ()


def test_a_class_never_claims_an_equality_between_members_that_do_not_have_it():
    chain = (equal("a", "b"), equal("b", "c"), equal("c", "a", "k", "j"))
    found = keys(query(both("a", repeat("b", 0, 1), repeat("c", 0, 1)), *chain))
    assert equated(found, "a", "b") == ((("k",), ("k",)),)


def test_variables_of_different_branches_need_no_equality_between_them():
    found = keys(query(sequence("a", either("b", "c")), equal("a", "b"), equal("a", "c")))
    assert {pair for each in found.classes for pair in each.pairs} == {("a", "b"), ("a", "c")}
    assert all(each.covers_all for each in found.classes)


def test_a_bag_without_index_is_equal_as_a_whole_and_an_indexed_event_is_not():
    plain = keys(query(sequence("a", repeat("b")), equal("a", "b")))
    assert equated(plain, "a", "b") == ((("k",), ("k",)),)
    last = ex.Comparison("=", ex.Attribute("a", ("k",)), ex.Attribute("b", ("k",), ex.Edge.LAST))
    assert keys(query(sequence("a", repeat("b")), last)).classes == ()


def test_only_conjuncts_count():
    choice = ex.Or((equal("a", "b"), equal("a", "b", "j", "j")))
    other = ex.Comparison("<=", ex.Attribute("a", ("k",)), ex.Attribute("b", ("k",)))
    own = ex.Comparison("=", ex.Attribute("a", ("k",)), ex.Attribute("a", ("j",)))
    assert keys(query(sequence("a", "b"), choice, other, own)).classes == ()


def test_equality_does_not_carry_over_where_numbers_are_rounded():
    asked = query(both("a", "b", "c"), equal("a", "b"), equal("b", "c"))
    schemas = {name: Schema.of(name, {"k": "bigint"}) for name in "AC"} | {"B": Schema.of("B", {"k": "double"})}
    found = keys(asked, schemas)
    assert equated(found, "a", "b") == ((("k",), ("k",)),)
    assert equated(found, "a", "c") == ()
    same = {name: Schema.of(name, {"k": "bigint"}) for name in "ABC"}
    assert equated(keys(asked, same), "a", "c") == ((("k",), ("k",)),)


def test_negated_variables_have_keys_of_their_own():
    core = between(sequence("a", "c"), "n", ("a",), ("c",), ex.And((equal("n", "a"), equal("c", "n", "j", "i"))))
    found = keys(query(core, equal("a", "c"), within=10))
    assert found.absent == {"n": ((("k",), ("a", ("k",))), (("i",), ("c", ("j",))))}
    assert [str(each) for each in found.classes] == ["a.k = c.k"]
    assert str(found) == (
        "key        joins          from\n"
        "a.k = c.k  all variables  WHERE\n"
        "n.k = a.k  NOT n          WHERE\n"
        "n.i = c.j  NOT n          WHERE"
    )


def test_a_partition_is_reported_beside_the_keys():
    found = keys(query(sequence("a", "b"), partition=alg.Partition(("user",), ("site",))))
    assert found.partition == ("user", "site")
    assert found.classes == ()


def test_with_too_many_alternatives_only_sure_variables_carry_an_equality_on():
    chain = (equal("a", "c"), equal("o0", "a"), equal("o1", "o0"))
    found = keys(query(many_choices(event("a"), event("c")), *chain))
    pairs = {pair for each in found.classes for pair in each.pairs}
    assert {("o0", "c"), ("o0", "a"), ("a", "c"), ("o0", "o1")} <= pairs
    assert ("o1", "a") not in pairs
