"""`ast.Query` → `algebra.Query`: names, structure and clauses, all problems shown together; no schema needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.clauses import renamed_variables, with_clauses
from tocsin.analysis.names import References, Variables, check_names
from tocsin.analysis.null_comparisons import null_warnings
from tocsin.analysis.structure import Structure
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.sase.printer import print_expression
from tocsin.source import Where

# Engines add and double windows in 64 bits of microseconds.
LONGEST_WINDOW_US = 100_000 * 365 * 24 * 3600 * 1_000_000


@dataclass(frozen=True)
class Translation:
    """A query of the algebra, what its author may want to know, and what is wrong with it."""

    query: alg.Query
    warnings: tuple[errors.TocsinWarning, ...] = ()
    problems: tuple[errors.TocsinError, ...] = ()


def translate(tree: ast.Query, *, is_partial: bool = False) -> Translation:
    """The meaning of a syntax tree.

    `is_partial` returns what is wrong outside the pattern as `problems`: attributes can still be compared with schemas.
    """
    window_us = tree.within.size_us if tree.within is not None else None
    problems = check_names(tree)
    structure = Structure(window_us, problems)
    core = structure.node(tree.pattern)
    is_partial = is_partial and not problems
    problems += window_problems(tree.within, tree.every)
    if core is None:
        errors.raise_all(problems.in_order())
        raise errors.InternalError("A pattern without nodes and without errors.", where=tree.where)
    negated = {event.variable: event.type for event in ast.negated_in(tree.pattern)}
    variables = Variables(alg.variables_of(core), negated)
    references = References(variables, problems)
    conditions = _split_where(tree, references)
    absent = {name: ex.all_of(*own) for name, own in conditions.absent.items()}
    core = core.transform(
        lambda node: replace(node, condition=absent.get(node.variable)) if isinstance(node, alg.Absent) else node
    )
    query, warnings = with_clauses(tree, core, references)
    _check_after_match(tree, variables, problems)
    _check_timeouts(tree, query, problems)
    if not is_partial:
        errors.raise_all(problems.in_order())

    if conditions.positive:
        core = alg.Filter(core, ex.all_of(*conditions.positive), where=tree.place("where_clause"))
    query = replace(query, pattern=core, partition=replace(query.partition, same=conditions.same))
    places = {event.variable: event.where for event in ast.events_in(tree.pattern)}
    return finished(tree, query, places, problems, chain(_warnings(tree, query), warnings))


def finished(
    tree: ast.Clauses,
    query: alg.Query,
    places: Mapping[str, Where],
    problems: errors.Problems,
    warnings: Iterable[errors.TocsinWarning],
) -> Translation:
    """The translation of a query but for WITHIN; `places` are those of its variables."""
    if tree.within is not None:
        query = replace(query, pattern=alg.Within(query.pattern, tree.within.size_us, where=tree.within.where))
    returns, renamed = renamed_variables(query, places)
    query = replace(query, returns=query.returns or returns)
    if problems:
        return Translation(query, problems=tuple(problems.in_order()))
    return Translation(query, (*window_warnings(tree.within), *warnings, *renamed))


def window_problems(window: ast.Window | None, every: ast.Window | None) -> errors.Problems:
    """The errors in the sizes of WITHIN (R37) and EVERY."""
    problems = errors.Problems()
    of_within = "`WITHIN W` keeps matches with end - start < W, so that even one instant needs W > 0."
    for each, if_empty, if_long in (
        (window, of_within, "leave WITHIN out to match however far apart the events are."),
        (every, "write it as in `EVERY 10 MINUTES`.", "leave EVERY out for a single count."),
    ):
        if each is not None and each.size_us <= 0:
            message = "A window must be longer than nothing."
            problems.add(errors.InvalidWindowError, message, where=each.where, hint=if_empty)
        elif each is not None and each.size_us > LONGEST_WINDOW_US:
            message = "A window must be shorter than 100,000 years."
            problems.add(errors.InvalidWindowError, message, where=each.where, hint=if_long)
    return problems


@dataclass
class _Conditions:
    """WHERE, sorted by what its conjuncts speak of."""

    positive: list[ex.Expression]
    absent: dict[str, list[ex.Expression]]
    same: tuple[str, ...] = ()


def _split_where(tree: ast.Query, references: References) -> _Conditions:
    split = _Conditions([], {})
    for written in ex.conjuncts(tree.where_clause):
        if isinstance(written, ex.SameValue):
            split.same += written.attributes
            continue
        conjunct = references.resolve(written)
        for node in conjunct.walk():
            if isinstance(node, ex.Aggregate) and node.argument is None:
                references.problems.add(
                    errors.AggregateNotAllowedError,
                    "COUNT(*) counts matches, and WHERE decides what a match is.",
                    where=node.where,
                    hint="count the events of a variable with `COUNT(b)`, or filter the result with HAVING.",
                )
        mentioned = ex.variables_in(conjunct)
        negated = [name for name in references.variables.negated if name in mentioned]
        if len(negated) > 1:
            references.problems.add(
                errors.TwoNegatedVariablesError,
                f"One condition speaks of two absent events, `{negated[0]}` and `{negated[1]}`.",
                where=conjunct.where,
                hint="each NOT is an absence of its own: give each its own condition.",
            )
        elif negated:
            split.absent.setdefault(negated[0], []).append(conjunct)
        else:
            split.positive.append(conjunct)
    return split


def _check_after_match(tree: ast.Query, variables: Variables, problems: errors.Problems) -> None:
    name = tree.after_match.variable
    if name is not None and name not in variables.positive:
        problem = variables.unknown(name, tree.after_match.where)
        if name in variables.negated:
            problem = errors.UnknownVariableError(
                f"`{name}` is negated: the search cannot go on from an event that is not there.",
                where=tree.after_match.where,
                hint=errors.did_you_mean(name, variables.positive, "positive variables"),
            )
        problems.append(problem)


def _check_timeouts(tree: ast.Query, query: alg.Query, problems: errors.Problems) -> None:
    if not tree.timeouts:
        return
    inner = query.pattern
    while isinstance(inner, alg.Absent):
        inner = inner.part
    reasons = {
        "needs WITHIN, which says when an event comes too late": tree.within is None,
        "needs a SEQ of two or more elements at the top": not isinstance(inner, alg.Sequence),
        "goes with `SEMANTICS any` only": tree.selection is not ast.Selection.ANY,
        "goes with `AFTER MATCH REUSE` only": tree.after_match.skip is not ast.Skip.REUSE,
        "goes with `OUTPUT all` only": tree.output is not ast.Output.ALL,
        "has no rows when RETURN aggregates over all matches": query.over_all_matches,
    }
    problems.extend(
        errors.TimeoutsNotAllowedError(
            f"WITH TIMEOUTS {reason}.",
            where=tree.place("timeouts"),
            hint="a time-out is a match of the first elements of a SEQ that nothing extends within the window.",
        )
        for reason, holds in reasons.items()
        if holds
    )


def _warnings(tree: ast.Query, query: alg.Query) -> Iterator[errors.TocsinWarning]:
    if tree.selection is ast.Selection.CONTIGUOUS and query.partition.attributes:
        yield errors.TocsinWarning(
            "PARTITION_CONTIGUITY",
            "`contiguous` counts the events of all partitions, so that an event of another key breaks a match.",
            where=tree.place("selection"),
            hint="for neighbours within the partition write `SEMANTICS partition-contiguous`.",
        )
    yield from null_warnings(query)
    repeats = [node for node in query.pattern.walk() if isinstance(node, alg.Repeat)]
    condition = next((node.condition for node in query.pattern.walk() if isinstance(node, alg.Filter)), None)
    for conjunct in ex.conjuncts(condition):
        plain = {node.variable for node in ex.references_in(conjunct) if node.index is ex.Each.PLAIN}
        for repeat in repeats:
            inside = [name for name in alg.variables_of(repeat) if name in plain]
            if len(inside) > 1:
                one, two = inside[:2]
                yield errors.TocsinWarning(
                    "COMPOSITE_ITERATION",
                    f"`{print_expression(conjunct)}` holds for every pair of copies, not within one copy.",
                    where=conjunct.where,
                    hint=f"to compare within a copy write `{one}[i]` and `{two}[i]`.",
                )
                break


def window_warnings(window: ast.Window | None) -> Iterator[errors.TocsinWarning]:
    """Warn of a slide, which changes nothing."""
    if window is not None and window.slide_us is not None:
        yield errors.TocsinWarning(
            "SLIDE_IGNORED",
            "The slide of WITHIN (size, slide) changes nothing: every match is found, once.",
            where=window.where,
            hint="write `WITHIN size`.",
        )
