"""Count double ways, double names, open `match` statements, lines and files; or list the modules of one `match`."""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "tocsin"
# Phases that have one caller, and the packages that may call them.
PHASES = {"bind": ("analysis", "plan"), "optimize": ("optimizer", "plan"), "network": ("analysis", "plan")}
# Classes that go away, or of which there is one.
CLASSES = ("Options", "Shipper", "JointTask", "AnyKernel", "RunKernel", "Template", "Held", "Kind", "Source", "Step")
QUERY = "PATTERN SEQ(A a, B+ b, NOT C c, D d) WHERE b.x > a.x WITHIN 10 SECONDS"


@cache
def modules() -> dict[Path, ast.Module]:
    """The syntax trees of all modules."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def counts() -> dict[str, int]:
    """All counts by name."""
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    found = {
        "files": len(lines),
        "lines": sum(lines.values()),
        "files above 400 lines": sum(number > 400 for number in lines.values()),
        "match statements": sum(1 for _ in matches()),
        "match statements without a final arm": sum(not is_closed(node) for _, node in matches()),
        "module names in several places": len(shared_names()),
    }
    for phase, packages in PHASES.items():
        callers = {path for path in calls(phase) if path.relative_to(SOURCE).parts[0] not in packages}
        found[f"callers of {phase} outside {' and '.join(packages)}"] = len(callers)
    defined = Counter(
        node.name for tree in modules().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    aliases = Counter(name for tree in modules().values() for name in assigned(tree))
    found |= {f"class {name}": defined[name] + aliases[name] for name in CLASSES}
    return found


def calls(function: str) -> Iterator[Path]:
    """The modules that call a function by its bare name."""
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
                yield path


def assigned(tree: ast.Module) -> Iterator[str]:
    """The names that a module gives to types: `AnyKernel = Kernel | RunKernel`."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def matches() -> Iterator[tuple[Path, ast.Match]]:
    """All `match` statements."""
    for path, tree in modules().items():
        yield from ((path, node) for node in ast.walk(tree) if isinstance(node, ast.Match))


def is_closed(node: ast.Match) -> bool:
    """Whether the last arm of a `match` takes everything: `case _`, or `case x, y` of two values."""
    last = node.cases[-1]
    if last.guard is not None:
        return False
    if isinstance(node.subject, ast.Tuple) and isinstance(last.pattern, ast.MatchSequence):
        return len(node.subject.elts) == len(last.pattern.patterns) and all(map(is_capture, last.pattern.patterns))
    return is_capture(last.pattern)


def is_capture(pattern: ast.pattern) -> bool:
    """Whether a pattern takes any value: `_` or a name."""
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def shared_names() -> dict[str, list[str]]:
    """Module names that occur more than once, and where."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        if path.stem not in ("__init__", "__main__"):
            places[path.stem].append(str(path.relative_to(SOURCE)))
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def walk(spark: SparkSession, *, streaming: bool) -> list[tuple[str, str, str]]:
    """The modules that `match` on Spark passes, in order: module, first function called there, and what it returned."""
    import tocsin

    pattern, seen, made = tocsin.pattern(QUERY), dict[str, str](), dict[str, str]()

    def frame_of() -> DataFrame:
        if not streaming:
            return spark.createDataFrame([(1, 1)], "ts bigint, x bigint")
        return spark.readStream.format("rate").load().selectExpr("value AS ts", "value AS x")

    options = {"time_unit": "us", **({"lateness": "1 second"} if streaming else {})}
    frames = {name: frame_of() for name in "ABCD"}
    pattern.match(frames, **options)  # a first call imports engines and fills caches

    def note(frame: FrameType, event: str, value: Any) -> None:
        function = frame.f_code.co_name
        if frame.f_code.co_filename.startswith(str(SOURCE)) and function != "<module>":
            module = str(Path(frame.f_code.co_filename).relative_to(SOURCE))
            if event == "call":
                seen.setdefault(module, function)
            elif event == "return" and seen.get(module) == function:
                made.setdefault(module, type(value).__name__)

    sys.setprofile(note)
    try:
        pattern.match(frames, **options)
    finally:
        sys.setprofile(None)
    return [(module, function, made.get(module, "")) for module, function in seen.items()]


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="list the module names that occur more than once")
    parser.add_argument("--walk", action="store_true", help="list the modules that a batch match passes")
    parser.add_argument("--walk-stream", action="store_true", help="list the modules that a match of streams passes")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    asked = parser.parse_args()
    if asked.walk or asked.walk_stream:
        from pyspark.sql import SparkSession  # only here: counting needs no JVM

        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        passed = walk(spark, streaming=asked.walk_stream)
        spark.stop()
        folders = [module.rpartition("/")[0] for module, _, _ in passed]
        for module, function, made in passed:
            print(f"{module:50} {function:30} {made}")
        changes = sum(one != other for one, other in pairwise(folders))
        print(f"{len(passed)} modules, {changes} changes of folder")
        return
    found = counts()
    if asked.json:
        print(json.dumps(found, indent=1))
        return
    for name, number in found.items():
        print(f"{number:7,}  {name}")
    if asked.names:
        for name, places in shared_names().items():
            print(f"{name:20} {', '.join(places)}")


if __name__ == "__main__":
    main()
