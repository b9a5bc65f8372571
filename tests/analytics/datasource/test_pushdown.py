"""Filters that the reader applies give the rows that Spark alone would give."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    In,
    LessThanOrEqual,
    StringStartsWith,
)

from analytics.datasource.query.errors import DamagedError
from analytics.datasource.rows.readers import PushdownReader, TableReader
from tests.support import golden
from tests.support.golden_samples import SOME_READ_OTHERWISE
from tests.support.hand_made import TINY, HandMade
from tests.support.spark_source import Row, columns_of, read_table, rows_of, source

CONFIG = TINY.with_(mapped_file_size_commit_log=8192, mapped_file_size_consume_queue=400)
COLUMNS = ("topic", "queue_id", "queue_offset", "tags", "commitlog_offset")


def passes(row: Row, item: Filter) -> bool:
    value = row[item.attribute[0]]  # type: ignore[attr-defined]
    wanted: Any = item.value  # type: ignore[attr-defined]
    if value is None:
        return False
    match type(item).__name__:
        case "EqualTo":
            return bool(value == wanted)
        case "In":
            return value in wanted
        case "GreaterThan":
            return bool(value > wanted)
        case "LessThanOrEqual":
            return bool(value <= wanted)
        case "StringStartsWith":
            return str(value).startswith(wanted)
    raise AssertionError(item)


def check(plain: Sequence[Row], root: Path, filters: list[Filter], **options: str) -> int:
    """Compare, and give the number of rows that the reader gave to Spark."""
    reader = source(root, pushdown="true", **options).reader(columns_of("messages", *COLUMNS))
    left = list(reader.pushFilters(filters))
    found = rows_of(reader)
    done = [item for item in filters if item not in left]
    assert all(passes(row, item) for row in found for item in done)
    wanted = [row for row in plain if all(passes(row, item) for item in filters)]
    assert [row for row in found if all(passes(row, item) for item in left)] == wanted
    return len(found)


@pytest.mark.slow
@SOME_READ_OTHERWISE
def test_tags_prefixes_and_lists_of_offsets_on_golden_stores(name: str) -> None:
    root = golden.store(name)
    topics = {row["topic"] for row in read_table("consumequeue", root, columns=COLUMNS[:3])}
    try:
        plain = read_table("messages", root, columns=COLUMNS)
    except DamagedError:
        assert name == "hole-4.9"  # its log lacks what its queue names: no rows to compare
        return
    tags = sorted({row["tags"] for row in plain if row["tags"]})
    for tag in tags[:4]:
        check(plain, root, [EqualTo(("tags",), tag)])
    check(plain, root, [In(("tags",), tuple(tags[::2]))])
    for topic in sorted(topics)[:3]:
        prefix = StringStartsWith(("topic",), topic[: len(topic) // 2])
        check(plain, root, [prefix, In(("queue_offset",), (0, 1, 5, 6, 7, 1 << 40))])
    places = [row["commitlog_offset"] for row in plain]
    check(plain, root, [In(("commitlog_offset",), tuple(places[::7]))])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_random_filters(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    made = HandMade(CONFIG)
    # "Aa" and "BB" have one hash
    for number in range(600):
        tag = rng.choices(["Aa", "BB", "rare", None], [8, 8, 1, 4])[0]
        made.put(rng.choice(["pay", "pay-2", "ship"]), number % 3, tags=tag)
    made.queues["pay", 0][20 * 20 : 24 * 20] = bytes(4 * 20)  # units that say nothing
    root = made.write(tmp_path)
    plain = read_table("messages", root, columns=COLUMNS, topics="pay-2,ship")
    for _ in range(25):
        filters: list[Filter] = rng.sample(
            [
                EqualTo(("tags",), rng.choice(["Aa", "BB", "rare", "none"])),
                In(("tags",), ("rare", "BB")),
                StringStartsWith(("topic",), rng.choice(["pay", "s", "pay-2", ""])),
                In(("queue_offset",), tuple(rng.sample(range(80), 12))),
                In(("queue_id",), (0, 2)),
                GreaterThan(("queue_offset",), rng.randrange(60)),
                LessThanOrEqual(("commitlog_offset",), rng.choice(made.messages).commitlog_offset),
            ],
            rng.randrange(1, 4),
        )
        check(plain, root, filters, topics="pay-2,ship")


def test_messages_with_other_tags_are_not_read(tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    for number in range(1000):
        made.put("T", 0, tags="rare" if number in {300, 301, 310, 900} else "usual")
    root = made.write(tmp_path)
    plain = read_table("messages", root, columns=COLUMNS)
    assert check(plain, root, [EqualTo(("tags",), "rare")]) == 11 + 1
    assert check(plain, root, [In(("queue_offset",), (5, 700, 701))]) == 3


def test_a_unit_that_says_nothing_is_not_left_out(tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    for _ in range(200):
        made.put("T", 0, tags="a")
    made.queues["T", 0][100 * 20 : 101 * 20] = bytes(20)
    root = made.write(tmp_path)
    reader = source(root, pushdown="true").reader(columns_of("messages", *COLUMNS))
    assert list(reader.pushFilters([EqualTo(("tags",), "b")]))
    with pytest.raises(Exception, match="message 100 of T, queue 0, cannot be read"):
        rows_of(reader)


@pytest.mark.parametrize(
    ("module", "option", "kind"),
    [
        ("pyspark.sql.worker.data_source_pushdown_filters", "auto", PushdownReader),
        ("pyspark.sql.worker.plan_data_source_read", "auto", TableReader),
        ("pyspark.sql.worker.plan_data_source_read", "true", PushdownReader),
        ("pyspark.sql.worker.data_source_pushdown_filters", "false", TableReader),
    ],
)
def test_filters_are_pushed_where_spark_asks_for_it(
    tmp_path: Path, module: str, option: str, kind: type
) -> None:
    made = HandMade(CONFIG)
    made.put()
    given = {} if option == "auto" else {"pushdown": option}
    names = {"source": source(made.write(tmp_path), **given), "__name__": module}
    out: dict[str, Any] = {}
    exec("reader = source.reader(schema=schema)", {**names, "schema": columns_of("messages")}, out)
    assert type(out["reader"]) is kind


def test_what_is_pushed_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = HandMade(CONFIG)
    made.put()
    check(read_table("messages", made.write(tmp_path), columns=COLUMNS), tmp_path, [])
    assert not caplog.records
    plain = read_table("messages", tmp_path, columns=COLUMNS)
    check(plain, tmp_path, [EqualTo(("topic",), "T"), EqualTo(("tags",), "a")])
    assert "messages: the reader applies topic in ('T') and tag in ('a')" in caplog.text
