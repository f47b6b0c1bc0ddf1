"""The Spark session of all tests, and tests of all that README.md, docs/ and examples/ show (`make docs`).

How a block of a page is run, and how its output is updated, is in `tools/doc_examples.py`. A script in examples/ prints
what its docstring says after "It prints:".
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import gc
import io
import os
import runpy
import sys
import tempfile
import textwrap
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sybil import Sybil
from tools.doc_examples import USES_SPARK, difference, name_of, parsers, surroundings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# For every JVM that tests start, also in processes of their own. They are gone before the second compiler has paid off,
# which takes half of the time of two cores, and so does a collector with many threads. Hadoop starts `chmod` for each
# file that it writes; where a JVM can, it does that without a helper process in between.
LAUNCH = " -Djdk.lang.Process.launchMechanism=VFORK" if sys.platform == "linux" else ""
os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC{LAUNCH}")
# Spark's usual manager of checkpoints starts `readlink` whenever it renames a file: 150 processes for a stream of three
# micro-batches. This one starts none for that; `make test-slow` has the usual one.
CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}


@cache
def session() -> SparkSession:
    """The session of this process: small, quiet, and for queries over a handful of rows."""
    from pyspark.sql import SparkSession

    # Python workers must be the Python that runs the tests, and Spark must not look for the network.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if SparkSession.getActiveSession() is not None:  # all tests of this process would run with its settings
        raise RuntimeError("Another Spark session is there already: a page that starts one is missing in USES_SPARK.")
    scratch = tempfile.TemporaryDirectory(prefix="tocsin-tests-")
    atexit.register(scratch.cleanup)
    return (
        SparkSession.builder.master("local[2]")
        .appName("tocsin tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.memory", "1g")
        .config("spark.local.dir", f"{scratch.name}/local")
        .config("spark.sql.warehouse.dir", f"{scratch.name}/warehouse")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.python.daemon.module", "tests.workers")
        # For a handful of rows, adaptive plans, compiled stages and compressed blocks cost more than they save.
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.shuffle.compress", "false")
        .config("spark.shuffle.spill.compress", "false")
        .config("spark.broadcast.compress", "false")
        .config(map={} if os.environ.get("HYPOTHESIS_PROFILE") == "ci" else CHECKPOINTS)
        .getOrCreate()
    )


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The session; tests that change its settings put them back."""
    return session()


def pytest_collection_finish() -> None:
    """All that is there now stays: later collections of garbage, a quarter of a second each, need not look at it."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    if session.cache_info().currsize:
        session().stop()


def pages(*, spark: bool) -> Any:
    def setup(namespace: dict[str, Any]) -> None:
        if spark:
            session()
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
        uses_spark = name_of(self.path) in USES_SPARK
        if uses_spark:
            session()
        with surroundings(spark=uses_spark), contextlib.redirect_stdout(printed):
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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share the tests among processes: of pages all blocks together, of other files a quarter of the tests at a time.

    Whole files would leave one process waiting for the other, and tests one by one cost more than they take.
    """
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Quarters(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return f"{file} {zlib.crc32(nodeid.encode()) % 4}" if file.endswith(".py") else file

    return Quarters(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if name_of(item.path) in USES_SPARK:
            item.add_marker(pytest.mark.spark)
