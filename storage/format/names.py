"""Names below the store root (org.apache.rocketmq.store.config.StorePathConfigHelper).

A commit log or consume queue file is named after the byte offset of its first byte in its queue,
20 decimal digits (UtilAll.offset2FileName); an index file after the local time of its creation,
17 digits ``yyyyMMddHHmmssSSS``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import tzinfo

COMMITLOG: Final = "commitlog"
CONSUMEQUEUE: Final = "consumequeue"
CONSUMEQUEUE_EXT: Final = "consumequeue_ext"
BATCHCONSUMEQUEUE: Final = "batchconsumequeue"
DLEDGER: Final = "dledger-"
"""What the folder of a replicated log begins with, which has a format of its own."""
INDEX: Final = "index"
CONFIG: Final = "config"
CHECKPOINT: Final = "checkpoint"
ABORT: Final = "abort"
LOCK: Final = "lock"
OURS: Final = "rmqctl"
"""Folder of everything that is rmqctl's own; Java ignores it."""
SNAPSHOT_MANIFEST: Final = "manifest.json"
"""What makes a folder a snapshot of a store, which is only read (storage.tools.snapshot)."""
SET_ASIDE_FOLDER: Final = "set-aside"
"""Folder in it of files that a recovery has taken away."""
BROADCAST_FOLDER: Final = "broadcast"
"""Folder in it of the progress of broadcasting consumers of the command line."""
MEMBERS_FOLDER: Final = "members"
"""Folder in it of the processes that have clients."""
SINK_FOLDER: Final = "sink"
"""Folder in it of what writes of Spark have begun or done."""
REBUILT_FOLDER: Final = "rebuilt"
"""Folder in it of rebuilt queue and index files that are not in their place yet."""

OFFSET_NAME_DIGITS: Final = 20
INDEX_NAME_DIGITS: Final = 17


def exact_str(name: str) -> str:
    """The same text, of the class ``str`` itself.

    Paths and f-strings take what ``str(name)`` gives, which is another text for a member of an enum
    (``class Topics(str, Enum)``): files would get another name than records. What is no text stays
    as it is, for the checks that refuse it.
    """
    given: object = name
    return str.__str__(name) if isinstance(given, str) else name


def file_name(offset: int) -> str:
    """Name the file whose first byte lies ``offset`` bytes into its queue.

    Raises ValueError for a negative offset.
    """
    if offset < 0:
        raise ValueError(f"a file can not begin at offset {offset}")
    return f"{offset:020d}"


def parse_file_name(name: str) -> int | None:
    """Read the offset from a file's name; None if it is not such a name.

    Stricter than Java, which takes any decimal number: exactly 20 ASCII digits, at most 2^63 - 1.
    """
    if len(name) != OFFSET_NAME_DIGITS or not (name.isascii() and name.isdigit()):
        return None
    offset = int(name)
    return offset if offset < 1 << 63 else None


LATEST_MS: Final = 253_402_041_600_000
"""Three days before the end of the year 9999, where calendars end in every time zone."""


def index_file_name(created_ms: int, tz: tzinfo | None = None) -> str:
    """Name an index file made at ``created_ms``; ``tz`` None means the machine's time zone."""
    from datetime import datetime

    # A name may be made of the time of a damaged record; calendars end with the year 9999.
    created_ms = min(max(created_ms, 0), LATEST_MS)
    moment = datetime.fromtimestamp(created_ms // 1000, tz)
    return f"{moment:%Y%m%d%H%M%S}{created_ms % 1000:03d}"


def is_index_file_name(name: str) -> bool:
    """Whether Java would load this file of the index folder: its name is a number."""
    return name.isascii() and name.isdigit()


def next_index_file_name(name: str) -> str:
    """Name that sorts directly after ``name``, for two index files made in one millisecond."""
    return f"{int(name) + 1:0{INDEX_NAME_DIGITS}d}"
