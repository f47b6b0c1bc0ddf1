"""Random formulas: they translate, they bind, and what is said of their variables holds for every match."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given

from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.analysis.acel import translate
from tocsin.analysis.keys import keys
from tocsin.analysis.lifetimes import lifetimes
from tocsin.analysis.schema import bind
from tocsin.analysis.temporal import network
from tocsin.language import expressions as ex
from tocsin.language.acel import ast, parse
from tocsin.reference.matches import Candidate, Evaluation
from tocsin.reference.stream import ingest
from tocsin.testing import formulas
from tocsin.testing.streams import ATTRIBUTES, TYPES, Streams, streams

SMALL = streams(max_events=5)


def found(node: alg.Node, rows: Streams) -> list[Candidate]:
    evaluation = Evaluation(ingest(rows, time="ts", tie=(), type_column="type"))
    return evaluation.settle(evaluation.matches(node))


def keys_of(node: alg.Node, rows: Streams) -> set[Any]:
    return {match.key for match in found(node, rows)}


@given(formulas.queries(max_depth=4))
def test_a_formula_that_is_well_formed_translates_and_binds(query: ast.Query) -> None:
    made = translate(query).query
    bound = bind(made, dict.fromkeys(TYPES, ATTRIBUTES))
    assert [name for name, _ in bound.columns] == list(made.variables)
    lifetimes(made, network(made, integer_time=True))
    keys(made)


@given(formulas.formulas(), SMALL)
def test_a_single_variable_never_holds_two_events_and_a_sure_one_never_none(formula: ast.Formula, rows: Any) -> None:
    node = formulas.node_of(formula)
    kinds = alg.variables_of(node)
    least, most = alg.events_held(node)
    for match in found(node, rows):
        assert set(match.bags) <= set(kinds)
        for name, kind in kinds.items():
            held = len(match.bags.get(name, ()))
            assert kind.iterated or held <= 1, name
            assert kind.optional or held >= 1, name
        held_at_all = {id(slot.event) for slot in match.slots}
        assert least <= len(held_at_all) and (most is None or len(held_at_all) <= most)


@given(formulas.formulas(), SMALL)
def test_the_attributes_of_events_are_those_that_were_foretold(formula: ast.Formula, rows: Any) -> None:
    node = formulas.node_of(formula)
    held = formulas.held_by(formula)
    for match in found(node, rows):
        for name, events in match.bags.items():
            known = {attribute for shape in held[name] for attribute in shape.attributes}
            assert all(set(event.row) <= known for event in events)


@given(formulas.queries(), SMALL)
def test_the_matches_keep_the_distances_of_the_network(query: ast.Query, rows: Any) -> None:
    made = translate(query).query
    try:
        known = network(made, integer_time=True)
    except errors.ContradictoryDistancesError:
        assert reference.evaluate(made, rows) == []
        return
    if made.partition.attributes:
        return  # the candidates below are those of one stream
    for match in found(made.pattern, rows):
        for x, xs in match.bags.items():
            for y, ys in match.bags.items():
                least, most = known.distance(x, y)
                gaps = [later.ts - earlier.ts for earlier in xs for later in ys]
                assert all((least is None or least <= gap) and (most is None or gap <= most) for gap in gaps)


@given(formulas.formulas(max_depth=2), formulas.formulas(max_depth=2), SMALL)
def test_filters_are_composed_as_in_the_paper(formula: ast.Formula, other: ast.Formula, rows: Any) -> None:
    # φ FILTER (P ∧ Q) = (φ FILTER P) FILTER Q and φ FILTER (P ∨ Q) = (φ FILTER P) OR (φ FILTER Q)
    node = formulas.node_of(ast.joined(ast.Any, formula, other))
    variables = list(alg.variables_of(node))
    one, two = (ex.Every(name, ex.IsNull(ex.Attribute(name, ("x",)), negated=True)) for name in (*variables, "A")[:2])
    both = keys_of(alg.Filter(node, ex.all_of(one, two)), rows)
    assert both == keys_of(alg.Filter(alg.Filter(node, one), two), rows)
    either = keys_of(alg.Filter(node, ex.any_of(one, two)), rows)
    assert either == keys_of(alg.Any((alg.Filter(node, one), alg.Filter(node, two))), rows)


@pytest.mark.parametrize("sign", [";", ":", "OR", "AND"])
@given(formulas.formulas(max_depth=1), formulas.formulas(max_depth=1), SMALL)
def test_grouping_does_not_matter(sign: str, one: ast.Formula, two: ast.Formula, rows: Any) -> None:
    kind = {";": alg.Sequence, ":": alg.Adjacent, "OR": alg.Any, "AND": alg.Both}[sign]
    options = {"order": alg.Order.POSITION} if sign == ";" else {}
    a, b = formulas.node_of(one), formulas.node_of(two)
    left = kind((kind((a, b), **options), a), **options)
    right = kind((a, kind((b, a), **options)), **options)
    assert keys_of(left, rows) == keys_of(right, rows) == keys_of(kind((a, b, a), **options), rows)


@given(formulas.formulas(max_depth=2), SMALL)
def test_a_repetition_is_itself_or_a_sequence_with_itself(formula: ast.Formula, rows: Any) -> None:
    # φ+ = φ OR (φ ; φ+) and φ⊕ = φ OR (φ : φ⊕)
    part = formulas.node_of(formula)
    many = alg.Repeat(part, 1, None, alg.Order.POSITION)
    unrolled = alg.Any((part, alg.Sequence((part, many), alg.Order.POSITION)))
    assert keys_of(many, rows) == keys_of(unrolled, rows)
    run = alg.RepeatAdjacent(part)
    assert keys_of(run, rows) == keys_of(alg.Any((part, alg.Adjacent((part, run)))), rows)


def kind_of(text: str, name: str) -> alg.Kind:
    return translate(parse(text)).query.variables[name]


@pytest.mark.parametrize(
    ("text", "name", "iterated", "optional"),
    [
        ("SELL AS s", "s", False, False),
        ("(BUY OR SELL) AS s", "s", False, False),
        ("(BUY OR SELL) AS s", "BUY", False, True),
        ("SELL AS s ; SELL AS t", "SELL", True, False),
        ("SELL AS s ; BUY AS s", "s", True, False),
        ("(SELL ; BUY) AS s", "s", True, False),
        ("SELL+ AS s", "s", True, False),
        ("SELL AS s+", "s", True, False),
        ("NEXT(SELL) AS s", "s", False, False),
        ("(SELL FILTER SELL[price > 1]) AS s AS t", "t", False, False),
        ("SELL AS s OR BUY", "s", False, True),
        ("AGG y[n <- count(SELL)](SELL+)", "y", False, False),
        ("AGG y[n <- count(SELL)](SELL AS y)", "y", True, False),
        ("AGG y[n <- count(SELL)](SELL) AS all", "all", True, False),
        ("PROJECT[SELL](SELL OR BUY) AS s", "s", False, True),
        ("PROJECT[s, t(price)](SELL AS s AS t) AS u", "u", True, False),
        ("SELL AS s AND SELL AS s", "s", False, False),
    ],
)
def test_a_variable_is_one_event_where_it_can_only_be_one(text: str, name: str, iterated: bool, optional: bool) -> None:
    kind = kind_of(text, name)
    assert (kind.iterated, kind.optional) == (iterated, optional)


def test_a_deep_formula_translates_in_no_time() -> None:
    text = "A"
    for _ in range(24):
        text = f"PROJECT[A](({text}) AS A AS B)"
    assert list(translate(parse(text)).query.variables) == ["A"]


@pytest.mark.parametrize(
    ("text", "is_empty"),
    [
        ("A AND B", True),
        ("A AS x AND A AS y", True),
        ("(A ; B) AND (B ; A)", False),
        ("A AND (A OR B)", False),
        ("PROJECT[x](A AS x) AND PROJECT[x](B AS x)", True),
        ("PROJECT[x](A AS x) AND PROJECT[x]((A OR B) AS x)", False),
        ("C ; (A AND B AND A)", True),
    ],
)
def test_r25_an_and_that_finds_nothing_is_warned_of(text: str, is_empty: bool) -> None:
    found = [warning.condition for warning in translate(parse(text)).warnings]
    assert found == (["EMPTY_INTERSECTION"] if is_empty else [])


def test_r7_ties_that_nothing_orders_are_warned_of() -> None:
    import tocsin

    pattern = tocsin.pattern("A ; B", language="acel")
    tied = {"A": [{"ts": 1, "n": 2}], "B": [{"ts": 1, "n": 1}]}
    with pytest.warns(errors.TocsinWarning, match="TIED_EVENTS"):
        assert len(reference.evaluate(pattern, tied)) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reference.evaluate(pattern, tied, tie="n") == []
        apart = {"A": [{"ts": 1}, {"ts": 1}], "B": [{"ts": 2}]}
        assert len(reference.evaluate(pattern, apart)) == 2  # equal rows are interchangeable
