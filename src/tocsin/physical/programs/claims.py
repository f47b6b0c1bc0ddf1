"""What engines run of a program, and what they refuse: asked before any DataFrame is touched, and without Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program, Rule, emitting
from tocsin.errors import UnsupportedError
from tocsin.expressions.of_rules import is_pythons
from tocsin.gaps import Gaps
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.plan.groups import is_joint
from tocsin.plan.strategies import AGGREGATE, unsupported

ON = {"spark": "on Spark", "local": "locally"}


def refusals(program: Program, engine: str) -> dict[str, UnsupportedError]:
    """By name, the rules that an engine does not run, each with the first reason."""
    return {rule.name: reason for rule in program.rules if (reason := refused(rule, engine)) is not None}


def refused(rule: Rule, engine: str, strategy: str = "auto") -> UnsupportedError | None:
    """The first construct of a rule that an engine does not run, or None."""
    if strategy == "aggregate" and (reason := AGGREGATE.refuses(rule.query, engine=ON[engine])) is not None:
        return reason
    reason = unsupported(rule.query, ON[engine])
    if reason is not None:
        return reason
    emitted = (unsupported(emitting(rule, emit), ON[engine]) for emit in rule.emits)
    return next((reason for reason in emitted if reason is not None), None)


def is_shared(rule: Rule) -> bool:
    """Whether a rule is searched for together with others of its stratum.

    One that asks a DataFrame, or emits what only Python computes, has a plan of its own.
    """
    conditions = (node.condition for node in rule.query.pattern.walk() if isinstance(node, alg.Filter | alg.Around))
    asks = any(asks_frame(part) for condition in conditions if condition is not None for part in condition.walk())
    emitted = (value for emit in rule.emits for value in (emit.at, *(value for _, value in emit.values)))
    return is_joint(rule.query) and not asks and not any(is_pythons(part) for one in emitted for part in one.walk())


def asks_frame(node: ex.Expression) -> bool:
    """Whether an expression asks a table that is a DataFrame."""
    return isinstance(node, rx.InTable) and node.table.rows is None


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
