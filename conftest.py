"""Make tests of all that README.md, docs/ and examples/ show: `make docs`, and part of `make test`.

How a block of a page is run, and how its output is updated, is in `tools/doc_examples.py`. A script in examples/ prints
what its docstring says after "It prints:".
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import runpy
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sybil import Sybil
from tools.doc_examples import USES_SPARK, difference, name_of, parsers, surroundings

# For every JVM that tests start, also in processes of their own. They are gone before the second compiler has paid off,
# which takes half of the time of two cores, and so does a collector with many threads.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pages(*, spark: bool) -> Any:
    def setup(namespace: dict[str, Any]) -> None:
        namespace["__page__"] = contextlib.ExitStack()
        namespace["__page__"].enter_context(surroundings(spark=spark))

    def teardown(namespace: dict[str, Any]) -> None:
        namespace["__page__"].close()

    return Sybil(parsers(), pattern="*.md", setup=setup, teardown=teardown).pytest()


PLAIN_PAGES, SPARK_PAGES = pages(spark=False), pages(spark=True)


class Script(pytest.Item):
    def runtest(self) -> None:
        docstring = ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or ""
        printed = io.StringIO()
        with surroundings(spark=name_of(self.path) in USES_SPARK), contextlib.redirect_stdout(printed):
            runpy.run_path(str(self.path), run_name="__main__")
        problem = difference(textwrap.dedent(docstring.partition("It prints:")[2].strip("\n")), printed.getvalue())
        if problem:
            pytest.fail(problem, pytrace=False)


class Scripts(pytest.File):
    def collect(self) -> Iterator[Script]:
        yield Script.from_parent(self, name="prints what its docstring says")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    name = name_of(file_path)
    if name.startswith("examples/") and file_path.suffix == ".py":
        return Scripts.from_parent(parent, path=file_path)
    # Sybil's own patterns match from the right, so that "README.md" would take those of all folders.
    if name == "README.md" or name.startswith("docs/"):
        return (SPARK_PAGES if name in USES_SPARK else PLAIN_PAGES)(file_path, parent)
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if name_of(item.path) in USES_SPARK:
            item.add_marker(pytest.mark.spark)
