"""Rows of light queues (LMQ): a row's place is that of the queue it was read from."""

from __future__ import annotations

import pytest
from pyspark.sql.datasource import EqualTo, In

from storage.readonly import StoreView
from tests.support import golden
from tests.support.spark_source import read_table

LIGHT = "%LMQ%Goldenone"
PLACE = ("topic", "queue_id", "queue_offset")


def test_a_place_names_one_message_and_joins_with_the_units() -> None:
    root = golden.store("lmq-4.9")
    messages = read_table("messages", root, columns=(*PLACE, "commitlog_offset"))
    units = read_table("consumequeue", root, columns=(*PLACE, "commitlog_offset"))
    assert messages == units
    assert len({tuple(row[name] for name in PLACE) for row in messages}) == len(messages)
    assert any(row["topic"] == LIGHT for row in messages)


@pytest.mark.parametrize("offset", range(6))
def test_a_filter_on_the_offset_gives_the_message_of_that_offset(offset: int) -> None:
    root = golden.store("lmq-4.9")
    with StoreView.open(root) as view:
        low, high = view.queue_bounds(LIGHT, 0)
    plain = [row for row in read_table("messages", root) if _at(row, offset)]
    filters = [EqualTo(("topic",), LIGHT), EqualTo(("queue_offset",), offset)]
    pushed = read_table("messages", root, pushdown="true", filters=filters)
    assert pushed == plain
    assert [row["queue_offset"] for row in pushed] == [offset] * (low <= offset < high)


def _at(row: dict[str, object], offset: int) -> bool:
    return (row["topic"], row["queue_offset"]) == (LIGHT, offset)


@pytest.mark.slow
def test_the_place_that_the_record_names_has_columns_of_its_own() -> None:
    root = golden.store("lmq-4.9")
    rows = read_table("messages", root)
    for row in rows:
        own = (row["record_topic"], row["record_queue_id"], row["record_queue_offset"])
        with StoreView.open(root) as view:
            stored = view.look_message_by_offset(row["commitlog_offset"])
        assert stored is not None
        assert own == (stored.topic, stored.queue_id, stored.queue_offset)
        if not row["topic"].startswith("%LMQ%"):
            assert own == tuple(row[name] for name in PLACE)
    light = [row for row in rows if row["topic"] == LIGHT]
    assert all(not row["record_topic"].startswith("%LMQ%") for row in light)
    assert any(row["record_queue_offset"] != row["queue_offset"] for row in light)


def test_filters_on_light_queues_are_not_taken_for_those_of_the_parent() -> None:
    root = golden.store("lmq-4.9")
    filters = [In(("topic",), (LIGHT,))]
    rows = read_table("messages", root, pushdown="true", filters=filters)
    assert {row["topic"] for row in rows} == {LIGHT}
