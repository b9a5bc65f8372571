"""Three ways to skip a backlog that is not needed any more.

    python examples/skip_history.py ./empty-folder

The topic has 100 messages of yesterday and 10 of today. A new group would read them all: on a young
store the policy CONSUME_FROM_LAST_OFFSET begins at 0, as with a real broker. A group with progress
ignores the policy altogether. These ways always work:

* by date: the listener finishes messages at once that are too old;
* by distance: it finishes messages at once that lie too far from their queue's end (MAX_OFFSET);
* by moving progress before the group starts: then none of the backlog is read.
"""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from rmqctl import (
    PROPERTY_MAX_OFFSET,
    SMALL_STORE,
    Boundary,
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    EmbeddedBroker,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    TopicConfig,
)

DAY_MS = 86_400_000
OLD, NEW = 100, 10


def yesterday_ms() -> int:
    """Give the time of day, a day ago."""
    return time.time_ns() // 1_000_000 - DAY_MS


def is_old(message: MessageExt) -> bool:
    """Judge by date: stored more than an hour ago."""
    return message.store_timestamp < yesterday_ms() + DAY_MS - 3_600_000


def is_far_behind(message: MessageExt) -> bool:
    """Judge by distance: MAX_OFFSET is the end of the queue when the message was pulled."""
    end = int(message.get_property(PROPERTY_MAX_OFFSET) or 0)
    return end - message.queue_offset > NEW


def consume(
    broker: EmbeddedBroker, group: str, skips: Callable[[MessageExt], bool], delivered: int
) -> None:
    """Consume as ``group`` until so many messages were delivered; print the counts."""
    lock = threading.Lock()
    skipped: list[bool] = []
    finished = threading.Event()

    def listen(
        messages: tuple[MessageExt, ...], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        with lock:
            skipped.extend(map(skips, messages))
            if len(skipped) == delivered:
                finished.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer(group, brokers=[broker])
    consumer.subscribe("News")
    consumer.register_message_listener(listen)
    with consumer:
        finished.wait(30)
    print(f"{group}: {len(skipped)} delivered, {skipped.count(False)} worked on")


def main(folder: Path) -> None:
    """Fill a topic, and let three groups skip its history, each in its own way."""
    with EmbeddedBroker.open(
        folder, store_config=SMALL_STORE, create=True, clock=yesterday_ms
    ) as broker:
        broker.update_topic(TopicConfig("News", 1, 1))
        send(broker, OLD)
    with EmbeddedBroker.open(folder) as broker:
        send(broker, NEW)
        consume(broker, "by-date", is_old, OLD + NEW)
        consume(broker, "by-distance", is_far_behind, OLD + NEW)
        an_hour_ago = yesterday_ms() + DAY_MS - 3_600_000
        first_wanted = broker.search_offset("News", 0, an_hour_ago, Boundary.LOWER)
        broker.progress.move("by-moving-progress", {("News", 0): first_wanted})
        consume(broker, "by-moving-progress", lambda message: False, NEW)


def send(broker: EmbeddedBroker, count: int) -> None:
    """Send some news."""
    with Producer("agency", brokers=[broker]) as producer:
        for number in range(count):
            producer.send(Message("News", b"%d" % number))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
