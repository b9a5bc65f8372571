"""How far all groups are, noted now and then, so that others can tell whether they move.

Only one process of a store does so (the one that delivers delayed messages), every 10 s, and
writes nothing while nothing changes. Readers of lag compare these samples with what they see
(storage.configs.offset_samples); RocketMQ has nothing like it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from storage.configs.consumer_offsets import split_topic_at_group
from storage.configs.offset_samples import OffsetSamples

if TYPE_CHECKING:
    from storage.configs.consumer_offsets import OffsetTable
    from storage.configs.progress import ProgressFile
    from storage.readonly import StoreView

FIRST_AFTER_MS: Final = 5_000
INTERVAL_MS: Final = 10_000
"""Twice as long as consumers take to write their progress."""
LONG_INTERVAL_MS: Final = 60_000
"""In stores in which groups read thousands of queues."""
MANY_OFFSETS: Final = 5_000


class ProgressSampler:
    """A timed service. ``elected`` says whether this process is to do it now."""

    def __init__(
        self,
        file: ProgressFile,
        samples: OffsetSamples,
        view: Callable[[], StoreView],
        elected: Callable[[], bool],
    ) -> None:
        self._file = file
        self._samples = samples
        self._view = view
        self._elected = elected
        self._begun = False

    def tick(self, now_ms: int) -> int:
        """Note what has changed; gives when to call again, ms since the epoch.

        The first one only after a while: short calls leave nothing. Raises OSError.
        """
        if not self._begun:
            self._begun = True
            return now_ms + FIRST_AFTER_MS
        if not self._elected():
            return now_ms + INTERVAL_MS
        committed = self._file.read().offsets()
        self._samples.append(committed, self._ends(committed), now_ms)
        many = sum(map(len, committed.values())) > MANY_OFFSETS
        return now_ms + (LONG_INTERVAL_MS if many else INTERVAL_MS)

    def _ends(self, committed: OffsetTable) -> dict[str, dict[int, int]]:
        """Max offsets of the queues in which there is progress; asked for after it."""
        view = self._view()
        ends: dict[str, dict[int, int]] = {}
        for key, offsets in committed.items():
            parts = split_topic_at_group(key)
            if parts is not None:
                known = ends.setdefault(parts[0], {})
                for queue_id in offsets:
                    if queue_id not in known:
                        known[queue_id] = view.max_offset_in_queue(parts[0], queue_id)
        return ends
