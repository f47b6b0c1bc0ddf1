"""`acel.ast.Query` → `algebra.Query`: names, structure and clauses, all problems shown together; no schema needed.

The algebra has the operators of ACEL; what is checked here is that FILTER, PROJECT and AGG speak of variables that are
bound in their operand (R7, R8, R19, R21, R24-R27, R35). Problems are collected, not raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, combinations

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.clauses import with_clauses
from tocsin.analysis.names import (
    References,
    Variables,
    needs_attribute,
    reserved_names,
    unknown_aggregate,
    unknown_variable,
)
from tocsin.analysis.null_comparisons import null_warnings
from tocsin.analysis.sase import Translation, finished, window_problems
from tocsin.language import expressions as ex
from tocsin.language.acel import ast
from tocsin.language.functions import AGGREGATES
from tocsin.language.sase.printer import print_expression
from tocsin.source import Where

BAG_PREDICATES = frozenset(order.value for order in ex.BagOrder)


@dataclass(frozen=True)
class Conditions:
    """Checks conditions against the variables that the operand of FILTER binds."""

    bound: dict[str, alg.Kind]
    problems: errors.Problems

    def checked(self, condition: ex.Expression) -> ex.Expression:
        """The condition, with what is wrong noted."""
        match condition:
            case ex.And() | ex.Or():
                return condition.map_children(self.checked)
            case ex.BagPredicate():
                self._check_variable(condition.variable, condition.where)
                return condition
            case ex.Every():
                is_bound = self._check_variable(condition.variable, condition.where)
                return replace(condition, condition=self._predicate(condition)) if is_bound else condition
            case _:
                raise errors.unknown_node(condition, "The analysis of FILTER")

    def _check_variable(self, name: str, where: Where) -> bool:
        if name not in self.bound:
            owner = "The formula before FILTER binds"
            self.problems.append(unknown_variable(owner, name, self.bound, where, "it binds"))
        return name in self.bound

    def _predicate(self, atom: ex.Every) -> ex.Expression:
        before = len(self.problems)
        for conjunct in ex.conjuncts(atom.condition):
            self._refuse_bare_attribute(atom, conjunct)
            self._refuse_bag_predicate(atom, conjunct)
        for node in atom.condition.walk():
            if isinstance(node, ex.Attribute) and len(node.path) > 1 and node.path[0] in self.bound:
                self.problems.append(self._of_another(atom, node))
        if len(self.problems) > before:
            return atom.condition
        return References(Variables(self.bound, {}), self.problems).resolve(atom.condition)

    def _refuse_bare_attribute(self, atom: ex.Every, conjunct: ex.Expression) -> None:
        if isinstance(conjunct, ex.Attribute):
            variable, name = atom.variable, conjunct.name
            self.problems.add(
                errors.AmbiguousReferenceError,
                f"`{print_expression(replace(atom, condition=conjunct))}` does not say what must hold of `{name}`.",
                where=conjunct.where,
                hint=f"if all events of `{variable}` have one value, write `{variable}[same({name})]`; "
                f"if it is a truth value, `{variable}[{name} = TRUE]`.",
            )

    def _refuse_bag_predicate(self, atom: ex.Every, conjunct: ex.Expression) -> None:
        for node in conjunct.walk():
            if not isinstance(node, ex.Call) or node.function not in BAG_PREDICATES:
                continue
            name, variable = node.function, atom.variable
            named = next((each.name for each in node.walk() if isinstance(each, ex.Attribute)), "price")
            if node is conjunct:
                self.problems.add(
                    errors.WrongArgumentsError,
                    f"`{name}` takes one attribute.",
                    where=node.where,
                    hint=f"write `{variable}[{name}({named})]`, and one of it for each attribute.",
                )
            else:
                self.problems.add(
                    errors.MisplacedBagPredicateError,
                    f"`{name}` speaks of all events of `{variable}` together, the rest of the predicate of each alone.",
                    where=node.where,
                    hint=f"give it brackets of its own: `{variable}[{name}({named})] OR {variable}[price > 100]`.",
                )

    def _of_another(self, atom: ex.Every, node: ex.Attribute) -> errors.AmbiguousReferenceError:
        first, *rest = node.path
        if first == atom.variable:
            message = f"Inside `{first}[…]` attributes stand without their variable."
            hint = f"write `{'.'.join(rest)}`."
        else:
            message = (
                f"`{'.'.join(node.path)}` is of another variable; a predicate of `{atom.variable}` knows only its own."
            )
            hint = (
                f"bring both values into one event, AGG z[one <- max({atom.variable}.a), two <- max({first}.b)](…) "
                "FILTER z[one = two]."
            )
        return errors.AmbiguousReferenceError(message, where=node.where, hint=hint)


# --- formulas -------------------------------------------------------------------------------------

BY_POSITION = alg.Order.POSITION
SEVERAL = {ast.Adjacent: alg.Adjacent, ast.Any: alg.Any, ast.Both: alg.Both}


@dataclass
class Formulas:
    """Builds the nodes of one formula and collects what is wrong with it."""

    problems: errors.Problems = field(default_factory=errors.Problems)

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
            case ast.Adjacent() | ast.Any() | ast.Both():
                return SEVERAL[type(formula)](self._parts(formula), where=where)
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
                self._refuse_unknown("PROJECT", item.variable, bound, item.where)
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
            first = named.setdefault(fold.name.casefold(), fold)
            if first is not fold:
                message = f"Two values of AGG are called `{fold.name}`."
                self.problems.append(_twice(message, fold.where, ("the first", first.where)))
            self._check_fold(fold, bound)
        return alg.Derive(part, formula.variable, formula.folds, where=formula.where)

    def _check_fold(self, fold: ast.Fold, bound: dict[str, alg.Kind]) -> None:
        if fold.variable not in bound:
            self._refuse_unknown("AGG", fold.variable, bound, fold.where)
        if fold.function not in AGGREGATES and fold.monoid is None:
            self.problems.append(unknown_aggregate(fold.function, fold.where))
        elif not fold.path and (fold.function != "count" or fold.distinct):
            self.problems.append(needs_attribute(fold.function, fold.variable, fold.where, "count"))

    def _refuse_unknown(self, owner: str, name: str, bound: dict[str, alg.Kind], where: Where) -> None:
        self.problems.append(unknown_variable(f"The formula under {owner} binds", name, bound, where, "it binds"))


def _twice(message: str, where: Where, also: tuple[str, Where] | None = None) -> errors.DuplicateColumnError:
    return errors.DuplicateColumnError(message, where=where, also=also, hint="keep one of the two, or rename it.")


# --- queries --------------------------------------------------------------------------------------


def translate(tree: ast.Query, *, is_partial: bool = False) -> Translation:
    """The meaning of a syntax tree; `is_partial` as for SASE+."""
    problems = window_problems(tree.within, tree.every)
    pattern = Formulas(problems).node(tree.formula)
    variables = Variables(alg.variables_of(pattern), {})
    places = _places(tree.formula)
    problems.extend(reserved_names(places.items()))
    query, warnings = with_clauses(tree, pattern, References(variables, problems))
    if not is_partial:
        errors.raise_all(problems.in_order())
    found = chain(null_warnings(query), _empty_intersections(query.pattern), warnings)
    return finished(tree, query, places, problems, found)


def _places(formula: ast.Formula) -> dict[str, Where]:
    places: dict[str, Where] = {}
    for node in formula.walk():
        match node:
            case ast.Event(name) | ast.NextOf(name) | ast.Bind(variable=name) | ast.Derive(variable=name):
                places.setdefault(name, node.where)
            case _:
                continue
    return places


def _empty_intersections(pattern: alg.Node) -> Iterator[errors.TocsinWarning]:
    for node in pattern.walk():
        if not isinstance(node, alg.Both):
            continue
        bound = (alg.variables_of(part) for part in node.parts)
        for left, right in combinations({frozenset(kinds.items()): kinds for kinds in bound}.values(), 2):
            reason = _never_equal(left, right)
            if reason is not None:
                yield errors.TocsinWarning(
                    "EMPTY_INTERSECTION",
                    f"This AND finds nothing: {reason}.",
                    where=node.where,
                    hint="AND keeps the matches that both formulas find, with the same variables; for events in any "
                    "order write (A ; B) OR (B ; A).",
                )
                break


def _never_equal(left: dict[str, alg.Kind], right: dict[str, alg.Kind]) -> str | None:
    """Why no match of one formula binds what a match of the other does; None when one may (R25)."""
    for one, other in ((left, right), (right, left)):
        for name, kind in one.items():
            if not kind.optional and name not in other:
                return f"one side always binds `{name}`, the other never"
    for name in (name for name in left if name in right):
        sometimes_none = left[name].optional and right[name].optional
        if not sometimes_none and not set(left[name].types) & set(right[name].types):
            return f"`{name}` holds events of different types on its sides"
    return None
