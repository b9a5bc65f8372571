"""Rows about a store as a whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rmqctl.output.fields import Wide

if TYPE_CHECKING:
    from broker.embedded import EmbeddedBroker
    from storage.config import StoreConfig
    from storage.verify import Report


class InitRow(NamedTuple):
    """A store that was just made."""

    path: Annotated[str, "its folder"]
    commitlog_file_bytes: Annotated[int, "length of a commit log file"]
    consumequeue_file_bytes: Annotated[int, "length of a consume queue file"]
    max_hash_slot_num: Annotated[int, "hash slots of an index file"]
    max_index_num: Annotated[int, "entries of an index file"]
    message_index_enable: Annotated[bool, "whether keys are indexed"]


class LogInfo(NamedTuple):
    """The commit log of a store."""

    min_offset: int
    max_offset: int
    files: int
    bytes: int


class CheckpointInfo(NamedTuple):
    """Store times up to which log, queues and index are surely on the device; null: unknown."""

    physic_msg_timestamp: int | None
    logics_msg_timestamp: int | None
    index_msg_timestamp: int | None


class StoreInfo(NamedTuple):
    """What ``store info`` prints."""

    path: Annotated[str, "the folder"]
    version: Annotated[str, "who wrote it: rmqctl, 4.9 or 5.x"]
    clean_shutdown: Annotated[bool | None, "whether it was closed; null while somebody writes"]
    commitlog: Annotated[LogInfo, "offsets, files and bytes of the commit log"]
    queues: Annotated[int, "queues that have or had messages"]
    messages: Annotated[int, "messages that are stored"]
    index_files: Annotated[int, "files of the key index"]
    first_timestamp: Annotated[int | None, "store time of the oldest message"]
    last_timestamp: Annotated[int | None, "store time of the newest message"]
    checkpoint: Annotated[CheckpointInfo, "what the checkpoint file vouches for"]
    writers: Annotated[list[int], "process ids of rmqctl that have it open for writing"]
    java_locked: Annotated[bool, "whether a Java broker holds it"]
    not_covered: Annotated[list[str], Wide("parts that rmqctl does not read")]


class FindingRow(NamedTuple):
    """One finding of ``store fsck``."""

    code: Annotated[str, "what was found; stable"]
    severity: Annotated[str, "error, warning or info"]
    file: Annotated[str, "where, relative to the store"]
    position: Annotated[int | None, "byte in the file"]
    what: Annotated[str, "what was found, in words"]
    effect: Annotated[str, "what it means for users"]
    fix: Annotated[str, "what would mend it; empty if nothing has to be done"]


class CheckedInfo(NamedTuple):
    """How much was looked at."""

    records: int
    units: int
    index_entries: int
    offsets: int
    files: int


class FsckRow(NamedTuple):
    """What ``store fsck`` prints in JSON and YAML."""

    ok: Annotated[bool, "no finding of severity error"]
    checked: Annotated[CheckedInfo, "how much was looked at"]
    findings: Annotated[list[FindingRow], "see the fields of the table"]


def init_row(path: str, config: "StoreConfig") -> InitRow:
    """The row of a new store."""
    return InitRow(
        path,
        config.mapped_file_size_commit_log,
        config.mapped_file_size_consume_queue,
        config.max_hash_slot_num,
        config.max_index_num,
        config.message_index_enable,
    )


def fsck_row(report: "Report") -> FsckRow:
    """The report of a check."""
    checked = report.checked
    return FsckRow(
        report.ok,
        CheckedInfo(
            checked.records, checked.units, checked.index_entries, checked.offsets, checked.files
        ),
        [FindingRow(*finding) for finding in report.findings],
    )


def store_info(broker: "EmbeddedBroker") -> StoreInfo:
    """Everything that a look at a store tells; reads little, whatever its size."""
    from storage.checkpoint import StoreCheckpoint
    from storage.format.names import ABORT
    from storage.fs import FileSystem
    from storage.holders import find_holders
    from storage.index_reader import IndexReader

    view = broker.view
    holders = find_holders(view.root)
    busy = bool(holders.writers) or holders.java_locked
    bounds = {key: view.queue_bounds(*key) for key in view.queues()}
    filled = [key for key, (least, most) in bounds.items() if most > least]
    firsts = [view.store_timestamp(*key, bounds[key].min_offset) for key in filled]
    lasts = [view.store_timestamp(*key, bounds[key].max_offset - 1) for key in filled]
    start, end = view.log_min_offset(), view.log_max_offset()
    checkpoint = StoreCheckpoint(FileSystem(), view.root).read()
    return StoreInfo(
        path=str(view.root),
        version=view.version_hint,
        clean_shutdown=None if busy else not (view.root / ABORT).exists(),
        commitlog=LogInfo(start, end, _log_files(view.root), end - start),
        queues=len(bounds),
        messages=sum(most - least for least, most in bounds.values()),
        index_files=len(IndexReader(view.root, view.config).names()),
        first_timestamp=min(_known(firsts), default=None),
        last_timestamp=max(_known(lasts), default=None),
        checkpoint=CheckpointInfo(*[value or None for value in checkpoint[:3]]),
        writers=list(holders.writers),
        java_locked=holders.java_locked,
        not_covered=view.not_covered(),
    )


def _log_files(root: Path) -> int:
    from storage.format.names import COMMITLOG, parse_file_name

    try:
        names = [path.name for path in (root / COMMITLOG).iterdir()]
    except FileNotFoundError:
        return 0
    return sum(parse_file_name(name) is not None for name in names)


def _known(values: list[Any]) -> list[int]:
    return [value for value in values if value is not None]
