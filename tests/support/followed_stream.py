"""A stream from stores to Parquet files, to be killed: ``python -m tests.support.followed_stream
OPTIONS``. Options are JSON: ``paths``, ``out``, ``checkpoint``, ``progress``, ``now`` and those of
the source. It appends its progress to a file, an object a line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.slim import ROOT


def main(text: str) -> None:
    """Follow the stores; with ``now`` up to their ends of now."""
    given: dict[str, Any] = json.loads(text)
    from pyspark.errors import StreamingQueryException
    from pyspark.sql import SparkSession as Sql

    from analytics.spark.session import SparkSession

    with SparkSession("local[2, 4]") as session:
        reader = Sql(session.context).readStream.format("rocketmq")
        for name, value in given["options"].items():
            reader = reader.option(name, value)
        trigger = {"availableNow": True} if given["now"] else {"processingTime": "1 second"}
        query = (
            reader.load(given["paths"])
            .selectExpr("cast(body as string) body", "topic", "broker")
            .coalesce(1)
            .writeStream.format("parquet")
            .option("path", given["out"])
            .option("checkpointLocation", given["checkpoint"])
            .trigger(**trigger)
            .start()
        )
        last, has_ended = None, False
        try:
            while not has_ended:
                has_ended = bool(query.awaitTermination(1))
                progress = query.lastProgress
                if progress is not None and progress.batchId != last:
                    last = progress.batchId
                    with Path(given["progress"]).open("a") as file:
                        file.write(progress.json.replace("\n", " ") + "\n")
        except StreamingQueryException as error:
            raise SystemExit(str(error)) from None  # Spark has the text, and ends with the session


class Follower:
    """The program in a process of its own."""

    def __init__(
        self, root: Path, paths: list[Path], options: dict[str, str], *, now: bool = False
    ) -> None:
        self.progress_file = root / "progress.jsonl"
        given = {
            "paths": ",".join(map(str, paths)),
            "out": str(root / "out"),
            "checkpoint": str(root / "checkpoint"),
            "progress": str(self.progress_file),
            "now": now,
            "options": options,
        }
        self._process: Any = subprocess.Popen(
            [sys.executable, "-m", "tests.support.followed_stream", json.dumps(given)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def progress(self) -> list[dict[str, Any]]:
        """What the stream has reported, of all its runs."""
        if not self.progress_file.exists():
            return []
        lines = self.progress_file.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def wait_for_batches(self, count: int, seconds: float = 120) -> None:
        """Wait for so many new reports with rows; AssertionError with its errors if it ends."""
        before, deadline = len(self._with_rows()), time.monotonic() + seconds
        while len(self._with_rows()) < before + count:
            assert self._process.poll() is None, self._process.communicate()[1][-3000:]
            assert time.monotonic() < deadline, f"no {count} batches in {seconds} s"
            time.sleep(0.2)  # between looks at what is waited for

    def _with_rows(self) -> list[dict[str, Any]]:
        return [one for one in self.progress() if one["numInputRows"]]

    def kill(self) -> None:
        """Kill it and all that it has started, if it has not ended."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        if not self._process.stderr.closed:
            self._process.communicate()

    def end(self) -> tuple[int, str]:
        """Wait for its end; its exit code and its errors."""
        _, errors = self._process.communicate()
        return self._process.returncode, errors


if __name__ == "__main__":
    main(*sys.argv[1:])
