"""Repeated readings of the lag: their changes, and what is left to read."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from math import ceil
from typing import TYPE_CHECKING

from analytics.lag.counts import CountedLags, counts_of
from analytics.lag.lag_snapshot import LagSnapshot
from analytics.lag.queue_position import QueuePosition
from analytics.lag.repeated_look import RepeatedLook
from analytics.lag.selection import Choice
from analytics.lag.trend import TREND_WINDOW_MS
from rmqctl.errors import CliError
from rmqctl.exit_codes import NOT_FOUND
from storage.configs.offset_samples import OffsetSamples

from .columns import LagColumns
from .not_read import not_read_queues, not_read_sentences
from .snapshot import ReadersAgain
from .unknown import NO_PROGRESS, unknown_sentences
from .watch_rows import WatchedRateRow, WatchedRow

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.configs.topics import TopicConfig
    from storage.readonly import StoreView

    from .rows import LagRow


class Watcher:
    """Reads the lag of a store and keeps a history: the store's samples, then its own readings."""

    def __init__(
        self,
        view: "StoreView",
        broker: "Broker",
        choice: Choice,
        now_ms: int,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """``tell`` takes sentences about what is unknown and what is not read, each once as long
        as it holds."""
        self._broker = broker
        self._readers = ReadersAgain(view, broker, choice)
        history = OffsetSamples(view.root).read(now_ms - TREND_WINDOW_MS)
        self._repeated = RepeatedLook(view, history)
        self._columns = LagColumns()
        self._before: dict[tuple[str, str], int | None] = {}
        self._tell = tell
        self._told: set[str] = set()
        self._not_read: set[tuple[str, str, int]] = set()
        """Group, topic and id of the queues that were not read at the last reading."""
        self.unknown: list[str] = []
        """The sentences about unknown values of the last reading."""

    def look(self, now_ms: int, most_queues: int | None = None) -> LagSnapshot:
        """Read now, and keep the reading for the next ones. With ``most_queues`` the first reading
        is made in parts, one a call; see :meth:`.RepeatedLook.look`."""
        chosen = self._readers.now()
        topics = self._broker.topics()
        seen = self._repeated.look(topics, chosen, now_ms, most_queues)
        self._note_unknown(seen)
        if self._tell is not None:
            self._tell_not_read(seen, topics, self._tell)
        return seen

    def left(self, takes: Callable[[str, str], bool]) -> int:
        """How many groups in topics, of those that ``takes`` takes, are still to be looked at."""
        return self._repeated.left(takes)

    def group_rows(self, seen: LagSnapshot) -> "list[LagRow]":
        """The rows of the last reading, as :func:`rmqctl.admin.lag.group_rows` gives them."""
        return self._columns.rows(_counted(seen), seen.as_of)

    def lags(self, seen: LagSnapshot) -> Sequence[int | None]:
        """The lag of each group and topic of the last reading."""
        return self._columns.lags(_counted(seen))

    def _note_unknown(self, seen: LagSnapshot) -> None:
        """Keep the sentences about unknown values, and tell those that are new."""
        doubts = [] if seen.doubt is None else [seen.doubt]
        if not seen.group_lags and not doubts:
            doubts = [NO_PROGRESS]
        self.unknown = self._columns.unknown(_counted(seen))
        sentences = {*doubts, *self.unknown}
        if self._tell is not None:
            for sentence in sorted(sentences - self._told):
                self._tell(sentence)
        self._told = sentences

    def _tell_not_read(
        self,
        seen: LagSnapshot,
        topics: "Mapping[str, TopicConfig]",
        tell: Callable[[str], None],
    ) -> None:
        """Name the queues that are not read, except those of the reading before."""
        queues = list(not_read_queues(seen, topics))
        for sentence in not_read_sentences([q for q in queues if q.place not in self._not_read]):
            tell(sentence)
        self._not_read = {queue.place for queue in queues}

    def rows(self, seen: LagSnapshot, *, with_rates: bool) -> list[WatchedRow | WatchedRateRow]:
        """A row for each group and topic; call it once per reading."""
        before, self._before = self._before, {}
        found: list[WatchedRow | WatchedRateRow] = []
        counts = _counted(seen).counts
        for one, row in zip(counts, self.group_rows(seen), strict=True):
            key = row.group, row.topic
            self._before[key] = row.lag
            earlier = before.get(key)
            change = None if row.lag is None or earlier is None else row.lag - earlier
            head = (seen.as_of, *key, row.lag, change, row.oldest_unread_age_ms)
            tail = (row.status, row.retry, row.dlq)
            if not with_rates:
                found.append(WatchedRow(*head, *tail))
                continue
            members = one.members, needed(one.members, row.rate_in, row.rate_out)
            rates = (row.rate_in, row.rate_out, row.drain_ms, *members)
            found.append(WatchedRateRow(*head, *rates, *tail))
        return found


def _counted(seen: LagSnapshot) -> CountedLags:
    if not isinstance(seen.group_lags, CountedLags):
        raise TypeError("it is no reading of a watcher")
    return seen.group_lags


class Left(Enum):
    """What groups still have to read."""

    NOTHING = 0
    SOME = 1
    """Unread messages, or messages in a queue in which a group has no progress yet."""
    UNKNOWN = 2
    """No message is known to be unread, and waiting longer does not clarify more."""


def left(seen: LagSnapshot) -> Left:
    """What is left to read. Progress beyond the end, unreliable progress and no group at all
    count as unknown, not as nothing."""
    unread = [queue.unread for one in counts_of(seen.group_lags) for queue in one.queues]
    if any(what.lag or (what.lag is None and not what.ahead and _holds(what)) for what in unread):
        return Left.SOME
    if not unread or seen.doubt is not None or any(what.ahead for what in unread):
        return Left.UNKNOWN
    return Left.NOTHING


def _holds(what: QueuePosition) -> bool:
    return what.max_offset > what.min_offset


def check_known(seen: LagSnapshot) -> None:
    """Raise CliError (3), as unknown progress does not count as drained."""
    if left(seen) is not Left.UNKNOWN:
        return
    doubts = [] if seen.doubt is None else [seen.doubt]
    reasons = [*doubts, *unknown_sentences(seen)] or ["no group has any progress"]
    more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    raise CliError(
        f"no message is known to be unread, but progress is incomplete: {reasons[0]}{more}",
        NOT_FOUND,
    )


def needed(members: int, rate_in: float | None, rate_out: float | None) -> int | None:
    """The number of members that keep up with the input, each as fast as the present ones.

    None without members, if they read nothing, or if unknown.
    """
    if not members or not rate_out or rate_in is None:
        return None
    return ceil(rate_in / (rate_out / members))
