"""The rows of ``store carve``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Rank


class CarvePlanRow(NamedTuple):
    """A queue to copy."""

    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int, "the queue"]
    first_offset: Annotated[int, "queue offset of the first message to read"]
    end_offset: Annotated[int, "queue offset after the last one"]
    messages: Annotated[int | None, "messages to copy; null before filters are applied"]


class CarvedRow(NamedTuple):
    """A copied queue."""

    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int, "the queue"]
    first_offset: Annotated[int, "queue offset of the first message that was read"]
    end_offset: Annotated[int, "queue offset after the last one"]
    messages: Annotated[int, "copied messages"]
    new_first_offset: Annotated[int | None, "queue offset of the first message in the new store"]
    new_end_offset: Annotated[int | None, "queue offset of the next message to be stored there"]
    lost: Annotated[int, "messages that could not be read or masked", Rank.KEY]
    applied: Annotated[bool, "whether the new store was created", Rank.KEY]
