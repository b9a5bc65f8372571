"""The history of a message: its records in log order, and the groups that have read past it.

All copies of a message keep its unique id: the half message, the delayed copy, each retry, the dead
letter. Retries name the original message (ORIGIN_MESSAGE_ID). A redriven message has an id of its
own, which the receipts of the run contain.
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Final, TypedDict

from broker.retry.failures import reason_text, record_with_id
from broker.retry.redrive_properties import REDRIVE_UNIQUE, redrive_count
from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.messages.search.keys import Look, find_key, read_messages
from rmqctl.admin.scan_progress import OnProgress, no_progress
from rmqctl.errors import NotFound, UsageProblem
from storage.configs.redrive_runs import RedriveRuns
from storage.counted import counted
from storage.format.message import (
    DLQ_GROUP_TOPIC_PREFIX,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_REAL_TOPIC,
    RETRY_GROUP_TOPIC_PREFIX,
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
)

from .rows import LifeRow

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_MOST_RECORDS: Final = 1000
"""Many more records than the attempts of one message leave."""
_INNER_TOPICS: Final = frozenset({SCHEDULE_TOPIC, TRANS_HALF_TOPIC})
"""Topics in which progress does not mean that a group has read the message."""


def life(
    view: "StoreView",
    name: str,
    *,
    look: Look = Look.EVERYWHERE,
    left_out: Warn = no_warning,
    jobs: int | None = None,
    on_progress: OnProgress = no_progress,
) -> Generator[LifeRow]:
    """All events of the message with an id, or of the messages with a key, in log order.

    NotFound if there is none, UsageProblem for a key of too many messages.
    """
    records = _Records(view, look, left_out, jobs, on_progress)
    records.follow(name)
    if not records.found:
        raise NotFound(f"no message has the id or key {name} in {view.root}")
    progress = list(view.consumer_offsets().items())
    for offset in sorted(records.found):
        record = records.found[offset]
        yield _row(view, record)
        if record.topic in _INNER_TOPICS:
            continue
        for name, offsets in sorted(progress):
            topic, _, group = name.partition("@")
            committed = offsets.get(record.queue_id)
            if topic == record.topic and committed is not None:
                yield _progress_row(record, group, committed)


class _Scan(TypedDict):
    jobs: int | None
    on_progress: OnProgress


class _Records:
    """The records of a message; each one leads to others."""

    def __init__(
        self,
        view: "StoreView",
        look: Look,
        left_out: Warn,
        jobs: int | None,
        on_progress: OnProgress,
    ) -> None:
        self._view = view
        self._left_out = left_out
        self._scan: _Scan = {"jobs": jobs, "on_progress": on_progress}
        self._look = look
        self._followed: set[str] = set()
        self.found: dict[int, MessageExt] = {}
        self._redriven: dict[str, list[str]] = {}
        for _, receipts in filter(None, map(RedriveRuns(view.root).read, _runs(view))):
            for receipt in receipts:
                if receipt.get("applied"):
                    self._redriven.setdefault(receipt["msg_id"], []).append(receipt["new_msg_id"])

    def follow(self, name: str) -> None:
        """Add all records with an id or key, and those that they lead to; without any those with
        the id in upper case: keys have a case, while ids may be given in either."""
        for spelling in dict.fromkeys((name, name.upper())):
            if not self.found:
                self._follow([spelling])

    def _follow(self, names: list[str]) -> None:
        while names:
            name = names.pop()
            if name in self._followed:
                continue
            self._followed.add(name)
            record = record_with_id(self._view, name, None)
            hits, damaged = find_key(self._view, name, None, self._look, **self._scan)
            if damaged:
                self._left_out(
                    f"{counted(len(damaged), 'damaged record')} may be of {name}, too; 'rmqctl "
                    "store fsck' shows which"
                )
            if len(hits) > _MOST_RECORDS:
                raise UsageProblem(
                    f"{len(hits):,} records have the key {name}; 'rmqctl message query --key' "
                    "lists them; 'rmqctl message life ID' shows the history of one"
                )
            found = read_messages(self._view, hits, self._left_out)
            for message in [*([record] if record else []), *found]:
                if self.found.setdefault(message.commitlog_offset, message) is message:
                    names += self._leads(message)
            names += self._redriven.get(name, [])

    def _leads(self, message: "MessageExt") -> Iterator[str]:
        yield message.msg_id
        yield from self._redriven.get(message.msg_id, [])
        for name in (PROPERTY_ORIGIN_MESSAGE_ID, REDRIVE_UNIQUE):
            value = message.get_property(name)
            if value:
                yield value


def _runs(view: "StoreView") -> list[str]:
    return RedriveRuns(view.root).names()


def _row(view: "StoreView", record: "MessageExt") -> LifeRow:
    event, group, due = _event(record)
    if record.topic == SCHEDULE_TOPIC:
        unit = view.unit(record.topic, record.queue_id, record.queue_offset)
        due = None if unit is None else unit[2]
    return LifeRow(
        record.store_timestamp,
        event,
        group,
        record.topic,
        record.queue_id,
        record.queue_offset,
        record.reconsume_times,
        due,
        reason_text(record) if event in ("FAILED", "DEAD") else None,
        None,
        record.msg_id,
        record.offset_msg_id,
        record.get_property(PROPERTY_ORIGIN_MESSAGE_ID),
    )


def _event(record: "MessageExt") -> tuple[str, str | None, None]:
    """The event that a record stands for, and its group."""
    topic = record.topic
    if topic == TRANS_HALF_TOPIC:
        return "HALF", None, None
    if topic == SCHEDULE_TOPIC:
        real = record.get_property(PROPERTY_REAL_TOPIC) or ""
        if real.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return "FAILED", real.removeprefix(RETRY_GROUP_TOPIC_PREFIX), None
        return "DELAYED", None, None
    if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
        return "RETRY", topic.removeprefix(RETRY_GROUP_TOPIC_PREFIX), None
    if topic.startswith(DLQ_GROUP_TOPIC_PREFIX):
        return "DEAD", topic.removeprefix(DLQ_GROUP_TOPIC_PREFIX), None
    return "REDRIVEN" if redrive_count(record.properties) else "STORED", None, None


def _progress_row(record: "MessageExt", group: str, committed: int) -> LifeRow:
    return LifeRow(
        None,
        "READ_PAST" if committed > record.queue_offset else "WAITING",
        group,
        record.topic,
        record.queue_id,
        record.queue_offset,
        record.reconsume_times,
        None,
        None,
        committed,
        record.msg_id,
        record.offset_msg_id,
        record.get_property(PROPERTY_ORIGIN_MESSAGE_ID),
    )
