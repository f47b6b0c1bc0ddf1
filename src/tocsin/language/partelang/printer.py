"""Syntax tree to PARTElang text: one canonical form for every program.

`parse(print_program(program)) == program` for every tree that text can say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from tocsin.language import durations
from tocsin.language import expressions as ex
from tocsin.language.ast import Quantifier, Selection
from tocsin.language.partelang import ast
from tocsin.language.sase.printer import print_expression, quoted
from tocsin.language.sase.words import any_of

# No template, pattern, rule, variable or module is printed so without backquotes: the second row are words that are
# keywords only in some places.
RESERVED = (
    *("template", "rule", "where", "when", "then", "emit", "at", "with", "no", "in"),
    *("all", "select", "pattern", "use", "distinct"),
)
AS_IDENT = any_of(RESERVED)
WIDTH = 100


def print_program(program: ast.Program) -> str:
    """A program as text: its declarations, with an empty line between them.

    >>> from tocsin.language.partelang.parser import parse
    >>> print(print_program(parse("rule R where a:A{x>=5,} no b:B{x=a.x} when no b in a [0s,4s] then")))
    rule R where
      a : A { x >= 5 }
      no b : B { x = a.x }
    when
      no b in a [0 seconds, 4 seconds]
    then
    """
    return "\n\n".join(_declaration(each) for each in program.declarations)


def _declaration(declaration: ast.Declaration) -> str:
    match declaration:
        case ast.Use(module):
            return f"use {_ident(module)}"
        case ast.Template(name, slots):
            return f"template {_ident(name)} {_block([_slot(slot) for slot in slots], '')}"
        case ast.Definition(name, parameters, base, conditions):
            listed = ", ".join(_ident(each.name) for each in parameters)
            head = f"pattern {_ident(name)}{f'({listed})' if parameters else ''} : {_reference(base)}"
            return head + _conditions(conditions, len(head), "")
        case ast.Rule():
            return _rule(declaration)
        case _:
            assert_never(declaration)


def _rule(rule: ast.Rule) -> str:
    lines = [f"rule {_ident(rule.name)} where"]
    lines += [f"  {_pattern(each)}" for each in rule.patterns]
    lines += ["when", *(f"  {_constraint(each)}" for each in rule.constraints)]
    if rule.selection is not Selection.ANY:
        lines.append(f"select {rule.selection.value}")
    lines += ["then", *(f"  {_reaction(each)}" for each in rule.reactions)]
    return "\n".join(lines)


def _slot(slot: ast.Slot) -> str:
    kind = quoted(slot.type.name)
    return f"{quoted(slot.name)} : {kind if slot.type.length is None else f'[{kind}; {slot.type.length}]'}"


def _pattern(pattern: ast.Pattern) -> str:
    prefix = f"{pattern.sort.value} " if pattern.sort.value else ""
    head = f"{prefix}{_ident(pattern.variable)} : {_reference(pattern.of)}{_quantifier(pattern.quantifier)}"
    return head + _conditions(pattern.conditions, len(head) + 2, "  ")


def _reference(reference: ast.Reference) -> str:
    arguments = ", ".join(map(print_expression, reference.arguments))
    return _ident(reference.name) + (f"({arguments})" if reference.arguments else "")


def _quantifier(quantifier: Quantifier | None) -> str:
    if quantifier is None:
        return ""
    match quantifier.least, quantifier.most:
        case 1, None:
            return "+"
        case least, most if least == most:
            return f"[{least}]"
        case least, most:
            return f"[{least}..{'' if most is None else most}]"


def _conditions(conditions: tuple[ex.Expression, ...], before: int, margin: str) -> str:
    if not conditions:
        return ""
    texts = [print_expression(each) for each in conditions]
    flat = f" {{ {', '.join(texts)} }}"
    return flat if before + len(flat) <= WIDTH else f" {_block(texts, margin)}"


def _block(lines: Iterable[str], margin: str) -> str:
    body = ",\n".join(f"{margin}  {line}" for line in lines)
    return f"{{\n{body}\n{margin}}}" if body else "{ }"


def _constraint(constraint: ast.Constraint) -> str:
    match constraint:
        case ast.Distance(variable, anchor, least, most, sort):
            prefix = f"{sort.value} " if sort.value else ""
            return f"{prefix}{_ident(variable)} in {_ident(anchor)} [{_duration(least)}, {_duration(most)}]"
        case ast.Distinct(variables):
            return f"distinct({', '.join(map(_ident, variables))})"
        case ast.Unordered(variables):
            return f"unordered({', '.join(map(_ident, variables))})"
        case _:
            assert_never(constraint)


def _reaction(reaction: ast.Emission | ast.Reaction) -> str:
    match reaction:
        case ast.Reaction(call):
            return print_expression(call)
        case ast.Emission(template, at, values):
            given = [f"{quoted(each.name)} = {print_expression(each.value)}" for each in values]
            return f"emit {_ident(template)} at {print_expression(at)} with {_block(given, '  ')}"
        case _:
            assert_never(reaction)


def _duration(microseconds: int) -> str:
    return durations.describe(microseconds, weeks=False).lower()  # as the published programs write


def _ident(name: str) -> str:
    return quoted(name, AS_IDENT)
