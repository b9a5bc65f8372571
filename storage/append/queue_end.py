"""Correcting the end of a queue in the shared state, where files and log have another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.coordination.shared_state import Word
from storage.files.read_files import StoreFiles
from storage.read.scan_bounds import ScanBounds

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.coordination.shared_state import SharedState


def mend_queue(shared: SharedState, topic: str, queue_id: int, config: StoreConfig) -> bool:
    """Set a queue's end to that of files and log; False if they lack units that the log has, which
    is more than a wrong word. Needs the write lock; nothing is half done."""
    slot = shared.slot(topic, queue_id)
    bounds = ScanBounds(StoreFiles(shared.path.parent.parent, config), config, doubtful=True)
    try:
        end = bounds.next_offset(topic, queue_id)
        whole = not bounds.rebuilt.next_offset(topic, queue_id)
        whole = whole and bounds.log_end() == shared.words[Word.LOG_END]
    finally:
        bounds.close()
    if slot is None or not whole:
        return False
    shared.set_next_offset(slot, end)
    shared.set_synced_offset(slot, 0)
    return True
