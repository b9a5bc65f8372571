"""Topics whose queues were deleted, and up to where: ``<store>/rmqctl/deleted.json``.

    {"version":1,"topics":{"Orders":1234567}}

Their records stay in the log until its files go. Those before the noted log offset have no units
any more, and neither recovery nor readers make new ones: the queues begin at 0 with the next
message, as in RocketMQ. A real broker keeps no such record; its recovery after a crash may bring
some of the messages back. One line with a check sum (sealed_json), replaced as a whole under the
gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from storage.files.fs import FileSystem
from storage.format.names import OURS

from .config_file import write_synced
from .sealed_json import read_sealed, seal

DELETED_FILE: Final = "deleted.json"
VERSION: Final = 1

DeletedTopics = Mapping[str, int]
"""Topic to the log offset before which its records belong to no queue."""


def read_deleted_topics(root: Path) -> DeletedTopics:
    """Give the topics of a store; none if there is no such file.

    Raises CorruptFileError and StoreVersionError.
    """
    remedy = "remove it, and delete again the topics that come back"
    entry = read_sealed(root / OURS / DELETED_FILE, VERSION, remedy=remedy)
    if entry is None:
        return {}
    return {str(topic): int(offset) for topic, offset in entry["topics"].items()}


def note_deleted_topic(
    root: Path, topic: str, log_end: int, log_min: int, fs: FileSystem | None = None
) -> None:
    """Note that the topic's records before ``log_end`` belong to no queue; needs the gate.

    Topics whose records are all gone from the log are left out. On the device when this returns.
    Raises OSError, and nothing has changed then.
    """
    fs = fs or FileSystem()
    known = read_deleted_topics(root)
    topics = {name: end for name, end in known.items() if end > log_min}
    path = root / OURS / DELETED_FILE
    fs.make_dirs(path.parent)
    entry = {"version": VERSION, "topics": {**topics, topic: log_end}}
    fs.rename(write_synced(fs, path, seal(entry)), path)
    fs.sync_dir(path.parent)
