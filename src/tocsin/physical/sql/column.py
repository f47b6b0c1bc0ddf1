"""A Column as SQL text: PySpark's operators and methods, as far as plans use them, with PySpark's meaning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import types as T

from tocsin.physical.sql import spelling
from tocsin.physical.sql.spelling import Plain


@dataclass(frozen=True, eq=False)
class Column:
    """An expression.

    Attributes
    ----------
    text
        The expression, which needs no parentheses as an operand.
    names
        What it is called in a result; several names are those of a generator's columns. An operand has none.

    Examples
    --------
    >>> x = Column("x")
    >>> print(((x + 1 > 2) & x.isNotNull() & ~(x == 7)).text)
    (((x + 1) > 2) AND (x IS NOT NULL) AND (NOT (x = 7)))
    >>> print(x.cast("bigint").alias("y").named)
    CAST(x AS bigint) AS `y`
    """

    text: str
    names: tuple[str, ...] = ()

    @property
    def named(self) -> str:
        """The expression and what it is called."""
        match [spelling.identifier(name) for name in self.names]:
            case []:
                return self.text
            case [name]:
                return f"{self.text} AS {name}"
            case several:
                return f"{self.text} AS ({', '.join(several)})"

    def __bool__(self) -> bool:
        raise TypeError("A Column is neither true nor false: combine Columns with `&`, `|` and `~`.")

    # --- operators --------------------------------------------------------------------------------

    def __add__(self, other: Operand) -> Column:
        return self._with("+", other)

    def __sub__(self, other: Operand) -> Column:
        return self._with("-", other)

    def __mul__(self, other: Operand) -> Column:
        return self._with("*", other)

    def __eq__(self, other: Operand) -> Column:  # type: ignore[override]
        return self._with("=", other)

    def __ne__(self, other: Operand) -> Column:  # type: ignore[override]
        return self._with("!=", other)

    __hash__ = object.__hash__

    def __lt__(self, other: Operand) -> Column:
        return self._with("<", other)

    def __le__(self, other: Operand) -> Column:
        return self._with("<=", other)

    def __gt__(self, other: Operand) -> Column:
        return self._with(">", other)

    def __ge__(self, other: Operand) -> Column:
        return self._with(">=", other)

    def __and__(self, other: Column) -> Column:
        return _chained("AND", self, other)

    def __or__(self, other: Column) -> Column:
        return _chained("OR", self, other)

    def __invert__(self) -> Column:
        return Column(f"(NOT {self.text})")

    def __getitem__(self, name: str) -> Column:
        return self.getField(name)

    def _with(self, operator: str, other: Operand) -> Column:
        return Column(f"({self.text} {operator} {operand(other)})")

    # --- methods ----------------------------------------------------------------------------------

    def eqNullSafe(self, other: Operand) -> Column:
        """Equality under which NULL equals NULL."""
        return self._with("<=>", other)

    def div(self, other: Operand) -> Column:
        """The whole quotient, rounded towards zero."""
        return self._with("DIV", other)

    def like(self, pattern: str) -> Column:
        """Whether it matches a pattern of LIKE, with the backslash as escape."""
        return self._with("LIKE", pattern)

    def bitwiseOR(self, other: Column) -> Column:
        """The bits of either."""
        return _chained("|", self, other)

    def bitwiseAND(self, other: Operand) -> Column:
        """The bits of both."""
        return self._with("&", other)

    def between(self, low: Operand, high: Operand) -> Column:
        """Whether it lies between two values or is one of them."""
        return (self >= low) & (self <= high)

    def isin(self, options: Iterable[Operand]) -> Column:
        """Whether it is one of several values."""
        return Column(f"({self.text} IN ({', '.join(map(operand, options))}))")

    def isNull(self) -> Column:
        """Whether it is NULL."""
        return Column(f"({self.text} IS NULL)")

    def isNotNull(self) -> Column:
        """Whether it is not NULL."""
        return Column(f"({self.text} IS NOT NULL)")

    def startswith(self, prefix: Operand) -> Column:
        """Whether a string begins like this."""
        return Column(f"startswith({self.text}, {operand(prefix)})")

    def endswith(self, suffix: Operand) -> Column:
        """Whether a string ends like this."""
        return Column(f"endswith({self.text}, {operand(suffix)})")

    def cast(self, dtype: T.DataType | str) -> Column:
        """The value in another type."""
        return Column(f"CAST({self.text} AS {spelling.type_name(dtype)})")

    def try_cast(self, dtype: T.DataType | str) -> Column:
        """The value in another type, NULL where it has none there."""
        return Column(f"TRY_CAST({self.text} AS {spelling.type_name(dtype)})")

    def getField(self, name: str) -> Column:
        """A field of a struct."""
        return Column(spelling.field_of(self.text, name))

    def alias(self, *names: str) -> Column:
        """The same under a name; a generator of several columns has as many names."""
        return Column(self.text, names)

    def over(
        self, partition: Sequence[Column], order: Column, *, later_by: tuple[int, int | None] | None = None
    ) -> Column:
        """A window function over the rows of a partition.

        With `later_by`, over those whose order, a BIGINT, is larger by at least and at most so much; None: any more.
        """
        parts = [f"PARTITION BY {', '.join(column.text for column in partition)}"] if partition else []
        parts.append(f"ORDER BY {order.text}")
        if later_by is not None:
            low, high = later_by
            end = "UNBOUNDED" if high is None else spelling.bigint(high)
            parts.append(f"RANGE BETWEEN {spelling.bigint(low)} FOLLOWING AND {end} FOLLOWING")
        return Column(f"{self.text} OVER ({' '.join(parts)})")


Operand = Column | Plain


def operand(value: Operand) -> str:
    """A Column, or a plain value as a literal, inside an expression."""
    return value.text if isinstance(value, Column) else spelling.literal(value)


@dataclass(frozen=True, eq=False)
class _Chain(Column):
    """Operands of one associative operator, side by side: nested, a long one would exhaust the stack of the parser."""

    operator: str = ""
    operands: tuple[str, ...] = ()


def _chained(operator: str, *columns: Column) -> Column:
    operands: list[str] = []
    for column in columns:
        if isinstance(column, _Chain) and column.operator == operator:
            operands += column.operands
        else:
            operands.append(column.text)
    return _Chain(f"({f' {operator} '.join(operands)})", (), operator, tuple(operands))


@dataclass(frozen=True, eq=False)
class Case(Column):
    """`CASE WHEN … THEN …`: NULL where no condition holds, until `otherwise` says what."""

    branches: str = ""

    @staticmethod
    def of(branches: Iterable[tuple[Column, Operand]], *, after: str = "") -> Case:
        """The value of the first condition that holds; `after` is the text of branches before these."""
        text = after + "".join(f" WHEN {condition.text} THEN {operand(value)}" for condition, value in branches)
        return Case(f"CASE{text} END", (), text)

    def when(self, condition: Column, value: Operand) -> Case:
        """One more branch, for what the conditions before leave."""
        return Case.of([(condition, value)], after=self.branches)

    def otherwise(self, value: Operand) -> Column:
        """The value where no condition holds."""
        return Column(f"CASE{self.branches} ELSE {operand(value)} END")
