"""RETURN, GROUP BY, HAVING, EVERY and OUTPUT count: names of columns, and what is over all matches (R4, R40)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain, count

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.names import MATCH_COLUMNS, RESERVED_PREFIX, TIMEOUT_COLUMNS, WINDOW_COLUMNS, References
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.sase.printer import print_expression
from tocsin.source import Where

Warnings = tuple[errors.TocsinWarning, ...]

ONLY_COUNT = (alg.Returned("count", ex.Aggregate("count", None)),)


def with_clauses(query: ast.Clauses, pattern: alg.Node, references: References) -> tuple[alg.Query, Warnings]:
    """The query of a pattern, its clauses checked, and warnings; problems go to `references.problems`."""
    problems = references.problems
    made = alg.Query(
        pattern,
        partition=alg.Partition(tuple(key.attribute for key in query.partition_by)),
        selection=query.selection,
        after_match=query.after_match,
        output=ast.Output.ALL if query.output is ast.Output.COUNT else query.output,
        every_us=None if query.every is None else query.every.size_us,
        timeouts=query.timeouts,
        places=query.places,
    )
    if query.output is ast.Output.COUNT:
        clash = "RETURN" if query.returns else "GROUP BY" if query.group_by else "HAVING" if query.having else None
        if clash:
            problems.add(
                errors.ConflictingClausesError,
                f"OUTPUT count gives one number; {clash} asks for something else.",
                where=query.place("output"),
                hint="leave OUTPUT out and write `RETURN COUNT(*)` beside the other columns.",
            )
        return replace(made, returns=ONLY_COUNT, over_all_matches=True), ()
    resolved = [references.resolve(column.expression, whole_variables=True) for column in query.returns]
    over_all = bool(query.group_by) or any(map(_counts_matches, resolved))
    taken = _match_columns(query.timeouts)
    if over_all:
        taken = WINDOW_COLUMNS if query.every is not None else frozenset()
    named, warnings = _apart(query.returns, _names(query.returns, resolved), taken)
    returns = tuple(alg.Returned(name, expression) for name, expression in zip(named, resolved, strict=True))
    columns = {returned.name: returned.expression for returned in returns}
    group_by = tuple(_group_key(key, columns, references) for key in query.group_by)
    having = None if query.having is None else references.resolve(query.having, columns=columns)
    if query.group_by and not query.returns:
        problems.add(
            errors.ConflictingClausesError,
            "GROUP BY without RETURN has nothing to report per group.",
            where=query.place("group_by"),
            hint="say what you want of each group, as in `RETURN a.user, COUNT(*) AS n GROUP BY a.user`.",
        )
    _check_columns(query.returns, named, taken, problems)
    _check_negated([*columns.values(), *(key.expression for key in group_by), having], references)
    keys = [key.expression for key in group_by]
    if over_all:
        for expression in filter(None, [*(returned.expression for returned in returns), having]):
            _check_grouped(expression, keys, problems)
    else:
        for returned in returns:
            # A plain attribute is one value, or for an iterated variable the list of its values.
            if not (isinstance(returned.expression, ex.Attribute) and returned.expression.index is ex.Each.PLAIN):
                _check_single(returned.expression, references)
        if having is not None:
            _check_single(having, references)
            if _counts_matches(having):
                problems.add(
                    errors.AggregateNotAllowedError,
                    "HAVING counts matches, and RETURN reports each of them.",
                    where=query.place("having"),
                    hint="return a count too, `RETURN …, COUNT(*) GROUP BY …`, or count a variable: `COUNT(b)`.",
                )
    if query.every is not None and not over_all:
        problems.add(
            errors.ConflictingClausesError,
            "EVERY is for aggregates over all matches, and RETURN reports each match.",
            where=query.every.where,
            hint="count them: `RETURN COUNT(*) AS n EVERY 10 MINUTES`; or leave EVERY out.",
        )
    made = replace(made, returns=returns, group_by=group_by, having=having, over_all_matches=over_all)
    return made, warnings


def _names(columns: tuple[ast.Column, ...], resolved: list[ex.Expression]) -> list[str]:
    """`a.x` is called `x`, unless two columns would be: then each is called `a_x`."""
    short = [column.alias or _short_name(expression) for column, expression in zip(columns, resolved, strict=True)]
    times = Counter(map(str.casefold, short))
    return [
        f"{expression.variable}_{'_'.join(expression.path)}"
        if column.alias is None and isinstance(expression, ex.Attribute) and times[name.casefold()] > 1
        else name
        for column, expression, name in zip(columns, resolved, short, strict=True)
    ]


def _match_columns(timeouts: bool) -> frozenset[str]:
    """The columns that a result of one row per match has whatever RETURN names."""
    return MATCH_COLUMNS | TIMEOUT_COLUMNS if timeouts else MATCH_COLUMNS


def _apart(columns: tuple[ast.Column, ...], names: list[str], taken: frozenset[str]) -> tuple[list[str], Warnings]:
    """Number the columns without AS whose name is taken, or differs from another only in case, which Spark ignores."""
    used = {name.casefold(): name for column, name in zip(columns, names, strict=True) if column.alias is not None}
    used |= dict.fromkeys(taken, "")
    found, warnings = [], []
    for column, name in zip(columns, names, strict=True):
        apart = name
        if column.alias is None:
            apart = _numbered(name, lambda each: used.get(each.casefold(), each) != each)
        used.setdefault(apart.casefold(), apart)
        found.append(apart)
        if apart != name:
            warnings.append(_renamed(name, f"`{name}`", apart, "", column.where))
    return found, tuple(warnings)


def renamed_variables(query: alg.Query, places: Mapping[str, Where]) -> tuple[tuple[alg.Returned, ...], Warnings]:
    """The result columns of a query without RETURN whose variables collide with other columns, and the warnings.

    A variable may have the name of a column that every result has (`start`), or differ from another only in case, which
    Spark ignores. Its column then gets a number: `start_2`. Both are empty where every variable is a column already.
    """
    used = set(_match_columns(query.timeouts))
    names: dict[str, str] = {}
    for variable in query.variables:
        names[variable] = _numbered(variable, lambda each: each.casefold() in used)
        used.add(names[variable].casefold())
    changed = [(variable, name) for variable, name in names.items() if name != variable]
    if not changed or query.returns:
        return (), ()
    returns = tuple(
        alg.Returned(name, ex.Variable(variable, where=places.get(variable))) for variable, name in names.items()
    )
    return returns, tuple(
        _renamed(variable, f"the variable `{variable}`", name, f"RETURN {variable} ", places.get(variable))
        for variable, name in changed
    )


def _numbered(name: str, is_taken: Callable[[str], bool]) -> str:
    """The name, or the first of `name_2`, `name_3`, … that is free."""
    names = chain([name], (f"{name}_{number}" for number in count(2)))
    return next(each for each in names if not is_taken(each))


def _renamed(name: str, owner: str, column: str, clause: str, where: Where) -> errors.TocsinWarning:
    return errors.TocsinWarning(
        "COLUMN_RENAMED",
        f"The result has a column `{name.casefold()}` already, so that of {owner} is `{column}`.",
        where=where,
        hint=f"name the column yourself: `{clause}AS my_{name.casefold()}`.",
    )


def _short_name(expression: ex.Expression) -> str:
    match expression:
        case ex.Attribute():
            return expression.path[-1]
        case ex.Variable():
            return expression.name
        case _:
            return print_expression(expression)


def _counts_matches(expression: ex.Expression) -> bool:
    return any(isinstance(node, ex.Aggregate) and node.argument is None for node in expression.walk())


def _group_key(key: ex.Expression, columns: dict[str, ex.Expression], references: References) -> alg.Returned:
    expression = references.resolve(key, columns=columns)
    if ex.has_aggregate(expression):
        references.problems.add(
            errors.AggregateNotAllowedError,
            "GROUP BY takes values of the matches, not aggregates over them.",
            where=key.where,
            hint="filter on an aggregate with HAVING.",
        )
    for node in expression.walk():
        if isinstance(node, ex.Attribute) and references.variables.is_iterated(node.variable):
            if isinstance(node.index, ex.Fixed | ex.Edge):
                continue
            references.problems.add(
                errors.AmbiguousGroupKeyError,
                f"`{node.variable}` holds many events, so `{node.variable}.{node.name}` is no single group key.",
                where=node.where or key.where,
                hint=f"say which one: `{node.variable}[first].{node.name}` or `{node.variable}[last].{node.name}`.",
            )
    named = next((name for name, known in columns.items() if known == expression), None)
    return alg.Returned(named or _short_name(expression), expression)


def _check_columns(
    columns: tuple[ast.Column, ...], names: list[str], taken: frozenset[str], problems: errors.Problems
) -> None:
    seen: dict[str, ast.Column] = {}
    for column, name in zip(columns, names, strict=True):
        folded = name.casefold()
        if folded in taken or name.startswith(RESERVED_PREFIX):
            problems.add(
                errors.ReservedNameError,
                f"`{name}` is a column every result has already.",
                where=column.where,
                hint=f"call it something else: `AS my_{folded}`.",
            )
        first = seen.setdefault(folded, column)
        if first is not column:
            problems.add(
                errors.DuplicateColumnError,
                f"Two RETURN columns are called `{name}`.",
                where=column.where,
                also=("the first", first.where),
                hint="name them apart with AS.",
            )


def _check_negated(expressions: list[ex.Expression | None], references: References) -> None:
    for expression in expressions:
        for node in expression.walk() if expression is not None else ():
            name = node.variable if isinstance(node, ex.Attribute) else getattr(node, "name", None)
            if isinstance(node, ex.Attribute | ex.Variable) and name in references.variables.negated:
                references.problems.add(
                    errors.NegatedVariableInReturnError,
                    f"`{name}` is negated: a match has no such event to return.",
                    where=node.where,
                    hint="return the events around the gap instead.",
                )


def _check_grouped(expression: ex.Expression, keys: list[ex.Expression], problems: errors.Problems) -> None:
    if expression in keys or isinstance(expression, ex.Aggregate):
        return
    if isinstance(expression, ex.Attribute | ex.Variable):
        text = print_expression(expression)
        problems.add(
            errors.NotGroupedError,
            f"`{text}` is neither aggregated nor in GROUP BY.",
            where=expression.where,
            hint=f"add `GROUP BY {text}`, or aggregate it; COUNT(*) makes every column one over all matches.",
        )
        return
    for child in expression.children():
        _check_grouped(child, keys, problems)


def _check_single(expression: ex.Expression, references: References) -> None:
    """Outside aggregates and WHERE there is no "for all": each reference must be one event."""
    if isinstance(expression, ex.Aggregate):
        return
    if isinstance(expression, ex.Attribute) and references.variables.is_iterated(expression.variable):
        text, variable, name = print_expression(expression), expression.variable, expression.name
        if isinstance(expression.index, ex.Running) or expression.index is ex.Each.NEXT:
            references.problems.add(
                errors.InvalidIndexError,
                f"`{text}` has a running index, which only a condition in WHERE has.",
                where=expression.where,
                hint=f"use `[first]`, `[last]` or a number, or return all values: `{variable}.{name}`.",
            )
        elif expression.index is ex.Each.PLAIN:
            references.problems.add(
                errors.IteratedInReturnError,
                f"`{text}` has many values where one is needed.",
                where=expression.where,
                hint=f"aggregate it (`SUM({text})`) or pick one (`{variable}[first].{name}`).",
            )
        return
    for child in expression.children():
        _check_single(child, references)
