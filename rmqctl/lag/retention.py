"""How the call's store deletes old files: its settings and how full its disk is."""

import shutil
from typing import TYPE_CHECKING

from analytics.retention import HOUR_MS, Rules
from storage.layout import was_created_here

if TYPE_CHECKING:
    from storage.readonly import StoreView


def rules_of(view: "StoreView", reserved_ms: int | None = None) -> Rules:
    """RocketMQ's defaults, or what the store's settings say; the disk is the one it lies on.

    A store that rmqctl did not make belongs to a broker that deletes by force on a full disk, as
    RocketMQ does unless told otherwise; rmqctl itself refuses writes instead.
    """
    config = view.config
    if reserved_ms is None:
        reserved_ms = config.file_reserved_time_hours * HOUR_MS
    usage = shutil.disk_usage(view.root)
    used = 1 - usage.free / usage.total
    forced = config.clean_file_forcibly_enable or not was_created_here(view.root)
    return Rules(
        reserved_ms,
        frozenset(int(hour) for hour in config.delete_when.split(";") if hour.strip()),
        any_hour=used * 100 > config.disk_max_used_space_ratio,
        at_once=forced and used > config.disk_space_clean_forcibly_ratio,
    )
