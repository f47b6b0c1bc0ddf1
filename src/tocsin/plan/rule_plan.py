"""The plan of a rule in its program, and which rules share a search: they are read, shuffled and searched together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Rule
from tocsin.analysis.attributes import Schema
from tocsin.kernels.reach import reach_of, width_us
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.optimizer.query_parts import is_pythons
from tocsin.optimizer.routes import crossed_keys, is_connected
from tocsin.plan.plan import Plan

Key = tuple[str, ...]


def asks_frame(node: ex.Expression) -> bool:
    """Whether an expression asks a table that is a DataFrame."""
    return isinstance(node, rx.InTable) and node.table.rows is None


def asked_frames(rule: Rule) -> Iterator[ex.Expression]:
    """The expressions of a rule's conditions that ask a DataFrame."""
    parts = (part for condition in alg.conditions_in(rule.query.pattern) for part in condition.walk())
    return filter(asks_frame, parts)


def _can_share(rule: Rule) -> bool:
    """Whether one search can find a rule's matches beside those of others: in time slices, without positions.

    A rule that asks a DataFrame, or emits what only Python computes, runs by itself.
    """
    reach = reach_of(rule.query)
    if reach.needs_order or reach.compares_ties or reach.counts_every_event or rule.query.over_all_matches:
        return False
    values = (value for emit in rule.emits for value in (emit.at, *(value for _, value in emit.values)))
    is_computed = any(is_pythons(part) for value in values for part in value.walk())
    return width_us(reach) is not None and not is_computed and next(asked_frames(rule), None) is None


def _has_other_keys(query: alg.Query, schemas: Mapping[str, Schema]) -> bool:
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


@dataclass(frozen=True)
class RulePlan:
    """A rule as engines run it, and its plan."""

    number: int  # its place in the program
    rule: Rule  # with the window that its distances imply, and the names of the time columns
    plan: Plan
    reads_derived: bool  # whether it reads what rules emit: events without an id of the user's, and without ties

    @property
    def key(self) -> Key:
        """The attributes that partition its events."""
        return self.plan.query.partition.attributes

    @cached_property
    def is_shareable(self) -> bool:
        """Whether a search with other rules of its stratum finds its matches, and gains by it."""
        options, facts = self.plan.options, self.plan.rule.facts
        if options.strategy != "auto" or not _can_share(self.rule):
            return False
        return options.engine != "spark" or not _has_other_keys(self.plan.query, facts.schemas or {})


@dataclass(frozen=True)
class Stratum:
    """Rules that do not read each other's events."""

    number: int
    shared: tuple[RulePlan, ...]  # those of one search
    alone: tuple[RulePlan, ...]  # those that are searched for one by one

    def to_dict(self) -> dict[str, Any]:
        """For tools."""
        of_group, keys = groups_of([one.key for one in self.shared])
        members = [(one.rule.name, group) for one, group in zip(self.shared, of_group, strict=True)]
        return {
            "stratum": self.number,
            "shared": [
                {"keys": list(key), "rules": [name for name, group in members if group == number]}
                for number, key in enumerate(keys)
            ],
            "alone": [one.rule.name for one in self.alone],
        }
