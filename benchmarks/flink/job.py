"""Runs SQL on Flink, for `benchmarks.flink.process`. Its Python has apache-flink, and nothing of this repository.

It reads lines of JSON. A list holds statements to begin with; a text is one INSERT, which is run to its end. The answer
to either is a line of JSON: the seconds that the job took by Flink's own account, and by the wall clock.
"""

from __future__ import annotations

import json
import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

SETTINGS = {"table.local-time-zone": "UTC", "pipeline.object-reuse": "true"}


def main(parallelism: str) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in {**SETTINGS, "parallelism.default": parallelism}.items():
        environment.get_config().set(name, value)
    for line in sys.stdin:
        asked = json.loads(line)
        began = time.perf_counter()
        answer = {}
        if isinstance(asked, str):
            result = environment.execute_sql(asked)
            result.wait()
            answer["net_s"] = result.get_job_client().get_job_execution_result().result().get_net_runtime() / 1000
        else:
            for statement in asked:
                environment.execute_sql(statement)
        print(json.dumps({**answer, "wall_s": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
