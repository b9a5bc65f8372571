"""Fixtures of pytest: a store of RocketMQ for each test, with a broker, a producer and consumers.

    def test_an_order_is_charged(rocketmq_store, rocketmq_producer, rocketmq_consumer):
        rocketmq_consumer("billing", "orders", charge)
        rocketmq_producer.send(Message("orders", b"order 7"))
        rocketmq_store.wait_until_consumed("billing")
        assert ledger == ["order 7"]

A test that fails shows what its topics hold, and keeps its store. pytest loads this module by
itself wherever rmqctl is installed; ``-p no:rmqctl.testing.plugin`` leaves it out. Nothing of
rmqctl is imported before a fixture is used.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from client.listener.listener import (
        AnyConcurrentListener,
        AnyOrderlyListener,
        ConsumeConcurrentlyStatus,
        ConsumeOrderlyStatus,
    )
    from client.producer.producer import Producer
    from client.push.push_consumer import PushConsumer

    from .store import RocketMQStore

_STORE: Final = pytest.StashKey["RocketMQStore"]()
_HAS_FAILED: Final = pytest.StashKey[bool]()
PRODUCER_GROUP: Final = "pytest"


@pytest.fixture
def rocketmq_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RocketMQStore]:
    """An empty store in a folder of its own (rmqctl.testing.store.RocketMQStore), which is removed
    after the test, unless that failed: then it lies in pytest's folder like other files of tests.
    """
    from broker.new_store import create_store
    from storage.config import SMALL_STORE

    from .store import RocketMQStore

    folder = tmp_path_factory.mktemp("rocketmq")
    create_store(folder / "store", SMALL_STORE)
    request.node.stash[_STORE] = store = RocketMQStore(folder / "store")
    yield store
    if not request.node.stash.get(_HAS_FAILED, False):
        shutil.rmtree(folder)


@pytest.fixture
def rocketmq_broker(rocketmq_store: RocketMQStore) -> Iterator[EmbeddedBroker]:
    """A broker over the store, with the store's clock; it delivers delayed messages and retries."""
    from broker.embedded.broker import EmbeddedBroker

    with EmbeddedBroker.open(rocketmq_store, clock=rocketmq_store.now_ms) as broker:
        broker.start_services()
        yield broker


@pytest.fixture
def rocketmq_producer(rocketmq_broker: EmbeddedBroker) -> Iterator[Producer]:
    """A producer that runs."""
    from client.producer.producer import Producer

    with Producer(PRODUCER_GROUP, brokers=[rocketmq_broker]) as producer:
        yield producer


StartConsumer = Callable[..., "PushConsumer"]


@pytest.fixture
def rocketmq_consumer(
    rocketmq_store: RocketMQStore, rocketmq_broker: EmbeddedBroker
) -> Iterator[StartConsumer]:
    """A function that starts push consumers; the end of the test ends them.

        rocketmq_consumer(group, topics, listener=None, *, orderly=False, **settings)

    ``topics`` is a topic, or a mapping from topics to expressions (``"TagA || TagB"``). The
    ``listener`` is one of RocketMQ's: it gets messages and a context, and returns a status; without
    one all messages are consumed. The group begins with the oldest messages; ``settings``
    are those of ``ConsumerConfig``. Gives the ``PushConsumer``.
    """
    from broker.api.offsets import ConsumeFromWhere
    from client.consumer.consumer_config import ConsumerConfig
    from client.push.push_consumer import PushConsumer
    from client.runtime.client_config import ClientConfig

    broadcast = rocketmq_store.path.with_name("broadcast")
    with ExitStack() as running:

        def start(
            group: str,
            topics: str | Mapping[str, str],
            listener: AnyConcurrentListener | AnyOrderlyListener | None = None,
            *,
            orderly: bool = False,
            **settings: Any,
        ) -> PushConsumer:
            settings.setdefault("consume_from_where", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
            consumer = PushConsumer(
                group,
                brokers=[rocketmq_broker],
                config=ConsumerConfig(**settings),
                client_config=ClientConfig(local_offset_store_dir=str(broadcast)),
            )
            for topic, expression in ({topics: "*"} if isinstance(topics, str) else topics).items():
                consumer.subscribe(topic, expression)
            found: Any = listener or (_consume_all_orderly if orderly else _consume_all)
            if orderly:
                consumer.register_message_listener_orderly(found)
            else:
                consumer.register_message_listener(found)
            return running.enter_context(consumer)

        yield start


def _consume_all(*_: object) -> ConsumeConcurrentlyStatus:
    from client.listener.listener import ConsumeConcurrentlyStatus

    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def _consume_all_orderly(*_: object) -> ConsumeOrderlyStatus:
    from client.listener.listener import ConsumeOrderlyStatus

    return ConsumeOrderlyStatus.SUCCESS


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the topics hold below a test that failed, or whose fixtures did."""
    report = yield
    store = item.stash.get(_STORE, None)
    if call.when != "teardown" and report.failed and store is not None:
        item.stash[_HAS_FAILED] = True
        report.sections.append((f"topics of rocketmq_store: {store.path}", _contents(store)))
    return report


def _contents(store: RocketMQStore) -> str:
    from rmqctl.errors import CliError
    from storage.errors import RocketMQError

    from .contents import contents

    try:
        return "\n".join(contents(store)) or "no topic holds a message"
    except (RocketMQError, CliError, OSError) as error:
        return f"they cannot be read: {error}"
