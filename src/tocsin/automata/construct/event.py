"""One event of a type: a single step."""

from __future__ import annotations

from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.construct.filter import keep
from tocsin.automata.draft import END, START, Draft, Scope, Step
from tocsin.automata.model import Emission, TheEvent


def event(node: alg.Event, scope: Scope) -> Draft:
    """START reads an event of the type, gives it to the variable and ends."""
    guard = () if node.type is None else (rx.TypeIs(node.type),)
    draft = Draft((Step(START, END, guard, outputs=(Emission(node.variable, TheEvent()),)),))
    return keep(draft, node.condition, scope)
