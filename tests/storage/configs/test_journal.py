"""The change journal: appended by many processes, never torn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.configs import journal as journal_module
from storage.configs.checksummed_json import seal, unseal
from storage.configs.journal import Journal
from storage.errors import StoreNotWritableError
from storage.files.fs import FileSystem


def test_entries_come_back_in_order_with_id_and_time(tmp_path):
    journal = Journal(tmp_path)
    assert list(journal.entries()) == []
    assert journal.append({"command": "topic create", "topic": "\u4e2d"}, 5) == 1
    assert Journal(tmp_path).append({"command": "offset reset"}, 6) == 2
    assert list(journal.entries()) == [
        {"change_id": 1, "at_timestamp": 5, "command": "topic create", "topic": "\u4e2d"},
        {"change_id": 2, "at_timestamp": 6, "command": "offset reset"},
    ]


def test_entries_that_are_written_together_have_ids_each(tmp_path):
    journal = Journal(tmp_path)
    journal.append({"n": 1}, 5)
    assert journal.append_all([{"n": 2}, {"n": 3}], 6) == 3
    assert journal.append_all([], 6) == 3
    assert [(entry["change_id"], entry["n"]) for entry in journal.entries()] == [
        (1, 1),
        (2, 2),
        (3, 3),
    ]


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_last_line_is_skipped_and_written_behind(tmp_path, cut):
    journal = Journal(tmp_path)
    journal.append({"n": 1}, 5)
    journal.append({"n": 2}, 6)
    [path] = journal.files()
    path.write_bytes(path.read_bytes()[:-cut])
    assert [entry["n"] for entry in journal.entries()] == ([1, 2] if cut == 1 else [1])
    journal.append({"n": 3}, 7)
    assert [entry["n"] for entry in journal.entries()] == ([1, 2, 3] if cut == 1 else [1, 3])


def test_each_changed_byte_of_a_line_is_noticed():
    line = seal({"n": 1, "text": "x"})
    assert unseal(line) == {"n": 1, "text": "x"}
    for i in range(len(line)):
        for change in (1, 32):
            assert unseal(line[:i] + bytes((line[i] ^ change,)) + line[i + 1 :]) is None
        assert unseal(line[:i]) is None


def test_a_full_file_is_followed_by_another(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "MAX_FILE_SIZE", 100)
    journal = Journal(tmp_path)
    ids = [journal.append({"n": n}, n) for n in range(6)]
    assert ids == [1, 2, 3, 4, 5, 6]
    assert [path.name for path in journal.files()] == [
        "00000001.jsonl",
        "00000002.jsonl",
        "00000003.jsonl",
    ]
    assert [entry["n"] for entry in journal.entries()] == [0, 1, 2, 3, 4, 5]


def test_threads_and_openers_share_the_numbering(tmp_path):
    journals = [Journal(tmp_path), Journal(tmp_path)]
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(lambda n: journals[n % 2].append({"n": n}, n), range(40)))
    assert sorted(ids) == list(range(1, 41))
    assert [entry["change_id"] for entry in journals[0].entries()] == list(range(1, 41))


class BrokenDisk(FileSystem):
    def sync(self, fd: int) -> None:
        raise OSError(5, "Input/output error")


def test_a_failed_write_is_one_clear_error(tmp_path):
    with pytest.raises(StoreNotWritableError, match="Input/output error"):
        Journal(tmp_path, BrokenDisk()).append({"n": 1}, 1)


def test_no_entry_is_written_that_no_reader_takes(tmp_path):
    journal = Journal(tmp_path)
    journal.append({"n": 1}, 5)
    (path,) = journal.files()
    before = path.read_bytes() + seal({"change_id": 1 << 53, "at_timestamp": 6, "n": 2}) + b"\n"
    path.write_bytes(before)
    with pytest.raises(StoreNotWritableError, match="change_id 9007199254740992"):
        journal.append({"n": 3}, 7)
    assert path.read_bytes() == before


def test_an_entry_in_a_file_of_a_killed_process_syncs_its_name_first(tmp_path, monkeypatch):
    class Killed(Exception):
        pass

    class Dies(FileSystem):
        def sync_dir(self, path):
            raise Killed

    synced = []

    class Seen(FileSystem):
        def sync_dir(self, path):
            super().sync_dir(path)
            synced.append(path)

    with pytest.raises(Killed):
        Journal(tmp_path, Dies()).append({"n": 1}, 5)
    journal = Journal(tmp_path, Seen())
    assert journal.append({"n": 2}, 6) == 2
    assert synced == [journal.path.parent, journal.path]
    journal.append({"n": 3}, 7)
    assert len(synced) == 2, "once a file"
    monkeypatch.setattr(journal_module, "MAX_FILE_SIZE", 100)
    with pytest.raises(Killed):
        Journal(tmp_path, Dies()).append({"n": 4}, 8)
    journal.append({"n": 5}, 9)
    assert synced[2:] == [journal.path.parent, journal.path]


def test_a_file_that_is_made_again_under_its_name_has_its_name_synced(tmp_path):
    """The files of a journal are moved away to begin a new one."""
    synced = []

    class Seen(FileSystem):
        def sync_dir(self, path):
            super().sync_dir(path)
            synced.append(path)

    journal = Journal(tmp_path, Seen())
    for number in (1, 2):
        assert journal.append({"n": number}, number) == 1
        assert synced == [journal.path.parent, journal.path] * number
        (path,) = journal.files()
        path.unlink()
