"""Names in the expressions of a rule: whose attribute, which variable, which function or table."""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field

from tocsin import errors
from tocsin.algebra.programs import TIMESTAMP
from tocsin.analysis.names import (
    bare_name,
    index_too_large,
    needs_attribute,
    not_one_variable,
    out_of_range,
    unknown_variable,
)
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.functions import AGGREGATES, FUNCTIONS, call_problem
from tocsin.language.partelang import ast
from tocsin.language.user_defined import Function, Table

# Of several listed values, not of a bag.
LISTED = {"min": "least", "max": "greatest"}


@dataclass(frozen=True)
class Registry:
    """User-defined functions and reference tables, by name."""

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
        problem = errors.UnknownFunctionError(
            f"There is no function `{name}`.",
            where=node.where,
            hint=(f"did you mean `{near}`? " if near else "")
            + f"Register one of your own: `functions={{'{name}': tocsin.function(…, gives='boolean', pure=True)}}`.",
            violates="S1",
        )
    if problem is not None:
        scope.problems.append(problem)
        return ex.Literal(None, where=node.where)
    return call


def _apply(node: rx.Invoke, function: Function, scope: Scope) -> ex.Expression:
    given = tuple(scope.resolve(argument) for argument in node.arguments)
    if not function.pure:
        scope.problems.add(
            errors.ImpureFunctionError,
            f"`{node.name}` does not promise to be pure.",
            where=node.where,
            hint=f"if it is, say so: `tocsin.function(…, gives='{function.gives}', pure=True)`.",
            violates="S10",
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
        scope.problems.add(
            errors.WrongArgumentsError,
            f"`{name}` takes an instant, and perhaps the name of a time zone.",
            where=node.where,
            hint=f"write `{name}(timestamp)` or `{name}(timestamp, 'Europe/Brussels')`.",
        )
        return ex.Literal(None, where=node.where)
    try:
        zoneinfo.ZoneInfo(zone.value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        scope.problems.add(
            errors.WrongArgumentsError,
            f"There is no time zone '{zone.value}'.",
            where=zone.where,
            hint="write one such as 'Europe/Brussels'.",
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
        scope.problems.add(
            errors.AggregateNotAllowedError,
            f"`{name}` aggregates an aggregate.",
            where=node.where,
            hint="aggregate once; compare two side by side.",
        )
        return found
    if isinstance(argument, ex.Variable) and (name != "count" or node.distinct):
        scope.problems.append(needs_attribute(name, argument.name, node.where, "`count`"))
    variables = ex.variables_in(argument)
    if len(variables) != 1:
        scope.problems.append(not_one_variable(name, node.where))
        return found
    absent = scope.all.get(next(iter(variables)))
    if absent is not None and absent.sort is ast.Sort.NO:
        scope.problems.add(
            errors.AggregateNotAllowedError,
            f"`{absent.variable}` is absent: there are no events of it to aggregate.",
            where=node.where,
            hint=f"to aggregate all events in a window, write `all {absent.variable}` in place of "
            f"`no {absent.variable}`.",
        )
    return found


# --- scopes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scope:
    """The meaning of names at one place of a rule."""

    own: str | None  # the variable whose attributes need no name before them; None in `then`
    visible: Mapping[str, ast.Pattern]  # the variables bound here, and their patterns
    all: Mapping[str, ast.Pattern]  # every variable of the rule, for messages
    registry: Registry
    problems: errors.Problems
    # What the parameters of a named pattern stand for.
    arguments: Mapping[str, ex.Expression] = field(default_factory=dict)

    def resolve(self, node: ex.Expression) -> ex.Expression:
        """The expression with every name resolved; what is wrong goes into `problems`."""
        match node:
            case ex.Name(name) if name in self.arguments:
                return self.arguments[name]
            case ex.Name(name) if self.own is not None:
                return ex.Attribute(self.own, (name,), where=node.where)
            case ex.Name() | ex.Variable():
                single = next(iter(self.visible), "a")
                self.problems.append(bare_name(node.name, node.name in self.visible, single, node.where))
                return ex.Literal(None, where=node.where)  # one mistake is reported once
            case ex.Attribute():
                return node if self._check(node) else ex.Literal(None, where=node.where)
            case ex.Literal() if (problem := out_of_range(node)) is not None:
                self.problems.append(problem)
            case rx.Invoke():
                return resolve_call(node, self)
            case _:
                pass  # names may stand below
        return node.map_children(self.resolve)

    def bag(self, node: ex.Expression) -> ex.Expression:
        """The argument of an aggregate: a whole variable, or an expression over the events of one."""
        if isinstance(node, ex.Name | ex.Variable) and node.name not in self.arguments and node.name in self.visible:
            return ex.Variable(node.name, where=node.where)
        return self.resolve(node)

    def iterated(self, name: str) -> bool:
        """Whether a variable holds several events."""
        pattern = self.all.get(name)
        return pattern is not None and (pattern.sort is ast.Sort.ALL or pattern.quantifier is not None)

    def _check(self, node: ex.Attribute) -> bool:
        name = node.variable
        if name in self.visible:
            if node.index is not ex.Each.PLAIN and not self.iterated(name):
                self.problems.add(
                    errors.InvalidIndexError,
                    f"`{name}` holds one event, and needs no index.",
                    where=node.where,
                    hint=f"write `{name}.{node.name}`.",
                )
            elif (problem := index_too_large(node)) is not None:
                self.problems.append(problem)
            return True
        self.problems.append(self._not_visible(node))
        return False

    def _not_visible(self, node: ex.Attribute) -> errors.TocsinError:
        name = node.variable
        pattern = self.all.get(name)
        if pattern is None:
            return unknown_variable("The rule has", name, self.visible, node.where, "variables here", "S1")
        if pattern.sort is ast.Sort.NO:
            return errors.NegatedVariableUsedError(
                f"`{name}` is an event that is not there.",
                where=node.where,
                also=("declared absent", pattern.where),
                hint=f"write what it must satisfy in the braces of `no {name}`.",
                violates="S3",
            )
        return errors.LaterVariableError(
            f"`{name}` is bound only later.",
            where=node.where,
            also=("its pattern", pattern.where),
            hint=f"write the condition in the braces of `{name}`, or put the pattern of `{name}` first.",
            violates="S4",
        )
