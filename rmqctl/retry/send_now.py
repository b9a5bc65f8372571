"""``retry now`` and ``retry dead``: sending waiting retries before they are due."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from analytics.lag.delayed import DelayedMessages
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.journal_entry import change_note
from rmqctl.cli.change_steps import carry_out, will_execute
from rmqctl.cli.opening import open_for_reading, open_for_writing
from rmqctl.errors import CliError, NotFound, UsageProblem
from rmqctl.exit_codes import CHANGED
from storage.configs.journal import Journal
from storage.format.message import PROPERTY_ORIGIN_MESSAGE_ID, dlq_topic
from storage.layout import was_created_here

from .facts import Retries, takes
from .failures import reason_text
from .rows import SentNowRow

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from rmqctl.cli.filter_options import MessageFilter
    from storage.format.message import MessageExt


class RetrySelection(NamedTuple):
    """The selected retries."""

    ids: Sequence[str]
    everything: bool
    wanted: "MessageFilter"

    def check(self) -> None:
        """UsageProblem if nothing is selected: there is no default to all."""
        filtered = any(part is not None for part in self.wanted)
        if self.ids and (self.everything or filtered):
            raise UsageProblem("select retries by id, or with --all and filters")
        if not (self.ids or self.everything or filtered):
            raise UsageProblem("ids exclude filters and --all")


class _Item(NamedTuple):
    waiting: DelayedMessages | None
    """None: it does not wait, and is skipped."""
    row: SentNowRow


def end_waits(cli: "Cli", group: str, which: RetrySelection, *, dead: bool) -> None:
    """Send waiting retries now, to the group or to its dead letters."""
    which.check()
    check = refuse_beside_java(cli.store.path) if _executes(cli) else None
    with open_for_reading(cli) as broker:
        retries = Retries(broker, group, cli.now_ms)
        items = list(_chosen(retries, which, cli.left_out, dead=dead))
        if not was_created_here(broker.view.root):
            cli.warn(
                "this store was created by a Java broker: one that opens it also delivers "
                "them when they are due"
            )

    def apply() -> Iterator[SentNowRow]:
        if check is not None:
            check()
        with open_for_writing(cli) as broker:
            waits = [item.waiting.message for item in items if item.waiting is not None]
            still = {one.message.commitlog_offset for one in Retries(broker, group, 0).waiting()}
            gone = [message for message in waits if message.commitlog_offset not in still]
            if gone:
                raise CliError(
                    f"{len(gone)} of these were delivered in the meantime; nothing was sent",
                    CHANGED,
                )
            note = change_note(cli, group=group, what="dead" if dead else "now")
            ids = [message.msg_id for message in waits]
            assert broker.store is not None
            now_ms = broker.store.now()
            Journal(broker.view.root).append({**note, "old": None, "new": {"msg_ids": ids}}, now_ms)
            cutting = broker.cutting_short
            sent = iter(cutting.bury(group, waits) if dead else cutting.deliver(waits))
            for item in items:
                if item.waiting is None:
                    yield item.row._replace(applied=False)
                else:
                    yield item.row._replace(applied=True, queue_offset=next(sent).queue_offset)

    count = sum(item.waiting is not None for item in items)
    to = f"to {dlq_topic(group)}" if dead else "to be consumed"
    rows = [item.row for item in items]
    question = f"Send {count} {'retry' if count == 1 else 'retries'} of {group} {to} now?"
    carry_out(cli, SentNowRow, rows, apply, question=question, execute_by_default=True)


def _executes(cli: "Cli") -> bool:
    return will_execute(cli, execute_by_default=True)


def _chosen(
    retries: Retries, which: RetrySelection, tell: Callable[[str], object], *, dead: bool
) -> Iterator[_Item]:
    waiting = list(retries.waiting())
    if not which.ids:
        wanted = (one for one in waiting if takes(which.wanted, one, tell))
        yield from (_item(retries, one, dead=dead) for one in wanted)
        return
    ready = list(retries.ready())
    for message_id in dict.fromkeys(which.ids):
        one = next((one for one in waiting if is_named(one.message, message_id)), None)
        if one is not None:
            yield _item(retries, one, dead=dead)
            continue
        there = next((message for message in ready if is_named(message, message_id)), None)
        if there is None:
            raise NotFound(f"group {retries.group} has no waiting retry {message_id!r}")
        note = "skipped: the group can read it already"
        yield _Item(None, _row(there, None, there.topic, note))


def is_named(message: "MessageExt", message_id: str) -> bool:
    """Whether an id is the unique or offset id of a message, or the id of the original."""
    ids = (message.msg_id, message.offset_msg_id, message.get_property(PROPERTY_ORIGIN_MESSAGE_ID))
    return message_id in ids or message_id.upper() in ids


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
