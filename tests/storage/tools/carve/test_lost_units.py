"""What the log has of a queue whose last files were cut short or are gone."""

import pytest

from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.carve.lost_units import unreached
from tests.support.hand_made import TINY
from tests.support.samples import Sample

UNITS = 50
"""In one file of a queue."""
CONFIG = TINY.with_(mapped_file_size_commit_log=65536, mapped_file_size_consume_queue=UNITS * 20)
QUEUE = ("T", 0)


def store_of(root, count):
    """A closed store with so many messages in one queue, whose shared state is not trusted; gives
    the queue's files."""
    MessageStore.create(root, CONFIG)
    with MessageStore.open(root) as store:
        for number in range(count):
            store.put_message(Sample(f"m{number}", *QUEUE).inner())
        store.put_message(Sample("other", "Other").inner())  # what follows it, readers make again
    (root / "rmqctl" / "shared").unlink()
    return sorted((root / "consumequeue" / "T" / "0").iterdir())


def left_behind(root):
    with StoreView.open(root) as view:
        end = view.max_offset_in_queue(*QUEUE)
        found = unreached(view, [QUEUE], view.log_max_offset()).get(QUEUE, [])
    return end, [message.queue_offset for message in found]


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_messages_of_last_files_that_are_gone_are_told(tmp_path, gone):
    root = tmp_path / "s"
    files = store_of(root, 3 * UNITS - 10)
    assert len(files) == 3
    for path in files[-gone:]:
        path.unlink()
    end = (3 - gone) * UNITS
    assert left_behind(root) == (end, list(range(end, 3 * UNITS - 10)))


def test_messages_of_a_last_file_that_was_cut_short_are_told(tmp_path):
    root = tmp_path / "s"
    last = store_of(root, 3 * UNITS - 10)[-1]
    with last.open("r+b") as file:
        file.truncate(7 * 20 + 3)
    end = 2 * UNITS + 7
    assert left_behind(root) == (end, list(range(end, 3 * UNITS - 10)))


@pytest.mark.parametrize("count", [UNITS - 1, UNITS, UNITS + 1])
def test_nothing_is_behind_the_end_of_a_whole_queue(tmp_path, count):
    root = tmp_path / "s"
    store_of(root, count)
    assert left_behind(root) == (count, [])
