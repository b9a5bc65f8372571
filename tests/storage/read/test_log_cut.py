"""The bounds of queues at one moment, while others write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.coordination.shared_state import SharedState
from storage.files.fs import FileSystem
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.format.names import file_name
from storage.read.log_cut import LogCut
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.busy_puppet import ROOMY, busy_puppet
from tests.support.hand_made import START_MS, TINY
from tests.support.samples import Sample

QUEUES = [("T", 0), ("T", 1), ("U", 0)]
CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=200)
"""Ten units a file of a queue."""


class Writer:
    """Puts messages into all queues in turns."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = MessageStore.open(root, clock=lambda: START_MS)
        self.count = 0

    def put(self, count: int) -> None:
        for _ in range(count):
            topic, queue_id = QUEUES[self.count % len(QUEUES)]
            self.store.put_message(Sample(f"m{self.count}", topic, queue_id).inner())
            self.count += 1

    def damage(self, topic: str, queue_id: int, offset: int, unit: tuple[int, int, int]) -> None:
        position = offset * CQ_STORE_UNIT_SIZE
        within = position % CONFIG.mapped_file_size_consume_queue
        path = self.root / "consumequeue" / topic / str(queue_id) / file_name(position - within)
        with path.open("r+b") as file:
            file.seek(within)
            file.write(CQ_STORE_UNIT.pack(*unit))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    MessageStore.create(tmp_path / "s", CONFIG)
    writer = Writer(tmp_path / "s")
    yield writer
    writer.store.close()


@pytest.fixture
def view(writer: Writer) -> Iterator[StoreView]:
    writer.put(24)
    with StoreView.open(writer.root) as view:
        yield view


@pytest.mark.parametrize("later", [0, 1, 2, 3, 30, 33, 300])
def test_messages_stored_later_are_past_the_bounds(
    writer: Writer, view: StoreView, later: int
) -> None:
    cut = LogCut(view)
    end = view.log_max_offset()
    writer.put(later)
    assert cut.log_end == end
    assert [cut.queue_bounds(*queue) for queue in QUEUES] == [(0, 8)] * 3
    assert cut.each_queue_bounds(QUEUES, [-1, 8, 5]) == [(0, 8)] * 3
    assert sum(view.queue_bounds(*queue).max_offset for queue in QUEUES) == 24 + later


def test_a_queue_that_begins_later_is_empty(writer: Writer, view: StoreView) -> None:
    cut = LogCut(view)
    writer.store.put_message(Sample("new", "New", 0).inner())
    assert view.queue_bounds("New", 0) == (0, 1)
    assert cut.queue_bounds("New", 0) == (0, 0)
    assert cut.queue_bounds("Unknown", 0) == (0, 0)
    assert cut.each_queue_bounds([("New", 0), ("Unknown", 0)], [-1, -1]) == [(0, 0)] * 2


@pytest.mark.parametrize(
    "unit", [(1 << 40, 100, 0), (-5, 100, 0), (0, 0, 0), (70, -1, 0), (0, 0x7FFFFFFF, 0)]
)
def test_damaged_units_at_the_end_stay_within_the_bounds(
    writer: Writer, view: StoreView, unit: tuple[int, int, int]
) -> None:
    assert [view.queue_bounds(*queue) for queue in QUEUES] == [(0, 8)] * 3
    for offset in (6, 7):
        writer.damage("T", 0, offset, unit)
    cut = LogCut(view)
    assert cut.queue_bounds("T", 0) == (0, 8)
    writer.put(60)
    assert cut.queue_bounds("T", 0) == (0, 8)
    writer.damage("T", 0, 8, unit)
    assert cut.queue_bounds("T", 0) == (0, 9)  # which of the two times it is of is not known
    writer.damage("T", 0, 27, unit)  # the last one
    assert cut.queue_bounds("T", 0) == (0, 9)


def test_a_missing_file_counts_as_damaged(writer: Writer, view: StoreView) -> None:
    cut = LogCut(view)
    writer.put(90)
    assert view.queue_bounds("T", 0) == (0, 38)
    (writer.root / "consumequeue" / "T" / "0" / file_name(400)).unlink()
    assert cut.queue_bounds("T", 0) == (0, 8)


def test_a_store_without_shared_state_ends_where_its_files_do(
    writer: Writer, view: StoreView
) -> None:
    writer.store.close()
    SharedState(FileSystem(), writer.root, writable=True).path.unlink()
    with StoreView.open(writer.root) as files:
        assert not files.has_shared_state
        assert [LogCut(files).queue_bounds(*queue) for queue in QUEUES] == [(0, 8)] * 3


@pytest.mark.slow
def test_beside_a_real_writer_the_cut_is_exact(tmp_path: Path) -> None:
    """A message is within the bounds exactly if its record lies before the cut."""
    root = tmp_path / "store"
    MessageStore.create(root, ROOMY)
    moved = 0
    with busy_puppet() as puppet:
        puppet.call("open", root=str(root))
        puppet.call("begin")
        with StoreView.open(root) as view:
            (queue,) = view.queues()
            for _ in range(2_000):
                cut = LogCut(view)
                low, high = cut.queue_bounds(*queue)
                last = view.unit(*queue, high - 1)
                assert last is not None
                assert low == 0
                assert last[0] + last[1] == cut.log_end
                moved += view.log_max_offset() > cut.log_end
        puppet.call("end")
        puppet.call("close")
    assert moved
