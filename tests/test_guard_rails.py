"""A new operator is refused by name in every layer that has no case for it, and every `match` has a last arm."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tools import house

from tocsin import automata, errors, reference
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import alternatives
from tocsin.algebra.tree_text import to_text
from tocsin.analysis.acel import Conditions
from tocsin.analysis.attributes import Binder, variable_schemas
from tocsin.analysis.bounds import always_before
from tocsin.analysis.inference import Environment, Inference
from tocsin.analysis.schema import bind
from tocsin.analysis.temporal import network
from tocsin.analysis.types import INTEGER
from tocsin.engines.spark.columns import Compiler
from tocsin.expressions import interpret
from tocsin.kernels.conditions import interchangeable
from tocsin.kernels.expressions.code import condition_code, value_code
from tocsin.kernels.expressions.slots import Families, prepare
from tocsin.kernels.nested_loops import kernel
from tocsin.kernels.reach import may_be_empty, without
from tocsin.kernels.search.function import emit  # alone: `program` refuses before
from tocsin.kernels.search.program import program
from tocsin.kernels.trends.machine import NotAPathError, machine
from tocsin.kernels.trends.request import as_paths
from tocsin.language import expressions as ex
from tocsin.language.acel import ast as acel
from tocsin.language.acel.printer import print_formula
from tocsin.language.sase.printer import print_expression
from tocsin.optimizer.estimate import Estimate
from tocsin.optimizer.query_parts import map_nodes
from tocsin.optimizer.rules import optimize
from tocsin.optimizer.statistics import Statistics
from tocsin.plan.joins.copies import unrolled
from tocsin.plan.joins.refusals import unsupported as refused_by_joins

REFUSALS = (errors.TocsinError, NotAPathError)
SCHEMAS = {"A": {"ts": "bigint", "x": "int"}, "B": {"ts": "bigint", "x": "int"}}
ROWS = {"A": [{"ts": 1, "x": 1}], "B": [{"ts": 2, "x": 1}]}


@dataclass(frozen=True)
class Mirror(alg.Node):
    """An operator that no layer has a case for."""

    part: alg.Node


@dataclass(frozen=True)
class Square(ex.Expression):
    """An expression that no layer has a case for."""

    operand: ex.Expression


A, B = alg.Event("A", "a"), alg.Event("B", "b")
NODE = Mirror(alg.Sequence((A, B)))
SQUARE = Square(ex.Attribute("a", ("x",)))
SQUARE_OF_TWO = Square(ex.Arithmetic("+", ex.Attribute("a", ("x",)), ex.Attribute("b", ("x",))))


def raised(error: Exception | None) -> None:
    """Raise what a layer returns as the reason of its refusal."""
    if error is not None:
        raise error


NODES: dict[str, Callable[[], Any]] = {
    "text form": lambda: to_text(NODE),
    "variables": lambda: alg.variables_of(NODE),
    "alternatives": lambda: alternatives(NODE),
    "structure": lambda: alg.can_match_empty(NODE),
    "order of variables": lambda: always_before(NODE),
    "temporal network": lambda: network(alg.Query(NODE)),
    "attributes": lambda: Binder({}, [], is_strict=True).held(NODE),
    "schemas": lambda: bind(alg.Query(NODE), SCHEMAS),
    "walk of the optimizer": lambda: map_nodes(NODE, lambda each: each),
    "rules of the optimizer": lambda: optimize(alg.Query(NODE)),
    "estimate": lambda: Estimate(alg.Query(NODE), network(alg.Query(A)), Statistics(2, 2, {})).rows,
    "reference": lambda: reference.evaluate(alg.Query(NODE), ROWS),
    "kernel": lambda: kernel(replace(bind(alg.Query(A), SCHEMAS), query=alg.Query(NODE))),
    "program of searches": lambda: program(NODE, ()),
    "loops": lambda: emit(None, NODE, None, None),  # type: ignore[arg-type]
    "empty matches": lambda: may_be_empty(NODE),
    "residual absences": lambda: without(NODE, ()),
    "unordered variables": lambda: interchangeable(alg.Query(NODE, unordered=(("a", "b"),))),
    "paths of trends": lambda: machine(NODE),
    "ACEL as paths": lambda: as_paths(alg.Query(alg.Adjacent((NODE, A)))),
    "automata": lambda: automata.automaton(NODE),
    "claims of joins": lambda: raised(refused_by_joins(alg.Query(NODE))),
    "copies of joins": lambda: unrolled(alg.Query(NODE)),
    "schema of results": lambda: variable_schemas(NODE, {}),
}

EXPRESSIONS: dict[str, Callable[[], Any]] = {
    "printer": lambda: print_expression(SQUARE),
    "printer of ACEL": lambda: print_formula(acel.Filter(acel.Event("A"), SQUARE)),
    "text form": lambda: to_text(alg.Filter(A, SQUARE)),
    "conditions of ACEL": lambda: Conditions({}, []).checked(SQUARE),
    "types": lambda: Inference(Environment(lambda _: INTEGER)).type_of(SQUARE),
    "schemas": lambda: bind(alg.Query(alg.Filter(A, SQUARE)), SCHEMAS),
    "reference": lambda: reference.evaluate(alg.Query(alg.Filter(A, SQUARE)), ROWS),
    "slots": lambda: prepare(SQUARE_OF_TWO, Environment(lambda _: INTEGER), Families()),
    "conditions of loops": lambda: condition_code(SQUARE, lambda *_: None),
    "values of loops": lambda: value_code(SQUARE, lambda *_: None),
    "values in Python": lambda: interpret.value(SQUARE),
    "SQL": lambda: Compiler({}).value(SQUARE),
}


@pytest.mark.parametrize("layer", NODES)
def test_an_unknown_operator_is_refused_by_name(layer: str) -> None:
    with pytest.raises(REFUSALS, match=r"\bMirror\b"):
        NODES[layer]()


@pytest.mark.parametrize("layer", EXPRESSIONS)
def test_an_unknown_expression_is_refused_by_name(layer: str) -> None:
    with pytest.raises(REFUSALS, match=r"\bSquare\b"):
        EXPRESSIONS[layer]()


def test_expressions_change_below_an_unknown_operator() -> None:
    query = alg.Query(Mirror(alg.Filter(A, ex.Attribute("a", ("x",)))))
    changed = query.map_expressions(lambda each: ex.renamed(each, str.upper))
    assert [*changed.expressions()] == [ex.Attribute("A", ("x",))]


def test_every_match_has_a_last_arm() -> None:
    assert [f"{path}:{node.lineno}" for path, node in house.matches() if not house.is_closed(node)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("match x:\n case 1: pass\n case _: pass", True),
        ("match x:\n case 1: pass\n case other: pass", True),
        ("match x, y:\n case 1, 2: pass\n case one, _: pass", True),
        ("match x:\n case 1: pass\n case one, _: pass", False),
        ("match x, y:\n case 1, 2: pass\n case one, 3: pass", False),
        ("match x:\n case 1: pass\n case _ if x > 1: pass", False),
        ("match x:\n case int() as number: pass", False),
    ],
)
def test_a_last_arm_takes_everything(text: str, expected: bool) -> None:
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Match)
    assert house.is_closed(statement) == expected
