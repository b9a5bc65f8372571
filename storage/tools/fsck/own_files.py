"""Checking the files that rmqctl keeps beside the broker's: each unreadable one is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from storage.tools.config_recovery.own_files import BrokerCheck, damaged_own_files

from .findings import Checked, Code, Finding, Severity

if TYPE_CHECKING:
    from storage.readonly import StoreView


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
