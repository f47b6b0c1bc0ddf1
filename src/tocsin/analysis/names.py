"""The variables of a query: which there are, which are iterated or negated, and whether their names are free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.source import Where

RESERVED_PREFIX = "__tocsin"
MATCH_COLUMNS = frozenset({"match_id", "start", "end"})
STATUS, MISSING = "status", "missing"
TIMEOUT_COLUMNS = frozenset({STATUS, MISSING})
WINDOW_COLUMNS = frozenset({"window_start", "window_end"})
# The largest number of repetitions and the largest index that a pattern may name.
MOST_EVENTS = 1_000_000
# Absences enclose each other in the algebra, and every walk over it is a recursion.
MOST_ABSENCES = 100


@dataclass(frozen=True)
class Variables:
    """The variables that conditions may name."""

    positive: dict[str, alg.Kind]
    negated: dict[str, str]

    def __contains__(self, name: str) -> bool:
        """Whether the pattern has the variable."""
        return name in self.positive or name in self.negated

    def is_iterated(self, name: str) -> bool:
        """Whether a variable may hold several events."""
        return name in self.positive and self.positive[name].iterated

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All of them, once for all errors that list them."""
        return (*self.positive, *self.negated)

    def unknown(self, name: str, where: Where) -> errors.UnknownVariableError:
        """The error for a name the pattern does not have."""
        return errors.UnknownVariableError(
            f"The pattern has no variable `{name}`.",
            where=where,
            hint=errors.did_you_mean(name, self.names, "the pattern has"),
        )


def index_too_large(node: ex.Attribute) -> errors.InvalidIndexError:
    """The error for an index beyond `MOST_EVENTS`."""
    return errors.InvalidIndexError(
        f"An index may be at most {MOST_EVENTS:,}.",
        where=node.where,
        hint=f"write a smaller number, or `{node.variable}[last]` for the last event.",
    )


def check_names(query: ast.Query) -> errors.Problems:
    """Refuse a name used for two elements of a SEQ or AND, or reserved for internal columns (R35)."""
    problems = errors.Problems()
    _declared(query.pattern, problems)
    problems += [
        reserved_prefix(event.variable, event.where)
        for event in ast.events_in(query.pattern)
        if event.variable.startswith(RESERVED_PREFIX)
    ]
    return problems


def reserved_prefix(name: str, where: Where) -> errors.ReservedNameError:
    """The error for a variable whose name is reserved."""
    return errors.ReservedNameError(
        f"`{name}` cannot be a variable: names that begin with `{RESERVED_PREFIX}` are reserved.",
        where=where,
        hint="give it another name.",
    )


def renamed_columns(
    query: alg.Query, places: Mapping[str, Where]
) -> tuple[tuple[alg.Returned, ...], tuple[errors.TocsinWarning, ...]]:
    """The result columns of a query without RETURN whose variables collide with other columns, and the warnings.

    A variable may have the name of a column that every result has (`start`), or differ from another only in case, which
    Spark ignores. Its column then gets a number: `start_2`. Both are empty where every variable is a column already.
    """
    taken = MATCH_COLUMNS | (TIMEOUT_COLUMNS if query.timeouts else frozenset())
    names: dict[str, str] = {}
    for variable in query.variables:
        name, number = variable, 1
        while name.casefold() in taken:
            number += 1
            name = f"{variable}_{number}"
        taken |= {name.casefold()}
        names[variable] = name
    changed = [variable for variable, name in names.items() if name != variable]
    if not changed or query.returns:
        return (), ()
    warnings = tuple(
        errors.TocsinWarning(
            "COLUMN_RENAMED",
            f"The result has a column `{variable.casefold()}` already, so that of the variable `{variable}` is "
            f"`{names[variable]}`.",
            where=places.get(variable),
            hint=f"name the column yourself: `RETURN {variable} AS my_{variable.casefold()}`.",
        )
        for variable in changed
    )
    returns = tuple(
        alg.Returned(name, ex.Variable(variable, where=places.get(variable))) for variable, name in names.items()
    )
    return returns, warnings


Declared = dict[str, tuple[ast.Event, bool]]  # name → its element, and whether it is negated


def _declared(element: ast.Element, problems: errors.Problems, *, negated: bool = False) -> Declared:
    match element:
        case ast.Event():
            return {element.variable: (element, negated)}
        case ast.Negation():
            return _declared(element.operand, problems, negated=True)
        case ast.Composite():
            known: Declared = {}
            for part in element.parts:
                for name, (event, is_negated) in _declared(part, problems, negated=negated).items():
                    if name not in known:
                        known[name] = (event, is_negated)
                        continue
                    first, first_negated = known[name]
                    if element.operator is not ast.Operator.OR or is_negated != first_negated:
                        problems.append(_duplicate(first, event))
            return known
        case _:
            assert_never(element)


def _duplicate(first: ast.Event, second: ast.Event) -> errors.DuplicateVariableError:
    if first.name is None and second.name is None:
        message = f"Two elements of type `{second.type}` have no name, so both would be called `{second.type}`."
        hint = f"name them apart, as in `{first.type} x, {second.type} y`."
    else:
        message = f"The variable `{second.variable}` names two elements."
        hint = "a name may stand twice only in different branches of an OR, positive or negated in both."
    return errors.DuplicateVariableError(message, where=second.where, also=("first named", first.where), hint=hint)
