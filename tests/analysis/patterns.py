"""Small patterns for the tests of the analyser, and by brute force the times their events may have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, count, product

from hypothesis import assume
from hypothesis import strategies as st

from tocsin.algebra import nodes as alg
from tocsin.analysis.structure import Structure
from tocsin.language import ast
from tocsin.language import expressions as ex

SECOND = 1_000_000


def event(name: str, type: str | None = None) -> alg.Event:
    """`A a`: the type is the name in capitals."""
    return alg.Event(type or name.upper(), name)


def sequence(*parts: alg.Node | str) -> alg.Sequence:
    return alg.Sequence(tuple(event(part) if isinstance(part, str) else part for part in parts))


def both(*parts: alg.Node | str) -> alg.All:
    return alg.All(tuple(event(part) if isinstance(part, str) else part for part in parts))


def either(*parts: alg.Node | str) -> alg.Any:
    return alg.Any(tuple(event(part) if isinstance(part, str) else part for part in parts))


def repeat(part: alg.Node | str, least: int = 1, most: int | None = None) -> alg.Repeat:
    return alg.Repeat(event(part) if isinstance(part, str) else part, least, most)


def ts(name: str) -> ex.Attribute:
    return ex.Attribute(name, ("ts",))


def at_most(later: str, earlier: str, microseconds: int) -> ex.Expression:
    """`later.ts - earlier.ts <= microseconds`."""
    return ex.Comparison("<=", ex.Arithmetic("-", ts(later), ts(earlier)), ex.Interval(microseconds))


def query(core: alg.Node, *conditions: ex.Expression, within: int | None = None, **options: object) -> alg.Query:
    """`Within(Filter(core, …), W)`, as the translator builds it."""
    if conditions:
        core = alg.Filter(core, ex.all_of(*conditions))
    if within is not None:
        core = alg.Within(core, within)
    return alg.Query(core, **options)  # type: ignore[arg-type]


def leading(part: alg.Node, name: str, first: tuple[str, ...], within: int) -> alg.Absent:
    """`SEQ(NOT N n, part)`."""
    lower, upper = alg.Bound(alg.Whole.END, -within), alg.Bound(alg.FirstOf(first))
    return alg.Absent(part, name.upper(), name, None, (lower,), (upper,))


def between(
    part: alg.Node,
    name: str,
    before: tuple[str, ...],
    after: tuple[str, ...],
    condition: ex.Expression | None = None,
) -> alg.Absent:
    """`SEQ(before, NOT N n, after)`."""
    lower, upper = alg.Bound(alg.LastOf(before)), alg.Bound(alg.FirstOf(after))
    return alg.Absent(part, name.upper(), name, condition, (lower,), (upper,))


def trailing(part: alg.Node, name: str, last: tuple[str, ...], within: int) -> alg.Absent:
    """`SEQ(part, NOT N n)`."""
    lower, upper = alg.Bound(alg.LastOf(last)), alg.Bound(alg.Whole.START, within)
    return alg.Absent(part, name.upper(), name, None, (lower,), (upper,))


# --- brute force ----------------------------------------------------------------------------------

Times = dict[str, tuple[int, ...]]  # variable → the times of its events
Guards = tuple[tuple[alg.Absent, Times], ...]  # the absences met, each with the sub-match it wraps


def matches(node: alg.Node, horizon: int, most_copies: int = 2) -> Iterator[tuple[Times, Guards]]:
    """Every way to give the events of a pattern times 0 ≤ t < horizon, straight from SEMANTICS §3.

    With each comes the list of absences met, each with the sub-match it wraps. Conditions are not looked at.
    """
    match node:
        case alg.Event():
            for time in range(horizon):
                yield {node.variable: (time,)}, ()
        case alg.Sequence() | alg.All():
            for chosen in product(*(tuple(matches(part, horizon, most_copies)) for part in node.parts)):
                times = [found for found, _ in chosen if found]
                if isinstance(node, alg.All) or _in_order(times):
                    yield _union(times), tuple(guard for _, guards in chosen for guard in guards)
        case alg.Any():
            for part in node.parts:
                yield from matches(part, horizon, most_copies)
        case alg.Repeat():
            copies = tuple(matches(node.part, horizon, most_copies))
            for number in range(node.least, min(node.most or most_copies, most_copies) + 1):
                for chosen in product(copies, repeat=number):
                    times = [found for found, _ in chosen if found]
                    if _in_order(times):
                        yield _union(times), tuple(guard for _, guards in chosen for guard in guards)
        case alg.Absent():
            for times_of, guards in matches(node.part, horizon, most_copies):
                yield times_of, (*guards, (node, times_of))
        case alg.Within():
            for times_of, guards in matches(node.part, horizon, most_copies):
                if times_of and max(all_times(times_of)) - min(all_times(times_of)) < node.window_us:
                    yield times_of, guards
        case alg.Filter():
            yield from matches(node.part, horizon, most_copies)


def all_times(times: Times) -> list[int]:
    return [time for bag in times.values() for time in bag]


def _in_order(parts: list[Times]) -> bool:
    return all(max(all_times(left)) < min(all_times(right)) for left, right in combinations(parts, 2))


def _union(parts: list[Times]) -> Times:
    joined: Times = {}
    for part in parts:
        for name, bag in part.items():
            joined[name] = joined.get(name, ()) + bag
    return joined


def satisfies(times: Times, differences: list[tuple[str, str, int]]) -> bool:
    """Whether `y − x ≤ most` holds for all events of both; vacuously when one has none (R1)."""
    return all(
        later - earlier <= most
        for x, y, most in differences
        for earlier in times.get(x, ())
        for later in times.get(y, ())
    )


def anchor_time(anchor: alg.Anchor, own: Times, whole: Times) -> int | None:
    """The time of an anchor: of the sub-match the absence wraps, or of the whole match."""
    if isinstance(anchor, alg.Whole):
        return min(all_times(whole)) if anchor is alg.Whole.START else max(all_times(whole))
    known = [time for name in anchor.variables for time in own.get(name, ())]
    if not known:
        return None
    return min(known) if isinstance(anchor, alg.FirstOf) else max(known)


def deadline(absence: alg.Absent, own: Times, whole: Times) -> int:
    """When the absence is decided: the smallest upper bound that exists."""
    anchors = [(anchor_time(bound.anchor, own, whole), bound) for bound in absence.upper]
    return min(time + bound.offset_us for time, bound in anchors if time is not None)


def blocks(time: int, absence: alg.Absent, own: Times, whole: Times, differences: list[tuple[str, str, int]]) -> bool:
    """Whether an event at this time lies inside all bounds and keeps the distances of its condition."""
    for bound in absence.lower:
        anchor = anchor_time(bound.anchor, own, whole)
        if anchor is not None and not time >= anchor + bound.offset_us + bound.strict:
            return False
    for bound in absence.upper:
        anchor = anchor_time(bound.anchor, own, whole)
        if anchor is not None and not time <= anchor + bound.offset_us - bound.strict:
            return False
    return satisfies(whole | {absence.variable: (time,)}, differences)


# --- random patterns ------------------------------------------------------------------------------

QUANTIFIERS = [None, None, None, ast.Quantifier(0, 1), ast.Quantifier(1, None), ast.Quantifier(0, 2)]


def _elements(depth: int) -> st.SearchStrategy[ast.Element]:
    single = st.builds(lambda quantifier: ast.Event("T", None, quantifier), st.sampled_from(QUANTIFIERS))
    if depth == 0:
        return single
    inner = _elements(depth - 1)
    negated = st.just(ast.Negation(ast.Event("T")))
    composite = st.one_of(
        st.builds(
            lambda parts, quantifier: ast.Composite(ast.Operator.SEQ, tuple(parts), quantifier),
            st.lists(st.one_of(inner, inner, negated), min_size=2, max_size=3),
            st.sampled_from(QUANTIFIERS),
        ),
        st.builds(
            lambda operator, parts: ast.Composite(operator, tuple(parts)),
            st.sampled_from([ast.Operator.AND, ast.Operator.OR]),
            st.lists(inner, min_size=2, max_size=2),
        ),
    )
    return composite if depth > 1 else st.one_of(single, composite)


def _named(element: ast.Element, numbers: Iterator[int]) -> ast.Element:
    match element:
        case ast.Event():
            name = f"v{next(numbers)}"
            return replace(element, type=name.upper(), name=name)
        case ast.Negation():
            return replace(element, operand=_named(element.operand, numbers))
        case ast.Composite():
            return replace(element, parts=tuple(_named(part, numbers) for part in element.parts))


def _cost(node: alg.Node, horizon: int) -> int:
    """How many assignments the brute force looks at."""
    match node:
        case alg.Event():
            return horizon
        case alg.Repeat():
            return _cost(node.part, horizon) ** (1 if node.most == 1 else 2)
        case alg.Any():
            return sum(_cost(part, horizon) for part in node.parts)
    product_of = 1
    for child in node.children():
        product_of *= _cost(child, horizon)
    return product_of


Constraint = tuple[str, str, int]  # y − x ≤ most


@st.composite
def constrained_queries(draw: st.DrawFn, *, horizon: int, most_cost: int = 5_000) -> tuple[alg.Query, list[Constraint]]:
    """A query with a window shorter than the horizon and a few distances, and these distances."""
    within = draw(st.integers(1, horizon - 1))
    element = _named(draw(_elements(draw(st.integers(1, 2)))), count())
    structure = Structure(within)
    core = structure.node(element)
    assume(core is not None and not structure.problems and _cost(core, horizon) <= most_cost)
    assert core is not None
    positive, negated = list(alg.variables_of(core)), list(alg.negated_variables(core))
    distances: list[Constraint] = []
    for _ in range(draw(st.integers(0, 3))):
        x, y = draw(st.sampled_from(positive)), draw(st.sampled_from(positive + negated))
        if draw(st.booleans()):
            x, y = y, x
        if x != y:
            distances.append((x, y, draw(st.integers(-3, 4))))
    own = [each for each in distances if not {*each[:2]} & {*negated}]
    core = _with_conditions(core, distances)
    return query(core, *(at_most(y, x, most) for x, y, most in own), within=within), distances


def _with_conditions(node: alg.Node, distances: list[Constraint]) -> alg.Node:
    match node:
        case alg.Absent():
            own = [at_most(y, x, most) for x, y, most in distances if node.variable in (x, y)]
            part = _with_conditions(node.part, distances)
            return replace(node, part=part, condition=ex.all_of(*own) if own else None)
        case alg.Sequence() | alg.All() | alg.Any():
            return replace(node, parts=tuple(_with_conditions(part, distances) for part in node.parts))
        case alg.Repeat():
            return replace(node, part=_with_conditions(node.part, distances))
    return node
