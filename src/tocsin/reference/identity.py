"""`match_id`: 32 hexadecimal digits that depend on a match's interval, bindings and nothing else (SEMANTICS §2).

The recipe is the one in `docs/reference/results.md`, shared with the engines by agreement and not by code: XXH64 over a
list of fields, each hashed with the hash so far as its seed; twice, with a different first field. First every event is
hashed, then the match over the hashes of its events. Integers, booleans and time stamps are 8 bytes, little-endian (an
instant in microseconds), doubles their IEEE bits, all else its text.
"""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tocsin.algebra import nodes as alg
from tocsin.reference.matches import Candidate
from tocsin.reference.stream import EPOCH, Event, Made
from tocsin.reference.values import MICROSECOND

MASK = (1 << 64) - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def xxh64(data: bytes, seed: int) -> int:
    """The XXH64 hash, as published.

    >>> hex(xxh64(b"", 0)), hex(xxh64(b"abc", 0))
    ('0xef46db3751d8e999', '0x44bc2cf5ad770999')
    """
    size = len(data)
    at = 0
    if size >= 32:
        lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed & MASK, (seed - P1) & MASK]
        while at + 32 <= size:
            for lane, word in enumerate(struct.unpack_from("<4Q", data, at)):
                lanes[lane] = _round(lanes[lane], word)
            at += 32
        a, b, c, d = lanes
        value = (_rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)) & MASK
        for lane_value in lanes:
            value = ((value ^ _round(0, lane_value)) * P1 + P4) & MASK
    else:
        value = (seed + P5) & MASK
    value = (value + size) & MASK
    while at + 8 <= size:
        value ^= _round(0, struct.unpack_from("<Q", data, at)[0])
        value = (_rotate(value, 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= size:
        value ^= struct.unpack_from("<I", data, at)[0] * P1 & MASK
        value = (_rotate(value, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        value ^= byte * P5 & MASK
        value = _rotate(value, 11) * P1 & MASK
    value = (value ^ (value >> 33)) * P2 & MASK
    value = (value ^ (value >> 29)) * P3 & MASK
    return value ^ (value >> 32)


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & MASK


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * P2) & MASK, 31) * P1 & MASK


@dataclass(frozen=True)
class Ids:
    """The ids of a list of matches, computed when they are asked for."""

    query: alg.Query
    matches: list[Candidate]
    _digests: dict[tuple[int, Event], int] = field(default_factory=dict, repr=False)

    @cached_property
    def all(self) -> list[str]:
        """One id per match; matches that are equal in all that is hashed are numbered, for nothing tells them apart."""
        seen: Counter[tuple[int, int]] = Counter()
        ids = []
        for match in self.matches:
            both = (self._hash(1, match), self._hash(2, match))
            number = seen[both]
            seen[both] += 1
            ids.append("".join(f"{hash_fields([salt, *both, number]) & MASK:016x}" for salt in (1, 2)))
        return ids

    def _hash(self, salt: int, match: Candidate) -> int:
        assert match.first is not None and match.last is not None  # a reported match has events
        names = sorted(self.query.variables)
        fields: list[Any] = [salt, _text_of(names), match.first.ts, match.last.ts]
        if self._hides_events:
            fields += [self._digest(salt, match.first), self._digest(salt, match.last)]
        for name in names:
            events = match.bags.get(name, ())
            fields.append(len(events))
            if events:
                fields.append(_signed(sum(self._digest(salt, event) for event in events)))
        return hash_fields(fields)

    @cached_property
    def _hides_events(self) -> bool:
        """Whether no variable need hold the first and the last event of a match."""
        return any(isinstance(node, alg.Project | alg.NextOf) for node in self.query.pattern.walk())

    def _digest(self, salt: int, event: Event) -> int:
        key = (salt, event)
        if key not in self._digests:
            found = _digest(salt, [event.type or ""], event.row)
            if isinstance(event.row, Made) and event.row.read is not None:
                found = hash_fields([self._digest(salt, event.row.read)], seed=found)
            self._digests[key] = found
        return self._digests[key]


def _digest(salt: int, prefix: list[str], row: Mapping[str, Any]) -> int:
    """The salt, all names as one text, which values are NULL, and the values that are not."""
    names = sorted(row)
    values = [row[name] for name in names]
    nulls = [
        sum(1 << place for place, value in enumerate(values[begin : begin + 63]) if value is None)
        for begin in range(0, len(values), 63)
    ]
    known = [_written(value, salt) for value in values if value is not None]
    return hash_fields([salt, _text_of(prefix + names), *nulls, *known])


def _text_of(names: list[str]) -> str:
    return json.dumps(names, separators=(",", ":"), ensure_ascii=False)


def _written(value: Any, salt: int) -> Any:
    """A value as a field; a struct is hashed as an event is, a list is its JSON."""
    if isinstance(value, Mapping):
        return _digest(salt, [], value)
    if isinstance(value, list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_in_json)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex().upper()
    return value


def _in_json(value: Any) -> Any:
    """A time stamp inside a list: to the microsecond, in UTC unless it has no zone."""
    if not isinstance(value, dt.datetime):
        return dict(value) if isinstance(value, Mapping) else str(value)
    if value.tzinfo is None:
        return f"{value:%Y-%m-%dT%H:%M:%S.%f}"
    return f"{value.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def hash_fields(fields: Iterable[Any], seed: int = 42) -> int:
    """Fields hashed one after the other, each seeded with the hash so far, as a signed 64-bit number."""
    value = seed & MASK
    for one in fields:
        value = xxh64(_bytes(one), value)
    return _signed(value)


def _signed(value: int) -> int:
    """A number modulo 2**64 as a signed 64-bit one."""
    value &= MASK
    return value - (1 << 64) if value >> 63 else value


def _bytes(value: Any) -> bytes:
    match value:
        case int():  # bool too
            return struct.pack("<q", value)
        case float():
            return struct.pack("<d", value + 0.0)
        case dt.datetime():
            zoned = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return struct.pack("<q", (zoned - EPOCH) // MICROSECOND)
        case dt.timedelta():
            return struct.pack("<q", value // MICROSECOND)
        case _:
            return str(value).encode()
