"""Automata as text. Equal automata have equal texts.

A transition is written `guard | updates / outputs`; one that does nothing and asks nothing is `any event`. An update
whose register starts anew is written with `:=`, one that folds a value into it with the name of the aggregate.
"""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.automata import expressions as rx
from tocsin.automata.model import START, Automaton, Emission, Transition, Update
from tocsin.language import expressions as ex
from tocsin.language.sase.printer import print_expression


def to_text(automaton: Automaton) -> str:
    """Tests, states with the registers that matter in them, and their transitions."""
    return "\n".join(_lines(automaton))


def _lines(automaton: Automaton) -> Iterator[str]:
    registers = f"registers {', '.join(automaton.registers)}" if automaton.registers else "no registers"
    yield f"{len(automaton.transitions)} transitions between {automaton.number_of_states} states, {registers}"
    if automaton.tests:
        yield "tests"
        yield from (f"  t{number}  {describe(test)}" for number, test in enumerate(automaton.tests))
    for state, alive in enumerate(automaton.alive):
        role = " (start)" if state == START else " (end)" if state in automaton.finals else ""
        yield f"state {state}{role}" + (f" knows {', '.join(alive)}" if alive else "")
        yield from (f"  → {one.target}  {_label(one)}" for one in automaton.leaving[state])


def _label(transition: Transition) -> str:
    """The guard, updates and outputs of a transition; tests are given by number."""
    asks = [f"t{need}" for need in transition.needs]
    asks += [describe(conjunct) for conjunct in ex.conjuncts(transition.guard)]
    parts = [" and ".join(asks) or "any event"]
    if transition.updates:
        parts.append("| " + ", ".join(map(_update, transition.updates)))
    if transition.outputs:
        parts.append("/ " + ", ".join(map(_emission, transition.outputs)))
    return " ".join(parts)


def _update(update: Update) -> str:
    name, value = update
    if isinstance(value, rx.Combine) and value.left == rx.Register(name) and isinstance(value.right, rx.Lift):
        return f"{name} {value.monoid}= {describe(value.right.operand)}"
    return f"{name} := {describe(value)}"


def _emission(emission: Emission) -> str:
    output = emission.output
    if output.fields is None:
        return f"{emission.variable}: event"
    if output.is_derived:
        return f"{emission.variable}: [{', '.join(f'{name} = {describe(value)}' for name, value in output.fields)}]"
    kept = (f"{name} = NULL" if value == rx.NULL else name for name, value in output.fields)
    return f"{emission.variable}: event({', '.join(kept)})"


def describe(expression: ex.Expression) -> str:
    """An expression in the words of the query language: attributes of the event stand bare, registers in quotes.

    Examples
    --------
    >>> describe(ex.Comparison(">", rx.attribute(("x",)), rx.Register("max(b.x)")))
    'x > `max(b.x)`'
    """
    return print_expression(expression.transform(_in_words))


def _in_words(node: ex.Expression) -> ex.Expression:
    match node:
        case ex.Attribute(variable=rx.EVENT):
            return ex.Name(node.path[0]) if len(node.path) == 1 else ex.Attribute(node.path[0], node.path[1:])
        case rx.Register():
            return ex.Name(node.name)
        case rx.EventTime():
            return ex.Name("time")
        case rx.IsLater():
            return ex.Name("is_later")
        case rx.TypeIs():
            return ex.Comparison("=", ex.Name("type"), ex.Literal(node.type))
        case rx.Identical():
            return ex.Call("identical", (node.left, node.right))
        case rx.Precedes():
            return ex.Call("precedes", (node.left, node.right))
        case rx.Zero():
            return ex.Call(node.monoid, ())
        case rx.Lift() | rx.Finish():
            return node.operand
        case rx.Combine(left=ex.Call(arguments=())):
            return ex.Call(node.monoid, (node.right,))
        case rx.Combine():
            return ex.Call(node.monoid, (node.left, node.right))
        case _:
            return node
