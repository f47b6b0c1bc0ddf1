"""Iterations as copies: `T{2,3} b` is `SEQ(T b[1], T b[2])` or `SEQ(T b[1], T b[2], T b[3])`.

A condition over bags becomes plain conditions over copies: one for each choice of indices it can make (R3, R15). What
refers to an event that is not there vanishes, because it holds vacuously (R1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import Alternative, alternatives
from tocsin.language import expressions as ex

Bags = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Unrolled:
    """One way to satisfy a pattern, every variable of which holds one event."""

    alternative: Alternative  # over the copies; its absences are those of the pattern
    original: Alternative  # over the pattern's own variables, as the temporal network has it
    bags: Bags  # the bound variables of the pattern, each with its copies in order of time


def copy_name(variable: str, number: int) -> str:
    """The name of a copy: `b[2]`."""
    return f"{variable}[{number}]"


def unrolled(query: alg.Query) -> tuple[Unrolled, ...]:
    """All ways to satisfy a query whose iterations are bounded and of single events.

    Raises `TooManyAlternativesError` when there are more than `MOST_ALTERNATIVES`.
    """
    unroller = _Unroller(query)
    node = unroller.node(query.pattern)
    known: dict[tuple[object, ...], list[Alternative]] = {}
    for original in alternatives(query.pattern):
        known.setdefault((original.types, original.before, original.absences), []).append(original)
    found = []
    for alternative in alternatives(node):
        absences = tuple(unroller.originals[absence] for absence in alternative.absences)
        stems = [unroller.stems.get(name, name) for name in alternative.variables]
        bags: dict[str, tuple[str, ...]] = {}
        for stem, name in zip(stems, alternative.variables, strict=True):
            bags[stem] = (*bags.get(stem, ()), name)
        stem_of = dict(zip(alternative.variables, stems, strict=True))
        types = tuple(dict.fromkeys((stem_of[name], kind) for name, kind in alternative.types))
        before = frozenset((stem_of[x], stem_of[y]) for x, y in alternative.before if stem_of[x] != stem_of[y])
        several = {stem for stem, names in bags.items() if len(names) > 1}
        # A variable that is iterated in one OR branch and not in another may leave two, which differ in nothing else.
        original = next(each for each in known[types, before, absences] if several <= each.iterated)
        found.append(Unrolled(replace(alternative, around=absences), original, bags))
    return tuple(found)


class _Unroller:
    """Writes out the iterations of a pattern, and remembers what each new node comes from."""

    def __init__(self, query: alg.Query) -> None:
        self.iterated = {name for name, kind in query.variables.items() if kind.iterated}
        self.originals: dict[alg.Absent, alg.Absent] = {}
        self.stems: dict[str, str] = {}

    def node(self, node: alg.Node) -> alg.Node:
        match node:
            case alg.Event() if node.variable in self.iterated:
                return self._copy(node, 1)
            case alg.Repeat(part=alg.Event() as event) if node.most is not None and node.most > 1:
                runs = tuple(self._run(event, number) for number in range(max(1, node.least), node.most + 1))
                several = runs[0] if len(runs) == 1 else alg.Any(runs)
                return several if node.least > 0 else alg.Repeat(several, 0, 1)
            case alg.Absent():
                made = node.map_children(self.node)
                self.originals[made] = node
                return made
            case alg.Sequence() | alg.All() | alg.Any() | alg.Repeat() | alg.Filter() | alg.Within():
                return node.map_children(self.node)
            case alg.Event():
                return node
            case _:
                raise errors.unknown_node(node, "The plan of joins")

    def _run(self, event: alg.Event, number: int) -> alg.Node:
        copies = tuple(self._copy(event, place) for place in range(1, number + 1))
        return copies[0] if number == 1 else alg.Sequence(copies)

    def _copy(self, event: alg.Event, place: int) -> alg.Event:
        name = copy_name(event.variable, place)
        self.stems[name] = event.variable
        return replace(event, variable=name)


# --- conditions over bags -------------------------------------------------------------------------


def instances(conjunct: ex.Expression, bags: Bags) -> tuple[ex.Expression, ...]:
    """The plain conditions a conjunct stands for: all must hold; none, when it holds vacuously.

    Aggregates keep the name of the bag: they have a value also when it is empty (R18).

    >>> this, last = (ex.Attribute("b", ("x",), ex.Running("i", offset)) for offset in (0, -1))
    >>> rising = ex.Comparison("<", last, this)
    >>> [sorted(ex.variables_in(one)) for one in instances(rising, {"b": ("b[1]", "b[2]", "b[3]")})]
    [['b[1]', 'b[2]'], ['b[2]', 'b[3]']]
    """
    references = list(ex.references_in(conjunct))
    found: dict[ex.Expression, None] = {}
    for choice in _choices(references, bags):
        events = {reference: chosen(reference, bags, choice) for reference in references}
        if None not in events.values():
            found[_resolved(conjunct, events)] = None
    return tuple(found)


def needs(condition: ex.Expression, bags: Bags) -> frozenset[str]:
    """The copies that an instance mentions: for an aggregate, those of the whole bag."""
    copies = {copy for names in bags.values() for copy in names}
    mentioned = ex.variables_in(condition)
    in_bags = {copy for name in mentioned if name not in copies for copy in bags.get(name, ())}
    return frozenset(mentioned & copies) | in_bags


def _choices(references: list[ex.Attribute], bags: Bags) -> Iterator[dict[str, int]]:
    class_of = _classes(references)
    sizes: dict[str, int] = {}
    for variable, name in class_of.items():
        sizes[name] = max(sizes.get(name, 0), len(bags.get(variable, ())))
    for indices in product(*(range(1, size + 1) for size in sizes.values())):
        by_class = dict(zip(sizes, indices, strict=True))
        yield {variable: by_class[name] for variable, name in class_of.items()}


def _classes(references: Collection[ex.Attribute]) -> dict[str, str]:
    """Variables with a running index → the name of the index; one letter is one index, and so is one variable (R3)."""
    running = [reference for reference in references if ex.offset_of(reference.index) is not None]
    class_of = {f"variable {reference.variable}": f"variable {reference.variable}" for reference in running}
    for reference in running:
        if isinstance(reference.index, ex.Running):
            letter = f"letter {reference.index.letter}"
            merged = {class_of[f"variable {reference.variable}"], class_of.setdefault(letter, letter)}
            class_of = {name: letter if known in merged else known for name, known in class_of.items()}
    return {reference.variable: class_of[f"variable {reference.variable}"] for reference in running}


def chosen(reference: ex.Attribute, bags: Bags, choice: Mapping[str, int]) -> str | None:
    """The copy a reference means, given the running indices; None when there is none."""
    bag = bags.get(reference.variable, ())
    match reference.index:
        case ex.Fixed():
            index = reference.index.number
        case ex.Edge.FIRST:
            index = 1
        case ex.Edge.LAST:
            index = len(bag)
        case _:
            index = choice.get(reference.variable, 1) + (ex.offset_of(reference.index) or 0)
    return bag[index - 1] if 1 <= index <= len(bag) else None


def _resolved(node: ex.Expression, events: Mapping[ex.Attribute, str | None]) -> ex.Expression:
    if isinstance(node, ex.Aggregate | ex.Every):
        return node
    if isinstance(node, ex.Attribute):
        return replace(node, variable=events[node] or node.variable, index=ex.Each.PLAIN)
    return node.map_children(lambda child: _resolved(child, events))
