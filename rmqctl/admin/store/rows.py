"""The rows of ``store clean``, ``restore`` and ``recover-config``."""

from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull, Rank
from storage.tools.config_recovery.configs import Evidence

_APPLIED = Annotated[bool | None, "whether it was written, as read back; null: not changed"]
_new_row_type: Any = NamedTuple


class FileKind(StrEnum):
    """Kind of a file."""

    LOG = "log"
    QUEUE = "queue"
    INDEX = "index"


class CleanedFile(NamedTuple):
    """An expired file."""

    file: Annotated[str, "the file, relative to the store", Rank.KEY]
    kind: Annotated[FileKind, "log, queue or index"]
    bytes: Annotated[int | None, "disk usage; null for queue and index files", Rank.KEY]
    modified_timestamp: Annotated[
        int | None, "when it was last written; its age counts from this time"
    ]
    messages: Annotated[int | None, "messages that are deleted with it; for log files only"]
    unread_by: Annotated[
        list[str], "groups with progress that have not read all of them", Rank.MAIN
    ]
    unknown_for: Annotated[list[str], OmitNull("groups of which that is unknown"), Rank.MAIN]


CleanedFileDone: Any = _new_row_type(
    "CleanedFileDone",
    [*CleanedFile.__annotations__.items(), ("applied", Annotated[bool, "whether it was deleted"])],
)
"""A file of the plan, or one that belonged to it, and whether it was deleted."""


class RestoreRow(NamedTuple):
    """A step of a restore."""

    part: Annotated[str, "part of the snapshot: commitlog, consumequeue ...; or the old store"]
    action: Annotated[str, "write, or move aside"]
    path: Annotated[str, "the target path"]
    files: Annotated[int | None, "number of files"]
    bytes: Annotated[int | None, "their total length, including holes"]
    applied: Annotated[bool | None, OmitNull("whether it was done; null in a plan")]


class RecoveredSettingRow(NamedTuple):
    """A recovered row of a damaged settings file."""

    file: Annotated[str, "topics.json, subscriptionGroup.json or delayOffset.json"]
    name: Annotated[str, "the topic, the group or the delay level"]
    new_value: Annotated[Any, "its settings as in the file's JSON; for a level the next offset"]
    source: Annotated[Evidence, "kind of evidence: file, bak, queues, offsets, retry, delivered"]
    evidence: Annotated[str, "the file, queue or message"]


RecoveredSettingDone: Any = _new_row_type(
    "RecoveredSettingDone", [*RecoveredSettingRow.__annotations__.items(), ("applied", _APPLIED)]
)
"""A recovered row and whether it was written."""
