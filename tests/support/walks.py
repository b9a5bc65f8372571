"""Walks of one message through broker and client, step by step, as docs/consumption.md shows them.

    python -m tests.support.walks [--write]

prints them, or writes them into the document. The client and the broker are real, over a store in a
folder that is thrown away; only their timers and the pull thread are driven by hand.
"""

from __future__ import annotations

import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from client.listener.listener import ConsumeConcurrentlyStatus
from client.producer.producer import Producer
from client.push.push_consumer import PushConsumer
from client.runtime.client_config import ClientConfig
from client.runtime.client_manager import ClientManager
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.format.message import SCHEDULE_TOPIC, Message, MessageExt, MessageQueue, retry_topic
from storage.store import MessageStore
from tests.support.consumers import (
    PATIENCE_S,
    Heard,
    eventually,
    pull_until,
    pull_what_is_there,
    rebalance,
)
from tests.support.failing_broker import FailingBroker
from tests.support.manual_time import ManualClock, ManualScheduler

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "consumption.md"
GROUP, TOPIC = "billing", "Orders"
RETRY_TOPIC = retry_topic(GROUP)
SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
QUEUE = MessageQueue(TOPIC, "broker-a", 0)


class Scene:
    """A store, its broker, a producer's client and a consumer's; time moves only on request."""

    def __init__(self, root: Path, answer: Callable[[Sequence[MessageExt], Any], Any]) -> None:
        MessageStore.create(root, SMALL_STORE)
        self.root = root
        self.clock = ManualClock()
        self.scheduler = ManualScheduler(self.clock)
        self.manager = ClientManager(
            clock=self.clock, schedulers=self.scheduler.part, threads=False
        )
        self.broker = EmbeddedBroker.open(root, BrokerConfig(), clock=self.clock.now_ms)
        self.broker.update_topic(TopicConfig(TOPIC, 1, 1))
        self.recorded = FailingBroker(self.broker, self.clock)
        self.recorded.always("pull_async", None)
        self.heard = Heard(answer)
        self.consumer = PushConsumer(
            GROUP,
            brokers=[self.recorded],
            client_config=ClientConfig(instance_name="demo"),
            manager=self.manager,
        )
        self.consumer.subscribe(TOPIC)
        self.consumer.register_message_listener(self.heard)

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.shutdown()
        self.broker.close()

    def send(self) -> MessageExt:
        """Send one message with a key; gives it as it is stored."""
        with Producer("shop", brokers=[self.broker], manager=self.manager) as producer:
            result = producer.send(Message(TOPIC, b"ann 30", tags="new", keys="order-1"))
        return self.stored(TOPIC, 0, result.queue_offset)

    def stored(self, topic: str, queue_id: int, queue_offset: int) -> MessageExt:
        (found,) = self.broker.view.get_message(topic, queue_id, queue_offset, 1).messages
        return found

    def last_pull(self) -> Any:
        return next(
            arguments[0]
            for _, arguments in reversed(self.recorded.calls)
            if arguments[0].topic == TOPIC
        )

    @property
    def in_memory(self) -> int | None:
        return self.consumer.consumer_status(TOPIC).get(QUEUE)

    @property
    def at_broker(self) -> int | None:
        return self.broker.query_consumer_offset(GROUP, TOPIC, 0).offset

    def settled(self) -> None:
        """Wait until nothing is in work."""
        process_queue = self.consumer.process_queues[QUEUE]
        eventually(lambda: process_queue.msg_count == 0)

    def progress_file(self) -> str:
        """Give consumerOffset.json on one line."""
        return "".join((self.root / "config" / "consumerOffset.json").read_text().split())


def nine_steps(root: Path) -> Iterator[str]:
    """What the client does for one message."""
    go_on = threading.Event()
    with Scene(root, lambda messages, context: go_on.wait(PATIENCE_S) and SUCCESS) as scene:
        message = scene.send()
        yield f"  sent: {_place(message)}, {message.store_size} bytes"
        consumer = scene.consumer
        consumer.start()
        members = scene.broker.consumer_ids(GROUP)
        yield f"  started: {consumer.state}; the broker knows {', '.join(members)}"
        pulls = consumer.instance.pull_service
        rebalance(consumer)
        process_queue = consumer.process_queues[QUEUE]
        queues = [f"{queue.topic}:{queue.queue_id}" for queue in consumer.rebalance.queues()]
        yield f"1 rebalance: {len(members)} member, strategy AVG: {', '.join(queues)}"
        yield f"2 first offset {scene.at_broker}; {pulls.waiting} pull requests wait"
        while TOPIC not in [arguments[0].topic for _, arguments in scene.recorded.calls]:
            pulls.run_once()
        asked = scene.last_pull()
        yield f"3 the pull thread takes the request of {TOPIC}:{asked.queue_id}"
        yield f"4 checked and sent: from offset {asked.queue_offset}, {asked.max_msg_nums} messages"
        yield f"  at most, may be held for {asked.suspend_timeout_ms} ms"
        yield f"5 the answer: {process_queue.msg_count} message in the process queue;"
        yield f"  the request is back with offset {process_queue.queue_offset_max + 1}"
        scene.heard.wait_for(1)
        (heard,) = scene.heard.messages
        yield f"6 submitted: one call for {len(scene.heard.messages)} message"
        end = heard.get_property("MAX_OFFSET")
        yield f"7 the listener has {heard.keys[0]}, {heard.body!r}, MAX_OFFSET {end};"
        yield f"  progress in memory {scene.in_memory}"
        go_on.set()
        scene.settled()
        yield f"8 {SUCCESS}: {process_queue.msg_count} messages in work;"
        yield f"  progress in memory {scene.in_memory}, at the broker {scene.at_broker}"
        scene.scheduler.advance(10_000)
        yield f"9 the timer: progress at the broker {scene.at_broker}"


def eight_steps(root: Path) -> Iterator[str]:
    """The same with the broker, and with a listener that fails once."""
    heard: list[int] = []

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        heard.append(messages[0].reconsume_times)
        return LATER if len(heard) == 1 else SUCCESS

    with Scene(root, answer) as scene:
        consumer, broker = scene.consumer, scene.broker
        consumer.start()
        rebalance(consumer)
        queues = [f"{queue.topic}:{queue.queue_id}" for queue in consumer.rebalance.queues()]
        yield f"1 client: rebalance: {', '.join(queues)}"
        pull_what_is_there(consumer)
        yield f"2 broker: nothing there, {broker._puller.held.count} pulls are held"
        first = scene.send()
        found = broker.query_message(TOPIC, "order-1").messages
        yield f"3 broker: stored: {_place(first)}; by its key {len(found)} found"
        pull_until(consumer, lambda: heard)
        yield "4 broker: the arrival answers the held pull"
        yield f"5 client: {len(scene.heard.messages)} message into the process queue"
        yield f"6 client: listener, attempt {heard[0] + 1}: {LATER}"
        scene.settled()
        waits = scene.stored(SCHEDULE_TOPIC, 2, 0)
        due = broker.view.units(SCHEDULE_TOPIC, 2, 0, 1)[0][2]
        real, wait = waits.get_property("REAL_TOPIC"), due - waits.store_timestamp
        yield f"7 broker: sent back: {_place(waits)},"
        yield f"  for {real}, due {wait} ms later, reconsumeTimes {waits.reconsume_times}"
        scene.scheduler.advance(10_000)
        yield f"8 client: progress {scene.at_broker} of {TOPIC}: the message is done there"
        tick(scene)
        again = scene.stored(RETRY_TOPIC, 0, 0)
        yield f"  10 s later broker: delivered: {_place(again)}"
        pull_until(consumer, lambda: len(heard) == 2)
        second = scene.heard.messages[1]
        same = "the same" if second.msg_id == first.msg_id else "another"
        yield f"  client: listener, attempt {heard[1] + 1}: {SUCCESS}"
        yield f"  it sees topic {second.topic} and {same} id"


def tick(scene: Scene) -> None:
    """Have the broker deliver what is due."""
    delayed = scene.broker.delayed
    assert delayed is not None
    while delayed.tick(scene.clock.now_ms()) <= scene.clock.now_ms():
        pass


def followed(root: Path) -> Iterator[str]:
    """Where a message is on the disk, and what its consumption leaves there."""
    with Scene(root, lambda messages, context: SUCCESS) as scene:
        message = scene.send()
        at, size = message.commitlog_offset, message.store_size
        log = (root / "commitlog" / f"{0:020}").read_bytes()[at : at + size]
        yield f"commitlog/{0:020}, {size} bytes at {at}:"
        yield f"  {log[:24].hex(' ', 4)} ..."
        yield f"  body at {at + log.index(message.body)}: {message.body!r}"
        unit = (root / "consumequeue" / TOPIC / "0" / f"{0:020}").read_bytes()[:20]
        yield f"consumequeue/{TOPIC}/0/{0:020}, unit 0:"
        yield f"  {unit.hex(' ', 4)}: log offset, size, hash of the tag"
        found = scene.broker.query_message(TOPIC, "order-1").messages
        yield f"index: key order-1 leads to log offset {found[0].commitlog_offset}"
        scene.consumer.start()
        rebalance(scene.consumer)
        pull_what_is_there(scene.consumer)
        scene.heard.wait_for(1)
        scene.settled()
        heard = scene.heard.messages[0]
        yield f"listener: {heard.body!r} of log offset {heard.commitlog_offset}"
        scene.scheduler.advance(10_000)
        scene.broker.do_own_work()
        yield "config/consumerOffset.json:"
        yield f"  {scene.progress_file()}"


def _place(message: MessageExt) -> str:
    queue = f"{message.topic}:{message.queue_id}"
    return f"{queue}, queue offset {message.queue_offset}, log offset {message.commitlog_offset}"


WALKS: dict[str, Callable[[Path], Iterator[str]]] = {
    "nine-steps": nine_steps,
    "eight-steps": eight_steps,
    "followed": followed,
}
_BLOCK = re.compile(r"(?<=^```sample )(\S+)\n(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def shown() -> dict[str, str]:
    """The walks as the document has them."""
    return {name: text.rstrip("\n") for name, text in _BLOCK.findall(GUIDE.read_text("utf-8"))}


def walked(name: str) -> str:
    """A walk as it goes now."""
    with tempfile.TemporaryDirectory() as folder:
        return "\n".join(line.rstrip() for line in WALKS[name](Path(folder) / "store"))


def main() -> None:
    walks = {name: walked(name) for name in WALKS}
    if "--write" in sys.argv[1:]:
        text = GUIDE.read_text("utf-8")
        text = _BLOCK.sub(lambda block: f"{block[1]}\n{walks[block[1]]}\n", text)
        GUIDE.write_text(text, "utf-8")
    else:
        sys.stdout.write("\n\n".join(walks.values()) + "\n")


if __name__ == "__main__":
    main()
