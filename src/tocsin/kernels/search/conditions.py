"""Code for conjuncts: which events a reference means, and "for all" around the test (R1, R3, R15, R21).

A test is made in one of two ways. *Whole*: all its variables are decided, and every choice of running indices is tried.
*Next*: one iterated variable is about to take one more event, number N, and everything else is decided; then exactly
one choice of its running index is new, the one whose largest reference is that event: i = N − max(0, largest offset).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from tocsin.kernels.expressions.code import true_code
from tocsin.kernels.expressions.folds import fold_statements
from tocsin.kernels.expressions.leaves import PlaceOf, RowOf
from tocsin.kernels.expressions.prefixes import SUMMED, Prefix, stretch_statements
from tocsin.kernels.expressions.slots import Fold, SlotRef, Test
from tocsin.kernels.search.state import Held, Many, One, Stretch
from tocsin.kernels.search.writer import Writer
from tocsin.language import expressions as ex


@dataclass(frozen=True)
class Columns:
    """The names of the arrays that hold slots."""

    numbers: Mapping[str, str]  # variable → its short name
    places: Mapping[tuple[str, ex.Expression], int]  # (variable, slot's expression) → carried column
    nullable: frozenset[int]  # carried columns with NULLs in this task
    prefixes: Mapping[tuple[str, int], Prefix] = field(default_factory=dict)  # (variable, column) → its sums

    def value(self, variable: str, expression: ex.Expression, index: str) -> tuple[str, str | None]:
        """The code of a slot's value of the event at `index`, and of whether it is NULL."""
        known = self._known(variable, expression)
        if known is not None:
            return f"{known}[{index}]", None
        column = self.places[variable, expression]
        name = f"{self.numbers[variable]}_{column}"
        return f"c_{name}[{index}]", f"null_{name}[{index}]" if column in self.nullable else None

    def used_by(self, test: Test) -> list[str]:
        """The parameters a test needs."""
        names = []
        for slot in test.slots:
            known = self._known(slot.variable, slot.expression)
            if known is not None:
                names.append(known)
                continue
            column = self.places[slot.variable, slot.expression]
            names.append(f"c_{self.numbers[slot.variable]}_{column}")
            if column in self.nullable:
                names.append(f"null_{self.numbers[slot.variable]}_{column}")
        for fold in test.folds:
            prefix = self.prefix(fold)
            names += prefix[0].arrays(prefix[1]) if prefix is not None else []
        return names

    def prefix(self, fold: Fold) -> tuple[Prefix, str] | None:
        """The prefix sums that tell an aggregate of neighbours, and the name of their column."""
        if fold.slot is None or fold.function not in SUMMED:
            return None
        column = self.places[fold.variable, fold.slot.expression]
        prefix = self.prefixes.get((fold.variable, column))
        return None if prefix is None else (prefix, f"{self.numbers[fold.variable]}_{column}")

    def _known(self, variable: str, expression: ex.Expression) -> str | None:
        """The array of what is known of a row without having travelled; None for a carried column."""
        match expression:
            case RowOf():
                return f"row_{self.numbers[variable]}"
            case PlaceOf():
                return f"pos_{self.numbers[variable]}"
            case _:
                return None


@dataclass(frozen=True)
class Candidate:
    """The event an iterated variable may take next: its index, and how many the variable holds already."""

    variable: str
    index: str
    count: str


def offset_of(reference: SlotRef) -> int | None:
    """How far a reference is from its running index; None when its index is fixed."""
    match reference.index:
        case ex.Each.PLAIN:
            return 0
        case ex.Each.NEXT:
            return 1
        case ex.Running():
            return reference.index.offset
        case ex.Fixed() | ex.Edge():
            return None
        case _:
            assert_never(reference.index)


def is_testable_next(test: Test, variable: str) -> bool:
    """Whether a test can be made whenever an iterated variable takes an event: it has running references only."""
    own = [reference for reference in test.references if reference.variable == variable]
    return bool(own) and all(offset_of(reference) is not None for reference in own) and not _folds(test, variable)


def is_lasting(test: Test) -> bool:
    """Whether a test that fails on some events fails on more of them: nothing in it speaks of the whole bag."""
    return not test.folds and all(reference.index is not ex.Edge.LAST for reference in test.references)


def is_final(test: Test, variable: str) -> bool:
    """Whether only the whole bag of a variable decides a test (R2)."""
    return _folds(test, variable) or any(
        reference.variable == variable and (reference.index is ex.Edge.LAST or (offset_of(reference) or 0) > 0)
        for reference in test.references
    )


def _folds(test: Test, variable: str) -> bool:
    return any(fold.variable == variable for fold in test.folds)


class Checks:
    """Writes the code of tests; every call gives the condition that the lines before it have prepared."""

    def __init__(self, writer: Writer, columns: Columns) -> None:
        self.writer = writer
        self.columns = columns
        self.number = 0

    def fresh(self, stem: str) -> str:
        """A name that is not used yet."""
        self.number += 1
        return f"{stem}{self.number}"

    def check(self, test: Test, held: Mapping[str, Held], candidate: Candidate | None = None) -> str:
        """The condition under which a test lets the match live; "" when it always does."""
        if any(_is_never(reference, held) for reference in test.references):
            return ""
        folds = {fold: self.fold(fold, held) for fold in test.folds}
        loops, indices, exists = self._choices(test, held, candidate)

        def value(reference: SlotRef) -> tuple[str, str | None]:
            index = indices[reference.variable, reference.index]
            return self.columns.value(reference.variable, reference.slot.expression, index)

        condition = true_code(test, value, folds.__getitem__)
        if not loops:
            return f"(not ({' and '.join(exists)}) or {condition})" if exists else condition
        return self._for_all(loops, exists, condition)

    def _for_all(self, loops: list[tuple[str, str]], exists: list[str], condition: str) -> str:
        holds = self.fresh("holds")
        writer = self.writer
        writer.line(f"{holds} = True")
        depth = writer.depth
        for index, size in loops:
            writer.line(f"for {index} in range(1, {size} + 1):")
            writer.depth += 1
        writer.when(f"{' and '.join([*exists, f'not ({condition})'])}", f"{holds} = False", "break")
        for level in range(len(loops) - 1, 0, -1):
            writer.depth = depth + level
            writer.when(f"not {holds}", "break")
        writer.depth = depth
        return holds

    def fold(self, fold: Fold, held: Mapping[str, Held]) -> tuple[str, str | None]:
        """The names of an aggregate of what is held, and of whether it is NULL."""
        out = self.fresh("fold")
        what = held.get(fold.variable, One("-1", is_sure=False))

        def element(k: str) -> tuple[str, str | None]:
            assert fold.slot is not None
            index = what.index if isinstance(what, One) else what.at(k)
            return self.columns.value(fold.variable, fold.slot.expression, index)

        count = f"(1 if {what.index} >= 0 else 0)" if isinstance(what, One) else what.count
        statements = fold_statements(fold, out, element, count)
        prefix = self.columns.prefix(fold)
        if isinstance(what, Stretch) and prefix is not None:
            last = f"({what.offset} + {what.count})"
            statements = stretch_statements(fold.function, *prefix, out, what.offset, last, statements)
        self.writer.line(*statements)
        return out, f"{out}_null"

    def _choices(
        self, test: Test, held: Mapping[str, Held], candidate: Candidate | None
    ) -> tuple[list[tuple[str, str]], dict[tuple[str, ex.Index], str], list[str]]:
        """The loops over running indices, the code of each referenced event, and the conditions that they exist."""
        classes = _classes(test, held)
        loops: list[tuple[str, str]] = []
        exists: dict[str, None] = {}
        running: dict[str, str] = {}  # class → the code of its index
        for name, variables in classes.items():
            if candidate is not None and candidate.variable in variables:
                largest = max(0, *(offset_of(r) or 0 for r in test.references if r.variable == candidate.variable))
                running[name] = f"({candidate.count} + {1 - largest})"
                if largest > 0:  # an index counts from 1, whatever is added to it (R15)
                    exists[f"{running[name]} >= 1"] = None
                continue
            running[name] = self.fresh("q")
            sizes = [_size(held[variable]) for variable in sorted(variables)]
            loops.append((running[name], sizes[0] if len(sizes) == 1 else f"max({', '.join(sizes)})"))
        of_variable = {variable: running[name] for name, variables in classes.items() for variable in variables}
        indices: dict[tuple[str, ex.Index], str] = {}
        for reference in test.references:
            code, conditions = _event(reference, held, of_variable.get(reference.variable), candidate)
            indices[reference.variable, reference.index] = code
            exists |= dict.fromkeys(conditions)
        return loops, indices, list(exists)


def _is_never(reference: SlotRef, held: Mapping[str, Held]) -> bool:
    """Whether a reference means no event, whatever is bound: the conjunct is vacuous (R1, R15)."""
    what = held.get(reference.variable)
    if what is None:
        return True
    return isinstance(what, One) and isinstance(reference.index, ex.Fixed) and reference.index.number != 1


def _size(what: Held) -> str:
    return f"(1 if {what.index} >= 0 else 0)" if isinstance(what, One) else what.count


def _classes(test: Test, held: Mapping[str, Held]) -> dict[str, set[str]]:
    """The running indices that need a loop: variables that share one are together (R3).

    A variable of one event that shares its index with nobody needs none: its event is the only choice.
    """
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for written in ex.references_in(test.conjunct):
        if isinstance(written.index, ex.Running):
            parent[root(f"variable {written.variable}")] = root(f"letter {written.index.letter}")
    classes: dict[str, set[str]] = {}
    for reference in test.references:
        if offset_of(reference) is not None:
            classes.setdefault(root(f"variable {reference.variable}"), set()).add(reference.variable)
    return {
        name: variables
        for name, variables in classes.items()
        if len(variables) > 1
        or isinstance(held[next(iter(variables))], Many)
        or any(offset_of(r) not in (None, 0) for r in test.references if r.variable in variables)
    }


def _event(
    reference: SlotRef, held: Mapping[str, Held], running: str | None, candidate: Candidate | None
) -> tuple[str, list[str]]:
    """The code of the index of the event a reference means, and the conditions under which there is one."""
    what = held[reference.variable]
    offset = offset_of(reference)
    is_candidate = candidate is not None and candidate.variable == reference.variable
    if isinstance(what, One):
        conditions = [] if what.is_sure else [f"{what.index} >= 0"]
        if offset is not None and running is not None:
            conditions.append(f"{running} + {offset} == 1")
        return what.index, conditions
    if offset is not None:
        assert running is not None  # an iterated variable always has a class
        if is_candidate and candidate is not None and running == f"({candidate.count} + {1 - offset})":
            return candidate.index, []
        place = f"{running} + {offset - 1}"
        return what.at(place), [f"{place} >= 0", f"{place} < {what.count}"]
    match reference.index:
        case ex.Fixed():
            return what.at(str(reference.index.number - 1)), [f"{what.count} >= {reference.index.number}"]
        case ex.Edge.FIRST:
            return what.at("0"), [f"{what.count} >= 1"]
        case _:
            return what.at(f"{what.count} - 1"), [f"{what.count} >= 1"]
