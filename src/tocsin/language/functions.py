"""The scalar functions and aggregates of conditions: one table that every layer reads.

A name, what it takes and what it gives; how it is computed is each back end's own. All but `coalesce`,
`nullif`, `greatest` and `least` are NULL when an argument is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tocsin import errors
from tocsin.language import expressions as ex


class Takes(Enum):
    """The kinds of arguments that a parameter takes."""

    NUMBER = "a number"
    MAGNITUDE = "a number or an interval"
    INTEGER = "an integer"
    STRING = "a string"
    VALUE = "a value that can be compared"
    ORDERED = "a value with an order"
    ANYTHING = "anything"


class Gives(Enum):
    """The type of a result, by the types of the arguments."""

    SAME = "the type of the arguments"
    FIRST = "the type of the first argument"
    WHOLE = "an integer, or a decimal of a decimal"
    NUMBER = "the type of an arithmetic result"
    INTEGER = "an integer"
    DOUBLE = "a double"
    STRING = "a string"
    ARRAY = "an array of the argument's type"


@dataclass(frozen=True)
class Function:
    """A scalar function."""

    name: str
    takes: tuple[Takes, ...]  # its parameters; `names` are the words for them
    gives: Gives
    names: tuple[str, ...]
    optional: int = 0  # how many of the last parameters may be left out
    is_variadic: bool = False  # whether the last parameter may come again and again

    @property
    def least(self) -> int:
        """The smallest number of arguments."""
        return len(self.takes) - self.optional

    @property
    def most(self) -> int | None:
        """The largest number of arguments; None when there is none."""
        return None if self.is_variadic else len(self.takes)

    def parameter(self, position: int) -> Takes:
        """The kind of argument at a position, counted from 0."""
        return self.takes[min(position, len(self.takes) - 1)]

    @property
    def signature(self) -> str:
        """How it is written.

        >>> FUNCTIONS["round"].signature, FUNCTIONS["coalesce"].signature
        ('round(number[, digits])', 'coalesce(value, …)')
        """
        given, rest = self.names[: self.least], self.names[self.least :]
        text = ", ".join(given) + "".join(f"[, {name}]" for name in rest) + (", …" if self.is_variadic else "")
        return f"{self.name}({text})"


def _function(name: str, takes: Takes, gives: Gives) -> Function:
    words = {Takes.STRING: "text", Takes.MAGNITUDE: "number"}
    return Function(name, (takes,), gives, (words.get(takes, "number"),))


FUNCTIONS: dict[str, Function] = {
    each.name: each
    for each in (
        _function("abs", Takes.MAGNITUDE, Gives.SAME),
        _function("ceil", Takes.NUMBER, Gives.WHOLE),
        _function("floor", Takes.NUMBER, Gives.WHOLE),
        Function("round", (Takes.NUMBER, Takes.INTEGER), Gives.FIRST, ("number", "digits"), optional=1),
        _function("sqrt", Takes.NUMBER, Gives.DOUBLE),
        Function("power", (Takes.NUMBER, Takes.NUMBER), Gives.DOUBLE, ("base", "exponent")),
        Function("mod", (Takes.NUMBER, Takes.NUMBER), Gives.NUMBER, ("number", "divisor")),
        _function("sign", Takes.NUMBER, Gives.DOUBLE),
        _function("lower", Takes.STRING, Gives.STRING),
        _function("upper", Takes.STRING, Gives.STRING),
        _function("trim", Takes.STRING, Gives.STRING),
        _function("length", Takes.STRING, Gives.INTEGER),
        _function("digits", Takes.INTEGER, Gives.STRING),
        Function("concat", (Takes.STRING,), Gives.STRING, ("text",), is_variadic=True),
        Function(
            "substring",
            (Takes.STRING, Takes.INTEGER, Takes.INTEGER),
            Gives.STRING,
            ("text", "from", "length"),
            optional=1,
        ),
        Function("coalesce", (Takes.ANYTHING,), Gives.SAME, ("value",), is_variadic=True),
        Function("nullif", (Takes.VALUE, Takes.VALUE), Gives.FIRST, ("value", "null_value")),
        Function("greatest", (Takes.ORDERED,), Gives.SAME, ("value",), is_variadic=True),
        Function("least", (Takes.ORDERED,), Gives.SAME, ("value",), is_variadic=True),
    )
}


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate over the bag of a variable; only `count` takes a whole variable or `*`."""

    name: str
    takes: Takes
    gives: Gives


AGGREGATES: dict[str, AggregateFunction] = {
    each.name: each
    for each in (
        AggregateFunction("count", Takes.ANYTHING, Gives.INTEGER),
        AggregateFunction("sum", Takes.NUMBER, Gives.SAME),
        AggregateFunction("min", Takes.ORDERED, Gives.SAME),
        AggregateFunction("max", Takes.ORDERED, Gives.SAME),
        AggregateFunction("avg", Takes.NUMBER, Gives.DOUBLE),
        AggregateFunction("range", Takes.NUMBER, Gives.SAME),
        AggregateFunction("first", Takes.ANYTHING, Gives.SAME),
        AggregateFunction("last", Takes.ANYTHING, Gives.SAME),
        AggregateFunction("stddev", Takes.NUMBER, Gives.DOUBLE),
        AggregateFunction("collect", Takes.ANYTHING, Gives.ARRAY),
    )
}


def call_problem(call: ex.Call) -> errors.TocsinError | None:
    """The error in the name or the number of arguments of a call; their types need a schema.

    >>> print(call_problem(ex.Call("sqrtt", (ex.Literal(4),))))
    [UNKNOWN_FUNCTION] There is no function `sqrtt`.
    Hint: did you mean `sqrt`? functions: abs, avg, ceil, ...
    >>> print(call_problem(ex.Call("sqrt", ())))
    [WRONG_ARGUMENTS] `sqrt` takes 1 argument, not 0.
    Hint: write `sqrt(number)`.
    """
    function = FUNCTIONS.get(call.function)
    if function is None:
        return errors.UnknownFunctionError(
            f"There is no function `{call.function}`.",
            where=call.where,
            hint=errors.did_you_mean(call.function, [*FUNCTIONS, *AGGREGATES], "functions"),
        )
    given = len(call.arguments)
    if given >= function.least and (function.most is None or given <= function.most):
        return None
    if function.most is None:
        wanted = f"at least {function.least}"
    elif function.least == function.most:
        wanted = str(function.least)
    else:
        wanted = f"{function.least} or {function.most}"
    plural = "" if wanted.endswith(" 1") or wanted == "1" else "s"
    return errors.WrongArgumentsError(
        f"`{function.name}` takes {wanted} argument{plural}, not {given}.",
        where=call.where,
        hint=f"write `{function.signature}`.",
    )
