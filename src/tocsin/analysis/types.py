"""Types of values: the family that conditions go by, and the exact type that results have.

Two types are equal when they belong to the same family: the width of a number, the digits of a decimal and the zone of
a timestamp change no rule. They are kept, uncompared, because result columns and the size report need them. A type that
an engine gave carries the engine's own type object (`native`); a type that was inferred has none, and engines derive
one from its family, digits and zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from tocsin import errors

T = TypeVar("T")


class Kind(Enum):
    """The families of types; the value is the word for one of them."""

    NULL = "NULL"
    BOOLEAN = "a boolean"
    INTEGER = "an integer"
    DOUBLE = "a double"
    DECIMAL = "a decimal"
    STRING = "a string"
    TIMESTAMP = "a timestamp"
    DATE = "a date"
    INTERVAL = "an interval"
    BINARY = "binary data"
    STRUCT = "a struct"
    ARRAY = "an array"
    OTHER = "of another type"


MOST_DIGITS = 38
DEFAULT_SCALE = 18  # Spark's, where nothing declares how many digits are behind the point
LEAST_SCALE = 6  # digits behind the point that Spark keeps when a result has more than 38
INTEGER_DIGITS = {1: 3, 2: 5, 4: 10, 8: 20}  # of the decimals that Spark makes of integers, by their width in bytes
NUMBERS = frozenset({Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL})
TIMES = frozenset({Kind.TIMESTAMP, Kind.DATE})
ORDERED = NUMBERS | TIMES | {Kind.BOOLEAN, Kind.STRING, Kind.INTERVAL, Kind.BINARY}


@dataclass(frozen=True)
class DataType:
    """A type."""

    kind: Kind
    fields: tuple[tuple[str, DataType], ...] = ()  # of a struct: names and types
    element: DataType | None = None  # of an array
    text: str = ""  # Spark's name of a type that conditions cannot look into
    width_bytes: int = field(default=8, compare=False)  # how much memory a value takes, about
    # Of an interval: written in the query (`5 SECONDS`), not a difference of timestamps; beside a number it counts
    # microseconds.
    is_written: bool = field(default=False, compare=False, repr=False)
    # Of a decimal: how many digits it has in all, and how many behind the point; None where they are not known.
    digits: tuple[int, int] | None = field(default=None, compare=False, repr=False)
    is_local: bool = field(default=False, compare=False, repr=False)  # of a timestamp: whether it has no time zone
    # `native`, `name`: the engine's own type and its name; None for an inferred type.
    native: object = field(default=None, compare=False, repr=False)
    name: str | None = field(default=None, compare=False, repr=False)

    @property
    def is_number(self) -> bool:
        """Whether arithmetic works on it."""
        return self.kind in NUMBERS

    @property
    def is_time(self) -> bool:
        """Whether it is a time stamp, or a day, which stands for its first instant in UTC."""
        return self.kind in TIMES

    @property
    def is_null(self) -> bool:
        """Whether it is the type of NULL, which fits everything."""
        return self.kind is Kind.NULL

    @property
    def is_ordered(self) -> bool:
        """Whether two of its values can be compared."""
        return self.kind in ORDERED or self.is_null

    @property
    def exact(self) -> str:
        """The engine's name of the type, or ours for an inferred one."""
        return str(self) if self.name is None else self.name

    def is_exactly(self, other: DataType) -> bool:
        """Whether two types are equal in width, digits and zone too.

        >>> int_, bigint = from_spark_name("int"), from_spark_name("bigint")
        >>> int_ == bigint, int_.is_exactly(bigint)
        (True, False)
        """
        if self.native is not None or other.native is not None:
            return self.native == other.native
        sizes = (self.width_bytes, self.digits, self.is_local) == (other.width_bytes, other.digits, other.is_local)
        return self == other and sizes

    @property
    def widened(self) -> DataType:
        """The type that holds sums of these numbers; other types as they are.

        >>> from_spark_name("decimal(10,2)").widened.digits, from_spark_name("int").widened.width_bytes
        ((38, 2), 8)
        """
        match self.kind:
            case Kind.INTEGER:
                return INTEGER
            case Kind.DOUBLE:
                return DOUBLE
            case Kind.DECIMAL:
                return decimal_of(MOST_DIGITS, self.decimal_digits[1])
            case _:
                return self

    @property
    def decimal_digits(self) -> tuple[int, int]:
        """The digits of a number as a decimal."""
        if self.kind is Kind.INTEGER:
            return INTEGER_DIGITS[self.width_bytes], 0
        return (MOST_DIGITS, DEFAULT_SCALE) if self.digits is None else self.digits

    @property
    def evaluated(self) -> DataType:
        """The type of an attribute inside an expression: a float computes as a double, an interval in microseconds."""
        match self.kind:
            case Kind.DOUBLE:
                return DOUBLE
            case Kind.INTERVAL:
                return WRITTEN_INTERVAL if self.is_written else INTERVAL
            case _:
                return self

    @property
    def computed(self) -> DataType:
        """The type of a result of arithmetic: integers are 64 bits wide."""
        return INTEGER if self.kind is Kind.INTEGER else self.evaluated

    def describe(self) -> str:
        """The type in a sentence: "`a.x` is a string".

        >>> from_spark_name("bigint").describe(), from_spark_name("map<string,int>").describe()
        ('an integer', 'of type map<string,int>')
        """
        return f"of type {self.text}" if self.kind is Kind.OTHER else self.kind.value

    def __str__(self) -> str:
        """A name in the manner of Spark's.

        >>> print(from_spark_name("struct<lat:double,tags:array<varchar(9)>>"))
        struct<lat:double,tags:array<string>>
        """
        match self.kind:
            case Kind.STRUCT:
                return f"struct<{','.join(f'{name}:{inner}' for name, inner in self.fields)}>"
            case Kind.ARRAY:
                return f"array<{self.element}>"
            case Kind.OTHER:
                return self.text
            case Kind.INTEGER:
                return "bigint"
            case Kind.NULL:
                return "void"
            case _:
                return self.kind.name.lower()


NULL = DataType(Kind.NULL, width_bytes=0)
BOOLEAN = DataType(Kind.BOOLEAN, width_bytes=1)
INTEGER = DataType(Kind.INTEGER)
DOUBLE = DataType(Kind.DOUBLE)
DECIMAL = DataType(Kind.DECIMAL, width_bytes=16)
STRING = DataType(Kind.STRING, width_bytes=32)
TIMESTAMP = DataType(Kind.TIMESTAMP)
DATE = DataType(Kind.DATE, width_bytes=4)
INTERVAL = DataType(Kind.INTERVAL)
SHORT_INTEGER = DataType(Kind.INTEGER, width_bytes=4)
WRITTEN_INTERVAL = DataType(Kind.INTERVAL, is_written=True)
LOCAL_TIMESTAMP = DataType(Kind.TIMESTAMP, is_local=True)
BINARY = DataType(Kind.BINARY, width_bytes=64)


def struct_of(fields: Iterable[tuple[str, DataType]]) -> DataType:
    """A struct with these fields."""
    known = tuple(fields)
    return DataType(Kind.STRUCT, known, width_bytes=sum(inner.width_bytes for _, inner in known))


def array_of(element: DataType) -> DataType:
    """An array; its width is that of four elements and their number."""
    return DataType(Kind.ARRAY, element=element, width_bytes=8 + 4 * element.width_bytes)


def decimal_of(digits: int, scale: int) -> DataType:
    """A decimal with so many digits, of which `scale` are behind the point."""
    return DataType(Kind.DECIMAL, width_bytes=16, digits=(digits, scale))


# --- Spark's names of types: `bigint`, `decimal(10,2)`, `struct<x:int>` ---------------------------

# Several names of one type stand in one row.
SIMPLE: dict[str, DataType] = {
    name: kind
    for names, kind in {
        "boolean": BOOLEAN,
        "tinyint byte": DataType(Kind.INTEGER, width_bytes=1),
        "smallint short": DataType(Kind.INTEGER, width_bytes=2),
        "int integer": DataType(Kind.INTEGER, width_bytes=4),
        "bigint long": INTEGER,
        "float real": DataType(Kind.DOUBLE, width_bytes=4),
        "double": DOUBLE,
        "decimal dec numeric": DECIMAL,
        "string char varchar": STRING,
        "timestamp timestamp_ltz": TIMESTAMP,
        "timestamp_ntz": LOCAL_TIMESTAMP,
        "date": DATE,
        "binary": BINARY,
        "void null": NULL,
    }.items()
    for name in names.split()
}


def from_spark_name(text: str) -> DataType:
    """The type Spark calls so (`simpleString`, or as in DDL).

    >>> from_spark_name("decimal(10,2)").kind, from_spark_name("timestamp_ntz").kind
    (<Kind.DECIMAL: 'a decimal'>, <Kind.TIMESTAMP: 'a timestamp'>)
    >>> from_spark_name("struct<lat:double,lon:double>").fields[0][0]
    'lat'
    """
    reader = _Reader(text)
    found = reader.type()
    if reader.at < len(text):
        raise reader.refusal()
    return found


def given_type(text: str) -> DataType:
    """The type that a user's function or aggregate declares for its result."""
    found = from_spark_name(text)
    if found.kind is Kind.OTHER:
        close = errors.nearest(text, SIMPLE)
        raise errors.InvalidOptionError(
            f"`gives={errors.shown(text)}` is not the name of a type.",
            hint=(f"did you mean `{close}`? Use" if close else "use")
            + " Spark's names: bigint, double, string, timestamp, decimal(10,2), array<int>, ….",
        )
    return found


MOST_NESTED = 100  # types inside each other
_INTERVAL = re.compile(r"interval(\s+(day|hour|minute|second)(\s+to\s+\w+)?)?")
_HEAD = re.compile(r"[^<>(),:]*")
_ARGUMENTS = re.compile(r"\([^()]*\)")
_DIGITS = re.compile(r"\(\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?\)")
_QUOTED = re.compile(r"\s*`((?:[^`]|``)*)`\s*")
_NAME = re.compile(r"[^:<>]*")


class _Reader:
    """Reads one type from its text, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def refusal(self) -> errors.InvalidOptionError:
        return errors.InvalidOptionError(
            f"`{self.text}` is not the name of a type.",
            hint="use Spark's names: bigint, double, string, timestamp, decimal(10,2), struct<x:int>, ….",
        )

    def type(self) -> DataType:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise self.refusal()
        found = self._type()
        self.depth -= 1
        return found

    def _type(self) -> DataType:
        start = self.at
        head = " ".join(self._take(_HEAD).lower().split()).removesuffix(" not null")
        arguments = ""
        if self._peek() == "(":
            arguments = self._take(_ARGUMENTS)
            self._take(_HEAD)  # `varchar(10) collate …`, `decimal(3,1) not null`
        word = head.partition(" ")[0]
        if word == "struct" and self._peek() == "<":
            return struct_of(self._listed(self._field))
        if word in ("array", "map") and self._peek() == "<":
            inner = self._listed(self.type)
            if word == "array" and len(inner) == 1:
                return array_of(inner[0])
        elif word in SIMPLE:
            digits = _DIGITS.fullmatch(arguments)
            is_decimal = SIMPLE[word] is DECIMAL and digits is not None
            return decimal_of(int(digits[1]), int(digits[2] or 0)) if is_decimal and digits else SIMPLE[word]
        elif _INTERVAL.fullmatch(head):
            return INTERVAL
        elif not re.fullmatch(r"[\w ]+", head):
            raise self.refusal()
        return DataType(Kind.OTHER, text=self.text[start : self.at].strip(), width_bytes=64)

    def _field(self) -> tuple[str, DataType]:
        quoted = _QUOTED.match(self.text, self.at)
        name = self._take(_QUOTED).strip()[1:-1].replace("``", "`") if quoted else self._take(_NAME).strip()
        self._expect(":")
        return name, self.type()

    def _listed(self, item: Callable[[], T]) -> list[T]:
        found: list[T] = []
        self._expect("<")
        while self._peek() != ">":
            found.append(item())
            if self._peek() != ">":
                self._expect(",")
        self._expect(">")
        return found

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise self.refusal()
        self.at = found.end()
        return found.group()

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self.refusal()
        self.at += 1
