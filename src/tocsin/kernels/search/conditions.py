"""Code for conjuncts: which events a reference means, and "for all" around the test (R1, R3, R15, R21).

A test is made in one of two ways. *Whole*: all its variables are decided, and every choice of running indices is tried.
*Next*: one iterated variable is about to take one more event, number N, and everything else is decided; then exactly
one choice of its running index is new, the one whose largest reference is that event: i = N − max(0, largest offset).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tocsin.expressions import interpret
from tocsin.kernels.compile import Writer
from tocsin.kernels.expressions.code import true_code
from tocsin.kernels.expressions.folds import fold_statements
from tocsin.kernels.expressions.leaves import Fold, InTask, SlotRef, Test
from tocsin.kernels.expressions.prefixes import SUMMED, Prefix, stretch_statements
from tocsin.kernels.model import Slot
from tocsin.kernels.search.state import Held, Many, One, Stretch, size_of
from tocsin.language import expressions as ex


@dataclass(frozen=True)
class Columns:
    """The names of the arrays that hold slots."""

    numbers: Mapping[str, str]  # variable → its short name
    places: Mapping[tuple[str, ex.Expression], int]  # (variable, slot's expression) → carried column
    nullable: frozenset[int]  # carried columns with NULLs in this task
    prefixes: Mapping[tuple[str, int], Prefix] = field(default_factory=dict)  # (variable, column) → its sums

    def arrays(self, variable: str, expression: ex.Expression) -> tuple[str, str | None]:
        """The arrays of a slot's values and of which of them are NULL; None: none is."""
        if isinstance(expression, InTask):
            return f"{expression.what}_{self.numbers[variable]}", None
        column = self.places[variable, expression]
        name = f"{self.numbers[variable]}_{column}"
        return f"c_{name}", f"null_{name}" if column in self.nullable else None

    def prefix(self, fold: Fold) -> tuple[Prefix, str] | None:
        """The prefix sums that tell an aggregate of neighbours, and the name of their column."""
        if fold.slot is None or fold.function not in SUMMED:
            return None
        column = self.places[fold.variable, fold.slot.expression]
        prefix = self.prefixes.get((fold.variable, column))
        return None if prefix is None else (prefix, f"{self.numbers[fold.variable]}_{column}")


@dataclass(frozen=True)
class Candidate:
    """The event an iterated variable may take next: its index, and how many the variable holds already."""

    variable: str
    index: str
    count: str


def is_testable_next(test: Test, variable: str) -> bool:
    """Whether a test can be made whenever an iterated variable takes an event: it has running references only."""
    own = [ex.offset_of(reference.index) for reference in test.references if reference.variable == variable]
    return bool(own) and None not in own and all(fold.variable != variable for fold in test.folds)


class Checks:
    """Writes the code of tests; every call gives the condition that the lines before it have prepared.

    `parameters` grow by the arrays that the code reads.
    """

    def __init__(self, writer: Writer, columns: Columns, parameters: dict[str, None]) -> None:
        self.writer = writer
        self.columns = columns
        self.parameters = parameters
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

        def texts(leaf: SlotRef | Fold) -> tuple[str, str | None]:
            if isinstance(leaf, Fold):
                return folds[leaf]
            return self._value(leaf.slot, indices[leaf.variable, leaf.index])

        condition = true_code(test.tree, texts)
        if not loops:
            return f"(not ({' and '.join(exists)}) or {condition})" if exists else condition
        return self._for_all(loops, exists, condition)

    def _for_all(self, loops: list[tuple[str, str]], exists: list[str], condition: str) -> str:
        holds, writer = self.fresh("holds"), self.writer

        def nested(left: list[tuple[str, str]]) -> None:
            if not left:
                writer.when(" and ".join([*exists, f"not ({condition})"]), f"{holds} = False", "break")
                return
            (index, size), *inner = left
            with writer.block(f"for {index} in range(1, {size} + 1):"):
                nested(inner)
                if inner:
                    writer.when(f"not {holds}", "break")

        writer.line(f"{holds} = True")
        nested(loops)
        return holds

    def _value(self, slot: Slot, index: str) -> tuple[str, str | None]:
        """The code of a slot's value of the event at an index, and of whether it is NULL."""
        values, nulls = self.columns.arrays(slot.variable, slot.expression)
        self.parameters |= dict.fromkeys(filter(None, (values, nulls)))
        return f"{values}[{index}]", None if nulls is None else f"{nulls}[{index}]"

    def fold(self, fold: Fold, held: Mapping[str, Held]) -> tuple[str, str | None]:
        """The names of an aggregate of what is held, and of whether it is NULL."""
        out = self.fresh("fold")
        what = held.get(fold.variable, One("-1", is_sure=False))

        def element(k: str) -> tuple[str, str | None]:
            assert fold.slot is not None
            return self._value(fold.slot, what.index if isinstance(what, One) else what.at(k))

        statements = fold_statements(fold, out, element, size_of(what))
        prefix = self.columns.prefix(fold)
        if isinstance(what, Stretch) and prefix is not None:
            self.parameters |= dict.fromkeys(prefix[0].arrays(prefix[1]))
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
        of_variable: dict[str, str] = {}  # the code of its running index
        for variables in classes:
            if candidate is not None and candidate.variable in variables:
                largest = max(
                    0, *(ex.offset_of(r.index) or 0 for r in test.references if r.variable == candidate.variable)
                )
                running = f"({candidate.count} + {1 - largest})"
                if largest > 0:  # an index counts from 1, whatever is added to it (R15)
                    exists[f"{running} >= 1"] = None
            else:
                running = self.fresh("q")
                sizes = [size_of(held[variable]) for variable in variables]
                loops.append((running, sizes[0] if len(sizes) == 1 else f"max({', '.join(sizes)})"))
            of_variable |= dict.fromkeys(variables, running)
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


def _classes(test: Test, held: Mapping[str, Held]) -> list[list[str]]:
    """The variables of each running index that needs a loop: those that share one are together (R3).

    A variable of one event that shares its index with nobody needs none: its event is the only choice.
    """
    running = dict.fromkeys(r.variable for r in test.references if ex.offset_of(r.index) is not None)
    known = interpret.index_classes((*ex.references_in(test.conjunct), *test.references))
    classes = dict.fromkeys(tuple(sorted(names & running.keys())) for one in running for names in known if one in names)
    return [
        list(variables)
        for variables in classes
        if len(variables) > 1
        or isinstance(held[variables[0]], Many)
        or any(ex.offset_of(r.index) not in (None, 0) for r in test.references if r.variable in variables)
    ]


def _event(
    reference: SlotRef, held: Mapping[str, Held], running: str | None, candidate: Candidate | None
) -> tuple[str, list[str]]:
    """The code of the index of the event a reference means, and the conditions under which there is one."""
    what = held[reference.variable]
    offset = ex.offset_of(reference.index)
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
