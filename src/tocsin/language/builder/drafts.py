"""Patterns and clauses of the builder."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tocsin.errors import QuerySyntaxError, named, nearest, shown
from tocsin.language import ast, durations
from tocsin.language import expressions as ex
from tocsin.language.builder.operands import MOST_WRITTEN, Value, checked_names, checked_text, refusal, text_or_tree
from tocsin.language.sase.parser import parse_expression
from tocsin.language.sase.printer import SKIPS as POLICIES
from tocsin.language.sase.printer import print_query
from tocsin.language.sase.words import SELECTIONS
from tocsin.language.tree_builders import whole_variable
from tocsin.source import caller

SKIPS = {text.lower().removesuffix(" event"): skip for skip, text in POLICIES.items()}
OUTPUTS = {output.value: output for output in ast.Output} | {
    "first": ast.Output.FIRST_PER_START,
    "last": ast.Output.LAST_PER_START,
}


@dataclass(frozen=True, eq=False, repr=False)
class Draft:
    """A query under construction; every clause gives a new one."""

    query: ast.Query  # equal to the tree of the same query in text

    def __str__(self) -> str:
        """The query as text."""
        return print_query(self.query)

    def __repr__(self) -> str:
        """The class and the text."""
        return f"{type(self).__name__}({str(self)!r})"

    def _with(self, **clauses: Any) -> Draft:
        places = dict(self.query.places) | dict.fromkeys(clauses, caller())
        return Draft(replace(self.query, **clauses, places=places))

    # --- clauses ---

    def where(self, *conditions: Value | str) -> Draft:
        """Conditions that must all hold, beside those of earlier calls.

        >>> from tocsin.language.builder import col, event
        >>> print(event("A", "a").where(col("a.x") > 5).where("a.y < 3"))
        PATTERN A a
        WHERE a.x > 5
          AND a.y < 3
        """
        return self._with(where_clause=_joined(self.query.where_clause, conditions, "where"))

    def within(
        self,
        duration: dt.timedelta | str | None = None,
        *,
        slide: dt.timedelta | str | None = None,
        **units: float,
    ) -> Draft:
        """The window: a timedelta, text such as `"15 minutes"`, or units as keywords.

        >>> from tocsin.language.builder import event
        >>> print(event("A", "a").within(hours=1, minutes=30))
        PATTERN A a
        WITHIN 90 MINUTES
        """
        window = ast.Window(_duration(duration, units), None if slide is None else _duration(slide, {}), where=caller())
        return self._with(within=window)

    def partition_by(self, *attributes: str) -> Draft:
        """Each value of these attributes is a stream of its own."""
        keys = tuple(ast.Key(attribute, where=caller()) for attribute in checked_names(attributes, "partition_by"))
        return self._with(partition_by=keys)

    def semantics(self, selection: str | ast.Selection) -> Draft:
        """Which matches are selected: `any`, `next`, `contiguous` or `partition-contiguous`."""
        return self._with(selection=_choice(selection, SELECTIONS, ast.Selection, "selection policy"))

    def next(self) -> Draft:
        """Short for `semantics("next")`: skip no event that could have been taken."""
        return self.semantics(ast.Selection.NEXT)

    def contiguous(self) -> Draft:
        """Short for `semantics("contiguous")`: no other event in between."""
        return self.semantics(ast.Selection.CONTIGUOUS)

    def partition_contiguous(self) -> Draft:
        """Short for `semantics("partition-contiguous")`: no other event of the partition in between."""
        return self.semantics(ast.Selection.PARTITION_CONTIGUOUS)

    def after_match(self, policy: str, variable: str | None = None) -> Draft:
        """Where to go on: `reuse`, `skip past last`, `skip to next`, `skip to first` or `last` of a variable.

        >>> from tocsin.language.builder import event, seq
        >>> print(seq(event("A", "a"), event("B", "b")).after_match("skip to first", "b"))
        PATTERN SEQ(A a, B b)
        AFTER MATCH SKIP TO FIRST b
        """
        words = (
            " ".join(checked_text(policy, "after_match").lower().split()).removesuffix(" event").removesuffix(" row")
        )
        skip = _choice(words, SKIPS, ast.Skip, "after-match policy")
        if (variable is not None) != (skip in {ast.Skip.TO_FIRST, ast.Skip.TO_LAST}):
            raise refusal(
                f"`{words}` {'needs a' if variable is None else 'takes no'} variable.",
                'write after_match("skip to first", "b") or after_match("skip past last").',
            )
        name = None if variable is None else checked_text(variable, "after_match")
        return self._with(after_match=ast.AfterMatch(skip, name, where=caller()))

    def output(self, which: str | ast.Output) -> Draft:
        """Which matches come out: `all`, `first per start`, `last per end`, `longest`, `count`."""
        return self._with(output=_choice(which, OUTPUTS, ast.Output, "kind of output"))

    def returns(self, *columns: Value | str, **named: Value | str) -> Draft:
        """The columns of the result; a keyword is the name of its column.

        >>> from tocsin.language.builder import event, seq, sum_
        >>> print(seq(event("A", "a"), event("B", "b").plus()).returns("a.user", total=sum_("b.x")))
        PATTERN SEQ(A a, B+ b)
        RETURN a.user, SUM(b.x) AS total
        """
        items = [(column, None) for column in columns] + [(value, name) for name, value in named.items()]
        built = tuple(_column(value, name) for value, name in items)
        return self._with(returns=(*self.query.returns, *built))

    def group_by(self, *keys: Value | str) -> Draft:
        """Aggregate over all matches with equal keys."""
        return self._with(group_by=tuple(text_or_tree(key) for key in keys))

    def having(self, *conditions: Value | str) -> Draft:
        """Conditions on groups, beside those of earlier calls; they may use RETURN names."""
        return self._with(having=_joined(self.query.having, conditions, "having"))

    def every(self, duration: dt.timedelta | str | None = None, **units: float) -> Draft:
        """Aggregate over the matches that start in each window of this length.

        >>> from tocsin.language.builder import count, event
        >>> print(event("A", "a").returns(n=count()).every("1 minute"))
        PATTERN A a
        RETURN COUNT(*) AS n
        EVERY 1 MINUTE
        """
        return self._with(every=ast.Window(_duration(duration, units), where=caller()))

    def with_timeouts(self) -> Draft:
        """Report partial matches that the window closed, too."""
        return self._with(timeouts=True)


class Element(Draft):
    """An element, alone or in others; with clauses it becomes a query."""

    def __init__(self, element: ast.Element) -> None:
        super().__init__(ast.Query(element, where=element.where))

    @property
    def element(self) -> ast.Element:
        """The tree of the pattern alone."""
        return self.query.pattern

    def _repeated(self, least: int, most: int | None) -> Element:
        for number in (least,) if most is None else (least, most):
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MOST_WRITTEN:
                raise refusal(
                    f"A number of repetitions is an integer, not {shown(number)}.",
                    "write .times(3), .times(2, 5) or .at_least(2).",
                )
        element = self.element
        if isinstance(element, ast.Negation):
            raise refusal("An absence is not repeated.", "remove the quantifier.")
        if element.quantifier is not None:
            raise refusal("The element has a quantifier already.", "put it into a seq(…) of its own.")
        return Element(replace(element, quantifier=ast.Quantifier(least, most, where=caller())))

    def plus(self) -> Element:
        """`T+`: once or more."""
        return self._repeated(1, None)

    def star(self) -> Element:
        """`T*`: any number of times, or not at all."""
        return self._repeated(0, None)

    def optional(self) -> Element:
        """`T?`: once or not at all."""
        return self._repeated(0, 1)

    def times(self, least: int, most: int | None = None) -> Element:
        """`T{3}` for `times(3)`, `T{2,5}` for `times(2, 5)`."""
        return self._repeated(least, least if most is None else most)

    def at_least(self, least: int) -> Element:
        """`T{2,}`."""
        return self._repeated(least, None)

    def __invert__(self) -> Element:
        return absent(self)


def event(type: str, name: str | None = None) -> Element:
    """One event of a type, bound to a variable; without a name the type's name is the variable.

    >>> print(event("Transfer", "b").times(2, 5))
    PATTERN Transfer{2,5} b
    """
    for given in (type,) if name is None else (type, name):
        if not isinstance(given, str) or not given:
            raise refusal(f"`event` takes names, not {shown(given)}.", 'write `event("Login", "a")`.')
    return Element(ast.Event(type, name, where=caller()))


def seq(*parts: Element) -> Element:
    """`SEQ(…)`: one after the other."""
    return _composite(ast.Operator.SEQ, parts, "seq")


def all_of(*parts: Element) -> Element:
    """`AND(…)`: all, in any order."""
    return _composite(ast.Operator.AND, parts, "all_of")


def any_of(*parts: Element) -> Element:
    """`OR(…)`: one of them."""
    return _composite(ast.Operator.OR, parts, "any_of")


def absent(part: Element) -> Element:
    """`NOT T v`: no such event here; also written `~event(…)`.

    >>> print(seq(event("A", "a"), ~event("B", "b"), event("C", "c")))
    PATTERN SEQ(A a, NOT B b, C c)
    """
    return Element(ast.Negation(_element(part, "absent"), where=caller()))


# --- helpers --------------------------------------------------------------------------------------


def _composite(operator: ast.Operator, parts: tuple[Element, ...], function: str) -> Element:
    if not parts:
        raise refusal(f"{function}() has no elements.", f'write {function}(event("A", "a"), event("B", "b")).')
    elements = tuple(_element(part, function) for part in parts)
    return Element(ast.Composite(operator, elements, where=caller()))


def _element(part: Element, function: str) -> ast.Element:
    if isinstance(part, Element):
        return part.element
    if isinstance(part, Draft):
        problem, hint = "a query with clauses", "add the clauses to the outermost pattern"
    else:
        problem, hint = shown(part), 'write event("A", "a")'
    raise refusal(f"{function} takes patterns, not {problem}.", f"{hint}.")


def _joined(before: ex.Expression | None, conditions: tuple[Value | str, ...], clause: str) -> ex.Expression:
    if not conditions:
        raise refusal(f"{clause}() has no condition.", f'write {clause}(col("a.x") > 5).')
    for condition in conditions:
        if not isinstance(condition, Value | str):
            raise refusal(
                f"{clause} takes conditions, not {shown(condition)}.",
                'write col("a.x") == 5 or "a.x = 5"; comparing plain Python values makes no condition.',
            )
    operands = [text_or_tree(condition) for condition in conditions]
    return ex.all_of(*([before] if before is not None else []), *operands, where=caller())


def _column(value: Value | str, name: str | None) -> ast.Column:
    alias = name if name is not None else value.name if isinstance(value, Value) else None
    return ast.Column(whole_variable(text_or_tree(value)), alias, where=caller())


def _duration(duration: dt.timedelta | str | None, units: dict[str, float]) -> int:
    if (duration is None) == (not units):
        raise refusal("A window is one duration.", "write within(minutes=15) or within(timedelta(…)).")
    if isinstance(duration, dt.timedelta):
        return duration // dt.timedelta(microseconds=1)
    if duration is not None:
        site = caller()
        interval = parse_expression(checked_text(duration, "A window"), site.describe() if site else "<duration>")
        if not isinstance(interval, ex.Interval):
            raise QuerySyntaxError(f"`{duration}` is not a duration.", where=interval.where, hint="write `15 minutes`.")
        return interval.microseconds
    total = Fraction(0)
    for unit, number in units.items():
        if unit.upper() not in durations.MICROSECONDS:
            near = nearest(unit, durations.MICROSECONDS)
            raise refusal(
                f"`{unit}` is not a unit of time.",
                f"did you mean {near.lower()}?" if near else "write within(minutes=15).",
            )
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < MOST_WRITTEN:
            raise refusal(f"`{unit}={shown(number)}` is not a number of {unit}.", "write within(minutes=15).")
        # The shortest decimal that is this float is what was written.
        total += Fraction(repr(number)) * durations.MICROSECONDS[unit.upper()]
    if total.denominator != 1:
        raise refusal("The duration is not a whole number of microseconds.", "round it.")
    return total.numerator


def _choice(value: Any, known: dict[str, Any], kind: type, what: str) -> Any:
    if isinstance(value, kind):
        return value
    words = " ".join(named(value).lower().split())
    if words in known:
        return known[words]
    near = nearest(words, known)
    raise refusal(
        f"There is no {what} `{named(value)}`.",
        (f"did you mean {near}? " if near else "") + f"Known are: {', '.join(known)}.",
    )
