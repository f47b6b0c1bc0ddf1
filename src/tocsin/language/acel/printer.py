"""Syntax tree to ACEL text: one canonical form for every formula, with no parenthesis more than a reader needs.

`parse(print_query(query)) == query` for every tree that text can say.
"""

from __future__ import annotations

from tocsin import errors
from tocsin.language.acel import ast
from tocsin.language.sase.printer import print_clauses, print_expression, quoted
from tocsin.language.sase.words import IN_FORMULA

# How tightly a formula binds, from the loosest: grammar.lark, section 2.
FILTER, OR, AND, CHAIN, REPEATED = range(5)


def print_query(query: ast.Query) -> str:
    """A formula and its clauses as text, one clause per line.

    >>> from tocsin.language.acel.parser import parse
    >>> print(print_query(parse("((SELL as s);BUY@+) filter s[price>100] ∧ s[same(name)] within 90s")))
    SELL AS s ; BUY@+ FILTER s[price > 100] AND s[same(name)]
    WITHIN 90 SECONDS
    """
    return "\n".join([print_formula(query.formula), *print_clauses(query)])


def print_formula(formula: ast.Formula) -> str:
    """A formula as text.

    >>> a, b = ast.Event("A"), ast.Event("B")
    >>> print_formula(ast.Repeat(ast.Any((a, ast.Sequence((a, b))))))
    '(A OR A ; B)+'
    """
    return _write(formula)


def _write(formula: ast.Formula, at_least: int = FILTER) -> str:
    """The text of a formula, in parentheses if it binds looser than its surroundings ask for."""
    text, tightness = _text(formula)
    return text if tightness >= at_least else f"({text})"


def _text(formula: ast.Formula) -> tuple[str, int]:
    match formula:
        case ast.Filter(part, condition):
            return f"{_write(part)} FILTER {print_expression(condition)}", FILTER
        case ast.Any(parts):
            return " OR ".join(_write(part, AND) for part in parts), OR
        case ast.Both(parts):
            return " AND ".join(_write(part, CHAIN) for part in parts), AND
        # `;` and `:` bind alike, from left to right; beside each other they are easier to read in parentheses.
        case ast.Sequence(parts):
            return " ; ".join(_write(part, REPEATED) for part in parts), CHAIN
        case ast.Adjacent(parts):
            return " : ".join(_write(part, REPEATED) for part in parts), CHAIN
        case ast.Repeat(part):
            return f"{_write(part, REPEATED)}+", REPEATED
        case ast.RepeatAdjacent(part):
            return f"{_write(part, REPEATED)}@+", REPEATED
        case ast.Bind(part, variable):
            return f"{_write(part, REPEATED)} AS {_name(variable)}", REPEATED
        case ast.Event(type_name):
            return _name(type_name), REPEATED
        case ast.NextOf(type_name):
            return f"NEXT({_name(type_name)})", REPEATED
        case ast.Project(part, kept):
            return f"PROJECT[{', '.join(map(_kept, kept))}]({_write(part)})", REPEATED
        case ast.Derive(part, variable, folds):
            return f"AGG {_name(variable)}[{', '.join(map(_fold, folds))}]({_write(part)})", REPEATED
        case _:
            raise errors.unknown_node(formula, "The printer of ACEL")


def _name(name: str) -> str:
    return quoted(name, IN_FORMULA)


def _kept(kept: ast.Kept) -> str:
    attributes = "" if kept.attributes is None else f"({', '.join(map(quoted, kept.attributes))})"
    return _name(kept.variable) + attributes


def _fold(fold: ast.Fold) -> str:
    path = "".join("." + quoted(member) for member in fold.path)
    distinct = "DISTINCT " if fold.distinct else ""
    return f"{quoted(fold.name)} <- {fold.function}({distinct}{_name(fold.variable)}{path})"
