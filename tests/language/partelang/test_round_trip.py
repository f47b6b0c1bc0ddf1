"""print ∘ parse is the identity on trees, whatever stands in them."""

from __future__ import annotations

from hypothesis import given
from tests.language.partelang import programs

from tocsin.language.partelang import ast, parse, print_program


@given(programs.any_programs())
def test_a_printed_program_parses_to_the_same_tree(program: ast.Program) -> None:
    assert parse(print_program(program)) == program


@given(programs.any_programs())
def test_printing_is_canonical(program: ast.Program) -> None:
    text = print_program(program)
    assert print_program(parse(text)) == text
