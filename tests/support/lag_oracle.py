"""The lag report by a plain loop over records: slow, and too simple to be wrong."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from storage.configs.consumer_offsets import split_topic_at_group
from storage.format.java_hash import tags_code
from storage.format.message import retry_topic
from storage.readonly import StoreView

MINUTE_MS = 60_000
HOUR_MS = 3_600_000

Counts = dict[tuple[Any, ...], list[int]]


def counted(root: Path) -> dict[str, Counts]:
    """Messages and bytes of lag, by (group, topic, x): x is nothing, a minute, an hour, a tag."""
    found: dict[str, Counts] = {
        name: defaultdict(lambda: [0, 0]) for name in ("groups", "minutes", "hours", "tags")
    }
    with StoreView.open(root) as view:
        for key, offsets in view.consumer_offsets().items():
            split = split_topic_at_group(key)
            assert split is not None
            topic, group = split
            if topic == retry_topic(group) or group.startswith("CID_RMQ_SYS_"):
                continue
            for queue_id, committed in offsets.items():
                low, high = view.queue_bounds(topic, queue_id)
                if committed > high:
                    continue
                for offset in range(max(low, committed), high):
                    _count(view, found, group, topic, queue_id, offset)
    return found


def _count(
    view: StoreView, found: dict[str, Counts], group: str, topic: str, queue_id: int, offset: int
) -> None:
    unit = view.unit(topic, queue_id, offset)
    stored = view.store_timestamp(topic, queue_id, offset)
    message = None if unit is None else view.message_of_unit(topic, queue_id, offset, unit)
    size = 0 if unit is None else unit[1]
    tag = None if message is None else message.tags
    if tag is not None and unit is not None and tags_code(tag) != unit[2]:
        tag = None
    minute = None if stored is None else stored // MINUTE_MS * MINUTE_MS
    hour = None if stored is None else stored // HOUR_MS * HOUR_MS
    for name, key in (
        ("groups", (group, topic)),
        ("minutes", (group, topic, minute)),
        ("hours", (group, topic, hour)),
        ("tags", (group, topic, tag)),
    ):
        found[name][key][0] += 1
        found[name][key][1] += size
