"""Messages that differ in everything a record can differ in, for each writer."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from storage.config import StoreConfig
from storage.format.delay import delay_ms, parse_delay_levels
from storage.format.encode import MessageInner
from storage.format.host import pack_host
from storage.format.message import SCHEDULE_TOPIC
from storage.format.properties import encode_properties
from tests.interop.store_probe import Row, Settings, java_message

SMALL_FILES: Settings = {
    "mappedFileSizeCommitLog": 16384,
    "mappedFileSizeConsumeQueue": 200,
    "maxHashSlotNum": 16,
    "maxIndexNum": 250,
}
"""Files so small that the samples need several of each kind.

Index files not so small that Java fills one within a millisecond: it names them after the time, and
loses the first of two of the same name.
"""

DEFAULT_FILES: Settings = {}
"""Files as long as a broker makes them by default."""

COMPRESSED_ZLIB = 0x301
"""sysFlag of a body compressed by zlib, with type bits."""
MULTI_TAGS = 0x2
PREPARED, COMMITTED, ROLLED_BACK = 0x4, 0x8, 0xC
"""sysFlag of the records of a transaction; only committed ones get into a queue."""


def our_config(settings: Settings) -> StoreConfig:
    """Give the sizes of `settings` in our words; the rest are the defaults of both."""
    ours = {
        "mappedFileSizeCommitLog": "mapped_file_size_commit_log",
        "mappedFileSizeConsumeQueue": "mapped_file_size_consume_queue",
        "maxHashSlotNum": "max_hash_slot_num",
        "maxIndexNum": "max_index_num",
    }
    return StoreConfig().with_(**{ours[name]: value for name, value in settings.items()})


@dataclass(frozen=True, slots=True)
class Sample:
    """A message to write and the body that a reader must see."""

    topic: str
    queue_id: int
    body: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    compressed: bool = False
    other_flags: int = 0
    flag: int = 0
    born_timestamp: int = 1_700_000_000_000
    born_host: str = "127.0.0.1:50001"
    store_host: str = "127.0.0.1:10911"
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0

    @property
    def number(self) -> int:
        """Which of the samples it is."""
        return int(self.properties["n"])

    @property
    def stored_body(self) -> bytes:
        """The body as it is put into the store."""
        return zlib.compress(self.body, 5) if self.compressed else self.body

    @property
    def sys_flag(self) -> int:
        """The sysFlag that goes with `stored_body`, without the bits of IPv6 hosts."""
        return self.other_flags | (COMPRESSED_ZLIB if self.compressed else 0)

    @property
    def queued(self) -> bool:
        """Whether a consumer ever sees it."""
        return self.sys_flag & ROLLED_BACK in (0, COMMITTED)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys that the index finds it by."""
        return (self.properties["UNIQ_KEY"], *self.properties.get("KEYS", "").split())

    @property
    def delay_level(self) -> int:
        """The level it is delayed by, 0 for none."""
        return int(self.properties.get("DELAY", "0"))

    def java_message(self) -> Row:
        """Describe it to a `StoreProbe`."""
        return java_message(
            self.topic,
            self.queue_id,
            self.stored_body,
            self.properties,
            flag=self.flag,
            sysFlag=self.sys_flag,
            bornTimestamp=self.born_timestamp,
            bornHost=self.born_host,
            storeHost=self.store_host,
            reconsumeTimes=self.reconsume_times,
            preparedTransactionOffset=self.prepared_transaction_offset,
        )

    def inner(self) -> MessageInner:
        """Make what our broker would hand to our store: a delayed one goes where it waits."""
        topic, queue_id = self.topic, self.queue_id
        properties = dict(self.properties)
        if self.delay_level:
            properties |= {"REAL_TOPIC": topic, "REAL_QID": str(queue_id)}
            topic, queue_id = SCHEDULE_TOPIC, self.delay_level - 1
        return MessageInner(
            topic,
            queue_id,
            self.stored_body,
            encode_properties(properties),
            self.born_timestamp,
            pack_host(self.born_host),
            pack_host(self.store_host),
            self.flag,
            self.sys_flag,
            self.reconsume_times,
            self.prepared_transaction_offset,
            properties.get("TAGS"),
            self.keys,
            self.delay_level,
            delay_of(self.delay_level),
        )


def delay_of(level: int) -> int:
    """Give the delay of a level in ms, -1 for none."""
    levels = parse_delay_levels(StoreConfig().message_delay_level)
    return delay_ms(level, levels) if level else -1


# Tags and keys of equal Java hash, of hash -2**31 and of a negative one; text beyond the BMP.
_TAGS = ("TagA", "Aa", "BB", "polygenelubricants", "TagA||TagB", "\u4e2d\u6587", "")
_KEYS = ("AaBB", "BBAa", "order-17 order-18", "\u8ba2\u5355", "a b c d", "")
_TOPICS = (("Orders", 4), ("a-b_c|d%e", 1), ("T" * 127, 2))
_TYPES = (PREPARED, COMMITTED, ROLLED_BACK)


def samples(count: int = 120, *, first: int = 0) -> list[Sample]:
    """Give `count` messages over three topics, all of which get into a queue; always the same."""
    return [_sample(i) for i in range(first, first + count)]


def special_samples(*, first: int) -> list[Sample]:
    """Give messages with delay, IPv6 hosts, retries and the records of transactions."""
    plain = [_sample(first + i) for i in range(14)]
    short = {"UNIQ_KEY": "0" * 32, "n": str(first + 13)}
    return [
        replace(plain[0], properties={**plain[0].properties, "DELAY": "3"}),
        replace(plain[1], properties={**plain[1].properties, "DELAY": "18"}),
        replace(plain[2], born_host="[2001:db8::1]:50001"),
        replace(plain[3], store_host="[::1]:10911"),
        replace(plain[4], born_host="[fe80::1:2]:1", store_host="[2001:db8::ff]:65535"),
        replace(plain[5], reconsume_times=3, flag=-7),
        replace(plain[6], other_flags=MULTI_TAGS),
        replace(plain[7], other_flags=PREPARED),
        replace(plain[8], other_flags=COMMITTED, prepared_transaction_offset=1 << 40),
        replace(plain[9], other_flags=ROLLED_BACK, prepared_transaction_offset=4096),
        replace(plain[10], other_flags=COMMITTED, compressed=True),
        replace(plain[11], body=b"\0" * 3000, compressed=True),
        replace(plain[12], body=b""),
        replace(plain[13], properties={**short, "x": "\u20ac" * 2000}),
    ]


def _sample(i: int) -> Sample:
    topic, queues = _TOPICS[i % 3]
    properties = {"UNIQ_KEY": f"7F000001000A18B4AAC2{i:012X}", "n": str(i)}
    if tags := _TAGS[i % len(_TAGS)]:
        properties["TAGS"] = tags
    if keys := _KEYS[i % len(_KEYS)]:
        properties["KEYS"] = keys
    if i % 5 == 0:
        properties["\u5730\u533a"] = f"\U0001f680 {i} = ; & \t"
    body = f"message {i} ".encode() * (i * 37 % 90)
    return Sample(
        topic,
        i // 3 % queues,
        body,
        properties,
        compressed=i % 8 == 3,
        flag=i % 4,
        born_timestamp=1_700_000_000_000 + i,
    )
