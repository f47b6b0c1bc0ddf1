"""`python -m benchmarks`: measure, report, update the docs."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import report, session
from benchmarks.race import problems
from benchmarks.settings import QUICK, QUICK_ROWS, Job, Session, Settings, parse_size, sessions, size, unknown
from benchmarks.workloads import workloads

DESCRIPTION = """\
Measure Tocsin next to a naive join, the best plan by hand, an automaton in Python, DuckDB and Polars on the same files,
and what Spark needs to scan, shuffle and sort the same events. All must find the same matches. Spark writes to a sink
that keeps nothing; DuckDB and Polars make an Arrow table.
"""
EXAMPLES = """\
examples:
  python -m benchmarks --quick                        two minutes, to see that all runs
  python -m benchmarks --only seq3-sparse             the headline at 1M and 10M events
  python -m benchmarks --rows 1M --only 'seqn-*'      how throughput falls with the length of a sequence
  python -m benchmarks --only cores memory            1 core against 2; memory of the Python workers
  python -m benchmarks --strategies join,kernel       Tocsin's strategies, each forced
  python -m benchmarks                                everything; some hours on two cores
  python -m benchmarks --update-docs build/bench/DATE/result.json

In the folder of --out: result.json (environment, every single time, medians, ratios), report.md, *.svg, and
records.jsonl, which grows while it runs. The streams are made once and kept in build/bench-data.
The exit code is 1 when a contestant found other matches than the rest, or died.
"""
MOST_IN_VAIN = 2  # processes in a row that die at their first job
DOCS = session.ROOT / "docs" / "benchmarks.md"


def parser() -> argparse.ArgumentParser:
    default = Settings()
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--list", action="store_true", help="list the workloads and stop")
    # argparse formats help texts with %, and names of workloads may hold one.
    quick = ", ".join(QUICK).replace("%", "%%")
    add("--quick", action="store_true", help=f"{size(QUICK_ROWS)} events, one run of {quick}")
    add("--rows", metavar="N,N", help="numbers of events (1M,10M)")
    add("--only", nargs="+", metavar="NAME", help="workloads, 'cores' or 'memory'; * and ? stand for any letters")
    add("--contestants", metavar="A,B", help="naive, hand, nfa, duckdb, polars, limit, scan, tocsin, tocsin+id (all)")
    add("--strategies", metavar="A,B", help="also measure Tocsin with each of these strategies forced")
    add("--repeat", type=int, metavar="N", help=f"timed runs of each contestant ({default.repeat})")
    add("--warmup", type=int, metavar="N", help=f"rounds that are not timed, after the first two ({default.warmup})")
    add("--cores", type=int, metavar="N", help=f"cores of the session ({default.cores})")
    add("--partitions", type=int, metavar="N", help=f"shuffle partitions ({default.partitions})")
    add("--memory", metavar="SIZE", help=f"memory of the JVM ({default.memory})")
    add("--layout", choices=("ordered", "shuffled"), help="rows in order of time (ordered), or in no order")
    add("--time", choices=("timestamp", "bigint"), help="type of the time column (timestamp)")
    add("--seed", type=int, metavar="N", help=f"seed of the streams ({default.seed})")
    add("--timeout", type=float, metavar="S", dest="timeout_s", help=f"stop a run after ({default.timeout_s:g} s)")
    add("--most-pairs", type=float, metavar="N", help=f"skip a naive join over more pairs ({default.most_pairs:g})")
    add("--data", metavar="DIR", help=f"where the streams are kept ({default.data})")
    add("--out", type=Path, metavar="DIR", help="where results go (build/bench/<date and time>)")
    earlier: dict[str, Any] = {"type": Path, "nargs": "+", "metavar": "RESULT.json"}
    add("--report", **earlier, help="print the report of earlier runs and stop; of a job in several, the last counts")
    add("--update-docs", **earlier, help="write earlier runs into docs/benchmarks.md and stop")
    return made


def settings_of(given: argparse.Namespace) -> Settings:
    """Settings from the command line; what is not given has its default."""
    named: dict[str, Any] = (
        {"only": QUICK, "rows": (QUICK_ROWS,), "repeat": 1, "warmup": 0, "all_variants": False} if given.quick else {}
    )
    for name in ("contestants", "strategies"):
        if getattr(given, name):
            named[name] = tuple(getattr(given, name).split(","))
    if given.rows:
        named["rows"] = tuple(map(parse_size, given.rows.split(",")))
    if given.only:
        named["only"] = tuple(given.only)
    plain = (
        "repeat",
        "warmup",
        "cores",
        "partitions",
        "memory",
        "layout",
        "time",
        "seed",
        "timeout_s",
        "most_pairs",
        "data",
    )
    named |= {name: value for name in plain if (value := getattr(given, name)) is not None}
    return Settings(**named)


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    if given.list:
        for workload in workloads():
            print(f"{workload.name:20} {workload.stream.kind:8} {workload.title}")
        print(f"{'cores':20} {'':8} the unkeyed SEQs in sessions of 1 and of --cores cores")
        print(f"{'memory':20} {'':8} memory of the Python workers at each of --rows, each in a session of its own")
        return 0
    if given.report or given.update_docs:
        paths = given.report or given.update_docs
        result = report.together([json.loads(path.read_text(encoding="utf-8")) for path in paths])
        if given.update_docs:
            report.update_docs(result, DOCS)
            print(f"{DOCS.relative_to(session.ROOT)} shows {', '.join(map(str, paths))} now.")
        else:
            print(report.markdown(result))
        return 0
    settings = settings_of(given)
    if strangers := unknown(settings.only):
        parser().error(f"no workload is called {', '.join(strangers)}; --list names them all")
    return run(settings, given.out or Path("build/bench") / dt.datetime.now().strftime("%Y-%m-%d-%H%M%S"))


def run(settings: Settings, out: Path) -> int:
    """Measure everything, one process per session, and write the report."""
    out.mkdir(parents=True, exist_ok=True)
    records = out / "records.jsonl"
    records.unlink(missing_ok=True)
    facts = session.environment(**asdict(settings))
    planned = list(sessions(settings))
    total = sum(len(one.jobs) for one in planned)
    print(f"{total} measurements in {len(planned)} Spark sessions; results go to {out}", flush=True)
    died: list[Job] = []
    for number, one in enumerate(planned, start=1):
        print(f"session {number} of {len(planned)}: {one.cores} core{'s'[: one.cores > 1]}", flush=True)
        died += _run_session(settings, one, records)
    result = {"environment": facts, "records": _read(records), "died": [asdict(job) for job in died]}
    (out / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    written = report.write_plots(result, out)
    text = report.markdown(result, plots=[(title, path.name) for title, path in written])
    (out / "report.md").write_text(text, encoding="utf-8")
    print(f"\n{text}")
    print(f"Written: {out / 'result.json'}, report.md" + (f" and {len(written)} plots" if written else ""))
    return _judge(result["records"], died)


def _run_session(settings: Settings, one: Session, records: Path) -> list[Job]:
    """Run the jobs of a session. When its process dies, the job it was at is left out; the rest go on in a new one."""
    left, died, in_vain = list(one.jobs), [], 0
    while left:
        done = len(_read(records))
        jobs = json.dumps([asdict(job) for job in left])
        command = [sys.executable, "-m", "benchmarks.worker", settings.to_json(), jobs, str(records)]
        path = os.pathsep.join([str(session.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        ended = subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": path})
        finished = len(_read(records)) - done
        left, in_vain = left[finished:], 0 if finished else in_vain + 1
        if left:
            print(f"  the session died (exit code {ended.returncode}) at: {left[0].words}", file=sys.stderr, flush=True)
            died.append(left.pop(0))
        if in_vain == MOST_IN_VAIN:
            print("  no session comes to an end; the rest is left out", file=sys.stderr, flush=True)
            return died + left
    return died


def _read(records: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()] if records.exists() else []


def _judge(records: list[dict[str, Any]], died: list[Job]) -> int:
    found = [*(f"DIED: {job.words}" for job in died), *problems(records, "workload")]
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
