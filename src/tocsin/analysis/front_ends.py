"""A text of any language, or a query of the builder, to its syntax tree and its meaning."""

from __future__ import annotations

from tocsin import errors
from tocsin.analysis.acel import translate as translate_acel
from tocsin.analysis.sase import Translation, translate
from tocsin.language import ast
from tocsin.language.acel import ast as acel
from tocsin.language.acel.parser import parse as parse_acel
from tocsin.language.builder import Draft
from tocsin.language.grammars import LONGEST_TEXT
from tocsin.language.sase.parser import parse
from tocsin.language.sase.printer import print_query
from tocsin.language.user_defined import Monoids

LANGUAGES = ("sase", "acel")


def compiled(
    query: str | Draft | ast.Query,
    language: str,
    name: str,
    monoids: Monoids,
    max_text: int = LONGEST_TEXT,
    *,
    is_partial: bool = False,
) -> tuple[str, ast.Query | acel.Query, Translation]:
    """A query as text, its tree and its meaning; see `tocsin.pattern`, and `translate` for `is_partial`."""
    if not isinstance(query, str):
        if monoids:
            raise errors.InvalidOptionError(
                "`aggregates` belong to a text.", hint="leave them out for a query made with `tocsin.builder`."
            )
        tree = query.query if isinstance(query, Draft) else query
        if not isinstance(tree, ast.Query):
            raise errors.InvalidOptionError(
                f"A pattern is a text or a query made with `tocsin.builder`, not a {type(query).__name__}.",
                hint="write `tocsin.pattern('PATTERN SEQ(A a, B b) WITHIN 10 MINUTES')`.",
            )
        return print_query(tree), tree, translate(tree, is_partial=is_partial)
    if not isinstance(language, str) or language not in LANGUAGES:
        raise errors.InvalidOptionError(
            f"There is no language `{errors.named(language)}`.",
            hint=errors.did_you_mean(language, LANGUAGES, "languages"),
        )
    if language == "acel":
        formula = parse_acel(query, name, monoids, max_text=max_text)
        return query, formula, translate_acel(formula, is_partial=is_partial)
    tree = parse(query, name, monoids, max_text=max_text)
    return query, tree, translate(tree, is_partial=is_partial)
