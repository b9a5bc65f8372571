"""The rows of ``store info`` and ``store fsck``."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull, Rank

if TYPE_CHECKING:
    from storage.info import KnownTimes
    from storage.readonly import StoreView
    from storage.tools.fsck import Report


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


def info(view: "StoreView", known: "KnownTimes | None" = None) -> StoreInfoRow:
    """Facts about a store and the processes that have it open. Reads no messages.

    ``known`` keeps what :func:`storage.info.store_info` has read for the next call.
    """
    from storage.info import store_info

    facts = store_info(view, known).as_dict()
    return StoreInfoRow(**{**facts, "writers": list(facts["writers"])})


def check_row(report: "Report") -> FsckRow:
    """The result of a check as one row."""
    facts = report.as_dict()
    return FsckRow(report.ok, facts["checked"], finding_rows(report), report.left_out or None)


def finding_rows(report: "Report") -> list[FindingRow]:
    """The findings of a check, a row each."""
    return [FindingRow(*finding) for finding in report.findings]
