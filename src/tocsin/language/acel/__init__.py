"""ACEL text: `parse` reads it, `print_query` writes it."""

from tocsin.language.acel.parser import parse
from tocsin.language.acel.printer import print_formula, print_query

__all__ = ["parse", "print_formula", "print_query"]
