"""What the queues of bytes have in common: a batch is only a loop for them."""

from __future__ import annotations

from benchmarks.workload import HOST, IDS, TAG, TOPIC, Column
from storage.format.encode import MessageInner
from storage.store import now_ms

from .envelope import envelope


def envelopes(column: Column) -> list[bytes]:
    """Pack a batch; ids and properties are made here, as in ours."""
    now = now_ms()
    ids = IDS.take(len(column.bodies), now)
    return [
        envelope(
            MessageInner(
                TOPIC,
                queue_id,
                body,
                b"WAIT\1true\2TAGS\1TagA\2UNIQ_KEY\1%b\2KEYS\1%b" % (unique_id, key.encode()),
                now,
                HOST,
                HOST,
                tags=TAG,
            )
        )
        for body, queue_id, key, unique_id in zip(
            column.bodies, column.queue_ids, column.keys, ids, strict=True
        )
    ]
