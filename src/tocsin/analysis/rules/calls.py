"""What a call in a rule stands for: an aggregate, a list, a field of the calendar, a function, a table."""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tocsin import errors
from tocsin.algebra.programs import TIMESTAMP
from tocsin.analysis.rules.restrictions import violation
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.functions import AGGREGATES, FUNCTIONS, call_problem
from tocsin.language.partelang import ast
from tocsin.language.registered import Function, Table

if TYPE_CHECKING:
    from tocsin.analysis.rules.scopes import Scope

# Of several listed values, not of a bag.
LISTED = {"min": "least", "max": "greatest"}


@dataclass(frozen=True)
class Registry:
    """What the user has registered, by name."""

    functions: Mapping[str, Function] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)


def resolve_call(node: rx.Invoke, scope: Scope) -> ex.Expression:
    """The meaning of a call; a problem is noted, and the call given back as it is."""
    name, lower = node.name, node.name.lower()
    if name in scope.registry.functions:
        return _apply(node, scope.registry.functions[name], scope)
    if name in scope.registry.tables:
        return _in_table(node, scope.registry.tables[name], scope)
    if lower in AGGREGATES and len(node.arguments) == 1:
        return _aggregate(node, scope)
    given = tuple(scope.resolve(argument) for argument in node.arguments)
    if lower == "list" and given:
        return rx.ListOf(given, where=node.where)
    if lower in rx.CALENDAR:
        return _calendar(node, given, scope)
    if lower in LISTED and given:
        return ex.Call(LISTED[lower], given, where=node.where)
    if lower == "avg" and given:
        return rx.Mean(given, where=node.where)
    call = ex.Call(lower, given, where=node.where)
    problem = call_problem(call)
    if lower not in FUNCTIONS:
        known = [*FUNCTIONS, *AGGREGATES, *rx.CALENDAR, "list", *scope.registry.functions, *scope.registry.tables]
        near = errors.nearest(name, known)
        problem = violation(
            errors.UnknownFunctionError,
            "S1",
            f"There is no function `{name}`.",
            where=node.where,
            hint=(f"did you mean `{near}`? " if near else "")
            + f"Register one of your own: `functions={{'{name}': tocsin.function(…, gives='boolean', pure=True)}}`.",
        )
    if problem is not None:
        scope.problems.append(problem)
        return ex.Literal(None, where=node.where)
    return call


def _apply(node: rx.Invoke, function: Function, scope: Scope) -> ex.Expression:
    given = tuple(scope.resolve(argument) for argument in node.arguments)
    if not function.pure:
        scope.problems.append(
            violation(
                errors.ImpureFunctionError,
                "S10",
                f"`{node.name}` does not promise to be pure.",
                where=node.where,
                hint=f"if it is, say so: `tocsin.function(…, gives='{function.gives}', pure=True)`.",
            )
        )
    if len(given) < function.least or (function.most is not None and len(given) > function.most):
        wanted = str(function.least) if function.least == function.most else f"{function.least} or more"
        scope.problems.append(_wrong_number(node, wanted))
    return rx.Apply(node.name, function, given, where=node.where)


def _in_table(node: rx.Invoke, table: Table, scope: Scope) -> ex.Expression:
    given = tuple(scope.resolve(argument) for argument in node.arguments)
    if not given or (table.width is not None and table.width != len(given)):
        scope.problems.append(_wrong_number(node, "one or more" if table.width is None else str(table.width)))
    return rx.InTable(node.name, table, given, where=node.where)


def _wrong_number(node: rx.Invoke, wanted: str) -> errors.TocsinError:
    plural = "" if wanted == "1" else "s"
    return errors.WrongArgumentsError(
        f"`{node.name}` takes {wanted} argument{plural}, not {len(node.arguments)}.", where=node.where
    )


def _calendar(node: rx.Invoke, given: tuple[ex.Expression, ...], scope: Scope) -> ex.Expression:
    name = node.name.lower()
    zone = given[1] if len(given) == 2 else ex.Literal("UTC")
    if len(given) not in (1, 2) or not isinstance(zone, ex.Literal) or not isinstance(zone.value, str):
        scope.problems.append(
            errors.WrongArgumentsError(
                f"`{name}` takes an instant, and perhaps the name of a time zone.",
                where=node.where,
                hint=f"write `{name}(timestamp)` or `{name}(timestamp, 'Europe/Brussels')`.",
            )
        )
        return ex.Literal(None, where=node.where)
    try:
        zoneinfo.ZoneInfo(zone.value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        scope.problems.append(
            errors.WrongArgumentsError(
                f"There is no time zone '{zone.value}'.", where=zone.where, hint="write one such as 'Europe/Brussels'."
            )
        )
    asked = [reference.path for reference in ex.references_in(given[0])]
    of_clock = bool(asked) and all(path == (TIMESTAMP,) for path in asked)
    return rx.CalendarField(name, given[0], zone.value if len(given) == 2 else None, of_clock, where=node.where)


def _aggregate(node: rx.Invoke, scope: Scope) -> ex.Expression:
    name = node.name.lower()
    (written,) = node.arguments
    argument = scope.bag(written)
    found = ex.Aggregate(name, argument, node.distinct, where=node.where)
    if ex.has_aggregate(argument):
        scope.problems.append(
            errors.AggregateNotAllowedError(
                f"`{name}` aggregates an aggregate.", where=node.where, hint="aggregate once; compare two side by side."
            )
        )
        return found
    if isinstance(argument, ex.Variable) and (name != "count" or node.distinct):
        scope.problems.append(
            errors.WrongArgumentsError(
                f"`{name}` needs an attribute of `{argument.name}`.",
                where=node.where,
                hint=f"write `{name}({argument.name}.attribute)`; only `count` takes a whole variable.",
            )
        )
    variables = ex.variables_in(argument)
    if len(variables) != 1:
        scope.problems.append(
            errors.WrongArgumentsError(
                f"The argument of `{name}` must speak of exactly one variable.",
                where=node.where,
                hint=f"an aggregate runs over the events of one variable, as in `{name}(b.x)`.",
            )
        )
        return found
    absent = scope.all.get(next(iter(variables)))
    if absent is not None and absent.sort is ast.Sort.NO:
        scope.problems.append(
            errors.AggregateNotAllowedError(
                f"`{absent.variable}` is absent: there are no events of it to aggregate.",
                where=node.where,
                hint=f"to aggregate all events in a window, write `all {absent.variable}` in place of "
                f"`no {absent.variable}`.",
            )
        )
    return found
