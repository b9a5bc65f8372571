"""What is told when queues, index or checkpoint know of messages behind the log's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.format.names import ABORT, COMMITLOG, file_name

from .findings import Code, Finding, Severity

if TYPE_CHECKING:
    from storage.readonly import StoreView


def judge_tail(
    view: StoreView,
    log_end: int,
    units: list[Finding],
    keys: list[Finding],
    of_checkpoint: list[Finding],
    *,
    told: bool,
    of_log: bool,
) -> list[Finding]:
    """Findings of units, keys and checkpoint; one if together they say that the log is too short.

    ``told``: a finding names the log's end already, and these are what follows from it. ``of_log``:
    the log is one of the checked parts; else all are given as they are.
    """
    if not of_log:
        return [*units, *keys, *of_checkpoint]
    ahead = [f for f in of_checkpoint if f.code is Code.CHECKPOINT_AHEAD and not f.fix]
    others = [finding for finding in of_checkpoint if finding not in ahead]
    if told:
        return others
    if not keys and len(units) + bool(ahead) < 2:
        return [*units, *keys, *of_checkpoint]
    closed = not (view.root / ABORT).exists()
    position = log_end % view.config.mapped_file_size_commit_log
    path = f"{COMMITLOG}/{file_name(log_end - position)}"
    missing = not (view.root / path).exists()
    known = [f"queues know of messages behind the last record ({len(units)} places)"] * bool(units)
    known += [f"in the index {finding.what}" for finding in keys]
    what = "; ".join(known + [finding.what for finding in ahead])
    lost = Finding(
        Code.LOG_FILE_MISSING if missing else Code.LOG_TAIL_LOST,
        Severity.ERROR if closed else Severity.WARNING,
        path,
        position,
        f"the file is missing: {what}" if missing else what,
        "these messages are lost; recovery cuts their units and keys off",
        "restore the file from a copy, or rmqctl store repair",
    )
    return [lost, *others]
