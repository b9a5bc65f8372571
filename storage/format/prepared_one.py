"""One plain record ready to be appended: the most frequent batch.

It is encoded when its log offset is known, so that no field is written twice. The columns of
PreparedRecords are made on first use (to roll a file, for a new queue).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .prepared import PreparedRecords

if TYPE_CHECKING:
    from .encode import MessageInner


class PreparedOne(PreparedRecords):
    """A record that gets a unit with its tag's hash: no transaction, no delay.

    ``size`` is the record's bytes.
    """

    __slots__ = ("body_crc", "message", "size")

    def __init__(self, message: MessageInner, size: int, body_crc: int) -> None:
        """Take a message that has been checked, and what was computed of it."""
        self.message = message
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
        """Encode the record for its position in the log."""
        from .encode import record_of

        return record_of(
            self.message, self.body_crc, queue_offset, commitlog_offset, store_timestamp
        )

    def split(self, limit: int) -> tuple[PreparedRecords, PreparedRecords | None]:
        """Divide as PreparedRecords does: all or nothing."""
        if self.size <= limit:
            return self, None
        return PreparedRecords(bytearray(), (), (), self.queues, None, None, (), None, [], 0), self
