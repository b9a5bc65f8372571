"""The lag of groups now against an earlier time."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from .comparison_rows import LagComparisonRow

if TYPE_CHECKING:
    from .rows import LagRow


class EarlierLag(NamedTuple):
    """The lag of a group in a topic at the earlier time; None is unknown, also in part."""

    lag: int | None
    age_ms: int | None


class Earlier(NamedTuple):
    """The lag of groups at an earlier time."""

    as_of: int | None
    """When it was (ms); None where a file has no time."""
    lags: Mapping[tuple[str, str], EarlierLag]
    """By group and topic."""
    doubt: str | None = None
    """Why the progress of groups was not reliable; the lags are unknown then."""


def earlier_of(rows: "Iterable[LagRow]", as_of: int) -> Earlier:
    """The earlier lag from the rows of a store as of that time."""
    lags = {
        (row.group, row.topic): earlier_lag(row.lag, row.oldest_unread_age_ms, row.unknown_queues)
        for row in rows
    }
    return Earlier(as_of, lags)


def earlier_lag(lag: int | None, age_ms: int | None, unknown_queues: int) -> EarlierLag:
    """A lag of which a part is unknown is unknown: a change of it would have no meaning."""
    if unknown_queues:
        return EarlierLag(None, None)
    return EarlierLag(lag, 0 if lag == 0 else age_ms)


UNKNOWN_LAG: Final = EarlierLag(None, None)


def compare(
    rows: "Iterable[LagRow]", earlier: Earlier, doubt: str | None = None
) -> Iterator[LagComparisonRow]:
    """A row for each row of now; its earlier lag is None if unknown. ``doubt``: the progress of
    groups is not reliable now, so no change is known."""
    for row in rows:
        then = earlier.lags.get((row.group, row.topic), UNKNOWN_LAG)
        now = UNKNOWN_LAG
        if doubt is None:
            now = earlier_lag(row.lag, row.oldest_unread_age_ms, row.unknown_queues)
        yield LagComparisonRow(
            row.group,
            row.topic,
            then.lag,
            row.lag,
            _change(then.lag, now.lag),
            then.age_ms,
            0 if row.lag == 0 else row.oldest_unread_age_ms,
            _change(then.age_ms, now.age_ms),
            row.status,
            earlier.as_of,
        )


def _change(then: int | None, now: int | None) -> int | None:
    return None if then is None or now is None else now - then
