"""A backlog is pulled several times before it goes on, with the same results."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.api.offsets import OffsetCommit
from broker.api.pull import PullRequest, PullStatus
from broker.errors import BrokerSystemError
from client.consumer.consumer_config import ConsumerConfig
from client.hooks import FilterMessageContext
from storage.configs.topics import TopicConfig
from storage.store import MessageStore
from tests.support.consumers import Heard, pull_what_is_there, rebalance
from tests.support.consuming import QUEUE, Door, queue_of
from tests.support.failing_broker import FailingBroker
from tests.support.samples import SMALL

_MESSAGES = 900


@pytest.fixture
def broker(open_broker: Callable[[], Any], tmp_path: Path) -> Any:
    """One with files that hold many pulls each."""
    config = SMALL.with_(
        mapped_file_size_commit_log=8 << 20, mapped_file_size_consume_queue=1_000 * 20
    )
    MessageStore.create(tmp_path / "broker-a", config)
    return open_broker()


def drain(
    make_consumer: Callable[..., Any], heard: Heard, *, together: bool, **settings: Any
) -> Any:
    """Pull what is there, as the pull service's thread does it or one by one."""
    hook = settings.pop("hook", None)
    brokers = settings.pop("brokers", None)
    more = {} if brokers is None else {"brokers": brokers}
    group = "together" if together else "alone"
    config = ConsumerConfig(consume_thread_min=1, consume_thread_max=1, **settings)
    consumer = make_consumer(group, listener=heard, config=config, **more)
    if hook is not None:
        consumer.filter_message_hooks.append(hook)
    consumer.start()
    rebalance(consumer)
    if together:
        consumer.instance.pull_service._ident = threading.get_ident()
    pull_what_is_there(consumer)
    consumer.hand_over()
    return consumer


def pulls_of(request: PullRequest, result: Any) -> list[int]:
    """Where the pulls that an answer stands for began."""
    each = request.max_msg_nums
    return [request.queue_offset, *(one.queue_offset for one in result.messages[each::each])]


class Asked(FailingBroker):
    """Notes which offsets of T are pulled; fails where a test says so.

    An answer for several pulls counts as these.
    """

    def __init__(self, broker: Any, breaks_at: int = -1) -> None:
        super().__init__(broker)
        self.offsets: list[tuple[int, int]] = []
        self.requests = 0
        self.breaks_at = breaks_at
        self.result: Any = None

    def pull_async(self, request: PullRequest, answer: Callable[[Any], None]) -> None:
        if request.topic != "T":
            self.broker.pull_async(request, answer)
            return
        if request.queue_offset == self.breaks_at:
            self.breaks_at = -1
            if isinstance(self.result, Exception):
                raise self.result
            answer(self.result)
            return
        self.requests += 1

        def note(result: Any) -> Any:
            self.offsets += [(at, request.max_msg_nums) for at in pulls_of(request, result)]
            return answer(result)

        self.broker.pull_async(request, note)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pull_threshold_for_queue": 100},
        {"pull_threshold_for_queue": 95},
        {"pull_threshold_for_topic": 40},
        {"consume_concurrently_max_span": 70},
        {"pull_batch_size": 7, "pull_threshold_for_queue": 30},
        {"consume_message_batch_max_size": 8},
        {"consume_message_batch_max_size": 5},
        {"pull_interval_ms": 1},
    ],
)
def test_the_same_is_asked_for_and_held_while_a_listener_blocks(
    broker: Any, make_consumer: Callable[..., Any], settings: dict[str, Any]
) -> None:
    queue_of(broker, _MESSAGES, begin=0)
    assert_alike(broker, make_consumer, settings)


@pytest.mark.conformance("D5")
@pytest.mark.parametrize("most_mib", [1, 2, 100])
def test_no_more_bytes_are_held_than_without(
    broker: Any, make_consumer: Callable[..., Any], most_mib: int
) -> None:
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send_column("T", [b"%5000d" % n for n in range(_MESSAGES)], 0)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 0)])
    settings = {"pull_threshold_size_for_queue": most_mib}
    held = assert_alike(broker, make_consumer, settings)
    assert held == min(_MESSAGES, -(-((most_mib + 1) << 20) // (32 * 5000)) * 32)


def assert_alike(broker: Any, make_consumer: Callable[..., Any], settings: dict[str, Any]) -> int:
    """Have a consumer pull as much as it may while its listener blocks, both ways; gives how many
    messages it holds then."""
    seen = []
    for together in (False, True):
        asked, door = Asked(broker), Door(*range(_MESSAGES))
        heard = Heard(door)
        own = {**settings, "brokers": [asked]}
        try:
            consumer = drain(make_consumer, heard, together=together, **own)
            process_queue = consumer.process_queues[QUEUE]
            heard.wait_for(1)
            seen.append((asked.offsets, process_queue.msg_count, process_queue.msg_size))
        finally:
            door.opened.set()
            consumer.shutdown()
    assert seen[0] == seen[1]
    return int(seen[0][1])


@pytest.mark.parametrize("size", [1, 5, 8, 32])
@pytest.mark.slow
def test_requests_to_the_listener_are_cut_alike(
    broker: Any, make_consumer: Callable[..., Any], size: int
) -> None:
    queue_of(broker, 300)
    cuts = []
    for together in (False, True):
        calls: list[tuple[int, ...]] = []

        def note(messages: Any, context: Any, calls: Any = calls) -> Any:
            calls.append(tuple(message.queue_offset for message in messages))
            return "CONSUME_SUCCESS"

        heard = Heard(note)
        drain(make_consumer, heard, together=together, consume_message_batch_max_size=size)
        heard.wait_for(300)
        cuts.append(sorted(calls))
    assert cuts[0] == cuts[1]


@pytest.mark.parametrize(
    "result", [BrokerSystemError("no"), OSError("torn")], ids=["refused", "broken"]
)
def test_a_pull_that_fails_behind_others_loses_nothing(
    broker: Any,
    make_consumer: Callable[..., Any],
    scheduler: Any,
    result: Exception,
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue_of(broker, 100)
    asked, heard = Asked(broker, breaks_at=32), Heard()
    asked.result = result
    drain(make_consumer, heard, together=True, brokers=[asked])
    heard.wait_for(100)
    assert sorted(int(body) for body in heard.bodies) == list(range(100))
    assert asked.breaks_at == -1, "it did not fail"
    assert [record for record in caplog.records if record.exc_info] == [], "a refusal is no bug"


def test_what_is_no_message_behind_others_is_left_to_the_next_pull(
    broker: Any, make_consumer: Callable[..., Any]
) -> None:
    queue_of(broker, 100)
    asked, heard = Asked(broker, breaks_at=32), Heard()
    found = broker.pull(PullRequest("other", "T", 0, 32, expression="*"))
    asked.result = found._replace(pull_status=PullStatus.OFFSET_ILLEGAL, messages=[])
    consumer = drain(make_consumer, heard, together=True, brokers=[asked])
    heard.wait_for(100)
    assert not consumer.process_queues[QUEUE].dropped
    assert asked.breaks_at == -1, "it did not come"


def test_hooks_see_pull_after_pull_and_each_is_counted(
    broker: Any, make_consumer: Callable[..., Any]
) -> None:
    queue_of(broker, 100)
    sizes: list[int] = []

    class Hook:
        hook_name = "sizes"

        def filter_message(self, context: FilterMessageContext) -> None:
            sizes.append(len(context.messages))

    heard = Heard()
    consumer = drain(make_consumer, heard, together=True, hook=Hook())
    heard.wait_for(100)
    assert sizes == [32, 32, 32, 4]
    stats, key = consumer.instance.consumer_stats, "T@together"
    assert stats.pull_tps.item(key).value == 100
    assert stats.pull_tps.item(key).times == stats.pull_rt.item(key).times == 4


def test_a_backlog_is_held_as_a_run_for_sixteen_pulls(
    broker: Any, make_consumer: Callable[..., Any]
) -> None:
    queue_of(broker, 600)
    door = Door(*range(600))
    consumer = drain(make_consumer, Heard(door), together=True)
    try:
        runs = consumer.process_queues[QUEUE]._runs.values()
        assert [len(run.messages) for run in runs] == [512, 88]
    finally:
        door.opened.set()


def test_a_backlog_takes_two_requests_a_run(broker: Any, make_consumer: Callable[..., Any]) -> None:
    queue_of(broker, 600)
    asked, heard = Asked(broker), Heard()
    drain(make_consumer, heard, together=True, brokers=[asked])
    heard.wait_for(600)
    assert len(asked.offsets) == 19, "as many pulls as ever"
    assert asked.requests == 5, "two for each of the runs, and one that waits"
