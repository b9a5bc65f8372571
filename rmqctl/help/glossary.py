"""RocketMQ's words, and ours, in a few sentences each: those that no docstring explains."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Word(NamedTuple):
    """A word: what it means, what else it is called, which commands have to do with it."""

    text: str
    also: tuple[str, ...] = ()
    see: tuple[str, ...] = ()


WORDS: Final[Mapping[str, Word]] = {
    "topic": Word(
        "A name that messages are sent to and read from. It is divided into queues; its "
        "settings stand in config/topics.json.",
        (),
        ("topic list", "topic create"),
    ),
    "queue": Word(
        "A part of a topic, numbered from 0. Messages of one queue have an order and are "
        "numbered by their queue offset; a group's members divide the queues among them.",
        ("message queue", "queue_id", "partition"),
        ("topic queues",),
    ),
    "queue offset": Word(
        "The number of a message within its queue, from 0 on. Never used twice, also after the "
        "message is deleted.",
        ("offset", "min_offset", "max_offset"),
        ("topic queues", "message get"),
    ),
    "committed offset": Word(
        "How far a group is in a queue: the queue offset that it reads next. It says read past, "
        "not done. Java brokers keep it in config/consumerOffset.json.",
        ("progress", "consumer offset"),
        ("offset inspect", "offset list"),
    ),
    "commit log": Word(
        "The one log that holds the messages of all topics in the order in which they came, in "
        "files of 1 GiB that are named by their first position. All else can be made again from "
        "it.",
        ("log position",),
        ("store info", "store dump"),
    ),
    "consume queue": Word(
        "The files of a queue: 20 bytes a message, a unit, with its position in the commit log, "
        "its length, and a hash of its tag.",
        ("unit", "cq"),
        ("store dump", "store fsck"),
    ),
    "index file": Word(
        "A hash table on disk from the keys and unique ids of messages to their positions.",
        ("index",),
        ("message query", "store dump"),
    ),
    "checkpoint": Word(
        "A small file that says up to which time log, queues and index are on the device: "
        "recovery begins there.",
        (),
        ("store info",),
    ),
    "abort file": Word(
        "The file abort is there while a writer has the store open; one that is left over tells "
        "of a crash, and the next writer recovers.",
        ("abort",),
        ("store info",),
    ),
    "group": Word(
        "Consumers that share their progress: of each message one member gets it. Each group "
        "gets all messages of its topics.",
        ("consumer group",),
        ("group list", "group clients"),
    ),
    "tag": Word(
        "One word on a message to filter by; subscriptions are 'a || b' or '*'. The queue holds "
        "its hash, so others are passed over without reading them.",
        ("tags", "subscription expression"),
        ("consume", "message query"),
    ),
    "key": Word(
        "A word on a message to find it by, such as an order's number; several are divided by "
        "blanks. They are indexed.",
        ("keys",),
        ("message query",),
    ),
    "unique id": Word(
        "The id that the producer gives a message (property UNIQ_KEY): 32 hex digits that hold "
        "address, process, time and a counter. Retries and dead letters keep it.",
        ("msg_id", "UNIQ_KEY", "message id"),
        ("message get", "message decode-id"),
    ),
    "offset id": Word(
        "The id that the broker gives a record: its own address and the record's position in "
        "the commit log, in hex.",
        ("offset_msg_id",),
        ("message get", "message decode-id"),
    ),
    "retry topic": Word(
        "The topic %RETRY% and the group's name: where messages go that a member could not "
        "consume. They come again after a delay that grows with each attempt.",
        ("%RETRY%", "retry", "retries"),
        ("retry browse", "retry agenda"),
    ),
    "dead letter": Word(
        "A message that failed too often (16 times unless set) goes to the topic %DLQ% and the "
        "group's name. Nobody reads it from there by itself.",
        ("DLQ", "%DLQ%", "dead letter queue", "dead letters"),
        ("dlq list", "dlq browse", "dlq redrive"),
    ),
    "reconsume times": Word(
        "How often a message has been sent back so far: 0 the first time that it is consumed.",
        ("reconsume_times", "attempts"),
        ("retry browse",),
    ),
    "half message": Word(
        "A message of a transaction that is not ended yet: stored, but not to be consumed. The "
        "broker asks its producer what became of it (RMQ_SYS_TRANS_HALF_TOPIC).",
        ("transaction", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"),
        ("broker status",),
    ),
    "delayed message": Word(
        "A message that is delivered later lies in SCHEDULE_TOPIC_XXXX, a queue for each delay "
        "level, until it is due and somebody runs the broker's services.",
        ("SCHEDULE_TOPIC_XXXX", "delay"),
        ("produce", "broker start", "retry agenda"),
    ),
    "rebalance": Word(
        "Dividing a topic's queues among the members of a group, whenever a member comes or goes.",
        (),
        ("group clients",),
    ),
    "broadcasting": Word(
        "Every member of the group gets every message and keeps its own progress in a file.",
        ("broadcast",),
        ("consume",),
    ),
    "orderly": Word(
        "Consuming a queue one message at a time, under a lock that only one member has; one "
        "that fails holds up those behind it.",
        (),
        ("consume",),
    ),
    "lag": Word(
        "Messages between a group's progress and the end of the queue, deleted ones included. "
        "In time: the age of the oldest message that is unread, as it was stored.",
        ("backlog", "diff", "accumulation"),
        ("lag show", "lag histogram", "lag watch"),
    ),
    "TBW102": Word(
        "The topic whose settings a new topic takes that is created by sending to it: 4 queues.",
        ("auto create",),
        ("topic create",),
    ),
    "perm": Word(
        "What may be done with a topic: 6 read and write, 4 read only, 2 write only.",
        ("permission",),
        ("topic alter",),
    ),
    "system topic": Word(
        "A topic that RocketMQ itself uses, such as SCHEDULE_TOPIC_XXXX, RMQ_SYS_TRACE_TOPIC or "
        "those of transactions.",
        ("RMQ_SYS_TRACE_TOPIC",),
        ("topic list",),
    ),
    "message trace": Word(
        "Records of when a message was sent and consumed, by whom and how long it took, that "
        "clients write to RMQ_SYS_TRACE_TOPIC if they are told to.",
        ("trace",),
        ("message trace",),
    ),
    "nearest49": Word(
        "RocketMQ 4.9's rule for a time: the message stored nearest to it, before or after, and "
        "the last message for a time behind the end.",
        ("boundary",),
        ("resetOffsetByTime", "offset reset"),
    ),
    "change journal": Word(
        "Lines in <store>/rmqctl/journal/ that tell of every change of progress and settings, "
        "with the old values, written before the change.",
        ("journal", "change id", "change_id"),
        ("offset history", "audit list", "offset undo"),
    ),
    "shared page": Word(
        "A mapped file, <store>/rmqctl/shared, through which the processes that have a store "
        "open know the ends of its log and queues without asking each other.",
        (),
        ("store dump",),
    ),
    "name server": Word(
        "The process that tells RocketMQ's clients where the brokers are. There is none here: "
        "the store's folder is the address.",
        ("namesrv", "NAMESRV_ADDR"),
        ("mqadmin",),
    ),
    "consumerOffset.json": Word(
        "Where Java brokers keep the progress of groups (<store>/config/). rmqctl keeps its own "
        "truth in <store>/rmqctl/offsets.json and writes this file from it.",
        ("offsets.json",),
        ("offset inspect", "store dump"),
    ),
    "topics.json": Word(
        "The settings of topics: queues, permissions (<store>/config/).",
        (),
        ("topic describe", "store dump"),
    ),
    "subscriptionGroup.json": Word(
        "The settings of groups: attempts, whether they may consume (<store>/config/).",
        (),
        ("group describe", "store dump"),
    ),
    "delayOffset.json": Word(
        "How far each delay level has been delivered (<store>/config/).",
        (),
        ("broker status", "store dump"),
    ),
}
