"""A broker over a store as it was at an earlier time: it answers, and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from broker.api.offsets import OffsetQuery
from storage.as_of import AsOfView

from .broker import EmbeddedBroker

Progress = Mapping[tuple[str, str], Mapping[int, int]]
"""(group, topic) to queue id to offset."""


class AsOfBroker(EmbeddedBroker):
    """Answers as a broker would have at ``as_of`` (ms), as far as that can be known.

    Ends, messages, times and keys are those of then. Topics, groups and settings are those of now:
    a store does not keep earlier ones. ``consumer_offsets`` and ``query_consumer_offset`` give the
    progress passed to the constructor; a queue that is missing there is unknown.
    """

    def __init__(self, view: AsOfView, progress: Progress) -> None:
        """Serve ``view``, which is closed with the broker."""
        super().__init__(None, view=view)
        self.as_of: Final = view.timestamp
        self._then = progress

    @classmethod
    def open_at(cls, root: Path, as_of: int, progress: Progress) -> AsOfBroker:
        """Open the store in a folder. Raises what ``AsOfView.open_at`` raises."""
        return cls(AsOfView.open_at(root, as_of), progress)

    def consumer_offsets(self, group: str | None = None) -> dict[tuple[str, str], dict[int, int]]:
        """What is known of progress then."""
        return {
            key: dict(offsets) for key, offsets in self._then.items() if group in (None, key[0])
        }

    def query_consumer_offset(self, group: str, topic: str, queue_id: int) -> OffsetQuery:
        """What is known of progress then. None: unknown; no rule of young queues is applied."""
        offset = self._then.get((group, topic), {}).get(queue_id)
        return OffsetQuery(offset, stored=offset is not None)
