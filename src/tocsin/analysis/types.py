"""Types of values: what conditions may do with an attribute, read from the names Spark gives its types.

Coarser than Spark's own: the width of a number and the zone of a time stamp change no rule, so that they are
not compared; widths are kept for the size report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from tocsin import errors


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


NUMBERS = frozenset({Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL})
TIMES = frozenset({Kind.TIMESTAMP, Kind.DATE})
ORDERED = NUMBERS | TIMES | {Kind.BOOLEAN, Kind.STRING, Kind.INTERVAL, Kind.BINARY}


@dataclass(frozen=True)
class DataType:
    """A type.

    Attributes
    ----------
    kind
        Its family.
    fields
        Of a struct: names and types.
    element
        Of an array.
    text
        Spark's name of a type that conditions cannot look into.
    width_bytes
        How much memory a value takes, about; not compared.
    is_written
        Of an interval: written in the query (`5 SECONDS`), not a difference of time stamps; beside a number
        it counts microseconds. Not compared.
    """

    kind: Kind
    fields: tuple[tuple[str, DataType], ...] = ()
    element: DataType | None = None
    text: str = ""
    width_bytes: int = field(default=8, compare=False)
    is_written: bool = field(default=False, compare=False, repr=False)

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

    def describe(self) -> str:
        """The type in a sentence: "`a.x` is a string".

        Examples
        --------
        >>> from_spark_name("bigint").describe(), from_spark_name("map<string,int>").describe()
        ('an integer', 'of type map<string,int>')
        """
        return f"of type {self.text}" if self.kind is Kind.OTHER else self.kind.value

    def __str__(self) -> str:
        """A name in the manner of Spark's.

        Examples
        --------
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
WRITTEN_INTERVAL = DataType(Kind.INTERVAL, is_written=True)
BINARY = DataType(Kind.BINARY, width_bytes=64)


def struct_of(fields: Iterable[tuple[str, DataType]]) -> DataType:
    """A struct with these fields."""
    known = tuple(fields)
    return DataType(Kind.STRUCT, known, width_bytes=sum(inner.width_bytes for _, inner in known))


def array_of(element: DataType) -> DataType:
    """An array; its width is that of four elements and their number."""
    return DataType(Kind.ARRAY, element=element, width_bytes=8 + 4 * element.width_bytes)


def _integer(width: int) -> DataType:
    return DataType(Kind.INTEGER, width_bytes=width)


_REAL = DataType(Kind.DOUBLE, width_bytes=4)
SIMPLE: dict[str, DataType] = {
    "boolean": BOOLEAN,
    "tinyint": _integer(1),
    "byte": _integer(1),
    "smallint": _integer(2),
    "short": _integer(2),
    "int": _integer(4),
    "integer": _integer(4),
    "bigint": INTEGER,
    "long": INTEGER,
    "float": _REAL,
    "real": _REAL,
    "double": DOUBLE,
    "decimal": DECIMAL,
    "dec": DECIMAL,
    "numeric": DECIMAL,
    "string": STRING,
    "char": STRING,
    "varchar": STRING,
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP,
    "date": DATE,
    "binary": BINARY,
    "void": NULL,
    "null": NULL,
}


def from_spark_name(text: str) -> DataType:
    """The type Spark calls so (`simpleString`, or as in DDL).

    Examples
    --------
    >>> from_spark_name("decimal(10,2)").kind, from_spark_name("timestamp_ntz").kind
    (<Kind.DECIMAL: 'a decimal'>, <Kind.TIMESTAMP: 'a timestamp'>)
    >>> from_spark_name("struct<lat:double,lon:double>").fields[0][0]
    'lat'

    Raises
    ------
    InvalidOptionError
        When the text is not the name of a type.
    """
    reader = _Reader(text)
    found = reader.type()
    if reader.at < len(text):
        raise reader.refusal()
    return found


def given_type(text: str) -> DataType:
    """The type that a user's function or aggregate says it gives.

    Raises
    ------
    InvalidOptionError
        When the text is not the name of a type that values can be made of.

    Examples
    --------
    >>> given_type("doubel")
    Traceback (most recent call last):
    ...
    tocsin.errors.InvalidOptionError: [INVALID_OPTION] `gives='doubel'` is not the name of a type.
    Hint: did you mean `double`? Use Spark's names: bigint, double, string, timestamp, decimal(10,2), array<int>, ….
    """
    found = from_spark_name(text)
    if found.kind is Kind.OTHER:
        close = errors.nearest(text, SIMPLE)
        raise errors.InvalidOptionError(
            f"`gives={text!r}` is not the name of a type.",
            hint=(f"did you mean `{close}`? Use" if close else "use")
            + " Spark's names: bigint, double, string, timestamp, decimal(10,2), array<int>, ….",
        )
    return found


_INTERVAL = re.compile(r"interval(\s+(day|hour|minute|second)(\s+to\s+\w+)?)?")
_HEAD = re.compile(r"[^<>(),:]*")
_ARGUMENTS = re.compile(r"\([^()]*\)")
_QUOTED = re.compile(r"\s*`((?:[^`]|``)*)`\s*")
_NAME = re.compile(r"[^:<>]*")


class _Reader:
    """Reads one type from its text, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def refusal(self) -> errors.InvalidOptionError:
        return errors.InvalidOptionError(
            f"`{self.text}` is not the name of a type.",
            hint="use Spark's names: bigint, double, string, timestamp, decimal(10,2), struct<x:int>, ….",
        )

    def type(self) -> DataType:
        start = self.at
        head = " ".join(self._take(_HEAD).lower().split()).removesuffix(" not null")
        if self._peek() == "(":
            self._take(_ARGUMENTS)
            self._take(_HEAD)  # `varchar(10) collate …`, `decimal(3,1) not null`
        word = head.partition(" ")[0]
        if word == "struct" and self._peek() == "<":
            return struct_of(self._fields())
        if word in ("array", "map") and self._peek() == "<":
            inner = self._list()
            if word == "array" and len(inner) == 1:
                return array_of(inner[0])
        elif word in SIMPLE:
            return SIMPLE[word]
        elif _INTERVAL.fullmatch(head):
            return INTERVAL
        elif not re.fullmatch(r"[\w ]+", head):
            raise self.refusal()
        return DataType(Kind.OTHER, text=self.text[start : self.at].strip(), width_bytes=64)

    def _fields(self) -> list[tuple[str, DataType]]:
        fields: list[tuple[str, DataType]] = []
        self._expect("<")
        while self._peek() != ">":
            quoted = _QUOTED.match(self.text, self.at)
            name = self._take(_QUOTED).strip()[1:-1].replace("``", "`") if quoted else self._take(_NAME).strip()
            self._expect(":")
            fields.append((name, self.type()))
            if self._peek() != ">":
                self._expect(",")
        self._expect(">")
        return fields

    def _list(self) -> list[DataType]:
        found: list[DataType] = []
        self._expect("<")
        while self._peek() != ">":
            found.append(self.type())
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


# --- two types together ---------------------------------------------------------------------------


def can_compare(one: DataType, other: DataType) -> bool:
    """Whether values of two types can be compared (R39).

    A number compares with a number, a time stamp with a day; an interval written in the query counts
    microseconds beside a number. Structs, arrays and maps compare with nothing.

    Examples
    --------
    >>> can_compare(INTEGER, DOUBLE), can_compare(STRING, INTEGER), can_compare(NULL, STRING)
    (True, False, True)
    """
    if one.is_null or other.is_null:
        return True
    return one.is_ordered and common_type([one, other]) is not None


def common_type(types: Iterable[DataType]) -> DataType | None:
    """The type that values of several types share (CASE, COALESCE), or None.

    Examples
    --------
    >>> print(common_type([INTEGER, NULL, DOUBLE]), common_type([STRING, INTEGER]))
    double None
    """
    known = [each for each in types if not each.is_null]
    if not known:
        return NULL
    kinds = {each.kind for each in known}
    if kinds <= NUMBERS:
        return next(each for each in (DOUBLE, DECIMAL, INTEGER) if each.kind in kinds)
    if kinds <= TIMES:
        return TIMESTAMP if Kind.TIMESTAMP in kinds else DATE
    if kinds <= NUMBERS | {Kind.INTERVAL}:
        if kinds == {Kind.INTERVAL}:
            return WRITTEN_INTERVAL if all(each.is_written for each in known) else INTERVAL
        written = all(each.is_written for each in known if each.kind is Kind.INTERVAL)
        return common_type([each for each in known if each.is_number]) if written else None
    return known[0] if all(each == known[0] for each in known) else None
