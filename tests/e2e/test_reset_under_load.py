"""Progress is moved while messages flow: the consumer in another process goes on from there."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.store import MessageStore
from tests.support.chaos import start_actor
from tests.support.chaos_journal import JournalReader
from tests.support.consumers import eventually

QUEUES = 8
BACK_TO = 10
FOLLOWS_NS = 1_000_000_000


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.conformance("G12")
@pytest.mark.parametrize("how", ["concurrently", "orderly"])
def test_a_consumer_of_20_threads_under_load_follows_a_reset_within_a_second(
    tmp_path: Path, how: str
) -> None:
    root, journal = tmp_path / "store", tmp_path / "consumer.journal"
    MessageStore.create(root, SMALL_STORE)
    heard: dict[int, dict[int, list[int]]] = {queue_id: {} for queue_id in range(QUEUES)}
    reader = JournalReader(journal)

    def count() -> int:
        for event in reader.more():
            if event.kind == "got":
                times = heard[int(event.words[1])].setdefault(int(event.words[2]), [])
                times.append(event.time)
        return sum(map(len, heard.values()))

    with EmbeddedBroker.open(root) as broker, ExitStack() as stack:
        broker.update_topic(TopicConfig("T", QUEUES, QUEUES))
        producer = start_actor("chaos_producer", root, tmp_path / "p.journal", "p", 2_000, "seed")
        consumer = start_actor("chaos_consumer", root, journal, "g", "c", how, 20, 0.0, "seed")
        for process in (producer, consumer):
            stack.enter_context(process)
            stack.callback(process.kill)
        eventually(lambda: count() > 2_000)

        moved = time.monotonic_ns()
        broker.progress.move("g", {("T", queue_id): BACK_TO for queue_id in range(QUEUES)})
        told = time.monotonic_ns()
        seen: list[tuple[int, int, int]] = []  # what the broker says of the progress, and when

        def goes_on() -> bool:
            """Note the progress; true when all queues have committed some of the new one."""
            offsets = []
            for queue_id in range(QUEUES):
                offset = broker.query_consumer_offset("g", "T", queue_id).offset
                assert offset is not None
                seen.append((time.monotonic_ns(), queue_id, offset))
                offsets.append(offset)
            return min(offsets) > BACK_TO

        eventually(goes_on, "some queue has committed nothing since the reset")

        producer.stdin.close()  # type: ignore[union-attr]
        producer.stdin = None
        assert producer.wait(60) == 0
        ends = [broker.max_offset("T", queue_id) for queue_id in range(QUEUES)]
        eventually(lambda: count() and [len(heard[q]) for q in range(QUEUES)] == ends)
        consumer.stdin.close()  # type: ignore[union-attr]
        consumer.stdin = None
        assert consumer.wait(60) == 0
        count()
        for queue_id in range(QUEUES):
            began = [t for t in heard[queue_id][BACK_TO] if moved < t < told + FOLLOWS_NS]
            assert began, f"queue {queue_id} is not begun anew, or too late"
        for asked, queue_id, offset in seen:
            for consumed in range(BACK_TO, offset):
                times = heard[queue_id][consumed]
                assert any(moved < t < asked for t in times), (
                    f"queue {queue_id} was at {offset}, and {consumed} had not come again"
                )
        offsets = broker.consumer_offsets("g")["g", "T"]
        assert offsets == dict(enumerate(ends))
