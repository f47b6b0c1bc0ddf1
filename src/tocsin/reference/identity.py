"""`match_id`: 32 hexadecimal digits that depend on a match's interval, bindings and nothing else (SEMANTICS §2).

The recipe, shared with the engines by agreement and not by code: XXH64 with seed 42 over a list of typed fields, each
field hashed with the hash so far as its seed; twice, with a different first field. Integers, booleans and time stamps
are 8 bytes, little-endian (an instant in microseconds), doubles their IEEE bits, anything else its text in UTF-8.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterable
from typing import Any

MASK = (1 << 64) - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def xxh64(data: bytes, seed: int) -> int:
    """The XXH64 hash, as published.

    Examples
    --------
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


def hash_fields(fields: Iterable[Any], seed: int = 42) -> int:
    """Fields hashed one after the other, each seeded with the hash so far; NULL leaves the hash as it is."""
    value = seed
    for one in fields:
        if one is not None:
            value = xxh64(_bytes(one), value)
    return value


def _bytes(value: Any) -> bytes:
    match value:
        case int():  # bool too
            return struct.pack("<q", value)
        case float():
            return struct.pack("<d", value + 0.0)
        case dt.datetime():
            zoned = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            since = zoned - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
            return struct.pack("<q", since // dt.timedelta(microseconds=1))
    return str(value).encode()
