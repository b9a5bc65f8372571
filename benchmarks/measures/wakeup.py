"""Time until a waiting process gets a message of another one, and the cost of waiting."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median, quantiles

from benchmarks.ours import new_store
from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run
from benchmarks.workload import messages
from storage.format.encode import prepare

NAME = "wakeup"
_LIMIT_MS = 1.0


def measure(run: Run) -> Iterator[Row]:
    count = run.sized(1_000, 200)
    idle_seconds = run.sized(10, 3)
    sent = messages(count, 1024)
    pause = random.Random(4711)
    with run.folder() as folder, new_store(folder) as store:
        waiter = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.programs.waiter",
                str(store.root),
                str(count),
                str(idle_seconds),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert waiter.stdout is not None
        waiter.stdout.readline()  # it is ready
        for message in sent:
            # Paced, so that the waiter is asleep each time.
            time.sleep(pause.uniform(0.002, 0.010))
            body = time.monotonic_ns().to_bytes(8, "big") + message.body[8:]
            store.put(prepare((message._replace(queue_id=0, body=body),)))
        output, _ = waiter.communicate()
    if waiter.returncode:
        raise NotMeasurableError("the waiting process failed")
    result = json.loads(output)
    latencies = [nanoseconds / 1e6 for nanoseconds in result["latencies"]]
    yield Row(
        "from put to message object in an idle process, p50",
        f"p50 {median(latencies):.3f} ms",
        f"p99 {quantiles(latencies, n=100)[98]:.2f} ms",
        latencies,
        Goal(_LIMIT_MS, at_most=True),
        "ms",
    )
    yield Row(
        "CPU of a process that waits",
        f"{result['cpu'] * 1e3:.1f} ms",
        f"{idle_seconds} s",
        [result["cpu"] / idle_seconds],
        Goal(0.01, at_most=True, percent=True),
    )
