"""A process that writes to a store as fast as it can, until it is killed, and reports what it did.

``python -m tests.support.busy_writer STORE NAME JOURNAL`` appends a line to its journal for each
acknowledged message (when, the message's id, its place in the log, queue, queue offset), and for
each offset that it has committed for group ``g``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
from storage.store import MessageStore
from tests.support.consumers import eventually
from tests.support.samples import Sample, prepared
from tests.support.slim import ROOT

TOPIC = "T"
KEY = f"{TOPIC}@g"


class Acked(NamedTuple):
    """A message that was acknowledged at a time (CLOCK_MONOTONIC, ns)."""

    at: int
    id: str
    place: int
    queue_id: int
    queue_offset: int


class Committed(NamedTuple):
    """An offset of group g that is on the device since a time."""

    at: int
    queue_id: int
    offset: int


class Told(NamedTuple):
    """What a writer has done so far."""

    acked: list[Acked]
    committed: list[Committed]


def told(journal: Path) -> Told:
    lines = [json.loads(line) for line in journal.read_bytes().split(b"\n")[:-1]]
    return Told(
        [Acked(*line[1:]) for line in lines if line[0] == "acked"],
        [Committed(*line[1:]) for line in lines if line[0] == "committed"],
    )


@contextmanager
def busy_writers(root: Path, folder: Path, count: int, first: int = 0) -> Iterator[list[Path]]:
    """So many processes, each with a queue of its own from ``first`` on; gives their journals.
    Killed at the end."""
    journals = [folder / f"journal-{number}" for number in range(first, first + count)]
    running = []
    try:
        for number, journal in enumerate(journals, first):
            journal.touch()
            running.append(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.support.busy_writer", root, f"{number}", journal],
                    cwd=ROOT,
                    env={**os.environ, "PYTHONPATH": str(ROOT)},
                )
            )
        yield journals
    finally:
        for process in running:
            process.kill()
            process.wait()


def wait_for_more(journals: list[Path], count: int) -> None:
    """Wait until each writer has had so many more messages acknowledged."""
    wanted = [len(told(journal).acked) + count for journal in journals]

    def there() -> bool:
        return all(
            len(told(journal).acked) >= number
            for journal, number in zip(journals, wanted, strict=True)
        )

    eventually(there, "the writers are too slow")


def sample_of(queue_id: int, number: int) -> Sample:
    """A message of one writer."""
    return Sample(f"{queue_id}-{number}", TOPIC, queue_id, number % 97, keys=("all",))


def _write(root: Path, queue_id: int, journal: Path) -> None:
    fd = os.open(journal, os.O_WRONLY | os.O_APPEND)

    def tell(*what: object) -> None:
        os.write(fd, json.dumps(what).encode() + b"\n")

    progress = ProgressFile(root)
    with MessageStore.open(root) as store:
        for number in range(1 << 30):
            sample = sample_of(queue_id, number)
            result = store.put(prepared([sample]))
            place, offset = int(result.commitlog_offsets[0]), int(result.queue_offsets[0])
            tell("acked", time.monotonic_ns(), sample.id, place, queue_id, offset)
            if number % 20 == 19:
                progress.commit({(KEY, queue_id): QueueProgress(0, offset)})
                tell("committed", time.monotonic_ns(), queue_id, offset)


if __name__ == "__main__":
    _write(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
