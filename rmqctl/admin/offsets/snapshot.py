"""What a plan of moves is made from, read once: offsets, queues, topics."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from broker.offset.offset_move import progress_now
from rmqctl.admin.changes import JavaCheck, Warn, no_warning
from storage.coordination.forks import made_once

from .queues import group_names

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.configs.progress_table import ProgressTable
    from storage.readonly import StoreView


class OffsetSnapshot:
    """The store as a plan sees it. Read it before anything else that the plan needs."""

    def __init__(
        self,
        view: "StoreView",
        broker: "Broker",
        progress: "ProgressTable",
        now_ms: int,
        java_check: JavaCheck | None = None,
    ) -> None:
        self.view = view
        self.broker = broker
        self.progress = progress
        self.now_ms = now_ms
        self.java_check = java_check

    @classmethod
    def read(
        cls,
        view: "StoreView",
        broker: "Broker",
        *,
        now_ms: int | None = None,
        warn: Warn = no_warning,
        java_check: JavaCheck | None = None,
    ) -> "OffsetSnapshot":
        """Read the offsets that hold now, pending commits included. Raises CorruptFileError."""
        progress = progress_now(view.root)
        doubt = view.progress_doubt()
        if doubt is not None:
            warn(doubt)
        now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        return cls(view, broker, progress, now, java_check)

    @property
    def root(self) -> Path:
        """The folder of the store."""
        return self.view.root

    @made_once
    def groups(self) -> set[str]:
        """All groups that have an offset anywhere."""
        return group_names(self.progress)
