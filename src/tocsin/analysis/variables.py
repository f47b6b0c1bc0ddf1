"""The variables of a query: which there are, which are iterated or negated, and whether their names are free."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.language import ast
from tocsin.source import Where

RESERVED_PREFIX = "__tocsin"
MATCH_COLUMNS = frozenset({"match_id", "start", "end"})
STATUS, MISSING = "status", "missing"
TIMEOUT_COLUMNS = frozenset({STATUS, MISSING})
WINDOW_COLUMNS = frozenset({"window_start", "window_end"})


@dataclass(frozen=True)
class Variables:
    """What conditions may speak of."""

    positive: dict[str, alg.Kind]
    negated: dict[str, str]

    def __contains__(self, name: str) -> bool:
        """Whether the pattern has the variable."""
        return name in self.positive or name in self.negated

    def is_iterated(self, name: str) -> bool:
        """Whether a variable may hold several events."""
        return name in self.positive and self.positive[name].iterated

    def unknown(self, name: str, where: Where) -> errors.UnknownVariableError:
        """The error for a name the pattern does not have."""
        return errors.UnknownVariableError(
            f"The pattern has no variable `{name}`.",
            where=where,
            hint=errors.did_you_mean(name, [*self.positive, *self.negated], "the pattern has"),
        )


def check_names(query: ast.Query) -> list[errors.TocsinError]:
    """Refuse a name used for two elements of a SEQ or AND, or kept for Tocsin's own columns (R35)."""
    problems: list[errors.TocsinError] = []
    _declared(query.pattern, problems)
    taken = MATCH_COLUMNS | (TIMEOUT_COLUMNS if query.timeouts else frozenset())
    for event in ast.events_in(query.pattern):
        name = event.variable
        if name.startswith(RESERVED_PREFIX) or (not query.returns and name.casefold() in taken):
            problems.append(
                errors.ReservedNameError(
                    f"`{name}` cannot be a variable: the result has a column of that name.",
                    where=event.where,
                    hint=f"give it another name, as in `{event.type} {name[0].lower()}1`.",
                )
            )
    return problems


Declared = dict[str, tuple[ast.Event, bool]]  # folded name → its element, and whether it is negated


def _declared(element: ast.Element, problems: list[errors.TocsinError], *, negated: bool = False) -> Declared:
    match element:
        case ast.Event():
            return {element.variable.casefold(): (element, negated)}
        case ast.Negation():
            return _declared(element.operand, problems, negated=True)
        case ast.Composite():
            known: Declared = {}
            for part in element.parts:
                for folded, (event, is_negated) in _declared(part, problems, negated=negated).items():
                    if folded not in known:
                        known[folded] = (event, is_negated)
                        continue
                    first, first_negated = known[folded]
                    shareable = element.operator is ast.Operator.OR and first.variable == event.variable
                    if not shareable or is_negated != first_negated:
                        problems.append(_duplicate(first, event))
            return known


def _duplicate(first: ast.Event, second: ast.Event) -> errors.DuplicateVariableError:
    if first.name is None and second.name is None:
        message = f"Two elements of type `{second.type}` have no name, so both would be called `{second.type}`."
        hint = f"name them apart, as in `{first.type} x, {second.type} y`."
    elif first.variable != second.variable:
        message = f"The names `{first.variable}` and `{second.variable}` differ only in case."
        hint = "Spark does not tell such column names apart: give one of them another name."
    else:
        message = f"The variable `{second.variable}` names two elements."
        hint = "a name may stand twice only in different branches of an OR, positive or negated in both."
    return errors.DuplicateVariableError(message, where=second.where, also=("first named", first.where), hint=hint)
