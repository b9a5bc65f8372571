"""Terms of RocketMQ and of rmqctl that no docstring explains."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Word(NamedTuple):
    """A term: its meaning, other names, related commands."""

    text: str
    also: tuple[str, ...] = ()
    see: tuple[str, ...] = ()


WORDS: Final[Mapping[str, Word]] = {
    "consent": Word(
        "The same for every command that changes something. -n shows the plan. On a terminal the "
        "plan is shown, and you are asked. -y answers yes. Without a terminal and without -y the "
        "plan is shown and the exit code is 7. What destroys messages or groups also needs "
        "--confirm NAME, or the name is typed. Standard output has one table: the result, or the "
        "plan if nothing was done. --execute has no effect.",
        ("confirmation", "confirm", "plan", "execute", "yes", "dry run"),
        ("offset reset", "dlq redrive", "topic delete", "store repair"),
    ),
    "topic": Word(
        "A named stream of messages, divided into queues. Its settings are in config/topics.json.",
        (),
        ("topic list", "topic create"),
    ),
    "queue": Word(
        "A part of a topic, numbered from 0. The messages of a queue are ordered and numbered "
        "by their queue offset. The members of a group divide the queues among them.",
        ("message queue", "queue_id", "partition"),
        ("topic queues",),
    ),
    "queue offset": Word(
        "The number of a message within its queue, from 0. It is not reused after the message "
        "is deleted.",
        ("offset", "min_offset", "max_offset"),
        ("topic queues", "message get"),
    ),
    "committed offset": Word(
        "The progress of a group in a queue: the queue offset that it reads next. It does not "
        "prove that earlier messages were processed. Java brokers store it in "
        "config/consumerOffset.json.",
        ("progress", "consumer offset"),
        ("offset inspect", "offset list"),
    ),
    "commit log": Word(
        "The log with the messages of all topics in the order of storing, in files of 1 GiB "
        "named by their first position. Queues and index can be rebuilt from it.",
        ("log position",),
        ("store info", "store dump"),
    ),
    "consume queue": Word(
        "The files of a queue. A message has a unit of 20 bytes: its position in the commit "
        "log, its length, and a hash of its tag.",
        ("unit", "cq"),
        ("store dump", "store fsck"),
    ),
    "index file": Word(
        "A hash table on disk from the keys and unique ids of messages to their positions.",
        ("index",),
        ("message query", "store dump"),
    ),
    "checkpoint": Word(
        "A small file with the times up to which log, queues and index are on the device. "
        "Recovery starts there.",
        (),
        ("store info",),
    ),
    "abort file": Word(
        "The file abort exists while a writer has the store open. One that is left over is "
        "the sign of a crash; the next writer recovers the store.",
        ("abort",),
        ("store info",),
    ),
    "group": Word(
        "Consumers that share their progress: one member gets each message. Every group gets "
        "all messages of its topics.",
        ("consumer group",),
        ("group list", "group clients"),
    ),
    "tag": Word(
        "A word on a message to filter by; subscriptions are 'a || b' or '*'. The queue has "
        "its hash, so messages with other tags are skipped without reading them.",
        ("tags", "subscription expression"),
        ("consume", "message query"),
    ),
    "key": Word(
        "A word on a message to find it by, such as an order number. Several keys are "
        "separated by blanks. Keys are indexed.",
        ("keys",),
        ("message query",),
    ),
    "unique id": Word(
        "The id that the producer gives a message (property UNIQ_KEY): 32 hex digits with "
        "address, process, time and a counter. Retries and dead letters keep it.",
        ("msg_id", "UNIQ_KEY", "message id"),
        ("message get", "message decode-id"),
    ),
    "offset id": Word(
        "The id that the broker gives a record: the broker's address and the record's position "
        "in the commit log, in hex.",
        ("offset_msg_id",),
        ("message get", "message decode-id"),
    ),
    "retry topic": Word(
        "The topic %RETRY%GROUP for messages that a member of the group could not consume. They "
        "are delivered again after a delay that grows with each attempt.",
        ("%RETRY%", "retry", "retries"),
        ("retry browse", "retry agenda"),
    ),
    "dead letter": Word(
        "A message whose retries (16 by default) all failed. It is stored in the topic "
        "%DLQ%GROUP, which no consumer reads automatically.",
        ("DLQ", "%DLQ%", "dead letter queue", "dead letters"),
        ("dlq list", "dlq browse", "dlq redrive"),
    ),
    "reconsume times": Word(
        "How often a message was sent back so far: 0 at its first consumption.",
        ("reconsume_times", "attempts"),
        ("retry browse",),
    ),
    "half message": Word(
        "A message of a transaction that has not ended yet: stored, but not consumable. The "
        "broker checks the outcome with its producer (RMQ_SYS_TRANS_HALF_TOPIC).",
        ("transaction", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"),
        ("broker status",),
    ),
    "delayed message": Word(
        "A message for later delivery. It is stored in SCHEDULE_TOPIC_XXXX, which has a queue "
        "per delay level, until it is due and a process runs the broker's services.",
        ("SCHEDULE_TOPIC_XXXX", "delay"),
        ("produce", "broker start", "retry agenda"),
    ),
    "rebalance": Word(
        "Dividing the queues of a topic among the members of a group, when a member joins or "
        "leaves.",
        (),
        ("group clients",),
    ),
    "broadcasting": Word(
        "Every member of the group gets every message and keeps its own progress in a file.",
        ("broadcast",),
        ("consume",),
    ),
    "orderly": Word(
        "Consuming a queue one message at a time, under a lock that one member holds. A "
        "message that fails blocks those after it.",
        (),
        ("consume",),
    ),
    "lag": Word(
        "The number of messages between a group's progress and the end of the queue, including "
        "deleted ones. As a time: the age of the oldest unread message.",
        ("backlog", "diff", "accumulation"),
        ("lag show", "lag histogram", "lag watch"),
    ),
    "console": Word(
        "The full screen of a store, live: what needs attention, groups, topics, messages, dead "
        "letters, the disk. Its rows are those of commands, and the line above the keys names the "
        "command. The setting console_write = never forbids changes, console_copy = file copies "
        "into a file where the terminal has no clipboard.",
        ("ui", "tui", "dashboard", "full screen", "console_copy"),
        ("console", "lag watch"),
    ),
    "READ ONLY": Word(
        "The console opens read only: no key changes the store. CHANGES ON says that changes "
        "were turned on, by --write or by ':write NAME' with the name of the store; each is a "
        "plan first, and is done once the name of the group or the store has been typed.",
        ("CHANGES ON", "console_write"),
        ("console",),
    ),
    "trend": Word(
        "In the console: the lag of the last hour, a bar for each span of time, from the samples "
        "of the store and the looks of the console. A blank is a time at which nothing was "
        "looked at.",
        ("lag trend", "30 MIN", "1 h"),
        ("console", "lag watch", "lag show"),
    ),
    "heat map": Word(
        "In the console: a cell for each queue that a group reads, darker for a larger lag. "
        "x: the group has no progress there; ?: the lag is unknown.",
        ("map of queues", "heatmap"),
        ("console", "lag show"),
    ),
    "TBW102": Word(
        "The topic whose settings apply to a topic that is created by sending to it: 4 queues.",
        ("auto create",),
        ("topic create",),
    ),
    "perm": Word(
        "The permissions of a topic: 6 read and write, 4 read only, 2 write only.",
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
        "Records of when a message was sent and consumed, by which client, and how long it "
        "took. Clients with tracing enabled write them to RMQ_SYS_TRACE_TOPIC.",
        ("trace",),
        ("message trace",),
    ),
    "nearest49": Word(
        "RocketMQ 4.9's rule for a time: the message stored nearest to it, before or after; the "
        "last message for a time past the end.",
        ("boundary",),
        ("resetOffsetByTime", "offset reset"),
    ),
    "change journal": Word(
        "Lines in <store>/rmqctl/journal/ for every change of progress and settings, with the "
        "old values, written before the change.",
        ("journal", "change id", "change_id"),
        ("offset history", "audit list", "offset undo"),
    ),
    "shared page": Word(
        "A mapped file, <store>/rmqctl/shared, with which the processes that have a store open "
        "share the ends of its log and queues.",
        (),
        ("store dump",),
    ),
    "name server": Word(
        "The process from which RocketMQ's clients get the addresses of brokers. rmqctl has "
        "none: the folder of the store is the address.",
        ("namesrv", "NAMESRV_ADDR"),
        ("mqadmin",),
    ),
    "consumerOffset.json": Word(
        "The file in which Java brokers store the progress of groups (<store>/config/). rmqctl "
        "stores progress in <store>/rmqctl/offsets.log and writes this file from it.",
        ("offsets.log", "offsets.json"),
        ("offset inspect", "store dump"),
    ),
    "topics.json": Word(
        "The settings of topics: queues, permissions (<store>/config/).",
        (),
        ("topic describe", "store dump"),
    ),
    "subscriptionGroup.json": Word(
        "The settings of groups: retries, whether they may consume (<store>/config/).",
        (),
        ("group describe", "store dump"),
    ),
    "delayOffset.json": Word(
        "The delivery progress of each delay level (<store>/config/).",
        (),
        ("broker status", "store dump"),
    ),
}
