"""The settings of a store and the progress of its groups, for reading."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .coordination.forks import made_once
from .detect import not_covered, version_hint

if TYPE_CHECKING:
    from .configs.consumer_offsets import OffsetTable
    from .configs.progress import ProgressFile
    from .configs.topics import TopicConfig


class StoreConfigs:
    """What the files beside the log of one store say: a part of StoreView."""

    root: Path

    def topics(self) -> Mapping[str, TopicConfig]:
        """The topics of ``config/topics.json``, none if there is no such file.

        Raises CorruptFileError.
        """
        from .configs.topics import topics_file

        return topics_file(self.root).read(0).items

    @made_once
    def progress(self) -> ProgressFile:
        """The file with the progress of groups; it is read again only after a change."""
        from .configs.progress import ProgressFile

        return ProgressFile(self.root)

    def consumer_offsets(self) -> OffsetTable:
        """Committed offsets: ``topic@group`` -> queue id -> next offset to consume.

        Raises CorruptFileError and StoreVersionError.
        """
        return self.progress.read().known_offsets()

    def progress_doubt(self) -> str | None:
        """Why committed offsets may not be the last ones of groups; None without a reason.

        Raises CorruptFileError and StoreVersionError.
        """
        return self.progress.read().doubt

    @property
    def version_hint(self) -> str:
        """The writer of the store, as far as it is known: ``rmqctl``, ``4.9`` or ``5.x``."""
        return version_hint(self.root)

    def not_covered(self) -> list[str]:
        """Parts of the store that rmqctl does not read, a sentence each."""
        return not_covered(self.root)
