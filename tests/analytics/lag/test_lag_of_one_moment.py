"""The queues of a lag snapshot end at one moment, while others write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analytics.lag.lag_snapshot import Readers, look_at
from analytics.lag.repeated_look import RepeatedLook
from storage.configs.offset_samples import OffsetSamples
from storage.configs.topics import TopicConfig
from storage.coordination.shared_state import STAGE_DISPATCH, SharedState, Word
from storage.files.fs import FileSystem
from storage.queue.reader import QueueBounds
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.hand_made import START_MS, TINY
from tests.support.samples import Sample

QUEUES = 4
CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=20_000)


def put(store: MessageStore, count: int) -> None:
    for number in range(count):
        store.put_message(Sample(f"m{number}", "T", number % QUEUES).inner())


def test_a_look_that_goes_on_ends_all_queues_at_one_moment_too(tmp_path: Path) -> None:
    MessageStore.create(tmp_path / "s", CONFIG)
    with MessageStore.open(tmp_path / "s", clock=lambda: START_MS) as store:
        put(store, QUEUES)
        topics = {"T": TopicConfig("T", QUEUES, QUEUES)}
        table = {("g", "T"): dict.fromkeys(range(QUEUES), 0)}
        with BusyView.open(tmp_path / "s") as view:
            view.writer = store
            repeated = RepeatedLook(view, OffsetSamples(view.root).read(0))
            ends = []
            for look in range(3):
                seen = repeated.look(topics, Readers(table, {}, table), START_MS + look)
                ends.append({queue.unread.max_offset for queue in seen.group_lags[0].queues})
            stored = view.max_offset_in_queue("T", 0)
    assert [len(each) for each in ends] == [1, 1, 1]
    assert ends[0] == {1}
    assert max(ends[2]) < stored


def test_what_is_committed_of_a_batch_that_is_being_written_counts(tmp_path: Path) -> None:
    MessageStore.create(tmp_path / "s", CONFIG)
    topics = {"T": TopicConfig("T", QUEUES, QUEUES)}
    with MessageStore.open(tmp_path / "s", clock=lambda: START_MS) as store:
        put(store, QUEUES)
        cut = store.view.log_max_offset()
        with StoreView.open(tmp_path / "s") as view:
            repeated = RepeatedLook(view, OffsetSamples(view.root).read(0))
            table = {("g", "T"): dict.fromkeys(range(QUEUES), 0)}
            words = SharedState(FileSystem(), view.root, writable=True).words
            for committed in (0, 1, 2, 2):
                if committed == 1:  # the units of the second batch are there, and its end is not
                    put(store, QUEUES)
                    words[Word.TO], words[Word.LOG_END] = store.view.log_max_offset(), cut
                    words[Word.STAGE] = STAGE_DISPATCH
                table = {("g", "T"): {**table["g", "T"], 1: committed}}
                chosen = Readers(table, {}, table)
                seen = repeated.look(topics, chosen, START_MS)
                whole = look_at(view, topics, chosen, START_MS, OffsetSamples(view.root).read(0))
                ends = [queue.unread.max_offset for queue in seen.group_lags[0].queues]
                assert ends == [queue.unread.max_offset for queue in whole.group_lags[0].queues]
                assert ends == [1, max(1, committed), 1, 1]
            words[Word.STAGE] = 0


class BusyView(StoreView):
    """A view of a store into which messages come after every read of a queue's bounds."""

    writer: MessageStore

    def queue_bounds(self, topic: str, queue_id: int) -> QueueBounds:
        """Read them; then the writer goes on."""
        found = super().queue_bounds(topic, queue_id)
        put(self.writer, QUEUES)
        return found

    def each_queue_bounds(
        self, queues: Sequence[tuple[str, int]], first: Sequence[int] = ()
    ) -> list[QueueBounds]:
        """The same, one after the other."""
        return [self.queue_bounds(*queue) for queue in queues]


def test_the_lag_of_all_queues_is_of_one_moment(tmp_path: Path) -> None:
    MessageStore.create(tmp_path / "s", CONFIG)
    with MessageStore.open(tmp_path / "s", clock=lambda: START_MS) as store:
        put(store, 5 * QUEUES)
        offsets = {queue_id: queue_id for queue_id in range(QUEUES)}
        topics = {"T": TopicConfig("T", QUEUES, QUEUES)}
        table = {("g", "T"): offsets, ("ahead", "T"): dict.fromkeys(range(QUEUES), 1_000_000)}
        with BusyView.open(tmp_path / "s") as view:
            view.writer = store
            seen = look_at(view, topics, Readers(table, {}, table), START_MS + 1)
    lags = [[queue.unread.lag for queue in lag.queues] for lag in seen.group_lags]
    assert lags == [[5, 4, 3, 2], [None] * QUEUES]
    assert [queue.unread.max_offset for queue in seen.group_lags[0].queues] == [5] * QUEUES
