"""Lines of ``rmqctl/queues``: any name is read as it was written; what changed or moved is seen."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given, strategies as st

from storage.coordination.queue_names import QueueNamesError, name_line, read_name_lines

NAMES = [("Orders", 0), ("a\tb\nc\\d", 3), ("\u20ac\\x", 7), ("%RETRY%g", 2147483647)]


def lines(names: list[tuple[str, int]], first: int = 0) -> bytes:
    return b"".join(name_line(slot, *name) for slot, name in enumerate(names, first))


def sealed(name: bytes, slot: int = 0) -> bytes:
    return b"%s\t%08x\n" % (name, crc32(name, slot))


def test_lines_are_read_as_they_were_written() -> None:
    assert read_name_lines(lines(NAMES), 0) == NAMES
    assert read_name_lines(lines(NAMES, 5), 5) == NAMES
    assert read_name_lines(b"", 9) == []
    assert lines(NAMES).count(b"\n") == len(NAMES)


@given(
    st.text(st.characters(codec="utf-8"), min_size=1), st.integers(0, 2**31 - 1), st.integers(0, 9)
)
@pytest.mark.slow
def test_any_name_is_read_as_it_was_written(topic: str, queue_id: int, slot: int) -> None:
    assert read_name_lines(name_line(slot, topic, queue_id), slot) == [(topic, queue_id)]


def test_every_byte_that_changes_is_seen_in_its_line() -> None:
    data = lines(NAMES)
    starts = [len(lines(NAMES[:number])) for number in range(len(NAMES))]
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        with pytest.raises(QueueNamesError) as raised:
            read_name_lines(bytes(changed), 0)
        assert raised.value.position == max(start for start in starts if start <= position)


def test_a_line_in_another_place_is_seen() -> None:
    data = lines(NAMES)
    with pytest.raises(QueueNamesError, match="line 2 is wrong"):
        read_name_lines(data, 1)
    first, second, *_ = data.splitlines(keepends=True)
    with pytest.raises(QueueNamesError, match="line 1 is wrong"):
        read_name_lines(second + first, 0)


def test_a_last_line_without_its_end_is_seen() -> None:
    data = lines(NAMES)
    for cut in range(1, len(name_line(3, *NAMES[3]))):
        with pytest.raises(QueueNamesError) as raised:
            read_name_lines(data[:-cut], 0)
        assert raised.value.position == len(lines(NAMES[:3]))


@pytest.mark.parametrize("name", [b"T", b"T\t", b"\t0", b"T\tx", b"T\t-1", b"T\t2147483648", b""])
def test_a_right_check_sum_makes_no_name(name: bytes) -> None:
    with pytest.raises(QueueNamesError, match="line 1 names no queue"):
        read_name_lines(sealed(name), 0)
