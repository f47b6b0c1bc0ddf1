"""What the readings share. A reading is a function `r12_…(patch)` that puts a rejected reading of R12 into place.

The patches bend the reference and the translator in as few places as they can: what a case then reports differs from
what it expects by that one reading and nothing else.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.analysis import front_ends as compiler
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.reference import conditions
from tocsin.reference.matches import Candidate
from tocsin.reference.stream import Event

Patch = pytest.MonkeyPatch
Bags = conditions.Bags


@dataclass(frozen=True)
class Reading:
    """Another reading of a ruling: its name says what, `apply` makes the reference follow it."""

    ruling: str
    apply: Callable[[Patch], None]

    def __str__(self) -> str:
        return self.apply.__name__


def readings_in(module: ModuleType) -> list[Reading]:
    """The readings of a module, in the order they are written."""
    return [
        Reading(found[1].upper(), value)
        for name, value in vars(module).items()
        if (found := re.match(r"(r\d+)_", name)) and value.__module__ == module.__name__
    ]


# --- patching -------------------------------------------------------------------------------------


def everywhere(patch: Patch, module: ModuleType, name: str, new: Callable[..., Any]) -> None:
    """Replace a function in its module and wherever it was imported by its name."""
    old = getattr(module, name)
    for known, other in list(sys.modules.items()):
        if known.startswith("tocsin") and vars(other).get(name) is old:
            patch.setattr(other, name, new)


def decides(patch: Patch, holds: Callable[[ex.Expression, Bags], bool]) -> None:
    """Let another function decide whether a match satisfies a conjunct."""
    everywhere(patch, conditions, "holds", holds)


def accepts(patch: Patch, error: type[errors.TocsinError], saying: str = "") -> None:
    """Let the translator overlook a problem, or only the kind of it whose message says so."""
    raise_all = errors.raise_all

    def overlook(problems: list[errors.TocsinError]) -> None:
        raise_all([one for one in problems if not (isinstance(one, error) and saying in one.message)])

    patch.setattr(errors, "raise_all", overlook)


def refuses(
    patch: Patch,
    is_wrong: Callable[[ast.Query], bool],
    error: type[errors.TocsinError] = errors.QueryBindingError,
) -> None:
    """Let the translator refuse queries that it accepts."""
    translate = compiler.translate

    def strict(tree: ast.Query, **asked: bool) -> Any:
        if is_wrong(tree):
            raise error("Refused by this reading.")
        return translate(tree, **asked)

    patch.setattr(compiler, "translate", strict)


def refuses_text(patch: Patch, spelling: str) -> None:
    """Let the parser refuse a spelling that it accepts."""
    parse = compiler.parse

    def strict(text: str, *rest: Any, **options: Any) -> ast.Query:
        if re.search(spelling, text):
            raise errors.QuerySyntaxError("Refused by this reading.")
        return parse(text, *rest, **options)

    patch.setattr(compiler, "parse", strict)


def translates(patch: Patch, change: Callable[[alg.Query, ast.Query], alg.Query]) -> None:
    """Change the meaning that the translator finds."""
    translate = compiler.translate

    def changed(tree: ast.Query, **asked: bool) -> Any:
        made = translate(tree, **asked)
        return type(made)(change(made.query, tree), made.warnings)

    patch.setattr(compiler, "translate", changed)


def remembers(patch: Patch) -> list[Event]:
    """A list that holds, while a case runs, all its events, those of other partitions too."""
    ingest = reference.ingest
    known: list[Event] = []

    def remember(*rows: Any, **options: Any) -> list[Event]:
        known[:] = ingest(*rows, **options)
        return list(known)

    patch.setattr(reference, "ingest", remember)
    return known


# --- looking --------------------------------------------------------------------------------------


def truths(conjunct: ex.Expression, bags: Bags) -> Iterator[bool | None]:
    """The truth of a conjunct for every choice of events it can make."""
    references = list(ex.references_in(conjunct))
    for choice in conditions.choices(references, bags):
        if all(conditions.chosen(one, bags, choice) is not None for one in references):
            yield conditions.interpret(conjunct, bags, choice)


def referred(conjunct: ex.Expression) -> set[str]:
    """The variables of which a conjunct chooses an event; those inside aggregates are not."""
    return {one.variable for one in ex.references_in(conjunct)}


def places(match: Candidate) -> list[int]:
    """The positions of a match's events in their partition."""
    return sorted({slot.event.local for slot in match.slots})


def condition_of(query: alg.Query) -> ex.Expression | None:
    """WHERE, without the conditions of absences."""
    return next((node.condition for node in query.pattern.walk() if isinstance(node, alg.Filter)), None)
