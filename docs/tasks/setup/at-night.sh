# A shop at night: at 40 minutes before now a new version of billing was started. It lost some orders
# to a bank that did not answer, and ended 20 minutes later. Shipping and mailer keep up.
set -eu
repository=$(realpath "$0")
repository=${repository%/docs/tasks/setup/*}  # whose tests/ it uses
rmqctl store init ./store --small --quiet > broker.conf
PYTHONPATH=$repository python - <<'PYTHON'
import time
from pathlib import Path

from broker.api.offsets import OffsetCommit
from broker.api.send_back import SendBackRequest
from broker.embedded.broker import EmbeddedBroker
from broker.api.failure_reason import failure_properties
from storage.configs.offset_samples import OffsetSamples
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import TopicConfig
from storage.format.message import Message

MINUTE = 60_000
NOW = time.time_ns() // 1_000_000 // 1000 * 1000
BEGIN, ENDED = NOW - 42 * MINUTE, NOW - 22 * MINUTE
TIMEOUT = TimeoutError("no answer from bank.example within 5 s")
OTHER = KeyError("iban")
clock = NOW - 122 * MINUTE
number = 0
stored = {"orders": [], "mails": []}  # the time and the queue of each message
failed = []
with EmbeddedBroker.open(Path("store"), clock=lambda: clock) as broker:
    broker.update_topic(TopicConfig("orders", 4, 4))
    broker.update_topic(TopicConfig("mails", 2, 2))
    for group in ("billing", "shipping", "mailer"):
        broker.update_group(SubscriptionGroupConfig(group))
    while clock < NOW - 15_000:
        number += 1
        tag = "paid" if number % 4 else "new"
        body = '{"order": %d, "sum": %d}' % (number, number * 7 % 90 + 10)
        message = Message("orders", body.encode(), tags=tag, keys=f"order-{number}")
        broker.send(message, number % 4)
        stored["orders"].append((clock, number % 4))
        if BEGIN <= clock < ENDED and number % 5 == 0:
            failed.append((number % 4, len(failed)))
            units = sum(1 for at, queue in stored["orders"] if queue == number % 4)
            (found,) = broker.view.get_message("orders", number % 4, units - 1, 1).messages
            why = failure_properties(OTHER if number % 35 == 0 else TIMEOUT, "10.0.0.7@811", clock)
            broker.send_message_back(
                SendBackRequest(
                    "billing", "orders", found.commitlog_offset, found.msg_id, -1, failure=why
                )
            )
        if number % 10 == 0:
            broker.send(Message("mails", b"your order %d" % number), number // 10 % 2)
            stored["mails"].append((clock, number // 10 % 2))
        clock += 20_000 if clock < NOW - 30 * MINUTE else 10_000
    clock = NOW

    def read(topic, until):
        """The offsets of a group that has read what was stored before a time."""
        offsets = {}
        for at, queue in stored[topic]:
            offsets[queue] = offsets.get(queue, 0) + (at < until)
        return offsets

    samples = OffsetSamples(Path("store"))
    for minute in range(62, -1, -1):
        at = NOW - minute * MINUTE
        committed = {
            "orders@billing": read("orders", min(at, ENDED)),
            "orders@shipping": read("orders", at),
            "mails@mailer": read("mails", at),
        }
        samples.append(committed, {topic: read(topic, at) for topic in stored}, at)
    for key, offsets in committed.items():
        topic, _, group = key.partition("@")
        commits = [OffsetCommit(topic, queue, offset) for queue, offset in offsets.items()]
        broker.update_consumer_offsets(group, commits)
PYTHON
export TZ=UTC
