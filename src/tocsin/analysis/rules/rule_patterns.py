"""The patterns of a rule with their conditions: what each is of, named patterns opened, names resolved."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.names import MATCH_COLUMNS, MOST_ABSENCES, MOST_EVENTS, RESERVED_PREFIX
from tocsin.analysis.rules.declarations import Declarations
from tocsin.analysis.rules.scopes import Registry, Scope
from tocsin.language import expressions as ex
from tocsin.language.grammars import DEEPEST, MOST_NODES, first_below, is_larger, nested_too_deep
from tocsin.language.partelang import ast
from tocsin.source import Place


@dataclass
class Part:
    """A pattern of a rule on its way into the algebra."""

    written: ast.Pattern
    template: str  # what its events are
    # Of one event: of the event itself, of the one that must not be there, of each that is gathered.
    conditions: list[ex.Expression] = field(default_factory=list)

    @property
    def variable(self) -> str:
        """Its name."""
        return self.written.variable


@dataclass
class Patterns:
    """All patterns of a rule, with its constraints."""

    parts: list[Part] = field(default_factory=list)  # in the order of the text; those of unknown templates are left out
    # Of the whole match: between positive events, and of bags.
    conditions: list[ex.Expression] = field(default_factory=list)
    all: dict[str, ast.Pattern] = field(default_factory=dict)
    windows: dict[str, list[ast.Distance]] = field(default_factory=dict)  # of absences and gatherings, by variable
    # The longest time from the first to the last event of an iterated variable.
    spans: dict[str, int] = field(default_factory=dict)
    unordered: list[tuple[str, ...]] = field(default_factory=list)  # groups of interchangeable variables

    def part(self, name: str) -> Part | None:
        """The pattern of a variable."""
        return next((each for each in self.parts if each.variable == name), None)

    def positive(self) -> dict[str, ast.Pattern]:
        """The variables that a match binds."""
        return {name: pattern for name, pattern in self.all.items() if pattern.sort is not ast.Sort.NO}


def patterns_of(rule: ast.Rule, declared: Declarations, registry: Registry, problems: errors.Problems) -> Patterns:
    """Resolve the patterns of a rule, in the order of the text."""
    found = Patterns()
    for written in rule.patterns:
        _declare(written, found.all, problems)
    if rule.patterns[0].sort is not ast.Sort.ONE:
        first = rule.patterns[0]
        problems.add(
            errors.NegationNotAllowedError,
            f"The first pattern of a rule cannot be `{first.sort.value}`.",
            where=first.where,
            hint="begin with an event that is there; patterns may stand in any order otherwise.",
            violates="S2",
        )
    enclosing = [written for written in rule.patterns if written.sort is not ast.Sort.ONE]
    if len(enclosing) > MOST_ABSENCES:
        problems.add(
            errors.NegationNotAllowedError,
            f"A rule may have at most {MOST_ABSENCES} patterns with `no` or `all`.",
            where=enclosing[MOST_ABSENCES].where,
            hint="emit an event in a rule of its own, and name that event here.",
        )
        return found
    visible: dict[str, ast.Pattern] = {}
    for written in rule.patterns:
        _check_quantifier(written, problems)
        scope = Scope(written.variable, {**visible, written.variable: written}, found.all, registry, problems)
        template, conditions = _opened(written.of, scope, declared, ())
        if written.sort is not ast.Sort.NO:
            visible[written.variable] = written
        if template is None:
            continue
        conditions += [scope.resolve(each) for each in written.conditions]
        part = Part(written, template)
        for condition in conditions:
            for conjunct in ex.conjuncts(condition):
                own = part.conditions if _is_of_one_event(conjunct, written) else found.conditions
                own.append(conjunct)
        found.parts.append(part)
    return found


def _declare(written: ast.Pattern, known: dict[str, ast.Pattern], problems: errors.Problems) -> None:
    folded = written.variable.casefold()
    first = next((each for name, each in known.items() if name.casefold() == folded), None)
    if first is not None:
        same = first.variable == written.variable
        problems.add(
            errors.DuplicateVariableError,
            f"Two patterns of the rule are called `{written.variable}`."
            if same
            else f"The names `{first.variable}` and `{written.variable}` differ only in case.",
            where=written.name_where,
            also=("first named", first.name_where),
            hint="give one of them another name" + ("." if same else ": Spark does not tell such column names apart."),
            violates="S1",
        )
    elif folded in MATCH_COLUMNS or folded.startswith(RESERVED_PREFIX):
        problems.add(
            errors.ReservedNameError,
            f"`{written.variable}` cannot be a variable: the result has a column of that name."
            if folded in MATCH_COLUMNS
            else f"`{written.variable}` cannot be a variable: names that begin with `{RESERVED_PREFIX}` are ours.",
            where=written.name_where,
            hint="give it another name.",
        )
    known.setdefault(written.variable, written)


def _check_quantifier(written: ast.Pattern, problems: errors.Problems) -> None:
    quantifier = written.quantifier
    if quantifier is None:
        return
    if written.sort is not ast.Sort.ONE:
        message = f"`{written.sort.value} {written.variable}` cannot be repeated."
        hint = "`no` speaks of one event that must not be there; `all` takes all of them anyway."
    elif quantifier.least < 1 or (quantifier.most is not None and quantifier.most < quantifier.least):
        message = f"`{written.variable}` cannot be repeated so often."
        hint = "write `B+`, `B[3]` or `B[2..5]`: at least one, and the larger number last."
    elif max(quantifier.least, quantifier.most or 0) > MOST_EVENTS:
        message = f"`{written.variable}` may be repeated at most {MOST_EVENTS:,} times."
        hint = "write a smaller number, or `B+`."
    else:
        return
    problems.add(errors.InvalidQuantifierError, message, where=quantifier.where, hint=hint)


def _is_of_one_event(conjunct: ex.Expression, written: ast.Pattern) -> bool:
    """Whether a conjunct belongs to an absence or a gathering itself, and not to the match as a whole."""
    if written.sort is ast.Sort.NO:
        return True
    return written.sort is ast.Sort.ALL and not any(
        isinstance(node, ex.Aggregate) and written.variable in ex.variables_in(node) for node in conjunct.walk()
    )


def _opened(
    of: ast.Reference, scope: Scope, declared: Declarations, path: tuple[str, ...]
) -> tuple[str | None, list[ex.Expression]]:
    """The template that a pattern is of in the end, and the conditions of the named patterns on the way."""
    if of.name in declared.templates:
        if of.arguments:
            scope.problems.add(
                errors.WrongArgumentsError,
                f"The template `{of.name}` takes no arguments.",
                where=of.where,
                hint=f"write `{of.name}`.",
            )
        return of.name, []
    definition = declared.definitions.get(of.name)
    if definition is None:
        scope.problems.add(
            errors.UnknownEventTypeError,
            f"There is no template `{of.name}`.",
            where=of.where,
            hint=errors.did_you_mean(of.name, declared.kinds, "templates and patterns"),
            violates="S1",
        )
        return None, []
    if of.name in path:
        scope.problems.add(
            errors.RecursiveDefinitionError,
            f"The pattern `{of.name}` is made of itself: {' → '.join((*path, of.name))}.",
            where=definition.where,
            hint="a named pattern begins with a template in the end.",
        )
        return None, []
    if len(path) >= DEEPEST:
        assert isinstance(of.where, Place)
        scope.problems.append(nested_too_deep(of.where))
        return None, []
    if len(of.arguments) != len(definition.parameters):
        wanted = len(definition.parameters)
        plural = "" if wanted == 1 else "s"
        scope.problems.add(
            errors.WrongArgumentsError,
            f"The pattern `{of.name}` takes {wanted} argument{plural}, not {len(of.arguments)}.",
            where=of.where,
            also=("declared", definition.where),
            hint=f"write `{of.name}({', '.join(each.name for each in definition.parameters)})`."
            if definition.parameters
            else f"write `{of.name}`.",
        )
        return None, []
    arguments: Mapping[str, ex.Expression] = {
        parameter.name: scope.resolve(given)
        for parameter, given in zip(definition.parameters, of.arguments, strict=True)
    }
    if (problem := _too_large(of, arguments.values())) is not None:
        scope.problems.append(problem)
        return None, []
    inner = replace(scope, arguments=arguments)
    template, conditions = _opened(definition.base, inner, declared, (*path, of.name))
    return template, conditions + [inner.resolve(each) for each in definition.conditions]


def _too_large(of: ast.Reference, given: Collection[ex.Expression]) -> errors.TocsinError | None:
    """Refuse arguments that parameters have made too large: one that stands twice doubles what is put in for it."""
    if any(is_larger(each, MOST_NODES) for each in given):
        return errors.TextTooLongError(
            f"With its arguments put in, the pattern `{of.name}` has more than {MOST_NODES:,} parts.",
            where=of.where,
            hint="name a parameter once, or write the condition out.",
        )
    if first_below(given, ex.Expression.children) is not None:
        assert isinstance(of.where, Place)
        return nested_too_deep(of.where)
    return None


def node_of(part: Part) -> alg.Node:
    """The algebra of a positive pattern."""
    event = alg.Event(part.template, part.variable, where=part.written.name_where)
    quantifier = part.written.quantifier
    if quantifier is None:
        return event
    return alg.Repeat(event, quantifier.least, quantifier.most, where=part.written.where)
