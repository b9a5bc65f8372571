"""Which filters bound what is read, and which are left to Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringStartsWith,
)

from analytics.datasource.query.selection import EVERYTHING, Selection, select

FAR = Selection().queue_offset[1]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp()) * 1000


def test_names_and_numbers_are_done_with() -> None:
    place = GreaterThanOrEqual(("commitlog_offset",), 100)
    chosen, left = select(
        [
            IsNotNull(("topic",)),
            EqualTo(("topic",), "T"),
            In(("queue_id",), (1, 2)),
            GreaterThan(("queue_offset",), 5),
            LessThanOrEqual(("queue_offset",), 9),
            place,
        ]
    )
    assert left == [place]  # of a message whose unit is missing it is null
    assert chosen.wants("topic", "T")
    assert not chosen.wants("topic", "U")
    assert chosen.wants("queue_id", 2)
    assert not chosen.wants("queue_id", 0)
    assert chosen.queue_offset == (6, 10)
    assert chosen.commitlog_offset == (100, FAR)


def test_two_filters_on_a_name_leave_what_both_want() -> None:
    chosen, _ = select([In(("topic",), ("T", "U")), EqualTo(("topic",), "V")])
    assert not any(chosen.wants("topic", topic) for topic in "TUV")


@pytest.mark.parametrize(
    ("kind", "more_us", "bounds"),
    [
        (GreaterThan, 0, (NOON_MS, FAR)),
        (GreaterThanOrEqual, 500, (NOON_MS, FAR)),
        (LessThan, 0, (0, NOON_MS + 1)),
        (LessThan, 500, (0, NOON_MS + 1)),
        (LessThanOrEqual, 500, (0, NOON_MS + 1)),
        (EqualTo, 0, (NOON_MS, NOON_MS + 1)),
    ],
)
def test_times_bound_what_is_read_and_stay_with_spark(
    kind: type, more_us: int, bounds: tuple[int, int]
) -> None:
    item: Filter = kind(("store_timestamp",), NOON + timedelta(microseconds=more_us))
    chosen, left = select([item])
    assert left == [item]
    assert chosen.store_timestamp == bounds


def test_everything_else_stays_with_spark() -> None:
    others: list[Filter] = [
        Not(EqualTo(("topic",), "T")),
        StringContains(("topic",), "T"),
        EqualTo(("tags",), "a?"),
        EqualTo(("tags",), ""),
        In(("tags",), (None,)),
        StringStartsWith(("tags",), "a"),
        EqualTo(("a", "topic"), "T"),
        EqualTo(("topic",), None),
        EqualTo(("queue_offset",), 1.5),
    ]
    assert select(others) == (Selection(), others)


def test_prefixes_of_topics_are_done_with() -> None:
    chosen, left = select([StringStartsWith(("topic",), "pay"), StringStartsWith(("topic",), "p")])
    assert left == []
    assert chosen.wants("topic", "pay-2")
    assert not chosen.wants("topic", "pa")
    assert chosen.sentence() == "topic like 'pay%' and topic like 'p%'"


def test_lists_of_offsets_are_bounds_and_members() -> None:
    place = In(("commitlog_offset",), (500, 100, None))
    chosen, left = select([In(("queue_offset",), (9, 3, None, 4)), place])
    assert left == [place]
    assert chosen.queue_offset == (3, 10)
    assert chosen.queue_offsets == frozenset({3, 4, 9})
    assert chosen.commitlog_offset == (100, 501)
    none, _ = select([In(("queue_offset",), (None,))])
    assert none.queue_offset[0] >= none.queue_offset[1]


def test_tags_bound_what_is_read_and_stay_with_spark() -> None:
    filters: list[Filter] = [In(("tags",), ("a", "b", None)), EqualTo(("tags",), "b")]
    chosen, left = select(filters)
    assert left == filters
    assert chosen.tags == frozenset({"b"})


def test_a_selection_is_a_sentence() -> None:
    chosen, _ = select(
        [
            EqualTo(("topic",), "T"),
            In(("queue_id",), tuple(range(9))),
            GreaterThan(("queue_offset",), 5),
            LessThanOrEqual(("queue_offset",), 9),
            EqualTo(("tags",), "a"),
        ]
    )
    assert chosen.sentence() == (
        "topic in ('T') and queue_id in (0, 1, 2, 3, 4, ... (9)) and queue_offset >= 6 "
        "and queue_offset < 10 and tag in ('a')"
    )
    assert EVERYTHING.sentence() == ""
