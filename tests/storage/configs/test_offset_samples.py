"""Samples of progress: what was written can be read, whatever happened to the writer."""

import errno
import os
from contextlib import suppress

import pytest

from storage.configs import offset_samples
from storage.configs.offset_samples import FILE_BYTES, MOST_FILES, OffsetSamples
from tests.support.faulty_fs import FaultyFileSystem
from tests.support.watched_fs import WatchedFileSystem

T = 1_700_000_000_000


def told(root, since=0):
    history = OffsetSamples(root).read(since)
    return history, history.committed("t@g", 0)


@pytest.mark.feature(50)
def test_what_has_changed_is_told_with_the_time_when_it_was_seen(tmp_path):
    samples = OffsetSamples(tmp_path)
    assert samples.append({"t@g": {0: 5, 1: 7}}, {"t": {0: 9, 1: 9}}, T)
    assert not samples.append({"t@g": {0: 5, 1: 7}}, {"t": {0: 9, 1: 9}}, T + 10)
    assert samples.append({"t@g": {0: 6, 1: 7}}, {"t": {0: 9, 1: 9}}, T + 20)
    assert samples.append({"t@g": {1: 7}, "u@h": {3: 1}}, {"t": {0: 11, 1: 9}}, T + 30)
    history, changes = told(tmp_path)
    assert changes == [(T, 5), (T + 20, 6), (T + 30, None)]
    assert history.committed("t@g", 1) == [(T, 7)]
    assert history.committed("u@h", 3) == [(T + 30, 1)]
    assert history.ends("t", 0) == [(T, 9), (T + 30, 11)]
    assert history.watched == [(T, T + 30)]
    assert history.committed("nobody@x", 0) == history.ends("t", 5) == []


def test_each_writer_begins_a_file_so_gaps_are_seen(tmp_path):
    for begin in (T, T + 1000):
        samples = OffsetSamples(tmp_path)
        samples.append({"t@g": {0: begin}}, {}, begin)
        samples.append({"t@g": {0: begin + 1}}, {}, begin + 10)
    history, changes = told(tmp_path)
    assert history.watched == [(T, T + 10), (T + 1000, T + 1010)]
    assert changes == [(T, T), (T + 10, T + 1), (T + 1000, T + 1000), (T + 1010, T + 1001)]


def test_a_group_that_was_gone_when_a_file_began_is_told_to_be_gone(tmp_path):
    OffsetSamples(tmp_path).append({"t@g": {0: 1}}, {}, T)
    OffsetSamples(tmp_path).append({}, {}, T + 10)
    assert told(tmp_path)[1] == [(T, 1), (T + 10, None)]


def test_only_files_that_tell_of_the_time_are_read(tmp_path):
    for number in range(5):
        OffsetSamples(tmp_path).append({"t@g": {0: number}}, {}, T + number * 100)
    assert [at for at, _ in told(tmp_path, T + 250)[1]] == [T + 200, T + 300, T + 400]


@pytest.mark.parametrize("cut", [1, 30, 80])
def test_a_torn_line_ends_its_file(tmp_path, cut):
    samples = OffsetSamples(tmp_path)
    samples.append({"t@g": {0: 1}}, {}, T)
    samples.append({"t@g": {0: 2}}, {}, T + 10)
    (path,) = samples.files()
    path.write_bytes(path.read_bytes()[:-cut])
    changes = told(tmp_path)[1]
    assert changes in ([(T, 1)], [(T, 1), (T + 10, 2)])
    assert (changes == [(T, 1)]) == (cut > 1)  # the newline alone may be missing
    OffsetSamples(tmp_path).append({"t@g": {0: 3}}, {}, T + 20)
    assert told(tmp_path)[1][-1] == (T + 20, 3)


@pytest.mark.parametrize("fail_at", range(1, 8))
def test_after_a_write_that_failed_nothing_wrong_is_told(tmp_path, fail_at):
    fs = FaultyFileSystem(fail_at, errno.ENOSPC, lasting=False)
    samples = OffsetSamples(tmp_path, fs)
    written = []
    for number in range(6):
        with suppress(OSError):
            samples.append({"t@g": {0: number}}, {}, T + number)
            written.append((T + number, number))
    assert fs.failed
    assert told(tmp_path)[1] == written
    assert written[-1] == (T + 5, 5)


@pytest.mark.parametrize("kind", ["write", "torn write"])
def test_a_full_disk_takes_no_sample_and_leaves_no_files(tmp_path, kind):
    full = True

    def watch(instant):
        if full and instant.kind == kind:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), instant.what)

    for number in range(5):
        OffsetSamples(tmp_path).append({"t@g": {0: number}}, {}, T + number)
    samples = OffsetSamples(tmp_path, WatchedFileSystem(watch))
    files = samples.files()
    for number in range(2 * MOST_FILES):
        with pytest.raises(OSError, match="No space left"):
            samples.append({"t@g": {0: number}}, {}, T + 100 + number)
    assert samples.files() == files
    full = False
    samples.append({"t@g": {0: 9}}, {}, T + 1000)
    found = OffsetSamples(tmp_path).read(0).committed("t@g", 0)
    assert found == [*((T + number, number) for number in range(5)), (T + 1000, 9)]


@pytest.mark.parametrize("content", [b"", bytes(200), b'{"crc":"272d0a1b","entry":{"at":17'])
def test_files_without_a_sample_go_and_count_for_none(tmp_path, content):
    """What a death between the two steps has left, or a full disk with an older rmqctl."""
    samples = OffsetSamples(tmp_path)
    for number in range(5):
        OffsetSamples(tmp_path).append({"t@g": {0: number}}, {}, T + number)
    files = samples.files()
    for number in range(100, 100 + 2 * MOST_FILES):
        (samples.path / f"{number:08d}.jsonl").write_bytes(content)
    samples.append({"t@g": {0: 9}}, {}, T + 1000)
    assert samples.files()[:-1] == files
    found = OffsetSamples(tmp_path).read(0).committed("t@g", 0)
    assert found == [*((T + number, number) for number in range(5)), (T + 1000, 9)]


@pytest.mark.slow
def test_the_files_stay_few_and_small(tmp_path, monkeypatch):
    monkeypatch.setattr(offset_samples, "MOST_BYTES", 4 * FILE_BYTES)
    samples = OffsetSamples(tmp_path)
    wide = {f"topic-{number}@group": dict.fromkeys(range(8), 1) for number in range(300)}
    for number in range(400):
        samples.append({**wide, "t@g": dict.fromkeys(range(300), number)}, {}, T + number)
    sizes = [path.stat().st_size for path in samples.files()]
    assert sum(sizes[:-1]) <= 4 * FILE_BYTES + sizes[-1]
    assert told(tmp_path)[1][-1] == (T + 399, 399)
    for number in range(3 * MOST_FILES):
        OffsetSamples(tmp_path).append({}, {}, T + 1000 + number)
    assert len(samples.files()) <= MOST_FILES


def test_a_store_without_samples_tells_nothing_and_gets_no_folder(tmp_path):
    history, changes = told(tmp_path)
    assert (history.watched, changes) == ([], [])
    assert not list(tmp_path.iterdir())
