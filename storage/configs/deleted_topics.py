"""Topics whose queues were deleted, and up to where: ``<store>/rmqctl/deleted.json``.

    {"version":1,"topics":{"Orders":1234567}}

Their records stay in the log until its files are deleted. Those before the noted log offset have no
units any more, and neither recovery nor readers make new ones: the queues begin at 0 with the next
message, as in RocketMQ. A real broker keeps no such record; its recovery after a crash may bring
some of the messages back. One line with a checksum (checksummed_json), replaced as a whole under
the write lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from storage.errors import CorruptFileError, go_on_without
from storage.files.fs import FileSystem
from storage.format.names import OURS
from storage.format.shapes import members, table, whole
from storage.format.versions import FORMATS

from .checksummed_json import read_sealed, seal
from .config_file import replace_file

DELETED_FILE: Final = "deleted.json"
STAGED_FILE: Final = f"{DELETED_FILE}.new"
"""What the file becomes with the deletion that is under way (queue/deletion.py, and beside writers
append/topic_deletion.py); one that a killed process has left counts only in stage 4 of the shared
state."""
VERSION: Final = FORMATS[DELETED_FILE]
_REMEDY: Final = (
    "'rmqctl store repair' makes it anew of what is left; topics that come back then are to be "
    "deleted again"
)

_SHAPE: Final = members({"topics": table(whole(0))})

DeletedTopics = Mapping[str, int]
"""Topic to the log offset before which its records belong to no queue."""


def read_deleted_topics(root: Path) -> DeletedTopics:
    """Give the topics of a store; none if there is no such file.

    Raises CorruptFileError and StoreVersionError.
    """
    entry = read_sealed(root / OURS / DELETED_FILE, VERSION, _SHAPE, remedy=_REMEDY)
    if entry is None:
        return {}
    topics: dict[str, int] = entry["topics"]
    return topics


def deleted_topics_for_reading(root: Path) -> DeletedTopics:
    """Give the topics as ``read_deleted_topics``; for a damaged file none, with a
    DamagedFileWarning: messages of deleted topics may be among the others then."""
    try:
        return read_deleted_topics(root)
    except CorruptFileError as error:
        go_on_without(error, "topics that were deleted may be shown")
        return {}


def deleted_entry(topics: DeletedTopics) -> dict[str, Any]:
    """Give the content of the file."""
    return {"version": VERSION, "topics": dict(topics)}


def stage_deleted_topic(root: Path, topic: str, log_end: int, log_min: int, fs: FileSystem) -> None:
    """Write beside the file that the topic's records before ``log_end`` belong to no queue; needs
    the write lock. ``put_deleted_topics`` puts it in place, for which the disk needs no room.

    Topics without records in the log are left out. On the device when this returns.
    Raises OSError, and nothing has changed then.
    """
    known = read_deleted_topics(root)
    topics = {name: end for name, end in known.items() if end > log_min}
    path = root / OURS / STAGED_FILE
    fs.make_dirs(path.parent)
    replace_file(fs, path, seal(deleted_entry({**topics, topic: log_end})))
    fs.sync_dir(path.parent)


def put_deleted_topics(root: Path, fs: FileSystem) -> None:
    """Put in place what ``stage_deleted_topic`` wrote; does nothing the second time. On the device
    when this returns. Raises OSError."""
    staged = root / OURS / STAGED_FILE
    if staged.exists():
        fs.rename(staged, root / OURS / DELETED_FILE)
    fs.sync_dir(root / OURS)


def end_deleted_topics(root: Path, log_end: int, fs: FileSystem) -> None:
    """Let no noted offset lie past the end of the log, as one may after a power loss.

    Otherwise messages that are appended there would count as deleted. On the device when this
    returns. Raises OSError, CorruptFileError and StoreVersionError.
    """
    known = read_deleted_topics(root)
    if any(end > log_end for end in known.values()):
        topics = {topic: min(end, log_end) for topic, end in known.items()}
        replace_file(fs, root / OURS / DELETED_FILE, seal(deleted_entry(topics)))
        fs.sync_dir(root / OURS)
