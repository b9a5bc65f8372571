"""The page grows beside those who have mapped less of it."""

from __future__ import annotations

from pathlib import Path

from storage.files.fs import FileSystem
from storage.sharing.page import FIRST_SLOTS, SharedPage


def test_others_see_queues_that_came_when_the_page_had_grown(tmp_path: Path) -> None:
    (tmp_path / "rmqctl").mkdir()
    one = SharedPage(FileSystem(), tmp_path, writable=True)
    reader, other_reader = (SharedPage(FileSystem(), tmp_path, writable=False) for _ in range(2))
    writer, other_writer = (SharedPage(FileSystem(), tmp_path, writable=True) for _ in range(2))
    last = FIRST_SLOTS + 9
    for number in range(last + 1):
        one.add_slot("T", number)
    one.set_next_offset(last, 8)
    one.set_synced_offset(last, 7)
    assert reader.slot("T", last) == last
    assert reader.next_offset(last) == 8
    assert other_reader.synced_offset(last) == 7
    writer.set_next_offset(last, 10)
    other_writer.set_synced_offset(last, 9)
    assert (one.next_offset(last), one.synced_offset(last)) == (10, 9)
    for page in (one, reader, other_reader, writer, other_writer):
        page.close()
