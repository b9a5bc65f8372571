"""The rows of ``store recover-offsets``."""

from typing import Annotated, Any, NamedTuple

from broker.offset_recovery.evidence import Bound, Source
from rmqctl.output.fields import Wide

_APPLIED = Annotated[bool | None, "whether it was written, as read back; null: not changed"]
_new_row_type: Any = NamedTuple


class RecoveredOffset(NamedTuple):
    """The recovered progress of a group in a queue."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int, "the queue"]
    old_offset: Annotated[int | None, "readable committed offset; null for none"]
    new_offset: Annotated[int | None, "recovered offset; null without evidence"]
    max_offset: Annotated[int, "offset of the next message to be stored"]
    source: Annotated[
        Source | None, "kind of evidence: file, offsets, bak, note, journal, sample, retry, trace"
    ]
    evidence: Annotated[str | None, "the file, change or message"]
    bound: Annotated[Bound | None, "AT_LEAST; EXACTLY_AT the time of the evidence; HANDED"]
    evidence_timestamp: Annotated[int | None, Wide("time of the evidence")]
    handed_offset: Annotated[
        int | None,
        Wide("offset after the last message surely delivered to the group; it may have read less"),
    ]
    min_offset: Annotated[int, Wide("offset of the first stored message")]


RecoveredOffsetDone: Any = _new_row_type(
    "RecoveredOffsetDone", [*RecoveredOffset.__annotations__.items(), ("applied", _APPLIED)]
)
"""A recovered offset and whether it was written."""
