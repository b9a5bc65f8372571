"""Parameters of every measurement: how long to take, and where to write."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .contest import Contestant, Times, take_turns
from .memory_stock import memory_stock

_WARMING_SHORT = 3
"""Warming rounds of short measures: the first ones fill memory that was never used."""


class NotMeasurableError(Exception):
    """The measurement needs something that is missing; the text names it."""


@dataclass(frozen=True)
class Run:
    """The parameters of one run of the suite."""

    directory: Path
    rounds: int
    quick: bool

    def sized(self, usual: int, quick: int) -> int:
        """The amount of work of a round."""
        return quick if self.quick else usual

    @property
    def more_rounds(self) -> int:
        """Rounds of a measure that takes under a second: each scatters more, and more of them cost
        little."""
        return self.rounds if self.quick else 2 * self.rounds + 1

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A new folder that is removed afterwards."""
        path = Path(tempfile.mkdtemp(dir=self.directory))
        try:
            yield path
        finally:
            shutil.rmtree(path)

    def take_turns(
        self,
        title: str,
        contestants: dict[str, Contestant],
        *,
        rounds: int | None = None,
        short: bool = False,
        new_processes: bool = False,
        memory: int = 0,
    ) -> Times:
        """See :func:`benchmarks.contest.take_turns`; shows the progress on a terminal.

        ``short``: a round takes under a second, so there are more of them, and more that warm up.
        ``new_processes``: nothing of a round is left for the next one, so a quick run has no
        warming rounds. ``memory``: bytes of the page cache that each contestant fills anew, which
        are prepared (see :mod:`benchmarks.memory_stock`); of memory in scraps a quick run touches
        no more than that, because it may be most of the free memory.
        """
        warming = _WARMING_SHORT if short and not self.quick else 1
        if new_processes and self.quick:
            warming = 0
        scraps = memory if self.quick else None
        with memory_stock(memory, scraps) as refill:
            try:
                return take_turns(
                    contestants,
                    self.more_rounds if short else rounds or self.rounds,
                    note=progress(title),
                    warming=warming,
                    prepare=refill,
                )
            finally:
                clear_progress()


def progress(title: str) -> Callable[[str], None]:
    """A function that shows the current work on a terminal."""

    def note(text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[K{title}: {text}", end="", file=sys.stderr, flush=True)

    return note


def clear_progress() -> None:
    """Remove the line again."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def warm_machine(directory: Path, size: int) -> None:
    """Touch as much memory as the measurements will, so that none pays for its first use.

    On a virtual machine the first touch of a page after the boot costs several times a later one.
    """
    block = bytes(range(256)) * 4096
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(size // len(block)):
            file.write(block)
