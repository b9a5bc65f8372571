"""The rows of the ``store`` commands."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull, Rank

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.tools.fsck import Report


class InitRow(NamedTuple):
    """A store that was created."""

    path: Annotated[str, "its folder"]
    commitlog_file_bytes: Annotated[int, "length of a commit log file"]
    consumequeue_file_bytes: Annotated[int, "length of a consume queue file"]
    index_file_bytes: Annotated[int, "length of an index file"]
    broker_conf: Annotated[list[str], "lines of broker.conf for a Java broker to open it"]


class StoreInfoRow(NamedTuple):
    """Facts about a store."""

    path: Annotated[str, "its folder"]
    version: Annotated[str, "writer of the store, as far as known: rmqctl, 4.9 or 5.x"]
    clean_shutdown: Annotated[
        bool, "whether the last writer closed it; false while a writer has it open"
    ]
    commitlog: Annotated[dict[str, Any], "min_offset, max_offset, files and bytes of the log"]
    queues: Annotated[int, "queues that have or had messages"]
    messages: Annotated[int, "readable messages"]
    index_files: Annotated[int, "files of the key index"]
    first_timestamp: Annotated[int | None, "when the oldest message was stored"]
    last_timestamp: Annotated[int | None, "when the newest message was stored"]
    checkpoint: Annotated[
        dict[str, Any] | None, "times up to which log, queues and index are on the device"
    ]
    writers: Annotated[list[int], "rmqctl processes that have the store open for writing"]
    java_locked: Annotated[bool, "whether a Java broker has the store open"]


class FindingRow(NamedTuple):
    """One finding of a check."""

    code: Annotated[str, "code of the finding, a stable name"]
    severity: Annotated[str, "error, warning or info"]
    file: Annotated[str, "the file, below the store's folder", Rank.MAIN]
    position: Annotated[int | None, "position of the byte in the file"]
    what: Annotated[str, "the finding, in words", Rank.KEY]
    effect: Annotated[str, "its effect for users"]
    fix: Annotated[str, "the remedy; empty if none is needed", Rank.KEY]


class FsckRow(NamedTuple):
    """The result of a check."""

    ok: Annotated[bool, "whether no finding has severity error"]
    checked: Annotated[
        dict[str, int], "numbers of checked records, units, index_entries, offsets, files"
    ]
    findings: Annotated[list[FindingRow], "the findings, with the fields of the table"]
    left_out: Annotated[int | None, OmitNull("number of findings that are not listed")]


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
