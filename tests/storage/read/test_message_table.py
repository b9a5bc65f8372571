"""Tables of messages: each field is that of the message, in both forms, on whole and odd stores."""

from __future__ import annotations

import gc
import itertools
import random
import struct
import weakref
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from storage.format.cq_unit import CQ_STORE_UNIT
from storage.format.layout import MESSAGE_MAGIC_V1
from storage.format.message import MessageExt
from storage.format.record import encode_record
from storage.format.sys_flag import REPLACED_FLAG, MessageSysFlag
from storage.read import message_table
from storage.read.message_table import BUFFERS, FIELDS, Kind, MessageTable
from storage.read.place_table import fill_from_places
from storage.readonly import StoreView
from tests.support import golden, golden_samples
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.hand_made import HOST, START_MS, TINY, HandMade

CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 17, mapped_file_size_consume_queue=2000)
IPV6 = bytes(range(16)) + (9876).to_bytes(4, "big")
PACKED = MessageSysFlag.COMPRESSED_FLAG
FORMS = [pytest.param(None, id="pure"), pytest.param("compiled", id="compiled")]
LONG_TOPIC_IN_V1 = ((b"\xda\xa3\x20\xab", b"\xda\xa3\x20\xa7"), (b"\0\xc8ttt", b"\xc8ttt"))
Queue = tuple[str, int]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param is not None and compiled is None:
        pytest.skip("needs cc on PATH")
    monkeypatch.setattr(native, "compiled", compiled if request.param else None)


class Read(NamedTuple):
    """What a queue gave: buffers by name, offsets that cannot be read, rows and size."""

    buffers: dict[str, bytes]
    unreadable: list[int]
    rows: int
    size: int


def read(
    view: StoreView,
    queue: Queue,
    fields: Collection[str] = FIELDS,
    times: tuple[int, int] | None = None,
    most_bytes: int = 1 << 28,
    body_room: bytearray | None = None,
) -> Read:
    """All messages of a queue in one table; those that cannot be read are skipped."""
    table = MessageTable(fields, 1 << 30, most_bytes, body_room)
    at, end = view.queue_bounds(*queue)
    unreadable = []
    while at < end and not table.is_full:
        at, is_unreadable = view.fill_table(table, *queue, at, end, times)
        if is_unreadable:
            unreadable.append(at)
            at += 1
    return Read(held(table), unreadable, table.rows, table.size)


def held(table: MessageTable) -> dict[str, bytes]:
    """What a table's buffers hold, by name."""
    return {
        name: bytes(table.buffer(name))
        for name, buffer in zip(BUFFERS, table.buffers, strict=True)
        if buffer is not None
    }


def numbers(data: bytes, kind: Literal["i", "q"] = "i") -> list[int]:
    return memoryview(data).cast(kind).tolist()


def texts(ends: bytes, data: bytes) -> list[bytes]:
    cuts = numbers(ends)
    assert cuts[0] == 0
    assert cuts[-1] == len(data)
    return [data[start:end] for start, end in itertools.pairwise(cuts)]


def column(found: Read, name: str) -> list[Any]:
    """The values of a field."""
    of = found.buffers
    items: list[Any] = []
    match FIELDS[name]:
        case Kind.INT:
            return numbers(of[name])
        case Kind.LONG:
            return numbers(of[name], "q")
        case Kind.TEXT | Kind.BODY:
            return texts(of[f"{name}_ends"], of[name])
        case Kind.TEXTS:
            items = texts(of[f"{name}_text_ends"], of[f"{name}_text"])
        case Kind.PAIRS:
            names = texts(of[f"{name}_name_ends"], of[f"{name}_name"])
            values = texts(of[f"{name}_value_ends"], of[f"{name}_value"])
            items = list(zip(names, values, strict=True))
    cuts = numbers(of[f"{name}_ends"])
    assert cuts[-1] == len(items)
    return [items[start:end] for start, end in itertools.pairwise(cuts)]


def expected(message: MessageExt, offset: int) -> dict[str, Any]:
    """The values of a message, by its own attributes."""
    return {
        "queue_offset": offset,
        "record_queue_id": message.queue_id,
        "record_queue_offset": message.queue_offset,
        "record_topic": message.topic.encode(),
        "born_host": message.born_host.encode(),
        "store_host": message.store_host.encode(),
        "offset_msg_id": message.offset_msg_id.encode(),
        "msg_id": message.msg_id.encode(),
        "tags": (message.tags or "").encode(),
        "keys": [key.encode() for key in message.keys],
        "properties": [(k.encode(), v.encode()) for k, v in message.properties.items()],
        "stored_body": message.stored_body,
        **{
            name: getattr(message, name)
            for name in (
                *("commitlog_offset", "store_size", "flag", "sys_flag", "reconsume_times"),
                *("store_timestamp", "born_timestamp", "body_crc", "prepared_transaction_offset"),
            )
        },
    }


def compare(view: StoreView, queue: Queue) -> int:
    """Hold the table of a queue against its messages; gives their number."""
    found = read(view, queue)
    low, high = view.queue_bounds(*queue)
    rows = []
    for offset in range(low, high):
        unit = view.unit(*queue, offset)
        message = None if unit is None else view.message_of_unit(*queue, offset, unit)
        assert (message is None) == (offset in found.unreadable)
        if message is not None:
            rows.append((message, expected(message, offset)))
    for name in FIELDS:
        assert column(found, name) == [row[name] for _, row in rows], (queue, name)
    packed = [
        number for number, (one, _) in enumerate(rows) if one.sys_flag & PACKED and one.stored_body
    ]
    assert numbers(found.buffers["stored_body_packed"]) == packed
    assert found.rows == len(rows)
    return found.rows


@pytest.mark.usefixtures("form")
@golden_samples.SOME
def test_each_field_of_golden_stores_is_that_of_the_message(name: str) -> None:
    with StoreView.open(golden.store(name)) as view:
        assert sum(compare(view, queue) for queue in view.queues()) > 0


class Odd(HandMade):
    """A store of records that no writer leaves."""

    def put_raw(
        self,
        properties: bytes = b"",
        body: bytes = b"body",
        *,
        topic: str = "T",
        queue_id: int = 0,
        size: int | None = None,
        patches: Iterable[tuple[bytes, bytes]] = (),
        **fields: Any,
    ) -> int:
        """Append a record and its unit; gives the place of the record. ``patches``: bytes
        of the record that are replaced."""
        units = self.queues.setdefault((topic, queue_id), bytearray())
        place = self.log_end
        self.timestamp += 1000
        record = encode_record(
            **{
                "topic": topic,
                "queue_id": queue_id,
                "body": body,
                "properties": properties,
                "queue_offset": len(units) // CQ_STORE_UNIT.size,
                "physical_offset": place,
                "store_timestamp": self.timestamp,
                "born_timestamp": self.timestamp - 5,
                "born_host": HOST,
                "store_host": HOST,
                **fields,
            },
        )
        for old, new in patches:
            record = record.replace(old, new)
        record = len(record).to_bytes(4, "big") + record[4:]
        self.log += record
        self.add_unit(topic, queue_id, place, len(record) if size is None else size, 0)
        return place


def odd_store(seed: int = 0) -> Odd:
    """Records of every kind, in an order by chance."""
    rng = random.Random(seed)
    made = Odd(CONFIG, index=False)
    kinds: list[dict[str, Any]] = [
        {"properties": b"TAGS\x01a\x02KEYS\x01k1 k2  k3 \x02UNIQ_KEY\x01ABC\x02w\x01\xc3\xa9"},
        {"properties": b"TAGS\x01a\x02"},
        {"properties": b"\x01x\x02TAGS\x01\x02\x02x\x01\x02TAGS\x01late\x02nothing\x02a\x01b\x01c"},
        {"properties": b"b\x011\x02a\x012\x02b\x013\x02TAGS\x01x\x02TAGS\x01y"},
        {"properties": b"TAGS\x01\xff\x02KEYS\x01\xc3 \xa9"},
        {"properties": b"TAGS\x01\xed\xa0\x80"},
        {"properties": b"\xf4\x90\x80\x80\x01w\x02TAGS\x01\xf0\x8f\xbf\xbf"},
        {"queue_offset": 999},
        {"physical_offset": 5},
        {"properties": b"a\x01b", "patches": [(b"\0\3a\1b", b"\0\4a\1b")]},
        {"properties": b"a\x01b", "patches": [(b"\1T\0\3a", b"\1U\0\3a")]},
        {"topic": "t" * 200, "queue_id": 3, "version": 2, "patches": LONG_TOPIC_IN_V1},
        {"properties": b"a\xfe\x011\x02a\xff\x012\x02UNIQ_KEY\x01\xe0\x80\x80"},
        {"properties": b"\x02".join(b"n%d\x01v" % number for number in range(64))},
        {"properties": b"\x02".join(b"n%d\x01v" % number for number in range(65))},
        {"properties": b"KEYS\x01" + b"k " * 16000},
        {"properties": b"KEYS\x01  \x02TAGS\x01\xf0\x9f\x98\x80"},
        {"born_host": IPV6},
        {"store_host": IPV6, "properties": b"KEYS\x01k"},
        {"born_host": bytes(16) + b"\xff\xff\xff\xfe", "store_host": IPV6},
        {"born_host": b"\1\2\3\4\x80\0\0\0"},
        {"version": 2},
        {"version": 2, "born_host": IPV6, "store_host": IPV6, "properties": b"TAGS\x01b"},
        {"body": b""},
        {"body": b"x" * 5000},
        {"body": zlib.compress(b"packed" * 99), "sys_flag": PACKED},
        {"body": b"", "sys_flag": PACKED},
        {"body": b"not packed", "sys_flag": PACKED | MessageSysFlag.COMPRESSION_ZSTD_TYPE},
        {"body": bytes(9), "sys_flag": REPLACED_FLAG},
        {"body": b"replaced?", "sys_flag": REPLACED_FLAG},
        {"body": b"wrong sum", "body_crc": 7},
        {"size": 90},
        {"size": 1 << 30},
        {"flag": -5, "reconsume_times": -1, "prepared_transaction_offset": 77},
        {"store_timestamp": -(1 << 63), "born_timestamp": (1 << 63) - 1},
        {"store_timestamp": -1},
        {"topic": "t" * 127, "queue_id": 3},
        {"topic": "t" * 200, "queue_id": 3, "version": 2},
        {"topic": "\N{SNOWMAN}", "queue_id": (1 << 31) - 1},
        {"properties": b"INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b\x02INNER_MULTI_QUEUE_OFFSET\x010,1"},
    ]
    for kind in rng.sample(kinds, len(kinds)):
        if len(made.log) % (1 << 17) > (1 << 17) - 40_000:  # the file has no room: begin the next
            made.log += bytes(-len(made.log) % (1 << 17))
        place = made.put_raw(**kind)
        if b"%LMQ%" in kind.get("properties", b""):
            made.add_unit("%LMQ%a", 0, place, len(made.log) - place, 0)
    for unit in CQ_STORE_UNIT.iter_unpack(bytes(made.queues["T", 0])):
        made.add_unit("%LMQ%a", 0, *unit)
    return made


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return odd_store().write(tmp_path_factory.mktemp("odd"))


@pytest.mark.usefixtures("form")
def test_each_field_of_odd_records_is_that_of_the_message(odd: Path) -> None:
    with StoreView.open(odd, CONFIG) as view:
        counts = {queue: compare(view, queue) for queue in view.queues()}
    assert counts["T", 0] > 20
    assert counts["%LMQ%a", 0] == 1


@needs_compiled
@pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty")
def test_the_pass_takes_what_clients_send(odd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a store of IPv6 hosts, version 2, emojis or compressed bodies is as fast."""
    made = HandMade(CONFIG, index=False)
    for number in range(60):
        made.put(
            body=zlib.compress(b"packed") if number % 2 else b"plain",
            sys_flag=PACKED * (number % 2),
            tags="\N{SNOWMAN}",
            keys=("a", "b"),
            version=1 + number % 3 // 2,
            born_host=IPV6 if number % 5 else HOST,
        )
    monkeypatch.setattr(MessageTable, "add", None)  # a call of it fails
    with StoreView.open(made.write(odd.parent / "sent"), CONFIG) as view:
        found = read(view, ("T", 0))
    assert found.rows == 60
    assert column(found, "born_host")[1] == b"[1:203:405:607:809:a0b:c0d:e0f]:9876"


def compare_places(view: StoreView, fields: Collection[str] = FIELDS) -> tuple[int, int]:
    """Hold tables of the places of all units, and of wrong ones, against the messages there; gives
    how many were taken, and how many messages there are."""
    own = {
        unit[0]
        for queue in view.queues()
        for unit in view.units(*queue, view.queue_bounds(*queue)[0], 1 << 30)
    }
    places = array("q", sorted(own | {place + 3 for place in own}))
    at = taken = 0
    while at < len(places):
        table = MessageTable(fields, 7, 1 << 20)
        count = fill_from_places(
            table, view.files.log, memoryview(places)[at:], view.log_max_offset()
        )
        rows = []
        for place in places[at : at + count]:
            message = view.look_message_by_offset(place)
            assert message is not None
            rows.append(expected(message, message.queue_offset))
        found = Read(held(table), [], table.rows, table.size)
        for name in fields:
            assert column(found, name) == [row[name] for row in rows], name
        assert table.rows == count
        taken += count
        at += count + (0 if table.is_full else 1)
    return taken, sum(view.look_message_by_offset(place) is not None for place in places)


@pytest.mark.slow
@pytest.mark.usefixtures("form")
@golden_samples.SOME
def test_places_of_golden_stores_are_those_of_the_messages(name: str) -> None:
    with StoreView.open(golden.store(name)) as view:
        taken, messages = compare_places(view)
        assert compare_places(view, ["store_timestamp", "record_topic"])[0] >= taken
    assert taken == (messages if native.compiled else 0)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("seed", range(3))
def test_places_of_odd_records_are_those_of_the_messages(tmp_path: Path, seed: int) -> None:
    with StoreView.open(odd_store(seed).write(tmp_path), CONFIG) as view:
        taken, messages = compare_places(view)
    assert taken < messages
    assert taken > 15 * bool(native.compiled) - 1


EACH = [*([name] for name in FIELDS), [], ["msg_id", "store_size"], ["tags", "stored_body"]]


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("fields", EACH, ids="+".join)
def test_a_field_alone_has_the_bytes_that_it_has_among_all(odd: Path, fields: list[str]) -> None:
    with StoreView.open(odd, CONFIG) as view:
        for queue in view.queues():
            alone = read(view, queue, fields)
            whole = read(view, queue, FIELDS.keys() - {"stored_body"} | set(fields))
            assert alone.buffers.items() <= whole.buffers.items()
            assert (alone.rows, alone.unreadable) == (whole.rows, whole.unreadable)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("length", [1, 900, 5_000, 1 << 20])
def test_memory_of_an_earlier_table_changes_nothing(odd: Path, length: int) -> None:
    rng = random.Random(length)
    with StoreView.open(odd, CONFIG) as view:
        for queue in view.queues():
            assert read(view, queue, body_room=bytearray(rng.randbytes(length))) == read(
                view, queue
            )


@pytest.mark.usefixtures("form")
def test_a_damaged_body_is_found_where_bodies_are_read(tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    for _ in range(5):
        made.put(tags="a")
    made.log[made.messages[2].commitlog_offset + 88] ^= 1
    with StoreView.open(made.write(tmp_path), CONFIG) as view:
        found = read(view, ("T", 0), ["stored_body", "tags"])
        assert (found.rows, found.unreadable) == (4, [2])
        assert texts(found.buffers["tags_ends"], found.buffers["tags"]) == [b"a"] * 4
        found = read(view, ("T", 0), ["tags"])
        assert (found.rows, found.unreadable) == (5, [])


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("most_rows", [1, 2, 7, 1000])
@pytest.mark.parametrize("most_bytes", [1, 700, 6000, 1 << 20])
def test_a_table_ends_at_rows_or_bytes_and_the_next_one_goes_on(
    odd: Path, most_rows: int, most_bytes: int
) -> None:
    with StoreView.open(odd, CONFIG) as view:
        whole = read(view, ("T", 0))
        low, high = view.queue_bounds("T", 0)
        offsets, at = [], low
        while at < high:
            table = MessageTable(FIELDS, most_rows, most_bytes)
            while at < high and not table.is_full:
                at, unreadable = view.fill_table(table, "T", 0, at, high)
                at += unreadable
            assert 1 <= table.rows <= most_rows or at == high
            assert table.size <= most_bytes or table.rows == 1
            offsets += memoryview(table.buffer("queue_offset")).cast("q").tolist()
    assert offsets == numbers(whole.buffers["queue_offset"], "q")


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("times", [(0, 1 << 62), (START_MS, START_MS + 40_000), (9, 9), (9, 5)])
def test_only_messages_of_some_times_come(odd: Path, times: tuple[int, int]) -> None:
    with StoreView.open(odd, CONFIG) as view:
        for queue in view.queues():
            whole, some = read(view, queue), read(view, queue, FIELDS, times)
            wanted = [
                offset
                for offset, time in zip(
                    numbers(whole.buffers["queue_offset"], "q"),
                    numbers(whole.buffers["store_timestamp"], "q"),
                    strict=True,
                )
                if time < 0 or times[0] <= time < times[1]
            ]
            assert numbers(some.buffers["queue_offset"], "q") == wanted
            assert set(some.unreadable) <= set(whole.unreadable)


@pytest.mark.slow
def test_a_table_goes_with_its_last_reference(odd: Path) -> None:
    """It may have 64 MiB: Python's search for cycles would come too late."""
    gc.collect()
    gc.disable()
    try:
        with StoreView.open(odd, CONFIG) as view:
            table = MessageTable(FIELDS, 100, 1 << 20)
            view.fill_table(table, "T", 0, 0, 9)
        gone = weakref.ref(table)
        del table
        assert gone() is None
    finally:
        gc.enable()


def test_what_a_table_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 1073741824 bytes"):
        MessageTable(["tags"], 1, message_table.MOST_BYTES + 1)


def _both(view: StoreView, queue: Queue, times: tuple[int, int] | None) -> Iterator[Read]:
    for module in (None, compiled):
        native.compiled = module
        yield read(view, queue, FIELDS, times)
        yield read(view, queue, FIELDS.keys() - {"stored_body"}, times)


SEEDS = [*range(6), *(pytest.param(n, marks=pytest.mark.long) for n in range(6, 200))]


@needs_compiled
@pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_both_forms_read_damaged_bytes_alike(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    made = odd_store(seed)
    for _ in range(rng.choice([1, 10, 60])):
        where = made.log if rng.random() < 0.7 else made.queues[rng.choice([*made.queues])]
        at = rng.randrange(len(where))
        match rng.randrange(3):
            case 0:
                where[at] = rng.randrange(256)
            case 1:
                struct.pack_into(">i", where, min(at, len(where) - 4), rng.choice([-1, 1 << 30, 0]))
            case 2:
                where[at : at + 8] = rng.randbytes(len(where[at : at + 8]))
    root = made.write(tmp_path)
    if rng.random() < 0.5:
        path = rng.choice(sorted((root / "commitlog").iterdir()))
        path.write_bytes(path.read_bytes()[: rng.randrange(1 << 17)])
    times = rng.choice([None, (START_MS + 9000, START_MS + 20_000)])
    before = native.compiled
    try:
        with StoreView.open(root, CONFIG) as view:
            for queue in view.queues():
                pure, pure_heads, fast, fast_heads = _both(view, queue, times)
                assert fast == pure
                assert fast_heads == pure_heads
    finally:
        native.compiled = before


@needs_compiled
def test_odd_arguments_are_errors() -> None:
    buffers = tuple(bytearray() if name == "tags" else None for name in BUFFERS)
    record = encode_record(
        topic="T",
        queue_id=0,
        body=b"",
        properties=b"TAGS\x01a",
        queue_offset=0,
        physical_offset=0,
        store_timestamp=1,
        born_timestamp=1,
        born_host=HOST,
        store_host=HOST,
    )
    assert struct.unpack_from(">i", record, 4) == (MESSAGE_MAGIC_V1,)
    unit = CQ_STORE_UNIT.pack(0, len(record), 0)
    given = [unit, record, 0, b"T", 0, 0, 0, -1, buffers, 0, 9, 0, 999, 8, repr]
    with pytest.raises(TypeError, match="lacks one of its buffers"):
        compiled.fill_table(*given)
    for wrong in (None, (), (b"",) * len(BUFFERS)):
        with pytest.raises(TypeError):
            compiled.fill_table(*given[:8], wrong, *given[9:])
    whole = tuple(bytearray(4 * name.endswith("_ends")) for name in BUFFERS)
    assert compiled.fill_table(*given[:8], whole, *given[9:])[:2] == (1, 1)
    for text in (lambda _: "x" * 65, lambda _: b"", lambda _: 1 // 0):
        whole = tuple(bytearray(4 * name.endswith("_ends")) for name in BUFFERS)
        with pytest.raises((ValueError, TypeError, ZeroDivisionError)):
            compiled.fill_table(*given[:8], whole, *given[9:-1], text)
    for at in range(len(record)):
        cut = [unit, record[:at], *given[2:8], whole, *given[9:]]
        assert compiled.fill_table(*cut)[0] == 0
    with memoryview(whole[0]), pytest.raises(BufferError):
        compiled.fill_table(*given[:8], whole, *given[9:])
