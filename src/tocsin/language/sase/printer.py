"""Syntax tree to SASE+ text: one canonical form for every query, with no parenthesis more than it needs.

`parse(print_query(query)) == query` for every tree that text can say. What only other front ends write
(`Every`, `BagPredicate`) is printed as ACEL writes it, to be read by people.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import assert_never

from tocsin import errors
from tocsin.language import ast, durations
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.sase.words import AS_TYPE, AS_VARIABLE, IN_CONDITION, IN_FORMULA

WIDTH = 100
_WORD = re.compile(r"[^\W\d]\w*")

SKIPS = {
    ast.Skip.REUSE: "REUSE",
    ast.Skip.PAST_LAST: "SKIP PAST LAST EVENT",
    ast.Skip.TO_NEXT: "SKIP TO NEXT EVENT",
    ast.Skip.TO_FIRST: "SKIP TO FIRST",
    ast.Skip.TO_LAST: "SKIP TO LAST",
}

QUANTIFIERS = {(1, None): "+", (0, None): "*", (0, 1): "?"}

# How tightly an expression binds, from the loosest: shared.lark, section 2.
OR, AND, NOT, PREDICATE, SUM, PRODUCT, SIGNED, PRIMARY = range(8)


def quoted(name: str, reserved: re.Pattern[str] | None = None) -> str:
    """A name as it must be written, in backquotes where it is no plain word or a reserved one.

    >>> quoted("PM2.5"), quoted("user"), quoted("seq", AS_TYPE)
    ('`PM2.5`', 'user', '`seq`')
    """
    plain = _WORD.fullmatch(name) and not (reserved and reserved.fullmatch(name))
    return name if plain else "`" + name.replace("`", "``") + "`"


# --- queries --------------------------------------------------------------------------------------


def print_query(query: ast.Query) -> str:
    """A query as text, one clause per line; clauses that say the default are left out.

    >>> from tocsin.language.sase.parser import parse
    >>> print(print_query(parse("pattern seq(A a, not(B b), C+ c[]) within 90s where a.k=c.k and (c.x<>1)")))
    PATTERN SEQ(A a, NOT B b, C+ c)
    WHERE a.k = c.k
      AND c.x != 1
    WITHIN 90 SECONDS
    """
    return "\n".join([f"PATTERN {_element(query.pattern)}", *print_clauses(query)])


def print_clauses(query: ast.Clauses) -> list[str]:
    """The clauses of a query that do not say the default, one line each."""
    lines = []
    if query.partition_by:
        keys = ", ".join(quoted(key.attribute, IN_CONDITION) for key in query.partition_by)
        lines.append(f"PARTITION BY {keys}")
    if query.where_clause is not None:
        lines.append("WHERE " + "\n  AND ".join(_conjuncts(query.where_clause)))
    if query.within is not None:
        lines.append(f"WITHIN {_window(query.within)}")
    if query.selection is not ast.Selection.ANY:
        lines.append(f"SEMANTICS {query.selection.value}")
    if query.after_match.skip is not ast.Skip.REUSE:
        lines.append(f"AFTER MATCH {_after_match(query.after_match)}")
    if query.output is not ast.Output.ALL:
        lines.append(f"OUTPUT {query.output.value.replace(' per ', ' PER ').replace('start', 'START')}")
    if query.returns:
        lines.append("RETURN " + ", ".join(map(_column, query.returns)))
    if query.group_by:
        lines.append("GROUP BY " + ", ".join(map(_write, query.group_by)))
    if query.having is not None:
        lines.append("HAVING " + "\n   AND ".join(_conjuncts(query.having)))
    if query.every is not None:
        lines.append(f"EVERY {_window(query.every)}")
    if query.timeouts:
        lines.append("WITH TIMEOUTS")
    return lines


def _element(element: ast.Element, indent: int = 0) -> str:
    match element:
        case ast.Event(type_name, name, quantifier):
            variable = "" if name is None else " " + quoted(name, AS_VARIABLE)
            return quoted(type_name, AS_TYPE) + _quantifier(quantifier) + variable
        case ast.Negation(operand):
            return f"NOT {_element(operand, indent)}"
        case ast.Composite(operator, parts, quantifier):
            flat = ", ".join(_element(part) for part in parts)
            line = f"{operator.value}({flat}){_quantifier(quantifier)}"
            if len(line) + indent <= WIDTH and "\n" not in flat:
                return line
            margin = " " * (indent + 4)
            body = ",\n".join(margin + _element(part, indent + 4) for part in parts)
            return f"{operator.value}(\n{body}\n{' ' * indent}){_quantifier(quantifier)}"
        case _:
            assert_never(element)


def _quantifier(quantifier: ast.Quantifier | None) -> str:
    if quantifier is None:
        return ""
    least, most = quantifier.least, quantifier.most
    if least == most:
        return f"{{{least}}}"
    return QUANTIFIERS.get((least, most)) or f"{{{least},{'' if most is None else most}}}"


def _window(window: ast.Window) -> str:
    size = durations.describe(window.size_us)
    return size if window.slide_us is None else f"({size}, {durations.describe(window.slide_us)})"


def _after_match(after_match: ast.AfterMatch) -> str:
    variable = after_match.variable
    return SKIPS[after_match.skip] + ("" if variable is None else " " + quoted(variable, IN_CONDITION))


def _column(column: ast.Column) -> str:
    text = print_expression(column.expression)
    return text if column.alias is None else f"{text} AS {quoted(column.alias)}"


def _conjuncts(condition: ex.Expression) -> list[str]:
    if isinstance(condition, ex.And):
        return [_write(operand, NOT) for operand in condition.operands]
    return [_write(condition)]


# --- expressions ----------------------------------------------------------------------------------


def print_expression(expression: ex.Expression) -> str:
    """An expression as text, with as few parentheses as it needs.

    >>> sum_ = ex.Arithmetic("+", ex.Attribute("a", ("x",)), ex.Literal(1))
    >>> print_expression(ex.Arithmetic("*", sum_, ex.Attribute("b", ("y",), ex.Running("i", -1))))
    '(a.x + 1) * b[i-1].y'
    """
    if isinstance(expression, ex.Variable):
        return quoted(expression.name, IN_CONDITION)
    return _write(expression)


def _write(expression: ex.Expression, at_least: int = OR) -> str:
    """The text of an expression, in parentheses if it binds looser than its surroundings ask for."""
    text, tightness = _text(expression)
    return text if tightness >= at_least else f"({text})"


def _text(expression: ex.Expression) -> tuple[str, int]:
    match expression:
        case ex.Or(operands):
            return " OR ".join(_write(operand, AND) for operand in operands), OR
        case ex.And(operands):
            return " AND ".join(_write(operand, NOT) for operand in operands), AND
        case ex.Not(operand):
            return f"NOT {_write(operand, NOT)}", NOT
        case ex.Comparison(op, left, right):
            return f"{_write(left, SUM)} {op} {_write(right, SUM)}", PREDICATE
        case ex.IsNull(operand, negated):
            return f"{_write(operand, SUM)} IS {_not(negated)}NULL", PREDICATE
        case ex.In(operand, options, negated):
            return f"{_write(operand, SUM)} {_not(negated)}IN ({_listed(options)})", PREDICATE
        case ex.Between(operand, low, high, negated):
            bounds = f"{_write(low, SUM)} AND {_write(high, SUM)}"
            return f"{_write(operand, SUM)} {_not(negated)}BETWEEN {bounds}", PREDICATE
        case ex.Like(operand, pattern, negated):
            return f"{_write(operand, SUM)} {_not(negated)}LIKE {_string(pattern)}", PREDICATE
        case ex.Arithmetic("*" | "/" | "%" as op, left, right):
            return f"{_write(left, PRODUCT)} {op} {_write(right, SIGNED)}", PRODUCT
        case ex.Arithmetic(op, left, right):
            return f"{_write(left, SUM)} {op} {_write(right, PRODUCT)}", SUM
        case ex.Negative(operand):
            # A sign before a number would be read as part of it, and two signs as a comment.
            text = _write(operand, SIGNED)
            return f"-({text})" if text.startswith("-") or text[0].isdigit() else f"-{text}", SIGNED
        case _:
            text = _primary(expression)
            return text, SIGNED if text.startswith("-") else PRIMARY


def _primary(expression: ex.Expression) -> str:
    match expression:
        case ex.Literal(value):
            return _literal(value)
        case ex.Timestamp(value):
            utc = value.astimezone(dt.UTC) if value.tzinfo else value
            return f"TIMESTAMP '{utc.replace(tzinfo=None).isoformat(' ')}'"
        case ex.Date(value):
            return f"DATE '{value.isoformat()}'"
        case ex.Interval(microseconds):
            return durations.describe(microseconds)
        case ex.Name(name):
            return quoted(name, IN_CONDITION)
        case ex.Variable(name):
            # Without the brackets it would be read as the name of a column.
            return quoted(name, IN_CONDITION) + "[]"
        case ex.Attribute(variable, path, index):
            return _event(variable, index) + "".join("." + quoted(member) for member in path)
        case ex.Case(branches, otherwise):
            whens = "".join(f" WHEN {_write(test)} THEN {_write(value)}" for test, value in branches)
            last = "" if otherwise is None else f" ELSE {_write(otherwise)}"
            return f"CASE{whens}{last} END"
        case ex.Call(function, arguments):
            return f"{function.upper()}({_listed(arguments)})"
        case ex.Aggregate(function, argument, distinct):
            inner = "*" if argument is None else print_expression(argument)
            return f"{function.upper()}({'DISTINCT ' if distinct else ''}{inner})"
        case ex.SameValue(attributes):
            return f"[{', '.join(quoted(attribute) for attribute in attributes)}]"
        case ex.Every(variable, condition):
            return f"{quoted(variable, IN_FORMULA)}[{print_expression(bare(variable, condition))}]"
        case ex.BagPredicate(order, variable, (first, *rest)):
            inner = ".".join([quoted(first, IN_CONDITION), *map(quoted, rest)])
            return f"{quoted(variable, IN_FORMULA)}[{order.value}({inner})]"
        case _:
            return _of_rules(expression)


def _of_rules(expression: ex.Expression) -> str:
    match expression:
        case rx.Invoke(name, arguments, distinct):
            return f"{quoted(name)}({'DISTINCT ' if distinct else ''}{_listed(arguments)})"
        case rx.Apply(name, _, arguments) | rx.InTable(name, _, arguments):
            return f"{name}({_listed(arguments)})"
        case rx.CalendarField(field, operand, zone):
            return f"{field}({_write(operand)}{'' if zone is None else ', ' + _string(zone)})"
        case rx.ListOf(items):
            return f"list({_listed(items)})"
        case rx.Mean(operands):
            return f"avg({_listed(operands)})"
        case rx.SameEvent(left, right):
            return f"same_event({quoted(left.name)}, {quoted(right.name)})"
        case _:
            raise errors.unknown_node(expression, "The printer")


def bare(variable: str, predicate: ex.Expression) -> ex.Expression:
    """The predicate with the attributes of its variable as bare names, as inside brackets."""

    def unbound(node: ex.Expression) -> ex.Expression:
        match node:
            case ex.Attribute(owner, (name,)) if owner == variable:
                return ex.Name(name, where=node.where)
            case ex.Attribute(owner, (first, *rest)) if owner == variable:
                return ex.Attribute(first, tuple(rest), where=node.where)
            case _:
                return node

    return predicate.transform(unbound)


def _event(variable: str, index: ex.Index) -> str:
    name = quoted(variable, IN_CONDITION)
    match index:
        case ex.Each.NEXT:
            return f"NEXT({name})"
        case ex.Each.PLAIN:
            return name
        case ex.Running(letter, offset):
            return f"{name}[{letter}{offset:+d}]" if offset else f"{name}[{letter}]"
        case ex.Fixed(number):
            return f"{name}[{number}]"
        case ex.Edge():
            return f"{name}[{index.value}]"
        case _:
            assert_never(index)


def _literal(value: bool | int | float | str | None) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return _string(value)
        case float():
            # There is no word for infinity; a number too large for a double is read as it.
            return repr(value).replace("inf", "1e999")
        case int():
            return str(value)
        case _:
            assert_never(value)


def _string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _listed(expressions: tuple[ex.Expression, ...]) -> str:
    return ", ".join(map(_write, expressions))
