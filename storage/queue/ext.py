"""The tag hashes of queues written with ``enableConsumeQueueExt``, for reading only.

Their units hold an address into ``consumequeue_ext`` instead of the hash. rmqctl never writes such
units; it resolves those of a broker, so that tag filters work on its stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.files.read_files import ReadOnlyFiles, is_folder_name
from storage.format.cqext import decode_ext_unit, ext_offset
from storage.format.errors import FormatError
from storage.format.names import CONSUMEQUEUE_EXT

if TYPE_CHECKING:
    from storage.files.read_files import StoreFiles
    from storage.format.cqext import ExtUnit


class ConsumeQueueExt:
    """All ext files of a store. Thread-safe."""

    def __init__(self, files: StoreFiles) -> None:
        self._root = files.root / CONSUMEQUEUE_EXT
        self._budget = files.budget
        self._rows: dict[tuple[str, int], ReadOnlyFiles | None] = {}

    def tags_code(self, topic: str, queue_id: int, address: int) -> int | None:
        """Give the hash at an address; None if there is none, so that the message passes the
        filter (ConsumeQueue.getExt, DefaultMessageStore.getMessage)."""
        unit = self.unit(topic, queue_id, address)
        return None if unit is None else unit.tags_code

    def unit(self, topic: str, queue_id: int, address: int) -> ExtUnit | None:
        """Give the whole ext unit at an address, None if there is none."""
        row = self._row(topic, queue_id)
        if row is None:
            return None
        offset = ext_offset(address)
        position = offset % row.file_size
        file = row.at(offset - position)
        if file is None:
            return None
        try:
            return decode_ext_unit(file.view, position)
        except FormatError:
            return None

    def _row(self, topic: str, queue_id: int) -> ReadOnlyFiles | None:
        key = (topic, queue_id)
        if key not in self._rows:
            self._rows[key] = self._find(topic, queue_id)
        return self._rows[key]

    def _find(self, topic: str, queue_id: int) -> ReadOnlyFiles | None:
        if not is_folder_name(topic):
            return None
        folder = self._root / topic / str(queue_id)
        try:
            sizes = [path.stat().st_size for path in folder.iterdir() if path.is_file()]
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not sizes or not max(sizes):
            return None
        return ReadOnlyFiles(self._budget, str(folder), max(sizes))
