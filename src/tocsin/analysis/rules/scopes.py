"""Names in the expressions of a rule: whose attribute, which variable, which function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tocsin import errors
from tocsin.analysis.rules.calls import Registry, resolve_call
from tocsin.analysis.rules.restrictions import violation
from tocsin.analysis.variables import MOST_EVENTS, index_too_large
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.partelang import ast


@dataclass(frozen=True)
class Scope:
    """What the names at one place of a rule stand for."""

    own: str | None  # the variable whose attributes need no name before them; None in `then`
    visible: Mapping[str, ast.Pattern]  # the variables bound here, and their patterns
    all: Mapping[str, ast.Pattern]  # every variable of the rule, for messages
    registry: Registry
    problems: list[errors.TocsinError]
    # What the parameters of a named pattern stand for.
    arguments: Mapping[str, ex.Expression] = field(default_factory=dict)

    def resolve(self, node: ex.Expression) -> ex.Expression:
        """The expression with every name resolved; what is wrong goes into `problems`."""
        match node:
            case ex.Name(name) if name in self.arguments:
                return self.arguments[name]
            case ex.Name(name) if self.own is not None:
                return ex.Attribute(self.own, (name,), where=node.where)
            case ex.Name() | ex.Variable():
                self._refuse_name(node)
                return ex.Literal(None, where=node.where)  # one mistake is told once
            case ex.Attribute():
                return node if self._check(node) else ex.Literal(None, where=node.where)
            case ex.Literal(int() as value) if not isinstance(value, bool) and not -(2**63) <= value < 2**63:
                self.problems.append(
                    errors.LiteralOutOfRangeError(
                        "The number does not fit into 64 bits.",
                        where=node.where,
                        hint="write it with a decimal point: then it is a double.",
                    )
                )
            case rx.Invoke():
                return resolve_call(node, self)
            case _:
                pass  # names may stand below
        return node.map_children(self.resolve)

    def bag(self, node: ex.Expression) -> ex.Expression:
        """The argument of an aggregate: a whole variable, or an expression over the events of one."""
        if isinstance(node, ex.Name | ex.Variable) and node.name not in self.arguments and node.name in self.visible:
            return ex.Variable(node.name, where=node.where)
        return self.resolve(node)

    def iterated(self, name: str) -> bool:
        """Whether a variable holds several events."""
        pattern = self.all.get(name)
        return pattern is not None and (pattern.sort is ast.Sort.ALL or pattern.quantifier is not None)

    def inside(self, arguments: Mapping[str, ex.Expression]) -> Scope:
        """The scope of a named pattern, whose parameters stand for these values."""
        return replace(self, arguments=arguments)

    def _check(self, node: ex.Attribute) -> bool:
        name = node.variable
        if name in self.visible:
            if node.index is not ex.Each.PLAIN and not self.iterated(name):
                self.problems.append(
                    errors.InvalidIndexError(
                        f"`{name}` holds one event, and needs no index.",
                        where=node.where,
                        hint=f"write `{name}.{node.name}`.",
                    )
                )
            elif isinstance(node.index, ex.Fixed | ex.Running) and abs(_number(node.index)) > MOST_EVENTS:
                self.problems.append(index_too_large(node))
            return True
        self.problems.append(self._not_visible(node))
        return False

    def _not_visible(self, node: ex.Attribute) -> errors.TocsinError:
        name = node.variable
        pattern = self.all.get(name)
        if pattern is None:
            return violation(
                errors.UnknownVariableError,
                "S1",
                f"The rule has no variable `{name}`.",
                where=node.where,
                hint=errors.did_you_mean(name, self.visible, "variables here"),
            )
        if pattern.sort is ast.Sort.NO:
            return violation(
                errors.NegatedVariableUsedError,
                "S3",
                f"`{name}` is an event that is not there.",
                where=node.where,
                also=("declared absent", pattern.where),
                hint=f"write what it must satisfy in the braces of `no {name}`.",
            )
        return violation(
            errors.LaterVariableError,
            "S4",
            f"`{name}` is bound only later.",
            where=node.where,
            also=("its pattern", pattern.where),
            hint=f"write the condition in the braces of `{name}`, or put the pattern of `{name}` first.",
        )

    def _refuse_name(self, node: ex.Name | ex.Variable) -> None:
        single = next(iter(self.visible), "a")
        if node.name in self.visible:
            message, hint = f"`{node.name}` is a whole event here.", f"name an attribute: `{node.name}.attribute`."
        else:
            message = f"`{node.name}` does not say whose attribute it is."
            hint = f"write `variable.attribute`, as in `{single}.{node.name}`."
        self.problems.append(errors.AmbiguousReferenceError(message, where=node.where, hint=hint))


def _number(index: ex.Fixed | ex.Running) -> int:
    return index.number if isinstance(index, ex.Fixed) else index.offset
