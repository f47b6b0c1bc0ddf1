"""What library code must never do: run a job, touch the JVM, leave something behind in the session."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "tocsin"
ACTIONS = {
    "collect",
    "count",
    "first",
    "head",
    "show",
    "take",
    "tail",
    "toPandas",
    "toArrow",
    "foreach",
    "write",
    "save",
}
JVM_ONLY = {"rdd", "sparkContext", "_jdf", "_jsc", "_jvm", "_sc", "_session"}
TRACES = {
    "cache",
    "persist",
    "checkpoint",
    "localCheckpoint",
    "createTempView",
    "createOrReplaceTempView",
    "createGlobalTempView",
}


# What is called like an action and is none, and the one verb that says it runs a job.
ALLOWED = {
    "acer/stream.py": {"take"},  # of Arrow tables
    **{
        f"engines/worker/{name}.py": {"take"}
        for name in ("arrow_scan", "event_tables", "gather", "results", "rows", "summaries")
    },
    "engines/local/shards.py": {"take"},  # likewise
    **{f"engines/stream/{name}.py": {"take"} for name in ("packing", "shard_rules")},
    "engines/local/arrow_inputs.py": {"collect"},  # of a LazyFrame of Polars
    "engines/spark/analyze.py": {"collect", "count"},  # Pattern.analyze; the field `count`
    # The Python of workers on a local master, never over Connect; and standard output, where a plan is printed.
    "engines/spark/compat.py": {"sparkContext", "write"},
    "engines/spark/match_ids.py": {"count", "first"},  # fields of a bag of digests
    "engines/spark/edges.py": {"take"},  # likewise
    "sinks.py": {"write", "save", "persist"},  # what `foreachBatch` calls is there to write; it gives up what it keeps
}
FUNCTIONS = {"F", "pc"}  # F.count(column) makes a column


def library_files() -> list[Path]:
    """Everything that sees Spark, but the command line, which is a program of its own and may run jobs."""
    return [
        path
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] != "cli"
        and ("pyspark" in path.read_text(encoding="utf-8") or "engines" in path.relative_to(SOURCE).parts)
    ]


def attributes_used(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in FUNCTIONS):
            yield node.attr


@pytest.mark.parametrize("path", library_files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_library_code_never_runs_a_job_or_touches_the_jvm(path: Path) -> None:
    allowed = ALLOWED.get(path.relative_to(SOURCE).as_posix(), set())
    assert set(attributes_used(path)) & (ACTIONS | JVM_ONLY | TRACES) <= allowed


def test_importing_tocsin_imports_neither_spark_nor_arrays_nor_the_terminal() -> None:
    program = "import sys, tocsin; print(*(name for name in sys.argv[1:] if name in sys.modules))"
    heavy = ["pyspark", "pandas", "numpy", "numba", "pyarrow", "typer", "rich"]
    done = subprocess.run([sys.executable, "-c", program, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_no_module_grows_beyond_what_one_sitting_can_read() -> None:
    long = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 450
    }
    assert long == {}
