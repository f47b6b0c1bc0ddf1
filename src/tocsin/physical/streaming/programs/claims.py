"""What programs ask that streams do not run: told before any DataFrame is touched, and without Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Rule
from tocsin.errors import UnsupportedError
from tocsin.gaps import Gaps
from tocsin.language import expressions as ex
from tocsin.physical.programs.claims import asks_frame


def refused_on_streams(rule: Rule, emitted: Collection[str]) -> UnsupportedError | None:
    """The first thing of a rule that does not run on a stream, or None; `emitted` are the types that rules emit."""
    types = {name: kind.types[0] for name, kind in rule.query.variables.items()}
    types |= {each.variable: each.type for each in alg.around_in(rule.query.pattern)}
    for condition in _conditions(rule):
        for asked in (node for node in condition.walk() if asks_frame(node)):
            kind = next((types[name] for name in ex.variables_in(asked) if types[name] in emitted), None)
            if kind is not None:
                return UnsupportedError(
                    f"The rule `{rule.name}` asks a table that is a DataFrame about `{kind}`, which rules emit: on a "
                    "stream nobody can join what is found in a worker.",
                    gap=Gaps.TABLE_OF_EMITTED_EVENTS,
                    where=rule.where,
                )
    return None


def _conditions(rule: Rule) -> Iterable[ex.Expression]:
    for node in rule.query.pattern.walk():
        if isinstance(node, alg.Filter | alg.Around) and node.condition is not None:
            yield from ex.conjuncts(node.condition)
