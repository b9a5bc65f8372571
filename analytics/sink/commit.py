"""Storing the staged rows of a write: each once, also if the process is killed at any instant.

    1. lock the write's marker; a batch that is done, or an older one, is not written again; read
       the staged files through
    2. note ``begun`` with the log's end and the staged files, on the device
    3. append the rows whose id is not in the log after that end
    4. sync the store
    5. note ``done``, on the device; remove the staged files

Killed before 2, nothing has been stored, and the next attempt stages its rows anew. Killed from 2
on, the next attempt goes on with the rows that were staged first, whatever it has staged itself:
Spark may cut a batch in another way then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analytics.errors import SinkCommitError
from broker.api.send import SendOptions
from broker.embedded.broker import EmbeddedBroker
from broker.send.message_builder import MessageBuilder
from broker.send.send import BATCH_ITEM_HEAD, group_of_retry
from storage.format.message import (
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    RETRY_GROUP_TOPIC_PREFIX,
    SCHEDULE_TOPIC,
    dlq_topic,
)
from storage.read.gaps import unit_runs
from storage.read.log_offsets import first_at
from storage.readonly import StoreView

from .marker import BEGUN, DONE, Marker, MarkerFile
from .rows import Outgoing
from .staging import StagedPart, at_hand, check_staged, remove_parts, staged_messages

if TYPE_CHECKING:
    from storage.format.message import Message

logger = logging.getLogger("rmqctl.sink")

_TOGETHER: Final = 1_000
_BYTES_TOGETHER: Final = 1 << 20
_MOST_WAITING: Final = 64 << 20
"""Memory of messages that wait for others, over all queues."""
_OBJECT_BYTES: Final = 1 << 10
"""About what a message takes besides its body and properties."""
_READ_TOGETHER: Final = 1_000
_GROUP: Final = "rmqctl-spark-sink"


def commit(
    store: Path,
    write: str,
    batch: int,
    parts: Sequence[StagedPart],
    *,
    once: bool = False,
    staging: Path | None = None,
) -> int:
    """Store a batch of a write, unless it was; gives how many messages were stored now.

    They are on the device when this returns. ``once``: no other attempt of this write can come, so
    its marker is not kept. ``staging``: the folder in which the folders of the write's batches are
    now, where files of a batch that has begun are looked for if they are not at their paths.

    Raises SinkCommitError, and the errors of EmbeddedBroker.open and send.
    """
    parts = sorted(parts)
    with MarkerFile(store, write) as file:
        last = file.read()
        if last is not None and (last.batch > batch or last[:2] == (batch, DONE)):
            logger.warning("%s: batch %d of %s was stored before", store, batch, write)
            return 0
        if not parts and (last is None or last.state == DONE):
            return 0
        with EmbeddedBroker.open(store) as broker:
            known: set[str] = set()
            if last is not None and last.state == BEGUN:
                marker = last
                if staging is not None:
                    here = tuple(at_hand(part, staging) for part in marker.parts)
                    marker = marker._replace(parts=here)
                check_staged(marker.parts, is_begun=True)
                known = _stored_ids(store, marker)
                logger.warning(
                    "%s: batch %d of %s goes on after %d of %d rows",
                    *(store, marker.batch, write, len(known), marker.rows),
                )
            else:
                check_staged(parts, is_begun=False)
                end = broker.view.log_max_offset()
                broker.flush()  # else the log could end before this offset after a power loss
                marker = Marker(batch, BEGUN, end, tuple(parts))
                file.put(marker)
            count = append(broker, _staged(marker.parts), known)
            broker.flush()
            file.put(marker._replace(state=DONE))
        remove_parts(marker.parts)
        if once:
            file.forget()
    if marker.batch < batch:  # the one before was not finished
        return count + commit(store, write, batch, parts, staging=staging)
    return count


def append(broker: EmbeddedBroker, rows: Iterable[Outgoing], known: set[str] | None = None) -> int:
    """Store rows in their order within each queue; those with an id of ``known`` are left out."""
    waiting = _Waiting(broker)
    count = 0
    for row in rows:
        properties = row.message.properties
        if known and properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX] in known:
            continue
        count += 1
        waiting.add(row)
    waiting.send_all()
    return count


class _Waiting:
    """Messages that wait for others of their queue, to be stored with them."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self._broker = broker
        self._options = SendOptions(producer_group=_GROUP)
        self._most = min(_BYTES_TOGETHER, broker.view.config.max_message_size)
        added = len(MessageBuilder(broker.config, (), self._most).added_to_items)
        self._head = BATCH_ITEM_HEAD + added + 1  # and a separator between the properties
        self._parts: dict[tuple[str, int], list[Message]] = {}
        self._sizes: dict[tuple[str, int], int] = {}
        self._held = 0
        """About the memory of all."""

    def add(self, row: Outgoing) -> None:
        """Take a message, and store what need not wait any more."""
        message, queue_id, size = row
        place = message.topic, queue_id
        size += self._head
        alone = message.delay_time_level or message.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        part = self._parts.get(place, ())
        if part and (alone or self._sizes[place] + size > self._most or len(part) == _TOGETHER):
            self._send(place)
        self._parts.setdefault(place, []).append(message)
        self._sizes[place] = self._sizes.get(place, 0) + size
        self._held += size + _OBJECT_BYTES
        if alone:
            self._send(place)
        elif self._held > _MOST_WAITING:
            self._send_largest()

    def send_all(self) -> None:
        """Store all of them."""
        for place in [*self._parts]:
            self._send(place)

    def _send_largest(self) -> None:
        """Store those of the queues with the most, until half of the memory is free."""
        for place in sorted(self._sizes, key=self._sizes.__getitem__, reverse=True):
            self._send(place)
            if self._held <= _MOST_WAITING // 2:
                return

    def _send(self, place: tuple[str, int]) -> None:
        part, size = self._parts.pop(place), self._sizes.pop(place)
        self._held -= size + len(part) * _OBJECT_BYTES
        if len(part) == 1:  # a batch has less room than a message, and takes no delay
            self._broker.send(part[0], place[1], self._options)
        else:
            self._broker.send_batch(part, place[1], self._options)


def _staged(parts: Iterable[StagedPart]) -> Iterator[Outgoing]:
    for part in parts:
        yield from staged_messages(part)


def _stored_ids(store: Path, marker: Marker) -> set[str]:
    """Ids of the batch's messages that are in the log already."""
    topics: set[str] = set()
    wanted: set[str] = set()
    for message, _, _ in _staged(marker.parts):
        topics.add(SCHEDULE_TOPIC if message.delay_time_level else message.topic)
        if message.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):  # the last attempt is a dead letter
            topics.add(dlq_topic(group_of_retry(message.topic)))
        wanted.add(message.properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX])
    with StoreView.open(store) as view:
        first_offset = view.log_min_offset()
        if marker.commitlog_offset < first_offset:
            raise SinkCommitError(
                f"{store}: batch {marker.batch} of a write began at {marker.commitlog_offset} of "
                f"the log, which begins at {first_offset} now: what was stored of it is unknown"
            )
        found: set[str] = set()
        for topic, queue_id in view.queues():
            if topic in topics:
                found |= _ids_of_queue(view, topic, queue_id, marker.commitlog_offset)
    return found & wanted


def _ids_of_queue(view: StoreView, topic: str, queue_id: int, commitlog_offset: int) -> set[str]:
    low, high = view.queue_bounds(topic, queue_id)
    at = first_at(view, topic, queue_id, commitlog_offset, low, high)
    found = set()
    for offset, units in unit_runs(view, topic, queue_id, at, high, _READ_TOGETHER):
        for message in view.messages_of_units(topic, queue_id, offset, units):
            if message is not None:
                found.add(message.msg_id or "")
    return found
