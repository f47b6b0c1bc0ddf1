"""Refuse patterns and rules that do not run on streams, before any DataFrame is touched."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Rule
from tocsin.errors import OptionRefusedError, UnsupportedError
from tocsin.gaps import Gaps
from tocsin.language import expressions as ex
from tocsin.physical.claims import unsupported
from tocsin.physical.programs.claims import asks_frame

STRATEGIES = ("auto", "kernel", "automaton", "trend", "join", "aggregate")


def refused_on_streams(query: alg.Query, strategy: str) -> UnsupportedError | None:
    """The first thing that does not run on a stream, or None."""
    refusal = unsupported(query)
    if refusal is not None:
        return refusal
    if strategy not in STRATEGIES:
        return OptionRefusedError(
            f"The strategy `{strategy}` does not run on a stream.", hint="leave out `strategy=`: a kernel runs it."
        )
    if query.over_all_matches and query.every_us is None:
        where = next((returned.expression.where for returned in query.returns), None)
        return UnsupportedError(
            "An aggregate over all matches of a stream is never complete: a stream has no end.",
            gap=Gaps.STREAM_TOTALS,
            where=where,
            hint="report it per window of time: `EVERY 10 MINUTES`.",
        )
    if strategy == "aggregate" and query.every_us is not None and query.window_us is None:
        return OptionRefusedError(
            "EVERY without WITHIN is never known on a stream: a match that starts in a window may end at any time.",
            where=query.places.get("every", query.pattern.where),
            hint="write WITHIN.",
        )
    return None


def refused_rule(rule: Rule, emitted: Collection[str]) -> UnsupportedError | None:
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
