"""What the benchmarks read of the processes below them."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.processes import Peak, cpu_seconds, descendants, is_worker

# Takes fifty megabytes and some CPU time, tells so, and waits until its input ends.
CHILD = "x = bytearray(50_000_000); sum(range(3_000_000)); print('ready', flush=True); input()"


def test_memory_and_cpu_time_of_a_child_are_seen_while_it_lives() -> None:
    before = cpu_seconds()
    others = sum(process.rss for process in descendants() if is_worker(process.command))  # of a session of the tests
    command = [sys.executable, "-c", CHILD, "pyspark.daemon"]
    with (
        Peak(every_s=0.01) as peak,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child,
    ):
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        (found,) = [process for process in descendants() if process.pid == child.pid]
        assert is_worker(found.command)
        assert found.rss > 50_000_000
        assert cpu_seconds() > before
        while peak.workers < found.rss:
            assert child.poll() is None
        child.communicate("\n")
    assert peak.samples > 0
    assert peak.worker <= peak.workers < 2 * others + 10 * found.rss
    assert child.pid not in [process.pid for process in descendants()]
