"""The rows of ``store recover-offsets`` and ``recover-config``."""

from typing import Annotated, Any, NamedTuple

from broker.offset_recovery.evidence import Bound, Source
from rmqctl.output.fields import Wide
from storage.tools.config_recovery.configs import Evidence

_APPLIED = Annotated[bool | None, "whether it was done, as read back; null: left alone"]
_new_row_type: Any = NamedTuple


class RecoveredOffset(NamedTuple):
    """What is known of a group's progress in a queue."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int, "the queue"]
    old_offset: Annotated[int | None, "what can be read as committed; null: nothing"]
    new_offset: Annotated[int | None, "what was recovered; null: nothing tells"]
    max_offset: Annotated[int, "where the next message will be"]
    source: Annotated[
        Source | None, "file, offsets, bak, note, journal, sample, retry, trace: what tells"
    ]
    evidence: Annotated[str | None, "which file, change or message that is"]
    bound: Annotated[Bound | None, "AT_LEAST; EXACTLY_AT the time of the evidence; HANDED"]
    evidence_timestamp: Annotated[int | None, Wide("when the evidence was stored or written")]
    handed_offset: Annotated[
        int | None,
        Wide("behind the furthest message that the group was surely given; it may have been less"),
    ]
    min_offset: Annotated[int, Wide("the first message that is still there")]


RecoveredOffsetDone: Any = _new_row_type(
    "RecoveredOffsetDone", [*RecoveredOffset.__annotations__.items(), ("applied", _APPLIED)]
)
"""A recovered offset and whether it was written."""


class RecoveredSettingRow(NamedTuple):
    """A row of a settings file that was damaged."""

    file: Annotated[str, "topics.json, subscriptionGroup.json or delayOffset.json"]
    name: Annotated[str, "the topic, the group or the delay level"]
    new_value: Annotated[Any, "its settings in the file's JSON; of a level the next offset"]
    source: Annotated[Evidence, "file, bak, queues, offsets, retry, delivered: what tells"]
    evidence: Annotated[str, "which file, queue or message that is"]


RecoveredSettingDone: Any = _new_row_type(
    "RecoveredSettingDone", [*RecoveredSettingRow.__annotations__.items(), ("applied", _APPLIED)]
)
"""A recovered row and whether it was written."""
