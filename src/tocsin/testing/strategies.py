"""Hypothesis strategies for valid queries and the streams they run on: ties, duplicates, NULLs, keys, empty inputs.

Queries are valid by construction, over the event types of `TYPES` with the attributes of `ATTRIBUTES`. `Features` says
what may occur in them, so that an engine is tested on all it claims and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from hypothesis import strategies as st

from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.testing.streams import ATTRIBUTES, SECOND, TYPES, Streams, streams

__all__ = [
    "ATTRIBUTES",
    "EVERYTHING",
    "JOINS",
    "LANGUAGE",
    "SECOND",
    "TIMEOUTS",
    "TYPES",
    "Features",
    "Streams",
    "queries",
    "streams",
]


@dataclass(frozen=True)
class Features:
    """The constructs that a generated query may contain."""

    iteration: bool = False
    absence: bool = False
    policies: bool = False
    returns: bool = False
    aggregates: bool = False
    unbounded: bool = True
    guarded_iteration: bool = False  # NOT inside an iterated SEQ
    texts: bool = False  # conditions that join or count texts, which arrays of numbers cannot hold
    over_all: bool = False  # RETURN COUNT(*), GROUP BY
    timeouts: bool = False  # WITH TIMEOUTS, always
    most_events: int = 4


JOINS = Features(returns=True)
EVERYTHING = Features(iteration=True, absence=True, policies=True, returns=True, aggregates=True, most_events=3)
LANGUAGE = replace(EVERYTHING, guarded_iteration=True, texts=True, over_all=True)
TIMEOUTS = replace(
    EVERYTHING, policies=False, unbounded=False, guarded_iteration=True, texts=True, timeouts=True, most_events=4
)


# --- queries --------------------------------------------------------------------------------------


@st.composite
def queries(draw: st.DrawFn, features: Features = EVERYTHING) -> ast.Query:
    """A valid query."""
    sizes = [*range(2, features.most_events + 1)] if features.timeouts else [2, 1, *range(2, features.most_events + 1)]
    names = [f"e{number}" for number in range(draw(st.sampled_from(sizes)))]
    pattern = draw(_elements(names, features, depth=0))
    positive = _positive(pattern)
    window = draw(st.one_of(st.none(), _windows()) if features.unbounded else _windows())
    if _has_edge_absence(pattern):
        window = window or draw(_windows())
    partition_by = draw(st.sampled_from([(), (), (), (ast.Key("k"),)]))
    conditions = [draw(_conditions(pattern, features)) for _ in range(draw(st.sampled_from([1, 0, 0, 1, 2])))]
    if draw(st.integers(0, 5)) == 0:
        conditions.append(ex.SameValue(("k",)))
    query = ast.Query(
        pattern,
        partition_by=partition_by,
        where_clause=ex.all_of(*conditions) if conditions else None,
        within=window,
        timeouts=features.timeouts,
    )
    if features.policies:
        query = draw(_with_policies(query, positive, features))
    if features.over_all and draw(st.integers(0, 5)) == 0:
        return draw(_with_totals(query, positive))
    if features.returns and draw(st.booleans()):
        query = draw(_with_returns(query, positive, features))
    return query


def _windows() -> st.SearchStrategy[ast.Window]:
    return st.builds(
        lambda seconds, near: ast.Window(seconds * SECOND + near),
        st.sampled_from([5, 8, 3, 1, 2]),
        st.sampled_from([0, 0, 1]),
    )


@st.composite
def _elements(draw: st.DrawFn, names: list[str], features: Features, depth: int) -> ast.Element:
    """An element that binds these names; negations are put into sequences afterwards."""
    if len(names) == 1:
        quantifier = draw(_quantifiers(features)) if features.iteration and draw(st.integers(0, 2)) == 0 else None
        return ast.Event(draw(st.sampled_from(TYPES)), names[0], quantifier)
    cut = draw(st.integers(1, len(names) - 1))
    operator = draw(st.sampled_from([ast.Operator.SEQ, *ast.Operator]))
    is_timed = features.timeouts and depth == 0
    operator = ast.Operator.SEQ if is_timed else operator
    groups = [names[:cut], names[cut:]]
    if operator is ast.Operator.OR and draw(st.integers(0, 3)) == 0:
        groups = [names, names] if depth == 0 else groups  # both branches bind the same names
    parts = [draw(_elements(group, features, depth + 1)) for group in groups]
    if features.absence and operator is ast.Operator.SEQ and draw(st.integers(0, 1)):
        event = ast.Event(draw(st.sampled_from(TYPES)), f"n{depth}{names[0]}")
        parts.insert(draw(st.integers(0, len(parts))), ast.Negation(event))
    quantifier = None
    guarded = any(map(_has_edge_absence, parts))
    may_iterate = not guarded or (features.guarded_iteration and _is_closed(ast.Composite(operator, tuple(parts))))
    if features.iteration and may_iterate and not is_timed and draw(st.integers(0, 1 if guarded else 5)) == 0:
        quantifier = draw(_quantifiers(features))
    return ast.Composite(operator, tuple(parts), quantifier)


def _is_closed(element: ast.Element) -> bool:
    """Whether every NOT in an element stands between two parts of its SEQ that are always there."""
    if not isinstance(element, ast.Composite):
        return True
    for place, part in enumerate(element.parts):
        around = (element.parts[:place], element.parts[place + 1 :])
        if isinstance(part, ast.Negation) and not all(any(map(_is_there, side)) for side in around):
            return False
    return all(map(_is_closed, element.parts))


def _is_there(element: ast.Element) -> bool:
    """Whether an element binds an event in every match."""
    if isinstance(element, ast.Negation) or (element.quantifier is not None and element.quantifier.least == 0):
        return False
    if isinstance(element, ast.Event):
        return True
    return (all if element.operator is ast.Operator.OR else any)(map(_is_there, element.parts))


def _quantifiers(features: Features) -> st.SearchStrategy[ast.Quantifier]:
    often = [(1, None), (0, None), (0, 1), (2, 2), (1, 2), (0, 2), (2, None)]
    often += [(3, 3), (4, 4), (2, 4)] if features.guarded_iteration else []
    return st.sampled_from([ast.Quantifier(least, most) for least, most in often])


def _has_edge_absence(element: ast.Element) -> bool:
    """Whether a NOT might lie at an edge; any NOT might, when its neighbours are optional."""
    return any(ast.negated_in(element))


def _positive(element: ast.Element) -> dict[str, bool]:
    """The positive variables, and whether each is iterated."""
    match element:
        case ast.Event():
            return {element.variable: _iterates(element.quantifier)}
        case ast.Composite():
            inner: dict[str, bool] = {}
            for part in element.parts:
                for name, iterated in _positive(part).items():
                    inner[name] = inner.get(name, False) or iterated or _iterates(element.quantifier)
            return inner
        case ast.Negation():
            return {}
        case _:
            assert_never(element)


def _iterates(quantifier: ast.Quantifier | None) -> bool:
    return quantifier is not None and quantifier.most != 1


# --- conditions -----------------------------------------------------------------------------------


@st.composite
def _conditions(draw: st.DrawFn, pattern: ast.Element, features: Features) -> ex.Expression:
    """One conjunct: over positive variables, and at most one negated."""
    positive = _positive(pattern)
    negated = [event.variable for event in ast.negated_in(pattern)]
    names = draw(st.lists(st.sampled_from(sorted(positive)), min_size=1, max_size=2, unique=True))
    kinds = {name: positive[name] for name in names}
    if draw(st.booleans()) and negated:
        kinds[draw(st.sampled_from(negated))] = False
    if features.aggregates and draw(st.integers(0, 4)) == 0:
        return draw(_aggregate_comparisons(sorted(positive), features))
    if features.texts and draw(st.integers(0, 7)) == 0:
        kinds = {name: kind for name, kind in kinds.items() if name in positive}
        both = ex.Call("concat", (draw(_references(kinds, "k")), draw(_references(kinds, "k"))))
        return ex.Comparison(draw(COMPARISONS), both, ex.Literal(draw(st.sampled_from(["pp", "pq", "qp"]))))
    condition = draw(_comparisons(kinds))
    match draw(st.integers(0, 7)):
        case 0:
            return ex.Not(condition)
        case 1:
            return ex.any_of(condition, draw(_comparisons(kinds)))
        case _:
            return condition


@st.composite
def _references(draw: st.DrawFn, kinds: dict[str, bool], attribute: str) -> ex.Attribute:
    name = draw(st.sampled_from(sorted(kinds)))
    index = draw(st.sampled_from(INDICES)) if kinds[name] else ex.Each.PLAIN
    return ex.Attribute(name, (attribute,), index)


INDICES: list[ex.Index] = [ex.Each.PLAIN, ex.Each.NEXT, ex.Running("i"), ex.Running("i", -1), *ex.Edge, ex.Fixed(2)]
COMPARISONS = st.sampled_from([">=", "<=", "!=", "<", ">", "="])


@st.composite
def _comparisons(draw: st.DrawFn, kinds: dict[str, bool]) -> ex.Expression:
    match draw(st.integers(0, 9)):
        case 0 | 1 | 2:
            return ex.Comparison(draw(COMPARISONS), draw(_numbers(kinds)), draw(_numbers(kinds)))
        case 3 | 4:
            left, right = draw(_references(kinds, "k")), draw(_references(kinds, "k"))
            return ex.Comparison(draw(st.sampled_from(["=", "=", "!=", "<="])), left, right)
        case 5:
            options = tuple(ex.Literal(value) for value in draw(st.sampled_from([("p",), ("p", "q"), ("p", None)])))
            return ex.In(draw(_references(kinds, "k")), options, draw(st.booleans()))
        case 6:
            return ex.Between(draw(_numbers(kinds)), draw(_numbers(kinds)), draw(_numbers(kinds)), draw(st.booleans()))
        case 7:
            return ex.IsNull(draw(_references(kinds, draw(st.sampled_from(["x", "k"])))), draw(st.booleans()))
        case 8:
            text = draw(st.sampled_from(["p%", "%", "_", "%q"]))
            return ex.Like(draw(_references(kinds, "k")), text, draw(st.booleans()))
        case _:
            span = ex.Arithmetic("-", draw(_references(kinds, "ts")), draw(_references(kinds, "ts")))
            return ex.Comparison(draw(COMPARISONS), span, ex.Interval(draw(st.integers(-2, 5)) * SECOND))


@st.composite
def _numbers(draw: st.DrawFn, kinds: dict[str, bool]) -> ex.Expression:
    match draw(st.integers(0, 7)):
        case 0:
            return ex.Literal(draw(st.integers(0, 3)))
        case 1:
            op = draw(st.sampled_from(["+", "-", "*", "/", "%"]))
            return ex.Arithmetic(op, draw(_references(kinds, "x")), draw(_references(kinds, "x")))
        case 2:
            return draw(_references(kinds, "v"))
        case 3:
            inner = draw(_references(kinds, "x"))
            forms: list[ex.Expression] = [
                *(ex.Call("abs", (inner,)), ex.Call("coalesce", (inner, ex.Literal(0))), ex.Negative(inner)),
                ex.Case(((ex.IsNull(inner), ex.Literal(1)),), inner),
                ex.Call("greatest", (inner, ex.Literal(1))),
            ]
            return draw(st.sampled_from(forms))
        case _:
            return draw(_references(kinds, "x"))


@st.composite
def _aggregates(draw: st.DrawFn, names: list[str]) -> ex.Aggregate:
    name = draw(st.sampled_from(names))
    function = draw(st.sampled_from(["count", "sum", "min", "max", "avg", "range", "first", "last"]))
    if function == "count" and draw(st.booleans()):
        return ex.Aggregate("count", ex.Variable(name))
    return ex.Aggregate(function, ex.Attribute(name, ("x",)))


@st.composite
def _aggregate_comparisons(draw: st.DrawFn, names: list[str], features: Features) -> ex.Expression:
    if features.texts and draw(st.integers(0, 3)) == 0:
        counted = ex.Aggregate("count", ex.Attribute(draw(st.sampled_from(names)), ("k",)), distinct=True)
        return ex.Comparison(draw(COMPARISONS), counted, ex.Literal(draw(st.integers(0, 2))))
    return ex.Comparison(draw(COMPARISONS), draw(_aggregates(names)), ex.Literal(draw(st.integers(0, 3))))


# --- clauses --------------------------------------------------------------------------------------


@st.composite
def _with_policies(draw: st.DrawFn, query: ast.Query, positive: dict[str, bool], features: Features) -> ast.Query:
    if features.over_all and draw(st.integers(0, 2)) == 0:
        return query  # all that is left out has its default, which more strategies claim
    skip = draw(st.sampled_from([ast.Skip.REUSE, *ast.Skip]))
    variable = draw(st.sampled_from(sorted(positive))) if skip in (ast.Skip.TO_FIRST, ast.Skip.TO_LAST) else None
    return replace(
        query,
        selection=draw(st.sampled_from(ast.Selection)),
        after_match=ast.AfterMatch(skip, variable),
        output=draw(st.sampled_from([output for output in ast.Output if output is not ast.Output.COUNT])),
    )


@st.composite
def _with_returns(draw: st.DrawFn, query: ast.Query, positive: dict[str, bool], features: Features) -> ast.Query:
    columns: list[ast.Column] = []
    for number in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(positive)))
        choices: list[ex.Expression] = [ex.Variable(name), ex.Attribute(name, ("x",))]
        if not positive[name]:
            choices += [ex.Arithmetic("+", choices[1], ex.Literal(1)), ex.Attribute(name, ("k",))]
        if features.aggregates:
            choices.append(draw(_aggregates(sorted(positive))))
        columns.append(ast.Column(draw(st.sampled_from(choices)), f"c{number}"))
    return replace(query, returns=tuple(columns))


@st.composite
def _with_totals(draw: st.DrawFn, query: ast.Query, positive: dict[str, bool]) -> ast.Query:
    """Aggregates over all matches, of all of them or by group."""
    columns = [ast.Column(ex.Aggregate("count", None), "n")]
    totals = draw(st.lists(_aggregates(sorted(positive)), max_size=2))
    columns += [ast.Column(total, f"c{number}") for number, total in enumerate(totals)]
    query = replace(query, every=draw(st.sampled_from([None, None, ast.Window(2 * SECOND), ast.Window(3 * SECOND)])))
    single = [name for name, iterated in positive.items() if not iterated]
    if not single or draw(st.booleans()):
        return replace(query, returns=tuple(columns))
    key = ex.Attribute(draw(st.sampled_from(single)), (draw(st.sampled_from(["k", "x"])),))
    return replace(query, returns=(ast.Column(key, "key"), *columns), group_by=(key,))
