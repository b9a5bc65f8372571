"""Messages after a gap in a level's queue are counted: delivery passes over the gap."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from analytics.lag.delayed import levels, waiting, waiting_counts
from storage.configs.delay_offsets import save_delay_offsets
from storage.format.message import (
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    SCHEDULE_TOPIC,
    retry_topic,
)
from storage.format.names import file_name
from storage.readonly import StoreView
from tests.support.hand_made import TINY, HandMade

TARGET = {PROPERTY_REAL_TOPIC: retry_topic("g"), PROPERTY_REAL_QUEUE_ID: "0"}


def without_file(root: Path, first: int) -> Path:
    """Fifteen retries wait in level 3; the queue has lost the file that begins at an offset."""
    store = HandMade(TINY)
    for _ in range(15):
        store.put(SCHEDULE_TOPIC, 2, properties=TARGET)
    store.write(root)
    (root / "config").mkdir()
    save_delay_offsets(root, {3: 0})
    (root / "consumequeue" / SCHEDULE_TOPIC / "2" / file_name(first * 20)).unlink()
    return root


def test_messages_behind_a_missing_queue_file_wait(tmp_path: Path) -> None:
    with StoreView.open(without_file(tmp_path, 5)) as view:
        (level,) = levels(view)
        found = [one.message.queue_offset for one in waiting(view, level)]
        counts = waiting_counts(view)
    assert found == [*range(5), *range(10, 15)]
    assert counts == {3: Counter({retry_topic("g"): 10})}
