"""Findings where queues, index or checkpoint refer to messages past the log's end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.format.names import ABORT, COMMITLOG, file_name

from .findings import Code, Finding, Severity
from .reported import Reported

if TYPE_CHECKING:
    from storage.read.log_presence import MissingLog
    from storage.readonly import StoreView

_BRING_BACK: Final = (
    "bring the files back from the folder that storePathCommitLog names or from a copy, "
    "or give them up with rmqctl store repair"
)
_REFUSED: Final = "brokers refuse to open the file"


def judge_tail(
    view: StoreView,
    log_end: int,
    units: list[Finding],
    keys: list[Finding],
    of_checkpoint: list[Finding],
    *,
    missing: MissingLog | None,
    reported: Reported,
    of_log: bool,
) -> list[Finding]:
    """Findings of units, keys and checkpoint; one if together they show that the log is too short.

    If the log's end is ``reported`` already, these are its effects. ``missing`` are files that the
    log lacks, reported in any case. ``of_log``: the log is one of the checked parts; else all are
    given as they are.
    """
    if not of_log:
        return [*units, *keys, *of_checkpoint]
    ahead = [f for f in of_checkpoint if f.code is Code.CHECKPOINT_AHEAD and not f.fix]
    others = [finding for finding in of_checkpoint if finding not in ahead]
    known = [f"queues know of messages after the last record ({len(units)} places)"] * bool(units)
    known += [f"in the index {finding.what}" for finding in keys]
    what = "; ".join(known + [finding.what for finding in ahead])
    if missing is not None:
        return [missing_files(view, missing, what, reported), *others]
    if reported.tail:
        return others
    if not keys and len(units) + bool(ahead) < 2:
        return [*units, *keys, *of_checkpoint]
    closed = not (view.root / ABORT).exists()
    position = log_end % view.config.mapped_file_size_commit_log
    path = f"{COMMITLOG}/{file_name(log_end - position)}"
    flaw, there = _flaw(view, path, reported), (view.root / path).exists()
    lost = Finding(
        Code.LOG_TAIL_LOST if there else Code.LOG_FILE_MISSING,
        Severity.ERROR if closed else Severity.WARNING,
        path,
        position,
        f"{flaw}: {what}" if flaw else what,
        "these messages are lost; "
        + (_REFUSED if flaw and there else "recovery cuts their units and keys off"),
        "restore the file from a copy, or rmqctl store repair",
    )
    return [lost, *others]


def missing_files(view: StoreView, missing: MissingLog, what: str, reported: Reported) -> Finding:
    """Report that files at the log's end are missing; ``what`` is known of them besides."""
    path = f"{COMMITLOG}/{file_name(missing.start)}"
    flaw = _flaw(view, path, reported)
    known = what or f"queues know of messages up to byte {missing.known_end} of the log"
    return Finding(
        Code.LOG_FILE_MISSING,
        Severity.ERROR,
        path,
        0,
        f"{flaw}: {known}",
        "these messages are not shown; opening the store for writing is refused until the files "
        "are back, or given up",
        _BRING_BACK,
    )


def _flaw(view: StoreView, path: str, reported: Reported) -> str:
    """The problem of the file itself, "" if its length is right; a wrong length is noted in
    ``reported``."""
    file = view.root / path
    length = file.stat().st_size if file.is_file() else None
    if length is None:
        return "the file is missing"
    size = view.config.mapped_file_size_commit_log
    if length >= size:
        return ""
    reported.files.add(path)
    if not length:
        return "the file has 0 bytes"
    return f"the file has {length} bytes, those of this store {size}"
