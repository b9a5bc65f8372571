"""A filter of messages in a read (org.apache.rocketmq.store.MessageFilter)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from storage.format.message import MessageExt


class MessageFilter(Protocol):
    """Decides by a message's unit first, and by the message itself where that is not enough."""

    @property
    def looks_into_messages(self) -> bool:
        """Whether :meth:`accepts_message` decides more than :meth:`matches`."""
        ...

    def matches(self, tags_code: int) -> bool:
        """Tell whether a unit's tags code passes (isMatchedByConsumeQueue)."""
        ...

    def accepts_message(self, message: MessageExt) -> bool:
        """Tell whether the message passes (isMatchedByCommitLog)."""
        ...
