"""The attributes of an event type, and the way to one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tocsin import errors
from tocsin.analysis import types
from tocsin.analysis.type_names import from_spark_name
from tocsin.analysis.types import DataType, column_type
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
