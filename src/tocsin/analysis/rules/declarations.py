"""The declarations of a program: modules put together, every name once, templates with their types."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import assert_never

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import TIMESTAMP, Attribute, Rule, Template
from tocsin.analysis import types
from tocsin.analysis.attributes import Schema
from tocsin.analysis.names import MOST_EVENTS
from tocsin.analysis.types import DataType, from_spark_name
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.grammars import LONGEST_TEXT
from tocsin.language.partelang import ast, parse
from tocsin.language.sase.printer import print_expression
from tocsin.source import Where

# Names of types that a text may use, and Spark's. Every other name is a domain: its values are what the data holds.
TYPES = {
    "Integer": "bigint", "Int": "bigint", "Long": "bigint", "String": "string", "Text": "string", "Boolean": "boolean",
    "Double": "double", "Float": "double", "Real": "double", "Number": "double", "Decimal": "decimal",
    "Amount": "decimal", "Timestamp": "timestamp", "Date": "date", "Binary": "binary",
}  # fmt: skip

Loader = Callable[[str], str | None]


@dataclass
class Declarations:
    """The declarations of a program and of all modules it uses."""

    templates: dict[str, Template] = field(default_factory=dict)
    definitions: dict[str, ast.Definition] = field(default_factory=dict)
    rules: list[ast.Rule] = field(default_factory=list)
    problems: errors.Problems = field(default_factory=errors.Problems)
    warnings: list[errors.TocsinWarning] = field(default_factory=list)

    @cached_property
    def kinds(self) -> list[str]:
        """The names that a pattern can be of."""
        return [*self.templates, *self.definitions]

    @cached_property
    def schemas(self) -> dict[str, Schema]:
        """The templates with the types of their attributes, the time of the event among them."""
        return {name: schema_of(template) for name, template in self.templates.items()}


def declarations(
    program: ast.Program, load: Loader, given: Mapping[str, str], max_text: int = LONGEST_TEXT
) -> Declarations:
    """Gather what a program and its modules declare.

    `load` returns the text of a module by its name, or None; `given` are Spark's names of types that the text calls by
    names of its own; `max_text` limits the characters of a module.
    """
    found = Declarations()
    known = TYPES | dict(given)
    written: list[ast.Declaration] = _with_modules(program, load, found.problems, max_text)
    names: dict[str, Where] = {}
    rules: dict[str, Where] = {}
    templates = {each.name for each in written if isinstance(each, ast.Template)}
    for each in written:
        match each:
            case ast.Template():
                if _is_new(each.name, each.where, names, "The template or pattern `{}`", found.problems):
                    found.templates[each.name] = _template(each, templates, known, found)
            case ast.Definition():
                if _is_new(each.name, each.where, names, "The template or pattern `{}`", found.problems):
                    found.definitions[each.name] = each
            case ast.Rule():
                _is_new(each.name, each.name_where, rules, "The rule `{}`", found.problems)
                found.rules.append(each)
            case ast.Use():
                pass  # its module's declarations are among these
            case _:
                assert_never(each)
    return found


def _with_modules(
    program: ast.Program, load: Loader, problems: errors.Problems, max_text: int
) -> list[ast.Declaration]:
    """All declarations, those of modules where they are used; each module once."""
    seen: set[str] = set()
    found: list[ast.Declaration] = []
    # The declarations still to come, those of the innermost module last.
    open_ = [iter(program.declarations)]
    while open_:
        each = next(open_[-1], None)
        if each is None:
            open_.pop()
        elif not isinstance(each, ast.Use):
            found.append(each)
        elif each.module not in seen:
            seen.add(each.module)
            open_.append(iter(_of_module(each, load, problems, max_text)))
    return found


def _of_module(use: ast.Use, load: Loader, problems: errors.Problems, max_text: int) -> tuple[ast.Declaration, ...]:
    def unknown(message: str, hint: str) -> tuple[()]:
        problems.add(errors.UnknownModuleError, message, where=use.where, hint=hint)
        return ()

    try:
        text = load(use.module)
    except errors.TocsinError:
        raise
    except Exception as problem:  # of the user's function
        return unknown(
            f"The module `{use.module}` cannot be loaded: {errors.fault(problem)}.",
            "`modules=` takes the name of a module, and returns its text or None.",
        )
    if text is None:
        return unknown(
            f"There is no module `{use.module}`.",
            f"give its text, `modules={{'{use.module}': …}}`; the command line looks for "
            f"`{use.module}.parte` beside the file.",
        )
    if not isinstance(text, str):
        return unknown(
            f"The module `{use.module}` is a {type(text).__name__}, not a text.",
            "`modules=` holds or returns texts of programs.",
        )
    with errors.collecting(problems):
        return parse(text, f"{use.module}.parte", max_text=max_text).declarations
    return ()


def _is_new(name: str, where: Where, known: dict[str, Where], what: str, problems: errors.Problems) -> bool:
    if name in known:
        problems.add(
            errors.DuplicateNameError,
            f"{what.format(name)} is declared twice.",
            where=where,
            also=("first declared", known[name]),
            hint="give one of them another name.",
            violates="S1",
        )
        return False
    known[name] = where
    return True


def _template(written: ast.Template, templates: set[str], known: Mapping[str, str], found: Declarations) -> Template:
    slots: dict[str, Where] = {}
    attributes = []
    for slot in written.slots:
        if slot.name.casefold() == TIMESTAMP:
            found.problems.add(
                errors.ReservedNameError,
                f"`{TIMESTAMP}` cannot be declared: every event has it.",
                where=slot.where,
                hint=f"leave it out and write `{TIMESTAMP}` in conditions, or give the attribute another name.",
            )
        elif _is_new(
            slot.name.casefold(), slot.where, slots, f"The attribute `{slot.name}` of `{written.name}`", found.problems
        ):
            attributes.append(_attribute(slot, templates, known, found))
    return Template(written.name, tuple(attributes), where=written.where)


def _attribute(slot: ast.Slot, templates: set[str], known: Mapping[str, str], found: Declarations) -> Attribute:
    name = slot.type.name
    if name in templates:
        found.problems.add(
            errors.EventAsAttributeError,
            f"`{slot.name}` would hold an event, of template `{name}`.",
            where=slot.type.where,
            hint="hold what identifies the event, such as its id.",
            violates="S11",
        )
    if slot.type.length is not None and not 1 <= slot.type.length <= MOST_EVENTS:
        rest, hint = f"may hold at most {MOST_EVENTS:,} values", "write a smaller number."
        if slot.type.length < 1:
            rest, hint = "has no place for a value", f"write `[{name}; 3]`."
        found.problems.add(
            errors.InvalidQuantifierError,
            f"The array `{slot.name}` {rest}.",
            where=slot.type.where,
            hint=hint,
            violates="S11",
        )
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.8) if name not in known else []
    if near and name not in templates:
        found.warnings.append(
            errors.TocsinWarning(
                "UNKNOWN_TYPE",
                f"`{name}` is no type that Tocsin knows: any value is accepted.",
                where=slot.type.where,
                hint=f"did you mean `{near[0]}`? To say what it is, give `types={{'{name}': 'string'}}`.",
            )
        )
    return Attribute(slot.name, known.get(name), name, slot.type.length)


def schema_of(template: Template) -> Schema:
    """The attributes of a template and their types; what a domain holds fits everything until the data is known."""
    attributes = {each.name: attribute_type(each) for each in template.attributes}
    return Schema(template.name, attributes | {TIMESTAMP: types.TIMESTAMP}, f"Template `{template.name}`")


def attribute_type(attribute: Attribute) -> DataType:
    """The type of an attribute; that of an open domain is called by its name and fits everything."""
    if attribute.type is None:
        single = replace(types.NULL, text=attribute.domain, width_bytes=16)
    else:
        single = from_spark_name(attribute.type)
    return single if attribute.most is None else types.array_of(single)


# --- mixed domains --------------------------------------------------------------------------------


def mixed_domains(rules: Iterable[Rule], templates: Mapping[str, Template]) -> Iterator[errors.TocsinWarning]:
    """One warning for each comparison and each emitted value of two different domains."""
    open_domains = {
        (template.name, each.name): each.domain
        for template in templates.values()
        for each in template.attributes
        if each.type is None
    }

    def domain(node: ex.Expression, types: Mapping[str, str]) -> str | None:
        if not isinstance(node, ex.Attribute) or len(node.path) != 1:
            return None
        return open_domains.get((types.get(node.variable, ""), node.path[0]))

    for rule in rules:
        types = rule.types
        for condition in alg.conditions_in(rule.query.pattern):
            for node in condition.walk():
                if isinstance(node, ex.Comparison):
                    one, other = domain(node.left, types), domain(node.right, types)
                    if one is not None and other is not None and one != other:
                        what = f"`{print_expression(node)}` compares {_a(one)} with {_a(other)}."
                        yield _warning(what, node.where)
        for emit in rule.emits:
            for name, value in emit.values:
                wanted = open_domains.get((emit.type, name))
                given = [domain(each, types) for each in (value.items if isinstance(value, rx.ListOf) else (value,))]
                wrong = next((each for each in given if each not in (None, wanted)), None)
                if wrong is not None and wanted is not None:
                    yield _warning(f"`{name}` of `{emit.type}` is {_a(wanted)}, and gets {_a(wrong)}.", value.where)


def _a(domain: str) -> str:
    return f"{'an' if domain[0] in 'AEIOUaeiou' else 'a'} {domain}"


def _warning(message: str, where: Where) -> errors.TocsinWarning:
    return errors.TocsinWarning(
        "MIXED_DOMAINS", message, where=where, hint="is it the attribute that was meant? Or declare both of one domain."
    )
