"""A tombstone is a whole record of the log, and no reader gets it as a message."""

import pytest

from storage.format.check import CheckKind, check_record
from storage.format.record import decode_record
from storage.format.sys_flag import gets_unit, is_indexed
from storage.format.tombstone import FILLER_TOPIC, LEAST_FILLER, Tombstone, fillers, is_replaced
from storage.readonly import StoreView
from storage.tools.fsck import fsck
from tests.support.hand_made import TINY, HandMade


@pytest.fixture
def root(tmp_path):
    """Three messages with keys and tags, the middle one replaced; and where that one lies."""
    made = HandMade(TINY.with_(mapped_file_size_commit_log=4096))
    _, gone, last = (made.put("T", 0, b"body %d" % n, tags="a", keys=(f"k{n}",)) for n in range(3))
    root = made.write(tmp_path / "s")
    record = Tombstone("T", 0, 1, gone.commitlog_offset, gone.size, gone.store_timestamp).encode()
    path = root / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[gone.commitlog_offset : last.commitlog_offset] = record
    path.write_bytes(data)
    return root, made.config, gone


def test_readers_pass_over_it_by_queue_by_place_by_column_and_by_key(root):
    root, config, gone = root
    with StoreView.open(root, config) as view:
        found = view.get_message("T", 0, 0, 32)
        assert [message.queue_offset for message in found.messages] == [0, 2]
        assert view.max_offset_in_queue("T", 0) == 3
        assert list(view.read_column("T", 0, 0, 32).queue_offsets) == [0, 2]
        assert view.look_message_by_offset(gone.commitlog_offset) is None
        assert view.query_message("T", "k1", 32).messages == []


def test_the_check_says_that_it_is_there_and_nothing_else(root):
    root, config, _ = root
    with StoreView.open(root, config) as view:
        report = fsck(view)
    assert [(f.code, f.severity) for f in report.findings] == [("RECORD_REPLACED", "info")]
    assert report.checked.records == 3


def test_a_message_with_the_mark_and_a_body_is_no_tombstone():
    assert is_replaced(1 << 30, bytes(4))
    assert not is_replaced(1 << 30, b"\0\0\1")
    assert not is_replaced(0, bytes(4))


@pytest.mark.parametrize("length", [LEAST_FILLER, 93, 106, 107, 500, (4 << 20) + 40, 9 << 20])
def test_fillers_take_any_length_and_are_not_dispatched(length):
    start, total = 12345, 0
    for filler in fillers(start, start + length, 77):
        data = filler.encode()
        assert check_record(data, 0, len(data)).kind is CheckKind.MESSAGE
        message = decode_record(data)
        assert (message.commitlog_offset, message.store_size) == (start + total, len(data))
        assert FILLER_TOPIC.startswith(message.topic)
        assert message.store_timestamp == 77
        assert not gets_unit(message.sys_flag)
        assert not is_indexed(message.sys_flag)
        total += len(data)
    assert total == length


def test_properties_stay_if_they_fit():
    wanted = Tombstone("T", 0, 1, 0, 120, 5, properties=b"TAGS\1a")
    assert decode_record(wanted.encode()).tags == "a"
    assert decode_record(wanted._replace(size=93).encode()).property_bytes == b""
    assert not wanted._replace(size=91).fits()
