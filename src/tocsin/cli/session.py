"""The Spark session of the command line: local, quiet, off the network. The library itself never makes one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin import errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
# Below the root. What Homebrew installs is neither on the PATH nor with the other homes of macOS.
USUAL_HOMES = (
    "usr/lib/jvm/*",
    "usr/java/*",
    "Library/Java/JavaVirtualMachines/*/Contents/Home",
    "opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
)
# It would skip the reading of an input whose partner turns out empty, and with it the count of its events.
NO_SKIPPED_INPUTS = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"


def java_home() -> Path:
    """The home of a Java that Spark can run on.

    Raises
    ------
    JavaNotFoundError
        When there is none; in one sentence, with what to do.
    """
    too_old: list[str] = []
    for home in _homes():
        version = _java_version(home)
        if version is not None and version >= OLDEST_JAVA:
            return home
        if version is not None:
            too_old.append(f"{home} is version {version}")
    raise errors.JavaNotFoundError(
        f"Spark needs a JDK {OLDEST_JAVA} or newer"
        + (f", and {too_old[0]}." if too_old else ", and none was found in JAVA_HOME or on the PATH."),
        hint=f"install one (Debian/Ubuntu: `apt-get install openjdk-{OLDEST_JAVA}-jre-headless`, "
        f"macOS: `brew install openjdk@{OLDEST_JAVA}`), or set JAVA_HOME.",
    )


def _homes() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named)
    if java := shutil.which("java"):
        yield Path(java).resolve().parents[1]
    for pattern in USUAL_HOMES:
        yield from sorted(Path("/").glob(pattern))


def _java_version(home: Path) -> int | None:
    try:
        done = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else None


def start() -> SparkSession:
    """A local session on all cores, in UTC, that says nothing.

    An existing session of this process is used as it is.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise errors.MissingExtraError(
            "Matching needs Apache Spark, and pyspark is not installed.", hint="pip install 'tocsin[spark]'."
        ) from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cores = os.cpu_count() or 2
    builder = (
        SparkSession.builder.master("local[*]")
        .appName("tocsin")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(2 * cores))
        .config("spark.sql.adaptive.optimizer.excludedRules", NO_SKIPPED_INPUTS)
    )
    with _stderr_to_file() as log:
        try:
            return builder.getOrCreate()
        except Exception as error:
            lines = log.read_text(errors="replace").strip().splitlines()
            raise errors.SparkNotStartedError(
                f"Spark did not start: {lines[-1] if lines else error}.",
                hint="run `java -version` and look at JAVA_HOME and SPARK_HOME.",
            ) from error


@contextmanager
def _stderr_to_file() -> Iterator[Path]:
    """The JVM inherits stderr when it starts, and keeps it: what it says there from now on goes to a file."""
    handle, name = tempfile.mkstemp(prefix="tocsin-spark-", suffix=".log")
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # no stderr at all, as under some supervisors
        os.close(handle)
        yield Path(name)
        return
    try:
        os.dup2(handle, 2)
        yield Path(name)
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(handle)
        # The JVM still writes to it, but nobody will read it: let it go with the process.
        Path(name).unlink(missing_ok=True)


def task_progress(spark: SparkSession) -> Callable[[], str]:
    """A function that tells how many tasks of the running stages are done."""
    tracker = spark.sparkContext.statusTracker()

    def progress() -> str:
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        total = sum(stage.numTasks for stage in known)
        return f"{sum(stage.numCompletedTasks for stage in known)} of {total} tasks" if total else ""

    return progress
