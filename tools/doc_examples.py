"""Run what README.md and docs/ show, and compare it with the output that stands beside it.

The tests run every block. `python tools/doc_examples.py README.md docs/reference/errors.md` writes what comes out into
the pages instead, to be read over before it is committed. A block is run by its language:

=========  ==================================================================================================
python     as Python; what it prints and warns of, and the TocsinError it ends with, stands in the text block right
           below it. Blocks of one page share their names.
sql        a pattern, which compiles; or the text block right below says what is wrong with it
acel       the same in ACEL
parte      the same for a program of rules; `uncommon_route` is registered, and a block that begins with the comment
           `-- bank.parte` can be used by others, as the module `bank`
case       a case of the format of tests/cases/README.md (`case:` may be left out), checked with the reference
console    every `$ tocsin …` runs, and prints the lines that follow it
=========  ==================================================================================================

Other languages are not run. A page has a working directory of its own. `...` in an output stands for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sybil import Document, Example
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser

import tocsin
from tocsin.testing.cases import Case, parse_cases

ROOT = Path(__file__).resolve().parent.parent
# What shows Spark on purpose; the other pages need no JVM.
USES_SPARK = frozenset(
    {
        "README.md",
        "docs/tutorials/first-pattern.md",
        "docs/tutorials/live-stream.md",
        "docs/explanation/aggregates.md",
        "docs/explanation/streaming.md",
        "examples/account_takeover_spark.py",
        "examples/fraud_rules_spark.py",
    }
)
BELOW = re.compile(r"\s*?\n\n?```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (?P<command>(?:.*\\\n)*.*\n?)(?P<output>(?:(?!\$ ).*\n?)*)", re.MULTILINE)


@dataclass(frozen=True)
class Output:
    """What a page shows at `start:end` of its text, and what really came out."""

    start: int
    end: int
    shown: str
    got: str

    def difference(self) -> str | None:
        """How the two differ, or None."""
        return difference(self.shown, self.got)


def difference(shown: str, got: str) -> str | None:
    """How two outputs differ, or None; blanks at the ends of lines do not count."""
    shown, got = tidy(shown), tidy(got)
    checker, flags = doctest.OutputChecker(), doctest.ELLIPSIS
    if checker.check_output(shown, got, flags):
        return None
    return checker.output_difference(doctest.Example("", shown), got, flags)


def tidy(text: str) -> str:
    """The text without blanks at the ends of its lines and without empty lines around it."""
    return "\n".join(map(str.rstrip, text.splitlines())).strip("\n") + "\n"


# --- blocks ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _recorded(*, errors: bool) -> Iterator[io.StringIO]:
    """What is printed and warned of, and, when errors are expected, the one it ends with."""
    printed = io.StringIO()
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(printed):
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=ResourceWarning)
        warnings.filterwarnings("always", category=tocsin.TocsinWarning)
        try:
            yield printed
        except tocsin.TocsinError as error:
            if not errors:
                raise
            printed.write(f"{error}\n")
    for warning in warned:
        printed.write(f"{warning.message}\n")


def _with_output_below(example: Example, run: Callable[[], object]) -> list[Output]:
    below = BELOW.match(example.document.text, example.region.end)
    with _recorded(errors=below is not None) as printed:
        run()
    if below is not None:
        return [Output(below.start(1), below.end(1), below[1], printed.getvalue())]
    return [Output(example.region.end, example.region.end, "", printed.getvalue())]


def python_outputs(example: Example) -> list[Output]:
    """The output of a python block."""
    return _with_output_below(example, lambda: PythonEvaluator()(example))


def pattern_outputs(example: Example) -> list[Output]:
    """The message about a pattern, if there is one."""
    return _with_output_below(example, lambda: tocsin.pattern(example.parsed))


def formula_outputs(example: Example) -> list[Output]:
    """The message about a formula, if there is one."""
    return _with_output_below(example, lambda: tocsin.pattern(example.parsed, language="acel"))


def rules_outputs(example: Example) -> list[Output]:
    """The message about a program, if there is one."""
    modules = example.namespace.setdefault("__modules__", {})
    named = re.match(r"-- (\w+)\.parte\n", example.parsed)
    if named is not None:
        modules[named[1]] = example.parsed
        return []
    functions = {"uncommon_route": tocsin.function(lambda a, b: True, gives="boolean", pure=True)}
    return _with_output_below(example, lambda: tocsin.rules(example.parsed, functions=functions, modules=dict(modules)))


def case_outputs(example: Example) -> list[Output]:
    """Nothing, or how the reference differs from what the cases say."""
    text = example.parsed if example.parsed.startswith("case:") else f"case: example\n{example.parsed}"
    problems: list[str] = []
    for case in parse_cases(text, f"{example.path}:{example.line}"):
        try:
            with _recorded(errors=False) as printed:
                problems += _case_differences(case)
            problems += [f"does not warn of {one}" for one in case.warns if one not in printed.getvalue()]
        except tocsin.TocsinError as error:
            problems += [] if error.condition == case.error else [str(error)]
    return [Output(example.region.end, example.region.end, "", "\n".join(problems))]


def _case_differences(case: Case) -> list[str]:
    if case.language != "parte":
        pattern = tocsin.pattern(case.pattern, language=case.language)
        return case.differences(tocsin.reference.evaluate(pattern, case.inputs(), tie=case.tie))
    program = tocsin.rules(case.program)
    found = tocsin.reference.evaluate(program, case.inputs(), tie=case.tie)
    matches = found[case.rule or list(found)[-1]]
    emitted = tocsin.reference.events(program, case.inputs(), tie=case.tie)
    return (case.differences(matches) if case.matches is not None else []) + case.emit_differences(emitted)


def console_outputs(example: Example) -> list[Output]:
    """The outputs of the commands of a console block."""
    from typer.testing import CliRunner

    from tocsin.cli.app import app

    found = []
    offset = example.document.text.index(example.parsed, example.region.start)
    for part in COMMAND.finditer(example.parsed):
        program, *arguments = shlex.split(part["command"].replace("\\\n", ""))
        if program != "tocsin":
            raise ValueError(f"only tocsin is run in a console block, not {program}")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=ResourceWarning)
            result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        start, end = part.span("output")
        found.append(Output(offset + start, offset + end, part["output"], result.output))
    return found


OUTPUTS = {
    "python": python_outputs,
    "sql": pattern_outputs,
    "acel": formula_outputs,
    "parte": rules_outputs,
    "case": case_outputs,
    "console": console_outputs,
}


def parsers() -> list[CodeBlockParser]:
    """The parsers of a page whose blocks are tests."""
    return [CodeBlockParser(language, _tested(outputs)) for language, outputs in OUTPUTS.items()]


def _tested(outputs: Callable[[Example], list[Output]]) -> Callable[[Example], str | None]:
    return lambda example: "\n".join(filter(None, (each.difference() for each in outputs(example)))) or None


# --- pages ----------------------------------------------------------------------------------------


def name_of(path: Path) -> str:
    """The path within the project."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()


@contextlib.contextmanager
def surroundings(*, spark: bool) -> Iterator[None]:
    """An empty working directory, and for Spark the session that `getOrCreate()` in an example gets."""
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        if not spark:
            yield
            return
        with _session() as session, _working_directory(session):
            yield


@contextlib.contextmanager
def _session() -> Iterator[Any]:
    """That of the other tests, or a small and quiet one."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    small = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    session = SparkSession.builder.master("local[2]").config(map={**quiet, **small}).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextlib.contextmanager
def _working_directory(session: Any) -> Iterator[None]:
    """Relative paths mean the page's directory to Spark too; the JVM keeps the one it was started in."""
    hadoop = session._jvm.org.apache.hadoop.fs
    files = hadoop.FileSystem.getLocal(session._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory()
    files.setWorkingDirectory(hadoop.Path(str(Path.cwd())))
    try:
        yield
    finally:
        files.setWorkingDirectory(before)


# --- writing --------------------------------------------------------------------------------------


def update(path: Path) -> int:
    """Write what comes out into a page; the number of outputs that were changed."""
    found: list[Output] = []
    runs = [CodeBlockParser(language, _collected(outputs, found)) for language, outputs in OUTPUTS.items()]
    document = Document.parse(str(path), *runs)
    with surroundings(spark=name_of(path) in USES_SPARK):
        for example in document.examples():
            example.evaluate()
    changed = [each for each in found if each.difference() is not None]
    text = document.text
    for each in sorted(changed, key=lambda each: each.start, reverse=True):
        if each.start == each.end and not text[: each.start].endswith("\n"):
            line = text[: each.start].count("\n") + 1
            raise SystemExit(f"{path}:{line}: nothing should come out of the block that ends here, but\n{each.got}")
        text = text[: each.start] + tidy(each.got) + text[each.end :]
    path.write_text(text, encoding="utf-8")
    return len(changed)


def _collected(outputs: Callable[[Example], list[Output]], found: list[Output]) -> Callable[[Example], None]:
    return lambda example: found.extend(outputs(example))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {update(Path(name).resolve())} outputs changed")
