"""Services of a broker that are killed at random moments, one process after the other.

Runs in a slim interpreter (tests.support.slim): the parent forks and has no threads. A child works
on the store until it is killed, or has nothing left to do; the parent counts what it left.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import broker.schedule.arrived  # noqa: F401 - once, before the forks
from broker.api.send import SendOptions
from broker.api.transactions import EndTransactionRequest, LocalTransactionState
from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from broker.transaction.check import TransactionCheckService
from client.consumer.consumer_config import ConsumerConfig
from rmqctl import ConsumeConcurrentlyStatus, PushConsumer
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.format.message import PROPERTY_ORIGIN_MESSAGE_ID, SCHEDULE_TOPIC, Message, dlq_topic
from storage.format.sys_flag import MessageSysFlag
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.consumers import eventually

_ROUND: Final = 10
"""Kills in one store."""
_PREPARED: Final = SendOptions(sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE)
_HOURS_MS: Final = 7_200_000
_QUEUES: Final = 4
_IN_QUEUE: Final = 3_000


def campaign(folder: str, service: str, seed: int, kills: int) -> dict[str, Any]:
    """Kill ``kills`` processes of a service, and go on until a tenth of so many had done something.

    Gives what was seen and what is wrong.
    """
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    failures: list[str] = []
    lives_s, prepare, work, judge = _SERVICES[service]
    while (seen["kills"] < kills or seen["useful"] < kills // 10) and seen["stores"] < 2 * kills:
        seen["stores"] += 1
        root = Path(folder) / f"{service}-{seed}-{seen['stores']}"
        MessageStore.create(root, SMALL_STORE)
        count = prepare(root)
        killed = useful = 0
        while killed < _ROUND:
            before = _messages(root)
            after_s = lives_s * chance.random()
            if not _killed(lambda root=root: work(root), after_s):  # type: ignore[misc]
                lives_s *= 0.7  # nothing is left to do: on this machine kills have to come sooner
                break
            killed += 1
            useful += _messages(root) > before
        _ends(lambda root=root: work(root))  # type: ignore[misc]
        repeated, lost = judge(root, count)
        seen.update(kills=killed, useful=useful, messages=count, repeated=repeated, lost=lost)
        seen["most_repeated_a_kill"] = max(
            seen["most_repeated_a_kill"], -(-repeated // max(1, killed))
        )
        shutil.rmtree(root)
        if lost:
            failures.append(f"{root.name}: {lost} of {count} are lost")
    return {**seen, "failures": failures}


def _messages(root: Path) -> int:
    with StoreView.open(root) as view:
        return sum(high for t, q in view.queues() for _, high in (view.queue_bounds(t, q),))


def _killed(work: Callable[[], object], after_s: float) -> bool:
    """Kill a child so long after it has begun to work; False if it ended before."""
    pid, begun = _fork(work)
    os.read(begun, 1)
    os.close(begun)
    time.sleep(after_s)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return os.WIFSIGNALED(status)


def _ends(work: Callable[[], object]) -> None:
    pid, begun = _fork(work)
    _, status = os.waitpid(pid, 0)
    os.close(begun)
    assert status == 0, status


_BEGUN: list[int] = []


def _fork(work: Callable[[], object]) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    code = 1
    try:
        _BEGUN[:] = [writing]
        work()
        code = 0
    finally:
        os._exit(code)


def _begin() -> None:
    """Tell the parent that the work begins now."""
    os.write(_BEGUN[0], b"!")


def _bodies(root: Path, topic: str) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for message in _all(root, topic):
        found[message.body] += 1
    return found


def _all(root: Path, topic: str) -> list[Any]:
    messages = []
    with StoreView.open(root) as view:
        for name, queue_id in view.queues():
            if name == topic:
                at, high = view.queue_bounds(name, queue_id)
                while at < high:
                    found = view.get_message(name, queue_id, at, 32, tags=None)
                    messages += found.messages
                    at = max(at + 1, found.next_begin_offset)
    return messages


def _surplus(found: Counter[Any], count: int) -> tuple[int, int]:
    return sum(found.values()) - len(found), count - len(found)


# -- delayed delivery


def _delay(root: Path) -> int:
    with EmbeddedBroker.open(root, store_config=SMALL_STORE) as broker:
        for level in (1, 2, 3):
            for queue_id in range(4):
                first = 1000 * (4 * (level - 1) + queue_id)
                bodies = [b"%d" % number for number in range(first, first + 1000)]
                broker.send_column("T", bodies, queue_id, properties={"DELAY": str(level)})
    return 12_000


def _deliver(root: Path) -> None:
    late = int(time.time() * 1000) + _HOURS_MS
    with EmbeddedBroker.open(root, store_config=SMALL_STORE, clock=lambda: late) as broker:
        delayed = broker.delayed
        assert delayed is not None
        _begin()
        while delayed.tick(late) <= late:
            pass
        delayed.shutdown()


def _delivered(root: Path, count: int) -> tuple[int, int]:
    return _surplus(_bodies(root, "T"), count)


# -- transaction checks


def _begin_transactions(root: Path) -> int:
    with EmbeddedBroker.open(root, store_config=SMALL_STORE) as broker:
        for number in range(400):
            properties = {"TRAN_MSG": "true", "PGROUP": "p"}
            broker.send(Message("T", b"%d" % number, properties=properties), 0, _PREPARED)
    return 400


def _check(root: Path) -> None:
    now = [int(time.time() * 1000) + _HOURS_MS]
    config = BrokerConfig(transaction_check_max=10_000)
    with EmbeddedBroker.open(
        root, config, store_config=SMALL_STORE, clock=lambda: now[0]
    ) as broker:
        asked = [0]

        def ask(question: Any) -> bool:
            asked[0] += 1
            broker.end_transaction(
                EndTransactionRequest(
                    question.producer_group,
                    question.transaction_state_table_offset,
                    question.commitlog_offset,
                    LocalTransactionState.COMMIT_MESSAGE,
                    from_check=True,
                )
            )
            return True

        store = broker.store
        assert store is not None
        checks = TransactionCheckService(
            config,
            broker._topics,
            broker._progress,
            view=lambda: store.view,
            put=store.put,
            ask=ask,
            now=lambda: now[0],
            file_reserved_ms=_HOURS_MS * 36,
        )
        _begin()
        while True:
            before = asked[0]
            checks.check()
            now[0] += 60_000
            if asked[0] == before:
                return


def _visible(root: Path, count: int) -> tuple[int, int]:
    return _surplus(_bodies(root, "T"), count)


# -- giving back


def _send(root: Path) -> int:
    with EmbeddedBroker.open(root, store_config=SMALL_STORE) as broker:
        broker.update_topic(TopicConfig("T", _QUEUES, _QUEUES))
        for queue_id in range(_QUEUES):
            broker.send_column("T", [b"%d" % n for n in range(_IN_QUEUE)], queue_id)
    return _QUEUES * _IN_QUEUE


def _fail(root: Path, threads: int = 1) -> None:
    def listen(messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
        # Every other one is dead at once; a message that comes again is no concern of this.
        dead = messages[0].queue_offset % 2
        context.delay_level_when_next_consume = -1 if dead else 18
        return ConsumeConcurrentlyStatus.RECONSUME_LATER

    with EmbeddedBroker.open(root, store_config=SMALL_STORE) as broker:
        config = ConsumerConfig(consume_thread_min=threads, consume_thread_max=threads)
        consumer = PushConsumer("g", brokers=[broker], config=config)
        consumer.subscribe("T")
        consumer.register_message_listener(listen)
        _begin()
        consumer.start()
        eventually(
            lambda: all(
                broker.query_consumer_offset("g", "T", queue_id).offset == _IN_QUEUE
                for queue_id in range(_QUEUES)
            )
        )
        consumer.shutdown()


def _given_back(root: Path, count: int) -> tuple[int, int]:
    found: Counter[Any] = Counter()
    for topic in (SCHEDULE_TOPIC, dlq_topic("g")):
        for message in _all(root, topic):
            found[message.get_property(PROPERTY_ORIGIN_MESSAGE_ID)] += 1
    return _surplus(found, count)


_SERVICES: Final[dict[str, tuple[float, Any, Any, Any]]] = {
    "delivery": (0.12, _delay, _deliver, _delivered),
    "checks": (0.1, _begin_transactions, _check, _visible),
    "giving-back": (0.6, _send, _fail, _given_back),
    "giving-back-by-four": (0.6, _send, partial(_fail, threads=4), _given_back),
}
"""How long a process lives at most, what is made ready, what it does, what is to be true then."""
