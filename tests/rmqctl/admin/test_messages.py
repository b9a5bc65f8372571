"""Messages through the library: read, found, searched, counted; no command line."""

import contextlib
import json
import re
from collections import Counter
from datetime import UTC
from pathlib import Path

import pytest

from rmqctl.admin import audit, messages
from rmqctl.admin.message_filter import MessageFilter
from rmqctl.admin.messages.search import run as search_run
from rmqctl.errors import CliError, NotFound, UsageProblem
from rmqctl.exit_codes import DAMAGED
from storage.format.message import TRACE_TOPIC
from storage.readonly import StoreView
from tests.support import golden
from tests.support.aged_store import fill
from tests.support.cli import ROOT
from tests.support.hand_made import TINY, HandMade

PAGE = ROOT / "docs" / "admin.md"
START = 1_767_225_600_000
MINUTE = 60_000
BASIC = golden.manifest("basic-4.9")["messages"]
ID = "0A000001123418B4AAC247B760000007"
OFFSET_ID = "7F00000100002A9F0000000000001000"


@pytest.fixture
def basic():
    """The files of a store that a Java broker has written."""
    with StoreView.open(golden.store("basic-4.9")) as view:
        yield view


@pytest.fixture
def view(orders):
    """The files of the store with topic orders."""
    with StoreView.open(orders) as found:
        yield found


@pytest.fixture
def damaged(tmp_path):
    """The files of a store with 60 messages in two queues of topic T; the fourth is damaged."""
    made = HandMade(
        TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=2000)
    )
    for number in range(60):
        made.put("T", number % 2, b"body %d" % number, tags=f"T{number % 3}", keys=("k",))
    root = made.write(tmp_path / "damaged")
    place = made.messages[3].commitlog_offset + 90
    with (root / "commitlog" / f"{place - place % 4096:020}").open("r+b") as file:
        file.seek(place % 4096)
        file.write(b"X")
    with StoreView.open(root) as found:
        yield found, made.messages


def ids(found):
    return [message.offset_msg_id for message in found]


def by_place(rows):
    return [row["offsetMsgId"] for row in sorted(rows, key=lambda row: row["commitLogOffset"])]


# -- one queue ----------------------------------------------------------------------------------


def test_a_message_is_read_at_its_offset(view):
    message = messages.at_offset(view, "orders", 0, 7)
    assert (message.body, message.store_timestamp) == (b"order 7", START + 7 * MINUTE)
    with pytest.raises(NotFound, match="queue 1 of topic orders has no offset 5: it has offsets 0"):
        messages.at_offset(view, "orders", 1, 5)
    with pytest.raises(NotFound, match="topic nope does not exist"):
        messages.at_offset(view, "nope", 0, 0)


def test_a_damaged_message_at_an_offset_is_an_error(damaged):
    view, _ = damaged
    with pytest.raises(CliError, match="the message at offset 1 of queue 1") as raised:
        messages.at_offset(view, "T", 1, 1)
    assert raised.value.exit_code == DAMAGED


def test_a_queue_is_read_from_an_offset_or_a_time_on(view):
    assert [m.queue_offset for m in messages.in_queue(view, "orders", 0)] == list(range(10))
    assert [m.queue_offset for m in messages.in_queue(view, "orders", 0, 8)] == [8, 9]
    wanted = MessageFilter(START + 3 * MINUTE, START + 6 * MINUTE)
    assert [m.queue_offset for m in messages.in_queue(view, "orders", 0, 0, wanted)] == [3, 4, 5]
    odd = MessageFilter(predicate=lambda message: message.queue_offset % 2 == 1)
    assert [m.queue_offset for m in messages.in_queue(view, "orders", 1, 2, odd)] == [3]
    assert list(messages.in_queue(view, "orders", 0, 10)) == []
    with pytest.raises(NotFound, match="topic orders has no queue 2"):
        messages.in_queue(view, "orders", 2)


def test_a_queue_of_many_messages_is_read_as_far_as_asked(view):
    reading = messages.in_queue(view, "orders", 0)
    assert next(reading).queue_offset == 0
    reading.close()


def test_rows_are_those_of_the_commands(view):
    first, *_ = messages.rows_of(messages.in_queue(view, "orders", 0))
    assert (first.topic, first.queue_id, first.queue_offset) == ("orders", 0, 0)
    assert (first.body, first.store_timestamp) == ("order 0", START)


def test_a_queue_with_a_damaged_message_says_so(damaged):
    view, _ = damaged
    sentences: list[str] = []
    found = list(messages.in_queue(view, "T", 1, left_out=sentences.append))
    assert [message.queue_offset for message in found] == [0, *range(2, 30)]
    assert sentences == ["1 messages cannot be read; see 'rmqctl store fsck'"]


def test_a_queue_that_is_left_says_what_could_not_be_read_before(damaged):
    view, _ = damaged
    sentences: list[str] = []
    reading = messages.in_queue(view, "T", 1, left_out=sentences.append)
    assert next(reading).queue_offset == 0
    reading.close()
    assert sentences == []
    reading = messages.in_queue(view, "T", 1, left_out=sentences.append)
    assert [next(reading).queue_offset for _ in range(2)] == [0, 2]
    reading.close()
    assert sentences == ["1 messages cannot be read; see 'rmqctl store fsck'"]


# -- by id, key and tag -------------------------------------------------------------------------


@pytest.mark.parametrize("row", BASIC[::90], ids=lambda row: row["offsetMsgId"])
def test_messages_are_found_by_any_id(basic, row):
    assert row["offsetMsgId"] in ids(messages.with_id(basic, row["offsetMsgId"]))
    unique = row["properties"].get("UNIQ_KEY")
    if unique:
        same = [r for r in BASIC if r["properties"].get("UNIQ_KEY") == unique]
        assert ids(messages.with_id(basic, unique)) == by_place(same)
        assert messages.with_id(basic, unique, row["topic"])


def test_an_id_that_leads_to_nothing_is_an_error(basic, damaged):
    with pytest.raises(NotFound, match=f"no message has the id {ID}"):
        messages.with_id(basic, ID)
    with pytest.raises(UsageProblem, match="'order-7' is not a message id"):
        messages.with_id(basic, "order-7")
    view, made = damaged
    with pytest.raises(CliError, match="is damaged; 'rmqctl store fsck' says how") as raised:
        messages.with_id(view, f"7F00000100002A9F{made[3].commitlog_offset:016X}")
    assert raised.value.exit_code == DAMAGED
    with pytest.raises(NotFound):  # a position within a record
        messages.with_id(view, f"7F00000100002A9F{made[3].commitlog_offset + 1:016X}")


@pytest.mark.parametrize("look", messages.Look)
def test_messages_are_found_by_key(basic, look):
    key = "BBAa"
    rows = [r for r in BASIC if key in (r["properties"].get("KEYS") or "").split()]
    assert rows
    assert ids(messages.with_key(basic, key, look=look)) == by_place(rows)
    topic = rows[0]["topic"]
    of_topic = [row for row in rows if row["topic"] == topic]
    queue = MessageFilter(queues=(rows[0]["queueId"],))
    assert ids(messages.with_key(basic, key, [topic], look=look)) == by_place(of_topic)
    assert ids(messages.with_key(basic, key, [topic], queue, look=look)) == by_place(
        [row for row in of_topic if row["queueId"] == rows[0]["queueId"]]
    )
    with pytest.raises(NotFound, match="topic nope does not exist"):
        messages.with_key(basic, key, ["nope"])


def test_a_search_for_a_key_says_how_far_it_is(basic):
    seen: list[tuple[int, int]] = []
    scan = messages.Look.SCAN
    list(messages.with_key(basic, "BBAa", look=scan, on_progress=lambda *now: seen.append(now)))
    total = seen[0][1]
    assert (seen[0], seen[-1]) == ((0, total), (total, total))
    assert total > 100_000
    assert [scanned for scanned, _ in seen] == sorted(scanned for scanned, _ in seen)


def test_messages_are_found_by_tag(basic):
    tags = Counter(row["properties"].get("TAGS") for row in BASIC if row["properties"].get("TAGS"))
    (first, _), (second, _), *_ = tags.most_common()
    rows = [row for row in BASIC if row["properties"].get("TAGS") in (first, second)]
    topics = sorted({row["topic"] for row in rows if "%" not in row["topic"]})
    rows = [row for row in rows if row["topic"] in topics]
    found = messages.with_tag(basic, f"{first} || {second}", topics)
    assert ids(found) == by_place(rows)
    with pytest.raises(ValueError, match="matches every message"):
        messages.with_tag(basic, "*")
    with pytest.raises(NotFound):
        messages.with_tag(basic, first, ["nope"])


def test_messages_at_log_offsets_are_read_and_damaged_ones_counted(damaged):
    view, made = damaged
    sentences: list[str] = []
    places = [message.commitlog_offset for message in made[2:5]]
    found = list(messages.read_messages(view, places, sentences.append))
    assert [message.body for message in found] == [b"body 2", b"body 4"]
    assert sentences == ["left out 1 damaged records; 'rmqctl store fsck' shows them"]


def test_a_reading_of_a_tag_that_is_left_says_which_were_damaged_before(damaged):
    view, _ = damaged
    sentences: list[str] = []
    with contextlib.closing(messages.with_tag(view, "T0", left_out=sentences.append)) as found:
        assert next(found).body == b"body 0"
    assert sentences == []
    with contextlib.closing(messages.with_tag(view, "T0", left_out=sentences.append)) as found:
        assert [next(found).body for _ in range(2)] == [b"body 0", b"body 6"]
    assert sentences == ["left out 1 damaged records; 'rmqctl store fsck' shows them"]


# -- what is known of one -----------------------------------------------------------------------


def test_a_message_has_a_life():
    root = golden.store("retry-dlq-4.9")
    stored = golden.manifest("retry-dlq-4.9")["messages"]
    dead = next(row for row in stored if row["topic"].startswith("%DLQ%"))
    unique = dead["properties"]["UNIQ_KEY"]
    copies = [m for m in stored if (m["properties"] or {}).get("UNIQ_KEY") == unique]
    with StoreView.open(root) as view:
        rows = list(messages.life(view, unique))
        assert rows == list(messages.life(view, unique, look=messages.Look.SCAN))
        with pytest.raises(NotFound, match="no message has the id or key nothing"):
            list(messages.life(view, "nothing"))
    records = [row for row in rows if row.at_timestamp is not None]
    assert [row.offset_msg_id for row in records] == by_place(copies)
    assert records[0].event == "STORED"
    assert "DEAD" in {row.event for row in records}


def test_a_message_has_a_trace(store):
    pub = ["Pub", 1000, "DefaultRegion", "producers", "orders", ID, "TagA", "k1"]
    pub += ["127.0.0.1:10911", 11, 7, 0, "7F00000100002A9F0000000000000000", "true"]
    after = ["SubAfter", "REQ1", ID, 33, "false", "k1", 1, 2033, "billing"]
    body = "".join("\x01".join(map(str, record)) + "\x02" for record in (after, pub))
    fill(store, [json.dumps({"at": str(START), "topic": TRACE_TOPIC, "body": body, "key": ID})])
    with StoreView.open(store) as view:
        rows = messages.trace(view, ID)
        assert messages.trace(view, OFFSET_ID) == []
    assert [(row.at_timestamp, row.trace_type, row.group, row.success) for row in rows] == [
        (1000, "Pub", "producers", True),
        (2033, "SubAfter", "billing", False),
    ]


def test_a_record_of_a_trace_without_time_and_group_comes_after_the_call(store):
    pub = ["Pub", 1000, "DefaultRegion", "producers", "orders", ID, "TagA", "k1"]
    pub += ["127.0.0.1:10911", 11, 7, 0, "7F00000100002A9F0000000000000000", "true"]
    old = ["SubAfter", "REQ0", ID, 2, "true", "k1"]
    cloud = ["SubAfter", "REQ1", ID, 33, "false", "k1", 1, ""]
    before = ["SubBefore", 2000, "DefaultRegion", "billing", "REQ1", ID, 0, "k1"]
    again = ["SubBefore", 3000, "DefaultRegion", "billing", "REQ2", ID, 1, "k1"]
    records = (old, cloud, again, before, pub)
    body = "".join("\x01".join(map(str, record)) + "\x02" for record in records)
    fill(store, [json.dumps({"at": str(START), "topic": TRACE_TOPIC, "body": body, "key": ID})])
    with StoreView.open(store) as view:
        rows = messages.trace(view, ID)
    assert [(row.at_timestamp, row.trace_type, row.group, row.request_id) for row in rows] == [
        (1000, "Pub", "producers", None),
        (2000, "SubBefore", "billing", "REQ1"),
        (None, "SubAfter", None, "REQ1"),
        (3000, "SubBefore", "billing", "REQ2"),
        (None, "SubAfter", None, "REQ0"),
    ]


def test_ids_are_decoded_without_a_store():
    made = messages.decode_id(OFFSET_ID, START)
    assert (made.kind, made.host, made.commitlog_offset) == ("offset", "127.0.0.1:10911", 4096)
    made = messages.decode_id(ID, START, UTC)
    assert (made.kind, made.host, made.pid, made.counter) == ("unique", "10.0.0.1", 4660, 7)
    assert messages.decode_id(OFFSET_ID, START, UTC, "unique").kind == "unique"
    with pytest.raises(UsageProblem, match="is not a message id"):
        messages.decode_id("nonsense", START)


# -- the log ------------------------------------------------------------------------------------


def of_users(row):
    return not row["topic"].startswith(("SCHEDULE_TOPIC", "RMQ_SYS_TRANS"))


def test_a_search_finds_what_the_log_has(basic):
    query = messages.search_query(basic, "lorem", fields=["body"])
    search = messages.Search(basic, query)
    found = list(search.messages())
    rows = [row for row in BASIC if "lorem" in (row.get("bodyText") or "")]
    assert set(by_place(rows)) <= set(ids(found))
    assert all(b"lorem" in message.body for message in found)
    assert [place(message) for message in found] == sorted(map(place, found))
    assert (search.scanned_bytes, search.position) == (search.total_bytes, search.end)
    assert search.damaged == set()


def place(message):
    return message.commitlog_offset


def test_a_search_takes_a_filter_and_what_its_hits_contain(basic):
    rows = [row for row in BASIC if "BBAa" in (row["properties"].get("KEYS") or "").split()]
    wanted = MessageFilter(predicate=lambda message: "BBAa" in message.keys)
    for contains in (messages.Contains(), messages.Contains(key="BBAa")):
        query = messages.search_query(basic, wanted=wanted, contains=contains)
        assert ids(messages.Search(basic, query).messages()) == by_place(rows)
    topic = rows[0]["topic"]
    query = messages.search_query(basic, topics=[topic], wanted=wanted)
    assert ids(messages.Search(basic, query).messages()) == by_place(
        [row for row in rows if row["topic"] == topic]
    )
    with pytest.raises(ValueError, match="the pattern is empty"):
        messages.search_query(basic, "")
    with pytest.raises(NotFound, match="topic nope does not exist"):
        messages.search_query(basic, "x", topics=["nope"])


def test_a_stopped_search_is_continued_at_its_position(basic):
    query = messages.search_query(basic)
    whole = ids(messages.Search(basic, query).messages())
    first = messages.Search(basic, query)
    finding = first.messages()
    found = ids(next(finding) for _ in range(5))
    finding.close()
    rest = messages.Search(basic, query, start=first.position)
    assert found + ids(rest.messages()) == whole


@pytest.fixture
def many_parts(monkeypatch):
    """A search of the golden store takes many parts, and starts processes."""
    monkeypatch.setattr(search_run, "_PIECE_BYTES", 8192)
    monkeypatch.setattr(search_run, "_FORK_FROM_BYTES", 0)


@pytest.mark.slow
def test_a_search_says_part_by_part_how_far_it_is(basic, many_parts):
    seen: list[tuple[int, int]] = []
    query = messages.search_query(basic, "lorem")
    search = messages.Search(basic, query, jobs=1, on_progress=lambda *now: seen.append(now))
    parts = list(search.parts())
    assert len(parts) > 3
    assert [(part.scanned_bytes, part.total_bytes) for part in parts] == seen[1:]
    assert seen[-1] == (search.total_bytes, search.total_bytes)
    assert [part.position for part in parts] == sorted(part.position for part in parts)
    offsets = [offset for part in parts for offset in part.hits]
    assert offsets == [place(m) for m in messages.Search(basic, query).messages()]


def children():
    return Path("/proc/self/task").glob("*/children")


def test_closing_a_search_ends_its_processes(basic, many_parts):
    search = messages.Search(basic, messages.search_query(basic), jobs=2)
    parts = search.parts()
    assert next(parts).scanned_bytes < search.total_bytes
    running = {pid for file in children() for pid in file.read_text().split()}
    assert running
    parts.close()
    assert running.isdisjoint(pid for file in children() for pid in file.read_text().split())


def test_what_the_callback_raises_ends_a_search(basic, many_parts):
    def stop(scanned: int, _: int) -> None:
        if scanned:
            raise InterruptedError

    search = messages.Search(basic, messages.search_query(basic), jobs=2, on_progress=stop)
    with pytest.raises(InterruptedError):
        list(search.messages())
    assert 0 < search.scanned_bytes < search.total_bytes


def test_a_search_names_damaged_records(damaged):
    view, made = damaged
    query = messages.search_query(view, topics=["T"], fields=["body"])
    search = messages.Search(view, query)
    assert len(list(search.messages())) == 59
    assert search.damaged == {made[3].commitlog_offset}


def test_rows_of_hits_have_the_messages_around_them(view):
    query = messages.search_query(view, "order 3", topics=["orders"])
    alone = messages.HitRows(view, query.matches)
    near = messages.HitRows(view, query.matches, 1)
    hits = [place(message) for message in messages.Search(view, query).messages()]
    rows = [row for offset in hits for row in alone.rows(offset)]
    assert [(row.queue_id, row.queue_offset) for row in rows] == [(0, 3), (1, 3)]
    assert isinstance(rows[0], alone.row_type)
    rows = [row for offset in hits for row in near.rows(offset)]
    assert [(row.hit, row.queue_offset) for row in rows] == [
        *((False, 2), (True, 3), (False, 4)),
        *((False, 2), (True, 3), (False, 4)),
    ]
    assert isinstance(rows[0], near.row_type)
    assert near.unreadable == set()


# -- counted ------------------------------------------------------------------------------------


def test_messages_are_counted_by_a_property(basic):
    query = messages.search_query(basic, inner_topics=False)
    expected = Counter(row["topic"] for row in BASIC if of_users(row))
    counted = messages.stats(basic, query, "topic")
    assert {row.value: row.messages for row in counted.rows()} == expected
    assert (counted.damaged, counted.summary().messages) == (0, expected.total())
    hours = list(messages.stats(basic, query, "hour,topic", zone=UTC).rows())
    assert sum(row.messages for row in hours) == expected.total()
    days = list(messages.stats(basic, query, "day", zone=UTC).rows())
    assert isinstance(days[0], messages.stats_row_type("day"))
    assert isinstance(hours[0], messages.stats_row_type("hour,topic"))
    with pytest.raises(ValueError, match="'topics' is not one of"):
        messages.stats(basic, query, "topics")
    with pytest.raises(ValueError, match="'topics' is not one of"):
        messages.stats_row_type("topics")


def test_messages_are_counted_in_total(basic, damaged):
    seen: list[tuple[int, int]] = []
    query = messages.search_query(basic, inner_topics=False)
    counted = messages.stats(basic, query, on_progress=lambda *now: seen.append(now))
    [row] = counted.rows()
    assert row == counted.summary()
    assert isinstance(row, messages.stats_row_type(None))
    first, second, *_ = counted.summary().topics
    assert first["messages"] >= second["messages"]
    assert seen[-1][0] == seen[-1][1] > 0
    view, _ = damaged
    counted = messages.stats(view, messages.search_query(view), "tag")
    assert counted.damaged == 1
    assert sum(row.messages for row in counted.rows()) == 59


@pytest.mark.parametrize("package", [messages, audit])
def test_the_documents_name_every_public_name(package):
    for name in package.__all__:
        assert re.search(rf"\b{name}\b", package.__doc__ or ""), name
        assert f"`{name}`" in PAGE.read_text(), name


def test_the_example_of_the_page_runs(tmp_path, monkeypatch, capsys):
    line = {"at": str(START), "topic": "orders", "queue": 0}
    tags = ["paid", "sent", "paid", "sent"]
    lines = [json.dumps({**line, "body": f"order {n}", "tag": tag}) for n, tag in enumerate(tags)]
    fill(tmp_path / "demo-store", lines)
    monkeypatch.chdir(tmp_path)
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    exec(compile(code, str(PAGE), "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["2 order 2", "3 order 3"]
    assert printed[2].startswith("2 hits, ")
    assert printed[3:] == ["['STORED']", "['STORED']", "paid 2", "sent 2"]
