"""SASE+ text: `parse` reads it, `print_query` writes it."""

from typing import TYPE_CHECKING, Any

from tocsin.language.sase.printer import print_expression, print_query

if TYPE_CHECKING:
    from tocsin.language.sase.parser import parse, parse_expression

__all__ = ["parse", "parse_expression", "print_expression", "print_query"]


def __getattr__(name: str) -> Any:
    """Import the parser when it is used: tasks only print."""
    if name not in __all__:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from tocsin.language.sase import parser

    return getattr(parser, name)
