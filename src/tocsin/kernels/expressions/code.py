"""Conditions between events as source text: Python that Numba compiles, and that runs as it is on NumPy scalars.

A value is written as two texts, its number and whether it is NULL; a condition as three, one for each truth value
(SQL's logic). The number of a NULL is whatever comes out: every text can be evaluated at any time without failing.

code        meaning
----        -------
_Value      a number and whether it is NULL
_Truth      is TRUE, is FALSE, is UNKNOWN
unite       told of every two ranks that meet: their columns must be ranked together
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from tocsin.analysis.types import Kind
from tocsin.kernels.expressions.folds import fold_statements
from tocsin.kernels.expressions.leaves import Fold, SlotRef, Test, Text
from tocsin.kernels.expressions.numeric import GREATEST, LEAST
from tocsin.kernels.model import Slot
from tocsin.language import expressions as ex

__all__ = ["NotNumbers", "condition_code", "fold_statements", "ranks_that_meet", "true_code", "value_code"]

Texts = tuple[str, str | None]
RANKED = frozenset({Kind.STRING, Kind.DECIMAL, Kind.BINARY})
COUNTED = frozenset({Kind.INTEGER, Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL})  # held as 64-bit integers
NUMBERS = COUNTED | {Kind.DOUBLE}
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)
MOST_STEP_DIGITS = 18  # of a power of ten in 64 bits


class NotNumbers(Exception):
    """Numbers cannot decide a condition."""


def true_code(test: Test, value: Callable[[SlotRef], Texts], fold: Callable[[Fold], Texts]) -> str:
    """A Python expression that is true exactly when a conjunct is TRUE.

    Parameters
    ----------
    test
        The conjunct; all events it refers to exist.
    value
        The text of a slot's number for the event of a reference, and of whether it is NULL; None when it never is.
    fold
        The same for an aggregate.

    Notes
    -----
    Beside the texts it is given, the expression names only functions of `numeric.HELPERS`.
    """
    return _Writer(value, fold, lambda left, right: None).truth(test.tree).true


def ranks_that_meet(tree: ex.Expression) -> list[tuple[Slot, Slot]]:
    """The pairs of slots whose ranks a condition compares.

    Raises
    ------
    NotNumbers
        When it cannot be written with numbers.
    """
    pairs: list[tuple[Slot, Slot]] = []
    _Writer(lambda leaf: ("0", None), lambda leaf: ("0", None), lambda left, right: pairs.append((left, right))).truth(
        tree
    )
    return pairs


Unite = Callable[[Slot, Slot], None]


def condition_code(tree: ex.Expression, unite: Unite) -> str:
    """The same as `true_code` for a condition whose leaves are `Text`s; `unite` is told of the ranks that meet."""
    return _Writer(_no_leaf, _no_leaf, unite).truth(tree).true


def value_code(tree: ex.Expression, unite: Unite) -> Text:
    """The value of an expression whose leaves are `Text`s.

    Examples
    --------
    >>> x = Text("x[i]", "x_null[i]", Kind.INTEGER)
    >>> value_code(ex.Arithmetic("+", x, ex.Literal(1)), lambda left, right: None).text
    '(int(x[i]) + 1)'
    """
    found = _Writer(_no_leaf, _no_leaf, unite).value(tree)
    return Text(found.text, None if found.null == "False" else found.null, found.kind, found.ranks)


def _no_leaf(leaf: ex.Expression) -> Texts:
    raise TypeError(leaf)


# --- texts ----------------------------------------------------------------------------------------


def _all(*texts: str) -> str:
    known = [text for text in texts if text != "True"]
    if "False" in known:
        return "False"
    return f"({' and '.join(known)})" if len(known) > 1 else (known[0] if known else "True")


def _any(*texts: str) -> str:
    known = [text for text in texts if text != "False"]
    if "True" in known:
        return "True"
    return f"({' or '.join(known)})" if len(known) > 1 else (known[0] if known else "False")


def _not(text: str) -> str:
    return {"True": "False", "False": "True"}.get(text, f"(not {text})")


@dataclass(frozen=True)
class _Value:
    """A number and whether it is NULL; `ranks` are the slots a rank may come from."""

    text: str
    null: str
    kind: Kind
    ranks: tuple[Slot, ...] = ()

    @property
    def double(self) -> str:
        """The number as a double."""
        return self.text if self.kind is Kind.DOUBLE else f"float({self.text})"


@dataclass(frozen=True)
class _Truth:
    true: str
    false: str
    unknown: str

    @property
    def opposite(self) -> _Truth:
        return _Truth(self.false, self.true, self.unknown)


NOTHING = _Value("0", "True", Kind.NULL)


class _Writer:
    """Writes the texts of one tree."""

    def __init__(
        self,
        value: Callable[[SlotRef], Texts],
        fold: Callable[[Fold], Texts],
        unite: Callable[[Slot, Slot], None],
    ) -> None:
        self.of_slot, self.of_fold, self.unite = value, fold, unite

    # --- conditions ---

    def truth(self, node: ex.Expression) -> _Truth:
        """A condition."""
        match node:
            case ex.Comparison():
                return self._compare(node.op, self.value(node.left), self.value(node.right))
            case ex.And():
                return _conjunction([self.truth(operand) for operand in node.operands])
            case ex.Or():
                return _conjunction([self.truth(operand).opposite for operand in node.operands]).opposite
            case ex.Not():
                return self.truth(node.operand).opposite
            case ex.IsNull():
                null = self.value(node.operand).null
                found = _Truth(null, _not(null), "False")
                return found.opposite if node.negated else found
            case ex.In():
                subject = self.value(node.operand)
                tests = [self._compare("=", subject, self.value(option)) for option in node.options]
                found = _conjunction([each.opposite for each in tests])
                return found if node.negated else found.opposite
            case ex.Between():
                subject = self.value(node.operand)
                low, high = self.value(node.low), self.value(node.high)
                inside = _conjunction([self._compare(">=", subject, low), self._compare("<=", subject, high)])
                return inside.opposite if node.negated else inside
        value = self.value(node)
        if value.kind not in (Kind.BOOLEAN, Kind.NULL):
            raise NotNumbers
        known = _not(value.null)
        return _Truth(_all(known, value.text), _all(known, _not(value.text)), value.null)

    def _compare(self, op: str, left: _Value, right: _Value) -> _Truth:
        (one, other), kind = self._meet(left, right)
        null = _any(one.null, other.null)
        if kind is Kind.NULL:
            return _Truth("False", "False", "True")
        if kind is Kind.BOOLEAN:
            one, other = (replace(each, text=f"int({each.text})") for each in (one, other))
        text, opposite = _order(op, one.text, other.text, is_double=kind is Kind.DOUBLE)
        return _Truth(_all(_not(null), text), _all(_not(null), opposite), null)

    # --- values ---

    def value(self, node: ex.Expression) -> _Value:
        """A value."""
        match node:
            case SlotRef():
                return self._leaf(self.of_slot(node), node.kind, node.slot)
            case Fold():
                return self._leaf(self.of_fold(node), node.kind, node.slot)
            case Text():
                found = self._leaf((node.text, node.null), node.kind, None)
                return replace(found, ranks=node.ranks)
            case ex.Literal() | ex.Timestamp() | ex.Date() | ex.Interval():
                return _constant(node)
            case ex.Arithmetic():
                return _arithmetic(node.op, self.value(node.left), self.value(node.right))
            case ex.Negative():
                return _negative(self.value(node.operand))
            case ex.Call():
                return self._call(node)
            case ex.Case():
                return self._case(node)
            case ex.Comparison() | ex.And() | ex.Or() | ex.Not() | ex.IsNull() | ex.In() | ex.Between():
                found = self.truth(node)
                return _Value(found.true, found.unknown, Kind.BOOLEAN)
        raise NotNumbers

    def _leaf(self, texts: Texts, kind: Kind, slot: Slot | None) -> _Value:
        text, null = texts
        # Python's own numbers neither wrap around nor warn, as NumPy's do.
        if kind is Kind.DOUBLE:
            text = f"float({text})"
        elif kind is not Kind.BOOLEAN:
            text = f"int({text})"
        return _Value(text, null or "False", kind, (slot,) if slot is not None and kind in RANKED else ())

    def _meet(self, *values: _Value) -> tuple[list[_Value], Kind]:
        """Values in a common domain: beside a double everything is a double; ranks must be of one family."""
        kinds = {value.kind for value in values} - {Kind.NULL}
        if not kinds:
            return list(values), Kind.NULL
        if kinds <= NUMBERS:
            if Kind.DOUBLE in kinds:
                return [
                    replace(value, text="0.0" if value.kind is Kind.NULL else value.double, kind=Kind.DOUBLE)
                    for value in values
                ], Kind.DOUBLE
            kind = next(kind for kind in (Kind.INTEGER, Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL) if kind in kinds)
            return [replace(value, kind=kind) for value in values], kind
        if len(kinds) > 1:
            raise NotNumbers
        (only,) = kinds
        if only is Kind.BOOLEAN:
            return [replace(each, text="False", kind=only) if each.kind is Kind.NULL else each for each in values], only
        ranks = [slot for value in values for slot in value.ranks]
        for slot in ranks[1:]:
            self.unite(ranks[0], slot)
        return [replace(value, kind=only, ranks=tuple(ranks)) for value in values], only

    def _case(self, node: ex.Case) -> _Value:
        tests = [self.truth(test).true for test, _ in node.branches]
        otherwise = NOTHING if node.otherwise is None else self.value(node.otherwise)
        results, kind = self._meet(*(self.value(result) for _, result in node.branches), otherwise)
        last = results.pop()
        text, null = last.text, last.null
        for test, result in reversed(list(zip(tests, results, strict=True))):
            text = f"({result.text} if {test} else {text})"
            null = null if null == result.null else _any(_all(test, result.null), _all(_not(test), null))
        return _Value(text, null, kind, last.ranks)

    def _call(self, node: ex.Call) -> _Value:
        arguments = [self.value(argument) for argument in node.arguments]
        match node.function:
            case "coalesce":
                values, kind = self._meet(*arguments)
                text = reduce(
                    lambda rest, value: f"({rest} if {value.null} else {value.text})",
                    reversed(values[:-1]),
                    values[-1].text,
                )
                return _Value(text, _all(*(value.null for value in values)), kind, values[0].ranks)
            case "nullif":
                equal = self._compare("=", *arguments)
                return replace(arguments[0], null=_any(arguments[0].null, equal.true))
            case "greatest" | "least":
                values, kind = self._meet(*arguments)
                choose = "larger" if node.function == "greatest" else "smaller"
                return reduce(
                    lambda best, value: replace(
                        best,
                        text=f"{choose}({best.text}, {best.null}, {value.text}, {value.null})",
                        null=_all(best.null, value.null),
                    ),
                    values,
                )
        return _strict(node, arguments)


def _conjunction(operands: list[_Truth]) -> _Truth:
    true, false = _all(*(each.true for each in operands)), _any(*(each.false for each in operands))
    certain = all(each.unknown == "False" for each in operands)
    return _Truth(true, false, "False" if certain else _not(_any(true, false)))


def _order(op: str, left: str, right: str, *, is_double: bool) -> tuple[str, str]:
    """A comparison of two numbers, and its opposite."""
    if op in (">", ">="):
        op, left, right = {">": "<", ">=": "<="}[op], right, left
    if not is_double:
        text = f"({left} {'==' if op == '=' else op} {right})"
        return text, _not(text)
    name = {"=": "equal_doubles", "!=": "equal_doubles", "<": "less_double", "<=": "at_most_double"}[op]
    text = f"{name}({left}, {right})"
    return (_not(text), text) if op == "!=" else (text, _not(text))


# --- constants and arithmetic ---------------------------------------------------------------------


def _constant(node: ex.Expression) -> _Value:
    match node:
        case ex.Literal(value=None):
            return NOTHING
        case ex.Literal(value=bool() as value):
            return _Value(str(value), "False", Kind.BOOLEAN)
        case ex.Literal(value=float() as value):
            return _Value(_double(value), "False", Kind.DOUBLE)
        case ex.Literal(value=int() as number):
            kind = Kind.INTEGER
        case ex.Interval():
            kind, number = Kind.INTERVAL, node.microseconds
        case ex.Timestamp():
            zoned = node.value if node.value.tzinfo else node.value.replace(tzinfo=dt.UTC)
            kind, number = Kind.TIMESTAMP, (zoned - EPOCH) // MICROSECOND
        case ex.Date():
            kind, number = Kind.DATE, (node.value - EPOCH.date()) // MICROSECOND
        case _:
            raise NotNumbers
    if not LEAST <= number <= GREATEST:
        raise NotNumbers
    return _Value(f"({number})" if number < 0 else str(number), "False", kind)


def _double(value: float) -> str:
    """A double as Python text, which has no words for NaN and the infinities."""
    if math.isnan(value):
        return "(1e999 - 1e999)"
    if math.isinf(value):
        return "1e999" if value > 0 else "(-1e999)"
    return f"({value!r})" if value < 0 else repr(value)


def _nothing_of(*values: _Value) -> _Value:
    kind = next((value.kind for value in values if value.kind is not Kind.NULL), Kind.NULL)
    return _Value("0.0" if kind is Kind.DOUBLE else "0", "True", kind)


def _arithmetic(op: str, left: _Value, right: _Value) -> _Value:
    kinds = {left.kind, right.kind}
    if op == "||" or not kinds <= NUMBERS | {Kind.NULL}:
        raise NotNumbers
    if Kind.NULL in kinds:
        return _nothing_of(left, right)
    null = _any(left.null, right.null)
    if op == "/":
        text, null = f"divide({left.double}, {right.double})", _any(null, f"({right.double} == 0.0)")
        return (
            _interval(text, null)
            if kinds & {Kind.INTERVAL} and right.kind is not Kind.INTERVAL
            else _Value(text, null, Kind.DOUBLE)
        )
    if Kind.DOUBLE in kinds:
        if op == "%":
            text = f"remainder_doubles({left.double}, {right.double})"
            return _Value(text, _any(null, f"({right.double} == 0.0)"), Kind.DOUBLE)
        text = f"({left.double} {op} {right.double})"
        return _interval(text, null) if op == "*" and Kind.INTERVAL in kinds else _Value(text, null, Kind.DOUBLE)
    kind = _counted_kind(op, left.kind, right.kind)
    if op == "%":
        text = f"remainder_integers({left.text}, {right.text})"
        return _Value(text, _any(null, f"({right.text} == 0)"), kind)
    overflows = {"+": "add_overflows", "-": "subtract_overflows", "*": "multiply_overflows"}[op]
    return _Value(f"({left.text} {op} {right.text})", _any(null, f"{overflows}({left.text}, {right.text})"), kind)


def _interval(double: str, null: str) -> _Value:
    """A part of an interval is rounded to whole microseconds."""
    return _Value(f"nearest_integer({double})", _any(null, f"(not fits_integer({double}))"), Kind.INTERVAL)


def _counted_kind(op: str, left: Kind, right: Kind) -> Kind:
    times = {Kind.TIMESTAMP, Kind.DATE}
    if left in times and right in times:
        return Kind.INTERVAL
    if left in times or right in times:
        return Kind.TIMESTAMP
    if Kind.INTERVAL in (left, right):
        return Kind.INTERVAL if op == "*" or left is right else Kind.INTEGER
    return Kind.INTEGER


def _negative(value: _Value) -> _Value:
    if value.kind is Kind.NULL:
        return value
    if value.kind is Kind.DOUBLE:
        return replace(value, text=f"(-{value.text})")
    if value.kind not in (Kind.INTEGER, Kind.INTERVAL):
        raise NotNumbers
    return replace(value, text=f"(-{value.text})", null=_any(value.null, f"({value.text} == {LEAST})"))


def _strict(node: ex.Call, arguments: list[_Value]) -> _Value:
    """A function that is NULL when an argument is."""
    first = arguments[0]
    if any(argument.kind not in NUMBERS | {Kind.NULL} for argument in arguments):
        raise NotNumbers
    if any(argument.kind is Kind.NULL for argument in arguments):
        return _nothing_of(*arguments)
    null = _any(*(argument.null for argument in arguments))
    is_double = first.kind is Kind.DOUBLE
    match node.function:
        case "abs":
            least = "False" if is_double else f"({first.text} == {LEAST})"
            return _Value(f"abs({first.text})", _any(null, least), first.kind)
        case "ceil" | "floor":
            if not is_double:
                return first
            fits = f"(not fits_integer({first.text}))"
            return _Value(f"{node.function}_integer({first.text})", _any(null, fits), Kind.INTEGER)
        case "round":
            return _round(first, node.arguments[1] if len(arguments) > 1 else ex.Literal(0))
        case "sqrt":
            return _Value(f"square_root({first.double})", null, Kind.DOUBLE)
        case "power":
            return _Value(f"power({first.double}, {arguments[1].double})", null, Kind.DOUBLE)
        case "mod":
            return _arithmetic("%", first, arguments[1])
        case "sign":
            return _Value(f"sign({first.double})", null, Kind.DOUBLE)
    raise NotNumbers


def _round(value: _Value, digits: ex.Expression) -> _Value:
    """ROUND of an integer to a constant place; a double is rounded by its shortest decimal text, not as a number."""
    match digits:
        case ex.Literal(value=int() as places):
            pass
        case ex.Negative(operand=ex.Literal(value=int() as above)):
            places = -above
        case _:
            raise NotNumbers
    if value.kind is not Kind.INTEGER or places < -MOST_STEP_DIGITS:
        raise NotNumbers
    if places >= 0:
        return value
    step = 10**-places
    overflows = f"round_overflows({value.text}, {step})"
    return replace(value, text=f"round_integer({value.text}, {step})", null=_any(value.null, overflows))
