"""Registers as numbers: what each holds, and the statements that guards, updates and derived events are.

Where one of them is no number (a text that is computed, a decimal, a user-defined aggregate), `objects` holds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from tocsin.analysis.attributes import Schema
from tocsin.analysis.types import DataType, Kind
from tocsin.automata import expressions as rx
from tocsin.automata.model import Update
from tocsin.errors import UnknownAttributeError
from tocsin.kernels.compile import Writer
from tocsin.kernels.expressions.code import condition_code, value_code
from tocsin.kernels.expressions.folds import BOOLEAN, ZEROS, Element, Parts, element, storage
from tocsin.kernels.expressions.leaves import NotNumbers, Value
from tocsin.kernels.expressions.slots import HELD, Families
from tocsin.kernels.model import Carried, Held, Slot
from tocsin.kernels.runs.automaton_tables import Step
from tocsin.language import expressions as ex

EVENT = "#e"  # what carried expressions call the event
_ELEMENTS = (rx.Zero, rx.Lift, rx.Combine)


@dataclass(frozen=True)
class Scalar:
    """A register that holds one value, or NULL."""

    kind: Kind
    ranks: tuple[Slot, ...] = ()

    @property
    def parts(self) -> dict[str, str]:
        """Its parts, and how each is held."""
        return {"value": storage(self.kind), "null": BOOLEAN}


@dataclass
class Lines:
    """Statements that are written before an expression: every value that is used again gets a name."""

    writer: Writer = field(default_factory=Writer)
    prefix: str = "t"
    count: int = 0

    def named(self, text: str) -> str:
        """A name for a text."""
        name = f"{self.prefix}{self.count}"
        self.count += 1
        self.writer.line(f"{name} = {text}")
        return name


class Attributes:
    """The attributes of the event read, as columns: all that one query's functions read have one numbering."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self.schemas = schemas
        self.families = Families()
        self.slots: dict[tuple[str, ...], Slot] = {}

    def types(self, path: tuple[str, ...]) -> dict[str, DataType]:
        """The type of an attribute in every event type that has it."""
        found = {}
        for name, schema in self.schemas.items():
            with suppress(UnknownAttributeError):
                found[name] = schema.lookup(path)
        return found

    def text(self, node: ex.Attribute) -> Value:
        """An attribute of event `i`; raises `NotNumbers` when it is no number."""
        kinds = {one.kind for one in self.types(node.path).values()} or {Kind.NULL}
        kind = kinds.pop()
        if kind is Kind.NULL and not kinds:
            return Value("0", "True", kind)
        if kinds or kind not in HELD:
            raise NotNumbers
        if node.path not in self.slots:
            self.slots[node.path] = Slot(EVENT, ex.Attribute(EVENT, node.path), HELD[kind])
            if HELD[kind] is Held.RANK:
                self.families.of(self.slots[node.path])
        slot = self.slots[node.path]
        place = list(self.slots).index(node.path)
        return Value(f"c{place}[i]", f"n{place}[i]", kind, (slot,) if slot.held is Held.RANK else ())

    def carried(self) -> tuple[Carried, ...]:
        """The columns, in the order of their numbers."""
        return tuple(
            Carried(
                slot.held,
                self.families.of(slot) if slot.held is Held.RANK else None,
                dict.fromkeys(self.types(path), slot.expression),
            )
            for path, slot in self.slots.items()
        )


class Registers:
    """The registers of some updates, from every step, and how expressions over them are written.

    `others` are the expressions that read them besides. Raises `NotNumbers` when not all of them are numbers.
    """

    def __init__(self, updates: Sequence[Update], others: Iterable[ex.Expression], attributes: Attributes) -> None:
        self.attributes = attributes
        self.numbers = {name: number for number, name in enumerate(dict.fromkeys(name for name, _ in updates))}
        self.held: dict[str, Scalar | Element] = {}
        self._settle(updates)
        for other in others:  # so that all columns are known before any text is written
            self.value(other, Lines())

    # --- kinds ---

    def _settle(self, updates: Sequence[Update]) -> None:
        """Kinds flow from the steps that begin a match to all others, until nothing changes."""
        monoids: dict[str, str] = {}
        operands: dict[str, list[ex.Expression]] = {}
        for name, value in updates:
            if isinstance(value, _ELEMENTS):
                monoids[name] = value.monoid
                operands.setdefault(name, []).extend(one.operand for one in _spine(value) if isinstance(one, rx.Lift))
        scalars = {name for name, _ in updates} - set(monoids)
        self.held = {name: Scalar(Kind.NULL) for name in scalars}
        waiting = dict(monoids)
        is_changed = True
        while is_changed:
            is_changed = False
            for name in list(waiting):
                if not self._reads_unknown(operands[name]):
                    self.held[name] = self._element(waiting.pop(name), operands[name])
                    is_changed = True
            for name, value in updates:
                if name in scalars and not self._reads_unknown([value]):
                    is_changed |= self._widen(name, self.value(value, Lines()))
        if waiting:
            raise NotNumbers

    def _reads_unknown(self, expressions: Iterable[ex.Expression]) -> bool:
        return any(name not in self.held for one in expressions for name in rx.registers_in(one))

    def _element(self, monoid: str, operands: Iterable[ex.Expression]) -> Element:
        if monoid == "count":
            return element(monoid, Kind.INTEGER, with_nulls=True)
        found = [self.value(one, Lines()) for one in operands]
        kinds = {one.kind for one in found} - {Kind.NULL}
        if len(kinds) > 1:
            raise NotNumbers
        ranks = [slot for one in found for slot in one.ranks]
        if ranks:  # an extreme of texts: what comes out may be compared with anything that went in
            raise NotNumbers
        return element(monoid, next(iter(kinds), Kind.NULL), with_nulls=True)

    def _widen(self, name: str, value: Value) -> bool:
        old = self.held[name]
        assert isinstance(old, Scalar)
        kinds = {old.kind, value.kind} - {Kind.NULL}
        if kinds == {Kind.INTEGER, Kind.DOUBLE}:
            kinds = {Kind.DOUBLE}
        if len(kinds) > 1:
            raise NotNumbers
        ranks = tuple(dict.fromkeys((*old.ranks, *value.ranks)))
        for slot in ranks[1:]:
            self.attributes.families.unite(ranks[0], slot)
        self.held[name] = Scalar(next(iter(kinds), Kind.NULL), ranks)
        return self.held[name] != old

    # --- what a search and a replay are written with ---

    @cached_property
    def arrays(self) -> dict[str, str]:
        """The arrays of live runs, and how they are held: computed once, and read for every register of every step."""
        return {f"live_{full}": held for name in self.numbers for full, held in self.parts(name).values()}

    @property
    def parameters(self) -> list[str]:
        """The inputs of a function that computes them: the columns, values and which are NULL."""
        return [name for place in range(len(self.attributes.slots)) for name in (f"c{place}", f"n{place}")]

    def loaded(self, names: Iterable[str]) -> list[str]:
        """Statements that read the registers of live run `k`, as Python's own numbers: they neither wrap nor warn."""
        return [f"{full} = {held}(live_{full}[cur, k])" for name in names for full, held in self.parts(name).values()]

    def holds(self, step: Step, lines: Lines) -> str:
        """A text that is true when the guard of a step is TRUE."""
        assert step.guard is not None
        return condition_code(self._leaves(step.guard, lines), self.attributes.families.unite)

    def after(self, step: Step, names: Iterable[str], lines: Lines) -> dict[str, str]:
        """The registers of these names after a step: part's name → a text."""
        new = self.assigned(step.updates, lines)
        return {full: new.get(full, full) for name in names for full, _ in self.parts(name).values()}

    @property
    def initial(self) -> list[str]:
        """Statements that give every part a value of its kind."""
        return [f"{full} = {ZEROS[held]}" for name in self.numbers for full, held in self.parts(name).values()]

    def field(self, step: Step, made: int, place: int, lines: Lines) -> tuple[str, str, Kind]:
        """A field of a derived event that a step makes: its value, whether it is NULL, and its kind."""
        fields = step.made[made][1].fields
        assert fields is not None
        found = self.value(fields[place][1], lines)
        return found.text, found.null, found.kind

    def replayed(self, step: Step, lines: Lines) -> list[str]:
        """Statements that change the registers of derived events as a step does."""
        return [f"{full} = {text}" for full, text in self.assigned(step.replays, lines).items()]

    # --- texts ---

    def parts(self, name: str) -> dict[str, tuple[str, str]]:
        """Part → its name in the code, and how it is held."""
        return {part: (f"r{self.numbers[name]}_{part}", held) for part, held in self.held[name].parts.items()}

    def value(self, expression: ex.Expression, lines: Lines) -> Value:
        """The value of an expression."""
        return value_code(self._leaves(expression, lines), self.attributes.families.unite)

    def assigned(self, updates: Sequence[Update], lines: Lines) -> dict[str, str]:
        """The parts of registers after updates that happen side by side: part's name → a name in `lines`."""
        new: dict[str, str] = {}
        for name, value in updates:
            held = self.held[name]
            if isinstance(held, Element):
                texts = self._element_parts(value, held, lines)
            else:
                found = self.value(value, lines)
                text = found.text
                if storage(held.kind) != storage(found.kind):
                    text = f"float({text})" if found.kind is not Kind.NULL else ZEROS[storage(held.kind)]
                texts = {"value": text, "null": found.null}
            for part, (full, _) in self.parts(name).items():
                new[full] = lines.named(texts[part])
        return new

    def _element_parts(self, node: ex.Expression, held: Element, lines: Lines) -> Parts:
        match node:
            case rx.Zero():
                return held.zero
            case rx.Register() if self.held[node.name] == held:
                return {part: full for part, (full, _) in self.parts(node.name).items()}
            case rx.Lift():
                return self._added(held.zero, node, held, lines)
            case rx.Combine(right=rx.Lift() as more):
                return self._added(self._element_parts(node.left, held, lines), more, held, lines)
            case _:
                raise NotNumbers

    def _added(self, old: Parts, node: rx.Lift, held: Element, lines: Lines) -> Parts:
        if node.monoid == "count":
            return held.add(old, "0", "False")
        value = self.value(node.operand, lines)
        kept = {part: lines.named(text) for part, text in old.items()}
        if value.kind is Kind.NULL:
            return held.add(kept, "0", "True")
        if value.ranks or element(node.monoid, value.kind, with_nulls=True) is not held:
            raise NotNumbers  # a text, or a number of another kind than what the register holds
        return held.add(kept, lines.named(value.text), lines.named(value.null))

    def _leaves(self, node: ex.Expression, lines: Lines) -> ex.Expression:
        match node:
            case ex.Attribute(variable=rx.EVENT):
                return self.attributes.text(node)
            case rx.Register():
                held = self.held[node.name]
                if not isinstance(held, Scalar):
                    raise NotNumbers
                parts = self.parts(node.name)
                if held.kind is Kind.NULL:
                    return Value("0", "True", held.kind)
                return Value(parts["value"][0], parts["null"][0], held.kind, held.ranks)
            case rx.Finish():
                return self._finished(node, lines)
            case rx.Zero() | rx.Lift() | rx.Combine() | rx.Identical() | rx.Precedes():
                raise NotNumbers
            case rx.EventTime() | rx.IsLater() | rx.TypeIs():
                raise NotNumbers
            case _:
                return node.map_children(lambda child: self._leaves(child, lines))

    def _finished(self, node: rx.Finish, lines: Lines) -> Value:
        held = self._held_by(node.operand, node.monoid)
        parts = {part: lines.named(text) for part, text in self._element_parts(node.operand, held, lines).items()}
        found = held.result(parts)
        # Named, so that a condition that mentions it twice computes it once.
        null = found.null if found.null == "False" else lines.named(found.null)
        return replace(found, text=lines.named(found.text), null=null)

    def _held_by(self, node: ex.Expression, monoid: str) -> Element:
        """The element that an expression is: that of its register, or of what is lifted."""
        spine = list(_spine(node))
        if isinstance(spine[-1], rx.Register):
            held = self.held[spine[-1].name]
            if not isinstance(held, Element):
                raise NotNumbers
            return held
        return self._element(monoid, [one.operand for one in spine if isinstance(one, rx.Lift)])


def _spine(node: ex.Expression) -> Iterator[ex.Expression]:
    """The operands that an element combines, the latest first; a register or the identity comes last."""
    while isinstance(node, rx.Combine):
        yield node.right
        node = node.left
    yield node
