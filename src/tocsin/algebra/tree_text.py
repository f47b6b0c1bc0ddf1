"""Text for people: the algebra as an indented tree, for `explain()` and for debugging, and tables of reports.

Every node is one line: its name, then what it holds in the words of the query language.
"""

from __future__ import annotations

from collections.abc import Iterable

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.language import durations
from tocsin.language.ast import Output, Selection, Skip
from tocsin.language.sase.printer import print_expression


def to_text(what: alg.Node | alg.Query) -> str:
    """A pattern, or a query with its clauses, as a tree.

    >>> a, b = alg.Event("Login", "a"), alg.Repeat(alg.Event("Transfer", "b"), 2, None)
    >>> print(to_text(alg.Within(alg.Sequence((a, b)), 600_000_000)))
    Within 10 MINUTES
    └─ Sequence
       ├─ Event Login a
       └─ Repeat 2 or more
          └─ Event Transfer b
    """
    if isinstance(what, alg.Query):
        return "\n".join([*_tree(what.pattern), *_clauses(what)])
    return "\n".join(_tree(what))


def _tree(node: alg.Node) -> Iterable[str]:
    yield f"{type(node).__name__} {_details(node)}".rstrip()
    children = node.children()
    for number, child in enumerate(children):
        first, rest = ("└─ ", "   ") if number == len(children) - 1 else ("├─ ", "│  ")
        for line in _tree(child):
            yield first + line
            first = rest


def _details(node: alg.Node) -> str:
    match node:
        case alg.Event():
            condition = "" if node.condition is None else f"  where {print_expression(node.condition)}"
            return f"{node.type or 'any type'} {node.variable}{condition}"
        case alg.NextOf():
            return f"{node.type} {node.variable}"
        case alg.Sequence():
            return _by(node.order)
        case alg.Repeat():
            return f"{_times(node.least, node.most)} {_by(node.order)}".rstrip()
        case alg.Around():
            return f"{node.type} {node.variable}  {_absence(node)}".rstrip()
        case alg.Filter():
            return print_expression(node.condition)
        case alg.Within():
            return durations.describe(node.window_us)
        case alg.Bind():
            return node.variable
        case alg.Project():
            return ", ".join(
                name + (f"({', '.join(attributes)})" if attributes else "") for name, attributes in node.kept
            )
        case alg.Derive():
            return f"{node.variable}[{', '.join(map(_fold, node.folds))}]"
        case alg.Emit():
            values = ", ".join(f"{name} = {print_expression(value)}" for name, value in node.values)
            return f"{node.type} at {print_expression(node.at)}" + (f" with {values}" if values else "")
        case alg.Adjacent() | alg.All() | alg.Any() | alg.Both() | alg.RepeatAdjacent():
            return ""
        case _:
            raise errors.unknown_node(node, "The text form")


def _by(order: alg.Order) -> str:
    return "" if order is alg.Order.TIME else f"by {order.value}"


def _times(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} or more"
    return str(least) if most == least else f"{least} to {most}"


def _fold(fold: alg.Fold) -> str:
    distinct = "DISTINCT " if fold.distinct else ""
    return f"{fold.name} <- {fold.function}({distinct}{'.'.join((fold.variable, *fold.path))})"


def _absence(node: alg.Around) -> str:
    parts = [f"after {_bound(bound)}" for bound in node.lower]
    parts += [f"before {_bound(bound)}" for bound in node.upper]
    text = ", ".join(parts)
    return text if node.condition is None else f"{text}  where {print_expression(node.condition)}"


def _bound(bound: alg.Bound) -> str:
    match bound.anchor:
        case alg.LastOf():
            anchor = f"last({', '.join(bound.anchor.variables)})"
        case alg.FirstOf():
            anchor = f"first({', '.join(bound.anchor.variables)})"
        case _:
            anchor = bound.anchor.value
    sign = "-" if bound.offset_us < 0 else "+"
    offset = f" {sign} {durations.describe(abs(bound.offset_us))}" if bound.offset_us else ""
    return anchor + offset + ("" if bound.strict else " or at it")


def _clauses(query: alg.Query) -> Iterable[str]:
    for names in query.unordered:
        yield f"unordered {', '.join(names)}"
    if query.partition.keys:
        yield f"partition by {', '.join(query.partition.keys)}"
    if query.partition.same:
        yield f"same {', '.join(query.partition.same)}"
    if query.selection is not Selection.ANY:
        yield f"selection {query.selection.value}"
    if query.after_match.skip is not Skip.REUSE:
        yield f"after match {query.after_match.skip.value} {query.after_match.variable or ''}".rstrip()
    if query.output is not Output.ALL:
        yield f"output {query.output.value}"
    if query.returns:
        scope = "over all matches " if query.over_all_matches else ""
        yield f"return {scope}{', '.join(map(_returned, query.returns))}"
    if query.group_by:
        yield f"group by {', '.join(map(_returned, query.group_by))}"
    if query.having is not None:
        yield f"having {print_expression(query.having)}"
    if query.every_us is not None:
        yield f"every {durations.describe(query.every_us)}"
    if query.timeouts:
        yield "with timeouts"


def _returned(returned: alg.Returned) -> str:
    text = print_expression(returned.expression)
    return text if text == returned.name else f"{text} AS {returned.name}"


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Columns of text, aligned; the first column to the left, the others too.

    >>> print(table(("variable", "lifetime"), [("a", "10 s")]))
    variable  lifetime
    a         10 s
    """
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    return "\n".join(line.rstrip() for line in lines)
