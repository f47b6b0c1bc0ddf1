"""Programs: which rules an engine refuses, which are searched for together, and by which keys. Knows no Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program, Rule, emitting
from tocsin.analysis.attributes import Schema
from tocsin.errors import UnsupportedError
from tocsin.gaps import Gaps
from tocsin.kernels.reach import reach_of, width_us
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.optimizer.query_parts import is_pythons
from tocsin.optimizer.routes import crossed_keys, is_connected
from tocsin.plan.strategies import AGGREGATE, unsupported

Key = tuple[str, ...]
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


# --- rules that are searched for together ---------------------------------------------------------


def is_joint(query: alg.Query) -> bool:
    """Whether a query's matches can be searched for beside those of others: in time slices, without positions."""
    reach = reach_of(query)
    is_alone = reach.needs_order or reach.compares_ties or reach.counts_every_event or query.over_all_matches
    return not is_alone and width_us(reach) is not None


def has_other_keys(query: alg.Query, schemas: Mapping[str, Schema]) -> bool:
    """Whether equalities of attributes with different names split a query's events better than time slices do.

    By itself it is then sent by these keys, or joined by them; beside others it would be searched for without.
    """
    if query.partition.attributes:
        return False
    keys = crossed_keys(query, schemas)
    return is_connected(query, schemas) if keys is None else len(set(keys.values())) > 1


def groups_of(keys: Sequence[Key]) -> tuple[list[int], list[Key]]:
    """The group of every key, and the key that the rows of every group are split by.

    Where keys are nested, that is the coarsest which is not empty: rows that agree on more of them are still together.

    Examples
    --------
    >>> groups_of([("k", "x"), (), ("k",), ("y",)])
    ([1, 0, 1, 2], [(), ('k',), ('y',)])
    """
    found: list[Key] = []
    for key in sorted(set(keys), key=lambda key: (len(key), key)):
        if not key or not any(known and set(known) <= set(key) for known in found):
            found.append(key)

    def group(own: Key) -> int:
        return next(place for place, key in enumerate(found) if (set(key) <= set(own) if key else not own))

    return [group(key) for key in keys], found
