"""The log of progress: its end, damage in it, stores of version 1, and a table in its place."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from storage.configs import progress_log
from storage.configs.checksummed_json import SealError, body_of, entry_of, seal, seal_body
from storage.configs.consumer_offsets import consumer_offset_file
from storage.configs.progress import OFFSETS_MARK, ProgressFile
from storage.configs.progress_log import ProgressLog
from storage.configs.progress_reader import MARK
from storage.configs.progress_table import ProgressTable, QueueProgress, rows_in, rows_of
from storage.errors import CorruptFileError, StoreNotWritableError, StoreVersionError
from storage.files.fs import FileSystem
from storage.format.shapes import ShapeError

KEY = ("T@g", 0)
OTHER = ("T@a-group-with-a-long-name", 1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "lock").touch()
    return tmp_path


def at(root: Path) -> QueueProgress:
    return ProgressFile(root).read().get(*KEY)


def lines_of(root: Path) -> list[dict[str, Any]]:
    text = ProgressFile(root).path.read_text()
    return [json.loads(line)["entry"] for line in text.splitlines()]


@pytest.fixture
def path(root: Path) -> Path:
    """A log with a table, two commits, a move, and Java's file noted twice."""
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 5)})
    file.export()
    file.commit({OTHER: QueueProgress(0, 70)})
    file.move({OTHER: 3}, lambda *_: 9)
    file.commit({KEY: QueueProgress(0, 6)})
    return file.path


def test_a_commit_adds_a_line_with_what_it_changed_and_nothing_else(path: Path) -> None:
    root, before = path.parents[1], path.read_bytes()
    ProgressFile(root).commit({KEY: QueueProgress(0, 7), OTHER: QueueProgress(0, 1)})
    after = path.read_bytes()
    assert after.startswith(before)
    entry = json.loads(after[len(before) :])["entry"]
    assert entry["queues"] == {"T@g": {"0": [0, 7]}}
    assert [line["n"] for line in lines_of(root)] == [*range(1, len(lines_of(root)) + 1)]


@pytest.mark.slow
def test_a_log_cut_at_any_byte_is_read_up_to_its_last_whole_line(path: Path) -> None:
    root, whole = path.parents[1], path.read_bytes()
    table_end = whole.index(b"\n") + 1
    tables = {0: ProgressTable()}
    for end in range(table_end, len(whole) + 1):
        if whole[end - 1 : end] == b"\n":
            path.write_bytes(whole[:end])
            tables[end] = ProgressFile(root).read()
    assert len(tables) > 5
    for end in range(table_end, len(whole) + 1):
        path.write_bytes(whole[:end])
        last = tables[max(known for known in tables if known <= end)]
        assert ProgressFile(root).read().queues == last.queues, end
        # A line that is shorter than what is left of the one that was cut.
        generation = last.get(*KEY).generation
        ProgressFile(root).commit({KEY: QueueProgress(generation, 8)})
        assert at(root) == (generation, 8), end
        ProgressFile(root).commit({KEY: QueueProgress(generation, 9)})
        assert at(root) == (generation, 9), end


@pytest.mark.slow
@pytest.mark.parametrize("bit", [0, 3, 6])
def test_no_flipped_bit_is_taken_for_progress(path: Path, bit: int) -> None:
    root, whole = path.parents[1], path.read_bytes()
    right = ProgressFile(root).read().queues
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << bit
        path.write_bytes(bytes(flipped))
        with pytest.raises(CorruptFileError) as caught:
            ProgressFile(root).read()
        assert caught.value.position <= place
        with pytest.raises(CorruptFileError):
            ProgressFile(root).commit({KEY: QueueProgress(0, 99)})
        assert path.read_bytes() == flipped
    path.write_bytes(whole)
    assert ProgressFile(root).read().queues == right


def test_lines_that_are_missing_or_twice_there_are_damage(path: Path) -> None:
    root = path.parents[1]
    lines = path.read_bytes().splitlines(keepends=True)
    for number in range(1, len(lines) - 1):
        for other in ([], [lines[number]] * 2):
            path.write_bytes(b"".join([*lines[:number], *other, *lines[number + 1 :]]))
            with pytest.raises(CorruptFileError):
                ProgressFile(root).read()


def test_lost_sectors_at_the_end_are_cut_and_those_before_it_are_damage(path: Path) -> None:
    root, whole = path.parents[1], path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    wanted = seal({"n": 7, "synced": 5, "queues": {"T@g": {"0": [0, 8]}}}) + b"\n"
    # What the next line does not cover must be gone.
    path.write_bytes(whole[:start] + bytes(len(wanted) - 4) + b'},"x":1}}\n')
    assert at(root) == (0, 5)
    ProgressFile(root).commit({KEY: QueueProgress(0, 8)})
    assert path.read_bytes() == whole[:start] + wanted
    path.write_bytes(whole[:start] + bytes(len(whole) - start) + b"\n")
    assert at(root) == (0, 5)
    # Its writer synced this line before it wrote the next one.
    before = whole.rindex(b"\n", 0, start - 1) + 1
    path.write_bytes(whole[:before] + bytes(start - before - 1) + whole[start - 1 :])
    with pytest.raises(CorruptFileError, match="the check sum is wrong"):
        at(root)


def test_a_line_says_that_the_one_before_it_may_be_on_no_device(root: Path) -> None:
    one, two = ProgressFile(root), ProgressFile(root)
    one.commit({KEY: QueueProgress(0, 1)})
    one.commit({KEY: QueueProgress(0, 2)})
    one.commit({KEY: QueueProgress(0, 3)})
    two.commit({KEY: QueueProgress(0, 4)})
    two.commit({KEY: QueueProgress(0, 5)})
    one.commit({KEY: QueueProgress(0, 6)})
    assert [line.get("synced") for line in lines_of(root)] == [None, None, None, 2, None, 4]
    data = ProgressFile(root).path.read_bytes()
    lines = data.splitlines(keepends=True)
    broken = bytes(len(lines[4]) - 1) + b"\n"
    ProgressFile(root).path.write_bytes(b"".join([*lines[:4], broken, lines[5]]))
    assert at(root) == (0, 4), "neither of both was acknowledged"


def test_a_line_that_takes_the_place_of_another_is_seen_by_readers(path: Path) -> None:
    reader, whole = ProgressFile(path.parents[1]), path.read_bytes()
    reader.read()
    start = whole.rindex(b"\n", 0, -1) + 1
    first = json.loads(whole[start:])["entry"]
    other = seal({**first, "queues": {"T@g": {"0": [0, 4]}}}) + b"\n"
    assert len(other) == len(whole) - start
    path.write_bytes(whole[:start] + other)
    assert reader.read().get(*KEY) == (0, 4)
    reader.commit({KEY: QueueProgress(0, 5)})
    assert reader.read().get(*KEY) == (0, 5)


class FailsToSync(FileSystem):
    fails = True

    def sync(self, fd: int) -> None:
        if self.fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(fd)


def test_a_commit_that_is_not_synced_is_not_there_and_the_next_one_is_a_table(path: Path) -> None:
    root, whole = path.parents[1], path.read_bytes()
    fs = FailsToSync()
    reader, file = ProgressFile(root), ProgressFile(root, fs)
    reader.read()
    for _ in range(2):
        with pytest.raises(StoreNotWritableError, match="Input/output error"):
            file.commit({KEY: QueueProgress(0, 8)})
        assert path.read_bytes() == whole
        assert file.read().get(*KEY) == reader.read().get(*KEY) == (0, 6)
    fs.fails = False
    file.commit({KEY: QueueProgress(0, 9)})
    assert len(lines_of(root)) == 1
    assert reader.read().get(*KEY) == (0, 9)


# -- a table in the place of a long log -----------------------------------------------------------


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_log, "_LEAST_LOG", 400)


@pytest.mark.usefixtures("short")
def test_a_long_log_is_replaced_and_all_processes_go_on(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, reader = (ProgressFile(root) for _ in range(3))
    parsed, read = [], ProgressLog._read_table

    def count(log: ProgressLog, *line: Any) -> Any:
        parsed.append(1)
        return read(log, *line)

    monkeypatch.setattr(ProgressLog, "_read_table", count)
    replaced, inode, longest = -1, 0, 0
    for number in range(90):
        (one, two)[number % 2].commit({(f"T@g{number % 5}", 0): QueueProgress(0, number)})
        assert reader.read().get(f"T@g{number % 5}", 0) == (0, number)
        before, inode = inode, one.path.stat().st_ino  # of two files that are there at once
        replaced += inode != before
        longest = max(longest, one.path.stat().st_size)
    assert replaced > 3
    assert longest < 2_500
    assert reader.read().queues == ProgressFile(root).read().queues
    # Who has applied the last line has the table: it is parsed at the start alone.
    assert len(parsed) < 8


@pytest.mark.usefixtures("short")
def test_a_reader_of_exported_progress_parses_no_table_that_takes_the_place_of_a_log(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a console beside a broker, which exports what was committed."""
    writer, reader = ProgressFile(root), ProgressFile(root)
    parsed, read = [], ProgressLog._read_table

    def count(log: ProgressLog, *line: Any) -> Any:
        parsed.append(log.path)
        return read(log, *line)

    monkeypatch.setattr(ProgressLog, "_read_table", count)
    inodes = set()
    for number in range(90):
        writer.commit({(f"T@g{n}", 0): QueueProgress(0, number) for n in range(4)})
        writer.export()
        inodes.add(writer.path.stat().st_ino)
        assert reader.read().get("T@g3", 0) == (0, number)
    assert len(inodes) > 1, "no log was replaced"
    assert len(parsed) < 8
    assert consumer_offset_file(root).load().made["T@g3"] == {0: 89}


@pytest.mark.usefixtures("short")
def test_without_room_for_a_table_a_log_grows_on(root: Path) -> None:
    class Full(FileSystem):
        def create_beside(self, path: Path, folder: Path | None = None) -> tuple[int, Path]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ProgressFile(root).commit({KEY: QueueProgress(0, 0)})
    inode = ProgressFile(root).path.stat().st_ino
    file = ProgressFile(root, Full())
    for number in range(1, 60):
        file.commit({KEY: QueueProgress(0, number)})
    assert at(root) == (0, 59)
    assert file.path.stat().st_ino == inode
    ProgressFile(root).commit({KEY: QueueProgress(0, 60)})
    assert file.path.stat().st_ino != inode
    assert file.read().get(*KEY) == (0, 60)


class NamesOnTheDevice(FileSystem):
    """Knows which file the device has under a name; fails once if it is to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.inode = path.stat().st_ino
        self.fails = False

    def sync_dir(self, path: Path) -> None:
        if self.fails:
            self.fails = False
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync_dir(path)
        if path == self.path.parent:
            self.inode = self.path.stat().st_ino


def test_a_commit_into_a_log_of_a_killed_process_syncs_its_name_first(path: Path) -> None:
    root, device = path.parents[1], NamesOnTheDevice(path)
    file = ProgressFile(root, device)
    file.commit({KEY: QueueProgress(0, 7)})
    for offset in (8, 9):
        # Another process is killed after its rename, before its sync of the folder.
        (root / "renamed").write_bytes(path.read_bytes())
        (root / "renamed").rename(path)
        assert device.inode != path.stat().st_ino
        file.commit({KEY: QueueProgress(0, offset)})
        assert device.inode == path.stat().st_ino
    assert at(root) == (0, 9)


def test_a_new_log_with_the_inode_of_an_earlier_one_has_another_name(path: Path) -> None:
    """The number of a file that is gone is used again, and tables of a store are as long."""
    root, device = path.parents[1], NamesOnTheDevice(path)
    file = ProgressFile(root, device)
    file.commit({KEY: QueueProgress(0, 7)})
    ProgressFile(root).recover({}, lambda *_: None)  # writes a table
    file.commit({KEY: QueueProgress(0, 8)})
    table, _, _ = path.read_bytes().partition(b"\n")
    body = body_of(table) or b""
    assert body.count(b"[0,7]") == 1
    path.write_bytes(seal_body(body.replace(b"[0,7]", b"[0,9]")) + b"\n")
    device.inode = 0  # the device has the earlier one
    file.commit({KEY: QueueProgress(0, 10)})
    assert device.inode == path.stat().st_ino
    assert at(root) == (0, 10)


@pytest.mark.usefixtures("short")
def test_a_commit_whose_new_log_gets_no_name_on_the_device_fails(root: Path) -> None:
    ProgressFile(root).commit({KEY: QueueProgress(0, 0)})
    device = NamesOnTheDevice(ProgressFile(root).path)
    file = ProgressFile(root, device)
    file.commit({KEY: QueueProgress(0, 1)})
    inode, acknowledged, refused = device.inode, 1, 0
    device.fails = True
    for number in range(2, 60):
        try:
            file.commit({KEY: QueueProgress(0, number)})
            acknowledged = number
        except StoreNotWritableError:
            refused += 1
        assert at(root) == (0, acknowledged)
    assert (refused, device.inode != inode) == (1, True)
    assert device.inode == file.path.stat().st_ino


# -- stores of version 1 --------------------------------------------------------------------------


def old_store(root: Path, **more: Any) -> dict[str, Any]:
    (root / "rmqctl").mkdir()
    entry: dict[str, Any] = {"version": 1, "change_id": 4}
    entry["lock_mtime_ns"] = (root / "lock").stat().st_mtime_ns
    entry |= {"queues": {"T@g": {"0": [2, 5]}}, "exported": {"T@g": {"0": 4}}, **more}
    (root / "rmqctl" / OFFSETS_MARK).write_bytes(seal(entry))
    return entry


def test_progress_of_version_1_is_read_and_becomes_a_log_with_the_first_change(root: Path) -> None:
    old_store(root)
    mark = root / "rmqctl" / OFFSETS_MARK
    before = mark.read_bytes()
    file = ProgressFile(root)
    table = file.read()
    assert (table.get(*KEY), table.change_id, table.exported) == ((2, 5), 4, {"T@g": {0: 4}})
    assert file.commit({KEY: QueueProgress(2, 5)}) == {KEY: (2, 5)}
    assert (mark.read_bytes(), file.path.exists()) == (before, False), "nothing has changed"
    assert file.commit({KEY: QueueProgress(1, 9)}) == {KEY: (2, 5)}
    assert file.commit({KEY: QueueProgress(2, 6)}) == {KEY: (2, 6)}
    after = ProgressFile(root).read()
    assert (after.get(*KEY), after.change_id, after.exported) == ((2, 6), 4, {"T@g": {0: 4}})
    assert mark.read_bytes() == MARK


def test_an_rmqctl_of_version_1_refuses_the_mark(path: Path) -> None:
    mark = path.with_name(OFFSETS_MARK)
    with pytest.raises(StoreVersionError, match="version 2, this rmqctl knows up to version 1"):
        entry_of(mark.read_bytes(), mark, 1, remedy="")


def test_a_log_does_not_count_until_the_mark_is_there(root: Path) -> None:
    old_store(root)
    before = (root / "rmqctl" / OFFSETS_MARK).read_bytes()
    ProgressFile(root).commit({KEY: QueueProgress(2, 6)})
    (root / "rmqctl" / OFFSETS_MARK).write_bytes(before)
    assert at(root) == (2, 5)
    reader = ProgressFile(root)
    reader.read()
    assert ProgressFile(root).commit({KEY: QueueProgress(2, 7)}) == {KEY: (2, 7)}
    assert reader.read().get(*KEY) == at(root) == (2, 7)


@pytest.mark.parametrize("is_done", [False, True])
def test_a_move_of_version_1_that_was_broken_off_is_settled(root: Path, is_done: bool) -> None:
    from hashlib import sha256

    (root / "config").mkdir()
    java = root / "config" / "consumerOffset.json"
    java.write_text('{"offsetTable":{"T@g":{0:1}}}')
    entry = {"change_id": 5, "queues": {"T@g": {"0": [3, 1]}}, "exported": {"T@g": {"0": 1}}}
    entry |= {"version": 1, "lock_mtime_ns": (root / "lock").stat().st_mtime_ns}
    sum_of = sha256(java.read_bytes()).hexdigest()
    old_store(root, next=entry, next_java=sum_of if is_done else "0" * 64)
    expected = ((3, 1), 5) if is_done else ((2, 5), 4)
    assert (at(root), ProgressFile(root).read().change_id) == expected
    ProgressFile(root).commit({OTHER: QueueProgress(0, 1)})
    assert (at(root), ProgressFile(root).read().change_id) == expected


# -- the mark -------------------------------------------------------------------------------------


def test_a_log_that_is_missing_beside_its_mark_is_not_taken_for_no_progress(path: Path) -> None:
    root = path.parents[1]
    path.unlink()
    with pytest.raises(CorruptFileError, match="it is missing"):
        at(root)
    with pytest.raises(CorruptFileError, match="it is missing"):
        ProgressFile(root).commit({KEY: QueueProgress(0, 9)})
    assert not path.exists()


@pytest.mark.parametrize("content", [None, b"", b"{}", b"x" * 300])
def test_a_log_counts_without_its_mark_and_the_next_commit_writes_it(
    path: Path, content: bytes | None
) -> None:
    root, mark = path.parents[1], path.with_name(OFFSETS_MARK)
    mark.unlink()
    if content is not None:
        mark.write_bytes(content)
    assert at(root) == (0, 6)
    ProgressFile(root).commit({KEY: QueueProgress(0, 7)})
    assert at(root) == (0, 7)
    assert mark.read_bytes() == MARK


def test_a_later_version_is_refused_by_its_mark_or_by_its_log(path: Path) -> None:
    root, mark = path.parents[1], path.with_name(OFFSETS_MARK)
    mark.write_bytes(seal({"version": 3}))
    for call in (lambda: at(root), lambda: ProgressFile(root).commit({KEY: QueueProgress(0, 9)})):
        with pytest.raises(StoreVersionError, match="version 3"):
            call()
    mark.write_bytes(MARK)
    path.write_bytes(seal({"version": 3, "tables": []}) + b"\n")
    with pytest.raises(StoreVersionError, match="version 3"):
        at(root)


@pytest.mark.parametrize("anew", [False, True], ids=["goes on", "reads all again"])
def test_a_thread_that_reads_amid_a_commit_does_not_disturb_it(path: Path, anew: bool) -> None:
    mark = path.with_name(OFFSETS_MARK)
    seen = []

    class ReadsAmid(FileSystem):
        def sync(self, fd: int) -> None:
            super().sync(fd)
            if anew:
                os.utime(mark)
            seen.append(file.read().get(*KEY))

    file = ProgressFile(path.parents[1], ReadsAmid())
    for offset in range(7, 20):
        assert file.commit({KEY: QueueProgress(0, offset)}) == {KEY: (0, offset)}
        assert at(path.parents[1]) == (0, offset)
    assert file.move({KEY: 2}) == {KEY: ((0, 19), (1, 2))}
    assert file.commit({KEY: QueueProgress(1, 3)}) == {KEY: (1, 3)}
    assert file.read().get(*KEY) == at(path.parents[1]) == (1, 3)
    assert len(seen) > 15
    # Only the first line goes on after another process's, whichever thread read the others first.
    assert [line["n"] for line in lines_of(path.parents[1]) if "synced" in line] == [8]


def test_a_commit_is_the_line_that_the_encoder_would_write(root: Path) -> None:
    """The text of keys, with all that JSON escapes, and whether the line before it is synced."""
    keys = ["T@g", 'odd"\\\n\t\x7f\u00e9\U0001f600@g', "%RETRY%g@g"]
    rows = {key: {n: QueueProgress(n, 1 << 40 + n) for n in range(3)} for key in keys}
    ProgressFile(root).commit({KEY: QueueProgress(0, 1)})
    log = ProgressFile(root)._reader.content()
    assert isinstance(log, ProgressLog)
    for synced in (1, 0):
        log.ending = log.ending._replace(synced=synced)
        line = log.commit_line(rows)
        assert line == log.line_of({"queues": rows})
        assert json.loads(line)["entry"]["queues"].keys() == set(keys)


_ROWS = ['{"T@g":{"0":[0,5],"3":[2,7]},"U@g":{"1":[0,0]}}', "{}", '{"T@g":{}}']
_ODD_ROWS = [
    '{"T@g":{"0":[0,5],"0":[0,6]}}',
    '{"T@g":{"0":[0,5]},"T@g":{"0":[0,5]}}',
    '{"T@g":{"00":[0,5]}}',
    '{"T@g":{"0":[0,5.0]}}',
    '{"T@g":{"0":[0,null]}}',
    '{"T\\u0040g":{"0":[0,5]}}',
    '{"T@g":{"0":[0,5]}',
]
_HEADS = ['{"n":8', '{"n":8,"synced":0', '{"n":8,"synced":7', '{"n":999999999999999']
_ODD_HEADS = [
    *('{"n":08', '{"n":8,"synced":07', '{"n":8,"synced":-1', '{"n":8,"synced":1e1', '{"n":8.0'),
    *('{"n":9999999999999999', '{"synced":7,"n":8', '{"n":8,"n":8', '{"n": 8', '{"n":8,"synced":'),
]


@pytest.mark.parametrize("head", _HEADS + _ODD_HEADS)
@pytest.mark.parametrize("rows", _ROWS + _ODD_ROWS)
def test_a_commit_is_read_as_the_parser_of_all_json_reads_it(
    head: str, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the compiled reader of rows, alone and beside other lines."""
    line = seal_body(f'{head},"queues":{rows}}}'.encode())
    other = seal({"n": 9, "exported": True})

    def read(lines: list[bytes]) -> list[object]:
        found = progress_log._entries(lines)
        return [
            (one.reason, one.position)
            if isinstance(one, SealError)
            else {**one, **({"queues": dict(rows_of(one))} if is_rows(one) else {})}
            for one in found
        ]

    def is_rows(entry: dict[str, Any]) -> bool:
        try:
            return "queues" in entry and bool(rows_of(entry))
        except ShapeError:
            return False

    if head in _HEADS and rows == _ROWS[0] and rows_in(rows.encode(), 0) is not None:
        body = body_of(line)
        assert body is not None
        assert progress_log._commit_in(body) is not None
    compiled = [read([line]), read([line, other]), read([other, line, line])]
    monkeypatch.setattr(progress_log, "rows_in", lambda text, start: None)
    assert compiled == [read([line]), read([line, other]), read([other, line, line])]
