"""Make the Python examples of the README and of docs/ runnable by pytest: `make docs`."""

from __future__ import annotations

from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).parent
collect = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()], pattern="*.md").pytest()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    # Sybil's own patterns match from the right, so that "README.md" would take those of all folders.
    if file_path.is_relative_to(ROOT) and file_path.relative_to(ROOT).parts[0] in {"README.md", "docs"}:
        return collect(file_path, parent)
    return None
