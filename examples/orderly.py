"""The steps of an order, in sequence: created, paid, finished, also after failures.

    python examples/orderly.py ./empty-folder

Messages of one order go to one queue (its id's hash chooses it), and each queue has one thread at a
time. A step that fails suspends its queue: it is tried again in place, and later steps wait.
"""

import sys
import threading
from collections import defaultdict
from pathlib import Path

from rmqctl import (
    SMALL_STORE,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    EmbeddedBroker,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    select_by_hash,
)

STEPS = ("created", "paid", "finished")
ORDERS = [f"order-{number}" for number in range(1, 7)]

lives: dict[str, list[str]] = defaultdict(list)
failed = threading.Event()
done = threading.Event()


def listen(
    messages: tuple[MessageExt, ...], context: ConsumeOrderlyContext
) -> ConsumeOrderlyStatus:
    """Process one step of one order. The payment of order-3 fails the first time."""
    for message in messages:
        order, step = message.keys[0], message.body.decode()
        if (order, step) == ("order-3", "paid") and not failed.is_set():
            failed.set()
            lives[order].append("(paid failed)")
            context.suspend_current_queue_time_millis = 50
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        lives[order].append(step)
        if sum(map(len, lives.values())) == len(ORDERS) * len(STEPS) + 1:
            done.set()
    return ConsumeOrderlyStatus.SUCCESS


def main(folder: Path) -> None:
    """Send the steps of all orders, mixed; print each order's steps as the listener got them."""
    with EmbeddedBroker.open(folder, store_config=SMALL_STORE, create=True) as broker:
        with Producer("shop", brokers=[broker]) as producer:
            for step in STEPS:
                for order in ORDERS:
                    message = Message("OrderSteps", step.encode(), keys=order)
                    producer.send(message, selector=select_by_hash, arg=order)
        consumer = PushConsumer("warehouse", brokers=[broker])
        consumer.subscribe("OrderSteps")
        consumer.register_message_listener_orderly(listen)
        with consumer:
            done.wait(30)
        for order in ORDERS:
            print(f"{order}: {' -> '.join(lives[order])}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
