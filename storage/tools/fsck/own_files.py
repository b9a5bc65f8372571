"""Checking the files that rmqctl keeps beside the broker's: each unreadable one is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from storage.coordination.shared_state import SHARED_STATE_NAME, SharedState
from storage.coordination.shared_state_check import contradiction
from storage.files.fs import FileSystem
from storage.format.names import OURS
from storage.tools.config_recovery.own_files import BrokerCheck, damaged_own_files

from .findings import Checked, Code, Finding, Severity

if TYPE_CHECKING:
    from storage.readonly import StoreView


def _wrong_words(view: StoreView) -> str | None:
    """Why the words of the shared state cannot be true; None if they can, or do not count."""
    try:
        shared = SharedState(FileSystem(), view.root, writable=False)
    except OSError:
        return None
    try:
        size = view.config.mapped_file_size_commit_log
        if shared.stale(log_file_size=size) is not None:
            return None
        return contradiction(shared, view.root, size)
    finally:
        shared.close()


def check_shared_state(view: StoreView, emit: Callable[[Finding], None]) -> None:
    """Hold the words of the shared state against each other and the files, which must be whole."""
    wrong = _wrong_words(view)
    if wrong is not None:
        effect = "readers and writers do without it, and the next writer makes it again when no"
        effect += " other process has the store open"
        file = f"{OURS}/{SHARED_STATE_NAME}"
        emit(Finding(Code.SHARED_STATE_WRONG, Severity.WARNING, file, None, wrong, effect, ""))


def check_own_files(
    view: StoreView,
    emit: Callable[[Finding], None],
    checked: Checked,
    check_broker: BrokerCheck | None = None,
) -> None:
    """Read each file below ``rmqctl`` as its readers do."""
    for damage in damaged_own_files(view, check_broker):
        checked.files += 1
        if damage.torn:
            code, severity, fix = Code.OWN_FILE_TORN, Severity.INFO, ""
            effect = "none: the line was never finished, and readers pass over it"
        else:
            code, severity, fix = Code.OWN_FILE_DAMAGED, Severity.ERROR, "rmqctl store repair"
            effect = "writers refuse the store, or go on without its content"
        emit(Finding(code, severity, damage.file, damage.position, damage.what, effect, fix))
