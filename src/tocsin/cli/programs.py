"""Programs of rules from files: modules beside them, functions declared by their types."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn, Protocol

import tocsin
from tocsin import errors
from tocsin.cli import files, terminal
from tocsin.errors import TocsinWarning
from tocsin.language.registered import Function

# Folders beside the program's own that modules may come from: `tocsin --modules FOLDER`.
module_folders: ContextVar[tuple[str, ...]] = ContextVar("module_folders", default=())


class _Report(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


def is_program(file: str, language: str | None) -> bool:
    """Whether a file holds rules, by its language or its ending."""
    return language == "parte" or (language is None and Path(file).suffix == ".parte")


def compiled_rules(file: str, functions: list[str], *, tables: Mapping[str, Any] | None = None) -> tocsin.Rules:
    """The program of a file; its warnings are shown, not raised."""
    text, name, _ = files.read_pattern(file, "parte")
    folders = (Path(file).parent, *(Path(each) for each in module_folders.get()))

    def module(called: str) -> str | None:
        found = module_file(called, folders)
        return None if found is None else files.read_pattern(str(found), "parte")[0]

    declared = {
        called: Function(_only_declared, kind, pure=True)
        for called, kind in files.named_values(functions, "--function", "uncommon_route=boolean").items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TocsinWarning)
        program = tocsin.rules(text, name=name, functions=declared, tables=tables, modules=module)
    terminal.warn(program.warnings)
    return program


def module_file(called: str, folders: Sequence[Path]) -> Path | None:
    """Find the file of a module in or below one of the folders; links that lead elsewhere are not followed."""
    allowed = [folder.resolve() for folder in folders]
    places = [folder / f"{called}.parte" for folder in folders]
    try:
        inside = [place for place in places if any(place.resolve().is_relative_to(folder) for folder in allowed)]
        if inside:
            return next((place for place in inside if place.exists()), None)
    except (OSError, ValueError):  # a name that no file can have
        return None
    raise errors.InputNotReadableError(
        f"The module `{called}` lies outside the folder of the program.",
        hint="move it beside the program or below, or allow its folder: `tocsin --modules FOLDER …`.",
    )


def _only_declared(*_arguments: Any) -> NoReturn:
    raise NotImplementedError("a function declared with --function has a type and no meaning")


def show(report: _Report, format: str) -> None:
    """Print a report as text, or for tools."""
    if format == "json":
        print(json.dumps(report.to_dict(), indent=2))
    else:
        terminal.out().print(str(report), markup=False)
