"""``onDamage``: messages that cannot be read, beside a plain loop, in both forms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from analytics.datasource.plan.ranges import Range
from analytics.datasource.query.errors import DamagedError, OptionError
from analytics.datasource.query.tables import NULL, SKIP
from analytics.datasource.rows.batches import BatchLimits, message_batches
from analytics.datasource.rows.readers import arrow_schema
from storage.format.cq_unit import CQ_STORE_UNIT
from storage.format.message import Message
from storage.format.sys_flag import REPLACED_FLAG
from storage.read.replaced import places_without_message
from storage.readonly import StoreView
from tests.support import golden
from tests.support.cli import run
from tests.support.compiled import compiled, native
from tests.support.damages import NotHere, damage, kinds
from tests.support.dead_letters import bury
from tests.support.hand_made import TINY, HandMade
from tests.support.spark_source import Row, Stream, columns_of, read_table, source

CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=2000)
PLACE = ("topic", "queue_id", "queue_offset")
KINDS = sorted(kind for kind in kinds() if kind.startswith(("log:", "queue:")))
SHORT_KINDS = KINDS[::15]
DAMAGED = {"hole-4.9", "torn-bad-crc-middle-4.9", "torn-bad-crc-middle-5.3"}
"""The golden stores in which a message cannot be read."""
SHORT = {"lmq-4.9", "torn-bad-crc-middle-4.9"}


@pytest.fixture(params=["pure", "compiled"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "compiled" and compiled is None:
        pytest.skip("needs cc on PATH")
    monkeypatch.setattr(native, "compiled", compiled if request.param == "compiled" else None)


def ranges_of(root: Path) -> list[Range]:
    with StoreView.open(root) as view:
        return [
            Range("b", str(root), *queue, *view.queue_bounds(*queue)) for queue in view.queues()
        ]


def was_deleted(view: StoreView, place: int) -> bool:
    """Whether the log has no file for a place any more; it never had one after its last."""
    size, files = view.config.mapped_file_size_commit_log, view.files.log.relist()
    return place - place % size not in files and not (files and place >= max(files) + size)


def plain_loop(ranges: Sequence[Range]) -> tuple[dict[Any, int], set[Any]]:
    """The log offsets of the messages that can be read, and the places of the damaged ones.

    A message whose log file is gone counts as deleted; a place of a repair has no message.
    """
    whole, damaged = {}, set()
    (root,) = {part.path for part in ranges}
    with StoreView.open(root) as view:
        for part in ranges:
            queue = part.topic, part.queue_id
            for offset in range(part.first, part.end):
                unit = view.unit(*queue, offset)
                message = unit and view.message_of_unit(*queue, offset, unit)
                if message:
                    whole[*queue, offset] = message.commitlog_offset
                elif unit and min(unit[0], unit[1] - 1) >= 0 and was_deleted(view, unit[0]):
                    continue
                elif not (unit and places_without_message(view, *queue, offset, offset + 1)):
                    damaged.add((*queue, offset))
    return whole, damaged


def check(root: Path, *names: str, limits: Sequence[BatchLimits] = (BatchLimits(1000),)) -> int:
    """The rows in both forms of ``onDamage`` against the plain loop; gives how many are damaged."""
    ranges = ranges_of(root)
    whole, damaged = plain_loop(ranges)
    schema = arrow_schema(columns_of("messages", *names, "_damage") if names else ALL)
    for limit in limits:
        found = {
            way: list(message_batches(ranges, schema, limit, fail_on_loss=False, on_damage=way))
            for way in (SKIP, NULL)
        }
        for batch in (*found[SKIP], *found[NULL]):
            batch.validate(full=True)
        skipped, rows = (
            [row for batch in found[way] for row in batch.to_pylist()] for way in (SKIP, NULL)
        )
        assert {place(row): row["commitlog_offset"] for row in skipped} == whole
        assert len(skipped) == len(whole)
        assert [row for row in rows if row["_damage"] is None] == skipped
        odd = [row for row in rows if row["_damage"] is not None]
        assert sorted(map(place, odd)) == sorted(damaged)
        for row in odd:
            assert {name for name, value in row.items() if value is not None} == {
                "broker",
                *PLACE,
                "_damage",
            }
        order = [(part.topic, part.queue_id) for part in ranges]
        keys = [(order.index(place(row)[:2]), row["queue_offset"]) for row in rows]
        assert keys == sorted(keys)
    return len(damaged)


ALL = columns_of("messages")
ALL.add(columns_of("messages", "_damage")["_damage"])


def place(row: Row) -> Any:
    return tuple(row[name] for name in PLACE)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in SHORT else pytest.mark.long)
        for name in golden.names()
    ],
)
@pytest.mark.slow
def test_golden_stores_are_read_around_their_damage(name: str) -> None:
    limits = BatchLimits(1000), BatchLimits(7), BatchLimits(1000, 3000)
    count = check(golden.store(name), limits=limits)
    assert bool(count) is (name in DAMAGED)


@pytest.mark.usefixtures("form")
@pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=() if k in SHORT_KINDS else pytest.mark.long) for k in KINDS],
)
def test_every_kind_of_damage_is_read_around(tmp_path: Path, kind: str) -> None:
    root = golden.extract("small-files-4.9", tmp_path)
    try:
        damage(root, kind)
    except NotHere:
        return
    check(root)


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """Thirty messages; the bodies of three have changed on the device, one is of another queue,
    the unit of one names no record, and one was replaced by a repair."""
    made = HandMade(CONFIG)
    for number in range(30):
        replaced = number == 20
        made.put(
            body=bytes(40) if replaced else b"body %d" % number,
            tags="ab"[number % 2],
            sys_flag=REPLACED_FLAG if replaced else 0,
        )
    for number in (0, 11, 12):
        made.log[made.messages[number].commitlog_offset + 92] ^= 1
    made.log[made.messages[15].commitlog_offset + 15] ^= 1  # the queue id
    units = made.queues["T", 0]
    units[20 * 25 : 20 * 26] = bytes(20)
    return made.write(tmp_path)


BAD = (0, 11, 12, 15, 25)


@pytest.mark.usefixtures("form")
@pytest.mark.slow
def test_a_query_fails_skips_or_shows_the_place(
    torn: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(DamagedError, match=r"message 0 of T, queue 0, cannot be read: .*fsck"):
        read_table("messages", torn)
    left = [offset for offset in range(30) if offset not in (*BAD, 20)]
    rows = read_table("messages", torn, onDamage="skip")
    assert [row["queue_offset"] for row in rows] == left
    assert "5 messages cannot be read: no row for each, the first: " in caplog.text
    assert "message 0 of T, queue 0" in caplog.text
    columns = ["queue_offset", "_damage", "body", "keys"]
    rows = read_table("messages", torn, columns=columns, onDamage="NULL")
    assert [row["queue_offset"] for row in rows] == sorted((*left, *BAD))
    reasons = {row["queue_offset"]: row["_damage"] for row in rows if row["_damage"]}
    assert list(reasons) == list(BAD)
    assert reasons[0].endswith("the CRC of the body does not match")
    assert reasons[0].startswith("commit log offset 0: ")
    assert reasons[15].endswith("the record there is of T, queue 1, offset 15")
    assert "names no record" in reasons[25]
    assert [row["body"] for row in rows[:2]] == [None, b"body 1"]
    assert check(torn) == len(BAD)


def test_a_unit_that_names_a_place_after_the_log_is_damage_and_the_rest_is_read(
    tmp_path: Path,
) -> None:
    made = HandMade(CONFIG)
    for _ in range(20):
        made.put()
    made.queues["T", 0][20 * 4] ^= 0x10
    root = made.write(tmp_path)
    with pytest.raises(DamagedError, match="message 4 of T, queue 0, cannot be read: .* no file"):
        read_table("messages", root)
    rows = read_table("messages", root, onDamage="skip", failOnDataLoss="false")
    assert [row["queue_offset"] for row in rows] == [n for n in range(20) if n != 4]


@pytest.mark.parametrize("limit", [{}, {"maxOffsetsPerTrigger": "3"}])
@pytest.mark.parametrize("damaged", [4, 10, 15])
def test_a_stream_loses_nothing_after_a_unit_that_names_a_place_after_the_log(
    tmp_path: Path, damaged: int, limit: dict[str, str]
) -> None:
    made = HandMade(CONFIG)
    for _ in range(20):
        made.put()
    made.queues["T", 0][20 * damaged] ^= 0x10
    root = made.write(tmp_path)
    stream = Stream(root, onDamage="skip", failOnDataLoss="false", **limit)
    rows = [row["queue_offset"] for batch in stream.drain() for row in batch]
    assert rows == [n for n in range(20) if n != damaged]


def test_such_a_unit_does_not_end_what_filters_on_places_leave(tmp_path: Path) -> None:
    from pyspark.sql.datasource import LessThan

    made = HandMade(CONFIG)
    for _ in range(20):
        made.put()
    made.queues["T", 0][20 * 10] ^= 0x10
    root = made.write(tmp_path)
    before = [LessThan(("commitlog_offset",), made.messages[15].commitlog_offset)]
    rows = read_table("messages", root, filters=before, onDamage="skip", pushdown="true")
    assert [row["queue_offset"] for row in rows] == [n for n in range(15) if n != 10]


def older_than_its_retention(root: Path, damaged: int, unit: bytes) -> Path:
    """Sixty messages in some log files, of which retention has deleted the first one; one of those
    that are left has another unit."""
    made = HandMade(CONFIG.with_(mapped_file_size_commit_log=1 << 12))
    for _ in range(60):
        made.put(body=bytes(200))
    assert made.messages[damaged].commitlog_offset >= 1 << 13
    made.queues["T", 0][20 * damaged : 20 * (damaged + 1)] = unit
    made.write(root)
    (root / "commitlog" / f"{0:020}").unlink()
    return root


UNITS = {"hole": bytes(20), "before the log": CQ_STORE_UNIT.pack(300, 318, 0)}


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("kind", UNITS)
def test_a_damaged_unit_is_no_deletion_where_the_log_does_not_begin_at_0(
    tmp_path: Path, kind: str
) -> None:
    root = older_than_its_retention(tmp_path, 40, UNITS[kind])
    with pytest.raises(DamagedError, match="message 40 of T, queue 0, cannot be read"):
        read_table("messages", root, failOnDataLoss="false")
    rows = read_table("messages", root, onDamage="skip")
    offsets = [row["queue_offset"] for row in rows]
    assert offsets == [n for n in range(offsets[0], 60) if n != 40]
    columns = ["queue_offset", "_damage"]
    rows = read_table("messages", root, columns=columns, onDamage="null", failOnDataLoss="false")
    assert [row["queue_offset"] for row in rows if row["_damage"]] == [40]
    assert [row["queue_offset"] for row in rows] == list(range(offsets[0], 60))


@pytest.mark.parametrize("kind", UNITS)
def test_a_stream_goes_on_after_such_a_unit(tmp_path: Path, kind: str) -> None:
    root = older_than_its_retention(tmp_path, 40, UNITS[kind])
    stream = Stream(root, onDamage="skip", startingOffset="earliest")
    rows = [row["queue_offset"] for batch in stream.drain() for row in batch]
    assert rows == [n for n in range(rows[0], 60) if n != 40]


def test_a_place_of_a_repair_is_no_damage(tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    for number in range(3):
        made.put(body=bytes(40), sys_flag=REPLACED_FLAG if number == 1 else 0)
    root = made.write(tmp_path)
    assert [row["queue_offset"] for row in read_table("messages", root)] == [0, 2]
    assert len(read_table("messages", root, onDamage="null")) == 2


def test_the_column_is_there_only_where_it_is_asked_for(torn: Path) -> None:
    def names(**options: str) -> list[str]:
        schema = source(torn, **options).schema()
        assert isinstance(schema, str)
        return [column.split()[0] for column in schema.split(", ")]

    assert "_damage" not in names()
    assert "_damage" not in names(onDamage="skip")
    assert names(onDamage="null")[-1] == "_damage"
    assert names(onDamage="null", columns="tags,_damage") == ["tags", "_damage"]
    with pytest.raises(OptionError, match="messages has no column _damage"):
        names(columns="tags,_damage")
    with pytest.raises(OptionError, match="messages has no column _damage"):
        source(torn).reader(columns_of("messages", "_damage"))


def test_tags_and_offsets_bound_what_is_read_around(torn: Path) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In

    bound = [GreaterThanOrEqual(("queue_offset",), 12)]
    options = {"pushdown": "true", "onDamage": "null"}
    rows = read_table("messages", torn, filters=bound, **options)
    assert [row["queue_offset"] for row in rows] == [n for n in range(12, 30) if n != 20]
    found = read_table("messages", torn, filters=[In(("queue_offset",), (11, 13, 25))], **options)
    assert [row["queue_offset"] for row in found] == [11, 13, 25]
    tagged = read_table("messages", torn, filters=[EqualTo(("tags",), "b")], **options)
    assert [row["queue_offset"] for row in tagged if row["tags"] == "b"] == [
        n for n in range(30) if n % 2 and n not in BAD
    ]


def test_a_stream_reads_around_damage(torn: Path) -> None:
    with pytest.raises(DamagedError):
        Stream(torn).trigger()
    (rows,) = Stream(torn, onDamage="skip").drain()
    assert len(rows) == 30 - len(BAD) - 1


@pytest.mark.parametrize(
    ("table", "value", "said"),
    [
        ("consumequeue", "skip", "onDamage has no effect on consumequeue"),
        ("delayed", "skip", "onDamage has no effect on delayed"),
        ("deadletters", "null", "onDamage: null gives rows of messages only"),
        ("messages", "ignore", "onDamage: 'ignore' is none of fail, skip, null"),
    ],
)
def test_what_has_no_effect_is_refused(torn: Path, table: str, value: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        source(torn, table=table, onDamage=value).reader(columns_of(table))


@pytest.mark.slow
def test_dead_letters_that_cannot_be_read_fail_or_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "store"
    assert run("store", "init", root, "--small").code == 0
    dead = bury(root, "g", [Message("t", b"body %d" % n) for n in range(4)])
    (log,) = [path for path in (root / "commitlog").iterdir() if path.name.isdigit()]
    data = bytearray(log.read_bytes())
    data[data.index(b"body 2", dead[2].commitlog_offset)] ^= 0x20
    log.write_bytes(data)
    with pytest.raises(DamagedError, match="message 2 of %DLQ%g, queue 0, cannot be read"):
        read_table("deadletters", root)
    rows = read_table("deadletters", root, onDamage="skip")
    assert [row["queue_offset"] for row in rows] == [0, 1, 3]
    assert "1 message cannot be read: no row for each" in caplog.text


def test_types_are_kept_where_all_rows_of_a_batch_are_damaged(tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    for _ in range(4):
        made.put()
    for message in made.messages[:3]:
        made.log[message.commitlog_offset + 4] ^= 1  # the magic
    root = made.write(tmp_path)
    schema = arrow_schema(ALL)
    batch, _ = message_batches(ranges_of(root), schema, BatchLimits(3), on_damage=NULL)
    assert batch.schema.equals(schema)
    assert batch.column("body").null_count == 3
    assert pa.compute.count(batch.column("_damage")).as_py() == 3
