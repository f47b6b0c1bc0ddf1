"""Columns of text → typed columns, by the rules by which Spark infers the types of CSV files and of times in JSON.

`type_of` is the rule for one text; what columns do at once with Arrow is a shortcut for columns in which it gives the
same. Times are those of `tocsin.cli.files.READ_TIMES`; a zone that is not there is UTC.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.engines.worker.arrays import constant, of_values

INSTANT = pa.timestamp("us", "UTC")
MOST_DIGITS = 38  # of a decimal
DIGITS = {pa.int32(): 10, pa.int64(): 20}  # of the decimals that hold all of them, as Spark counts
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

INTEGER = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
BLANKS = "".join(map(chr, range(33)))  # which Java leaves out around a double
JAVA_DOUBLE = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
JAVA_HEX = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
JAVA_NAMED = re.compile(r"([+-]?(?:NaN|Infinity))")
SPARK_NAMED = {"Inf": "inf", "-Inf": "-inf"}
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
TIME = re.compile(
    r"(\d{4})-(\d+)-(\d+)T? ?(\d+):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)? ?(.*)", re.ASCII | re.IGNORECASE | re.DOTALL
)
OFFSET = re.compile(r"([+-])(\d\d)(?::?(\d\d))?", re.ASCII)
NAMED_OFFSET = re.compile(r"(?:UTC|GMT|UT)(?:([+-])(\d\d)(?::(\d\d))?)?", re.ASCII | re.IGNORECASE)
NOT_OF_JAVA = {"EST", "HST", "MST", "ROC", "GMT+0", "GMT-0", "Factory", "localtime"}
MOST_OFFSET = dt.timedelta(hours=18)
# Times that Arrow casts at once.
ZONED = "(Z|[+-](0[0-9]|1[0-7])(:?[0-5][0-9])?)"
PLAIN_TIME = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]{{1,6}})?)?{ZONED}?$"


def typed(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of a CSV file in the type that Spark infers; one of NULLs alone is a string."""
    known = texts.drop_null()
    if not len(known):
        return texts
    shortcut = SHORTCUTS.get(type_of(known[0].as_py()), _no_shortcut)(texts)
    return _exactly(texts) if shortcut is None else shortcut


def instants(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Texts as instants; None unless all of them are times."""
    if pc.all(pc.match_substring_regex(texts, PLAIN_TIME), min_count=0).as_py():
        nothing = constant(None, texts.type)
        is_zoned = pc.match_substring_regex(texts, f"{ZONED}$")
        try:
            with_zone = pc.if_else(is_zoned, texts, nothing).cast(INSTANT)
            without = pc.if_else(is_zoned, nothing, texts).cast(pa.timestamp("us"))
            return pc.coalesce(with_zone, without.cast(INSTANT))
        except pa.ArrowInvalid:  # such as February 30, or an offset that no zone has
            pass
    return _converted(texts, instant_of, pa.int64(), INSTANT)


# --- one text -------------------------------------------------------------------------------------


def type_of(text: str, before: pa.DataType | None = None) -> pa.DataType:
    """The type that Spark infers from one text that is not empty, after others that have a type together."""
    is_decimal = before is not None and pa.types.is_decimal(before)
    if not is_decimal and INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return pa.int32() if -(2**31) <= int(text) < 2**31 else pa.int64()
    if NUMBER.fullmatch(text) and (digits := whole_digits(text)):
        return pa.decimal128(digits, 0)
    if double_of(text) is not None:
        return pa.float64()
    if date_of(text) is not None:
        return pa.date32()
    if instant_of(text) is not None:
        return INSTANT
    return pa.bool_() if text.lower() in ("true", "false") else pa.string()


def whole_digits(text: str) -> int:
    """How many digits a decimal without a scale has; 0 for one that Spark reads as a double."""
    _, digits, exponent = Decimal(text).as_tuple()
    return len(digits) if exponent == 0 and len(digits) <= MOST_DIGITS else 0


def double_of(text: str) -> float | None:
    """A double as Java and Spark read it."""
    if text in SPARK_NAMED:
        return float(SPARK_NAMED[text])
    inner = text.strip(BLANKS)
    if (found := JAVA_HEX.fullmatch(inner)) is not None:
        return float.fromhex(found[1])
    found = JAVA_DOUBLE.fullmatch(inner) or JAVA_NAMED.fullmatch(inner)
    return None if found is None else float(found[1])


def date_of(text: str) -> dt.date | None:
    """A day, in digits."""
    try:
        return dt.date.fromisoformat(text) if DATE.fullmatch(text) else None
    except ValueError:
        return None


def instant_of(text: str) -> int | None:
    """A time in microseconds since 1970.

    >>> instant_of("1970-1-1 0:00:00.0000059"), instant_of("1970-01-01T01:00+01"), instant_of("1970-01-01")
    (5, 0, None)
    """
    found = TIME.fullmatch(text)
    if found is None:
        return None
    *parts, second, fraction, zone = found.groups()
    try:
        without = dt.datetime(*map(int, parts), int(second or 0), tzinfo=dt.UTC)  # type: ignore[arg-type,misc]
        shift = _offset(zone, without)
    except (ValueError, OverflowError):
        return None
    if shift is None:
        return None
    return (without - EPOCH - shift) // dt.timedelta(microseconds=1) + int((fraction or "0").ljust(6, "0")[:6])


def _offset(zone: str, at: dt.datetime) -> dt.timedelta | None:
    """How far the clocks of a zone are before UTC; None where there is no such zone."""
    if zone.upper() in ("", "Z"):
        return dt.timedelta()
    found = OFFSET.fullmatch(zone) or NAMED_OFFSET.fullmatch(zone)
    if found is None:
        named = zones().get(zone.lower())
        return None if named is None else ZoneInfo(named).utcoffset(at.replace(tzinfo=None))
    sign, hours, minutes = found.groups()
    shift = dt.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    if shift > MOST_OFFSET or int(minutes or 0) > 59:
        return None
    return -shift if sign == "-" else shift


@cache
def zones() -> dict[str, str]:
    """The names of time zones that Java has, by themselves in small letters."""
    return {name.lower(): name for name in available_timezones() - NOT_OF_JAVA}


def common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type of a column with texts of both types."""
    if one == other:
        return one
    both = {one, other}
    numbers = [kind for kind in (one, other) if pa.types.is_integer(kind) or pa.types.is_decimal(kind)]
    if len(numbers) == 2:
        if both == DIGITS.keys():
            return pa.int64()
        return pa.decimal128(max(DIGITS.get(kind) or kind.precision for kind in numbers), 0)
    return pa.float64() if len(numbers) == 1 and pa.float64() in both else pa.string()


# --- columns --------------------------------------------------------------------------------------


def _exactly(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column text by text; each text once."""
    found: pa.DataType | None = None
    for text in pc.unique(texts).drop_null().to_pylist():
        kind = type_of(text, found)
        found = kind if found is None else common(found, kind)
        if found == pa.string():
            return texts
    assert found is not None
    converted = _converted(texts, *CONVERSIONS.get(found, (Decimal, found, found)))
    return texts if converted is None else converted


def _converted(
    texts: pa.ChunkedArray, value_of: Callable[[str], Any], held: pa.DataType, dtype: pa.DataType
) -> pa.ChunkedArray | None:
    """Every text as its value; None when one has none."""
    encoded = texts.dictionary_encode().unify_dictionaries()
    values = _values(encoded.chunk(0).dictionary.to_pylist(), value_of)
    if values is None:
        return None
    column = of_values(values, held).cast(dtype)
    return pa.chunked_array([pc.take(column, chunk.indices) for chunk in encoded.chunks], dtype)


def _values(texts: Iterable[str | None], value_of: Callable[[str], Any]) -> list[Any] | None:
    values: list[Any] = []
    for text in texts:
        value = None if text is None else value_of(text)
        if value is None and text is not None:
            return None
        values.append(value)
    return values


def _no_shortcut(_texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    return None


def _integers(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    if _some(texts, "x"):  # Arrow reads 0x1F
        return None
    try:
        whole = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return _numbers(texts, is_known=False)
    bounds = pc.min_max(whole)
    return whole.cast(pa.int32()) if -(2**31) <= bounds["min"].as_py() <= bounds["max"].as_py() < 2**31 else whole


def _numbers(texts: pa.ChunkedArray, *, is_known: bool = True) -> pa.ChunkedArray | None:
    """As doubles; `is_known` when one of them is none but a double."""
    try:
        found = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    if _some(texts, "n"):  # Arrow reads `nan` and `INF`
        return None
    return found if is_known or pc.any(pc.not_equal(found, pc.floor(found))).as_py() else None


def _some(texts: pa.ChunkedArray, letter: str) -> bool:
    return bool(pc.any(pc.match_substring(texts, letter, ignore_case=True)).as_py())


def _days(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    try:
        return texts.cast(pa.date32())
    except pa.ArrowInvalid:
        return None


def _truths(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    lower = pc.utf8_lower(texts)
    is_true, is_false = (pc.equal(lower, constant(word, lower.type)) for word in ("true", "false"))
    return is_true if pc.all(pc.or_(is_true, is_false), min_count=0).as_py() else None


def _texts(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return texts


# For the type of the first text, a way to convert a whole column; None where only `_exactly` has the answer.
SHORTCUTS: dict[pa.DataType, Callable[[pa.ChunkedArray], pa.ChunkedArray | None]] = {
    pa.int32(): _integers,
    pa.int64(): _integers,
    pa.float64(): _numbers,
    pa.date32(): _days,
    INSTANT: instants,
    pa.bool_(): _truths,
    pa.string(): _texts,
}
CONVERSIONS: dict[pa.DataType, tuple[Callable[[str], Any], pa.DataType, pa.DataType]] = {
    pa.int32(): (int, pa.int32(), pa.int32()),
    pa.int64(): (int, pa.int64(), pa.int64()),
    pa.float64(): (double_of, pa.float64(), pa.float64()),
    pa.date32(): (date_of, pa.date32(), pa.date32()),
    INSTANT: (instant_of, pa.int64(), INSTANT),
    pa.bool_(): (lambda text: text.lower() == "true", pa.bool_(), pa.bool_()),
}
