"""Where reading begins and ends, in batches and in streams: the same rows as a plain loop."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from analytics.datasource.plan import stretches
from analytics.datasource.query.errors import DamagedError, DataLossError, OptionError
from analytics.datasource.query.options import read_options
from storage.clock import now_ms
from storage.format.cq_unit import PRE_BLANK
from tests.support.hand_made import TINY, HandMade, Stored
from tests.support.spark_source import Row, Stream, columns_of, read_table, source

CONFIG = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=140)
LATER = 20
"""Messages that come after a stream has begun."""


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    made = HandMade(CONFIG)
    for number in range(100):
        made.put("TTU"[number % 3], number % 2, b"%d" % number, step_ms=700)
    return made


@pytest.fixture
def root(tmp_path: Path, made: HandMade) -> Path:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config").mkdir()
    progress = {"T@g": {"0": 5, "1": 12}, "U@other": {"0": 2}}
    path = tmp_path / "b" / "config" / "consumerOffset.json"
    path.write_text(json.dumps({"offsetTable": progress}))
    return made.write(tmp_path / "b")


def places(rows: list[Row]) -> list[int]:
    return sorted(row["commitlog_offset"] for row in rows)


def those(made: HandMade, wanted: Callable[[Stored], bool]) -> list[int]:
    return [message.commitlog_offset for message in made.messages if wanted(message)]


def _named(one: object) -> str | None:
    return None if callable(one) else str(one)[:60]


STARTS: list[tuple[dict[str, str], Callable[[HandMade, Stored], bool]]] = [
    ({}, lambda made, m: True),
    ({"startingOffset": "EARLIEST"}, lambda made, m: True),
    ({"startingOffset": "4100"}, lambda made, m: m.commitlog_offset >= 4100),
    (
        {"startingOffset": '{"b": {"T": {"0": 7, "1": -2}, "U": {"1": 15}}}'},
        lambda made, m: m.queue_offset >= {("T", 0): 7, ("U", 1): 15}.get((m.topic, m.queue_id), 0),
    ),
    ({"startingOffset": '{"*": {"T": {"0": 30}}}'}, lambda made, m: _from(m, "T", 0, 30)),
    (
        {"startingOffset": '{"*": {"T": {"0": 30, "1": 9}}, "b": {"U": {"1": 15}, "T": {"1": 7}}}'},
        lambda made, m: (
            m.queue_offset
            >= {("T", 0): 30, ("T", 1): 7, ("U", 1): 15}.get((m.topic, m.queue_id), 0)
        ),
    ),
    ({"startingOffset": '{"b": 5000}'}, lambda made, m: m.commitlog_offset >= 5000),
    ({"startingOffset": '{"b": {"T": "latest"}}'}, lambda made, m: _new(made, m) or m.topic != "T"),
    ({"startingOffset": '{"b": {"T": {"1": -1}}}'}, lambda made, m: _new_of(made, m, "T", 1)),
    (
        {"startingTimestamp": "{middle}"},
        lambda made, m: m.store_timestamp >= made.messages[50].store_timestamp,
    ),
    (
        {"startingTimestamp": '{{"b": {{"T": {middle}, "U": {{"0": {middle}}}}}}}'},
        lambda made, m: (
            m.store_timestamp >= made.messages[50].store_timestamp
            or (m.topic, m.queue_id) == ("U", 1)
        ),
    ),
    ({"startingTimestamp": "2199-12-31"}, lambda made, m: _new(made, m)),
    (
        {"startingOffset": "group:g", "topics": "T"},
        lambda made, m: m.topic == "T" and m.queue_offset >= (5, 12)[m.queue_id],
    ),
    (
        {"startingOffset": "group:other", "topics": "T,U"},
        lambda made, m: m.topic == "T" or m.queue_offset >= (2, 0)[m.queue_id],
    ),
]


def _from(message: Stored, topic: str, queue_id: int, first: int) -> bool:
    return (message.topic, message.queue_id) != (topic, queue_id) or message.queue_offset >= first


def _new(made: HandMade, message: Stored) -> bool:
    return message.commitlog_offset >= made.messages[99].commitlog_offset + made.messages[99].size


def _new_of(made: HandMade, message: Stored, topic: str, queue_id: int) -> bool:
    return _new(made, message) or (message.topic, message.queue_id) != (topic, queue_id)


def filled(options: dict[str, str], made: HandMade) -> dict[str, Any]:
    middle = str(made.messages[50].store_timestamp)
    return {
        name: value.replace("{middle}", middle).replace("{{", "{").replace("}}", "}")
        if "{middle}" in value
        else value
        for name, value in options.items()
    }


@pytest.mark.parametrize(("options", "wanted"), STARTS, ids=_named)
def test_a_batch_begins_there(
    root: Path, made: HandMade, options: dict[str, str], wanted: Callable[..., bool]
) -> None:
    for table in ("messages", "consumequeue"):
        rows = read_table(table, root, **filled(options, made))
        assert places(rows) == those(made, lambda m: wanted(made, m))


@pytest.mark.parametrize("most_looks", [stretches.MOST_LOOKS, 0], ids=["ranges", "stretches"])
@pytest.mark.parametrize("start", ["100", '{"b": 100}', '{"*": 100}'])
def test_a_log_offset_whose_messages_were_deleted_fails(
    root: Path, made: HandMade, start: str, most_looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretches, "MOST_LOOKS", most_looks)
    (root / "commitlog" / f"{0:020}").unlink()
    rest = those(made, lambda m: m.commitlog_offset >= 4096)
    for table in ("messages", "consumequeue"):
        with pytest.raises(DataLossError, match=r"^b.* 3996 bytes of the log from 100 on were del"):
            read_table(table, root, startingOffset=start)
        for begin in (start, start.replace("100", "0"), start.replace("100", "4096")):
            fail = "false" if begin == start else "true"
            found = read_table(table, root, startingOffset=begin, failOnDataLoss=fail)
            assert places(found) == rest
    with pytest.raises(DataLossError, match=r"^b.* 3996 bytes of the log from 100 on were deleted"):
        Stream(root, startingOffset=start).drain()
    for begin in (start, start.replace("100", "4096")):
        fail = "false" if begin == start else "true"
        (batch,) = Stream(root, startingOffset=begin, failOnDataLoss=fail).drain()
        assert places(batch) == rest


@pytest.mark.parametrize("most_looks", [stretches.MOST_LOOKS, 0], ids=["ranges", "stretches"])
def test_a_log_offset_whose_messages_were_deleted_fails_though_nothing_is_left_to_read(
    root: Path, most_looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretches, "MOST_LOOKS", most_looks)
    (root / "commitlog" / f"{0:020}").unlink()
    with pytest.raises(DataLossError, match=r"3996 bytes of the log from 100 on were deleted"):
        read_table("messages", root, startingOffset="100", endingOffset="3000")


@pytest.mark.parametrize("most_looks", [stretches.MOST_LOOKS, 0], ids=["ranges", "stretches"])
@pytest.mark.parametrize("end", ["3000", '{"b": 3000}', '{"*": 3000}'])
def test_an_end_in_the_part_of_the_log_that_was_deleted_fails(
    root: Path, end: str, most_looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretches, "MOST_LOOKS", most_looks)
    (root / "commitlog" / f"{0:020}").unlink()
    for table in ("messages", "consumequeue"):
        with pytest.raises(DataLossError, match=r"^b: the log up to 4096 was deleted, and endingO"):
            read_table(table, root, endingOffset=end)
        assert not read_table(table, root, endingOffset=end, failOnDataLoss="false")
        assert not read_table(table, root, endingOffset=end.replace("3000", "4096"))


@pytest.mark.parametrize("limit", ["2000", pytest.param(None, marks=pytest.mark.long)])
@pytest.mark.parametrize(("options", "wanted"), STARTS, ids=_named)
def test_a_stream_begins_there_and_goes_on(
    root: Path,
    made: HandMade,
    options: dict[str, str],
    wanted: Callable[..., bool],
    limit: str | None,
) -> None:
    more: dict[str, Any] = {} if limit is None else {"maxBytesPerTrigger": limit}
    given = {**filled(options, made), **more}
    stream = Stream(root, **given)
    rows = [row for batch in stream.drain() for row in batch]
    assert places(rows) == those(made, lambda m: wanted(made, m))
    for number in range(LATER):
        made.put("TTU"[number % 3], number % 2, b"later", step_ms=700)
    made.write(root)
    again = Stream(root, at=stream.at, **given)
    rows += [row for batch in again.drain() for row in batch]
    topics = set(options.get("topics", "T,U").split(","))
    assert places(rows) == those(made, lambda m: wanted(made, m) and m.topic in topics)


def test_a_new_stream_begins_after_the_last_message(root: Path, made: HandMade) -> None:
    stream = Stream(root, startingOffset="latest")
    assert stream.drain() == []
    made.put("T", 0)
    made.write(root)
    assert places(stream.trigger()) == [made.messages[-1].commitlog_offset]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"endingOffset": "4100"}, lambda made, m: m.commitlog_offset < 4100),
        ({"endingOffset": '{"b": {"T": {"0": 7}}}'}, lambda made, m: not _late(m, "T", 0, 7)),
        ({"endingOffset": '{"b": {"T": "earliest"}}'}, lambda made, m: m.topic != "T"),
        (
            {"endingTimestamp": "{middle}"},
            lambda made, m: m.store_timestamp < made.messages[50].store_timestamp,
        ),
        (
            {"startingOffset": '{"b": {"T": {"0": 3}}}', "endingOffset": '{"b": {"T": {"0": 9}}}'},
            lambda made, m: (m.topic, m.queue_id) != ("T", 0) or 3 <= m.queue_offset < 9,
        ),
        (
            {"startingOffset": "group:g"},  # without names: the topics of the group
            lambda made, m: m.topic == "T" and m.queue_offset >= (5, 12)[m.queue_id],
        ),
    ],
    ids=_named,
)
def test_a_batch_ends_there(
    root: Path, made: HandMade, options: dict[str, str], wanted: Callable[..., bool]
) -> None:
    rows = read_table("messages", root, **filled(options, made))
    assert places(rows) == those(made, lambda m: wanted(made, m))


@pytest.mark.parametrize("most_looks", [stretches.MOST_LOOKS, 0], ids=["ranges", "stretches"])
@pytest.mark.parametrize("topics", [{}, {"topics": "T,U"}], ids=["any", "named"])
def test_a_groups_progress_counts_as_it_was_when_the_batch_was_planned(
    root: Path,
    made: HandMade,
    most_looks: int,
    topics: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stretches, "MOST_LOOKS", most_looks)
    reader = source(root, startingOffset="group:g", minPartitions="5", **topics).reader(
        columns_of("messages")
    )
    rows = []
    for number, part in enumerate(reader.partitions(), 1):
        (root / "config" / "consumerOffset.json").write_text(
            json.dumps({"offsetTable": {"T@g": {"0": 5 + 4 * number, "1": 12 + 3 * number}}})
        )
        batches = reader.read(pickle.loads(pickle.dumps(part)))
        rows += [row for batch in batches for row in batch.to_pylist()]  # type: ignore[union-attr]
    begins = {("T", 0): 5, ("T", 1): 12}
    wanted = {"T", "U"} if topics else {"T"}
    assert places(rows) == those(
        made,
        lambda m: m.topic in wanted and m.queue_offset >= begins.get((m.topic, m.queue_id), 0),
    )


def _late(message: Stored, topic: str, queue_id: int, end: int) -> bool:
    return (message.topic, message.queue_id) == (topic, queue_id) and message.queue_offset >= end


def test_times_are_written_as_for_the_commands_and_without_a_zone_in_utc(made: HandMade) -> None:
    ms = 1_795_255_492_000
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    texts = [
        str(ms),
        json.dumps({"*": ms}),
        json.dumps({"*": ms // 1000}),
        str(ms // 1000),
        f"{ms}000",
        f"{ms}000000",
        moment.isoformat(),
        moment.replace(tzinfo=None).isoformat(),
        moment.astimezone(timezone(timedelta(hours=8))).isoformat(),
    ]
    for text in texts:
        bound = read_options({"path": ".", "startingTimestamp": text}).starting
        assert bound.value in (ms, {"*": ms}), text


def test_a_time_may_be_so_long_before_now(made: HandMade) -> None:
    before = now_ms()
    bound = read_options({"path": ".", "startingTimestamp": "-1h"}).starting
    assert before - 3_600_000 <= bound.value <= now_ms() - 3_600_000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffset": "latest"}, "a batch that begins at 'latest' has no rows"),
        ({"endingOffset": "earliest"}, "a batch that ends at 'earliest' has no rows"),
        ({"endingOffset": "group:g"}, "'group:g' is neither earliest nor latest"),
        ({"startingOffset": "group:"}, "names no group"),
        ({"startingOffset": "group:h"}, "startingOffset: no store has a group 'h'"),
        ({"startingOffset": '{"b"'}, "is no JSON"),
        ({"startingOffset": "{}"}, "has not the form"),
        ({"startingOffset": '{"b": {"T": 7}}'}, "7 is no offset there"),
        ({"startingOffset": '{"b": {"T": {"0": -3}}}'}, "-3 is no offset there"),
        ({"startingOffset": '{"b": {"T": {"0": {"x": 1}}}}'}, "is no offset there"),
        ({"startingOffset": '{"c": 5}'}, "startingOffset: no store has a broker 'c'"),
        (
            {"startingOffset": '{"b": {"TT": {"0": 1}}}'},
            "startingOffset: no store has a topic 'TT'",
        ),
        ({"startingOffset": '{"*": {"T": {"9": 23}}}'}, "no store has queue '9' of 'T' .there are"),
        ({"startingOffset": '{"b": {"T": {"00": 23}}}'}, "no store has queue '00' of 'T'"),
        ({"startingOffset": '{"b": {"T": {" 0": 23}}}'}, "no store has queue ' 0' of 'T'"),
        ({"endingOffset": '{"b": {"T": {"O": 23}}}'}, "endingOffset: no store has queue 'O' of"),
        (
            {"startingTimestamp": '{"b": {"U": {"2": 1795255492705}}}'},
            "startingTimestamp: no store has queue '2' of 'U' .there are 0, 1",
        ),
        (
            {"startingOffset": '{"b": {"T": {"0": 5}}, "b": {"U": {"0": 5}}}'},
            "startingOffset: .* is no JSON: it has the key 'b' twice",
        ),
        ({"startingOffset": '{"b": {"T": {"0": 99}}}'}, "99 lies past the end of b: queue 0 of T"),
        ({"startingTimestamp": "noon"}, "startingTimestamp: 'noon' is not a time; did you mean"),
        ({"startingTimestamp": "99999999999999"}, "would be 5138-.*: a time must lie between 1990"),
        ({"endingTimestamp": "0001-01-01T00:00:00"}, "endingTimestamp: .* must lie between 1990"),
        ({"endingTimestamp": '{"b": {"T": -1}}'}, "endingTimestamp: '-1' is not a time"),
        ({"endingTimestamp": '{"b": {"T": true}}'}, "endingTimestamp: true is not a time"),
        (
            {"startingOffset": "5", "startingTimestamp": "5"},
            "startingOffset and startingTimestamp: give one of them",
        ),
    ],
    ids=_named,
)
def test_wrong_bounds_are_refused(root: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        read_table("messages", root, **options)


@pytest.mark.parametrize("most_looks", [2_000, 0])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffset": "999999999999"}, "startingOffset: 999999999999 lies past the end of"),
        ({"endingOffset": "0"}, "endingOffset: 0 is not after the beginning of the log, 0"),
        (
            {"startingOffset": "5000", "endingOffset": "100"},
            "startingOffset (5000) is not before endingOffset (100)",
        ),
    ],
)
def test_a_batch_whose_bounds_leave_no_message_says_why(
    root: Path,
    options: dict[str, Any],
    said: str,
    most_looks: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stretches, "MOST_LOOKS", most_looks)
    assert read_table("messages", root, **options) == []
    assert f"the query has no rows: {said}" in caplog.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingTimestamp": "2199-12-31"}, "startingTimestamp: no message was stored then or"),
        ({"endingTimestamp": "1990-01-01"}, "endingTimestamp: all messages were stored then or"),
        (
            {"startingTimestamp": "2026-01-02", "endingTimestamp": "2026-01-01"},
            "startingTimestamp (1767312000000) is not before endingTimestamp (1767225600000)",
        ),
    ],
)
def test_a_batch_whose_times_leave_no_message_says_why(
    root: Path, options: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert read_table("messages", root, **options) == []
    assert f"the query has no rows: {said}" in caplog.text


def test_a_queue_that_ends_before_it_begins_is_told(
    root: Path, made: HandMade, caplog: pytest.LogCaptureFixture
) -> None:
    options: dict[str, Any] = {
        "startingOffset": '{"b": {"T": {"0": 9}}}',
        "endingOffset": '{"b": {"T": {"0": 3}}}',
    }
    rows = read_table("messages", root, **options)
    assert places(rows) == those(made, lambda m: (m.topic, m.queue_id) != ("T", 0))
    assert (
        "startingOffset lies after endingOffset in 1 queue, of which nothing is read; the first is "
        "b: queue 0 of T (9, 3)"
    ) in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"startingOffset": "5000"},
        {"startingTimestamp": "2199-12-31", "topics": "empty"},
        {"startingOffset": "group:done", "topics": "U"},
    ],
)
def test_a_batch_that_needs_no_word_has_none(
    root: Path, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    progress = {"U@done": {"0": 17, "1": 16}, "empty@g": {"0": 0}}
    path = root / "config" / "consumerOffset.json"
    path.write_text(json.dumps({"offsetTable": progress}))
    read_table("messages", root, **options)
    assert caplog.text == ""


def test_a_stream_from_the_progress_of_a_group_needs_topics(root: Path) -> None:
    with pytest.raises(OptionError, match="must name the topics that the group reads"):
        Stream(root, startingOffset="group:g")


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffset": '{"b": {"T": {"0": 3}}}'},
        {"startingOffset": "group:g", "topics": "T"},
    ],
)
def test_a_begin_that_was_deleted_fails_or_is_left_out(
    root: Path, made: HandMade, options: dict[str, Any]
) -> None:
    for number in range(2):
        (root / "commitlog" / f"{number * 4096:020}").unlink()
    said = "b: queue 0 of T: messages [35] to [0-9]+ were deleted, and startingOffset is"
    with pytest.raises(DataLossError, match=said):
        read_table("messages", root, **options)
    with pytest.raises(DataLossError, match=said):
        Stream(root, **options)
    topics = set(options.get("topics", "T,U").split(","))
    left = those(made, lambda m: m.commitlog_offset >= 2 * 4096 and m.topic in topics)
    assert places(read_table("messages", root, failOnDataLoss="false", **options)) == left
    stream = Stream(root, failOnDataLoss="false", **options)
    assert places([row for batch in stream.drain() for row in batch]) == left


# -- units that cannot be read ----------------------------------------------------------------

AT_8: list[dict[str, Any]] = [
    {"startingOffset": "group:g", "topics": "T"},
    {"startingOffset": '{"b": {"T": {"0": 8}}}'},
]
UNITS = 7
"""Of a queue's file."""


def one_queue(root: Path, count: int = 40) -> HandMade:
    made = HandMade(CONFIG)
    for number in range(count):
        made.put("T", 0, b"%d" % number + bytes(100), step_ms=700)
    (root / "b" / "config").mkdir(parents=True)
    progress = {"offsetTable": {"T@g": {"0": 8}}}
    (root / "b" / "config" / "consumerOffset.json").write_text(json.dumps(progress))
    return made


@pytest.mark.parametrize("options", AT_8, ids=["group", "json"])
def test_a_stream_begins_at_the_same_damaged_unit_as_a_batch(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    made = one_queue(tmp_path)
    root = made.write(tmp_path / "b")
    (root / "consumequeue" / "T" / "0" / f"{20 * UNITS:020}").unlink()  # units 7 to 13
    with pytest.raises(DamagedError, match="message 8 of T, queue 0"):
        read_table("messages", root, **options)
    with pytest.raises(DamagedError, match="message 8 of T, queue 0"):
        Stream(root, **options).trigger()
    stream = Stream(root, onDamage="skip", **options)
    rows = [row["queue_offset"] for batch in stream.drain() for row in batch]
    assert rows == list(range(14, 40))


def test_units_of_a_repair_at_the_begin_of_a_stream_are_no_deleted_log(tmp_path: Path) -> None:
    made = one_queue(tmp_path)
    made.queues["T", 0][20 * 30 : 20 * 32] = PRE_BLANK * 2
    root = made.write(tmp_path / "b")
    (root / "commitlog" / f"{0:020}").unlink()
    stream = Stream(root, startingOffset='{"b": {"T": {"0": 30}}}', onDamage="skip")
    rows = [row["queue_offset"] for batch in stream.drain() for row in batch]
    assert rows == list(range(32, 40))
