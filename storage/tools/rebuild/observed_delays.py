"""How long the store's delayed messages wait, according to their units.

A unit of a delayed message holds its time of delivery, which depends on the broker's table of delay
levels; the store does not have it (messageDelayLevel is a setting of the broker).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.message import SCHEDULE_TOPIC
from storage.read.store_times import gather_store_timestamps

from .queue_build import OldUnits

if TYPE_CHECKING:
    from storage.files.read_files import StoreFiles
    from storage.readonly import StoreView

_LOOKED_AT: Final = 1024


def seen_delays(view: StoreView, files: StoreFiles) -> dict[int, int]:
    """Delay in ms by level, of levels in which most of the newest whole units agree."""
    found = {}
    for topic, queue_id in files.queue_folders():
        if topic != SCHEDULE_TOPIC:
            continue
        row = files.queue(topic, queue_id)
        assert row is not None  # it has a folder
        old = OldUnits(row)
        counts: Counter[int] = Counter()
        for file in reversed(old.files[-2:]):
            units = old.read(file // CQ_STORE_UNIT_SIZE, old.per_file)
            units = units[units["size"] > 0][-_LOOKED_AT:]
            places = units["offset"].astype(np.int64)
            times = gather_store_timestamps(files.log, places, units["size"].astype(np.int64))
            delays = units["tags_code"].astype(np.int64) - times
            counts.update(delays[(times >= 0) & (delays >= 0)].tolist())
        if counts:
            delay, count = counts.most_common(1)[0]
            if count * 2 > counts.total():
                found[queue_id + 1] = delay
    return found
