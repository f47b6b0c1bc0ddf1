"""Hypothesis strategies for programs of rules: all that PARTElang text can say, whether or not it means anything.

For properties of parsers and printers.
"""

from __future__ import annotations

from typing import TypeVar

from hypothesis import strategies as st
from tests import trees
from tests.trees import NAMES

from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.ast import Quantifier
from tocsin.language.partelang import ast
from tocsin.language.partelang.parser import POLICIES

T = TypeVar("T")
CALLED = st.sampled_from(["uncommon_route", "list", "hour", "Distance_km", "count", "sum"])


def _tuples(items: st.SearchStrategy[T], least: int = 0, most: int = 3) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


def expressions() -> st.SearchStrategy[ex.Expression]:
    """Conditions and values of every shape, with calls as rules write them."""
    return trees.expressions().map(lambda found: found.transform(_as_in_rules)).map(_as_condition)


def _as_in_rules(node: ex.Expression) -> ex.Expression:
    match node:
        case ex.Call(function, arguments):
            return rx.Invoke(function, arguments)
        case ex.Aggregate(function, argument, distinct):
            return rx.Invoke(function, (ex.Literal(1) if argument is None else argument,), distinct)
        case ex.SameValue(attributes):
            return ex.Name(attributes[0])
    return node


def _as_condition(node: ex.Expression) -> ex.Expression:
    """A whole variable by itself is written as a name."""
    return ex.Name(node.name) if isinstance(node, ex.Variable) else node


def any_programs() -> st.SearchStrategy[ast.Program]:
    """Whole programs of any declarations."""
    return st.builds(ast.Program, _tuples(st.one_of(_uses(), _templates(), _definitions(), _rules()), 1, 4))


def _uses() -> st.SearchStrategy[ast.Use]:
    return st.builds(ast.Use, NAMES)


def _templates() -> st.SearchStrategy[ast.Template]:
    types = st.builds(ast.TypeName, NAMES, st.none() | st.integers(0, 99))
    return st.builds(ast.Template, NAMES, _tuples(st.builds(ast.Slot, NAMES, types)))


def _references() -> st.SearchStrategy[ast.Reference]:
    return st.builds(ast.Reference, NAMES, _tuples(expressions(), most=2))


def _definitions() -> st.SearchStrategy[ast.Definition]:
    parameters = _tuples(st.builds(ast.Parameter, NAMES), most=2)
    return st.builds(ast.Definition, NAMES, parameters, _references(), _tuples(expressions(), most=2))


def _rules() -> st.SearchStrategy[ast.Rule]:
    quantifiers = st.builds(Quantifier, st.integers(0, 5), st.none() | st.integers(0, 5))
    patterns = st.builds(
        ast.Pattern,
        NAMES,
        _references(),
        _tuples(expressions(), most=2),
        st.sampled_from(ast.Sort),
        st.none() | quantifiers,
    )
    ends = st.integers(-100, 100).map(lambda days: days * 24 * 3600 * 1_000_000) | st.integers(-(10**20), 10**20)
    constraints = st.one_of(
        st.builds(ast.Distance, NAMES, NAMES, ends, ends, st.sampled_from(ast.Sort)),
        st.builds(ast.Distinct, _tuples(NAMES, 1)),
        st.builds(ast.Unordered, _tuples(NAMES, 1)),
    )
    values = st.builds(ast.Assignment, NAMES, expressions())
    reactions = st.one_of(
        st.builds(ast.Emission, NAMES, expressions(), _tuples(values)),
        st.builds(ast.Reaction, st.builds(rx.Invoke, CALLED, _tuples(expressions(), most=2))),
    )
    return st.builds(
        ast.Rule,
        NAMES,
        _tuples(patterns, 1),
        _tuples(constraints),
        st.sampled_from(POLICIES),
        _tuples(reactions, most=2),
    )
