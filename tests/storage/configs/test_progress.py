"""offsets.log on disk: one truth for many processes, and Java's file written from it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from storage.configs import progress_log
from storage.configs.checksummed_json import body_of, seal, seal_body
from storage.configs.config_file import ConfigFile
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.progress import ProgressFile
from storage.configs.progress_log import Move, ProgressLog, table_line
from storage.configs.progress_rows import KnownRows
from storage.configs.progress_table import QueueProgress
from storage.errors import CorruptFileError, StoreNotWritableError, StoreVersionError
from storage.files.fs import FileSystem
from storage.format.fastjson import dumps
from storage.tools.config_recovery.progress_files import FileState, read_progress_files
from tests.support.faulty_fs import FaultyFileSystem

KEY = ("T@g", 0)
OTHER = ("T@g", 1)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "lock").write_bytes(b"lock")
    return tmp_path


def as_written(path: Path) -> tuple[int, int, int, int]:
    """What a write changes; reading moves the time of the last access."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def put_java(root: Path, offsets: dict[str, dict[int, int]]) -> None:
    path = root / "config" / "consumerOffset.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(dumps({"offsetTable": offsets}))


def move_under_way(file: ProgressFile) -> Move | None:
    data = file.path.read_bytes()
    return ProgressLog(file.path, data, file.path.stat().st_ino, KnownRows).move


def java_ran(root: Path) -> None:
    lock = root / "lock"
    os.utime(lock, ns=(0, lock.stat().st_mtime_ns + 5_000_000))


def test_reading_a_store_without_progress_creates_nothing(root):
    assert ProgressFile(root).read().offsets() == {}
    assert ProgressFile(root).export() is False
    assert [path.name for path in root.iterdir()] == ["lock"]


def test_commits_of_two_openers_are_merged(root):
    first, second = ProgressFile(root), ProgressFile(root)
    assert first.commit({KEY: QueueProgress(0, 5)}) == {KEY: (0, 5)}
    assert second.commit({KEY: QueueProgress(0, 3), OTHER: QueueProgress(0, 9)}) == {
        KEY: (0, 5),
        OTHER: (0, 9),
    }
    assert first.read().offsets() == {"T@g": {0: 5, 1: 9}}


def test_a_commit_that_changes_nothing_writes_nothing(root):
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 5)})
    os.utime(file.path, ns=(0, file.path.stat().st_mtime_ns))  # a change shows by itself
    before = as_written(file.path)
    file.commit({KEY: QueueProgress(0, 4)})
    assert as_written(file.path) == before
    file.commit({KEY: QueueProgress(0, 6)})
    assert as_written(file.path) != before


def test_reading_twice_gives_one_object_until_the_next_commit(root):
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 5)})
    table = file.read()
    assert file.read() is table
    ProgressFile(root).commit({KEY: QueueProgress(0, 6)})
    assert file.read().get(*KEY) == (0, 6)


def test_a_reset_beats_the_consumer_that_does_not_know_of_it(root):
    consumer, operator = ProgressFile(root), ProgressFile(root)
    consumer.commit({KEY: QueueProgress(0, 500)})
    moves = operator.move({KEY: 20})
    assert moves == {KEY: (QueueProgress(0, 500), QueueProgress(1, 20))}
    assert consumer.commit({KEY: QueueProgress(0, 501)}) == {KEY: (1, 20)}
    assert consumer.commit({KEY: QueueProgress(1, 21)}) == {KEY: (1, 21)}


def test_a_move_that_is_given_up_changes_nothing(root):
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 500)})

    def refuse(moves, previous):
        assert previous is None
        assert moves == {KEY: (QueueProgress(0, 500), QueueProgress(1, 1))}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        file.move({KEY: 1}, before_write=refuse)
    assert file.commit({KEY: QueueProgress(0, 501)}) == {KEY: (0, 501)}


def test_the_file_names_the_last_move_that_was_done(root):
    file = ProgressFile(root)
    seen = []

    def note(_, previous):
        seen.append(previous)
        return 5 + len(seen)

    file.move({KEY: 1}, before_write=note)
    file.commit({KEY: QueueProgress(1, 2)})
    file.move({KEY: 3}, before_write=note)
    file.move({KEY: 4})
    assert seen == [None, 6]
    assert ProgressFile(root).read().change_id == 7


@pytest.mark.parametrize("java_was_written", [False, True])
def test_a_move_is_done_in_both_files_at_once(root, monkeypatch, java_was_written):
    """After a kill between the two files the move counts if Java's file has it."""
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 5)})
    file.export()
    save = ConfigFile.save

    def die(config, document):
        if java_was_written:
            save(config, document)
        raise KeyboardInterrupt

    monkeypatch.setattr(ConfigFile, "save", die)
    with pytest.raises(KeyboardInterrupt):
        file.move({KEY: 1}, lambda _moves, _previous: 9)
    monkeypatch.undo()
    expected, change = (QueueProgress(1, 1), 9) if java_was_written else (QueueProgress(0, 5), None)
    after = ProgressFile(root)
    for _ in range(2):
        assert (after.read().get(*KEY), after.read().change_id) == (expected, change)
        assert load_consumer_offsets(root)[KEY[0]] == {KEY[1]: expected.offset}
        after.export()  # settles it
    assert move_under_way(after) is None
    assert after.commit({OTHER: QueueProgress(0, 2)}) == {OTHER: (0, 2)}
    assert after.read().get(*KEY) == expected


def test_a_move_that_javas_file_can_not_take_is_not_done(root, monkeypatch):
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 5)})

    def full(config, document):
        raise StoreNotWritableError(config.path, "No space left on device")

    monkeypatch.setattr(ConfigFile, "save", full)
    with pytest.raises(StoreNotWritableError):
        file.move({KEY: 1})
    assert ProgressFile(root).read().get(*KEY) == QueueProgress(0, 5)
    assert move_under_way(file) is None


@pytest.mark.parametrize("lasting", [False, True])
def test_a_move_whose_call_fails_has_moved_nothing_and_one_that_ends_has_moved_all(
    tmp_path, lasting
):
    """A caller that gets an error does the move again: --shift-by would count twice."""
    outcomes = []
    for fail_at in range(1, 40):
        root = tmp_path / str(fail_at)
        (root / "config").mkdir(parents=True)
        (root / "lock").write_bytes(b"lock")
        before = ProgressFile(root)
        before.commit({KEY: QueueProgress(0, 50)})
        before.export()
        fs = FaultyFileSystem(fail_at, errno.ENOSPC, lasting=lasting)
        try:
            ProgressFile(root, fs).move({KEY: 40})
        except StoreNotWritableError:
            expected = QueueProgress(0, 50)
        else:
            expected = QueueProgress(1, 40)
        after = ProgressFile(root)
        for _ in range(2):
            assert after.read().get(*KEY) == expected, fs.failed
            assert load_consumer_offsets(root)[KEY[0]] == {KEY[1]: expected.offset}, fs.failed
            after.export()
        assert move_under_way(after) is None
        outcomes.append((expected.generation, fs.failed))
        if not fs.failed:
            break
    assert outcomes[-1] == (1, ""), "each call was reached"
    done_after_an_error = {failed.split()[0] for moved, failed in outcomes if moved and failed}
    assert done_after_an_error >= {"sync_dir", "write", "sync"}


@pytest.mark.conformance("A17")
def test_javas_file_is_written_from_the_truth(root):
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 5), OTHER: QueueProgress(0, 0)})
    assert file.export() is True
    java = root / "config" / "consumerOffset.json"
    assert java.read_text() == (
        '{\n\t"offsetTable":{\n\t\t"T@g":{0:5,1:0\n\t\t}\n\t}\n}'  # as fastjson writes it
    )
    before = as_written(java)
    assert file.export() is False
    assert ProgressFile(root).export() is False
    assert as_written(java) == before


def test_old_offsets_written_back_by_a_broker_that_failed_to_start_are_put_right(root):
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 9)})
    file.export()
    put_java(root, {"T@g": {0: 5}})  # its exit hook: the lock file was not touched
    assert file.read().get(*KEY) == (0, 9)
    assert file.export() is True
    assert load_consumer_offsets(root) == {"T@g": {0: 9}}


def test_offsets_of_a_broker_that_ran_are_taken_over(root):
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 9), OTHER: QueueProgress(0, 2)})
    file.export()
    put_java(root, {"T@g": {0: 5, 1: 2}, "T@h": {0: 1}})
    java_ran(root)
    assert file.read().offsets() == {"T@g": {0: 5, 1: 2}, "T@h": {0: 1}}
    assert file.commit({KEY: QueueProgress(0, 10), OTHER: QueueProgress(0, 3)}) == {
        KEY: (1, 5),
        OTHER: (0, 3),
    }
    file.export()
    assert load_consumer_offsets(root) == {"T@g": {0: 5, 1: 3}, "T@h": {0: 1}}


def test_a_file_that_a_crash_of_java_emptied_deletes_nothing(root):
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 9)})
    file.export()
    (root / "config" / "consumerOffset.json").write_bytes(b"")
    java_ran(root)
    assert file.read().get(*KEY) == (0, 9)
    assert file.export() is True
    assert load_consumer_offsets(root) == {"T@g": {0: 9}}


def test_progress_of_a_foreign_store_begins_with_javas(root):
    put_java(root, {"T@g": {0: 5}})
    file = ProgressFile(root)
    assert file.read().get(*KEY) == (0, 5)
    assert file.commit({KEY: QueueProgress(0, 4)}) == {KEY: (0, 5)}
    assert file.commit({KEY: QueueProgress(0, 6)}) == {KEY: (0, 6)}


def test_damage_and_newer_versions_are_refused_with_a_sentence(root):
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 5)})
    good = file.path.read_bytes()
    file.path.write_bytes(good.replace(b"[0,5]", b"[0,7]"))
    with pytest.raises(
        CorruptFileError, match="remove offsets.log and offsets.json to go on from Java's"
    ):
        ProgressFile(root).read()
    file.path.write_bytes(seal({"version": 99}))
    with pytest.raises(StoreVersionError, match="version 99"):
        ProgressFile(root).commit({KEY: QueueProgress(0, 6)})
    file.path.write_bytes(good)
    assert ProgressFile(root).read().get(*KEY) == (0, 5)


class FullDisk(FileSystem):
    def write(self, fd: int, data: bytes | bytearray | memoryview, offset: int) -> None:
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_one_clear_error_and_keeps_what_was_there(root):
    ProgressFile(root).commit({KEY: QueueProgress(0, 5)})
    with pytest.raises(StoreNotWritableError, match="No space left"):
        ProgressFile(root, FullDisk()).commit({KEY: QueueProgress(0, 6)})
    assert ProgressFile(root).read().get(*KEY) == (0, 5)
    assert [p.name for p in (root / "rmqctl").iterdir() if p.suffix == ".tmp"] == []


def test_the_file_is_plain_json(root):
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 5)})
    entry = json.loads(file.path.read_bytes())["entry"]
    assert entry["queues"] == {"T@g": {"0": [0, 5]}}


def test_a_lock_that_can_not_be_opened_is_an_error_of_the_store(root):
    (root / "rmqctl" / "offsets.lock").mkdir(parents=True)
    file = ProgressFile(root)
    for change in (
        lambda: file.commit({KEY: QueueProgress(0, 1)}),
        lambda: file.move({KEY: 3}),
    ):
        with pytest.raises(StoreNotWritableError, match="Is a directory"):
            change()


def put_table(root: Path, n: int, progress: QueueProgress) -> ProgressFile:
    """Replace the log by a table whose numbers are given."""
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 1)})
    file.export()
    table = file.read().copy()
    table.put(*KEY, progress)
    file.path.write_bytes(table_line(table, n, None))
    return ProgressFile(root)


def test_after_the_last_generation_no_move_is_written(root):
    file = put_table(root, 7, QueueProgress((1 << 63) - 1, 5))
    before = file.path.read_bytes()
    with pytest.raises(CorruptFileError, match="queue 0 of T@g has generation 9223372036854775807"):
        file.move({KEY: 3})
    assert file.path.read_bytes() == before
    file.commit({OTHER: QueueProgress(0, 2)})
    assert ProgressFile(root).read().get(*OTHER).offset == 2


def test_recovery_begins_generations_anew_after_the_last_one(root):
    file = put_table(root, 7, QueueProgress((1 << 63) - 1, 5))
    file.recover({KEY: 3}, lambda *_: 1)
    assert ProgressFile(root).read().get(*KEY) == QueueProgress(1, 3)


@pytest.mark.parametrize("below", range(12))
def test_the_numbers_of_lines_begin_anew_before_the_last_one(root, below):
    file = put_table(root, (1 << 53) - below, QueueProgress(0, 5))
    for offset in range(10, 15):
        file.commit({KEY: QueueProgress(0, offset)})
        file.export()
        assert ProgressFile(root).read().get(*KEY).offset == offset
    file.move({KEY: 3})
    assert ProgressFile(root).read().get(*KEY) == QueueProgress(1, 3)
    assert load_consumer_offsets(root) == {"T@g": {0: 3}}


def test_the_smallest_offset_of_java_is_taken_over_and_read_again(root):
    put_java(root, {"T@g": {0: -(1 << 63), 1: 4}})
    file = ProgressFile(root)
    file.commit({("T@h", 0): QueueProgress(0, 2)})
    assert ProgressFile(root).read().known_offsets() == {"T@g": {1: 4}, "T@h": {0: 2}}


@pytest.mark.parametrize("row", [b"-1:5,0:7", b'"-1":"5","0":7', b"-2147483648:-1,0:7"])
def test_queues_below_zero_of_java_are_none(root, row):
    java = root / "config" / "consumerOffset.json"
    java.parent.mkdir()
    java.write_bytes(b'{"offsetTable":{"T@g":{%s},"T@only":{-1:3}}}' % row)
    assert read_progress_files(root).java.offsets == {"T@g": {0: 7}, "T@only": {}}
    ProgressFile(root).commit({("T@h", 0): QueueProgress(0, 2)})
    offsets = {"T@g": {0: 7}, "T@h": {0: 2}, "T@only": {}}
    assert ProgressFile(root).read().offsets() == offsets
    java.write_bytes(b'{"offsetTable":{"T@g":{%s},"T@h":{-1:4,0:3},"T@only":{-3:3}}}' % row)
    java_ran(root)
    ProgressFile(root).commit({("T@h", 0): QueueProgress(1, 4)})
    offsets["T@h"] = {0: 4}
    assert ProgressFile(root).read().offsets() == offsets
    ProgressFile(root).export()
    assert load_consumer_offsets(root) == offsets


def test_what_is_valid_of_a_file_with_other_values_is_read_for_recovery(root):
    java = root / "config" / "consumerOffset.json"
    java.parent.mkdir()
    java.write_bytes(
        b'{"offsetTable":{"T@a":5,"T@b":{0:"x",1:4,4294967296:3},"T@c":{0:true}},'
        b'"lmqOffsetTable":{"%LMQ%a@%LMQ%a":{0:1},"%LMQ%b@%LMQ%b":3}}'
    )
    found = {"T@b": {1: 4}, "T@c": {}, "%LMQ%b@%LMQ%b": {0: 3}}
    assert read_progress_files(root).java.offsets == found


def test_queues_that_can_be_none_of_a_damaged_log_are_left_out_of_its_recovery(root):
    ProgressFile(root).commit({KEY: QueueProgress(0, 5)})
    path = root / "rmqctl" / "offsets.log"
    entry = json.loads(path.read_bytes().split(b"\n")[0])["entry"]
    entry["queues"]["T@g"] |= {"-1": [0, 6], "4294967296": [0, 7]}
    path.write_bytes(seal(entry) + b"\n")
    ours = read_progress_files(root).ours
    assert (ours.state, ours.offsets) == (FileState.CUT, {"T@g": {0: 5}})


STRANGE = b"T\xff@g\xe9".decode("utf-8", "surrogateescape")
"""A topic and a group that a Java broker has written in another charset."""


@pytest.mark.parametrize("large", [0, 1 << 60])
def test_names_that_are_no_utf8_are_kept_while_other_groups_commit(root, large, monkeypatch):
    monkeypatch.setattr(progress_log, "_LARGE", large)
    java = root / "config" / "consumerOffset.json"
    java.parent.mkdir()
    java.write_bytes(b'{"offsetTable":{"T\xff@g\xe9":{0:7}}}')
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 5)})
    file.commit({KEY: QueueProgress(0, 6), (STRANGE, 1): QueueProgress(0, 8)})
    file.move({(STRANGE, 0): 3, OTHER: 1})
    offsets = {STRANGE: {0: 3, 1: 8}, "T@g": {0: 6, 1: 1}}
    assert file.read().offsets() == ProgressFile(root).read().offsets() == offsets
    assert b'"T\xff@g\xe9":{0:3,1:8' in java.read_bytes()
    java_ran(root)
    ProgressFile(root).commit({KEY: QueueProgress(0, 9)})
    assert ProgressFile(root).read().offsets() == {**offsets, "T@g": {0: 9, 1: 1}}


def test_names_that_are_no_utf8_are_put_together_again_from_a_damaged_log(root):
    file = ProgressFile(root)
    file.commit({(STRANGE, 0): QueueProgress(0, 5)})
    file.commit({KEY: QueueProgress(0, 6)})
    data = file.path.read_bytes()
    first, *rest = data.split(b"\n")
    file.path.write_bytes(b"\n".join([first[:-2], *rest]))
    ours = read_progress_files(root).ours
    assert ours.offsets == {STRANGE: {0: 5}, "T@g": {0: 6}}


@pytest.mark.slow
@pytest.mark.parametrize(
    "exported",
    [b'"T@g0":{"0":"x"}', b'"T@g0":{"0":5},"T@g0":{"0":5}', b'"T@g0":{"0":5'],
    ids=["a text", "twice", "cut"],
)
def test_a_wrong_note_of_what_java_has_is_damage_in_a_large_log_too(root, exported):
    file = ProgressFile(root)
    file.commit({(f"T@g{number}", 0): QueueProgress(0, 5) for number in range(2_000)})
    file.export()
    file.recover({}, lambda *_: None)  # writes a table
    body = body_of(file.path.read_bytes())
    assert body is not None
    assert len(body) > 64 << 10
    begin = body.index(b'"exported":{') + len(b'"exported":{')
    line = seal_body(body[:begin] + exported + b"}}")
    file.path.write_bytes(line + b"\n")
    for use in (
        lambda: ProgressFile(root).export(),
        lambda: ProgressFile(root).move({KEY: 3}),
    ):
        with pytest.raises(CorruptFileError, match=r"offsets\.log is damaged at byte"):
            use()
    assert read_progress_files(root).ours.state is FileState.CUT
    n = int(body[len(b'{"n":') : body.index(b",")])
    file.path.write_bytes(line + b"\n" + seal({"n": n + 1, "exported": True}) + b"\n")
    with pytest.raises(CorruptFileError, match=r"offsets\.log is damaged at byte"):
        ProgressFile(root).read()
    assert read_progress_files(root).ours.state is FileState.CUT
