"""Patterns and programs of rules from files. For the commands, a pattern is a program of one rule."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TypeAlias

import tocsin
from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program, Rule
from tocsin.cli import files, terminal
from tocsin.cli.arguments import LANGUAGES, is_program, named_values
from tocsin.cli.session import reading
from tocsin.engines.local.paths import check_exists, neighbors
from tocsin.explain.pattern_report import problems_with_schemas
from tocsin.language.grammars import LONGEST_TEXT
from tocsin.language.user_defined import Function
from tocsin.plan.program_plan import refusals
from tocsin.plan.strategies import refused_on_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Folders beside the program's own that modules may come from: `tocsin --modules FOLDER`.
module_folders: ContextVar[tuple[str, ...]] = ContextVar("module_folders", default=())

Query: TypeAlias = tocsin.Pattern | tocsin.Rules


def program_of(query: Query | alg.Query) -> Program:
    """The meaning of a query; a pattern is a program of one rule."""
    if isinstance(query, tocsin.Rules):
        return query.program
    return Program((Rule("pattern", query.query if isinstance(query, tocsin.Pattern) else query),))


def runnable(
    given: Mapping[str, Any],
    inputs: files.Inputs,
    tables: Mapping[str, Any],
    schemas: Callable[[Program], Any],
    *,
    engine: str = "spark",
    is_live: bool = False,
) -> Query:
    """The query of a command, unless its engine does not run it, or it reads types of which there is no input."""
    query = compiled(given, tables=tables, schemas=schemas)
    program = program_of(query)
    errors.raise_all(list(refusals(program, engine).values()))
    if is_live and isinstance(query, tocsin.Pattern):
        refusal = refused_on_streams(query.query, given["strategy"])
        errors.raise_all([] if refusal is None else [refusal])
    inputs.require(program)
    return query


def compiled(
    given: Mapping[str, Any],
    *,
    tables: Mapping[str, Any] | None = None,
    schemas: Callable[[Program], Any] | None = None,
) -> Query:
    """The pattern or program of a file; its warnings are shown, not raised.

    A program has the rows of its reference tables. `schemas` finds those of a pattern's event types: where its names
    are wrong, the error lists wrong attributes too.
    """
    text, name, language = read_text(given["file"], given["language"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        query: Query
        if language == "parte":
            declared = named_values(given.get("function"), "--function", "uncommon_route=boolean")
            known = {called: Function(_only_declared, kind, pure=True) for called, kind in declared.items()}
            query = tocsin.rules(text, name=name, functions=known, tables=tables, modules=_modules(given["file"]))
        else:
            try:
                query = tocsin.pattern(text, language=language, name=name)
            except errors.QueryBindingError:
                if schemas is not None:
                    columns = {"time": given["time"], "type": given["type_column"]}
                    errors.raise_all(
                        problems_with_schemas(text, language, name, lambda one: schemas(program_of(one)), **columns)
                    )
                raise
    terminal.warn(query.warnings)
    return query


def _only_declared(*_arguments: Any) -> NoReturn:
    raise NotImplementedError("a function declared with --function has a type and no meaning")


def table_paths(given: Mapping[str, Any]) -> dict[str, str]:
    """The paths of `--table`, the reference tables of a program."""
    paths = named_values(given["table"], "--table", "registered=recipients.csv")
    for path in paths.values():
        check_exists(path)
    if paths and not is_program(given):
        raise errors.InvalidOptionError("`--table` is for programs of rules.", hint="leave it out.")
    return paths


def read_tables(spark: SparkSession, paths: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of reference tables, which are shipped to the workers with the conditions."""
    rows = {}
    for name, path in paths.items():
        with reading(path):
            rows[name] = [row.asDict() for row in files.read(spark, path).collect()]
    return rows


# --- texts ----------------------------------------------------------------------------------------


def read_text(file: str, language: str | None) -> tuple[str, str, str]:
    """The text of a file, what messages call it, and its language."""
    if file == "-":
        return _text_of(sys.stdin.buffer, "stdin"), "<stdin>", language or "sase"
    path = Path(file)
    try:
        with path.open("rb") as content:
            text = _text_of(content, f"the pattern file `{file}`")
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        near = errors.nearest(path.name, neighbors(path)) if is_missing else None
        raise errors.InputNotReadableError(
            f"The pattern file `{file}` cannot be read: {error.strerror}.",
            hint=f"did you mean `{path.with_name(near)}`?" if near else "give the path of a text file, or `-`.",
        ) from None
    return text, file, language or LANGUAGES.get(path.suffix, "sase")


def _text_of(file: BinaryIO, name: str) -> str:
    """Text in UTF-8, with or without the mark that some editors put in front of it."""
    content = file.read(LONGEST_TEXT * 4 + 1)  # UTF-8 takes at most four bytes per character
    name = f"{name[0].upper()}{name[1:]}"
    if len(content) > LONGEST_TEXT * 4:
        raise errors.TextTooLongError(
            f"{name} has more than the {LONGEST_TEXT:,} characters that a text may have.",
            hint="split it into several queries, or keep large lists in a table.",
        )
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise errors.InputNotReadableError(
            f"{name} is not UTF-8 text: line {line} holds the byte 0x{content[error.start]:02x}.",
            hint="save it as UTF-8; `iconv -f latin1 -t utf-8` converts older texts.",
        ) from None


def _modules(file: str) -> Callable[[str], str | None]:
    folders = (Path(file).parent, *map(Path, module_folders.get()))

    def text(called: str) -> str | None:
        found = module_file(called, folders)
        return None if found is None else read_text(str(found), "parte")[0]

    return text


def module_file(called: str, folders: Sequence[Path]) -> Path | None:
    """Find the file of a module in or below one of the folders; links that lead elsewhere are not followed."""
    allowed = [folder.resolve() for folder in folders]
    places = [folder / f"{called}.parte" for folder in folders]
    try:
        inside = [place for place in places if any(place.resolve().is_relative_to(folder) for folder in allowed)]
        if inside:
            return next((place for place in inside if place.exists()), None)
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, or links in a circle
        return None
    raise errors.InputNotReadableError(
        f"The module `{called}` lies outside the folder of the program.",
        hint="move it beside the program or below, or allow its folder: `tocsin --modules FOLDER …`.",
    )
