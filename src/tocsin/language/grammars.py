"""Grammars are files: each language has its own, and all are read together with shared.lark."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib import metadata, resources
from io import BytesIO
from itertools import islice
from typing import TypeVar

from lark import Lark, Token, Tree

from tocsin import kept
from tocsin.errors import QuerySyntaxError, TextTooLongError
from tocsin.language import expressions as ex
from tocsin.source import Place, Source

T = TypeVar("T")

# Every walk over a tree is a recursion; nobody writes this deep by hand.
DEEPEST = 100
# Nodes of an expression whose parts are repeated: the subject of CASE, the argument of a named pattern.
MOST_NODES = 10_000
# Characters of a text, unless `max_text=` says otherwise. A parser holds about 1 kB per token.
LONGEST_TEXT = 1_000_000


@cache
def grammar(language: str, start: str = "query") -> Lark:
    """The parser of a language, made when its first text is read and then kept; `start` is its whole text.

    Its tables are kept on disk too: making them takes most of the time of a first query.
    """
    text = text_of(language)
    place, key = kept.folder(), f"{sys.implementation.cache_tag} {metadata.version('lark')} {start}\n{text}"
    file = None if place is None else place / f"{language}.{kept.HASH(key.encode()).hexdigest()[:32]}.parser"
    tables = kept.read(file)
    if tables is not None:
        return Lark.load(BytesIO(tables))
    parser = parser_of(text, start)
    if file is not None:
        parser.save(buffer := BytesIO())
        kept.write(file, buffer.getvalue())
    return parser


def text_of(language: str) -> str:
    """The grammar of a language."""
    files = resources.files("tocsin.language")
    return "\n".join(file.read_text("utf-8") for file in (files / "shared.lark", files / language / "grammar.lark"))


def parser_of(text: str, start: str = "query") -> Lark:
    """The parser of a grammar, made anew."""
    return Lark(text, start=[start, "expression"], parser="lalr", lexer="contextual", propagate_positions=True)


def source_of(text: str, name: str, longest: int = LONGEST_TEXT) -> Source:
    """A text by the name that messages quote; one that is too long is refused before anything is read of it."""
    if len(text) > longest:
        raise TextTooLongError(
            f"The text {name} has {len(text):,} characters; at most {longest:,} are allowed.",
            hint="split it into several queries, keep large lists in a table or column, or raise `max_text=`.",
        )
    return Source(text, name)


def refuse_deep_nesting(tree: Tree[Token], source: Source) -> None:
    """Refuse a text whose tree is deeper than a recursion should go."""
    deep = first_below([tree], lambda node: [child for child in node.children if isinstance(child, Tree)])
    if deep is not None:
        raise nested_too_deep(Place(source, deep.meta.start_pos, deep.meta.end_pos))


def first_below(roots: Iterable[T], children: Callable[[T], Iterable[T]]) -> T | None:
    """The first node of some trees below more levels than `DEEPEST`."""
    level = list(roots)
    for _ in range(DEEPEST):
        level = [child for each in level for child in children(each)]
        if not level:
            return None
    return level[0]


def nested_too_deep(where: Place) -> QuerySyntaxError:
    """The error for a part of a query below more levels than `DEEPEST`."""
    return QuerySyntaxError(
        f"The query is nested more than {DEEPEST} levels deep here.",
        where=where,
        hint="AND, OR and IN lists may be as long as you like; parentheses and operators may not.",
    )


def is_larger(node: ex.Expression, nodes: int) -> bool:
    """Whether a tree has more nodes than this; shared parts count as often as they stand in it."""
    return next(islice(node.walk(), nodes, None), None) is not None
