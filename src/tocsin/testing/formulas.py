"""Hypothesis strategies for ACEL: formulas that mean something over the streams of `streams`.

They name only variables that are bound and attributes that are there, so that they translate and bind to `ATTRIBUTES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from hypothesis import strategies as st

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.acel import Formulas
from tocsin.analysis.attributes import Binder, Schema, VariableSchemas
from tocsin.analysis.types import DataType, Kind
from tocsin.language import ast as clauses
from tocsin.language import expressions as ex
from tocsin.language.acel import ast
from tocsin.testing.streams import ATTRIBUTES, SECOND, SEEDS, TYPES

LEAVES = ("event", "event", "event", "next")
OPERATORS = (
    *("bind", "filter", "or", "and", "sequence", "sequence", "adjacent"),
    *("repeat", "repeat_adjacent", "project", "derive"),
)
T = TypeVar("T")
NAMES = ("X", "Y", "Z")
VALUES = ("s", "n", "m")
SCHEMAS = {name: Schema.of(name, ATTRIBUTES) for name in TYPES}


def node_of(formula: ast.Formula) -> alg.Node:
    """The algebra of a formula that is well formed."""
    return Formulas().node(formula)


def held_by(formula: ast.Formula) -> VariableSchemas:
    """The shapes of the events that the variables of a formula hold."""
    return _binder().held(node_of(formula))


def _binder() -> Binder:
    return Binder(SCHEMAS, errors.Problems(), is_strict=False)


# --- formulas that mean something -----------------------------------------------------------------


@st.composite
def formulas(draw: st.DrawFn, *, operators: tuple[str, ...] = OPERATORS, max_depth: int = 3) -> ast.Formula:
    """A well-formed formula over the types A, B and C with the attributes k, x and v.

    Parameters
    ----------
    operators
        Those that may stand in it, of `OPERATORS`; what is written twice comes twice as often.
    max_depth
        How deep operators nest. Every repetition may have a match for each subset of its events.
    """
    # Choices of Hypothesis shrink well but like extremes; those of a seed are spread evenly and find more matches.
    choose = Random(draw(SEEDS)) if draw(st.booleans()) else draw(st.randoms(use_true_random=False))
    return _formula(choose, operators, max_depth)


def _some(choose: Random, options: Sequence[T], most: int) -> list[T]:
    """One to `most` different ones."""
    return choose.sample(options, choose.randint(1, min(most, len(options))))


def _formula(choose: Random, operators: tuple[str, ...], depth: int) -> ast.Formula:
    if depth == 0 or choose.choice((True, False, False, False, False)):
        kind = choose.choice(LEAVES)
        return (ast.NextOf if kind == "next" else ast.Event)(choose.choice(TYPES))
    operator = choose.choice(operators)
    part = _formula(choose, operators, depth - 1)
    match operator:
        case "bind":
            return ast.Bind(part, choose.choice(NAMES))
        case "filter":
            return ast.Filter(part, condition(choose, held_by(part)))
        case "repeat":
            return ast.Repeat(part)
        case "repeat_adjacent":
            return ast.RepeatAdjacent(part)
        case "project":
            return _project(choose, part)
        case "derive":
            return _derive(choose, part)
        case "and":
            # Two formulas drawn apart hardly ever find the same; most of the time one is a part of the other.
            other = _formula(choose, operators, depth - 1) if choose.choice((True, False, False)) else part
            if other is part and choose.choice((True, False)):
                other = ast.Filter(part, condition(choose, held_by(part)))
            return ast.joined(ast.Both, part, other)
        case "or":
            return ast.joined(ast.Any, part, _formula(choose, operators, depth - 1))
        case "sequence":
            return ast.joined(ast.Sequence, part, _formula(choose, operators, depth - 1))
        case _:
            return ast.joined(ast.Adjacent, part, _formula(choose, operators, depth - 1))


def _project(choose: Random, part: ast.Formula) -> ast.Formula:
    held = held_by(part)
    kept = []
    for name in _some(choose, sorted(held), 3):
        known = sorted(attributes(name, held))
        trimmed = bool(known) and choose.choice((True, False))
        kept.append(ast.Kept(name, tuple(_some(choose, known, 2)) if trimmed else None))
    return ast.Project(part, tuple(kept))


def _derive(choose: Random, part: ast.Formula) -> ast.Formula:
    held = held_by(part)
    folds = []
    for name in _some(choose, VALUES, 2):
        variable = choose.choice(sorted(held))
        known = attributes(variable, held)
        numbers = sorted(attribute for attribute, kind in known.items() if kind.is_number)
        ordered = sorted(attribute for attribute, kind in known.items() if kind.is_ordered)
        choices: list[tuple[str, str | None]] = [("count", None)]
        choices += [(function, one) for one in numbers for function in ("sum", "avg", "range")]
        choices += [(function, one) for one in ordered for function in ("min", "max", "first", "last", "count")]
        function, attribute = choose.choice(choices)
        distinct = attribute is not None and function in ("count", "sum") and choose.choice((True, False, False))
        folds.append(ast.Fold(name, function, variable, () if attribute is None else (attribute,), distinct))
    return ast.Derive(part, choose.choice((*NAMES, "W")), tuple(folds))


def attributes(name: str, held: VariableSchemas) -> dict[str, DataType]:
    """The attributes of a variable that one type is known of, but the time."""
    found: dict[str, DataType] = {}
    for attribute in {name for shape in held[name] for name in shape.attributes} - {"ts"}:
        try:
            found[attribute] = _binder().attribute(ex.Attribute(name, (attribute,)), held)
        except errors.TypeMismatchError:
            continue
    return found


def condition(choose: Random, held: VariableSchemas) -> ex.Expression:
    """A condition of FILTER over variables that hold this."""
    atoms = [_atom(choose, held) for _ in range(choose.choice((1, 1, 2, 3)))]
    if len(atoms) == 3 and choose.choice((True, False)):
        return ex.any_of(ex.all_of(*atoms[:2]), atoms[2])
    return ex.all_of(*atoms) if choose.choice((True, False)) else ex.any_of(*atoms)


def _atom(choose: Random, held: VariableSchemas) -> ex.Expression:
    name = choose.choice(sorted(held))
    known = {attribute: kind for attribute, kind in attributes(name, held).items() if kind.is_ordered}
    if not known:
        return ex.Every(name, ex.Comparison("=", ex.Literal(1), ex.Literal(choose.choice((1, 1, 2)))))
    attribute = choose.choice(sorted(known))
    if choose.choice((True, False, False, False)):
        return ex.BagPredicate(choose.choice(list(ex.BagOrder)), name, (attribute,))
    predicate = _predicate(choose, name, attribute, known)
    if choose.choice((True, False, False, False)):
        predicate = ex.Not(predicate)
    if choose.choice((True, False, False, False)):
        other = _predicate(choose, name, choose.choice(sorted(known)), known)
        predicate = ex.all_of(predicate, other) if choose.choice((True, False)) else ex.any_of(predicate, other)
    return ex.Every(name, predicate)


def _predicate(choose: Random, name: str, attribute: str, known: dict[str, DataType]) -> ex.Expression:
    value = ex.Attribute(name, (attribute,))
    kind = known[attribute]
    if kind.kind is Kind.NULL or choose.choice((True, False, False, False, False)):
        return ex.IsNull(value, choose.choice((True, True, False)))
    operator = choose.choice(("=", "!=", "<", "<=", ">", ">="))
    if not kind.is_number:
        return ex.Comparison(operator, value, ex.Literal(choose.choice(("p", "q"))))
    numbers = sorted(other for other, found in known.items() if found.is_number and other != attribute)
    if choose.choice((True, False, False)) and numbers:
        return ex.Comparison(operator, value, ex.Attribute(name, (choose.choice(numbers),)))
    return ex.Comparison(operator, value, ex.Literal(choose.choice((-1, 0, 1, 2, 3))))


@st.composite
def queries(draw: st.DrawFn, *, operators: tuple[str, ...] = OPERATORS, max_depth: int = 3) -> ast.Query:
    """A well-formed formula with a window now and then, and a partition."""
    formula = draw(formulas(operators=operators, max_depth=max_depth))
    window = draw(st.sampled_from([None, None, 1, 3, 5]))
    keys = draw(st.sampled_from([(), (), (), ("k",)]))
    return ast.Query(
        formula,
        partition_by=tuple(clauses.Key(key) for key in keys),
        within=None if window is None else clauses.Window(window * SECOND),
    )
