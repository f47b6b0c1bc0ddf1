"""PARTElang text to syntax tree. Knows the grammar; knows nothing of types, nor of what a rule means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from lark import Lark
from lark.exceptions import UnexpectedInput, VisitError

from tocsin import errors
from tocsin.language.grammars import grammar, refuse_deep_nesting
from tocsin.language.partelang import ast
from tocsin.language.partelang.build import ProgramBuilder
from tocsin.language.partelang.messages import syntax_error
from tocsin.language.partelang.messages.situation import without_comments
from tocsin.source import Source

# Where a declaration begins, as far as can be told from a text that is not a program.
DECLARATION = re.compile(r"^[ \t]*(?:template|rule|pattern|use)\b", re.MULTILINE)


def parse(text: str, name: str = "<rules>") -> ast.Program:
    """The syntax tree of a program.

    Parameters
    ----------
    text
        The program.
    name
        What messages call the text, such as the name of its file.

    Raises
    ------
    QuerySyntaxError
        When the text is not a program; it shows the place and what was expected there.
    QueryErrors
        When several of its declarations are wrong: each with its first error.

    Examples
    --------
    >>> program = parse("template A { x : Integer } rule R where a : A { x > 5 } when then")
    >>> program.rules[0].patterns[0].variable
    'a'
    """
    source = Source(text, name)
    try:
        return _program(source)
    except errors.QuerySyntaxError as first:
        found = [problem for part in _parts(source) if (problem := _problem(part)) is not None]
        errors.raise_all(found if len(found) > 1 else [first])
        raise


def _program(source: Source) -> ast.Program:
    try:
        tree = _grammar().parse(source.text, start="program")
    except UnexpectedInput:
        raise syntax_error(source, _grammar()) from None
    refuse_deep_nesting(tree, source)
    try:
        program = ProgramBuilder(source).transform(tree)
    except VisitError as error:
        raise error.orig_exc from None
    assert isinstance(program, ast.Program)
    if not program.declarations:
        raise syntax_error(source, _grammar())
    return program


def _parts(source: Source) -> Iterator[Source]:
    """The declarations of a text one by one, each at its place among blanks."""
    text = source.text
    starts = [found.start() for found in DECLARATION.finditer(without_comments(text))]
    for start, end in pairwise([*starts, len(text)]):
        yield Source(_blank(text[:start]) + text[start:end].rstrip(), source.name)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _problem(part: Source) -> errors.QuerySyntaxError | None:
    try:
        _program(part)
    except errors.QuerySyntaxError as error:
        return error
    return None


def _grammar() -> Lark:
    return grammar("partelang", "program")
