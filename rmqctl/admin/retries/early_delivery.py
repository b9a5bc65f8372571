"""Sending waiting retries before they are due: to the group, or to its dead letters."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from analytics.lag.delayed import DelayedMessages
from broker.retry.failures import reason_text
from rmqctl.admin.changes import Change, JavaCheck, Outcome, Warn, no_warning
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.message_filter import MessageSelection, key_hint
from rmqctl.admin.writing import OpenWriter, time_of, writer_of
from rmqctl.errors import CliError, NotFound, PartlyDone, Refused
from rmqctl.exit_codes import CHANGED, DAMAGED
from storage.configs.early_deliveries import EarlyDeliveries
from storage.configs.journal import Journal
from storage.errors import CorruptFileError, StoreVersionError
from storage.format.message import PROPERTY_ORIGIN_MESSAGE_ID, dlq_topic
from storage.layout import was_created_here

from .retries import Retries, takes, waiting_retries
from .rows import SentNowRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from broker.api.broker import Broker
    from broker.retry.deliver_early import EarlyDelivery as EndOfWait
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


class _Item(NamedTuple):
    waiting: DelayedMessages | None
    """None: it does not wait, and is skipped."""
    row: SentNowRow


class EarlyDelivery(Change):
    """A change that ends the wait of retries of a group."""

    def __init__(
        self,
        view: "StoreView",
        group: str,
        items: "Sequence[_Item]",
        *,
        dead: bool,
        java_check: JavaCheck | None,
        open_writer: OpenWriter | None,
    ) -> None:
        """``dead``: to the dead letters of the group, else to the group."""
        self._view = view
        self._root = view.root
        self._group = group
        self._items = items
        self._dead = dead
        self._java_check = java_check
        self._open_writer = open_writer or writer_of(view.root)
        self._waits = [item.waiting.message for item in items if item.waiting is not None]
        count = len(self._waits)
        to = f"to {dlq_topic(group)}" if dead else "to be consumed"
        super().__init__(
            SentNowRow,
            [item.row for item in items],
            has_effect=bool(self._waits),
            refusals=_unreadable(view.root) if self._waits else (),
            question=f"Send {count} {'retry' if count == 1 else 'retries'} of {group} {to} now?",
            entry={
                "group": group,
                "what": "dead" if dead else "now",
                "old": None,
                "new": {"msg_ids": [message.msg_id for message in self._waits]},
            },
        )

    def unchanged_rows(self) -> "Sequence[SentNowRow]":
        """The skipped messages."""
        return [item.row._replace(applied=False) for item in self._items]

    def check(self) -> None:
        """CliError (6) if one was delivered meanwhile, StoreInUseError beside a Java broker."""
        (self._java_check or refuse_beside_java(self._root))()
        self._check_still_waiting(self._view)

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Send them as the rows are read, all after one journal entry.

        Raises what ``check`` raises, what opening a store for writing raises, and what refuses the
        first messages; nothing was sent then. PartlyDone if something fails after that: the rows
        that came before it are of the messages that were sent.
        """
        self.refuse()
        return Outcome(self._sent({**note, **self.entry}))

    def _sent(self, entry: dict[str, Any]) -> Iterator[SentNowRow]:
        from broker.retry.deliver_early import DeliveryBrokenOffError  # what only a writer needs

        (self._java_check or refuse_beside_java(self._root))()
        with self._open_writer() as writer:
            self._check_still_waiting(writer.view)
            Journal(self._root).append(entry, time_of(writer))
            cutting, waits = writer.cutting_short, self._waits
            broken_off: DeliveryBrokenOffError | None = None
            ends: Sequence[EndOfWait | None]
            try:
                ends = cutting.bury(self._group, waits) if self._dead else cutting.deliver(waits)
            except DeliveryBrokenOffError as error:
                broken_off, ends = error, error.ends
            reached = iter(ends)
            for item in self._items:
                if item.waiting is None:
                    yield item.row._replace(applied=False)
                elif end := next(reached, None):
                    yield item.row._replace(applied=True, queue_offset=end.queue_offset)
            if broken_off is not None:
                raise PartlyDone(str(broken_off)) from broken_off

    def _check_still_waiting(self, view: "StoreView") -> None:
        waiting = (one.message for one in waiting_retries(view, self._group))
        still = {(message.commitlog_offset, message.msg_id) for message in waiting}
        gone = [one for one in self._waits if (one.commitlog_offset, one.msg_id) not in still]
        if gone:
            raise CliError(
                f"{len(gone)} of these were delivered in the meantime; nothing was sent", CHANGED
            )


def send_now(
    view: "StoreView",
    broker: "Broker",
    group: str,
    chosen: MessageSelection,
    *,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    left_out: Warn = no_warning,
    java_check: JavaCheck | None = None,
    open_writer: OpenWriter | None = None,
) -> EarlyDelivery:
    """Deliver waiting retries to the group before they are due.

    The waiting copy is skipped later by rmqctl; a Java broker would deliver it, too. NotFound for
    an unknown group, and for an id of no retry; Refused for an id of several. Rows are SentNowRow;
    a retry that the group can read already is skipped.
    """
    retries = Retries(view, broker, group, now_ms)
    return _early_delivery(retries, chosen, False, warn, left_out, java_check, open_writer)


def make_dead(
    view: "StoreView",
    broker: "Broker",
    group: str,
    chosen: MessageSelection,
    *,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    left_out: Warn = no_warning,
    java_check: JavaCheck | None = None,
    open_writer: OpenWriter | None = None,
) -> EarlyDelivery:
    """Turn waiting retries into dead letters without another attempt; else as ``send_now``."""
    retries = Retries(view, broker, group, now_ms)
    return _early_delivery(retries, chosen, True, warn, left_out, java_check, open_writer)


def _early_delivery(
    retries: Retries,
    chosen: MessageSelection,
    dead: bool,
    warn: Warn,
    left_out: Warn,
    java_check: JavaCheck | None,
    open_writer: OpenWriter | None,
) -> EarlyDelivery:
    items = list(_chosen(retries, chosen, left_out, dead=dead))
    if not items:
        _tell_ready(retries, chosen, warn)
    if not was_created_here(retries.view.root):
        warn(
            "this store was created by a Java broker: one that opens it also delivers "
            "them when they are due"
        )
    return EarlyDelivery(
        retries.view,
        retries.group,
        items,
        dead=dead,
        java_check=java_check,
        open_writer=open_writer,
    )


def _chosen(
    retries: Retries, chosen: MessageSelection, left_out: Warn, *, dead: bool
) -> Iterator[_Item]:
    waiting = list(retries.waiting())
    if not chosen.ids:
        wanted = (one for one in waiting if takes(chosen.wanted, one, left_out))
        yield from (_item(retries, one, dead=dead) for one in wanted)
        return
    ready = list(retries.ready())
    taken: set[int] = set()  # log offsets: several ids may name one message
    for message_id in chosen.ids:
        found = [one for one in waiting if is_named(one.message, message_id)]
        if len(found) > 1:
            offset_ids = ", ".join(one.message.offset_msg_id for one in found)
            raise Refused(
                f"{len(found)} waiting retries of group {retries.group} have the id "
                f"{message_id!r}; name one by its offset id: {offset_ids}"
            )
        if found:
            if found[0].message.commitlog_offset not in taken:
                taken.add(found[0].message.commitlog_offset)
                yield _item(retries, found[0], dead=dead)
            continue
        there = next((message for message in ready if is_named(message, message_id)), None)
        if there is None:
            text = f"group {retries.group} has no waiting retry {message_id!r}"
            text += key_hint(message_id)
            raise NotFound("; ".join([text, *retries.doubts()]))
        if there.commitlog_offset in taken:
            continue
        taken.add(there.commitlog_offset)
        note = "skipped: the group can read it already"
        yield _Item(None, _row(there, None, there.topic, note))


def _tell_ready(retries: Retries, chosen: MessageSelection, warn: Warn) -> None:
    """Say that what matches does not wait any more, where nothing that waits matches."""
    count = sum(1 for _ in retries.ready(chosen.wanted))
    if count:
        words = "retry matches and no longer waits: the group reads it next"
        if count > 1:
            words = "retries match and no longer wait: the group reads them next"
        warn(f"{count} {words}; only a wait can be ended")
    for sentence in retries.doubts(chosen.wanted):
        warn(sentence)


def is_named(message: "MessageExt", message_id: str) -> bool:
    """Whether an id is the unique or offset id of a message, or the id of the original."""
    ids = (message.msg_id, message.offset_msg_id, message.get_property(PROPERTY_ORIGIN_MESSAGE_ID))
    return message_id in ids or message_id.upper() in ids


def _unreadable(root: "Path") -> list[CliError]:
    """What forbids it: it could not be noted that the messages wait no more."""
    try:
        EarlyDeliveries(root).check()
    except (CorruptFileError, StoreVersionError) as error:
        return [CliError(str(error), DAMAGED if isinstance(error, CorruptFileError) else None)]
    return []


def _item(retries: Retries, one: DelayedMessages, *, dead: bool) -> _Item:
    target = dlq_topic(retries.group) if dead else one.topic
    return _Item(one, _row(one.message, one.due_timestamp, target, None))


def _row(message: "MessageExt", due: int | None, target: str, note: str | None) -> SentNowRow:
    return SentNowRow(
        message.msg_id,
        message.reconsume_times,
        due,
        target,
        reason_text(message),
        note,
        None,
        None,
    )
