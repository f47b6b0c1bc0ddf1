"""Formulas to algebra nodes, each with the variables that its operands bind (R7, R8, R19, R24-R27, R35).

The algebra has the same operators; what is checked here is that FILTER, PROJECT and AGG speak of variables that are
bound in their operand. Problems are collected, not raised.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.acel.conditions import Conditions
from tocsin.language.acel import ast
from tocsin.language.functions import AGGREGATES
from tocsin.source import Where

BY_POSITION = alg.Order.POSITION


@dataclass
class Formulas:
    """Builds the nodes of one formula and collects what is wrong with it."""

    problems: list[errors.TocsinError] = field(default_factory=list)

    def node(self, formula: ast.Formula) -> alg.Node:
        """The node of a formula."""
        where = formula.where
        match formula:
            case ast.Event():
                return alg.Event(formula.type, formula.type, where=where)
            case ast.NextOf():
                return alg.NextOf(formula.type, formula.type, where=where)
            case ast.Sequence():
                return alg.Sequence(self._parts(formula), BY_POSITION, where=where)
            case ast.Adjacent():
                return alg.Adjacent(self._parts(formula), where=where)
            case ast.Any():
                return alg.Any(self._parts(formula), where=where)
            case ast.Both():
                return alg.Both(self._parts(formula), where=where)
            case ast.Repeat():
                return alg.Repeat(self.node(formula.part), 1, None, BY_POSITION, where=where)
            case ast.RepeatAdjacent():
                return alg.RepeatAdjacent(self.node(formula.part), where=where)
            case ast.Bind():
                return alg.Bind(self.node(formula.part), formula.variable, where=where)
            case ast.Filter():
                part = self.node(formula.part)
                condition = Conditions(alg.variables_of(part), self.problems).checked(formula.condition)
                return alg.Filter(part, condition, where=where)
            case ast.Project():
                return self._project(formula)
            case ast.Derive():
                return self._derive(formula)
            case _:
                raise errors.unknown_node(formula, "The analysis of ACEL")

    def _parts(self, formula: ast.Formula) -> tuple[alg.Node, ...]:
        return tuple(self.node(part) for part in formula.children())

    # --- PROJECT ---

    def _project(self, formula: ast.Project) -> alg.Node:
        part = self.node(formula.part)
        bound = alg.variables_of(part)
        kept: dict[str, tuple[str, ...] | None] = {}
        for item in formula.kept:
            if item.variable not in bound:
                self.problems.append(unknown_variable("PROJECT", item.variable, bound, item.where))
            elif item.variable in kept:
                self.problems.append(_twice(f"PROJECT names the variable `{item.variable}` twice.", item.where))
            elif item.attributes is not None and len(set(item.attributes)) < len(item.attributes):
                self.problems.append(_twice(f"PROJECT names an attribute of `{item.variable}` twice.", item.where))
            kept[item.variable] = item.attributes
        if all(attributes is not None for attributes in kept.values()):
            # 003's tuple projection: it trims the events of one variable and leaves the others alone.
            kept = {name: kept.get(name) for name in bound}
        return alg.Project(part, tuple(kept.items()), where=formula.where)

    # --- AGG ---

    def _derive(self, formula: ast.Derive) -> alg.Node:
        part = self.node(formula.part)
        bound = alg.variables_of(part)
        named: dict[str, ast.Fold] = {}
        for fold in formula.folds:
            if fold.name.casefold() in named:
                first = named[fold.name.casefold()]
                self.problems.append(
                    _twice(f"Two values of AGG are called `{fold.name}`.", fold.where, ("the first", first.where))
                )
            named.setdefault(fold.name.casefold(), fold)
            self._check_fold(fold, bound)
        folds = tuple(
            alg.Fold(fold.name, fold.function, fold.variable, fold.path, fold.distinct, fold.monoid, where=fold.where)
            for fold in formula.folds
        )
        return alg.Derive(part, formula.variable, folds, where=formula.where)

    def _check_fold(self, fold: ast.Fold, bound: dict[str, alg.Kind]) -> None:
        if fold.variable not in bound:
            self.problems.append(unknown_variable("AGG", fold.variable, bound, fold.where))
        if fold.function not in AGGREGATES and fold.monoid is None:
            self.problems.append(
                errors.UnknownFunctionError(
                    f"There is no aggregate `{fold.function}`.",
                    where=fold.where,
                    hint=errors.did_you_mean(fold.function, AGGREGATES, "aggregates"),
                )
            )
        elif not fold.path and (fold.function != "count" or fold.distinct):
            self.problems.append(
                errors.WrongArgumentsError(
                    f"`{fold.function}` needs an attribute of `{fold.variable}`.",
                    where=fold.where,
                    hint=f"write `{fold.function}({fold.variable}.attribute)`; only count takes a whole variable.",
                )
            )


def unknown_variable(owner: str, name: str, bound: dict[str, alg.Kind], where: Where) -> errors.UnknownVariableError:
    """The error for a variable that the operand of FILTER, PROJECT or AGG does not bind."""
    return errors.UnknownVariableError(
        f"The formula under {owner} binds no variable `{name}`.",
        where=where,
        hint=errors.did_you_mean(name, bound, "it binds"),
    )


def _twice(message: str, where: Where, also: tuple[str, Where] | None = None) -> errors.DuplicateColumnError:
    return errors.DuplicateColumnError(message, where=where, also=also, hint="keep one of the two, or rename it.")
