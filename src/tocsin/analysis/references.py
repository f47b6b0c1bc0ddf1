"""Checks of every reference in a condition or output column, without any schema (R10, R15, R35).

An expression goes in and comes out with bare names resolved: `Name("b")` inside COUNT or RETURN becomes a variable, a
RETURN column's name in HAVING becomes the column's expression. Problems are collected, not raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tocsin import errors
from tocsin.analysis.names import MOST_EVENTS, Variables, index_too_large
from tocsin.language import expressions as ex
from tocsin.language.functions import call_problem


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
        resolved = self._resolve(expression, columns or {}, inside_aggregate=False)
        self._check_indices(resolved)
        return resolved

    def _resolve(
        self, node: ex.Expression, columns: Mapping[str, ex.Expression], *, inside_aggregate: bool
    ) -> ex.Expression:
        match node:
            case ex.Aggregate():
                return self._resolve_aggregate(node, inside_aggregate=inside_aggregate)
            case ex.Name() | ex.Variable():
                if node.name in columns and not inside_aggregate:
                    return columns[node.name]
                self._refuse_bare_name(node, columns)
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
            case ex.Literal() | ex.Interval():
                self._check_range(node)
            case ex.Call():
                problem = call_problem(node)
                if problem is not None:
                    self.problems.append(problem)
            case _:
                pass  # names may stand below
        return node.map_children(lambda child: self._resolve(child, columns, inside_aggregate=inside_aggregate))

    def _check_range(self, node: ex.Literal | ex.Interval) -> None:
        value = node.microseconds if isinstance(node, ex.Interval) else node.value
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            what = "interval" if isinstance(node, ex.Interval) else "number"
            self.problems.add(
                errors.LiteralOutOfRangeError,
                f"The {what} does not fit into 64 bits.",
                where=node.where,
                hint="an interval may be some 292,000 years long."
                if what == "interval"
                else "write it with a decimal point: then it is a double.",
            )

    def _resolve_aggregate(self, node: ex.Aggregate, *, inside_aggregate: bool) -> ex.Expression:
        if inside_aggregate:
            self.problems.add(
                errors.AggregateNotAllowedError,
                f"`{node.function.upper()}` stands inside another aggregate.",
                where=node.where,
                hint="aggregate once; a condition may compare two aggregates side by side.",
            )
            return node
        argument = node.argument
        if argument is None:
            return node
        if isinstance(argument, ex.Name | ex.Variable):
            needs_attribute = node.function != "count" or node.distinct
            name = node.function.upper()
            is_unknown = argument.name not in self.variables
            if is_unknown and needs_attribute and errors.nearest(argument.name, self.variables.names) is None:
                iterated = [each for each in self.variables.positive if self.variables.is_iterated(each)]
                owner = next(iter((*iterated, *self.variables.positive)), "b")
                self.problems.add(
                    errors.WrongArgumentsError,
                    f"`{argument.name}` does not say whose attribute it is.",
                    where=argument.where,
                    hint=f"name the variable: `{name}({owner}.{argument.name})`.",
                )
                needs_attribute = False
            elif is_unknown:
                self.problems.append(self.variables.unknown(argument.name, argument.where))
            argument = ex.Variable(argument.name, where=argument.where)
            if needs_attribute:
                self.problems.add(
                    errors.WrongArgumentsError,
                    f"`{name}` needs an attribute of `{argument.name}`.",
                    where=node.where,
                    hint=f"write `{name}({argument.name}.attribute)`; only COUNT takes a whole variable.",
                )
        else:
            argument = self._resolve(argument, {}, inside_aggregate=True)
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
            self.problems.add(
                errors.WrongArgumentsError,
                f"The argument of `{name}` must speak of exactly one variable.",
                where=node.where,
                hint=f"an aggregate runs over the events of one variable, as in `{name}(b.x)`.",
            )
        for inner in argument.walk():
            if isinstance(inner, ex.Attribute) and inner.index is not ex.Each.PLAIN:
                self.problems.add(
                    errors.InvalidIndexError,
                    f"`{name}` runs over all events of `{inner.variable}`: an index has no place in it.",
                    where=inner.where or node.where,
                    hint=f"write `{name}({inner.variable}.{inner.name})`.",
                )

    def _refuse_bare_name(self, node: ex.Name | ex.Variable, columns: Mapping[str, ex.Expression]) -> None:
        if node.name in self.variables:
            message, hint = f"`{node.name}` is a whole event here.", f"name an attribute: `{node.name}.attribute`."
        else:
            single = next(iter(self.variables.positive), "a")
            message = f"`{node.name}` does not say whose attribute it is."
            near = errors.nearest(node.name, columns) if columns else None
            hint = (f"did you mean the column `{near}`? " if near else "") + (
                f"write `variable.attribute`, as in `{single}.{node.name}`."
            )
        self.problems.add(errors.AmbiguousReferenceError, message, where=node.where, hint=hint)

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
            case ex.Fixed(number) | ex.Running(_, number) if abs(number) > MOST_EVENTS:
                self.problems.append(index_too_large(node))
            case ex.Running(letter) if not iterated:
                self.problems.add(
                    errors.InvalidIndexError,
                    f"`{variable}[{letter}]` has a running index, and `{variable}` holds one event.",
                    where=node.where,
                    hint=f"write `{variable}.{node.name}`.",
                )
            case _:
                pass  # a valid index
