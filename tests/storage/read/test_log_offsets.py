"""Messages on both sides of a gap in a queue are found by their log offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqctl.admin.next_deletions import within
from storage.read.record_place import place_of_record
from storage.readonly import StoreView
from tests.support.hand_made import TINY, HandMade

LONG = TINY.with_(mapped_file_size_consume_queue=2000)
COUNT, MISSING = 20, 10


@pytest.fixture
def store(tmp_path: Path) -> HandMade:
    """Message 10 is nowhere, those after 4 have no units: they are found in the log."""
    made = HandMade(LONG, clean=False)
    for offset in range(COUNT):
        if offset != MISSING:
            made.put(queue_offset=offset, unit=offset < 5)
    made.write(tmp_path)
    return made


def test_each_record_has_its_place(tmp_path: Path, store: HandMade) -> None:
    with StoreView.open(tmp_path) as view:
        for message in store.messages:
            found = place_of_record(view, message.commitlog_offset)
            assert found is not None
            assert (found.topic, found.queue_id, found.queue_offset) == (
                "T",
                0,
                message.queue_offset,
            )


def test_the_messages_of_a_part_of_the_log_are_named(tmp_path: Path, store: HandMade) -> None:
    third, last = store.messages[3], store.messages[-1]
    with StoreView.open(tmp_path) as view:
        found = list(within(view, third.commitlog_offset, last.commitlog_offset))
    assert found == [("T", 0, third.queue_offset, last.queue_offset)]
