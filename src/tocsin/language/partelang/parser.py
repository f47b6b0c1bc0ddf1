"""PARTElang text to syntax tree. Knows the grammar; knows nothing of types, nor of what a rule means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tocsin import errors
from tocsin.language.grammars import LONGEST_TEXT, grammar, read, refuse_long
from tocsin.language.partelang import ast
from tocsin.language.partelang.build import ProgramBuilder
from tocsin.language.partelang.habits import syntax_error, without_comments
from tocsin.source import Place, Source, Where

# Where a declaration begins, as far as can be told from a text that is not a program.
DECLARATION = re.compile(r"^[ \t]*(?:template|rule|pattern|use)\b", re.MULTILINE)


def parse(text: str, name: str = "<rules>", *, max_text: int = LONGEST_TEXT) -> ast.Program:
    """The syntax tree of a program.

    `name` stands for the text in messages.

    Raises `TextTooLongError` when the text has more than `max_text` characters. Raises `QuerySyntaxError` when the text
    is not a program; it shows the place and what was expected there. Raises `QueryErrors` when several of its
    declarations are wrong: each with its first error.

    >>> program = parse("template A { x : Integer } rule R where a : A { x > 5 } when then")
    >>> program.rules[0].patterns[0].variable
    'a'
    """
    source = Source(text, name)
    refuse_long(source, max_text)
    try:
        return _program(source)
    except errors.QuerySyntaxError as first:
        found = [problem for start, part in _parts(source) if (problem := _problem(part, source, start)) is not None]
        errors.raise_all(found if len(found) > 1 else [first])
        raise


def _program(source: Source) -> ast.Program:
    parser = grammar("partelang", "program")
    program = read(source, parser, "program", ProgramBuilder(source), syntax_error)
    assert isinstance(program, ast.Program)
    if not program.declarations:
        raise syntax_error(source, parser, "program")
    return program


def _parts(source: Source) -> Iterator[tuple[int, Source]]:
    """The declarations of a text one by one, each with where it begins."""
    text = source.text
    starts = [found.start() for found in DECLARATION.finditer(without_comments(text))]
    for start, end in pairwise([*starts, len(text)]):
        yield start, Source(text[start:end].rstrip(), source.name)


def _problem(part: Source, whole: Source, start: int) -> errors.QuerySyntaxError | None:
    """What is wrong with a part, told at its place in the whole."""
    try:
        _program(part)
    except errors.QuerySyntaxError as error:
        error.where = _moved(error.where, whole, start)
        if error.also is not None:
            error.also = (error.also[0], _moved(error.also[1], whole, start))
        return error
    return None


def _moved(place: Where, whole: Source, start: int) -> Where:
    return Place(whole, place.start + start, place.end + start) if isinstance(place, Place) else place
