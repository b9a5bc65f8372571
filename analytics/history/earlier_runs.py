"""Runs that are earlier ones of a log, found without Arrow: most runs of a name.

The metadata of a file of ``stores`` is plain text and has the last mark of its log. If a later run
has that mark, both are of one log, as logs that have parted have no later record in common. Without
such a proof the file is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import TYPE_CHECKING

from .logs import Places
from .reading import stores_of
from .tables import Kept, last_mark_text

if TYPE_CHECKING:
    from analytics.report.amounts import Row


class _Chain:
    """Runs of one log, from the newest back; ``last`` is the oldest one that was not read."""

    def __init__(self, marks: Collection[str]) -> None:
        self.places = Places(marks)
        self.last: list[Kept] | None = None
        self._texts = {last_mark_text(mark) for mark in marks}
        self._hit: bytes | None = None

    def add(self, marks: Collection[str]) -> None:
        """Add the marks of a run that was read."""
        self.places.add(marks)
        self._texts |= {last_mark_text(mark) for mark in marks}

    def has(self, contents: Collection[bytes]) -> bool:
        """Whether the last mark in each file of a run is one of these runs."""
        return all(self._has(content) for content in contents)

    def _has(self, content: bytes) -> bool:
        if self._hit is not None and self._hit in content:
            return True
        self._hit = next((text for text in self._texts if text in content), None)
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
        contents = _contents(run)
        if contents is None:
            left += run
            continue
        its = _chain_of(chains, contents)
        if its is None:
            for chain in chains:
                if chain.last is not None:
                    chain.add(_marks(chain.last, stores, unreadable))
                    left += chain.last
                    chain.last = None
            its = _chain_of(chains, contents)
        if its is not None:
            its.last = run
            continue
        left += run
        marks = _marks(run, stores, unreadable)
        known = next((chain for chain in chains if chain.places.prove(Places(marks))), None)
        if known is not None:
            known.add(marks)
        elif marks:
            chains.append(_Chain(marks))
    return left


def add_stores(
    runs: Collection[Kept], stores: dict[Kept, Row], unreadable: dict[Kept, str]
) -> None:
    """Read the rows of runs that are in neither mapping yet. Raises as ``stores_of``."""
    rest = [kept for kept in runs if kept not in stores and kept not in unreadable]
    if rest:
        stores.update(stores_of(rest, unreadable))


def _chain_of(chains: Collection[_Chain], contents: Collection[bytes]) -> _Chain | None:
    return next((chain for chain in chains if chain.has(contents)), None)


def _marks(run: Collection[Kept], stores: dict[Kept, Row], unreadable: dict[Kept, str]) -> set[str]:
    found = stores_of(run, unreadable)
    stores.update(found)
    return {mark for row in found.values() for mark in row["marks"] or ()}


def _contents(run: Collection[Kept]) -> list[bytes] | None:
    """The files of a run; None if one of them has been joined, or is of version 1."""
    parts = []
    for kept in run:
        try:
            with open(kept.path("stores"), "rb", buffering=0) as file:  # noqa: PTH123 - faster
                parts.append(file.read())
        except OSError:
            return None
    return parts
