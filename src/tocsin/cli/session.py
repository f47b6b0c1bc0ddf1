"""The Spark session of the command line: local, quiet, off the network; and what it raises, in words for people.

The library itself never makes a session.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin import errors
from tocsin.cli.arguments import as_flags
from tocsin.cli.terminal import Steps
from tocsin.engines.dispatch import SPARK, needing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
# Below the root. Homebrew installs it neither on the PATH nor with the other homes of macOS.
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
    """The home of a Java that Spark can run on."""
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
    """A local session on all cores, in UTC, that logs nothing.

    An existing session of this process is used as it is.
    """
    with needing(*SPARK):
        from pyspark.sql import SparkSession
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
    """The JVM inherits stderr when it starts, and keeps it: its output goes to a file from now on."""
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
        # The JVM still writes to it, unread: it goes with the process.
        Path(name).unlink(missing_ok=True)


def started() -> tuple[SparkSession, Steps]:
    """A session, and the steps of a command, of which starting it is the first; they show how many tasks are done."""
    steps = Steps()
    with steps.step("Starting Spark"):
        spark = start()
    tracker = spark.sparkContext.statusTracker()

    def progress() -> str:
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        total = sum(stage.numTasks for stage in known)
        return f"{sum(stage.numCompletedTasks for stage in known)} of {total} tasks" if total else ""

    steps.progress = progress
    return spark, steps


# --- faults ---------------------------------------------------------------------------------------

# Raised on workers, of which only the text comes back.
OF_WORKERS = (
    errors.TooManyMatchesError,
    errors.TooMuchSearchError,
    errors.TooMuchMemoryError,
    errors.NumberTooLargeError,
    errors.UserFunctionError,
    errors.NotTimeClusteredError,
    errors.StateMismatchError,
    errors.LateEventsError,
)
# In messages of Spark on a file that it cannot read, and on a place that it cannot write to.
UNREADABLE = ("MALFORMED_RECORD", "FAILED_READ_FILE", "CANNOT_READ_FILE", "INVALID_PARQUET", "is not a Parquet file")
UNWRITABLE = ("Permission denied", "No space left", "TASK_WRITE_FAILED", "Mkdirs failed", "Read-only file system")
LINES = {
    ".csv": "every line must have the columns of the first one.",
    ".json": "every line must be one object, from `{` to `}`.",
}


def faults() -> tuple[type[Exception], ...]:
    """The exceptions of Spark: of its Python side, and of its bridge to the JVM."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Any fault of Spark while it looks at a file is the file's."""
    try:
        yield
    except faults() as error:
        raise _unreadable([path], error) from error


@contextmanager
def running(paths: Collection[str], writes: str | None = None) -> Iterator[None]:
    """A fault of Spark while a job runs is reported as one of the input, of the output or of the job."""
    try:
        yield
    except faults() as error:
        text = str(error)
        for kind in OF_WORKERS:
            found = re.search(rf"\[{kind.condition}\] (.*)\nHint: (.*)", text)
            if found is not None:
                raise kind(found[1], hint=as_flags(found[2].replace('`late="fail"`', "`--strict`"))) from error
        if any(word in text for word in UNREADABLE):
            raise _unreadable(paths, error) from error
        if writes is not None and any(word in text for word in UNWRITABLE):
            raise errors.OutputNotWritableError(
                f"The result cannot be written to `{writes}`: {sentence(error)}", hint="nothing was changed there."
            ) from error
        raise errors.MatchFailedError(f"Spark could not finish: {sentence(error)}") from error


def _unreadable(paths: Collection[str], error: Exception) -> errors.InputNotReadableError:
    # A job reads several files; Spark names the broken one in its message.
    guilty = [path for path in paths if Path(path).name in str(error)] or list(paths)
    return errors.InputNotReadableError(
        f"{' or '.join(f'`{path}`' for path in guilty)} cannot be read: {sentence(error)}",
        hint=next((hint for ending, hint in LINES.items() if ending in f"{guilty} {error}"), None),
    )


def sentence(error: Exception) -> str:
    """Spark's message for people: the first line, without the names of classes and conditions before it."""
    text = str(getattr(error, "java_exception", None) or error).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = lines[0].rpartition("terminated with exception: ")[2] if lines else type(error).__name__
    if "Python Proxy" in first:  # raised while a micro-batch was written: what happened stands further down
        deeper = re.search(r"\[(?!STREAM_FAILED)[A-Z_.]{8,}\] [^\n]+", text) or re.search(r"\w+: [^\n]+\Z", text)
        first = deeper[0] if deeper else "a micro-batch failed."
    first = re.sub(r"^(?:[\w.$]+(?:Exception|Error): )*(?:\[[\w.]+\] )?", "", first)
    return first if first.endswith((".", "!")) else f"{first}."
