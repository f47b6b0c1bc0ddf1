"""What programs ask that streams do not run: told before any DataFrame is touched, and without Spark."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Rule
from tocsin.errors import UnsupportedError
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.physical.claims import CONTIGUOUS


def refused_on_streams(rule: Rule) -> UnsupportedError | None:
    """The first thing of a rule that does not run on a stream, or None."""
    if rule.query.selection in CONTIGUOUS:
        return UnsupportedError(
            f"`select {rule.query.selection.value}` of rule `{rule.name}` does not run on a stream yet.",
            where=rule.where,
            hint="write it as a pattern, which does: `tocsin.pattern(...).match(...)`.",
        )
    for expression in _expressions(rule):
        for node in expression.walk():
            if isinstance(node, rx.InTable) and node.table.rows is None:
                return UnsupportedError(
                    f"The rule `{rule.name}` asks a table that is a DataFrame, which does not run on a stream yet.",
                    where=rule.where,
                    hint="give the table as rows: `tables={'known': [('A', 'B'), …]}`.",
                )
    return None


def _expressions(rule: Rule) -> Iterable[ex.Expression]:
    for node in rule.query.pattern.walk():
        if isinstance(node, alg.Filter | alg.Around) and node.condition is not None:
            yield node.condition
    for emit in rule.emits:
        yield from (emit.at, *(value for _, value in emit.values))
