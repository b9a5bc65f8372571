"""Progress in a file of this machine, for broadcasting (LocalFileOffsetStore of 4.9).

``<folder>/<client id>/<group>/offsets.json``: every member consumes everything, so its progress is
its own, and a consumer with another client id begins anew. RocketMQ writes objects as keys, which
only fastjson can read; this file is plain JSON, in a folder of our own:

    {"offsetTable": [{"topic": "T", "brokerName": "broker-a", "queueId": 0, "offset": 42}]}

It is replaced in one step; ``offsets.json.bak`` holds its previous content. The writer holds
``offsets.lock`` beside it, because several threads of one consumer, or consumers with one client
id, may write at the same time (MixAll.string2File is synchronized).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storage.configs.config_file import ConfigFile, ConfigSource
from storage.coordination.locks import ProcessLock
from storage.errors import CorruptFileError, StoreError, go_on_without
from storage.files.creating import make_folders
from storage.format.message import MessageQueue
from storage.format.shapes import MAX_INT, MAX_LONG, ShapeError, members, rows, text, whole

from .offset_store import OffsetTable, ReadOffsetType

if TYPE_CHECKING:
    from broker.api.offsets import OffsetCommit

logger = logging.getLogger("rmqctl.client.offset_store")

LOCAL_OFFSET_STORE_DIR: Final = ".rmqctl_offsets"
"""Folder in the user's home, if no other is named (rocketmq.client.localOffsetStoreDir)."""
OFFSETS_FILE: Final = "offsets.json"
_LOCK_FILE: Final = "offsets.lock"
_TABLE: Final = "offsetTable"
_ENTRIES: Final = rows(
    members({"topic": text, "brokerName": text, "queueId": whole(0, MAX_INT), "offset": whole(0)})
)


class LocalFileOffsetStore:
    """An OffsetStore over one file. Of two consumers with one client id the last writer counts."""

    def __init__(self, client_id: str, group: str, folder: Path | None = None) -> None:
        """Keep progress below ``folder``; nothing is read before ``load``."""
        folder = Path.home() / LOCAL_OFFSET_STORE_DIR if folder is None else folder
        self.path: Final = folder / _folder_name(client_id) / _folder_name(group) / OFFSETS_FILE
        self._file = ConfigFile(self.path, check=_offsets)
        self._changing = ProcessLock(self.path.with_name(_LOCK_FILE))
        self._table = OffsetTable()

    def load(self) -> None:
        """Take the file's offsets into memory; its ``.bak``'s if it is damaged.

        Raises CorruptFileError if both are, DamagedFileWarning if the file is.
        """
        loaded = self._file.load()
        if loaded.source is ConfigSource.BAK:
            damage = CorruptFileError(self.path, 0, "it is missing, or no table of progress")
            go_on_without(damage, "its .bak is taken, which may be older")
        for queue, offset in _offsets(loaded.document).items():
            self._table.update(queue, offset, increase_only=False)

    def update_offset(self, queue: MessageQueue, offset: int, increase_only: bool) -> None:
        """See OffsetStore.update_offset."""
        self._table.update(queue, offset, increase_only)

    def read_offset(self, queue: MessageQueue, read_type: ReadOffsetType) -> int | None:
        """See OffsetStore.read_offset. The file is read anew."""
        if read_type is not ReadOffsetType.READ_FROM_STORE:
            offset = self._table.get(queue)
            if offset is not None or read_type is ReadOffsetType.READ_FROM_MEMORY:
                return offset
        offset = self._read().get(queue)
        if offset is not None:
            self._table.update(queue, offset, increase_only=False)
        return offset

    def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """See OffsetStore.persist_all. Entries of other queues in the file stay.

        On the device when this returns. A file that is damaged, with its ``.bak``, or cannot be
        written is logged and left as it is.
        """
        wanted = frozenset(queues)
        self._write({q: offset for q, offset in self._table.items().items() if q in wanted})

    def persist(self, queue: MessageQueue) -> None:
        """See OffsetStore.persist."""
        self.persist_all([queue])

    def remove_offset(self, queue: MessageQueue) -> None:
        """See OffsetStore.remove_offset; the file keeps it."""
        self._table.remove(queue)

    def clone_offset_table(self, topic: str | None = None) -> dict[MessageQueue, int]:
        """See OffsetStore.clone_offset_table."""
        return {q: o for q, o in self._table.items().items() if topic in (None, q.topic)}

    def pull_commit(self, queue: MessageQueue) -> OffsetCommit | None:
        """Give None: brokers have no progress of members of a broadcast."""
        del queue
        return None

    def _read(self) -> dict[MessageQueue, int]:
        return _offsets(self._file.load().document)

    def _write(self, changed: Mapping[MessageQueue, int]) -> None:
        kept = {queue: offset for queue, offset in changed.items() if 0 <= offset <= MAX_LONG}
        if not kept:
            return
        try:
            make_folders(self.path.parent)
            with self._changing.held():
                self._file.save(_document({**self._read(), **kept}))
        except (StoreError, OSError) as error:
            logger.warning("progress cannot be written: path=%s: %s", self.path, error)


def _document(offsets: Mapping[MessageQueue, int]) -> dict[str, Any]:
    entries = [
        {
            "topic": queue.topic,
            "brokerName": queue.broker_name,
            "queueId": queue.queue_id,
            "offset": offset,
        }
        for queue, offset in sorted(offsets.items())
    ]
    return {_TABLE: entries}


def _offsets(document: dict[str, Any]) -> dict[MessageQueue, int]:
    """Read the table. Raises ValueError for a document that is none."""
    entries = document.get(_TABLE, [])
    try:
        _ENTRIES(entries, _TABLE)
    except ShapeError as error:
        raise ValueError(str(error)) from error
    return {
        MessageQueue(entry["topic"], entry["brokerName"], entry["queueId"]): entry["offset"]
        for entry in entries
    }


def _folder_name(name: str) -> str:
    """Make a client id or group the name of one folder, whatever is in it."""
    safe = name.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    return safe.replace(".", "%2E") if safe in (".", "..") else safe
