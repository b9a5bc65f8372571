"""Checking the bodies of the log in processes of their own, while another part of a check goes on.

CRCs of all bodies are most of the work, and each log file can be checked by itself. The processes
give back their findings only.
"""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Self

from storage.config import StoreConfig
from storage.files.read_files import StoreFiles

from .findings import Checked, Finding
from .log import LogCheck
from .records import TopicNames

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

LogRange = tuple[int, int]
"""First and last (exclusive) commit log offset of what lies in one file."""


def split_log(start: int, log_end: int, file_size: int) -> list[LogRange]:
    """Divide the log from ``start``, where a file begins, at the borders of its files."""
    return [
        (offset, min(offset + file_size, log_end)) for offset in range(start, log_end, file_size)
    ]


class LogJobs:
    """Processes that check log files, begun when this is made; a context manager that ends them."""

    def __init__(self, root: Path, config: StoreConfig, ranges: list[LogRange], jobs: int) -> None:
        spawning = multiprocessing.get_context("spawn")
        self.records = 0
        """Whole records that the processes have seen, once their findings were taken."""
        self._running: list[tuple[SpawnProcess, Connection]] = []
        for number in range(min(jobs, len(ranges))):
            ours, theirs = spawning.Pipe(duplex=False)
            process = spawning.Process(
                target=_check_ranges,
                args=(theirs, root, config, ranges[number::jobs]),
                daemon=True,
            )
            process.start()
            theirs.close()
            self._running.append((process, ours))

    def findings(self) -> list[Finding]:
        """Wait for all processes and give what they found, in the order of the log.

        Raises ChildProcessError if one died, and OSError where one could not read.
        """
        findings: list[Finding] = []
        for process, answers in self._running:
            try:
                found, records = answers.recv()
            except EOFError:
                process.join()
                raise ChildProcessError(
                    f"a process of the check died (exit code {process.exitcode})"
                ) from None
            if isinstance(found, OSError):
                raise found
            self.records += records
            findings += found
        return sorted(findings, key=lambda finding: (finding.file, finding.position or 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process, answers in self._running:
            process.terminate()
            process.join()
            answers.close()


def _check_ranges(
    answers: Connection, root: Path, config: StoreConfig, ranges: list[LogRange]
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who waits for us
    findings: list[Finding] = []
    checked = Checked()
    log = StoreFiles(root, config).log
    try:
        for start, end in ranges:
            check = LogCheck(
                log,
                TopicNames(),
                findings.append,
                checked,
                start=start,
                log_end=end,
                check_crc=True,
                told=None,
            )
            for _ in check.blocks():
                pass
        answers.send((findings, checked.records))
    except OSError as error:
        answers.send((error, 0))
