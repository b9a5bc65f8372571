"""Samples written by our store in every way that it can be written."""

from __future__ import annotations

from collections.abc import Sequence

from storage.format.encode import prepare
from storage.format.encode_column import prepare_column
from storage.format.host import pack_host
from storage.results import PutMessageStatus
from storage.store import MessageStore
from tests.interop.samples import Sample

LINES = "Lines"
"""Topic that `write_lines` writes to."""


def write(store: MessageStore, samples: Sequence[Sample]) -> None:
    """Put samples one by one, in batches that may be split, and in batches that may not."""
    start = 0
    turn = 0
    while start < len(samples):
        count = (1, 3, 1, 50, 5)[turn % 5]
        messages = [sample.inner() for sample in samples[start : start + count]]
        result = store.put(prepare(messages), whole=count == 5)
        assert result.status is PutMessageStatus.PUT_OK, result
        start += count
        turn += 1


def write_lines(store: MessageStore, count: int) -> None:
    """Put messages without a Python object for each, over three queues of `LINES`."""
    records = prepare_column(
        LINES,
        [i % 3 for i in range(count)],
        [b"line %d \xf0\x9f\x9a\x80" % i for i in range(count)],
        born_timestamp=1_700_000_000_000,
        born_host=pack_host("127.0.0.1:0"),
        store_host=pack_host("127.0.0.1:10911"),
        properties=b"TAGS\x01Line\x02CLUSTER\x01DefaultCluster",
        tags="Line",
        unique_ids=[b"%032X" % i for i in range(count)],
        keys=["" if i % 4 == 0 else f"line-{i} odd" for i in range(count)],
    )
    assert store.put(records).status is PutMessageStatus.PUT_OK
