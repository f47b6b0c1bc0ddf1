"""`python -m benchmarks.local`: the local engine next to DuckDB and Polars, without Spark."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report as spark_report
from benchmarks import session
from benchmarks.local import report
from benchmarks.local.measure import Job, measure
from benchmarks.local.questions import questions
from benchmarks.processes import keep_to
from benchmarks.race import problems
from benchmarks.settings import parse_size, size

DESCRIPTION = """\
Measure `engine="local"` next to DuckDB and Polars, each with the fastest of several plans, on Arrow tables in memory
and on Parquet files. All must find the same; memory is measured in processes of their own.
"""
EXAMPLES = """\
examples:
  python -m benchmarks.local                                      everything, at 1M and 10M events
  python -m benchmarks.local --rows 1M --only seq2-sparse count   two questions
  python -m benchmarks.local --contestants duckdb,polars          without Tocsin
  python -m benchmarks.local --update-docs build/bench/local.json

The exit code is 1 when a contestant found other matches than the rest, or failed.
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.local",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    names = [question.name for question in questions()]
    add("--list", action="store_true", help="list the questions and stop")
    add("--rows", default="1M,10M", metavar="N,N", help="numbers of events (1M,10M)")
    add("--only", nargs="+", choices=names, default=names, metavar="NAME", help="questions (all)")
    add("--forms", default=",".join(report.FORMS), metavar="A,B", help="of the events (arrow,parquet)")
    add("--contestants", metavar="A,B", help="tocsin, tocsin id=, duckdb, polars, read (all)")
    add("--repeat", type=int, default=Job.repeat, metavar="N", help=f"timed runs of each ({Job.repeat})")
    add("--warmup", type=int, default=Job.warmup, metavar="N", help=f"rounds that are not timed ({Job.warmup})")
    add("--cores", type=int, default=Job.cores, metavar="N", help=f"for every contestant ({Job.cores})")
    add("--seed", type=int, default=Job.seed, metavar="N", help=f"of the streams ({Job.seed})")
    add("--timeout", type=float, default=Job.timeout_s, metavar="S", help=f"stop a run after ({Job.timeout_s:g} s)")
    add("--no-memory", action="store_true", help="do not measure memory")
    add("--data", default=Job.data, metavar="DIR", help=f"where the streams are kept ({Job.data})")
    add("--out", type=Path, default=Path("build/bench/local.json"), metavar="FILE", help="where the result goes")
    add("--update-docs", type=Path, metavar="FILE", help="write an earlier result into docs/benchmarks.md and stop")
    return made


def jobs(given: argparse.Namespace) -> list[Job]:
    forms = given.forms.split(",")
    if strangers := set(forms) - set(report.FORMS):
        parser().error(f"no form is called {', '.join(sorted(strangers))}; there are {', '.join(report.FORMS)}")
    shared = {name: getattr(given, name) for name in ("cores", "seed", "repeat", "warmup", "data")}
    shared |= {"timeout_s": given.timeout, "only": tuple(given.contestants.split(",")) if given.contestants else ()}
    return [
        Job(question, rows, form, **shared)
        for rows in map(parse_size, given.rows.split(","))
        for question in given.only
        for form in forms
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    if given.list:
        for question in questions():
            print(f"{question.name:14} {question.workload.stream.kind:8} {question.workload.title}")
        return 0
    if given.update_docs:
        result = json.loads(given.update_docs.read_text(encoding="utf-8"))
        page = session.ROOT / "docs" / "benchmarks.md"
        spark_report.put_between(report.BEGIN, report.END, report.markdown(result), page)
        print(f"{page.relative_to(session.ROOT)} shows {given.update_docs} now.")
        return 0
    keep_to(given.cores)  # before a library counts them
    planned = jobs(given)
    result = {"environment": session.environment(cores=given.cores, repeat=given.repeat), "records": []}
    for job in planned:
        print(f"{job.question}, {size(job.rows)} events, {job.form}", flush=True)
        result["records"].append(
            measure(job, lambda text: print(f"  {text}", flush=True), with_memory=not given.no_memory)
        )
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\n{report.markdown(result)}\nWritten: {given.out}")
    for problem in (found := problems(result["records"], *report.NAMES)):
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
