"""A program that charges orders: `python billing.py STORE`. Its tests are in `test_billing.py`."""

import json
import sys

from rmqctl import ConsumeConcurrentlyStatus, Message, PushConsumer

balances = {"ann": 100, "bob": 10}


def charge(messages, context):
    """The listener: an order that cannot be paid comes again; what is no order is passed over."""
    for message in messages:
        try:
            order = json.loads(message.body)
            customer, amount = order["customer"], order["sum"]
        except (ValueError, KeyError):
            continue
        if balances[customer] < amount:
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        balances[customer] -= amount
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def order(customer, amount):
    """The message of an order."""
    return Message("orders", json.dumps({"customer": customer, "sum": amount}).encode(), tags="new")


if __name__ == "__main__":
    consumer = PushConsumer.open(sys.argv[1], "billing", create=True)
    consumer.subscribe("orders", "new")
    consumer.register_message_listener(charge)
    with consumer:
        input("Enter ends it\n")
