"""Offsets of groups: move them, take a move back, and find those that belong to nothing.

    reset            to a time, an end, an offset, a message, another group
    reset_by_time    by the rule of RocketMQ's resetOffsetByTime
    import_offsets   to given offsets
    undo             back to before a change of the journal
    delete           to no offset
    orphans          offsets, retry topics and queues that belong to nothing
    fix_orphans      what moving offsets can put right of those
    export           the offsets of groups, to keep them
    diff             two sides, queue by queue: of side_of_group, side_of_store or side_at a time

    list_offsets     the progress of groups, in short
    inspect          everything about it: ages, bytes, last change; of ``committed_offsets``
    messages_around  messages before and after a position of each of some ``places``

``orphans``, ``export``, ``diff`` and the last three give rows. Each of the others returns an
:class:`rmqctl.admin.offsets.change.OffsetMove`. All queues of one change are moved, or none.
Destinations of ``reset`` are ``to_time``, ``to_earliest``, ``to_latest``, ``to_current``,
``to_offset``, ``shift_by``, ``to_group`` and ``to_messages``.

Offsets count messages of a queue from 0; an offset is that of the next message to read, and an end
is exclusive. Times are epoch milliseconds. None is no offset. Arguments of the same name are alike:

    view, broker     the files of the store, and a broker over it; read only is enough
    no_live          refuse (Refused) where consumers of a group run
    now_ms           the time from which ages count; default: now
    warn             called with sentences about doubtful facts
    java_check       refuses beside a Java broker; called right before the write. Default:
                     rmqctl.admin.java_writers.refuse_beside_java, made when ``apply`` is called

They raise NotFound for an unknown group, topic, queue or change, InvalidNameError for a name that
cannot be one, and CorruptFileError for a file of offsets that cannot be read. ``check`` and
``apply`` raise OffsetChangedError if an offset was moved since the plan was made, StoreInUseError
beside a Java broker, WriteLockTimeoutError, and StoreNotWritableError.
"""

from typing import TYPE_CHECKING

from rmqctl.admin.lazy_names import lazy_names

if TYPE_CHECKING:
    from .around import Around as Around, messages_around as messages_around
    from .change import OffsetMove as OffsetMove
    from .committed import (
        CommittedOffsets as CommittedOffsets,
        OffsetSource as OffsetSource,
        committed_offsets as committed_offsets,
    )
    from .comparison import diff as diff, export as export
    from .deletion import delete as delete
    from .inspection import (
        Chosen as Chosen,
        Place as Place,
        Wanted as Wanted,
        inspect as inspect,
        list_offsets as list_offsets,
        places as places,
    )
    from .orphan_change import fix_orphans as fix_orphans, orphans as orphans
    from .orphan_rows import Orphan as Orphan
    from .queues import QueueId as QueueId, TopicChoice as TopicChoice
    from .reset_change import import_offsets as import_offsets, reset as reset
    from .reset_targets import (
        shift_by as shift_by,
        to_current as to_current,
        to_earliest as to_earliest,
        to_group as to_group,
        to_latest as to_latest,
        to_messages as to_messages,
        to_offset as to_offset,
        to_time as to_time,
    )
    from .rows import PlannedMove as PlannedMove
    from .sides import (
        Side as Side,
        side_at as side_at,
        side_of_group as side_of_group,
        side_of_store as side_of_store,
    )
    from .time_reset import reset_by_time as reset_by_time
    from .undo_change import undo as undo

_NAMES = {
    "around": ("Around", "messages_around"),
    "change": ("OffsetMove",),
    "committed": ("CommittedOffsets", "OffsetSource", "committed_offsets"),
    "inspection": ("Chosen", "Place", "Wanted", "inspect", "list_offsets", "places"),
    "comparison": ("diff", "export"),
    "deletion": ("delete",),
    "orphan_rows": ("Orphan",),
    "orphan_change": ("fix_orphans", "orphans"),
    "queues": ("QueueId", "TopicChoice"),
    "reset_change": ("import_offsets", "reset"),
    "time_reset": ("reset_by_time",),
    "reset_targets": (
        *("shift_by", "to_current", "to_earliest", "to_group"),
        *("to_latest", "to_messages", "to_offset", "to_time"),
    ),
    "rows": ("PlannedMove",),
    "sides": ("Side", "side_at", "side_of_group", "side_of_store"),
    "undo_change": ("undo",),
}
__getattr__, __all__ = lazy_names(__name__, _NAMES)
