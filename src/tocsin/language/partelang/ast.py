"""The syntax tree of a program of rules, as parsed; names are not resolved yet.

`parse(print_program(program)) == program` for every tree: places are not compared. In the conditions of a pattern an
attribute of its own event is a bare `Name`, calls are `Invoke`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from tocsin.language.ast import Quantifier, Selection
from tocsin.language.expressions import Expression
from tocsin.source import Source, Where, Written


@dataclass(frozen=True)
class TypeName(Written):
    """`String`, or `[String; 3]`, which holds up to three of them."""

    name: str
    length: int | None = None


@dataclass(frozen=True)
class Slot(Written):
    """An attribute of a template."""

    name: str
    type: TypeName


@dataclass(frozen=True)
class Template(Written):
    """`template T { a : Integer }`: a type of events."""

    name: str
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Reference(Written):
    """The base of a pattern: a template, or a named pattern with its arguments."""

    name: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Parameter(Written):
    """A name that stands for a value in a named pattern."""

    name: str


@dataclass(frozen=True)
class Definition(Written):
    """`pattern Large(limit) : Transfer { amount >= limit }`: a pattern to be used by name."""

    name: str
    parameters: tuple[Parameter, ...]
    base: Reference
    conditions: tuple[Expression, ...]


class Sort(Enum):
    """The three sorts of patterns: one event, no event, or all events. The value is the prefix."""

    ONE = ""
    NO = "no"
    ALL = "all"


@dataclass(frozen=True)
class Pattern(Written):
    """`v : T { … }`, `no v : T { … }`, `all v : T { … }`, `v : T+ { … }`."""

    variable: str
    of: Reference
    conditions: tuple[Expression, ...] = ()
    sort: Sort = Sort.ONE
    quantifier: Quantifier | None = None
    name_where: Where = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Distance(Written):
    """`v in w [l, u]`: `w.ts + l ≤ v.ts ≤ w.ts + u`."""

    variable: str
    anchor: str
    least_us: int
    most_us: int
    sort: Sort = Sort.ONE


@dataclass(frozen=True)
class Distinct(Written):
    """`distinct(v, w)`: no two of these variables hold the same event."""

    variables: tuple[str, ...]


@dataclass(frozen=True)
class Unordered(Written):
    """`unordered(v, w)`: it does not matter which of these variables holds which event."""

    variables: tuple[str, ...]


Constraint = Distance | Distinct | Unordered


@dataclass(frozen=True)
class Assignment(Written):
    """`attribute = value` of an emitted event."""

    name: str
    value: Expression


@dataclass(frozen=True)
class Emission(Written):
    """`emit T at time with { … }`."""

    template: str
    at: Expression
    values: tuple[Assignment, ...]
    name_where: Where = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Reaction(Written):
    """`do_something(a.x)` in `then`: a call that emits nothing."""

    call: Expression


@dataclass(frozen=True)
class Rule(Written):
    """`rule R where … when … select … then …`."""

    name: str
    patterns: tuple[Pattern, ...]
    constraints: tuple[Constraint, ...] = ()
    selection: Selection = Selection.ANY
    reactions: tuple[Emission | Reaction, ...] = ()
    name_where: Where = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def emissions(self) -> Iterator[Emission]:
        """The events it emits, in the order of the text."""
        return (each for each in self.reactions if isinstance(each, Emission))


@dataclass(frozen=True)
class Use(Written):
    """`use types`: everything that another text declares."""

    module: str


Declaration = Use | Template | Definition | Rule


@dataclass(frozen=True)
class Program(Written):
    """A whole text: its declarations in the order they are written."""

    declarations: tuple[Declaration, ...]
    source: Source | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def templates(self) -> tuple[Template, ...]:
        """The types of events it declares."""
        return tuple(each for each in self.declarations if isinstance(each, Template))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Its rules."""
        return tuple(each for each in self.declarations if isinstance(each, Rule))
