"""Which attributes of which variables the result needs: only they are shipped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema, attributes_of, variable_schemas
from tocsin.analysis.names import RESERVED_PREFIX
from tocsin.kernels.searches import Search
from tocsin.language import expressions as ex
from tocsin.plan.layout import POSITION

Needs = Mapping[str, tuple[str, ...]]


def needed(query: alg.Query, attributes: Needs, id: str | None = None) -> dict[str, tuple[str, ...]]:
    """The attributes of each variable that RETURN, GROUP BY and HAVING ask for, in the order of its `attributes`.

    A variable that nobody mentions is left out; one that is only counted needs none. Without RETURN all are needed;
    with an `id` column that one is, of every variable. Last comes `POSITION`, where the result asks which event is the
    first or the last of all matches.
    """
    outputs = [returned.expression for returned in (*query.returns, *query.group_by)]
    outputs += [query.having] if query.having is not None else []
    if not query.returns:
        return {name: tuple(attributes[name]) for name in query.variables}
    found: dict[str, set[str]] = {}
    for output in outputs:
        _collect(output, attributes, found)
    if id is not None:
        for name in query.variables:
            found.setdefault(name, set()).add(id)
    placed = _placed(outputs) if query.over_all_matches else frozenset()
    return {
        name: tuple(attribute for attribute in attributes[name] if attribute in found[name])
        + (POSITION,) * (name in placed)
        for name in query.variables
        if name in found
    }


def attributes_by_variable(query: alg.Query, schemas: Mapping[str, Schema]) -> dict[str, tuple[str, ...]]:
    """The attributes that the events of each variable may have."""
    held = variable_schemas(query.pattern, schemas)
    return {
        name: tuple(one for one in attributes_of(held[name]) if not one.startswith(RESERVED_PREFIX))
        for name in query.variables
    }


def brought(search: Search, needs: Needs) -> dict[str, tuple[str, ...]]:
    """The needs of the variables whose events matches bring; the others are only aggregated."""
    return {name: attributes for name, attributes in needs.items() if name not in search.hidden}


def _placed(outputs: Iterable[ex.Expression]) -> frozenset[str]:
    """The variables of which the first or the last event of all matches is asked for (R18)."""
    return frozenset(
        name
        for output in outputs
        for node in output.walk()
        if isinstance(node, ex.Aggregate) and node.function in ("first", "last")
        for name in ex.variables_in(node)
    )


def _collect(node: ex.Expression, attributes: Needs, found: dict[str, set[str]]) -> None:
    match node:
        case ex.Attribute():
            found.setdefault(node.variable, set()).add(node.path[0])
        case ex.Aggregate(argument=ex.Variable() as counted):
            found.setdefault(counted.name, set())
        case ex.Variable():
            found.setdefault(node.name, set()).update(attributes[node.name])
        case _:
            for child in node.children():
                _collect(child, attributes, found)
