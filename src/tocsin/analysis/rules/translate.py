"""`partelang.ast.Program` → `algebra.programs.Program`: all problems shown together; no data needed.

```
declarations    modules, templates and types, named patterns                 S1, S11
patterns        what each pattern is of, its conditions with names resolved  S1 to S4, S10
constraints     distances, windows of absences and gatherings                S5, S6, S8, S16
network         every pair has a finite distance, and some events keep all   S7, S16, S18
types           conditions and values fit together                           S15
emits           every attribute, a time that never goes back                 S12, S13
strata          nothing causes itself                                        S9
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import TIMESTAMP, Program, Rule
from tocsin.analysis.attributes import Binder
from tocsin.analysis.inference import Inference
from tocsin.analysis.null_comparisons import null_warnings
from tocsin.analysis.rules.arrivals import stratified
from tocsin.analysis.rules.constraints import constrain, self_blocking
from tocsin.analysis.rules.declarations import Declarations, Loader, declarations, mixed_domains
from tocsin.analysis.rules.emits import Emitter
from tocsin.analysis.rules.rule_patterns import Patterns, node_of, patterns_of
from tocsin.analysis.rules.scopes import Registry, Scope
from tocsin.analysis.temporal import network
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.language.grammars import LONGEST_TEXT
from tocsin.language.partelang import ast


@dataclass(frozen=True)
class Translation:
    """A program of the algebra, and what its author may want to know."""

    program: Program
    warnings: tuple[errors.TocsinWarning, ...] = ()


def translate(
    tree: ast.Program,
    registry: Registry | None = None,
    *,
    load: Loader = lambda name: None,
    types: Mapping[str, str] | None = None,
    max_text: int = LONGEST_TEXT,
) -> Translation:
    """The meaning of a syntax tree.

    `load`, `types` and `max_text` as for `declarations`.
    """
    declared = declarations(tree, load, types or {}, max_text)
    translator = _Translator(declared, registry or Registry())
    rules = [found for written in declared.rules if (found := translator.rule(written)) is not None]
    for definition in unused(declared):
        translator.rule(definition)  # for its problems
    if not declared.rules and not declared.problems:
        declared.problems.add(
            errors.EmptyPatternError, "The program has no rule.", where=tree.where, hint="add `rule R where a : A`."
        )
    ordered = stratified(rules, declared.problems)
    errors.raise_all(declared.problems.in_order())
    program = Program(ordered, declared.templates)
    mixed = mixed_domains(ordered, declared.templates)
    nulls = [
        warning
        for rule in ordered
        for warning in null_warnings(rule.query, (value for emit in rule.emits for _, value in emit.values))
    ]
    return Translation(program, (*declared.warnings, *mixed, *nulls))


def unused(declared: Declarations) -> Iterator[ast.Rule]:
    """A rule for each named pattern that none uses, with unknown values for its parameters."""
    definitions = declared.definitions.values()
    used = {pattern.of.name for rule in declared.rules for pattern in rule.patterns}
    used |= {definition.base.name for definition in definitions}
    for definition in definitions:
        if definition.name not in used:
            unknown = tuple(ex.Literal(None, where=each.where) for each in definition.parameters)
            of = ast.Reference(definition.name, unknown, where=definition.where)
            pattern = ast.Pattern("event", of, where=definition.where, name_where=definition.where)
            yield ast.Rule(definition.name, (pattern,), where=definition.where, name_where=definition.where)


@dataclass
class _Translator:
    declared: Declarations
    registry: Registry

    def rule(self, written: ast.Rule) -> Rule | None:
        """The algebra of a rule; None when something is so wrong that no more can be said of it."""
        problems = self.declared.problems
        before = len(problems)
        patterns = patterns_of(written, self.declared, self.registry, problems)
        constrain(written, patterns, problems)
        gathering = next((each for each in written.patterns if each.sort is ast.Sort.ALL), None)
        if written.selection is not Selection.ANY and gathering is not None:
            problems.add(
                errors.ConflictingClausesError,
                f"`select {written.selection.value}` chooses among events, and `all {gathering.variable}` takes all of "
                "them.",
                where=gathering.where,
                hint="leave one of the two out, or emit an event and gather in a second rule.",
            )
        if len(patterns.parts) < len(written.patterns) or len(patterns.all) < len(written.patterns):
            return None
        if not any(part.written.sort is ast.Sort.ONE for part in patterns.parts):
            return None
        query = _query(written, patterns)
        if len(problems) == before:
            self._check_distances(written, query)
        inference = self._check_types(query.pattern)
        scope = Scope(None, patterns.positive(), patterns.all, self.registry, problems)
        emits = Emitter(written, scope, self.declared, inference).emits(query.pattern)
        problems.extend(map(_named, inference.problems))
        self.declared.warnings += [
            errors.TocsinWarning(
                "REACTION_IGNORED",
                "This call has no effect: all that a rule does is to emit events.",
                where=reaction.where,
                hint=f'take the matches of the rule, `p.matches("{written.name}", …)`, and act on them.',
            )
            for reaction in written.reactions
            if isinstance(reaction, ast.Reaction)
        ]
        return Rule(written.name, query, emits, where=written.name_where)

    def _check_distances(self, written: ast.Rule, query: alg.Query) -> None:
        try:
            distances = network(query, TIMESTAMP)
        except errors.ContradictoryDistancesError as problem:
            problem.violates = problem.violates or "S16"
            self.declared.problems.append(problem)
            return
        closure = distances.alternatives[0]
        names = closure.variables
        pairs = [(x, y) for i, x in enumerate(names) for y in names[i:] if None in closure.distance(x, y)]
        if pairs:
            self.declared.problems.append(_unbounded(written, pairs))
            return
        self.declared.warnings.extend(self_blocking(written.name, query, distances))

    def _check_types(self, pattern: alg.Node) -> Inference:
        """Check attributes and types of all conditions; return what infers types, with the problems found."""
        binder = Binder(self.declared.schemas, errors.Problems(), is_strict=True)
        held = binder.held(pattern)
        binder.check_around(pattern, held)
        return binder.inference(held)


def _named(problem: errors.TocsinError) -> errors.TocsinError:
    """The problem with attributes or types, with the restriction that it violates."""
    is_name = isinstance(problem, errors.UnknownAttributeError | errors.UnknownVariableError)
    problem.violates = problem.violates or ("S1" if is_name else "S15")
    return problem


def _query(written: ast.Rule, patterns: Patterns) -> alg.Query:
    positive = [part for part in patterns.parts if part.written.sort is ast.Sort.ONE]
    parts = tuple(node_of(part) for part in positive)
    node: alg.Node = parts[0] if len(parts) == 1 else alg.All(parts, where=written.where)
    for sort, kind in ((ast.Sort.ALL, alg.Gather), (ast.Sort.NO, alg.Absent)):
        for part in patterns.parts:
            if part.written.sort is sort:
                windows = patterns.windows.get(part.variable, ())
                lower = tuple(alg.Bound(alg.LastOf((each.anchor,)), each.least_us, strict=False) for each in windows)
                upper = tuple(alg.Bound(alg.FirstOf((each.anchor,)), each.most_us, strict=False) for each in windows)
                condition = ex.all_of(*part.conditions) if part.conditions else None
                node = kind(node, part.template, part.variable, condition, lower, upper, where=part.written.where)
    conditions = [*(each for part in positive for each in part.conditions), *patterns.conditions]
    if conditions:
        node = alg.Filter(node, ex.all_of(*conditions), where=written.where)
    gathers = any(part.written.sort is ast.Sort.ALL for part in patterns.parts)
    if len(positive) == 1 and positive[0].variable in patterns.spans and not gathers:
        # The only variable is the whole match: closed distance u, open window u + 1 µs.
        node = alg.Within(node, patterns.spans[positive[0].variable] + 1, where=written.where)
    return alg.Query(node, selection=written.selection, unordered=tuple(patterns.unordered))


def _unbounded(written: ast.Rule, pairs: list[tuple[str, str]]) -> errors.TocsinError:
    """The error for pairs of variables without a finite distance; a variable with itself may repeat for ever."""
    places = {each.variable: each.name_where for each in written.patterns}
    apart = [pair for pair in pairs if pair[0] != pair[1]]
    x, y = (apart or pairs)[0]
    if not apart:
        return errors.UnboundedPatternError(
            f"In rule `{written.name}`, `{x}` may repeat for ever.",
            where=places.get(x),
            hint=f"bound it by another variable, or by itself: `{x} in {x} [0 seconds, 10 seconds]`.",
            violates="S7",
        )
    listed = ", nor between ".join(f"`{one}` and `{other}`" for one, other in apart)
    return errors.UnboundedPatternError(
        f"In rule `{written.name}` nothing bounds the time between {listed}.",
        where=places.get(x),
        also=("and", places.get(y)),
        hint=f"add to `when`: `{y} in {x} [0 seconds, 10 seconds]`; a chain of distances is enough.",
        violates="S7",
    )
