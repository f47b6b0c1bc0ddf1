"""Programs of rules: several queries, of which some read the events that others emit (SEMANTICS R30).

In the expressions of a program the time of an event is its attribute `timestamp`, whatever its column is called in the
data; `timed` puts the column's name in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.source import Where

TIMESTAMP = "timestamp"


@dataclass(frozen=True)
class Attribute:
    """An attribute of a template: `type` is Spark's name, or None for a domain whose values the data decides.

    `most` is the greatest length of an array; `domain` the name that the text gives to the type.
    """

    name: str
    type: str | None
    domain: str
    most: int | None = None


@dataclass(frozen=True)
class Template:
    """A type of events."""

    name: str
    attributes: tuple[Attribute, ...]
    where: Where = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Rule:
    """A rule: what it matches, and the events it makes of each match."""

    name: str
    query: alg.Query  # the pattern; its result is visible as any other's
    emits: tuple[alg.Emit, ...] = ()  # over the pattern of the query, one for each `emit`
    stratum: int = 0  # a rule reads only what rules of lower strata emit, and what comes from outside
    where: Where = field(default=None, compare=False, repr=False, kw_only=True)

    def changed(self, query: alg.Query, change: Callable[[ex.Expression], ex.Expression]) -> Rule:
        """The rule over another query, with `change` applied to the expressions of its emissions."""
        emits = (replace(ex.map_trees(emit, ex.Expression, change), part=query.pattern) for emit in self.emits)
        return replace(self, query=query, emits=tuple(emits))

    @property
    def types(self) -> dict[str, str]:
        """The event type of each variable, absent and gathered ones too."""
        types = {name: kind.types[0] or "" for name, kind in self.query.variables.items()}
        return types | {each.variable: each.type for each in alg.around_in(self.query.pattern)}

    @property
    def reads(self) -> tuple[str, ...]:
        """The event types of its patterns: of its variables first, then of what must not be there."""
        held = [name for kind in self.query.variables.values() for name in kind.types if name is not None]
        return tuple(dict.fromkeys([*held, *alg.event_types(self.query.pattern)]))


@dataclass(frozen=True)
class Program:
    """Templates and rules."""

    rules: tuple[Rule, ...]  # in the order of the text
    templates: Mapping[str, Template] = field(default_factory=dict)  # by name

    def rule(self, name: str) -> Rule | None:
        """The rule of a name."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, Rule]:
        return {rule.name: rule for rule in reversed(self.rules)}

    @property
    def in_order(self) -> tuple[Rule, ...]:
        """The rules by stratum: each after all that emit what it reads."""
        return tuple(sorted(self.rules, key=lambda rule: rule.stratum))

    @property
    def emitted(self) -> tuple[str, ...]:
        """The event types that rules emit."""
        return tuple(self.emitters)

    @cached_property
    def emitters(self) -> dict[str, dict[str, Rule]]:
        """By event type, the rules that emit it, by name."""
        found: dict[str, dict[str, Rule]] = {}
        for rule in self.rules:
            for emit in rule.emits:
                found.setdefault(emit.type, {})[rule.name] = rule
        return found

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The event types that rules read."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.reads))

    def timed(self, time: str | Mapping[str, str]) -> Program:
        """The program with the name of the time column for `timestamp`; a mapping tells it for each event type."""
        return replace(self, rules=tuple(_timed(rule, time) for rule in self.rules))


def _timed(rule: Rule, time: str | Mapping[str, str]) -> Rule:
    types = rule.types

    def named(node: ex.Expression) -> ex.Expression:
        if not isinstance(node, ex.Attribute) or node.path != (TIMESTAMP,):
            return node
        column = time if isinstance(time, str) else time.get(types.get(node.variable, ""), TIMESTAMP)
        return replace(node, path=(column,))

    def change(expression: ex.Expression) -> ex.Expression:
        return expression.transform(named)

    return rule.changed(rule.query.map_expressions(change), change)


def sources(program: Program) -> Iterator[str]:
    """The event types that have to come from outside: read by a rule and emitted by none."""
    emitted = set(program.emitted)
    return (name for name in program.read if name not in emitted)


def emitting(rule: Rule, emit: alg.Emit) -> alg.Query:
    """The matches of a rule, each as the event that it emits: its time, then its attributes, under names of our own."""
    values = (emit.at, *(value for _, value in emit.values))
    returns = tuple(alg.Returned(emitted_column(place), value) for place, value in enumerate(values))
    return replace(rule.query, returns=returns)


def emitted_column(place: int) -> str:
    """The column of `emitting` for the time (0) or an attribute of an event: none of them meets `start` or `end`."""
    return f"__tocsin_e{place}"
