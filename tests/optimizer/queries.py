"""Random queries of the algebra whose conditions hold constants, double negations and chains of equalities."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema
from tocsin.analysis.sase import translate
from tocsin.language import expressions as ex
from tocsin.optimizer.query_parts import map_nodes
from tocsin.testing.strategies import ATTRIBUTES, TYPES, Features, queries

SCHEMAS = {name: Schema.of(name, ATTRIBUTES) for name in TYPES}
ONE_BELOW_TWO = ex.Comparison("<", ex.Literal(1), ex.Literal(2))
Streams = dict[str, list[dict[str, Any]]]


def wrapped(condition: ex.Expression, how: str) -> ex.Expression:
    """A condition with something constant about it; most mean the same."""
    match how:
        case "not not":
            return ex.Not(ex.Not(condition))
        case "and true":
            return ex.all_of(condition, ONE_BELOW_TWO)
        case "not not and":
            return ex.Not(ex.Not(ex.all_of(condition, ex.IsNull(ex.Literal(None)))))
        case "or false":
            return ex.any_of(condition, ex.Comparison("=", ex.Literal("p"), ex.Literal("q")))
        case "or true":
            return ex.any_of(condition, ex.Literal(True))
        case "never":
            return ex.Not(ex.any_of(condition, ex.Literal(True)))
        case "unknown":
            return ex.Not(ex.Not(ex.all_of(condition, ex.Comparison("<", ex.Literal(None), ex.Literal(1)))))
        case "sum":
            return ex.all_of(
                condition, ex.Comparison("=", ex.Arithmetic("+", ex.Literal(1), ex.Literal(2)), ex.Literal(3))
            )
        case "twice":
            return ex.all_of(condition, condition)
        case "no number":
            name = min(ex.variables_in(condition), default="")
            return ex.Comparison("=", ex.Attribute(name, ("x",)), ex.Literal(None)) if name else condition
    return condition


WRAPPERS = [
    "plain",
    "not not",
    "and true",
    "not not and",
    "or false",
    "or true",
    "never",
    "unknown",
    "sum",
    "twice",
    "no number",
]


@st.composite
def constant_queries(draw: st.DrawFn, features: Features) -> alg.Query:
    query = translate(draw(queries(features))).query

    def change(condition: ex.Expression) -> ex.Expression:
        return ex.all_of(*(wrapped(conjunct, draw(st.sampled_from(WRAPPERS))) for conjunct in ex.conjuncts(condition)))

    def in_node(node: alg.Node) -> alg.Node:
        match node:
            case alg.Filter():
                return replace(node, condition=change(node.condition))
            case alg.Absent(condition=ex.Expression() as condition):
                return replace(node, condition=change(condition))
            case alg.Absent() if draw(st.integers(0, 3)):
                known = ex.IsNull(ex.Attribute(node.variable, ("x",)), negated=True)
                return replace(node, condition=wrapped(known, draw(st.sampled_from(["never", "no number", *WRAPPERS]))))
        return node

    return replace(query, pattern=map_nodes(query.pattern, in_node))


@st.composite
def chained_queries(draw: st.DrawFn, features: Features) -> alg.Query:
    """Queries of three or more variables, with a chain of equalities through one of them, mostly the last."""
    tree = draw(queries(features).filter(lambda tree: len(translate(tree).query.variables) >= 3))
    names = list(translate(tree).query.variables)
    middle = draw(st.sampled_from([names[-1], *names]))
    others = [name for name in names if name != middle]
    path = draw(st.sampled_from(["k", "k", "x", "v"]))
    equal = [
        ex.Comparison("=", ex.Attribute(middle, (path if path != "v" else "x",)), ex.Attribute(name, (path,)))
        for name in draw(st.permutations(others))
    ]
    where = ex.all_of(*([tree.where_clause] if tree.where_clause is not None else []), *equal)
    return translate(replace(tree, where_clause=where)).query


@st.composite
def keyed_queries(draw: st.DrawFn, features: Features) -> alg.Query:
    """Queries whose conditions equate an attribute of all variables, or of all but one; and of those under NOT."""
    tree = draw(queries(features).filter(lambda tree: len(translate(tree).query.variables) >= 2))
    query = translate(tree).query
    path = draw(st.sampled_from(["k", "k", "k", "x", "v"]))
    order = draw(st.permutations(list(query.variables)))
    pairs = [*pairwise(order), *((name, draw(st.sampled_from(order))) for name in alg.negated_variables(query.pattern))]
    if draw(st.integers(0, 4)) == 0:
        pairs.pop(draw(st.integers(0, len(pairs) - 1)))
    equal = [
        ex.Comparison("=", ex.Attribute(one, (path,)), ex.Attribute(other, (path,)))
        for one, other in draw(st.permutations(pairs))
    ]
    where = [*([tree.where_clause] if tree.where_clause is not None else []), *equal]
    return translate(replace(tree, where_clause=ex.all_of(*where))).query if where else query
