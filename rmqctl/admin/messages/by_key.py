"""Finding all messages with a key or a tag."""

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.known_topics import all_topics, check_queues_exist
from rmqctl.admin.message_filter import EVERY_MESSAGE, MessageFilter
from rmqctl.admin.scan_progress import OnProgress, no_progress
from storage.counted import counted
from storage.format.errors import BodyError
from storage.read.tag_filter import TagFilter
from storage.readonly import FOREVER

from .search.keys import Look, find_key, read_messages
from .search.tags import find_tag

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


def with_key(
    view: "StoreView",
    key: str,
    topics: Sequence[str] | None = None,
    wanted: MessageFilter = EVERY_MESSAGE,
    *,
    look: Look = Look.EVERYWHERE,
    left_out: Warn = no_warning,
    jobs: int | None = None,
    on_progress: OnProgress = no_progress,
) -> "Generator[MessageExt]":
    """All messages with a key or a unique id that a filter selects, in log order.

    ``topics`` None: all. ``look`` says where the key is searched. NotFound for an unknown topic or
    queue.
    """
    check_queues_exist(view, topics, wanted.queues)
    return _with_key(view, key, topics, wanted, look, left_out, jobs, on_progress)


def with_tag(
    view: "StoreView",
    tags: str,
    topics: Sequence[str] | None = None,
    wanted: MessageFilter = EVERY_MESSAGE,
    *,
    left_out: Warn = no_warning,
) -> "Generator[MessageExt]":
    """All messages with one of some tags (``a || b``) that a filter selects, in log order.

    Found by the hashes in the queues. NotFound for an unknown topic or queue, ValueError for
    malformed tags and for ``*``.
    """
    parsed = TagFilter.parse(tags)
    if parsed is None:
        raise ValueError("* matches every message")
    check_queues_exist(view, topics, wanted.queues)
    offsets = find_tag(view, all_topics(view) if topics is None else topics, parsed)
    found = read_messages(view, offsets, left_out)
    return _selected(found, wanted, left_out, parsed)


def _with_key(
    view: "StoreView",
    key: str,
    topics: Sequence[str] | None,
    wanted: MessageFilter,
    look: Look,
    left_out: Warn,
    jobs: int | None,
    on_progress: OnProgress,
) -> "Generator[MessageExt]":
    end = FOREVER if wanted.to_timestamp is None else wanted.to_timestamp
    begin = wanted.from_timestamp or 0
    hits = find_key(view, key, topics, look, begin, end, jobs=jobs, on_progress=on_progress)
    if hits.damaged:
        left_out(
            f"{counted(len(hits.damaged), 'damaged record')} may have the key, too; 'rmqctl "
            "store fsck' shows which"
        )
    yield from _selected(read_messages(view, hits.offsets, left_out), wanted, left_out)


def _selected(
    messages: "Generator[MessageExt]",
    wanted: MessageFilter,
    left_out: Warn,
    tags: TagFilter | None = None,
) -> "Generator[MessageExt]":
    """The messages that a filter selects, without those whose needed body cannot be unpacked.

    Closed before the end, it closes ``messages``, too.
    """
    start, end, queues = wanted.from_timestamp, wanted.to_timestamp, wanted.queues
    with closing(messages):
        for message in messages:
            if (
                (tags is not None and not tags.accepts(message.tags))
                or (start is not None and message.store_timestamp < start)
                or (end is not None and message.store_timestamp >= end)
                or (queues is not None and message.queue_id not in queues)
            ):
                continue
            try:
                if wanted.predicate is not None and not wanted.predicate(message):
                    continue
            except BodyError as error:
                left_out(f"left out {error}")
                continue
            yield message
