"""Reading a run of messages from a queue: the rules of DefaultMessageStore.getMessage (4.9).

They decide what a consumer gets at the edges: before the first message, after the last one, where a
file is missing, where retention has deleted, and how much one answer holds.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, MAX_EXT_ADDR, PRE_BLANK_SIZE
from storage.queue.ext import ConsumeQueueExt
from storage.results import MOST_BYTES_TOGETHER, GetMessageResult, GetMessageStatus

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.files.read_files import StoreFiles
    from storage.format.message import MessageExt
    from storage.log.record_reader import RecordReader
    from storage.queue.reader import QueueBounds, QueueReader

    from .message_filter import MessageFilter
    from .message_rows import MessageRows

_FOUND: Final = GetMessageStatus.FOUND
_FEW: Final = 64
"""Fewer messages are quicker as objects than as a table."""
_new: Final = tuple.__new__


class MessageReader:
    """Reads messages of any queue of one store."""

    def __init__(self, files: StoreFiles, records: RecordReader, config: StoreConfig) -> None:
        self._log = files.log
        self._records = records
        self._ext = ConsumeQueueExt(files)
        self._max_bytes = config.max_transfer_bytes_in_memory
        self._max_count = config.max_transfer_count_in_memory
        self._scan_bytes = config.max_filter_message_size

    def get_message(
        self,
        queue: QueueReader,
        bounds: QueueBounds,
        offset: int,
        max_msg_nums: int,
        tags: MessageFilter | None,
        pulls: int = 1,
        fields: Collection[str] | None = None,
    ) -> GetMessageResult:
        """Read up to ``max_msg_nums`` messages from ``offset`` on.

        And as many again, and again, as long as that is what further reads would answer, up to
        ``pulls`` of them; where that takes more than messages of common records, it is left to
        those reads. With ``fields`` usual messages may come as a MessageRows with these fields.

        A read ends at the end of a queue file, at the store's limits of messages and bytes (the
        first message always fits), and with a filter after some hundred units. RocketMQ's smaller
        limits for messages that lie far back in the log do not apply here. A record that
        contradicts its unit is left out, as if it were being removed.
        """
        if not bounds.min_offset <= offset < bounds.max_offset:
            return status_outside(bounds, offset)
        limit = min(max_msg_nums, self._max_count)
        byte_limit = self._max_bytes
        key = queue.key
        messages: list[MessageExt] = []
        total = 0
        if fields is not None and tags is None:
            rows = self._rows(queue, bounds, offset, limit * pulls, fields)
            if rows is not None:
                following = offset + len(rows)
                return GetMessageResult(_FOUND, following, *bounds, [], rows.table.size, rows)
        if tags is None and limit > 0:  # the common case: only plain records
            view = queue.unit_view(offset, min(limit, bounds.max_offset - offset))
            if view is not None:
                messages, total = self._records.read_run(view, key, offset, limit, byte_limit)
                if len(messages) * CQ_STORE_UNIT_SIZE == len(view):
                    following = offset + len(messages)
                    if pulls > 1 and len(messages) == limit:
                        following, total = self._read_on(
                            queue, bounds, messages, total, following, limit, pulls - 1
                        )
                    if following == bounds.max_offset:
                        queue.follow(bounds, self._log, self._max_count, byte_limit)
                    return _new(
                        GetMessageResult, (_FOUND, following, *bounds, messages, total, None)
                    )
        scan = max(self._scan_bytes, max_msg_nums * CQ_STORE_UNIT_SIZE) // CQ_STORE_UNIT_SIZE
        units = queue.units(offset, min(scan, bounds.max_offset - offset))
        if units is None:
            return GetMessageResult(
                GetMessageStatus.OFFSET_FOUND_NULL, queue.after_gap(offset), *bounds, []
            )
        status = GetMessageStatus.NO_MATCHED_MESSAGE
        read = self._records.read
        looks = tags is not None and tags.looks_into_messages
        unpacked = CQ_STORE_UNIT.iter_unpack(units[len(messages) * CQ_STORE_UNIT_SIZE :])
        next_file = -1
        number = len(messages) - 1
        for number, (place, size, code) in enumerate(unpacked, len(messages)):
            if place < next_file:
                continue
            if total and (len(messages) >= limit or total + size > byte_limit):
                break
            if tags is not None and not self._matches(queue, tags, code):
                status = GetMessageStatus.NO_MATCHED_MESSAGE
                continue
            message = read(place, size, key, offset + number)
            if message is not None:
                next_file = -1
                if looks and tags is not None and not tags.accepts_message(message):
                    status = GetMessageStatus.NO_MATCHED_MESSAGE
                    continue
                messages.append(message)
                total += size
                continue
            if not total:
                status = GetMessageStatus.MESSAGE_WAS_REMOVING
            if size != PRE_BLANK_SIZE:
                next_file = self._after_missing_file(place)
        else:
            number += 1
        if messages:
            status = _FOUND
        return GetMessageResult(status, offset + number, *bounds, messages, total)

    def _rows(
        self,
        queue: QueueReader,
        bounds: QueueBounds,
        offset: int,
        count: int,
        fields: Collection[str],
    ) -> MessageRows | None:
        count = min(count, bounds.max_offset - offset)
        units = queue.unit_view(offset, count) if count >= _FEW else None
        if not units:
            return None
        from .row_reader import read_rows  # lazy: for consumers that ask for rows

        size = self._max_bytes
        return read_rows(self._records, queue.key, offset, units, fields, size, _FEW)

    def _read_on(
        self,
        queue: QueueReader,
        bounds: QueueBounds,
        messages: list[MessageExt],
        total: int,
        offset: int,
        limit: int,
        pulls: int,
    ) -> tuple[int, int]:
        """Add the answers of further reads; gives where the next one begins, and all bytes."""
        view = None
        if offset < bounds.max_offset:
            view = queue.unit_view(offset, min(limit * pulls, bounds.max_offset - offset))
        if view is None:
            return offset, total
        step = limit * CQ_STORE_UNIT_SIZE
        for begin in range(0, len(view), step):
            units = view[begin : begin + step]
            found, size = self._records.read_run(units, queue.key, offset, limit, self._max_bytes)
            if len(found) * CQ_STORE_UNIT_SIZE != len(units):
                break
            messages += found
            offset += len(found)
            total += size
            if total > MOST_BYTES_TOGETHER:
                break
        return offset, total

    def _matches(self, queue: QueueReader, tags: MessageFilter, code: int) -> bool:
        if code <= MAX_EXT_ADDR:
            resolved = self._ext.tags_code(queue.key.topic, queue.key.queue_id, code)
            return resolved is None or tags.matches(resolved)
        return tags.matches(code)

    def _after_missing_file(self, place: int) -> int:
        """Where the next log file begins if the one that holds ``place`` is deleted, else -1.

        Units of a deleted file are skipped without reading each (CommitLog.rollNextFile).
        """
        size = self._log.file_size
        first = place - place % size
        return first + size if self._log.at(first) is None else -1


def status_outside(bounds: QueueBounds, offset: int) -> GetMessageResult:
    """The answer for an offset at which the queue holds no message."""
    min_offset, max_offset = bounds
    if max_offset == 0:
        status, following = GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0
    elif offset < min_offset:
        status, following = GetMessageStatus.OFFSET_TOO_SMALL, min_offset
    elif offset == max_offset:
        status, following = GetMessageStatus.OFFSET_OVERFLOW_ONE, offset
    else:
        status, following = GetMessageStatus.OFFSET_OVERFLOW_BADLY, max_offset
    return GetMessageResult(status, following, min_offset, max_offset, [])


def no_such_queue() -> GetMessageResult:
    """The answer for an impossible queue: a negative id, or a name that can be no folder."""
    return GetMessageResult(GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0, [])
