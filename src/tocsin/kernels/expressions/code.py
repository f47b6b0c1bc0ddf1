"""Conditions between events as source text: Python that Numba compiles, and that runs as it is on NumPy scalars.

A value is written as two texts, its number and whether it is NULL; a condition as three, one for each truth value
(SQL's logic). The number of a NULL is whatever comes out: every text can be evaluated at any time without failing.

code        meaning
----        -------
Value       a number and whether it is NULL; as a leaf of an expression it stands in the code already
_Truth      is TRUE, is FALSE, is UNKNOWN
unite       called with every two ranks that are compared: their columns must be ranked together
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from tocsin import errors
from tocsin.analysis.types import Kind
from tocsin.kernels.expressions.leaves import (
    NOTHING,
    NUMBERS,
    RANKED,
    Fold,
    InTask,
    NotNumbers,
    SlotRef,
    Value,
    all_of,
    any_of,
    arithmetic,
    constant,
    negative,
    not_,
    strict,
)
from tocsin.kernels.model import Slot
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx

Leaves = Callable[[SlotRef | Fold], tuple[str, str | None]]
Unite = Callable[[Slot, Slot], None]
MOST_NESTED = 90


def true_code(tree: ex.Expression, texts: Leaves) -> str:
    """A Python expression that is true exactly when the conjunct of a `Test` is TRUE, of whose events all exist.

    `texts` returns the text of a leaf's number, and of whether it is NULL (None: never). Beside these texts, the
    expression names only functions of `numeric.HELPERS`.
    """
    return _Writer(lambda left, right: None).truth(_written(tree, texts)).true


def ranks_that_meet(tree: ex.Expression) -> list[tuple[Slot, Slot]]:
    """The pairs of slots whose ranks a condition compares; raises `NotNumbers` when numbers cannot decide it."""
    pairs: list[tuple[Slot, Slot]] = []
    condition_code(_written(tree, lambda leaf: ("0", None)), lambda one, other: pairs.append((one, other)))
    return pairs


def _written(tree: ex.Expression, texts: Leaves) -> ex.Expression:
    """The tree with the texts of its leaves."""

    def leaf(node: ex.Expression) -> ex.Expression:
        if not isinstance(node, SlotRef | Fold):
            return node
        text, null = texts(node)
        ranks = (node.slot,) if node.slot is not None and node.kind in RANKED else ()
        return Value(text, null or "False", node.kind, ranks)

    return tree.transform(leaf)


def condition_code(tree: ex.Expression, unite: Unite) -> str:
    """A Python expression that is true exactly when a condition is TRUE, whose leaves are `Value`s."""
    return require_shallow(_Writer(unite).truth(tree).true)


def value_code(tree: ex.Expression, unite: Unite) -> Value:
    """The value of an expression whose leaves are `Value`s: `x + 1` becomes `(int(x[i]) + 1)`."""
    found = _Writer(unite).value(tree)
    require_shallow(found.null)
    require_shallow(found.text)
    return found


def require_shallow(text: str) -> str:
    """The text; raises `NotNumbers` when brackets are nested too deeply for Python's parser."""
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > MOST_NESTED:
        raise NotNumbers
    return text


# --- conditions ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Truth:
    true: str
    false: str
    unknown: str

    @property
    def opposite(self) -> _Truth:
        return _Truth(self.false, self.true, self.unknown)


class _Writer:
    """Writes the texts of one tree."""

    def __init__(self, unite: Unite) -> None:
        self.unite = unite

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
                found = _Truth(null, not_(null), "False")
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
            case _:
                value = self.value(node)
                if value.kind not in (Kind.BOOLEAN, Kind.NULL):
                    raise NotNumbers
                known = not_(value.null)
                return _Truth(all_of(known, value.text), all_of(known, not_(value.text)), value.null)

    def _compare(self, op: str, left: Value, right: Value) -> _Truth:
        (one, other), kind = self._meet(left, right)
        null = any_of(one.null, other.null)
        if kind is Kind.NULL:
            return _Truth("False", "False", "True")
        if kind is Kind.BOOLEAN:
            one, other = (replace(each, text=f"int({each.text})") for each in (one, other))
        text, opposite = _order(op, one.text, other.text, is_double=kind is Kind.DOUBLE)
        return _Truth(all_of(not_(null), text), all_of(not_(null), opposite), null)

    # --- values ---

    def value(self, node: ex.Expression) -> Value:
        """A value."""
        match node:
            case Value(kind=Kind.BOOLEAN):
                return node
            case Value():  # Python's own numbers neither wrap around nor warn, as NumPy's do
                return replace(node, text=f"{'float' if node.kind is Kind.DOUBLE else 'int'}({node.text})")
            case ex.Literal() | ex.Timestamp() | ex.Date() | ex.Interval():
                return constant(node)
            case ex.Arithmetic():
                return arithmetic(node.op, self.value(node.left), self.value(node.right))
            case ex.Negative():
                return negative(self.value(node.operand))
            case ex.Call():
                return self._call(node)
            case ex.Case():
                return self._case(node)
            case ex.Comparison() | ex.And() | ex.Or() | ex.Not() | ex.IsNull() | ex.In() | ex.Between():
                found = self.truth(node)
                return Value(found.true, found.unknown, Kind.BOOLEAN)
            case ex.Attribute() | ex.Variable() | ex.Name() | ex.Aggregate() | ex.Like() | ex.SameValue():
                raise NotNumbers
            case ex.Every() | ex.BagPredicate() | InTask() | SlotRef() | Fold():
                raise NotNumbers
            case rx.Apply() | rx.InTable() | rx.CalendarField() | rx.ListOf() | rx.Mean() | rx.SameEvent():
                raise NotNumbers
            case _:
                raise errors.unknown_node(node, "The code of loops")

    def _meet(self, *values: Value) -> tuple[list[Value], Kind]:
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

    def _case(self, node: ex.Case) -> Value:
        tests = [self.truth(test).true for test, _ in node.branches]
        otherwise = NOTHING if node.otherwise is None else self.value(node.otherwise)
        results, kind = self._meet(*(self.value(result) for _, result in node.branches), otherwise)
        last = results.pop()
        text, null = last.text, last.null
        for test, result in reversed(list(zip(tests, results, strict=True))):
            text = f"({result.text} if {test} else {text})"
            null = null if null == result.null else any_of(all_of(test, result.null), all_of(not_(test), null))
        return Value(text, null, kind, last.ranks)

    def _call(self, node: ex.Call) -> Value:
        if len(node.arguments) > MOST_NESTED + 1:  # each stands in brackets of its own inside the next
            raise NotNumbers
        arguments = [self.value(argument) for argument in node.arguments]
        match node.function:
            case "coalesce":
                values, kind = self._meet(*arguments)
                text = reduce(
                    lambda rest, value: f"({rest} if {value.null} else {value.text})",
                    reversed(values[:-1]),
                    values[-1].text,
                )
                return Value(text, all_of(*(value.null for value in values)), kind, values[0].ranks)
            case "nullif":
                equal = self._compare("=", *arguments)
                return replace(arguments[0], null=any_of(arguments[0].null, equal.true))
            case "greatest" | "least":
                values, kind = self._meet(*arguments)
                choose = "larger" if node.function == "greatest" else "smaller"
                return reduce(
                    lambda best, value: replace(
                        best,
                        text=f"{choose}({best.text}, {best.null}, {value.text}, {value.null})",
                        null=all_of(best.null, value.null),
                    ),
                    values,
                )
            case _:
                return strict(node, arguments)


def _conjunction(operands: list[_Truth]) -> _Truth:
    true, false = all_of(*(each.true for each in operands)), any_of(*(each.false for each in operands))
    certain = all(each.unknown == "False" for each in operands)
    return _Truth(true, false, "False" if certain else not_(any_of(true, false)))


def _order(op: str, left: str, right: str, *, is_double: bool) -> tuple[str, str]:
    """A comparison of two numbers, and its opposite."""
    if op in (">", ">="):
        op, left, right = {">": "<", ">=": "<="}[op], right, left
    if not is_double:
        text = f"({left} {'==' if op == '=' else op} {right})"
        return text, not_(text)
    name = {"=": "equal_doubles", "!=": "equal_doubles", "<": "less_double", "<=": "at_most_double"}[op]
    text = f"{name}({left}, {right})"
    return (not_(text), text) if op == "!=" else (text, not_(text))
