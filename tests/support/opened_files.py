"""Which files this process opens."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from storage.files import many_files
from storage.queue import first_read, written_end

_opened: list[str] | None = None


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open":
        _opened.append(str(args[0]))


sys.addaudithook(_watch)


@contextmanager
def opened_below(root: Path) -> Iterator[set[str]]:
    """The files below a folder that are opened meanwhile, known when the context ends. Those that
    compiled code would open are opened by Python."""
    global _opened
    _opened = []
    found: set[str] = set()
    try:
        with (
            patch.object(written_end, "written_ends", written_end._written_ends_of),
            patch.object(first_read, "read_each", many_files._read_each),
        ):
            yield found
    finally:
        found |= {path.removeprefix(f"{root}/") for path in _opened if path.startswith(f"{root}/")}
        _opened = None


@contextmanager
def no_queue_is_opened(root: Path) -> Iterator[None]:
    """Check that no file of a store's queues is."""
    with opened_below(root / "consumequeue") as found:
        yield
    assert found == set()
