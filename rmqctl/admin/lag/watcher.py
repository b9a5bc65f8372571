"""Repeated readings of the lag: their changes, and what is left to read."""

from collections.abc import Callable
from enum import Enum
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from analytics.lag.lag_snapshot import LagSnapshot
from analytics.lag.queue_position import QueuePosition
from analytics.lag.selection import Choice
from analytics.lag.totals import add_up
from analytics.lag.trend import TREND_WINDOW_MS
from rmqctl.errors import CliError
from rmqctl.exit_codes import NOT_FOUND
from storage.configs.consumer_offsets import topic_at_group
from storage.configs.offset_samples import OffsetSamples

from .snapshot import look
from .unknown import unknown_sentences
from .watch_rows import WatchedRateRow, WatchedRow

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView

_FORGET_EVERY: Final = 100
"""Readings after which old ones are discarded."""


class Watcher:
    """Reads the lag of a store and keeps a history: the store's samples, then its own readings."""

    def __init__(
        self,
        view: "StoreView",
        broker: "Broker",
        choice: Choice,
        now_ms: int,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._view = view
        self._broker = broker
        self._choice = choice
        self._history = OffsetSamples(view.root).read(now_ms - TREND_WINDOW_MS)
        self._before: dict[tuple[str, str], int | None] = {}
        self._looks = 0
        self._tell = tell
        self._told: set[str] = set()

    def look(self, now_ms: int) -> LagSnapshot:
        """Read now, and keep the reading for the next ones."""
        seen = look(self._view, self._broker, now_ms, self._choice, self._history)
        self._history.add(_as_sample(seen), is_first=not self._looks)
        self._looks += 1
        self._tell_unknown(seen)
        if not self._looks % _FORGET_EVERY:
            self._history.forget_before(now_ms - TREND_WINDOW_MS)
        return seen

    def _tell_unknown(self, seen: LagSnapshot) -> None:
        """Warn once of unknown values, and again when they change."""
        doubts = [] if seen.doubt is None else [seen.doubt]
        sentences = {*doubts, *unknown_sentences(seen)}
        for sentence in sorted(sentences - self._told):
            self._tell(sentence)
        self._told = sentences

    def rows(self, seen: LagSnapshot, *, with_rates: bool) -> list[WatchedRow | WatchedRateRow]:
        """A row for each group and topic; call it once per reading."""
        before, self._before = self._before, {}
        found: list[WatchedRow | WatchedRateRow] = []
        for group_lag in seen.group_lags:
            key = group_lag.group, group_lag.topic
            total = add_up(group_lag.queues)
            self._before[key] = total.lag
            earlier = before.get(key)
            change = None if total.lag is None or earlier is None else total.lag - earlier
            oldest = total.oldest_unread_timestamp
            age = None if oldest is None else max(0, seen.as_of - oldest)
            head = (seen.as_of, *key, total.lag, change, age)
            tail = (total.status, group_lag.retry, group_lag.dlq)
            if not with_rates:
                found.append(WatchedRow(*head, *tail))
                continue
            members = group_lag.members, needed(group_lag.members, total.rate_in, total.rate_out)
            rates = (total.rate_in, total.rate_out, total.drain_ms, *members)
            found.append(WatchedRateRow(*head, *rates, *tail))
        return found


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
    unread = [queue.unread for group_lag in seen.group_lags for queue in group_lag.queues]
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


def _as_sample(seen: LagSnapshot) -> dict[str, Any]:
    committed: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for group_lag in seen.group_lags:
        offsets = committed.setdefault(topic_at_group(group_lag.topic, group_lag.group), {})
        highs = ends.setdefault(group_lag.topic, {})
        for queue in group_lag.queues:
            highs[str(queue.queue_id)] = queue.unread.max_offset
            if queue.unread.committed_offset is not None:
                offsets[str(queue.queue_id)] = queue.unread.committed_offset
    return {"at": seen.as_of, "committed": committed, "ends": ends}
