"""A store with everything that could break output.

Names as odd as RocketMQ allows, and one that only other programs write; bodies, keys, tags and
properties with control and escape characters, formulas, quotes, pipes; retries, dead letters,
delayed messages, open transactions, traces, moved progress.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

from broker.api.transactions import LocalTransactionState
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from client.producer.config import ProducerConfig
from rmqctl import Message, Producer, TransactionProducer
from storage.config import StoreConfig
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import TopicConfig
from storage.format.encode import MessageInner, prepare
from storage.format.message import MessageExt
from tests.support.dead_letters import deliver, give_back
from tests.support.old_history import extract_history

SIZES: Final = StoreConfig(
    mapped_file_size_commit_log=256 << 10,
    mapped_file_size_consume_queue=500 * 20,
    max_hash_slot_num=100,
    max_index_num=2_000,
    min_free_bytes=0,
)

TEXTS: Final = (
    "plain",
    "\x1b[31mred\x1b[0m and \x1b]0;title\x07",
    "bell\x07 nul\x00 del\x7f",
    "C1 \x9b31m and \x85 next line",
    "tab\tline\nreturn\r\nend",
    "\\n is no newline, \\\\ no backslash",
    '=1+1, "quoted", a;b',
    "@SUM(A1:A9)|cmd",
    "-2+3",
    "| a | b |",
    "`ls` $(ls) ; rm '*'",
    "\u65e5\u672c\u8a9e \U0001f680 \u00e9\u0301",
    "\u202eright to left\u2066",
    "two\u2028lines\u2029here",
    "  blanks around  ",
    "null",
    "true",
    "1e5",
    "0123",
    "- yaml: [1, {a: b}] # no comment",
    "<b>&amp;</b> **bold** _it_",
    "%s %d {x} \\x41",
    "x" * 300,
)
"""What stands in bodies, keys, tags and properties."""

TOPIC: Final = "orders"
TOPICS: Final = ("-leading", "%odd%|name", "T" * 127)
FOREIGN_TOPIC: Final = "\u4e3b\u9898\U0001f680"
"""RocketMQ refuses such a name today, but readers must not care."""
GROUP: Final = "readers"
GROUPS: Final = ("-group", "%g|x", "G" * 120)
FAR: Final = (1 << 53) + 1
"""An offset that a float cannot hold."""


class Rich(NamedTuple):
    """The store, and what of it commands are called with."""

    root: Path
    now_ms: int
    """A moment after everything was stored."""
    words: dict[str, str]
    """Ids and the like, for the lines of a table of commands."""


def make_rich_store(root: Path, started_ms: int) -> Rich:
    """Make it in a folder that is not there yet, stored within the minutes after a time."""
    clock = [started_ms]
    create_store(root, SIZES, clock=lambda: clock[0])
    words: dict[str, str] = {}
    with EmbeddedBroker.open(root, clock=lambda: clock[0]) as broker:
        for topic in (TOPIC, *TOPICS):
            broker.update_topic(TopicConfig(topic, 2, 2))
        for group in (GROUP, *GROUPS):
            broker.update_group(SubscriptionGroupConfig(group))
        stored = [_send(broker, _message(TOPIC, number, text)) for number, text in enumerate(TEXTS)]
        clock[0] += 60_000
        stored += [_send(broker, _message(topic, 0, TEXTS[1])) for topic in TOPICS]
        broker.send(Message(TOPIC, bytes(range(256)), tags="binary"), 1)
        broker.send(Message(TOPIC, b"later", delay_time_level=18), 0)
        _put_foreign(broker, clock[0])
        _fail(broker, stored)
        clock[0] += 60_000
        deliver(broker, clock[0])
        _transact(broker)
        words["traced"] = _trace(broker)
        _move(broker)
        words |= {
            "msg_id": stored[1].msg_id,
            "offset_id": stored[1].offset_msg_id,
            "key": stored[1].keys[0],
            "dead_id": stored[2].msg_id,
            "retry_id": stored[4].msg_id,
            "log": f"commitlog/{0:020d}",
            "queue": f"consumequeue/{TOPIC}/0/{0:020d}",
            "store": str(root),
            "foreign": FOREIGN_TOPIC,
            "longest": TOPICS[-1],
        }
    plan = root.parent / "offsets.csv"
    plan.write_text(f"{GROUP},{TOPIC},0,7\n{GROUP},{TOPIC},1,1\n")
    words["offsets"] = str(plan)
    words["exported"] = str(root.parent / "exported.jsonl")
    words["history"] = str(extract_history(root.parent))
    clock[0] += 60_000
    return Rich(root, clock[0], words)


def _message(topic: str, number: int, text: str) -> Message:
    properties = {"note": text, f"name {text}"[:60]: "v", "number": str(number)}
    key = "_".join(text.split())
    keys = [key, "all"]
    return Message(topic, text.encode(), tags=text, keys=keys, flag=number, properties=properties)


def _send(broker: EmbeddedBroker, message: Message) -> MessageExt:
    sent = broker.send(message, 0)
    found = broker.view.get_message(message.topic, 0, sent.queue_offset, 1).messages
    return found[0]


def _put_foreign(broker: EmbeddedBroker, now: int) -> None:
    host = bytes((127, 0, 0, 1, 0, 0, 42, 159))
    assert broker.store is not None
    broker.store.put(prepare((MessageInner(FOREIGN_TOPIC, 0, b"from afar", b"", now, host, host),)))


def _fail(broker: EmbeddedBroker, stored: list[MessageExt]) -> None:
    """Dead letters with odd reasons and without any; retries that wait and that are ready."""
    for group in (GROUP, *GROUPS):
        for message, why in zip(stored[1:4], (TEXTS[1], TEXTS[4], None), strict=True):
            give_back(broker, group, message, why=why)
        give_back(broker, group, stored[4], level=1, why=TEXTS[7])
        give_back(broker, group, stored[5], level=18, why=TEXTS[3])


class _NeverSure:
    def execute_local_transaction(self, message: Message, arg: Any) -> LocalTransactionState:
        return LocalTransactionState.UNKNOW

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.UNKNOW


def _transact(broker: EmbeddedBroker) -> None:
    producer = TransactionProducer("shop", _NeverSure(), brokers=[broker])
    with producer:
        producer.send_message_in_transaction(Message(TOPIC, b"half", keys="half-1"))


def _trace(broker: EmbeddedBroker) -> str:
    config = ProducerConfig(enable_msg_trace=True)
    with Producer("traced|%", brokers=[broker], config=config) as producer:
        return producer.send(Message(TOPIC, b"traced", keys="traced-1", tags="a b")).msg_id


def _move(broker: EmbeddedBroker) -> None:
    note = {"command": "offset reset", "user": TEXTS[1], "host": "h", "reason": TEXTS[4]}
    for group in (GROUP, *GROUPS):
        broker.progress.move(group, {(TOPIC, 0): 3, (TOPIC, 1): 0}, note)
    broker.progress.move(GROUP, {("-leading", 0): FAR}, {**note, "reason": TEXTS[6]})
