"""What registers cannot decide is refused, and the part is named."""

from __future__ import annotations

import pytest

from tocsin import automata, errors
from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex

A, B, C = alg.Event("A", "a"), alg.Event("B", "b"), alg.Event("C", "c")
BS, CS = alg.Repeat(B, 1, None), alg.Repeat(C, 1, None)
PATTERN = alg.Sequence((A, BS, C))


def of(variable: str, index: ex.Index = ex.Each.PLAIN) -> ex.Expression:
    return ex.Attribute(variable, ("x",), index)


def less(left: ex.Expression, right: ex.Expression) -> ex.Expression:
    return ex.Comparison("<", left, right)


@pytest.mark.parametrize(
    ("node", "part"),
    [
        (alg.All((A, B)), "AND of parts in any order"),
        (alg.Sequence((A, alg.All((B, C)))), "AND of parts in any order"),
        (alg.Absent(A, "B", "n", None, (), ()), "an absence"),
        (alg.Sequence((alg.Within(A, 5), B)), "a window inside a pattern"),
        (alg.Emit(A, "T", ex.Variable("a"), ()), "a rule that emits"),
        (alg.Filter(PATTERN, less(of("b"), of("c"))), "`b.x < c.x`, which compares `c` with all earlier events of `b`"),
        (
            alg.Filter(alg.Sequence((BS, CS)), less(of("b"), of("c"))),
            "`b.x < c.x`, which compares all events of two iterations",
        ),
        (
            alg.Filter(PATTERN, less(of("b"), ex.Aggregate("avg", of("b")))),
            "`b.x < AVG(b.x)`, which compares all events of `b` with what only the last one tells",
        ),
        (
            alg.Filter(PATTERN, less(of("b"), of("b", ex.Fixed(2)))),
            "`b.x < b[2].x`, which compares all events of `b` with one far inside a bag",
        ),
        (
            alg.Filter(alg.Sequence((A, BS)), less(of("a", ex.Running("i")), of("b", ex.Running("i")))),
            "`a[i].x < b[i].x`, which counts the events of two variables with one index",
        ),
        (alg.Filter(PATTERN, less(ex.Aggregate("count", None), of("c"))), "`COUNT(*) < c.x`, which counts matches"),
        (
            alg.Filter(A, ex.Every("a", less(of("a"), of("b")))),
            "a filter on `a` that speaks of more than one of its events",
        ),
        (
            alg.Derive(A, "M", (alg.Fold("m", "median", "a", ("x",)),)),
            "the aggregate `median`, of which no monoid is known",
        ),
        (
            alg.Derive(alg.Repeat(A, 0, None), "M", (alg.Fold("m", "max", "a", ("x",)),)),
            "an aggregate of a part that may match nothing",
        ),
        (alg.Repeat(A, 10_000, None), "10000 copies of a part: more than 4000 transitions"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_part_is_named(node: alg.Node, part: str) -> None:
    assert automata.refusal(node) == f"A register automaton cannot recognise {part}."
    with pytest.raises(errors.UnsupportedError):
        automata.automaton(node)


@pytest.mark.parametrize(
    "node",
    [
        PATTERN,
        alg.Within(PATTERN, 5),
        alg.Filter(PATTERN, less(of("a"), of("b"))),
        alg.Filter(PATTERN, less(of("b", ex.Edge.LAST), of("c"))),
        alg.Filter(alg.Sequence((A, alg.Repeat(B, 1, 1), C)), less(of("b"), of("c"))),
        alg.Filter(alg.Any((alg.Sequence((A, BS)), C)), less(of("b"), of("c"))),  # never in one match
    ],
)
def test_what_registers_decide_is_not_refused(node: alg.Node) -> None:
    assert automata.refusal(node) is None
