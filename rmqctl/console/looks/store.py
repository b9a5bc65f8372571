"""Looks at the store itself: facts, disk, and what decides about deletions."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from rmqctl.admin import store
from rmqctl.admin.broker.status import broker_status
from rmqctl.admin.broker.status_rows import BrokerStatus
from rmqctl.admin.store.check_rows import FindingRow, StoreInfoRow
from rmqctl.admin.store.cleaning_levers import CleaningLevers
from rmqctl.admin.store.disk_rows import DiskUseRow
from storage.counted import counted

from .look import Look, Place, Progress, Source

_TIMES: Final = "times of messages"
_FIGURES: Final = "figures of topics"
FURTHER: Final = "further findings are not listed"


def _info(source: Source, place: Place) -> Iterable[Any]:
    return [store.info(source.view, source.memory.setdefault(_TIMES, {}))]


def _levers(source: Source, place: Place) -> Iterable[Any]:
    return [store.levers(source.view, now_ms=source.now_ms)]


def _disk(source: Source, place: Place) -> Iterable[Any]:
    use = store.disk_use(
        source.view,
        source.broker,
        now_ms=source.now_ms,
        warn=_noticed(source),
        known=source.memory.setdefault(_FIGURES, {}),
        on_progress=lambda done, total: source.advance(Progress(done, total, "topics")),
    )
    yield from use.by_topic()
    for folder in use.files.unreadable:
        source.notice(f"{folder} cannot be read; what is in it is not counted")


def _noticed(source: Source) -> Callable[[str], None]:
    def notice(sentence: str) -> None:
        source.notice(sentence)

    return notice


def phase_of(
    advance: Callable[[Progress], object],
) -> Callable[[str, int | None], Callable[[int], None]]:
    """What a check tells how far it is; ``advance`` may end the check by an exception."""

    def phase(label: str, total: int | None) -> Callable[[int], None]:
        done = 0

        def tick(count: int) -> None:
            nonlocal done
            done += count
            advance(Progress(done, total or done, "bytes"))

        return tick

    return phase


def _findings(source: Source, place: Place) -> Iterable[Any]:
    check = store.check(source.view, source.broker)
    report = check.run(phase_of(source.advance))
    seen = report.checked
    source.notice(
        f"checked {counted(seen.records, 'record')}, {counted(seen.units, 'unit')}, "
        f"{counted(seen.index_entries, 'index entry', 'index entries')}, "
        f"{counted(seen.offsets, 'offset')}, {counted(seen.files, 'file')}: "
        f"{counted(report.errors, 'error')}, {counted(report.warnings, 'warning')}"
    )
    if report.left_out:
        source.notice(f"{report.left_out:,} {FURTHER}")
    return store.finding_rows(report)


def _status(source: Source, place: Place) -> Iterable[Any]:
    return [broker_status(source.broker)]


INFO: Final = Look("info", StoreInfoRow, _info, lambda place: ("store", "info"), ("path",))
STATUS: Final = Look("status", BrokerStatus, _status, lambda place: ("broker", "status"), ("name",))
DISK: Final = Look(
    "disk",
    DiskUseRow,
    _disk,
    lambda place: ("store", "du"),
    ("kind", "topic"),
    ("-disk_bytes",),
    walk=True,
    opens=lambda row: None if row.topic is None else Place("topic", (row.topic,)),
    named=("topic", "kind"),
)
FINDINGS: Final = Look(
    "findings",
    FindingRow,
    _findings,
    lambda place: ("store", "fsck"),
    ("code", "file", "position", "what"),
    walk=True,
)
LEVERS: Final = Look(
    "levers", CleaningLevers, _levers, lambda place: ("store", "clean", "-n"), ("delete_when",)
)
