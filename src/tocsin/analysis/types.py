"""Types of values: the family that conditions go by, and the exact type that results have.

Two types are equal when they belong to the same family: the width of a number, the digits of a decimal and the zone of
a timestamp change no rule. They are kept, uncompared, because result columns and the size report need them. A type that
an engine gave carries the engine's own type object (`native`); a type that was inferred has none, and engines derive
one from its family, digits and zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum


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

        >>> from tocsin.analysis.type_names import from_spark_name
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

        >>> from tocsin.analysis.type_names import from_spark_name
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

        >>> from tocsin.analysis.type_names import from_spark_name
        >>> from_spark_name("bigint").describe(), from_spark_name("map<string,int>").describe()
        ('an integer', 'of type map<string,int>')
        """
        return f"of type {self.text}" if self.kind is Kind.OTHER else self.kind.value

    def __str__(self) -> str:
        """A name in the manner of Spark's.

        >>> from tocsin.analysis.type_names import from_spark_name
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


# --- two types together ---------------------------------------------------------------------------


def can_compare(one: DataType, other: DataType) -> bool:
    """Whether values of two types can be compared (R39).

    A number compares with a number, a time stamp with a day; an interval written in the query counts
    microseconds beside a number. Structs, arrays and maps compare with nothing.

    >>> can_compare(INTEGER, DOUBLE), can_compare(STRING, INTEGER), can_compare(NULL, STRING)
    (True, False, True)
    """
    if one.is_null or other.is_null:
        return True
    return one.is_ordered and common_type([one, other]) is not None


def common_type(types: Iterable[DataType]) -> DataType | None:
    """The type that values of several types share (CASE, COALESCE), or None.

    >>> print(common_type([INTEGER, NULL, DOUBLE]), common_type([STRING, INTEGER]))
    double None
    """
    known = [each for each in types if not each.is_null]
    if not known:
        return NULL
    if all(each.is_exactly(known[0]) for each in known[1:]):
        return known[0]
    kinds = {each.kind for each in known}
    if kinds <= NUMBERS:
        return _common_number(known)
    if kinds <= TIMES:
        if Kind.TIMESTAMP not in kinds:
            return DATE
        return LOCAL_TIMESTAMP if all(each.is_local for each in known) else TIMESTAMP
    if kinds <= NUMBERS | {Kind.INTERVAL}:
        if kinds == {Kind.INTERVAL}:
            return WRITTEN_INTERVAL if all(each.is_written for each in known) else INTERVAL
        written = all(each.is_written for each in known if each.kind is Kind.INTERVAL)
        return common_type([each for each in known if each.is_number]) if written else None
    return known[0] if all(each == known[0] for each in known) else None


def _common_number(known: Sequence[DataType]) -> DataType:
    """The widest of several numbers; decimals keep all digits on both sides of the point while 38 hold them."""
    kinds = {each.kind for each in known}
    if Kind.DOUBLE in kinds:
        return DOUBLE
    if Kind.DECIMAL not in kinds:
        return max(known, key=lambda each: each.width_bytes)
    digits = [each.decimal_digits for each in known]
    scale = max(behind for _, behind in digits)
    return bounded_decimal(max(size - behind for size, behind in digits) + scale, scale)


def bounded_decimal(digits: int, scale: int) -> DataType:
    """A decimal with so many digits; beyond 38 it loses digits behind the point, down to six, as Spark has it.

    >>> bounded_decimal(20, 4).digits, bounded_decimal(45, 10).digits
    ((20, 4), (38, 6))
    """
    if digits <= MOST_DIGITS:
        return decimal_of(digits, scale)
    return decimal_of(MOST_DIGITS, max(MOST_DIGITS - (digits - scale), min(scale, LEAST_SCALE)))


def column_type(types: Iterable[DataType]) -> DataType | None:
    """The exact type of a column that holds an attribute of several kinds of events, or None.

    Types that are exactly equal stay; other integers become `bigint`, other numbers `double`.

    >>> from tocsin.analysis.type_names import from_spark_name
    >>> column_type([from_spark_name("int"), from_spark_name("smallint")]).width_bytes, column_type([STRING, INTEGER])
    (8, None)
    """
    known = [each for each in types if not each.is_null]
    if not known:
        return NULL
    if all(each.is_exactly(known[0]) for each in known[1:]):
        return known[0]
    kinds = {each.kind for each in known}
    if kinds <= NUMBERS:
        return INTEGER if kinds == {Kind.INTEGER} else DOUBLE
    if kinds == {Kind.STRING}:
        return STRING
    is_same = len(kinds) == 1 and all(each == known[0] and each.is_local == known[0].is_local for each in known)
    inferred = [each for each in known if each.native is None]
    return known[0] if is_same and inferred else None
