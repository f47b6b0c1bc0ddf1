"""Projection: outputs are dropped or narrowed; the steps stay, and with them the interval (R8)."""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.construct.made import in_order
from tocsin.automata.draft import Draft, Scope, Step
from tocsin.automata.model import DerivedEvent, Emission, Output, TheEvent


def project(node: alg.Project, scope: Scope) -> Draft:
    """Keep the named variables, and of some only attributes."""
    kept = dict(node.kept)

    def projected(step: Step) -> Step:
        return replace(
            step,
            outputs=tuple(
                Emission(one.variable, _narrowed(one.output, kept[one.variable], scope))
                for one in step.outputs
                if one.variable in kept
            ),
        )

    return in_order(scope.part(node.part).mapped(projected))


def _narrowed(output: Output, attributes: tuple[str, ...] | None, scope: Scope) -> Output:
    """An event with fewer attributes is another event, and one for every variable (R19)."""
    if attributes is None:
        return output
    if isinstance(output, DerivedEvent):
        fields = dict(output.fields)
        return DerivedEvent(tuple((name, fields.get(name, rx.NULL)) for name in attributes), scope.number())
    # An attribute that an inner projection took away is NULL: no longer the event's own.
    absent = tuple(name for name in attributes if output.value(name) == rx.NULL)
    return TheEvent(attributes, scope.number(), absent)
