"""Trees of queries, types and options as plain values that JSON holds, and back.

A dataclass becomes a dictionary: its name under `is`, and the fields that differ from their defaults. What only shows
where something was written, and what only one process holds, is left out. Functions and tables of the user have no
plain values: their names stand for them, and a plan with one cannot be read back.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes, patterns, programs
from tocsin.algebra.units import Unit
from tocsin.analysis import types
from tocsin.analysis.attributes import Schema
from tocsin.analysis.rates import Rate
from tocsin.analysis.temporal import Facts
from tocsin.language import ast, expressions, rule_expressions
from tocsin.language.user_defined import Monoid
from tocsin.optimizer import statistics
from tocsin.options import Options

NOT_STORED = {"where", "places", "native", "heartbeats"}
_MODULES = (expressions, rule_expressions, patterns, statistics)
_OTHERS = (
    *(nodes.Query, nodes.Partition, nodes.Returned, ast.AfterMatch, ast.Selection, ast.Skip, ast.Output),
    *(types.DataType, types.Kind, Schema, Facts, Options, Unit, Rate, Monoid),
    *(programs.Program, programs.Rule, programs.Template),
)
CLASSES: dict[str, type] = {
    each.__name__: each
    for each in (*(value for module in _MODULES for value in vars(module).values()), *_OTHERS)
    if isinstance(each, type) and (is_dataclass(each) or issubclass(each, Enum))
} | {"TemplateAttribute": programs.Attribute}
NAMES = {each: name for name, each in CLASSES.items()}
_TICK = dt.timedelta(microseconds=1)
# Values of one text each.
TEXTS: dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    dt.datetime: (dt.datetime.isoformat, dt.datetime.fromisoformat),
    dt.date: (dt.date.isoformat, dt.date.fromisoformat),
    dt.timedelta: (lambda value: str(value // _TICK), lambda text: int(text) * _TICK),
    Fraction: (str, Fraction),
    float: (repr, float),
}


def encode(value: Any) -> Any:
    """A tree as plain values.

    >>> encode(nodes.Event("A", "a"))
    {'is': 'Event', 'type': 'A', 'variable': 'a'}
    >>> decode(encode(nodes.Event("A", "a")))
    Event(type='A', variable='a', condition=None)
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind in TEXTS:
        return {"is": kind.__name__, "text": TEXTS[kind][0](value)}
    if isinstance(value, Mapping):
        return {"is": "mapping", "items": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, set | frozenset):
        return [encode(item) for item in sorted(value)]
    if isinstance(value, Enum) and kind in NAMES:
        return {"is": NAMES[kind], "name": value.name}
    if is_dataclass(kind) and kind in NAMES:
        stored = [(each, getattr(value, each.name)) for each in _stored(kind)]
        return {"is": NAMES[kind]} | {each.name: encode(held) for each, held in stored if not _is_default(each, held)}
    return {"is": "function" if callable(value) else kind.__name__}


def decode(stored: Any) -> Any:
    """The tree that `encode` was given.

    Raises
    ------
    InvalidOptionError
        When it names what cannot be read back.
    """
    if isinstance(stored, list):
        return tuple(map(decode, stored))
    if not isinstance(stored, dict):
        return stored
    name = stored.get("is")
    if name == "mapping":
        return {decode(key): decode(item) for key, item in stored["items"]}
    for kind, (_, read) in TEXTS.items():
        if name == kind.__name__:
            return read(stored["text"])
    known = CLASSES.get(str(name))
    if known is None:
        raise errors.InvalidOptionError(
            f"A stored plan has no `{errors.named(name)}`.",
            hint="functions, aggregates and tables of your own are not stored: plan the query where they are.",
        )
    if issubclass(known, Enum):
        return known[stored["name"]]
    return known(**{key: decode(item) for key, item in stored.items() if key != "is"})


@contextmanager
def reading(stored: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a stored plan was made of.

    Raises
    ------
    InvalidOptionError
        When these are not the values of a plan, or it has functions of the user.
    """
    try:
        yield dict(stored["made_of"])
    except errors.TocsinError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise errors.InvalidOptionError(
            f"This is no stored plan: {errors.fault(problem)}.", hint="pass what `Plan.to_dict()` gave."
        ) from None


def _stored(kind: type) -> list[Field[Any]]:
    return [each for each in fields(kind) if each.init and each.name not in NOT_STORED]


def _is_default(each: Field[Any], value: Any) -> bool:
    default = each.default if each.default_factory is MISSING else each.default_factory()
    return type(value) is type(default) and bool(value == default)
