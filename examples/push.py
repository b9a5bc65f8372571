"""A push consumer whose business step fails: the message comes again, nothing else waits for it.

    python examples/push.py ./empty-folder

The database of this listener is a dict. Bob has too little money at first, so that order is sent
back with delay level 1 (1 s; without a level the broker waits 10 s, 30 s, 1 min, ...).
"""

import sys
import threading
from pathlib import Path

from rmqctl import (
    SMALL_STORE,
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    EmbeddedBroker,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
)


class InsufficientBalanceError(Exception):
    """The account holds less than the order costs."""


balances = {"ann": 100, "bob": 10}
all_charged = threading.Event()


def charge(account: str, amount: int) -> None:
    """The business step."""
    if balances[account] < amount:
        raise InsufficientBalanceError(f"{account} has {balances[account]}, not {amount}")
    balances[account] -= amount


def say(text: str) -> None:
    """Print a line at once: print() writes the line feed separately, and listeners run in many
    threads."""
    sys.stdout.write(f"{text}\n")


def listen(
    messages: tuple[MessageExt, ...], context: ConsumeConcurrentlyContext
) -> ConsumeConcurrentlyStatus:
    """Charge. Any result but CONSUME_SUCCESS, also an exception, brings the message again."""
    for message in messages:
        account, amount = message.body.decode().split()
        attempt = message.reconsume_times + 1
        try:
            charge(account, int(amount))
        except InsufficientBalanceError as error:
            say(f"{message.keys[0]}: attempt {attempt}: {error}")
            balances[account] += 100  # a payment arrives meanwhile
            context.delay_level_when_next_consume = 1
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        say(f"{message.keys[0]}: attempt {attempt}: charged {amount} to {account}")
        if account == "bob":
            all_charged.set()
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def main(folder: Path) -> None:
    """Send two orders, and consume until both are charged."""
    with EmbeddedBroker.open(folder, store_config=SMALL_STORE, create=True) as broker:
        broker.start_services()  # delivers retries
        with Producer("shop", brokers=[broker]) as producer:
            producer.send(Message("Orders", b"ann 30", keys="order-1"))
            producer.send(Message("Orders", b"bob 50", keys="order-2"))
        consumer = PushConsumer("billing", brokers=[broker])
        consumer.subscribe("Orders")
        consumer.register_message_listener(listen)
        with consumer:
            all_charged.wait(30)
        print(f"balances: {balances}")
        for (group, topic), offsets in sorted(broker.consumer_offsets().items()):
            print(f"{group} has consumed {sum(offsets.values())} of {topic}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
