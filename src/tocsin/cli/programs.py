"""Programs of rules from files: modules beside them, functions declared by their types."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, Protocol

import tocsin
from tocsin.cli import files, terminal
from tocsin.errors import TocsinWarning
from tocsin.language.registered import Function


class _Report(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


def is_program(file: str, language: str | None) -> bool:
    """Whether a file holds rules, by its language or its ending."""
    return language == "parte" or (language is None and Path(file).suffix == ".parte")


def compiled_rules(file: str, functions: list[str], *, tables: Mapping[str, Any] | None = None) -> tocsin.Rules:
    """The program of a file; its warnings are shown, not raised."""
    text, name, _ = files.read_pattern(file, "parte")
    folder = Path(file).parent

    def module(called: str) -> str | None:
        beside = folder / f"{called}.parte"
        return files.read_pattern(str(beside), "parte")[0] if beside.exists() else None

    declared = {
        called: Function(_only_declared, kind, pure=True)
        for called, kind in files.named_values(functions, "--function", "uncommon_route=boolean").items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TocsinWarning)
        program = tocsin.rules(text, name=name, functions=declared, tables=tables, modules=module)
    terminal.warn(program.warnings)
    return program


def _only_declared(*_arguments: Any) -> NoReturn:
    raise NotImplementedError("a function declared with --function has a type and no meaning")


def show(report: _Report, format: str) -> None:
    """Print a report as text, or for tools."""
    if format == "json":
        print(json.dumps(report.to_dict(), indent=2))
    else:
        terminal.out().print(str(report), markup=False)
