"""The class of all trees, and the one expression tree: every condition, output and aggregate of every front end.

Immutable, and equal wherever they were written. The reference and the engines each define how an expression is
evaluated (three-valued logic, quantification over iterated variables: SEMANTICS §3 note 8, R1, R3, R15, R21).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

from tocsin.source import Where, Written

if TYPE_CHECKING:
    from tocsin.language.user_defined import Monoid

N = TypeVar("N", bound="Tree[Any]")
T = TypeVar("T", bound="Tree[Any]")


@dataclass(frozen=True)
class Tree(Written, Generic[N]):
    """A node whose operands are the nodes of its own kind in its fields: not the conditions of a pattern."""

    _kind: ClassVar[type[Any]]

    def __init_subclass__(cls) -> None:
        """Make each class that derives directly the kind of all below it."""
        if Tree in cls.__bases__:
            cls._kind = cls

    def children(self) -> tuple[N, ...]:
        """The operands, from left to right."""
        return tuple(trees_in(vars(self).values(), self._kind))

    def walk(self) -> Iterator[N]:
        """The node itself and all below it, parents first."""
        kind, waiting = self._kind, [cast("N", self)]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += trees_in(vars(node).values(), kind)[::-1]

    def map_children(self, change: Callable[[N], N]) -> Self:
        """The node with `change` applied to each operand; itself if none changes."""
        return map_trees(self, self._kind, change)

    def transform(self, change: Callable[[N], N]) -> N:
        """The tree with `change` applied to every node, children first."""
        return change(cast("N", self.map_children(lambda child: child.transform(change))))


def trees_in(values: Iterable[Any], kind: type[N]) -> list[N]:
    """The trees of a kind among the fields of a node, and in tuples there."""
    found: list[N] = []
    for value in values:
        if type(value) is tuple:
            found += trees_in(value, kind)
        elif isinstance(value, kind):
            found.append(value)
    return found


def map_trees(node: T, kind: type[N], change: Callable[[N], N]) -> T:
    """A node with `change` applied to those trees; itself if none changes."""
    changed = {}
    for field, old in vars(node).items():
        new = _mapped(old, kind, change)
        if new is not old:
            changed[field] = new
    return replace(node, **changed) if changed else node


def _mapped(value: Any, kind: type[N], change: Callable[[N], N]) -> Any:
    if type(value) is tuple:
        items = tuple([_mapped(item, kind, change) for item in value])
        return value if all(map(is_, items, value)) else items
    return change(value) if isinstance(value, kind) else value


@dataclass(frozen=True)
class Expression(Tree["Expression"]):
    """A node of a condition or value."""


# --- values ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Literal(Expression):
    """A constant: None, bool, int, float or str; `1`, `1.0` and `TRUE` are three different ones."""

    value: bool | int | float | str | None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True)
class Timestamp(Expression):
    """An instant, `TIMESTAMP '2026-01-01 00:00:00'`; without a zone it is read as UTC."""

    value: dt.datetime


@dataclass(frozen=True)
class Date(Expression):
    """A calendar day, `DATE '2026-01-01'`."""

    value: dt.date


@dataclass(frozen=True)
class Interval(Expression):
    """A length of time, `15 MINUTES`, in microseconds."""

    microseconds: int


# --- references -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Running:
    """`b[i]`, `b[i-1]`: a running index; the same letter is the same index within one conjunct (R3)."""

    letter: str
    offset: int = 0


@dataclass(frozen=True)
class Fixed:
    """`b[3]`: counted from 1 (R15)."""

    number: int


class Edge(Enum):
    """`b[first]`, `b[last]`."""

    FIRST = "first"
    LAST = "last"


class Each(Enum):
    """References without a written index: `b.x` and `b[].x`, and `NEXT(b).x`, the running index plus one."""

    PLAIN = ""
    NEXT = "next"


Index = Running | Fixed | Edge | Each


def offset_of(index: Index) -> int | None:
    """How far a reference is from its running index; None for an index that does not run."""
    if isinstance(index, Each):
        return int(index is Each.NEXT)
    return index.offset if isinstance(index, Running) else None


@dataclass(frozen=True)
class Variable(Expression):
    """A whole variable, as in `COUNT(b)` or `RETURN a`."""

    name: str


@dataclass(frozen=True)
class Attribute(Expression):
    """`a.x`, `b[i-1].x`, `NEXT(b).x`, `a.place.lat`: an attribute of an event bound to a variable."""

    variable: str
    path: tuple[str, ...]
    index: Index = Each.PLAIN

    @property
    def name(self) -> str:
        """The path as written, joined by dots."""
        return ".".join(self.path)


@dataclass(frozen=True)
class Name(Expression):
    """A bare name: a RETURN column in HAVING or GROUP BY; anywhere else an error with advice."""

    name: str


# --- operators ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arithmetic(Expression):
    """`+ - * / %` and `||`; `x / 0` and `x % 0` are NULL (R39), `/` gives a double."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Negative(Expression):
    """`-x`."""

    operand: Expression


@dataclass(frozen=True)
class Comparison(Expression):
    """`= != < <= > >=`."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class And(Expression):
    """Conjunction of two or more operands, never directly nested."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Or(Expression):
    """Disjunction of two or more operands, never directly nested."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Not(Expression):
    """`NOT x`, three-valued."""

    operand: Expression


@dataclass(frozen=True)
class IsNull(Expression):
    """`x IS NULL`, `x IS NOT NULL`."""

    operand: Expression
    negated: bool = False


@dataclass(frozen=True)
class In(Expression):
    """`x IN (…)`."""

    operand: Expression
    options: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True)
class Between(Expression):
    """`x BETWEEN low AND high`, both ends included."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True)
class Like(Expression):
    """`x LIKE 'a%_'`; a backslash makes the next character ordinary."""

    operand: Expression
    pattern: str
    negated: bool = False


@dataclass(frozen=True)
class Case(Expression):
    """`CASE WHEN c THEN v … ELSE d END`; the form `CASE x WHEN v …` is stored as comparisons."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None = None


@dataclass(frozen=True)
class Call(Expression):
    """A scalar function; the name is in lower case."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Aggregate(Expression):
    """`SUM(b.x)`, `COUNT(b)`, `COUNT(*)` (no argument), `COUNT(DISTINCT b.x)`; the name is in lower case.

    The argument speaks of exactly one variable, without index, and is evaluated once per event of its bag. `monoid` is
    what a name that the user has registered stands for.
    """

    function: str
    argument: Expression | None
    distinct: bool = False
    monoid: Monoid | None = None


@dataclass(frozen=True)
class SameValue(Expression):
    """`[k]`, `[k1, k2]`: all variables agree on these attributes, and the query is partitioned by them (R11)."""

    attributes: tuple[str, ...]


# --- what only other front ends write -------------------------------------------------------------


@dataclass(frozen=True)
class Every(Expression):
    """ACEL's atom `X[P]`: P is TRUE for every event of X (R26); SASE+ quantifies outermost, by conjunct (R21)."""

    variable: str
    condition: Expression


class BagOrder(Enum):
    """ACEL's predicates on a whole bag (SEMANTICS §3 note 6, R27)."""

    SAME = "same"
    INCREASING = "increasing"
    DECREASING = "decreasing"


@dataclass(frozen=True)
class BagPredicate(Expression):
    """`X[increasing(a)]`: holds over all pairs of different events of X."""

    order: BagOrder
    variable: str
    path: tuple[str, ...]


# --- helpers --------------------------------------------------------------------------------------


def conjuncts(condition: Expression | None) -> tuple[Expression, ...]:
    """A condition split at its top-level ANDs (R21)."""
    if isinstance(condition, And):
        return tuple(part for operand in condition.operands for part in conjuncts(operand))
    return () if condition is None else (condition,)


def _joined(kind: type[And] | type[Or], *operands: Expression, where: Where = None) -> Expression:
    flat = [part for each in operands for part in (each.operands if isinstance(each, kind) else (each,))]
    return flat[0] if len(flat) == 1 else kind(tuple(flat), where=where)


# AND and OR of operands, flattened; one operand is itself.
all_of, any_of = partial(_joined, And), partial(_joined, Or)


def variables_in(expression: Expression) -> frozenset[str]:
    """Every variable an expression mentions, aggregates included."""
    nodes = [node for node in expression.walk() if isinstance(node, Attribute | Variable | BagPredicate | Every)]
    return frozenset(node.name if isinstance(node, Variable) else node.variable for node in nodes)


def renamed(expression: Expression, name_of: Callable[[str], str]) -> Expression:
    """The expression with another name for each variable."""

    def change(node: Expression) -> Expression:
        if isinstance(node, Attribute):
            return replace(node, variable=name_of(node.variable))
        return replace(node, name=name_of(node.name)) if isinstance(node, Variable) else node

    return expression.transform(change)


def has_aggregate(expression: Expression) -> bool:
    """Whether an aggregate stands anywhere in the expression."""
    return any(isinstance(node, Aggregate) for node in expression.walk())


def references_in(expression: Expression) -> Iterator[Attribute]:
    """The attribute references that choose an event: those outside aggregates, which take the whole bag."""
    if isinstance(expression, Attribute):
        yield expression
    elif not isinstance(expression, Aggregate | Every):
        for child in expression.children():
            yield from references_in(child)
