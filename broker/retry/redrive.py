"""Redriving: a dead letter is sent once more, to its origin or elsewhere.

RocketMQ has nothing like it: its console sends a copy. Two kinds:

* **To its group's retry topic** it is the same message: it keeps its unique id, birth and origin,
  only this group gets it, and its attempts begin again.
* **To any other topic** it is a new message with an id of its own, for the readers of that topic.

Both carry the producer's properties, flag and body (compressed as it is), no traces of earlier
attempts, and the properties of redrive_properties.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from broker.api.send import SendOptions, SendResult
from broker.errors import NoPermissionError
from broker.send.compression import compress_body
from broker.tables.shared_table import READ_ONLY
from broker.validation import check_body_size, check_properties
from storage.format.message import Message, retry_topic
from storage.format.sys_flag import MessageSysFlag

from .redrive_properties import lineage_properties, own_properties, retry_properties

if TYPE_CHECKING:
    from broker.tables.groups import GroupManager
    from broker.tables.topics import TopicManager
    from storage.format.message import MessageExt

_PACKING = MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_TYPE_MASK


class Content(NamedTuple):
    """What a redriven message holds where it differs from its dead letter; None: the same."""

    body: bytes | None = None
    properties: Mapping[str, str] | None = None
    """The producer's own (see lineage.own_properties), all of them."""
    flag: int | None = None


UNCHANGED = Content()


class RedriveHandler:
    """Sends dead letters again. Holds no state; safe for threads.

    ``send`` is Broker.send.
    """

    def __init__(
        self,
        topics: TopicManager,
        groups: GroupManager,
        *,
        send: Callable[[Message, int | None, SendOptions], SendResult],
        writable: bool,
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._send = send
        self._writable = writable

    def redrive(
        self, dead: MessageExt, group: str, topic: str, run: str, content: Content = UNCHANGED
    ) -> SendResult:
        """Send a dead letter of ``group`` to ``topic``; stored when this returns.

        ``run`` goes into its properties. A topic that does not exist is made as for any send, the
        group's retry topic as for a message given back. Raises NoPermissionError on a read-only
        store, the errors of Broker.send, and SubscriptionGroupNotExistError where groups are not
        made by use.
        """
        if not self._writable:
            raise NoPermissionError(READ_ONLY)
        own = own_properties(dead.properties)
        properties = own if content.properties is None else dict(content.properties)
        before = dead.properties
        check_properties({name: x for name, x in properties.items() if before.get(name) != x})
        if content.body is None:
            body, packing = dead.stored_body, dead.sys_flag & _PACKING
        else:
            check_body_size(content.body)  # as a client does, before it is packed
            body, packing = compress_body(content.body)
        flag = dead.flag if content.flag is None else content.flag
        options = SendOptions(producer_group=group, sys_flag=packing)
        if topic == retry_topic(group):
            self._topics.for_own_use(topic, max(1, self._groups.for_use(group).retry_queue_nums))
            properties |= retry_properties(dead)
            options = options._replace(
                born_timestamp=dead.born_timestamp,
                born_host=dead.born_host,
                # Else a group without retries would make it a dead letter again at once.
                max_reconsume_times=1,
            )
        properties |= lineage_properties(dead, run)
        return self._send(Message(topic, body, flag=flag, properties=properties), None, options)
