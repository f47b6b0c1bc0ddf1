"""Types by the names that Spark gives them: `bigint`, `decimal(10,2)`, `struct<x:int>`."""

from __future__ import annotations

import re

from tocsin import errors
from tocsin.analysis import types
from tocsin.analysis.types import DataType, Kind


def _integer(width: int) -> DataType:
    return DataType(Kind.INTEGER, width_bytes=width)


# Several names of one type stand in one row.
SIMPLE: dict[str, DataType] = {
    name: kind
    for names, kind in {
        "boolean": types.BOOLEAN,
        "tinyint byte": _integer(1),
        "smallint short": _integer(2),
        "int integer": _integer(4),
        "bigint long": types.INTEGER,
        "float real": DataType(Kind.DOUBLE, width_bytes=4),
        "double": types.DOUBLE,
        "decimal dec numeric": types.DECIMAL,
        "string char varchar": types.STRING,
        "timestamp timestamp_ltz": types.TIMESTAMP,
        "timestamp_ntz": types.LOCAL_TIMESTAMP,
        "date": types.DATE,
        "binary": types.BINARY,
        "void null": types.NULL,
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
    """The type that a user's function or aggregate says it gives.

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
_DIGITS = re.compile(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
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
        arguments = ""
        if self._peek() == "(":
            arguments = self._take(_ARGUMENTS)
            self._take(_HEAD)  # `varchar(10) collate …`, `decimal(3,1) not null`
        word = head.partition(" ")[0]
        if word == "struct" and self._peek() == "<":
            return types.struct_of(self._fields())
        if word in ("array", "map") and self._peek() == "<":
            inner = self._list()
            if word == "array" and len(inner) == 1:
                return types.array_of(inner[0])
        elif word in SIMPLE:
            digits = _DIGITS.fullmatch(arguments)
            is_decimal = SIMPLE[word] is types.DECIMAL and digits is not None
            return types.decimal_of(int(digits[1]), int(digits[2] or 0)) if is_decimal and digits else SIMPLE[word]
        elif _INTERVAL.fullmatch(head):
            return types.INTERVAL
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
