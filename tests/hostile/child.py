"""A child process that compiles hostile texts under limits of CPU time and memory: one JSON line in, one out, per text.

`compiled` starts it. A text that exceeds its CPU time is reported as `TIME`; one that exhausts the memory, as `MEMORY`.
Where the child dies (a recursion in C, a regular expression that never returns), its text is reported as `DIED`.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

SMALL = 4_000


class OutOfTimeError(BaseException):
    """Not an Exception, so that nothing catches it on its way."""


@dataclass(frozen=True)
class Text:
    """A text in one of the languages: `sase`, `acel` or `parte`."""

    language: str
    text: str

    def __str__(self) -> str:
        """The beginning, for messages of tests."""
        return f"{self.language}: {self.text[:300]!r} ({len(self.text):,} characters)"


@dataclass(frozen=True)
class Outcome:
    """What came of a text: `ok`, the condition of an error, or what went wrong with Tocsin itself."""

    text: Text
    result: str
    seconds: float = 0.0
    grown_mb: float = 0.0
    report: str = ""

    @property
    def survived(self) -> bool:
        """Whether the text was compiled or refused by an error of Tocsin's own."""
        return self.result == "ok" or (self.result.isupper() and self.result not in {"TIME", "MEMORY", "DIED"})


def compiled(texts: Iterable[Text], *, seconds: float = 5.0, memory_mb: int = 1_500) -> list[Outcome]:
    """Compile texts in child processes; `seconds` of CPU time and `memory_mb` of memory are for each of them."""
    waiting, outcomes = list(texts), []
    while waiting:
        lines = "".join(json.dumps([each.language, each.text]) + "\n" for each in waiting)
        child = subprocess.run(
            [sys.executable, "-m", "tests.hostile.child", str(seconds), str(memory_mb)],
            input=lines,
            capture_output=True,
            text=True,
            check=False,
            timeout=120 + 20 * seconds * len(waiting),
        )
        found = [json.loads(line) for line in child.stdout.splitlines()]
        outcomes += [Outcome(text, **each) for text, each in zip(waiting, found, strict=False)]
        if len(found) < len(waiting):
            outcomes.append(Outcome(waiting[len(found)], "DIED", report=child.stderr[-2000:]))
        waiting = waiting[len(found) + 1 :]
    return outcomes


def _compile(text: Text) -> None:
    import tocsin

    if text.language == "parte":
        program = tocsin.rules(text.text)
        if len(text.text) < SMALL:
            program.to_text()
            program.explain()
    else:
        pattern = tocsin.pattern(text.text, language=text.language)
        if len(text.text) < SMALL:
            repr(pattern)
            pattern.explain()


def _result(text: Text) -> tuple[str, str]:
    from tocsin.errors import TocsinError

    try:
        _compile(text)
    except TocsinError as error:
        report = str(error)
        error.to_dict()
        return error.condition or "NO_CONDITION", report
    except OutOfTimeError:
        return "TIME", ""
    except MemoryError:
        return "MEMORY", ""
    except BaseException as error:
        import traceback

        return f"raw {type(error).__name__}", traceback.format_exc(limit=-4)
    return "ok", ""


def _out_of_time(_signal: int, _frame: Any) -> NoReturn:
    raise OutOfTimeError


def main(seconds: float, memory_mb: int) -> None:
    """Read texts, write outcomes."""
    warnings.simplefilter("ignore")
    for language, text in (("sase", "PATTERN A a"), ("acel", "A"), ("parte", "rule R where a : A")):
        _result(Text(language, text))  # imports and grammars are not the text's
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb * 2**20,) * 2)
    signal.signal(signal.SIGVTALRM, _out_of_time)
    for line in sys.stdin:
        text = Text(*json.loads(line))
        # A second limit, which ends the process: an extension that never returns to Python hears no signal.
        used = int(time.process_time() + 2 * seconds) + 2
        resource.setrlimit(resource.RLIMIT_CPU, (used, resource.RLIM_INFINITY))
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        result, report = _result(text)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        spent = time.process_time() - start
        print(
            json.dumps({"result": result, "seconds": spent, "grown_mb": grown, "report": report[:20_000]}), flush=True
        )


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
