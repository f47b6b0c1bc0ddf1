"""What reductions leave of an automaton."""

from __future__ import annotations

from tests.automata.formulas import POSITION
from tests.automata.run import Reading, run

from tocsin import automata
from tocsin.algebra import nodes as alg
from tocsin.automata.model import Automaton
from tocsin.language import expressions as ex

A, B, C = (alg.Event(kind, kind) for kind in "ABC")
X = ("x",)


def size(made: Automaton) -> tuple[int, int, int]:
    return (made.number_of_states, len(made.transitions), len(made.registers))


def seq(*parts: alg.Node) -> alg.Node:
    return alg.Sequence(parts, POSITION)


def test_an_iteration_and_what_follows_wait_in_one_state() -> None:
    node = seq(A, alg.Repeat(B, 1, None, POSITION), C)
    assert size(automata.automaton(node, reduce=False))[0] == 5
    assert size(automata.automaton(node)) == (4, 6, 0)


def test_what_can_never_match_has_no_transitions() -> None:
    assert size(automata.automaton(alg.Both((A, B)))) == (1, 0, 0)
    assert size(automata.automaton(seq(A, alg.Both((A, B))))) == (1, 0, 0)
    assert size(automata.automaton(alg.Filter(A, ex.Literal(None)))) == (1, 0, 0)


def test_equal_branches_are_one() -> None:
    assert size(automata.automaton(alg.Any((seq(A, B), seq(A, B))))) == size(automata.automaton(seq(A, B)))
    assert size(automata.automaton(alg.Both((seq(A, B), seq(A, B))))) == size(automata.automaton(seq(A, B)))


def test_registers_that_nothing_reads_are_dropped() -> None:
    total = alg.Derive(seq(A, alg.Repeat(B, 1, None, POSITION)), "M", (alg.Fold("s", "sum", "B", X),))
    assert automata.automaton(total).registers == ("sum(B.x)",)
    assert automata.automaton(alg.Project(total, (("A", None),))).registers == ()


def test_states_that_differ_in_updates_only_stay_apart() -> None:
    """After a C the event A counts, after a B it does not; both wait for it in the same way."""
    either = alg.Any((seq(alg.Bind(C, "X"), alg.Bind(A, "X"), B), seq(alg.Bind(B, "X"), A, B)))
    total = alg.Project(alg.Derive(either, "M", (alg.Fold("s", "sum", "X", X),)), (("M", None),))
    for first, value in (("C", 6), ("B", 1)):
        events = [Reading(kind, second, {"x": x}) for second, (kind, x) in enumerate([(first, 1), ("A", 5), ("B", 0)])]
        found = run(automata.automaton(total), events)
        assert [match.bindings["M"][0].values for match in found] == [(("s", value),)]


def test_a_register_is_alive_only_while_it_matters() -> None:
    pair = alg.Filter(seq(A, B, C), ex.Comparison("<", ex.Attribute("A", X), ex.Attribute("B", X)))
    made = automata.automaton(pair)
    assert made.alive == ((), ("A.x",), (), ())


def test_whether_a_variable_is_bound_is_mostly_known_from_the_state() -> None:
    rising = alg.Filter(alg.Repeat(A, 1, None), ex.BagPredicate(ex.BagOrder.INCREASING, "A", X))
    assert automata.automaton(rising).registers == ("last(A.x)",)
    assert set(automata.automaton(rising, reduce=False).registers) == {"holds(A)", "last(A.x)"}


def test_predicates_of_the_event_alone_are_tests() -> None:
    high = ex.Every("A", ex.Comparison(">", ex.Attribute("A", X), ex.Literal(5)))
    made = automata.automaton(alg.Filter(alg.Repeat(A, 1, None, POSITION), high))
    assert len(made.tests) == 2
    assert all(one.guard is None for one in made.transitions)
