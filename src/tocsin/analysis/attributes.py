"""The attributes of events: of an event type, and of the events that a variable holds at every place of a pattern.

In SASE+ a variable holds events of the types it is declared with, and every type must have the attributes that the
query asks for. In ACEL `AS` gathers events of several types, AGG adds new ones, and PROJECT leaves only some of their
attributes; an attribute must be there in one of them and is NULL in the others. `Binder.held` walks the pattern once,
from the events up, and checks every condition and every aggregate where it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis import types
from tocsin.analysis.inference import Environment, Inference
from tocsin.analysis.names import RESERVED_PREFIX, unknown_variable
from tocsin.analysis.result_types import aggregate_type, column_type, common_type
from tocsin.analysis.types import DataType, Kind, from_spark_name
from tocsin.language import expressions as ex
from tocsin.source import Place, Where


@dataclass(frozen=True)
class Schema:
    """The attributes of one kind of event."""

    type: str  # the event type; of an event that AGG makes, its variable
    # The type of each attribute; NULL for one that PROJECT names and the event does not have.
    attributes: Mapping[str, DataType]
    owner: str | None = None  # other words for what has them, such as a derived event
    is_derived: bool = False  # whether AGG makes such events

    @classmethod
    def of(cls, event_type: str, attributes: Mapping[str, str | DataType]) -> Schema:
        """From names of attributes and Spark's names of their types."""
        return cls(
            event_type,
            {name: from_spark_name(given) if isinstance(given, str) else given for name, given in attributes.items()},
        )

    def is_exactly(self, other: Schema) -> bool:
        """Whether two schemas are equal in the widths, digits and zones of their attributes too."""
        return self == other and all(kind.is_exactly(other.attributes[name]) for name, kind in self.attributes.items())

    def brings(self, attribute: str) -> bool:
        """Whether the events have a column for an attribute."""
        found = self.attributes.get(attribute)
        return found is not None and not (found.is_null and found.native is None)

    def inside(self, path: tuple[str, ...]) -> DataType | None:
        """The type of an attribute, or of a field within one; None where there is none."""
        known, found = dict(self.attributes), None
        for name in path:
            found = known.get(name)
            known = {} if found is None else dict(found.fields)
        return found

    def lookup(self, path: tuple[str, ...], where: Where = None) -> DataType:
        """The type of an attribute, or of a field within one.

        >>> print(Schema.of("Ride", {"place": "struct<lat:double>"}).lookup(("place", "lat")))
        double
        """
        owner, known, found = self.owner or f"Event type `{self.type}`", dict(self.attributes), types.NULL
        shown = "it has" if self.owner else f"`{self.type}` has"
        for depth, name in enumerate(path):
            if name not in known:
                what = "attribute" if depth == 0 else "field"
                raise errors.UnknownAttributeError(
                    f"{owner} has no {what} `{name}`.",
                    where=_segment(where, path, depth),
                    hint=errors.did_you_mean(name, known, shown),
                )
            found = known[name]
            known = dict(found.fields)
            inner = ".".join(path[: depth + 1])
            shown = f"`{inner}` is {found.describe()}; its fields"
            owner = f"`{inner}` of {self.owner or f'event type `{self.type}`'}"
        return found


def attributes_of(schemas: Iterable[Schema]) -> tuple[str, ...]:
    """All attributes that the events of a variable may have, in order."""
    return tuple(dict.fromkeys(name for schema in schemas for name in schema.attributes))


def types_with(schemas: Iterable[Schema], attribute: str) -> list[str]:
    """The event types whose events bring an attribute themselves."""
    found = (schema for schema in schemas if not schema.is_derived and schema.brings(attribute))
    return list(dict.fromkeys(schema.type for schema in found))


def column_types(variable: str, schemas: Iterable[Schema], attributes: Iterable[str]) -> dict[str, DataType]:
    """The exact types of some attributes of a variable."""
    known = tuple(schemas)
    found: dict[str, DataType] = {}
    for name in attributes:
        kinds = [schema.attributes[name] for schema in known if name in schema.attributes]
        common = column_type(kinds)
        if common is None:
            one, other = list(dict.fromkeys(kind.exact for kind in kinds if not kind.is_null))[:2]
            raise errors.TypeMismatchError(
                f"`{variable}` has two event types, whose attribute `{name}` is {one} in one and {other} in the other.",
                hint="convert one of them, or use two variables.",
            )
        found[name] = common
    return found


def _segment(where: Where, path: tuple[str, ...], depth: int) -> Where:
    """The part of `b.place.lat` that names one step of the path, when it is written plainly."""
    text = ".".join(path)
    if not isinstance(where, Place) or not where.source.text[where.start : where.end].endswith(text):
        return where
    start = where.end - len(".".join(path[depth:]))
    return Place(where.source, start, start + len(path[depth]))


# --- the events of a variable ---------------------------------------------------------------------

VariableSchemas = Mapping[str, tuple[Schema, ...]]


@dataclass(frozen=True)
class Binder:
    """Binds the expressions of a pattern to schemas, and collects what is wrong."""

    schemas: Mapping[str, Schema]  # the event types that are known
    problems: errors.Problems
    is_strict: bool  # whether every type a variable may hold must have an attribute, or one of them
    checks: bool = True  # whether conditions are checked on the way

    def held(self, node: alg.Node) -> VariableSchemas:
        """The schemas of the events of each variable; the conditions below are checked on the way."""
        match node:
            case alg.Event() | alg.NextOf():
                return {node.variable: self._of_type(node.type)}
            case alg.Both():
                first, *_ = [self.held(part) for part in node.parts]
                return first
            case alg.Filter():
                inner = self.held(node.part)
                if self.checks:
                    self.inference(inner).condition(node.condition)
                return inner
            case alg.Bind():
                inner = self.held(node.part)
                return {**inner, node.variable: _distinct(shape for held in inner.values() for shape in held)}
            case alg.Project():
                inner = self.held(node.part)
                return {
                    name: inner[name] if attributes is None else self._trimmed(node, name, attributes, inner)
                    for name, attributes in node.kept
                    if name in inner
                }
            case alg.Derive():
                inner = self.held(node.part)
                return {**inner, node.variable: (*inner.get(node.variable, ()), self._derived(node, inner))}
            case alg.Gather():
                return {**self.held(node.part), node.variable: self._of_type(node.type)}
            case alg.Emit():
                self.held(node.part)
                return {node.type: self._of_type(node.type)}
            case alg.Repeat() | alg.RepeatAdjacent() | alg.Absent() | alg.Within():
                return self.held(node.part)
            case alg.Sequence() | alg.Adjacent() | alg.All() | alg.Any():
                found: dict[str, tuple[Schema, ...]] = {}
                for part in node.parts:
                    for name, shapes in self.held(part).items():
                        found[name] = _distinct((*found.get(name, ()), *shapes))
                return found
            case _:
                raise errors.unknown_node(node, "The check of attributes")

    def check_around(self, pattern: alg.Node, held: VariableSchemas) -> None:
        """Check the conditions of absences and gatherings, in which their own variable has a meaning, too."""
        for around in alg.around_in(pattern):
            if around.condition is not None:
                own = {**held, around.variable: self._of_type(around.type)}
                self.inference(own).condition(around.condition)

    def inference(self, held: VariableSchemas) -> Inference:
        """The inference of types where the variables hold these events."""
        return Inference(Environment(lambda reference: self.attribute(reference, held)), self.problems)

    def attribute(self, reference: ex.Attribute, held: VariableSchemas) -> DataType:
        """The type of a reference."""
        if reference.variable not in held:
            raise unknown_variable("The pattern has", reference.variable, held, reference.where, "the pattern has")
        found: dict[str, DataType] = {}
        problems = errors.Problems()
        for schema in held[reference.variable]:
            try:
                found[schema.type] = schema.lookup(reference.path, reference.where)
            except errors.UnknownAttributeError as problem:
                problems.append(problem)
        if self.is_strict or not found:
            errors.raise_all(problems if self.is_strict else _joined(reference, held, problems))
        common = common_type(found.values())
        if common is None:
            raise errors.TypeMismatchError(
                f"`{reference.variable}.{reference.name}` is {differing(found)}.",
                where=reference.where,
                hint=f"give each type its own variable in place of `{reference.variable}`, or convert one.",
            )
        return common

    def exact(self, reference: ex.Attribute, held: VariableSchemas) -> DataType:
        """The type of the column that holds an attribute of the events of a variable, once it is checked."""
        kinds = [kind for schema in held[reference.variable] if (kind := schema.inside(reference.path)) is not None]
        return column_type(kinds) or self.attribute(reference, held)

    def _of_type(self, event_type: str | None) -> tuple[Schema, ...]:
        """The schemas that events of a type have: of any type all, of a type that is not known none."""
        if event_type is None:
            return tuple(self.schemas.values())
        return (self.schemas[event_type],) if event_type in self.schemas else ()

    def _trimmed(
        self, node: alg.Project, name: str, attributes: tuple[str, ...], held: VariableSchemas
    ) -> tuple[Schema, ...]:
        inference = self.inference(held)
        for attribute in attributes:
            if held[name] and self.checks:
                inference.type_of(ex.Attribute(name, (attribute,), where=node.where))
        return _distinct(
            Schema(
                shape.type,
                {attribute: shape.attributes.get(attribute, types.NULL) for attribute in attributes},
                f"What PROJECT leaves of `{name}`",
            )
            for shape in held[name]
        )

    def _derived(self, node: alg.Derive, held: VariableSchemas) -> Schema:
        return Schema(
            node.variable,
            {fold.name: self._folded(as_expression(fold, node), held) for fold in node.folds},
            f"The new event of AGG `{node.variable}`",
            is_derived=True,
        )

    def _folded(self, node: ex.Aggregate, held: VariableSchemas) -> DataType:
        """The exact type of a value that AGG computes."""
        before = len(self.problems)
        found = self.inference(held).type_of(node)
        if len(self.problems) > before or not isinstance(node.argument, ex.Attribute):
            return found
        return aggregate_type(node, self.exact(node.argument, held))


def variable_schemas(pattern: alg.Node, schemas: Mapping[str, Schema]) -> VariableSchemas:
    """The schemas of the events of every variable of a pattern that was bound before."""
    return Binder(schemas, errors.Problems(), is_strict=False, checks=False).held(pattern)


def attributes_by_variable(query: alg.Query, schemas: Mapping[str, Schema]) -> dict[str, tuple[str, ...]]:
    """The attributes that the events of each variable may have."""
    held = variable_schemas(query.pattern, schemas)
    return {
        name: tuple(one for one in attributes_of(held[name]) if not one.startswith(RESERVED_PREFIX))
        for name in query.variables
    }


def as_expression(fold: alg.Fold, node: alg.Derive) -> ex.Aggregate:
    """A value of AGG as the aggregate that RETURN would write for it."""
    where = node.where if fold.where is None else fold.where
    argument: ex.Expression = (
        ex.Attribute(fold.variable, fold.path, where=where) if fold.path else ex.Variable(fold.variable, where=where)
    )
    return ex.Aggregate(fold.function, argument, fold.distinct, fold.monoid, where=where)


def _joined(
    reference: ex.Attribute, held: VariableSchemas, problems: list[errors.TocsinError]
) -> list[errors.TocsinError]:
    if len(problems) < 2:
        return problems
    known = dict.fromkeys(name for schema in held[reference.variable] for name in schema.attributes)
    kinds = " or ".join(f"`{schema.type}`" for schema in held[reference.variable])
    return [
        errors.UnknownAttributeError(
            f"No event of `{reference.variable}`, of type {kinds}, has an attribute `{reference.name}`.",
            where=reference.where,
            hint=errors.did_you_mean(reference.path[0], known, f"`{reference.variable}` has"),
        )
    ]


def _distinct(shapes: Iterable[Schema]) -> tuple[Schema, ...]:
    found: list[Schema] = []
    for shape in shapes:
        if not any(shape.is_exactly(known) for known in found):
            found.append(shape)
    return tuple(found)


def differing(found: Mapping[str, DataType]) -> str:
    """`a string in `A` and an integer in `B``: the first two that differ, or the only one there is."""
    kinds: dict[Kind, str] = {}
    for event_type, given in found.items():
        kinds.setdefault(given.kind, f"{given.describe()} in `{event_type}`")
    return " and ".join(list(kinds.values())[:2])
