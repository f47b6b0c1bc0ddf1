"""The condition of a FILTER: its variables, predicates and bag predicates (R21, R26, R27)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.references import References
from tocsin.analysis.variables import Variables
from tocsin.language import expressions as ex
from tocsin.language.acel.printer import print_condition
from tocsin.source import Where

BAG_PREDICATES = frozenset(order.value for order in ex.BagOrder)


@dataclass(frozen=True)
class Conditions:
    """Checks conditions against the variables that the operand of FILTER binds."""

    bound: dict[str, alg.Kind]
    problems: list[errors.TocsinError]

    def checked(self, condition: ex.Expression) -> ex.Expression:
        """The condition, with what is wrong noted."""
        match condition:
            case ex.And() | ex.Or():
                return condition.map_children(self.checked)
            case ex.BagPredicate():
                self._check_variable(condition.variable, condition.where)
                return condition
            case ex.Every():
                is_bound = self._check_variable(condition.variable, condition.where)
                return replace(condition, condition=self._predicate(condition)) if is_bound else condition
            case _:
                raise errors.unknown_node(condition, "The analysis of FILTER")

    def _check_variable(self, name: str, where: Where) -> bool:
        if name not in self.bound:
            self.problems.append(
                errors.UnknownVariableError(
                    f"The formula before FILTER binds no variable `{name}`.",
                    where=where,
                    hint=errors.did_you_mean(name, self.bound, "it binds"),
                )
            )
        return name in self.bound

    def _predicate(self, atom: ex.Every) -> ex.Expression:
        before = len(self.problems)
        for conjunct in ex.conjuncts(atom.condition):
            self._refuse_bare_attribute(atom, conjunct)
            self._refuse_bag_predicate(atom, conjunct)
        for node in atom.condition.walk():
            if isinstance(node, ex.Attribute) and len(node.path) > 1 and node.path[0] in self.bound:
                self.problems.append(self._of_another(atom, node))
        if len(self.problems) > before:
            return atom.condition
        return References(Variables(self.bound, {}), self.problems).resolve(atom.condition)

    def _refuse_bare_attribute(self, atom: ex.Every, conjunct: ex.Expression) -> None:
        if isinstance(conjunct, ex.Attribute):
            variable, name = atom.variable, conjunct.name
            self.problems.append(
                errors.AmbiguousReferenceError(
                    f"`{print_condition(replace(atom, condition=conjunct))}` does not say what must hold of `{name}`.",
                    where=conjunct.where,
                    hint=f"if all events of `{variable}` have one value, write `{variable}[same({name})]`; "
                    f"if it is a truth value, `{variable}[{name} = TRUE]`.",
                )
            )

    def _refuse_bag_predicate(self, atom: ex.Every, conjunct: ex.Expression) -> None:
        for node in conjunct.walk():
            if not isinstance(node, ex.Call) or node.function not in BAG_PREDICATES:
                continue
            name, variable = node.function, atom.variable
            named = next((each.name for each in node.walk() if isinstance(each, ex.Attribute)), "price")
            if node is conjunct:
                self.problems.append(
                    errors.WrongArgumentsError(
                        f"`{name}` takes one attribute.",
                        where=node.where,
                        hint=f"write `{variable}[{name}({named})]`, and one of it for each attribute.",
                    )
                )
            else:
                self.problems.append(
                    errors.MisplacedBagPredicateError(
                        f"`{name}` speaks of all events of `{variable}` together, the rest of the predicate of each "
                        "alone.",
                        where=node.where,
                        hint=f"give it brackets of its own: `{variable}[{name}({named})] OR {variable}[price > 100]`.",
                    )
                )

    def _of_another(self, atom: ex.Every, node: ex.Attribute) -> errors.AmbiguousReferenceError:
        first, *rest = node.path
        if first == atom.variable:
            message = f"Inside `{first}[…]` attributes stand without their variable."
            hint = f"write `{'.'.join(rest)}`."
        else:
            message = (
                f"`{'.'.join(node.path)}` is of another variable; a predicate of `{atom.variable}` knows only its own."
            )
            hint = (
                f"bring both values into one event, AGG z[one <- max({atom.variable}.a), two <- max({first}.b)](…) "
                "FILTER z[one = two]."
            )
        return errors.AmbiguousReferenceError(message, where=node.where, hint=hint)
