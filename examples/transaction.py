"""Messages that depend on the sender's own transaction: committed, rolled back, checked.

    python examples/transaction.py ./empty-folder

The half message is stored first, where no consumer sees it. Then the local transaction runs, and
its result ends the message. order-3's answer gets lost: the broker asks for it. A real broker asks
after a minute; this one after 0.2 s.
"""

import sys
import threading
from pathlib import Path

from rmqctl import (
    SMALL_STORE,
    BrokerConfig,
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    EmbeddedBroker,
    LocalTransactionState,
    Message,
    MessageExt,
    PushConsumer,
    TopicConfig,
    TransactionProducer,
)


class Orders:
    """The sender's database: the state of its orders survives a lost answer."""

    def __init__(self) -> None:
        self.paid: dict[str, bool] = {}

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Do the local transaction; the half message is stored already."""
        order = message.keys[0]
        self.paid[order] = bool(arg)
        if order == "order-3":
            return LocalTransactionState.UNKNOW
        return self._state(order)

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Return the state: the broker has not received it."""
        order = message.keys[0]
        print(f"the broker asks about {order}: {self._state(order)}")
        return self._state(order)

    def _state(self, order: str) -> LocalTransactionState:
        if self.paid[order]:
            return LocalTransactionState.COMMIT_MESSAGE
        return LocalTransactionState.ROLLBACK_MESSAGE


seen: list[str] = []
both_seen = threading.Event()


def listen(
    messages: tuple[MessageExt, ...], context: ConsumeConcurrentlyContext
) -> ConsumeConcurrentlyStatus:
    """Note what was committed."""
    seen.extend(message.keys[0] for message in messages)
    if len(seen) == 2:
        both_seen.set()
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def main(folder: Path) -> None:
    """Send three half messages, and consume the committed ones."""
    quick = BrokerConfig(transaction_timeout_ms=100, transaction_check_interval_ms=200)
    with EmbeddedBroker.open(folder, quick, store_config=SMALL_STORE, create=True) as broker:
        broker.start_services()  # checks transactions
        broker.update_topic(TopicConfig("Orders", 4, 4))
        consumer = PushConsumer("billing", brokers=[broker])
        consumer.subscribe("Orders")
        consumer.register_message_listener(listen)
        with TransactionProducer("shop", Orders(), brokers=[broker]) as producer, consumer:
            for order, paid in (("order-1", True), ("order-2", False), ("order-3", True)):
                message = Message("Orders", b"ship it", keys=order)
                result = producer.send_message_in_transaction(message, paid)
                print(f"{order}: {result.local_transaction_state}")
            both_seen.wait(30)
        print(f"consumers saw {' and '.join(sorted(seen))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
