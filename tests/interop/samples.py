"""Messages that differ in everything a record can differ in, for whoever writes them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.interop.store_probe import Row, Settings, java_message

SMALL_FILES: Settings = {
    "mappedFileSizeCommitLog": 16384,
    "mappedFileSizeConsumeQueue": 200,
    "maxHashSlotNum": 16,
    "maxIndexNum": 40,
}
"""Files so small that the samples need several of each kind."""

COMPRESSED_ZLIB = 0x301
"""sysFlag of a body compressed by zlib, with type bits."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A message to write and the body that a reader must see."""

    topic: str
    queue_id: int
    body: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    compressed: bool = False

    @property
    def stored_body(self) -> bytes:
        """The body as it is put into the store."""
        return zlib.compress(self.body, 5) if self.compressed else self.body

    @property
    def sys_flag(self) -> int:
        """The sysFlag that goes with `stored_body`."""
        return COMPRESSED_ZLIB if self.compressed else 0

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys that the index finds it by."""
        return (self.properties["UNIQ_KEY"], *self.properties.get("KEYS", "").split())

    def java_message(self) -> Row:
        """Describe it to a `StoreProbe`."""
        return java_message(
            self.topic, self.queue_id, self.stored_body, self.properties, sysFlag=self.sys_flag
        )


# Tags and keys of equal Java hash, of hash -2**31 and of a negative one; text beyond the BMP.
_TAGS = ("TagA", "Aa", "BB", "polygenelubricants", "TagA||TagB", "\u4e2d\u6587", "")
_KEYS = ("AaBB", "BBAa", "order-17 order-18", "\u8ba2\u5355", "a b c d", "")
_TOPICS = (("Orders", 4), ("a-b_c|d%e", 1), ("T" * 127, 2))


def samples(count: int = 120) -> list[Sample]:
    """Give `count` messages over three topics; the same ones at each call."""
    return [_sample(i) for i in range(count)]


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
    return Sample(topic, i // 3 % queues, body, properties, compressed=i % 8 == 3)
