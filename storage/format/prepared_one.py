"""One plain record ready to be appended: the commonest batch, and the one where each step counts.

It is encoded when its place is known, so that no field is written twice. The columns of
PreparedRecords are made only if somebody asks for them (to roll a file, for a new queue).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .layout import HEADS, MESSAGE_MAGIC_V1
from .prepared import PreparedRecords

if TYPE_CHECKING:
    from .encode import MessageInner

_V6_BITS: Final = 0x30


class PreparedOne(PreparedRecords):
    """A record that gets a unit with its tag's hash: no transaction, no delay.

    ``size`` is the record's bytes.
    """

    __slots__ = ("_hosts", "_topic", "body_crc", "message", "size")

    def __init__(
        self, message: MessageInner, topic_field: bytes, hosts: int, size: int, body_crc: int
    ) -> None:
        """Take what has been checked and computed; ``hosts`` are the IPv6 bits, shifted by 4."""
        self.message = message
        self._topic = topic_field
        self._hosts = hosts
        self.size = size
        self.body_crc = body_crc

    def __len__(self) -> int:
        return 1

    def __getattr__(self, name: str) -> Any:
        """Make the columns; called for a slot that is not set yet."""
        if name not in PreparedRecords.__slots__:
            raise AttributeError(name)
        from .encode import cached_tags_code, index_hashes

        message = self.message
        hashes = index_hashes(message.topic, message.keys)
        super().__init__(
            bytearray(self.encode(0, 0, 0)),
            (0,),
            (self.size,),
            [(message.topic, message.queue_id)],
            None,
            None,
            (cached_tags_code(message.tags),),
            None,
            hashes,
            len(hashes),
        )
        return object.__getattribute__(self, name)

    def largest(self) -> int:
        """Give the bytes of the record."""
        return self.size

    def encode(self, queue_offset: int, commitlog_offset: int, store_timestamp: int) -> bytes:
        """Give the record's bytes for its place."""
        (
            _,
            queue_id,
            body,
            properties,
            born_timestamp,
            born_host,
            store_host,
            flag,
            sys_flag,
            reconsume_times,
            prepared_transaction_offset,
            _,
            _,
            _,
            _,
        ) = self.message
        hosts = self._hosts
        return b"".join(
            (
                HEADS[hosts].pack(
                    self.size,
                    MESSAGE_MAGIC_V1,
                    self.body_crc,
                    queue_id,
                    flag,
                    queue_offset,
                    commitlog_offset,
                    sys_flag & ~_V6_BITS | hosts << 4,
                    born_timestamp,
                    born_host,
                    store_timestamp,
                    store_host,
                    reconsume_times,
                    prepared_transaction_offset,
                    len(body),
                ),
                body,
                self._topic,
                len(properties).to_bytes(2, "big"),
                properties,
            )
        )

    def split(self, limit: int) -> tuple[PreparedRecords, PreparedRecords | None]:
        """Divide as PreparedRecords does: all or nothing."""
        if self.size <= limit:
            return self, None
        return PreparedRecords(bytearray(), (), (), self.queues, None, None, (), None, [], 0), self
