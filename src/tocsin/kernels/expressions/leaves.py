"""What generated conditions are made of: the values of single events, and folds over bags."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.analysis.types import Kind
from tocsin.kernels.model import Slot
from tocsin.language import expressions as ex


@dataclass(frozen=True)
class RowOf(ex.Expression):
    """The row of an event in its task: two variables hold the same event when it is equal. It does not travel."""

    event: ex.Variable


@dataclass(frozen=True)
class PlaceOf(ex.Expression):
    """The place of an event among all, where positions are known. It does not travel either."""

    event: ex.Variable


@dataclass(frozen=True)
class SlotRef(ex.Expression):
    """The value of a slot for one event of its variable, chosen by the index; `kind` is the type of the value."""

    slot: Slot
    variable: str
    index: ex.Index
    kind: Kind


@dataclass(frozen=True)
class Fold(ex.Expression):
    """An aggregate of a slot over all events of its variable; without a slot the number of the events.

    `kind` is the type of the result, `distinct` whether equal values count once. `prepare` refuses those for which that
    makes a difference.
    """

    function: str
    slot: Slot | None
    variable: str
    distinct: bool
    kind: Kind


@dataclass(frozen=True)
class Text(ex.Expression):
    """A value that stands in the generated code already: its number, and whether it is NULL (None: it never is).

    `ranks` are the slots that a rank may come from.
    """

    text: str
    null: str | None
    kind: Kind
    ranks: tuple[Slot, ...] = ()


@dataclass(frozen=True)
class Test:
    """A conjunct that numbers can decide."""

    __test__ = False  # pytest takes the name for a test case

    conjunct: ex.Expression  # as the query has it
    tree: ex.Expression  # the same with `SlotRef` and `Fold` in place of all that speaks of events
    slots: tuple[Slot, ...]  # what it needs of events, each once
    # The events it speaks of outside aggregates. Where one of them does not exist the conjunct holds (R1).
    references: tuple[SlotRef, ...]
    folds: tuple[Fold, ...]  # its aggregates, each once
