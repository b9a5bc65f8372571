"""The lag of groups: how much they have not read, and what that means.

    look               a LagSnapshot of the files of a store, from which the others are made
    group_rows         a LagRow for each group and topic; topic_rows, queue_rows: LagTopicRow,
                       LagQueueRow
    unknown_of         why values of a group in a topic are unknown; unknown_sentences: as text
    check              a verdict about each group, by Limits or by its status: a CheckResult
    compare            a LagComparisonRow for each row of now and an Earlier, which ``earlier_of``
                       makes from the rows of a store as of a time, ``read_recorded`` from a file
    compact            joins the small files of kept reports
    record             appends the lag of a moment to a file
    parts_of           the unread messages of a snapshot, for analytics.lag.histogram
    bucket_rows        its buckets as HistogramRow; name_rows: unread messages by tag, key or host
    risk_rows          a RiskRow for each group that lost or may lose unread messages
    Watcher            repeated readings; ``left`` says what is left to read, ``check_known`` raises
                       where that is unknown, ``needed`` counts the members that keep up

``analytics.lag.selection.Choice`` names groups and topics; by default all. ``age_label`` and
``size_label`` show edges of buckets. Unknown is None, never 0. Errors: NotFound for a group or a
topic that does not exist, CorruptFileError for offsets that cannot be read.
"""

from typing import TYPE_CHECKING

from rmqctl.admin.lazy_names import lazy_names

if TYPE_CHECKING:
    from .backlog import (
        age_label as age_label,
        bucket_rows as bucket_rows,
        name_rows as name_rows,
        parts_of as parts_of,
        risk_rows as risk_rows,
        size_label as size_label,
    )
    from .compaction import Compaction as Compaction, compact as compact
    from .comparison import compare as compare, earlier_of as earlier_of
    from .limits import Limit as Limit, Limits as Limits, check as check
    from .recording import read_recorded as read_recorded, record as record
    from .snapshot import look as look
    from .tables import (
        group_rows as group_rows,
        queue_rows as queue_rows,
        topic_rows as topic_rows,
    )
    from .unknown import unknown_of as unknown_of, unknown_sentences as unknown_sentences
    from .watcher import (
        Left as Left,
        Watcher as Watcher,
        check_known as check_known,
        left as left,
        needed as needed,
    )

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "backlog": (
            *("age_label", "bucket_rows", "name_rows", "parts_of", "risk_rows", "size_label"),
        ),
        "compaction": ("Compaction", "compact"),
        "comparison": ("compare", "earlier_of"),
        "limits": ("Limit", "Limits", "check"),
        "recording": ("read_recorded", "record"),
        "snapshot": ("look",),
        "tables": ("group_rows", "queue_rows", "topic_rows"),
        "unknown": ("unknown_of", "unknown_sentences"),
        "watcher": ("Left", "Watcher", "check_known", "left", "needed"),
    },
)
