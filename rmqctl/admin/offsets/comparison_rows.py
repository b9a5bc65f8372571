"""The rows of ``offset diff`` and ``offset export``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import OmitNull


class OffsetDiffRow(NamedTuple):
    """The offset of one queue on both sides."""

    group: Annotated[str | None, "the consumer group; null where two groups are compared"]
    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int, "the queue"]
    offset_a: Annotated[int | None, "the first side's; null for none"]
    offset_b: Annotated[int | None, "the second side's; null for none"]
    difference: Annotated[int | None, "by how many the second one is further; null without both"]
    note: Annotated[str | None, OmitNull("between what an offset lay that is not known exactly")]


class ExportedOffset(NamedTuple):
    """A committed offset, as Kafka's tool writes it, too."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int, "the queue"]
    offset: Annotated[int, "the next message that the group will read"]
