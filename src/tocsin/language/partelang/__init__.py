"""PARTElang text, programs of rules: `parse` reads it, `print_program` writes it."""

from tocsin.language.partelang.parser import parse
from tocsin.language.partelang.printer import print_program

__all__ = ["parse", "print_program"]
