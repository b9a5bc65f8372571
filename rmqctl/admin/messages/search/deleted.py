"""Leaving out what the log still has of topics that were deleted.

Their records belong to no queue (storage.configs.deleted_topics), so they are no messages of a
topic of the same name that was made since.
"""

from typing import TYPE_CHECKING

from storage.configs.deleted_topics import DeletedTopics, deleted_topics_for_reading

from .query import Query

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


def deleted_in_log(view: "StoreView") -> DeletedTopics:
    """The topics that were deleted and may have records in the log, each with the log offset before
    which they are. None of a damaged file, with a DamagedFileWarning."""
    low = view.log_min_offset()
    known = deleted_topics_for_reading(view.root)
    return {topic: end for topic, end in known.items() if end > low}


def is_deleted(message: "MessageExt", deleted: DeletedTopics) -> bool:
    """Whether a message is of a topic that was deleted after it."""
    return message.commitlog_offset < deleted.get(message.topic, 0)


def without_deleted(query: Query, deleted: DeletedTopics) -> Query:
    """The same query, for messages that were not deleted with their topic."""
    if not deleted:
        return query
    matches, plain = query.matches, query.plain

    def is_wanted(message: "MessageExt") -> bool:
        return not is_deleted(message, deleted) and matches(message)

    return query._replace(matches=is_wanted, plain=plain and plain._replace(deleted=deleted))
