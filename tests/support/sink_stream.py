"""A stream from store to store, to be killed: ``python -m tests.support.sink_stream SOURCE TARGET
CHECKPOINT BYTES`` ends once all of the source is stored in the target."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.slim import ROOT


def main(source: str, target: str, checkpoint: str, most_bytes: str) -> None:
    """Follow the source up to its end of now."""
    from pyspark.sql import SparkSession as Sql

    from analytics.spark.session import SparkSession

    with SparkSession("local[2, 100]") as session:
        query = (
            Sql(session.context)
            .readStream.format("rocketmq")
            .option("maxBytesPerTrigger", most_bytes)
            .load(source)
            .repartition(4)
            .selectExpr("body", "keys", "topic", "queue_id")
            .writeStream.format("rocketmq")
            .option("checkpointLocation", checkpoint)
            .option("path", target)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


class Driver:
    """The program in a process of its own."""

    def __init__(self, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.sink_stream", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def workers(self) -> list[int]:
        """Pids of Python workers that stage rows now. Spark repeats their tasks; a killed worker
        that plans a query ends the query."""
        parents = _children()
        below = [self._process.pid]
        found = []
        while below:
            pid = below.pop()
            below += parents.get(pid, ())
            if _stages(pid):
                found.append(pid)
        return found

    def kill(self) -> None:
        """Kill it and all that it has started."""
        parents = _children()
        everything, below = [], [self._process.pid]
        while below:
            pid = below.pop()
            everything.append(pid)
            below += parents.get(pid, ())
        for pid in everything:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.communicate()

    def result(self) -> None:
        """Wait for its end; AssertionError with its errors if it failed."""
        _, errors = self._process.communicate()
        assert self._process.returncode == 0, errors[-3000:]


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                stat = (path / "stat").read_text()
            except OSError:
                continue
            parent = int(stat.rpartition(")")[2].split()[1])
            found.setdefault(parent, []).append(int(path.name))
    return found


def _stages(pid: int) -> bool:
    try:
        return any(
            "rocketmq-sink" in str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()
        )
    except OSError:
        return False


if __name__ == "__main__":
    main(*sys.argv[1:])
