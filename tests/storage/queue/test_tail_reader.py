"""What is read in one go at the end of a queue is what any other reader reads there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from storage.coordination.shared_state import Word
from storage.queue.reader import QueueReader
from storage.readonly import StoreView
from storage.results import GetMessageResult, GetMessageStatus
from storage.store import MessageStore
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.samples import TINY, Sample, new_store, open_store, prepared

pytestmark = needs_compiled
QUEUES = [("A", 0), ("A", 1), ("B", 0)]
STEPS = st.lists(
    st.tuples(st.sampled_from(QUEUES), st.integers(1, 11), st.sampled_from([1, 3, 32])), max_size=25
)


@pytest.fixture(autouse=True)
def with_compiled_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", compiled)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    with open_store(new_store(tmp_path / "store")) as opened:
        yield opened


def put(store: MessageStore, count: int = 1, topic: str = "A", queue_id: int = 0) -> None:
    for _ in range(count):
        store.put(prepared([Sample("m", topic, queue_id)]))


def queue_of(store: MessageStore) -> QueueReader:
    return store.view._queues["A", 0]


def told(found: GetMessageResult) -> tuple[Any, ...]:
    """All that a result says: messages are compared by what they are."""
    rest = found._replace(messages=[])
    return rest, [
        (m.commitlog_offset, m.queue_offset, m.body, m.properties) for m in found.messages
    ]


def read(store: MessageStore, offset: int, count: int = 32) -> GetMessageResult:
    """What the writer's own view reads, which any other view reads as well."""
    found = store.view.get_message("A", 0, offset, count)
    with StoreView.open(store.root, TINY) as view:
        assert told(view.get_message("A", 0, offset, count)) == told(found)
    return found


def follow(store: MessageStore) -> int:
    """Read the queue to its end; gives where that is."""
    put(store)
    end = store.view.max_offset_in_queue("A", 0)
    assert read(store, end - 1).status is GetMessageStatus.FOUND
    followed = queue_of(store).followed
    assert followed is not None
    assert followed.holds(end) or end % 4 == 0, "4 units fill a file"
    return end


@pytest.mark.slow
@given(STEPS)
@settings(max_examples=25, deadline=None)
def test_it_reads_what_others_read(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[tuple[str, int], int, int]]
) -> None:
    root = new_store(tmp_path_factory.mktemp("followed") / "store")
    with open_store(root) as store:
        ends = dict.fromkeys(QUEUES, 0)
        for (topic, queue_id), count, most in steps:
            put(store, count, topic, queue_id)
            with StoreView.open(root, TINY) as view:
                last = False
                while not last:
                    at = ends[topic, queue_id]
                    last = at == view.max_offset_in_queue(topic, queue_id)
                    found = store.view.get_message(topic, queue_id, at, most)
                    assert told(found) == told(view.get_message(topic, queue_id, at, most))
                    ends[topic, queue_id] = found.next_begin_offset


def test_the_next_message_is_read_in_one_go(store: MessageStore) -> None:
    end = follow(store)
    put(store)
    followed = queue_of(store).followed
    assert followed is not None
    found = followed.read(end, 32)
    assert found is not None
    assert told(found) == told(read(store, end))


@pytest.mark.parametrize(("before", "count"), [(-1, 32), (0, 32), (1, 32), (2, 1)])
def test_what_is_not_at_the_end_is_left_to_others(
    store: MessageStore, before: int, count: int
) -> None:
    end = follow(store)
    put(store, 2 if count == 1 else 1)
    followed = queue_of(store).followed
    assert followed is not None
    offset = {-1: end + 1, 0: end + 2, 1: -1, 2: end}[before]
    assert followed.read(offset, count) is None
    read(store, offset, count)


def test_it_goes_on_in_the_next_file(store: MessageStore) -> None:
    follow(store)
    before = queue_of(store).followed
    assert [follow(store) for _ in range(4)] == [2, 3, 4, 5]
    assert queue_of(store).followed is not before


def test_it_ends_when_files_are_deleted(store: MessageStore) -> None:
    end = follow(store)
    put(store)
    followed = queue_of(store).followed
    assert followed is not None
    with store.write_lock():
        store._shared.words[Word.FILES_GENERATION] += 1  # as retention does when it deletes some
    assert not followed.holds(end)
    assert followed.read(end, 32) is None
    read(store, end)
    assert queue_of(store).followed is not followed


def test_a_damaged_body_is_not_handed_out(store: MessageStore) -> None:
    end = follow(store)
    put(store)
    (place, _, _) = store.view.units("A", 0, end, 1)[0]
    size = TINY.mapped_file_size_commit_log
    with (store.root / "commitlog" / f"{place - place % size:020d}").open("r+b") as file:
        file.seek(place % size + 88)
        file.write(b"\xff\xff")
    followed = queue_of(store).followed
    assert followed is not None
    assert followed.read(end, 32) is None
    assert read(store, end).status is not GetMessageStatus.FOUND


def test_readers_that_are_no_writers_follow_nothing(store: MessageStore) -> None:
    end = follow(store)
    with StoreView.open(store.root, TINY) as view:
        view.get_message("A", 0, end - 1, 32)
        assert view._queues["A", 0].followed is None
