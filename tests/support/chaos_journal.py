"""What the processes of a chaos run write down, and how the test reads it while they write.

One append-only file for each process, one line for each event, written with one system call
before the process goes on:

    <time> in                                                 it runs
    <time> out                                                it has left in its own way
    <time> took <topic> <queue> <offset>                      it has the queue, and begins there
    <time> gave <topic> <queue>                               it has the queue no more
    <time> got <topic> <queue> <offset> <times> <said> <id>   its listener has a message
    <time> sent <topic> <queue> <offset> <id>                 a send was acknowledged
    <time> warned <text>                                      its log has a warning

Times are ns of CLOCK_MONOTONIC, the same for all processes of a machine. ``times`` is how often the
message was sent back, ``said`` what the listener answers next: done, or later.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

DONE: Final = "done"
LATER: Final = "later"


class JournalWriter:
    """The process's end. Lines of its threads do not mix: each is one write to a file that is
    open for appending."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, *words: object) -> None:
        """Write one event, as it happens now."""
        line = " ".join(map(str, (time.monotonic_ns(), *words))) + "\n"
        os.write(self._fd, line.encode())


class Event(NamedTuple):
    """One line."""

    time: int
    kind: str
    words: list[str]


class JournalReader:
    """The test's end: gives what has been added since it last looked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._rest = b""

    def more(self) -> Iterator[Event]:
        """Read on; half a line waits for its end, which a killed process never writes."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                chunk = file.read()
        except FileNotFoundError:
            return
        self._read += len(chunk)
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            moment, kind, *words = line.decode().split(" ")
            yield Event(int(moment), kind, words)
