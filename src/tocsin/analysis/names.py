"""The names of a query: its variables, and every reference in conditions and columns (R10, R15, R35); no schema needed.

An expression goes in and comes out with bare names resolved: `Name("b")` inside COUNT or RETURN becomes a variable, a
RETURN column's name in HAVING becomes the column's expression. Problems are collected, not raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import assert_never

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.functions import AGGREGATES, call_problem
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
        return unknown_variable("The pattern has", name, self.names, where, "the pattern has")


# --- errors that all languages have ---------------------------------------------------------------


def unknown_variable(
    owner: str, name: str, known: Iterable[str], where: Where, listed: str, violates: str | None = None
) -> errors.UnknownVariableError:
    """The error for a name that is no variable; `listed` introduces those that are `known`."""
    hint = errors.did_you_mean(name, known, listed)
    return errors.UnknownVariableError(f"{owner} no variable `{name}`.", where=where, hint=hint, violates=violates)


def unknown_aggregate(name: str, where: Where) -> errors.UnknownFunctionError:
    """The error for a function that is no aggregate."""
    hint = errors.did_you_mean(name, AGGREGATES, "aggregates")
    return errors.UnknownFunctionError(f"There is no aggregate `{name}`.", where=where, hint=hint)


def needs_attribute(function: str, variable: str, where: Where, count: str) -> errors.WrongArgumentsError:
    """The error for an aggregate over whole events, of which only COUNT takes any."""
    hint = f"write `{function}({variable}.attribute)`; only {count} takes a whole variable."
    return errors.WrongArgumentsError(f"`{function}` needs an attribute of `{variable}`.", where=where, hint=hint)


def not_one_variable(function: str, where: Where) -> errors.WrongArgumentsError:
    """The error for the argument of an aggregate that speaks of several variables, or of none."""
    return errors.WrongArgumentsError(
        f"The argument of `{function}` must speak of exactly one variable.",
        where=where,
        hint=f"an aggregate runs over the events of one variable, as in `{function}(b.x)`.",
    )


def bare_name(name: str, is_variable: bool, example: str, where: Where, advice: str = "") -> errors.TocsinError:
    """The error for a variable where an attribute is due, or a name without a variable; `example` is a variable."""
    if is_variable:
        message, hint = f"`{name}` is a whole event here.", f"name an attribute: `{name}.attribute`."
    else:
        message = f"`{name}` does not say whose attribute it is."
        hint = f"{advice}write `variable.attribute`, as in `{example}.{name}`."
    return errors.AmbiguousReferenceError(message, where=where, hint=hint)


def out_of_range(node: ex.Literal | ex.Interval) -> errors.LiteralOutOfRangeError | None:
    """The error for a number or an interval beyond 64 bits."""
    value: object
    if isinstance(node, ex.Interval):
        value, what, hint = node.microseconds, "interval", "an interval may be some 292,000 years long."
    else:
        value, what, hint = node.value, "number", "write it with a decimal point: then it is a double."
    if not isinstance(value, int) or -(2**63) <= value < 2**63:
        return None
    return errors.LiteralOutOfRangeError(f"The {what} does not fit into 64 bits.", where=node.where, hint=hint)


def index_too_large(node: ex.Attribute) -> errors.InvalidIndexError | None:
    """The error for an index beyond `MOST_EVENTS`."""
    match node.index:
        case ex.Fixed(number) | ex.Running(_, number) if abs(number) > MOST_EVENTS:
            pass
        case _:
            return None
    return errors.InvalidIndexError(
        f"An index may be at most {MOST_EVENTS:,}.",
        where=node.where,
        hint=f"write a smaller number, or `{node.variable}[last]` for the last event.",
    )


def check_names(query: ast.Query) -> errors.Problems:
    """Refuse a name used for two elements of a SEQ or AND, or reserved for internal columns (R35)."""
    problems = errors.Problems()
    _declared(query.pattern, problems)
    problems.extend(reserved_names((event.variable, event.where) for event in ast.events_in(query.pattern)))
    return problems


def reserved_names(places: Iterable[tuple[str, Where]]) -> Iterator[errors.ReservedNameError]:
    """The errors for variables whose names are reserved for internal columns."""
    for name, where in places:
        if name.startswith(RESERVED_PREFIX):
            yield errors.ReservedNameError(
                f"`{name}` cannot be a variable: names that begin with `{RESERVED_PREFIX}` are reserved.",
                where=where,
                hint="give it another name.",
            )


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


# --- references -----------------------------------------------------------------------------------


@dataclass
class References:
    """Resolves the expressions of one query."""

    variables: Variables
    problems: errors.Problems = field(default_factory=errors.Problems)

    def resolve(
        self,
        expression: ex.Expression,
        *,
        columns: Mapping[str, ex.Expression] | None = None,
        whole_variables: bool = False,
    ) -> ex.Expression:
        """The expression with its names resolved.

        `columns` are RETURN columns that may be named (HAVING, GROUP BY); with `whole_variables` the expression may be
        a variable by itself (`RETURN a`).
        """
        if isinstance(expression, ex.Name | ex.Variable) and whole_variables and expression.name in self.variables:
            return ex.Variable(expression.name, where=expression.where)
        resolved = self._resolve(expression, columns or {})
        self._check_indices(resolved)
        return resolved

    def _resolve(self, node: ex.Expression, columns: Mapping[str, ex.Expression] | None) -> ex.Expression:
        """The expression with its names resolved; `columns` is None inside an aggregate."""
        match node:
            case ex.Aggregate() if columns is None:
                self.problems.add(
                    errors.AggregateNotAllowedError,
                    f"`{node.function.upper()}` stands inside another aggregate.",
                    where=node.where,
                    hint="aggregate once; a condition may compare two aggregates side by side.",
                )
                return node
            case ex.Aggregate():
                return self._resolve_aggregate(node)
            case ex.Name() | ex.Variable():
                if columns and node.name in columns:
                    return columns[node.name]
                near = errors.nearest(node.name, columns or ())
                advice = f"did you mean the column `{near}`? " if near else ""
                single = next(iter(self.variables.positive), "a")
                self.problems.append(bare_name(node.name, node.name in self.variables, single, node.where, advice))
                return node
            case ex.Attribute():
                if node.variable not in self.variables:
                    self.problems.append(self.variables.unknown(node.variable, node.where))
                return node
            case ex.SameValue():
                self.problems.add(
                    errors.MisplacedPartitionError,
                    f"`[{', '.join(node.attributes)}]` must stand by itself between the top-level ANDs of WHERE.",
                    where=node.where,
                    hint="it splits the query into one stream per value; to compare two events write `a.k = b.k`.",
                )
                return node
            case ex.Literal() | ex.Interval() if (problem := out_of_range(node)) is not None:
                self.problems.append(problem)
            case ex.Call() if (mistake := call_problem(node)) is not None:
                self.problems.append(mistake)
            case _:
                pass  # names may stand below
        return node.map_children(lambda child: self._resolve(child, columns))

    def _resolve_aggregate(self, node: ex.Aggregate) -> ex.Expression:
        argument = node.argument
        if argument is None:
            return node
        if isinstance(argument, ex.Name | ex.Variable):
            is_short = node.function != "count" or node.distinct
            name = node.function.upper()
            is_unknown = argument.name not in self.variables
            if is_unknown and is_short and errors.nearest(argument.name, self.variables.names) is None:
                iterated = [each for each in self.variables.positive if self.variables.is_iterated(each)]
                owner = next(iter((*iterated, *self.variables.positive)), "b")
                self.problems.add(
                    errors.WrongArgumentsError,
                    f"`{argument.name}` does not say whose attribute it is.",
                    where=argument.where,
                    hint=f"name the variable: `{name}({owner}.{argument.name})`.",
                )
                is_short = False
            elif is_unknown:
                self.problems.append(self.variables.unknown(argument.name, argument.where))
            argument = ex.Variable(argument.name, where=argument.where)
            if is_short:
                self.problems.append(needs_attribute(name, argument.name, node.where, "COUNT"))
        else:
            argument = self._resolve(argument, None)
            self._check_argument(node, argument)
        negated = [name for name in ex.variables_in(argument) if name in self.variables.negated]
        if negated:
            self.problems.add(
                errors.AggregateNotAllowedError,
                f"`{negated[0]}` is negated: there is no bag of its events to aggregate.",
                where=node.where,
                hint="a condition on a negated variable speaks of one event that must not be there.",
            )
        return replace(node, argument=argument)

    def _check_argument(self, node: ex.Aggregate, argument: ex.Expression) -> None:
        name = node.function.upper()
        if len(ex.variables_in(argument)) != 1:
            self.problems.append(not_one_variable(name, node.where))
        for inner in argument.walk():
            if isinstance(inner, ex.Attribute) and inner.index is not ex.Each.PLAIN:
                self.problems.add(
                    errors.InvalidIndexError,
                    f"`{name}` runs over all events of `{inner.variable}`: an index has no place in it.",
                    where=inner.where or node.where,
                    hint=f"write `{name}({inner.variable}.{inner.name})`.",
                )

    def _check_indices(self, expression: ex.Expression) -> None:
        for node in expression.walk():
            if isinstance(node, ex.Attribute) and node.variable in self.variables:
                self._check_index(node)
        for conjunct in ex.conjuncts(expression):
            self._check_letters(conjunct)

    def _check_letters(self, conjunct: ex.Expression) -> None:
        """Refuse two letters over one variable: all its references share one running index (R3)."""
        letters: dict[str, str] = {}
        for node in conjunct.walk():
            if not (isinstance(node, ex.Attribute) and isinstance(node.index, ex.Running)):
                continue
            variable, letter = node.variable, node.index.letter
            first = letters.setdefault(variable, letter)
            if letter != first:
                self.problems.add(
                    errors.InvalidIndexError,
                    f"`{variable}[{letter}]` and `{variable}[{first}]` are two indices of one variable: in one "
                    f"condition all references to `{variable}` share one.",
                    where=node.where,
                    hint=f"compare neighbors with `{variable}[{first}]` and `{variable}[{first}-1]`, or all events "
                    f"by an aggregate, as in `MAX({variable}.{node.name})`.",
                )
                return

    def _check_index(self, node: ex.Attribute) -> None:
        variable, iterated = node.variable, self.variables.is_iterated(node.variable)
        match node.index:
            case ex.Each.NEXT if not iterated:
                self.problems.add(
                    errors.NextOfSingleError,
                    f"`NEXT({variable})` needs an iterated variable, and `{variable}` holds one event.",
                    where=node.where,
                    hint=f"NEXT is the next event of a bag: iterate `{variable}`, or compare two variables.",
                )
            case ex.Fixed(number) if number < 1:
                self.problems.add(
                    errors.InvalidIndexError,
                    f"`{variable}[{number}]` does not exist: indices count from 1.",
                    where=node.where,
                    hint=f"the first event is `{variable}[1]` or `{variable}[first]`, the last `{variable}[last]`.",
                )
            case _ if (problem := index_too_large(node)) is not None:
                self.problems.append(problem)
            case ex.Running(letter) if not iterated:
                self.problems.add(
                    errors.InvalidIndexError,
                    f"`{variable}[{letter}]` has a running index, and `{variable}` holds one event.",
                    where=node.where,
                    hint=f"write `{variable}.{node.name}`.",
                )
            case _:
                pass  # a valid index
