"""The events that a rule emits: every attribute once, of the right type, at a time that never goes back (S12, S13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import TIMESTAMP, Attribute, Template
from tocsin.analysis.inference import Inference
from tocsin.analysis.result_types import common_type
from tocsin.analysis.rules.arrivals import instants
from tocsin.analysis.rules.declarations import Declarations, attribute_type
from tocsin.analysis.rules.scopes import Scope
from tocsin.analysis.types import DataType, Kind
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.partelang import ast
from tocsin.language.sase.printer import print_expression


@dataclass(frozen=True)
class Emitter:
    """Checks the emissions of one rule, whose names `scope` knows and whose types `inference` tells."""

    rule: ast.Rule
    scope: Scope
    declared: Declarations
    inference: Inference

    @property
    def problems(self) -> errors.Problems:
        """The errors found so far."""
        return self.scope.problems

    def emits(self, pattern: alg.Node) -> tuple[alg.Emit, ...]:
        """The emissions over the pattern of the rule, each with its number in the text."""
        found = [self._emit(each, pattern, number) for number, each in enumerate(self.rule.emissions)]
        return tuple(each for each in found if each is not None)

    def _emit(self, written: ast.Emission, pattern: alg.Node, number: int) -> alg.Emit | None:
        template = self.declared.templates.get(written.template)
        before = len(self.problems)
        at = self.scope.resolve(written.at)
        if len(self.problems) == before:
            self._check_time(written, at)
        values = {each.name: self.scope.resolve(each.value) for each in written.values}
        if template is None:
            self.problems.append(self._no_template(written))
            return None
        if len(self.problems) == before:
            self.inference.type_of(at)
        self._check_values(written, template, values)
        return alg.Emit(
            pattern,
            written.template,
            at,
            tuple((each.name, values[each.name]) for each in template.attributes if each.name in values),
            self.rule.name,
            number,
            where=written.where,
        )

    def _no_template(self, written: ast.Emission) -> errors.TocsinError:
        is_pattern = written.template in self.declared.definitions
        return errors.UnknownEventTypeError(
            f"`{written.template}` is a named pattern, and cannot be emitted."
            if is_pattern
            else f"There is no template `{written.template}`.",
            where=written.name_where,
            hint=errors.did_you_mean(written.template, self.declared.templates, "templates"),
            violates="S1",
        )

    # --- values ---

    def _check_values(self, written: ast.Emission, template: Template, values: Mapping[str, ex.Expression]) -> None:
        known = {each.name: each for each in template.attributes}
        seen: dict[str, ast.Assignment] = {}
        for each in written.values:
            if each.name not in known:
                self.problems.add(
                    errors.UnknownAttributeError,
                    f"Template `{template.name}` has no attribute `{each.name}`.",
                    where=each.where,
                    hint="an event gets its time from `at`."
                    if each.name == TIMESTAMP
                    else errors.did_you_mean(each.name, known, f"`{template.name}` has"),
                    violates="S12",
                )
            elif each.name in seen:
                self.problems.add(
                    errors.DuplicateNameError,
                    f"`{each.name}` gets two values.",
                    where=each.where,
                    also=("first set", seen[each.name].where),
                    hint="keep one of them.",
                    violates="S12",
                )
            else:
                seen[each.name] = each
                self._check_value(each, known[each.name], values[each.name])
        missing = [name for name in known if name not in seen]
        if missing:
            self.problems.add(
                errors.IncompleteEmitError,
                f"The emitted `{template.name}` has no {', '.join(f'`{name}`' for name in missing)}.",
                where=written.name_where,
                also=("declared", template.where),
                hint=f"add `{missing[0]} = …` to `with`; write `NULL` for an unknown value.",
                violates="S12",
            )

    def _check_value(self, each: ast.Assignment, attribute: Attribute, value: ex.Expression) -> None:
        many = next((node for node in ex.references_in(value) if self._is_bag(node)), None)
        if many is not None:
            self.problems.add(
                errors.IteratedInReturnError,
                f"`{many.variable}` holds several events, and `{each.name}` is one value.",
                where=many.where,
                hint=f"choose or aggregate: `first({many.variable}.{many.name})`, "
                f"`collect({many.variable}.{many.name})`.",
            )
            return
        found, declared = self.inference.type_of(value), attribute_type(attribute)
        if not is_assignable(declared, found):
            self.problems.add(
                errors.TypeMismatchError,
                f"`{each.name}` is {_named(attribute, declared)}, and `{print_expression(value)}` is "
                f"{found.describe()}.",
                where=value.where,
                hint="put single values into a list: `list(a.id)`."
                if declared.kind is Kind.ARRAY
                else "give it a value of its type, or declare it otherwise.",
                violates="S12",
            )
        elif attribute.most is not None:
            self._check_length(each, attribute.most, value)

    def _is_bag(self, node: ex.Attribute) -> bool:
        return self.scope.iterated(node.variable) and node.index in (ex.Each.PLAIN, ex.Each.NEXT)

    def _check_length(self, each: ast.Assignment, most: int, value: ex.Expression) -> None:
        length: int | None = None
        match value:
            case rx.ListOf(items):
                length = len(items)
            case ex.Aggregate("collect", argument) if argument is not None:
                pattern = self.scope.all.get(next(iter(ex.variables_in(argument)), ""))
                quantifier = pattern.quantifier if pattern is not None else None
                length = quantifier.most if quantifier is not None else None
            case _:
                return
        if length is None or length > most:
            self.problems.add(
                errors.IncompleteEmitError,
                f"`{each.name}` holds {most} values at most, and gets {length or 'any number'}.",
                where=value.where,
                hint="declare a longer array, or bound the repetition: `B[1..3]`.",
                violates="S12",
            )

    # --- time ---

    def _check_time(self, written: ast.Emission, at: ex.Expression) -> None:
        if not all(self._is_time(each) for each, _ in instants(at)):
            self.problems.add(
                errors.NonMonotoneTimeError,
                f"`{print_expression(written.at)}` may go back while time goes on.",
                where=written.at.where,
                hint="use the `timestamp` of a variable, `min`, `max` or `avg` of several, and constant durations: "
                "`at max(a.timestamp, b.timestamp) + 5 seconds`.",
                violates="S13",
            )

    def _is_time(self, instant: ex.Expression) -> bool:
        match instant:
            case ex.Attribute(variable, path, index):
                is_one = not self.scope.iterated(variable) or index in (ex.Edge.FIRST, ex.Edge.LAST)
                return path == (TIMESTAMP,) and is_one and not self._may_be_empty(variable)
            case ex.Aggregate("min" | "max" | "first" | "last", ex.Attribute(variable, path)):
                return path == (TIMESTAMP,) and not self._may_be_empty(variable)
            case _:
                return False

    def _may_be_empty(self, name: str) -> bool:
        pattern = self.scope.all.get(name)
        return pattern is not None and pattern.sort is ast.Sort.ALL


def is_assignable(declared: DataType, found: DataType) -> bool:
    """Whether a value of a type can be an attribute of another.

    >>> from tocsin.analysis import types
    >>> is_assignable(types.DECIMAL, types.DOUBLE), is_assignable(types.INTEGER, types.DOUBLE)
    (True, False)
    """
    if declared.is_null or found.is_null:
        return True
    if declared.kind is Kind.ARRAY and found.kind is Kind.ARRAY:
        assert declared.element is not None and found.element is not None
        return is_assignable(declared.element, found.element)
    if declared.is_number and found.is_number:
        return declared.kind is not Kind.INTEGER or found.kind is Kind.INTEGER
    common = common_type([declared, found])
    return common is not None and common.kind is declared.kind


def _named(attribute: Attribute, declared: DataType) -> str:
    return declared.describe() if attribute.most is None else f"an array, `[{attribute.domain}; {attribute.most}]`"
