"""Rows of a table in the place of messages are these messages, wherever one is asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from storage import native
from storage.errors import StoreError
from storage.format.message import MessageExt
from storage.read.message_rows import MessageRows, offset_at
from storage.read.tag_filter import TagFilter
from storage.readonly import StoreView
from storage.results import GetMessageStatus
from tests.support.examples import examples
from tests.support.hand_made import HOST, TINY, HandMade

CONFIG = TINY.with_(
    mapped_file_size_commit_log=32768,
    mapped_file_size_consume_queue=4000,  # 200 units
    max_transfer_count_in_memory=1024,
    max_transfer_bytes_in_memory=12_000,
)
NONE = frozenset[str]()
V6 = bytes(15) + b"\1" + HOST[4:]
USUAL, UNUSUAL, WRONG, PACKED = range(4)

pytestmark = pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty")


def made_of(kinds: Sequence[int]) -> HandMade:
    made = HandMade(CONFIG)
    for number, kind in enumerate(kinds):
        body = b"%d" % number
        if kind == UNUSUAL:
            made.put(body=body, sys_flag=0x10, born_host=V6)
        else:
            made.put(body=body, sys_flag=1 if kind == PACKED else 0)
        if kind == WRONG:
            made.log[made.messages[-1].commitlog_offset + 4] ^= 1  # of the magic
    return made


def rows_at(view: StoreView, offset: int = 0, count: int = 200) -> MessageRows:
    result = view.get_message("T", 0, offset, count, fields=NONE)
    assert result.status is GetMessageStatus.FOUND
    assert result.rows is not None
    assert not result.messages
    assert result.next_begin_offset == offset + len(result.rows)
    return result.rows


def known(message: MessageExt) -> tuple[Any, ...]:
    return message.queue_offset, message.commitlog_offset, message.stored_body, message.properties


def all_of(view: StoreView, count: int, fields: frozenset[str] | None) -> tuple[Any, ...]:
    """What consumers get that read on and on; and how many messages came as rows."""
    offset, found, as_rows = 0, [], 0
    while offset < view.max_offset_in_queue("T", 0):
        result = view.get_message("T", 0, offset, count, fields=fields)
        if result.rows is not None:
            as_rows += len(result.rows)
            assert list(result.rows.offsets) == [one.queue_offset for one in result.rows]
            assert result.rows.body_bytes == sum(len(one.stored_body) for one in result.rows)
            assert len(result.rows) <= count
        found += list(map(known, result.messages if result.rows is None else result.rows))
        assert result.next_begin_offset > offset
        offset = result.next_begin_offset
    return found, as_rows


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(
    parts=st.lists(
        st.tuples(st.sampled_from([USUAL] * 5 + [UNUSUAL, WRONG, PACKED]), st.integers(1, 90)),
        min_size=1,
        max_size=6,
    ),
    count=st.sampled_from([1, 63, 64, 100, 1024]),
)
def test_reads_with_fields_bring_the_same_messages(
    parts: list[tuple[int, int]], count: int
) -> None:
    made = made_of([kind for kind, times in parts for _ in range(times)])
    with (
        tempfile.TemporaryDirectory() as folder,
        StoreView.open(made.write(Path(folder)), CONFIG) as view,
    ):
        wanted, none = all_of(view, count, None)
        found, _ = all_of(view, count, NONE)
    assert not none
    assert found == wanted


def test_many_usual_messages_come_as_rows_and_all_else_as_messages(tmp_path: Path) -> None:
    made = made_of([USUAL] * 100 + [WRONG] + [USUAL] * 70 + [PACKED] * 70)
    with StoreView.open(made.write(tmp_path), CONFIG) as view:
        assert len(rows_at(view)) == 100, "it ends before the record that contradicts its unit"
        behind = view.get_message("T", 0, 100, 10, fields=NONE)
        assert [one.queue_offset for one in behind.messages] == list(range(101, 111))
        assert view.get_message("T", 0, 101, 63, fields=NONE).rows is None, "so few"
        assert view.get_message("T", 0, 178, 64, fields=NONE).rows is None, "so few are left"
        assert view.get_message("T", 0, 171, 64, fields=NONE).rows is None, "they are compressed"
        assert list(rows_at(view, 101).offsets) == list(range(101, 171)), "up to a compressed one"
        assert rows_at(view, 101)[69].body == b"170"
        assert view.get_message("T", 0, 108, 64, fields=NONE).rows is None, "after 63"
        tags = TagFilter.parse("A")
        assert view.get_message("T", 0, 0, 100, tags=tags, fields=NONE).rows is None
        table = view.get_message("T", 0, 0, 100, fields=frozenset({"keys"})).rows
    assert table is not None
    assert table.table.fields == {"keys", "stored_body"}


def test_a_read_of_several_pulls_and_the_bytes_that_it_may_have(tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    for number in range(150):
        made.put(body=b"%d" % number + bytes(100))
    with StoreView.open(made.write(tmp_path), CONFIG) as view:
        assert len(rows_at(view, count=70)) == 70
        several = view.get_message("T", 0, 0, 70, pulls=2, fields=NONE)
        assert several.rows is not None
        assert 70 < len(several.rows) < 140, "12,000 bytes"


def test_slices_share_their_messages(tmp_path: Path) -> None:
    with StoreView.open(made_of([USUAL] * 100).write(tmp_path), CONFIG) as view:
        rows = rows_at(view)
    part = rows[10:20]
    assert rows[:] is rows is rows[:100]
    assert (len(part), part.offsets, part.begin, part.end) == (10, range(10, 20), 10, 20)
    assert part[-1] is rows[19] is part[5:][4]
    assert list(part) == [rows[at] for at in range(10, 20)]
    assert offset_at(part, 0) == 10 == offset_at(list(part), 0)
    assert not rows[50:40]
    assert part.body_bytes == 20
    for step in (2, -1):
        with pytest.raises(ValueError, match="without a step"):
            rows[::step]
    with pytest.raises(IndexError):
        part[10]


def test_properties_that_are_added_are_there_whenever_the_messages_are_made(tmp_path: Path) -> None:
    with StoreView.open(made_of([USUAL] * 100).write(tmp_path), CONFIG) as view:
        rows = rows_at(view)
    rows.add_property_bytes(b"A\x011")
    rows[10:20].add_property_bytes(b"B\x012\x02C\x013")
    before = dict(rows[0].properties)
    rows[15:].add_property_bytes(b"D\x014")
    rows[:1].add_property_bytes(b"D\x015")
    assert before["A"] == "1"
    assert rows[0].properties == {**before, "D": "5"}
    assert rows[12].properties == {**before, "B": "2", "C": "3"}
    assert rows[15].properties == {**before, "B": "2", "C": "3", "D": "4"}
    assert rows[99].properties == {**before, "D": "4"}


def test_they_are_read_from_a_file_that_retention_has_deleted(tmp_path: Path) -> None:
    root = made_of([USUAL] * 100).write(tmp_path)
    with StoreView.open(root, CONFIG) as view:
        rows = rows_at(view)
        for path in (root / "commitlog").iterdir():
            path.unlink()
        view.files.log.relist()
        assert view.get_message("T", 0, 0, 1).messages == []
        assert rows[7].body == b"7"


def test_a_record_that_has_changed_since_is_an_error_and_no_other_message(tmp_path: Path) -> None:
    made = made_of([USUAL] * 100)
    root = made.write(tmp_path)
    with StoreView.open(root, CONFIG) as view:
        rows = rows_at(view)
        (path,) = (root / "commitlog").iterdir()
        with path.open("r+b") as file:
            file.seek(made.messages[40].commitlog_offset + 4)
            file.write(b"\0")
        with pytest.raises(StoreError, match="from queue offset 0 on have changed"):
            rows[3]
