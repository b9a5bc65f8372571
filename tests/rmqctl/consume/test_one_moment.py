"""What is read of several queues ends at one moment, while another process writes."""

from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.admin.queues.selection import last_spans, spans
from rmqctl.parse.positions import Bound, Point, Position
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.queue.reader import QueueBounds
from storage.read.log_cut import LogCut
from storage.readonly import StoreView

QUEUES = {"orders": range(3), "bills": range(1)}


def send(broker: EmbeddedBroker, rounds: int) -> None:
    """A message in each queue, in turns."""
    for _ in range(rounds):
        for topic, numbers in QUEUES.items():
            for queue_id in numbers:
                broker.send(Message(topic, b"x"), queue_id)


def test_no_message_is_selected_that_is_newer_than_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_store(tmp_path / "s", SMALL_STORE)
    with (
        EmbeddedBroker.open(tmp_path / "s") as writer,
        EmbeddedBroker.open(tmp_path / "s") as broker,
        StoreView.open(tmp_path / "s") as view,
    ):
        for topic, numbers in QUEUES.items():
            writer.update_topic(TopicConfig(topic, len(numbers), len(numbers)))
        send(writer, 5)
        read = broker.view.queue_bounds

        def busy(topic: str, queue_id: int) -> QueueBounds:
            found = read(topic, queue_id)
            send(writer, 2)
            return found

        monkeypatch.setattr(broker.view, "queue_bounds", busy)
        found = last_spans(broker, QUEUES, 6, stop_at_end=True)
        assert view.queue_bounds("orders", 0).max_offset > 5
        ends = {topic: [span.end for span in spans] for topic, spans in found.items()}
        starts = {topic: [span.start for span in spans] for topic, spans in found.items()}
        assert ends == {"orders": [5, 5, 5], "bills": [5]}
        assert starts == {"orders": [4, 4, 3], "bills": [3]}


def test_all_queues_of_a_topic_end_at_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_store(tmp_path / "s", SMALL_STORE)
    with (
        EmbeddedBroker.open(tmp_path / "s") as writer,
        EmbeddedBroker.open(tmp_path / "s") as broker,
    ):
        writer.update_topic(TopicConfig("orders", 3, 3))
        writer.update_topic(TopicConfig("bills", 1, 1))
        send(writer, 5)
        read = broker.view.queue_bounds

        def busy(topic: str, queue_id: int) -> QueueBounds:
            send(writer, 2)
            return read(topic, queue_id)

        cut = LogCut(broker.view)
        monkeypatch.setattr(broker.view, "queue_bounds", busy)
        for topic, numbers in QUEUES.items():
            found = spans(broker, topic, numbers, None, None, stop_at_end=True, cut=cut)
            assert [span.end for span in found] == [5] * len(numbers)


@pytest.mark.parametrize("own_cut", [False, True])
@pytest.mark.parametrize("stop_at_end", [False, True])
@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (Position(Point(Bound.END, 2), None), (3, 5)),
        (Position(Point(Bound.END, 9), None), (0, 5)),
        (Position(Point(Bound.END, 4), Point(Bound.END, 1)), (1, 4)),
        (Position(Point(Bound.START, 1), Point(Bound.END)), (1, 5)),
        (Position(None, Point(Bound.OFFSET, 9)), (0, 5)),
    ],
)
def test_a_range_from_the_end_ends_at_that_moment_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    position: Position,
    expected: tuple[int, int],
    stop_at_end: bool,
    own_cut: bool,
) -> None:
    create_store(tmp_path / "s", SMALL_STORE)
    with (
        EmbeddedBroker.open(tmp_path / "s") as writer,
        EmbeddedBroker.open(tmp_path / "s") as broker,
    ):
        writer.update_topic(TopicConfig("orders", 3, 3))
        writer.update_topic(TopicConfig("bills", 1, 1))
        send(writer, 5)
        read, max_offset = broker.view.queue_bounds, broker.max_offset

        def busy(topic: str, queue_id: int) -> QueueBounds:
            send(writer, 2)
            return read(topic, queue_id)

        def busy_end(topic: str, queue_id: int) -> int:
            send(writer, 2)
            return max_offset(topic, queue_id)

        cut = None if own_cut else LogCut(broker.view)
        monkeypatch.setattr(broker.view, "queue_bounds", busy)
        monkeypatch.setattr(broker, "max_offset", busy_end)
        found = spans(broker, "orders", range(3), position, None, stop_at_end=stop_at_end, cut=cut)
        ends = stop_at_end or position.end is not None
        assert [(span.start, span.end) for span in found] == [
            (expected[0], expected[1] if ends else None)
        ] * 3
