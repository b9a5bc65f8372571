"""The rows of ``store carve``."""

from typing import Annotated, NamedTuple


class CarvePlanRow(NamedTuple):
    """A queue of which something goes into the new store."""

    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int, "the queue"]
    first_offset: Annotated[int, "queue offset of the first message that is looked at"]
    end_offset: Annotated[int, "queue offset behind the last one"]
    messages: Annotated[int | None, "messages that go over; null before filters have seen them"]


class CarvedRow(NamedTuple):
    """A queue of which something went into the new store."""

    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int, "the queue"]
    first_offset: Annotated[int, "queue offset of the first message that was looked at"]
    end_offset: Annotated[int, "queue offset behind the last one"]
    messages: Annotated[int, "messages that went over"]
    new_first_offset: Annotated[int | None, "queue offset of the first in the new store"]
    new_end_offset: Annotated[int | None, "queue offset that its next message will get there"]
    lost: Annotated[int, "messages that could not be read, or not be masked"]
    applied: Annotated[bool, "whether the new store is there"]
