"""The rows of the ``store`` commands."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.tools.fsck import Report


class InitRow(NamedTuple):
    """A store that was just made."""

    path: Annotated[str, "its folder"]
    commitlog_file_bytes: Annotated[int, "length of a commit log file"]
    consumequeue_file_bytes: Annotated[int, "length of a consume queue file"]
    index_file_bytes: Annotated[int, "length of an index file"]
    broker_conf: Annotated[list[str], "settings of a Java broker that is to open it"]


class StoreInfoRow(NamedTuple):
    """What a store is and holds."""

    path: Annotated[str, "its folder"]
    version: Annotated[str, "who wrote it, as far as can be told: rmqctl, 4.9 or 5.x"]
    clean_shutdown: Annotated[bool, "whether the last writer closed it; false while one writes"]
    commitlog: Annotated[dict[str, Any], "min_offset, max_offset, files and bytes of the log"]
    queues: Annotated[int, "queues that have or had messages"]
    messages: Annotated[int, "messages that can be read"]
    index_files: Annotated[int, "files of the index by key"]
    first_timestamp: Annotated[int | None, "when the oldest message was stored"]
    last_timestamp: Annotated[int | None, "when the newest message was stored"]
    checkpoint: Annotated[
        dict[str, Any] | None, "up to when log, queues and index are on the device"
    ]
    writers: Annotated[list[int], "processes of rmqctl that have it open for writing"]
    java_locked: Annotated[bool, "whether a Java broker has it open"]


class FindingRow(NamedTuple):
    """One finding of a check."""

    code: Annotated[str, "what was found; a stable name"]
    severity: Annotated[str, "error, warning or info"]
    file: Annotated[str, "the file, below the store's folder"]
    position: Annotated[int | None, "the byte in the file"]
    what: Annotated[str, "what was found, in words"]
    effect: Annotated[str, "what it means for users"]
    fix: Annotated[str, "what would mend it; empty if nothing has to be done"]


class FsckRow(NamedTuple):
    """The outcome of a check."""

    ok: Annotated[bool, "whether there is no finding of severity error"]
    checked: Annotated[dict[str, int], "records, units, index_entries, offsets, files looked at"]
    findings: Annotated[list[FindingRow], "see the fields of the table"]
    left_out: Annotated[int | None, OmitNull("further findings, which are not listed")]


def init_row(path: str, config: "StoreConfig") -> InitRow:
    """The row of a new store."""
    return InitRow(
        path,
        config.mapped_file_size_commit_log,
        config.mapped_file_size_consume_queue,
        config.index_file_size,
        [
            f"storePathRootDir={path}",
            f"storePathCommitLog={path}/commitlog",
            f"mappedFileSizeCommitLog={config.mapped_file_size_commit_log}",
            f"mappedFileSizeConsumeQueue={config.mapped_file_size_consume_queue}",
            f"maxHashSlotNum={config.max_hash_slot_num}",
            f"maxIndexNum={config.max_index_num}",
        ],
    )


def fsck_row(report: "Report") -> FsckRow:
    """The row of a check."""
    facts = report.as_dict()
    findings = [FindingRow(*finding) for finding in report.findings]
    return FsckRow(report.ok, facts["checked"], findings, report.left_out or None)
