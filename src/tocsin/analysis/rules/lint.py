"""Warnings of rules that run and may not mean what they say: self-blocking absences (requirement 62), mixed domains.

A rule that asks for a transfer and for no similar one around it has written "no *other*" only if it says so: one event
may be in several variables (R29). For every absence and every positive variable of its template the conditions are read
with that variable in the place of the absent one. When none of them is then refuted, all equalities follow from those
of the match, and so does the window, the event itself is a blocker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Rule, Template
from tocsin.analysis.temporal import Network
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.sase.printer import print_expression
from tocsin.source import Where


def self_blocking(rule: str, query: alg.Query, network: Network) -> Iterator[errors.TocsinWarning]:
    """One warning for each absence that an event of the match may refute."""
    filters = [node.condition for node in query.pattern.walk() if isinstance(node, alg.Filter)]
    positive = [conjunct for condition in filters for conjunct in ex.conjuncts(condition)]
    equal = _Equalities(positive)
    for absence in alg.absences_in(query.pattern):
        for name, kind in query.variables.items():
            if kind.types != (absence.type,) or kind.iterated:
                continue
            if _window_follows(absence, name, network) and _may_block(absence, name, positive, equal):
                yield errors.TocsinWarning(
                    "SELF_BLOCKING",
                    f"In rule `{rule}` the event of `{name}` itself can be the `{absence.variable}` that must not be "
                    "there: then the rule blocks itself.",
                    where=absence.where,
                    hint=f"to mean another event, add `distinct({absence.variable}, {name})` to `when`, or a condition "
                    f"such as `id != {name}.id`.",
                )
                break


def _window_follows(absence: alg.Absent, name: str, network: Network) -> bool:
    """Whether the event of a variable lies in the window of the absence in every match."""
    closure = network.alternatives[0]
    for bound in (*absence.lower, *absence.upper):
        assert isinstance(bound.anchor, alg.LastOf | alg.FirstOf)
        (anchor,) = bound.anchor.variables
        least, most = (0, 0) if anchor == name else closure.distance(anchor, name)
        if bound in absence.lower and (least is None or least < bound.offset_us):
            return False
        if bound in absence.upper and (most is None or most > bound.offset_us):
            return False
    return True


def _may_block(absence: alg.Absent, name: str, positive: list[ex.Expression], equal: _Equalities) -> bool:
    return all(
        _holds(_renamed(conjunct, absence.variable, name), positive, equal)
        for conjunct in ex.conjuncts(absence.condition)
    )


def _renamed(conjunct: ex.Expression, old: str, new: str) -> ex.Expression:
    def change(node: ex.Expression) -> ex.Expression:
        match node:
            case ex.Attribute(variable, path, index) if variable == old:
                return ex.Attribute(new, path, index)
            case rx.SameEvent(ex.Variable(left), ex.Variable(right)) if old in (left, right):
                return ex.Literal(new in (left, right))
            case _:
                return node

    return conjunct.transform(change)


def _holds(conjunct: ex.Expression, positive: list[ex.Expression], equal: _Equalities) -> bool:
    """Whether a condition follows from those of the match, or at least may hold between two of its events."""
    if conjunct in positive:
        return True
    match conjunct:
        case ex.Not(ex.Literal(True)):
            return False
        case ex.Not(ex.Literal(False)):
            return True
        case ex.Comparison("=" | "<=" | ">=", left, right) if equal.same(left, right):
            return True
        case ex.Comparison(op, left, right) if op != "=" and not equal.same(left, right):
            return len(ex.variables_in(left) | ex.variables_in(right)) > 1
        case _:
            return False


class _Equalities:
    """Which attributes are equal in every match, by the conditions `a.x = b.y`."""

    def __init__(self, conjuncts: Iterable[ex.Expression]) -> None:
        self._parent: dict[ex.Expression, ex.Expression] = {}
        for conjunct in conjuncts:
            match conjunct:
                case ex.Comparison("=", left, right):
                    self._parent[self._root(left)] = self._root(right)
                case _:
                    continue

    def _root(self, node: ex.Expression) -> ex.Expression:
        while self._parent.get(node, node) != node:
            node = self._parent[node]
        return node

    def same(self, left: ex.Expression, right: ex.Expression) -> bool:
        return self._root(left) == self._root(right)


# --- domains --------------------------------------------------------------------------------------


def mixed_domains(rule: Rule, templates: Mapping[str, Template]) -> Iterator[errors.TocsinWarning]:
    """One warning for each comparison and each emitted value of two different domains."""
    types = rule.types

    def domain(node: ex.Expression) -> str | None:
        if not isinstance(node, ex.Attribute) or len(node.path) != 1:
            return None
        return _domain(templates.get(types.get(node.variable, "")), node.path[0])

    for condition in _conditions(rule.query.pattern):
        for node in condition.walk():
            if isinstance(node, ex.Comparison):
                one, other = domain(node.left), domain(node.right)
                if one is not None and other is not None and one != other:
                    what = f"`{print_expression(node)}` compares {_a(one)} with {_a(other)}."
                    yield _warning(what, node.where)
    for emit in rule.emits:
        for name, value in emit.values:
            wanted = _domain(templates.get(emit.type), name)
            given = [domain(each) for each in (value.items if isinstance(value, rx.ListOf) else (value,))]
            wrong = next((each for each in given if each is not None and wanted is not None and each != wanted), None)
            if wrong is not None and wanted is not None:
                yield _warning(f"`{name}` of `{emit.type}` is {_a(wanted)}, and gets {_a(wrong)}.", value.where)


def _domain(template: Template | None, name: str) -> str | None:
    """The open domain of an attribute; None when its type is a known one."""
    found = next((each for each in template.attributes if each.name == name), None) if template is not None else None
    return found.domain if found is not None and found.type is None else None


def _conditions(pattern: alg.Node) -> Iterator[ex.Expression]:
    for node in pattern.walk():
        if isinstance(node, alg.Filter | alg.Around) and node.condition is not None:
            yield node.condition


def _a(domain: str) -> str:
    return f"{'an' if domain[0] in 'AEIOUaeiou' else 'a'} {domain}"


def _warning(message: str, where: Where) -> errors.TocsinWarning:
    return errors.TocsinWarning(
        "MIXED_DOMAINS", message, where=where, hint="is it the attribute that was meant? Or declare both of one domain."
    )
