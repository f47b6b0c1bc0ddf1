"""The constraints of `when`: distances, windows of absences and gatherings, different and interchangeable events.

A rule that asks for a transfer and for no similar one around it has written "no *other*" only if it says so: one event
may be in several variables (R29). For every absence and every positive variable of its template the conditions are read
with that variable in the place of the absent one (requirement 62). When none of them is then refuted, all equalities
follow from those of the match, and so does the window, the event itself is a blocker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import assert_never

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import TIMESTAMP
from tocsin.analysis.names import unknown_variable
from tocsin.analysis.rules.rule_patterns import Patterns
from tocsin.analysis.sase import LONGEST_WINDOW_US
from tocsin.analysis.temporal import Network
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.partelang import ast
from tocsin.source import Where


def constrain(rule: ast.Rule, patterns: Patterns, problems: errors.Problems) -> None:
    """Add the constraints of a rule to its patterns."""
    for each in rule.constraints:
        match each:
            case ast.Distance():
                _distance(each, patterns, problems)
            case ast.Distinct():
                _distinct(each, patterns, problems)
            case ast.Unordered():
                _unordered(each, patterns, problems)
            case _:
                assert_never(each)
    anchor = next(iter(patterns.positive()), "a")
    for written in (part.written for part in patterns.parts):
        name, is_absent = written.variable, written.sort is ast.Sort.NO
        if written.sort is not ast.Sort.ONE and name not in patterns.windows:
            what = "For how long the absence" if is_absent else "From how long a time the gathering"
            problems.add(
                errors.UnboundedAbsenceError,
                f"{what} of `{name}` counts is not said.",
                where=written.where,
                hint=f"add to `when`: `{written.sort.value} {name} in {anchor} [0 seconds, 10 seconds]`.",
                violates="S5",
            )


def time_of(variable: str, where: Where = None, index: ex.Index = ex.Each.PLAIN) -> ex.Attribute:
    """The time of a variable's event."""
    return ex.Attribute(variable, (TIMESTAMP,), index, where=where)


# --- distances ------------------------------------------------------------------------------------


def _distance(each: ast.Distance, patterns: Patterns, problems: errors.Problems) -> None:
    if not _known((each.variable, each.anchor), each.where, patterns, problems):
        return
    pattern, anchor = patterns.all[each.variable], patterns.all[each.anchor]
    before = len(problems)
    if anchor.sort is not ast.Sort.ONE:
        problems.append(_bad_anchor(each, anchor))
    elif pattern.sort is not each.sort:
        problems.append(_bad_prefix(each, pattern))
        patterns.windows.setdefault(each.variable, [])
    if each.least_us > each.most_us:
        message = f"No event can be in this window of `{each.anchor}`: its first end comes after its second."
        hint = "write the smaller end first; before an event, durations are negative: `[-14 days, 0 days]`."
        problems.add(errors.InvalidWindowError, message, where=each.where, hint=hint, violates="S16")
    elif max(abs(each.least_us), abs(each.most_us)) > LONGEST_WINDOW_US:
        message, hint = "A distance must be shorter than 100,000 years.", "a live program would never forget anything."
        problems.add(errors.InvalidWindowError, message, where=each.where, hint=hint, violates="S8")
    if len(problems) > before:
        return
    if pattern.sort is not ast.Sort.ONE:
        patterns.windows.setdefault(each.variable, []).append(each)
    elif each.variable == each.anchor:
        _span(each, pattern, patterns, problems)
    else:
        distance = ex.Arithmetic("-", time_of(each.variable), time_of(each.anchor))
        bounds = ex.Interval(each.least_us), ex.Interval(each.most_us)
        patterns.conditions.append(ex.Between(distance, *bounds, where=each.where))


def _known(names: tuple[str, ...], where: Where, patterns: Patterns, problems: errors.Problems) -> bool:
    unknown = [name for name in names if name not in patterns.all]
    for name in dict.fromkeys(unknown):
        problems.append(unknown_variable("The rule has", name, patterns.all, where, "the rule has", "S1"))
    return not unknown


def _bad_anchor(each: ast.Distance, anchor: ast.Pattern) -> errors.TocsinError:
    mirrored = f"`{anchor.sort.value} {each.anchor} in {each.variable} […]`, with both ends negated and exchanged"
    return errors.MisplacedPrefixError(
        f"A distance cannot be seen from `{each.anchor}`, which is {_sort(anchor)}.",
        where=each.where,
        hint=f"write {mirrored}." if each.sort is ast.Sort.ONE else "see it from an event that the match binds.",
        violates="S6",
    )


def _bad_prefix(each: ast.Distance, pattern: ast.Pattern) -> errors.TocsinError:
    says = f"says `{each.sort.value}`" if each.sort.value else f"does not say `{pattern.sort.value}`"
    right = f"{pattern.sort.value} {each.variable}".strip()
    return errors.MisplacedPrefixError(
        f"`{each.variable}` is {_sort(pattern)}, and its distance {says}.",
        where=each.where,
        also=("its pattern", pattern.where),
        hint=f"write `{right} in {each.anchor} […]`.",
        violates="S6",
    )


def _sort(pattern: ast.Pattern) -> str:
    return {ast.Sort.ONE: "an event of the match", ast.Sort.NO: "absent", ast.Sort.ALL: "gathered"}[pattern.sort]


def _span(each: ast.Distance, pattern: ast.Pattern, patterns: Patterns, problems: errors.Problems) -> None:
    """`b in b [0 s, 10 s]`: from the first to the last event of an iteration."""
    name = each.variable
    if pattern.quantifier is None or each.least_us not in (0, -each.most_us):
        problems.add(
            errors.InvalidWindowError,
            f"`{name}` has no distance of this kind to itself.",
            where=each.where,
            hint=f"from the first to the last event, write `{name} in {name} [0 seconds, 9 seconds]`.",
            violates="S16",
        )
        return
    patterns.spans[name] = min(each.most_us, patterns.spans.get(name, each.most_us))
    last, first = time_of(name, index=ex.Edge.LAST), time_of(name, index=ex.Edge.FIRST)
    patterns.conditions.append(
        ex.Comparison("<=", ex.Arithmetic("-", last, first), ex.Interval(each.most_us), where=each.where)
    )


# --- identities -----------------------------------------------------------------------------------


def _distinct(each: ast.Distinct, patterns: Patterns, problems: errors.Problems) -> None:
    if not _are_several(each, patterns, problems):
        return
    around = [name for name in each.variables if patterns.all[name].sort is not ast.Sort.ONE]
    if len(around) > 1:
        problems.add(
            errors.TwoNegatedVariablesError,
            f"`{around[0]}` and `{around[1]}` cannot be compared: neither is an event of the match itself.",
            where=each.where,
            hint="name at most one variable of `no` or `all` beside events of the match.",
            violates="S3",
        )
        return
    for one, other in combinations(each.variables, 2):
        same = rx.SameEvent(ex.Variable(one), ex.Variable(other), where=each.where)
        condition = ex.Not(same, where=each.where)
        part = patterns.part(around[0]) if around and around[0] in (one, other) else None
        (patterns.conditions if part is None else part.conditions).append(condition)


def _unordered(each: ast.Unordered, patterns: Patterns, problems: errors.Problems) -> None:
    if not _are_several(each, patterns, problems):
        return
    parts = [patterns.part(name) for name in each.variables]
    single = all(
        patterns.all[name].sort is ast.Sort.ONE and patterns.all[name].quantifier is None for name in each.variables
    )
    if not single or len({part.template for part in parts if part is not None}) > 1:
        problems.add(
            errors.ConflictingClausesError,
            "Only variables that hold one event each, of one template, are interchangeable.",
            where=each.where,
            hint="name such variables in `unordered(…)`.",
        )
        return
    patterns.unordered.append(each.variables)


def _are_several(each: ast.Distinct | ast.Unordered, patterns: Patterns, problems: errors.Problems) -> bool:
    if not _known(each.variables, each.where, patterns, problems):
        return False
    word = "distinct" if isinstance(each, ast.Distinct) else "unordered"
    if len(set(each.variables)) == len(each.variables) > 1:
        return True
    problems.add(
        errors.WrongArgumentsError,
        f"`{word}` takes two or more different variables.",
        where=each.where,
        hint=f"write `{word}(a, b)`.",
    )
    return False


# --- absences that block themselves ---------------------------------------------------------------


def self_blocking(rule: str, query: alg.Query, network: Network) -> Iterator[errors.TocsinWarning]:
    """One warning for each absence that an event of the match may refute."""
    filters = [node.condition for node in query.pattern.walk() if isinstance(node, alg.Filter)]
    positive = [conjunct for condition in filters for conjunct in ex.conjuncts(condition)]
    equal = _equalities(positive)
    for absence in alg.absences_in(query.pattern):
        for name, kind in query.variables.items():
            if kind.types != (absence.type,) or kind.iterated:
                continue
            if _window_follows(absence, name, network) and _may_block(absence, name, positive, equal):
                yield errors.TocsinWarning(
                    "SELF_BLOCKING",
                    f"In rule `{rule}` the event of `{name}` itself can be the `{absence.variable}` that must not be "
                    "there: then the rule blocks itself.",
                    where=absence.where,
                    hint=f"to mean another event, add `distinct({absence.variable}, {name})` to `when`, or a condition "
                    f"such as `id != {name}.id`.",
                )
                break


def _window_follows(absence: alg.Absent, name: str, network: Network) -> bool:
    """Whether the event of a variable lies in the window of the absence in every match."""
    closure = network.alternatives[0]
    for bound in (*absence.lower, *absence.upper):
        assert isinstance(bound.anchor, alg.LastOf | alg.FirstOf)
        (anchor,) = bound.anchor.variables
        least, most = (0, 0) if anchor == name else closure.distance(anchor, name)
        if bound in absence.lower and (least is None or least < bound.offset_us):
            return False
        if bound in absence.upper and (most is None or most > bound.offset_us):
            return False
    return True


def _may_block(absence: alg.Absent, name: str, positive: list[ex.Expression], equal: Equalities) -> bool:
    return all(
        _holds(_renamed(conjunct, absence.variable, name), positive, equal)
        for conjunct in ex.conjuncts(absence.condition)
    )


def _renamed(conjunct: ex.Expression, old: str, new: str) -> ex.Expression:
    def change(node: ex.Expression) -> ex.Expression:
        match node:
            case ex.Attribute(variable, path, index) if variable == old:
                return ex.Attribute(new, path, index)
            case rx.SameEvent(ex.Variable(left), ex.Variable(right)) if old in (left, right):
                return ex.Literal(new in (left, right))
            case _:
                return node

    return conjunct.transform(change)


def _holds(conjunct: ex.Expression, positive: list[ex.Expression], equal: Equalities) -> bool:
    """Whether a condition follows from those of the match, or at least may hold between two of its events."""

    def same(left: ex.Expression, right: ex.Expression) -> bool:
        return left == right or right in equal.get(left, ())

    if conjunct in positive:
        return True
    match conjunct:
        case ex.Not(ex.Literal(True)):
            return False
        case ex.Not(ex.Literal(False)):
            return True
        case ex.Comparison("=" | "<=" | ">=", left, right) if same(left, right):
            return True
        case ex.Comparison(op, left, right) if op != "=" and not same(left, right):
            return len(ex.variables_in(left) | ex.variables_in(right)) > 1
        case _:
            return False


Equalities = dict[ex.Expression, set[ex.Expression]]


def _equalities(conjuncts: Iterable[ex.Expression]) -> Equalities:
    """The values that each value is equal to in every match, itself included, by the conditions `a.x = b.y`."""
    found: Equalities = {}
    for conjunct in conjuncts:
        if isinstance(conjunct, ex.Comparison) and conjunct.op == "=":
            equal = found.get(conjunct.left, {conjunct.left}) | found.get(conjunct.right, {conjunct.right})
            found |= dict.fromkeys(equal, equal)
    return found
