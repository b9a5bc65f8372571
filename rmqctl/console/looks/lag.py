"""The lag of groups as looks share it: one reading for the looks of one moment, and its history."""

import gc
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import ne
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from analytics.lag.counts import CountedLags, GroupCounts, chosen_of
from analytics.lag.kept import Kept
from analytics.lag.selection import Choice
from analytics.lag.totals import is_unknown
from rmqctl.admin import lag
from rmqctl.admin.lag.backlog_rows import RiskRow
from rmqctl.admin.lag.rows import LagRow
from rmqctl.cli.gc_tuning import no_search_for_cycles
from rmqctl.console.looks.history import NO_LOOK, SLOTS, STEP_MS, Key, LagHistory, added
from storage.configs.offset_samples import OffsetSamples
from storage.retention import rules_of

from .cycle_search import MANY_NEW
from .look import LAG_HISTORY, Look, Place, Source

if TYPE_CHECKING:
    from analytics.lag.lag_snapshot import GroupLag, LagSnapshot

_SHARED_MS: Final = 500
"""Looks that begin within this time share one reading."""
_FIRST_QUEUES: Final = 2_500
"""A first reading of more queues is made in parts; that of about so many takes less than a second.
Parts are of half as many queues where the ends have to be found, as in a store that a Java broker
has left."""
_MOST_QUEUES: Final = 10_000
"""The queues of each later part: it takes a second or two."""
RISK_WITHIN_MS: Final = 86_400_000
"""How far ``lag risk`` looks ahead without an option."""


class TrendRow(NamedTuple):
    """The lag of a group in a topic within the last hour."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    members: Annotated[int, "live consumers of the group"]
    lags: Annotated[
        list[int | None],
        "lag at the end of each half minute, oldest first; null: unknown; -1: no look then",
    ]


class TrendRows(list[TrendRow]):
    """The trends of all groups, and their sum."""

    def __init__(self, rows: Iterable[TrendRow], total: list[int | None] | None) -> None:
        super().__init__(rows)
        self.total = [NO_LOOK] * SLOTS if total is None else total
        """Of a part of the groups there is no sum."""


_ALL: Final = Choice()
_WATCHED: Final = "lag"


class _Watched:
    """What is looked at again and again: all groups, or those of one screen."""

    def __init__(self, source: Source, choice: Choice) -> None:
        self.choice = choice
        self.watcher = lag.Watcher(source.view, source.broker, choice, source.now_ms)
        self.seen: LagSnapshot | None = None
        self._kept: tuple[Sequence[Key], int, Sequence[int | None]] = (), 0, ()
        """Of what the history has last: groups and topics, half minute, and their lag."""
        self._first_dues: Kept[GroupCounts, int | None] = Kept(_first_due)
        self._trends: tuple[int, Kept[GroupCounts, TrendRow] | None] = 0, None
        """The half minute, and the rows of it."""
        self._sums: dict[int, int | None] = {}
        """The lag of all groups at the end of half minutes; of those before the first look, and
        before others came or went, once the trends have been added up."""
        self._summed: Sequence[Key] | None = None
        """The groups and topics whose trends have been added up."""

    def look(self, source: Source) -> "LagSnapshot":
        """The lag now, or that of a moment ago."""
        seen = self.seen
        if seen is None or seen.left or not 0 <= source.now_ms - seen.as_of < _SHARED_MS:
            goes_on = seen is not None and seen.left
            most = _MOST_QUEUES if goes_on else _FIRST_QUEUES
            most = most if source.view.has_shared_state else most // 2
            with no_search_for_cycles():
                seen = self.seen = self.watcher.look(source.now_ms, most)
                self._keep(source, seen)
                if gc.get_count()[0] > MANY_NEW:
                    gc.freeze()  # most of it stays, and a look makes no cycles
        return seen

    def _keep(self, source: Source, seen: "LagSnapshot") -> None:
        """Keep the lag of a look; of a new group, what the samples of the store have first.

        Within a half minute only what changed is new.
        """
        history: LagHistory = source.memory.setdefault(LAG_HISTORY, LagHistory())
        keys, lags = keys_of(seen), self.watcher.lags(seen)
        before, slot, earlier = self._kept
        self._kept = keys, seen.as_of // STEP_MS, lags
        if not seen.left:
            known = [lag for lag in lags if lag is not None]
            self._sums[seen.as_of // STEP_MS] = sum(known) if known else None
        if keys is before and slot == seen.as_of // STEP_MS:
            others = [*compress(range(len(lags)), map(ne, lags, earlier))]
            history.add(seen.as_of, [(keys[number], lags[number]) for number in others])
            return
        new = [key for key in keys if key not in history]
        if new:
            since = source.now_ms - SLOTS * STEP_MS
            history.begin(new, OffsetSamples(source.view.root).read(since), source.now_ms)
        history.add(seen.as_of, zip(keys, lags, strict=True))

    def trends(self, source: Source, seen: "LagSnapshot") -> Iterable[TrendRow]:
        """The lags of the last hour; within a half minute those of groups that changed are new."""
        history: LagHistory = source.memory[LAG_HISTORY]
        lags, now = seen.group_lags, source.now_ms
        if not isinstance(lags, CountedLags):
            return [_trend(history, one, now) for one in lags]
        slot, kept = self._trends
        if kept is None or slot != now // STEP_MS:
            kept = Kept(lambda one: _trend(history, one, now))
            self._trends = now // STEP_MS, kept
        rows = kept.of(lags.counts)
        return TrendRows(rows, None if seen.left else self._total(rows, now // STEP_MS))

    def _total(self, rows: Sequence[TrendRow], slot: int) -> list[int | None]:
        """The lag of all groups in the last hour. Their trends are added up where groups have come
        or gone: that takes as long as many looks."""
        slots = range(slot - SLOTS + 1, slot + 1)
        if self._summed is not self._kept[0]:
            self._summed = self._kept[0]
            sums = dict(zip(slots, added(row.lags for row in rows), strict=False))
            self._sums.update((at, value) for at, value in sums.items() if at != slot)
        self._sums = {at: value for at, value in self._sums.items() if at in slots}
        return [self._sums.get(at, NO_LOOK) for at in slots]

    def risky(self, seen: "LagSnapshot", until: int) -> list["GroupLag"]:
        """The groups that have lost messages, or may lose some until then, or of which that is
        unknown."""
        lags = seen.group_lags
        if not isinstance(lags, CountedLags) or seen.doubt is not None:
            return list(lags)
        dues = self._first_dues.of(lags.counts)
        return [lags[n] for n, due in enumerate(dues) if due is not None and due <= until]


def _trend(history: LagHistory, one: "GroupCounts | GroupLag", now_ms: int) -> TrendRow:
    lags = history.lags((one.group, one.topic), now_ms)
    return TrendRow(one.group, one.topic, one.members, lags)


def _first_due(one: "GroupCounts") -> int | None:
    """When the first unread message of a group may be deleted, 0 if one has been or if that is
    unknown; None if all stay."""
    dues: list[int] = []
    for queue in one.queues:
        if (
            queue.unread.lost
            or is_unknown(queue.unread)
            or (queue.unread.first_unread is not None and queue.oldest_unread_timestamp is None)
        ):
            return 0
        if queue.risk_timestamp is not None:
            dues.append(queue.risk_timestamp)
    return min(dues, default=None)


def keys_of(seen: "LagSnapshot") -> Sequence[Key]:
    """Group and topic of each."""
    if isinstance(seen.group_lags, CountedLags):
        return seen.group_lags.keys
    return [(one.group, one.topic) for one in seen.group_lags]


def seen_lag(source: Source, choice: Choice) -> "LagSnapshot":
    """The lag now. Unknown parts are noticed each time."""
    return _seen(source, choice)[1]


def _seen(source: Source, choice: Choice) -> "tuple[_Watched, LagSnapshot]":
    """What is looked at for it, and the lag now."""
    watched, seen = _watched(source, choice)
    if choice == watched.choice:
        unknown = watched.watcher.unknown
    else:
        lags, left = chosen_of(seen.group_lags, choice.takes), watched.watcher.left(choice.takes)
        seen = seen._replace(group_lags=lags, left=left)
        unknown = lag.unknown_sentences(seen)
    if seen.left:
        of = len(seen.group_lags) + seen.left
        source.notice(f"{seen.left:,} of {of:,} groups in topics are still to be looked at")
        source.go_on()
    for sentence in unknown if seen.doubt is None else [seen.doubt, *unknown]:
        source.notice(sentence)
    return watched, seen


def lag_rows(source: Source, choice: Choice) -> Iterable[LagRow]:
    """The rows of ``lag show``; those that did not change since the last look are kept."""
    watched, seen = _seen(source, choice)
    if choice == watched.choice:
        with no_search_for_cycles():
            return watched.watcher.group_rows(seen)
    return lag.group_rows(seen)


def _watched(source: Source, choice: Choice) -> "tuple[_Watched, LagSnapshot]":
    """All groups if they were looked at before and hold what is chosen: their history is longer;
    and what is seen of them. Once a reading: of a first look each call reads another part."""
    known: dict[bool, _Watched] = source.memory.setdefault(_WATCHED, {})
    everything = known.get(True)
    if everything is not None and choice != _ALL:
        seen = everything.look(source)
        if any(choice.takes(*key) for key in keys_of(seen)):
            return everything, seen
    found = known.get(choice == _ALL)
    if found is None or found.choice != choice:
        found = known[choice == _ALL] = _Watched(source, choice)
    return found, found.look(source)


def _risks(source: Source, place: Place) -> Iterable[Any]:
    watched, seen = _seen(source, Choice())
    rules = rules_of(source.view.root, source.view.config)
    risky = watched.risky(seen, seen.as_of + RISK_WITHIN_MS)
    return lag.risk_rows(source.view, seen._replace(group_lags=risky), rules, RISK_WITHIN_MS)


def _trends(source: Source, place: Place) -> Iterable[Any]:
    choice = Choice(list(place.names) if place.screen == "group" else None)
    watched, seen = _seen(source, choice)
    return watched.trends(source, seen)


RISKS: Final = Look(
    "risks",
    RiskRow,
    _risks,
    lambda place: ("lag", "risk"),
    ("group", "topic"),
    opens=lambda row: Place("group", (row.group,)),
)
TRENDS: Final = Look(
    "trends",
    TrendRow,
    _trends,
    lambda place: ("lag", "watch", *(place.names if place.screen == "group" else ())),
    ("group", "topic"),
)
