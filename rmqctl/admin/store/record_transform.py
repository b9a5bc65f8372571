"""Transforming a record: left out by a filter, masked, or copied as it is."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from storage.errors import InvalidMessageError
from storage.format.errors import BodyError
from storage.format.message import PROPERTY_INNER_MULTI_DISPATCH, PROPERTY_INNER_MULTI_QUEUE_OFFSET
from storage.tools.carve.records import (
    message_of,
    record_of,
    set_stored_body,
    set_stored_properties,
    with_properties,
)

if TYPE_CHECKING:
    from rmqctl.admin.message_filter import Predicate
    from storage.format.message import MessageExt

PropertyChange = tuple[str, Callable[[str], str]]
"""The name of a property, and what makes its new value of the old one; an empty one drops it."""
_LIGHT: Final = PROPERTY_INNER_MULTI_DISPATCH.encode()


class Mask(Protocol):
    """Hides values of messages that are copied."""

    @property
    def unpacks(self) -> bool:
        """Whether it may change bodies, so that the body of each message is unpacked."""
        ...

    def apply(self, message: "MessageExt") -> None:
        """Change a message. BodyError and InvalidMessageError for one that is not to be copied."""
        ...


@runtime_checkable
class PropertyMask(Mask, Protocol):
    """A mask that can tell beforehand what it does to properties: many records are masked at once
    then."""

    @property
    def special_starts(self) -> tuple[bytes, ...]:
        """A message is special if its body begins with one of these."""
        ...

    def property_changes(self) -> Sequence[PropertyChange] | None:
        """What it does to a message that is not special, one change after the other; None if it
        does more than that."""
        ...


class UnmaskableError(Exception):
    """A message that cannot be masked or filtered, and so is not copied.

    The text names the message.
    """


class RecordTransform:
    """Builds the record for the new store."""

    def __init__(self, predicate: "Predicate | None", mask: Mask | None) -> None:
        self._predicate = predicate
        self._mask = mask
        self.unpacks = mask is not None and mask.unpacks
        """Whether the body of each message is unpacked."""
        self.changes_nothing = predicate is None and mask is None
        """Whether all records except those of light queues are copied as they are."""
        self.property_mask: PropertyMask | None = None
        """The mask, if it is all that is done to a record."""
        if predicate is None and isinstance(mask, PropertyMask):
            self.property_mask = mask

    def remake(self, record: bytes) -> bytes | None:
        """The record for the new store, None if a filter leaves it out.

        Raises UnmaskableError.
        """
        if self.changes_nothing and _LIGHT not in record:
            return record
        message = message_of(record)
        if self._predicate is not None and not self._fits(message):
            return None
        properties = message.properties
        if PROPERTY_INNER_MULTI_DISPATCH in properties:
            # They name offsets of light queues, which are not copied.
            dropped = (PROPERTY_INNER_MULTI_DISPATCH, PROPERTY_INNER_MULTI_QUEUE_OFFSET)
            message.properties = {n: v for n, v in properties.items() if n not in dropped}
        elif self._mask is None:
            return record
        try:
            return self._encoded(message, record)
        except BodyError as error:
            raise UnmaskableError(str(error)) from error
        except InvalidMessageError as error:
            raise UnmaskableError(f"{message.place}: {error}") from error

    def _fits(self, message: "MessageExt") -> bool:
        assert self._predicate is not None
        try:
            return self._predicate(message)
        except BodyError as error:
            raise UnmaskableError(str(error)) from error

    def _encoded(self, message: "MessageExt", record: bytes) -> bytes:
        length, before = len(message.property_bytes), _beside_properties(message)
        old = None
        if self.unpacks:
            old = message.body = message.body  # kept, so that a rule that changes it is seen
        if self._mask is not None:
            self._mask.apply(message)
        if old is not None and message.body is not old:
            set_stored_body(message, message.body)
        # Encoded again from the parsed form: a duplicate property occurs once.
        set_stored_properties(message, message.properties)
        if (
            _beside_properties(message) == before
            and message.stored_body
            and message.topic.isascii()
        ):
            return with_properties(record, length, message.property_bytes)
        return record_of(message)


def _beside_properties(message: "MessageExt") -> tuple[bytes, bytes, bytes, int]:
    """What masks and stored bodies change, but properties."""
    hosts = message.born_host_bytes, message.store_host_bytes
    return message.stored_body, *hosts, message.sys_flag
