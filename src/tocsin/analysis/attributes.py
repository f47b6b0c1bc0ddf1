"""The attributes of an event type, and the way to one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tocsin import errors
from tocsin.analysis import types
from tocsin.analysis.types import DataType, from_spark_name
from tocsin.source import Place, Where


@dataclass(frozen=True)
class Schema:
    """The attributes of one event type; `owner` are other words for what has them, such as a derived event."""

    type: str
    attributes: Mapping[str, DataType]
    owner: str | None = None

    @classmethod
    def of(cls, event_type: str, attributes: Mapping[str, str | DataType]) -> Schema:
        """From names of attributes and Spark's names of their types."""
        return cls(
            event_type,
            {name: from_spark_name(given) if isinstance(given, str) else given for name, given in attributes.items()},
        )

    def lookup(self, path: tuple[str, ...], where: Where = None) -> DataType:
        """The type of an attribute, or of a field within one.

        Examples
        --------
        >>> print(Schema.of("Ride", {"place": "struct<lat:double>"}).lookup(("place", "lat")))
        double

        Raises
        ------
        UnknownAttributeError
            With the nearest name there is.
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


def _segment(where: Where, path: tuple[str, ...], depth: int) -> Where:
    """The part of `b.place.lat` that names one step of the path, when it is written plainly."""
    text = ".".join(path)
    if not isinstance(where, Place) or not where.source.text[where.start : where.end].endswith(text):
        return where
    start = where.end - len(".".join(path[depth:]))
    return Place(where.source, start, start + len(path[depth]))
