"""Runs that are earlier ones of a log, found without Arrow: most runs of a name.

A Parquet file has the least and the greatest value of a column as plain text, so a file of
``stores`` holds two marks of its log. A mark in it that a later run has proves that both are of one
log. Without such a proof the file is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from .reading import stores_of
from .tables import Kept

if TYPE_CHECKING:
    from analytics.report.amounts import Row

_BLANKS: Final = 4
"""In a mark that names a record (see ``mark_of``); a shorter text may be part of another one."""


class _Chain:
    """Runs of one log, from the newest back; ``last`` is the oldest one that was not read."""

    def __init__(self, marks: set[bytes]) -> None:
        self.marks = marks
        self.last: list[Kept] | None = None
        self._hit: bytes | None = None

    def has(self, content: bytes) -> bool:
        """Whether a file's content names a mark of these runs."""
        if self._hit is not None and self._hit in content:
            return True
        self._hit = next((mark for mark in self.marks if mark in content), None)
        return self._hit is not None


def without_proven(
    runs: Collection[Kept], stores: dict[Kept, Row], unreadable: dict[Kept, str]
) -> list[Kept]:
    """Leave out runs of one broker that certainly are earlier runs of a log of another one here.

    The rows of runs that are read meanwhile get into ``stores``, or the reasons into
    ``unreadable``. Raises as ``stores_of``.
    """
    by_run: dict[tuple[int, str], list[Kept]] = defaultdict(list)
    for kept in runs:
        by_run[kept.as_of, kept.folder].append(kept)
    if len(by_run) < 2:
        return list(runs)
    left: list[Kept] = []
    chains: list[_Chain] = []
    for _, run in sorted(by_run.items(), key=lambda one: -one[0][0]):
        content = _content(run)
        if content is None:
            left += run
            continue
        its = _chain_of(chains, content)
        if its is None:
            for chain in chains:
                if chain.last is not None:
                    chain.marks |= _marks(chain.last, stores, unreadable)
                    left += chain.last
                    chain.last = None
            its = _chain_of(chains, content)
        if its is not None:
            its.last = run
            continue
        left += run
        marks = _marks(run, stores, unreadable)
        if marks:
            chains.append(_Chain(marks))
    return left


def add_stores(
    runs: Collection[Kept], stores: dict[Kept, Row], unreadable: dict[Kept, str]
) -> None:
    """Read the rows of runs that are in neither mapping yet. Raises as ``stores_of``."""
    rest = [kept for kept in runs if kept not in stores and kept not in unreadable]
    if rest:
        stores.update(stores_of(rest, unreadable))


def _chain_of(chains: Collection[_Chain], content: bytes) -> _Chain | None:
    return next((chain for chain in chains if chain.has(content)), None)


def _marks(
    run: Collection[Kept], stores: dict[Kept, Row], unreadable: dict[Kept, str]
) -> set[bytes]:
    found = stores_of(run, unreadable)
    stores.update(found)
    return {
        mark.encode()
        for row in found.values()
        for mark in row["marks"] or ()
        if mark.count(" ") >= _BLANKS
    }


def _content(run: Collection[Kept]) -> bytes | None:
    """The files of a run; None if one of them has been joined, or is of version 1."""
    parts = []
    for kept in run:
        try:
            with open(kept.path("stores"), "rb", buffering=0) as file:  # noqa: PTH123 - faster
                parts.append(file.read())
        except OSError:
            return None
    return b"".join(parts)
