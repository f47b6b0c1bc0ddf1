"""SASE+ text: `parse` reads it, `print_query` writes it."""

from tocsin.language.sase.parser import parse, parse_expression
from tocsin.language.sase.printer import print_expression, print_query

__all__ = ["parse", "parse_expression", "print_expression", "print_query"]
