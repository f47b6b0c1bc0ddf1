"""Domains that meet: an account compared with a transaction, or put in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Rule, Template
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.sase.printer import print_expression
from tocsin.source import Where


def mixed_domains(rule: Rule, templates: Mapping[str, Template]) -> Iterator[errors.TocsinWarning]:
    """One warning for each comparison and each emitted value of two different domains."""
    kinds = {name: kind.types[0] for name, kind in rule.query.variables.items()}
    kinds |= {each.variable: each.type for each in alg.around_in(rule.query.pattern)}

    def domain(node: ex.Expression) -> str | None:
        if not isinstance(node, ex.Attribute) or len(node.path) != 1:
            return None
        return _domain(templates.get(kinds.get(node.variable) or ""), node.path[0])

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
