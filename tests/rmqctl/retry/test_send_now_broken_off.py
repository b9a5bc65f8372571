"""``retry now`` and ``retry dead``: what cannot be done to its end says what was sent."""

import errno
import os
from contextlib import contextmanager

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.configs.checksummed_json import seal
from storage.configs.delay_offsets import delay_offset_file
from storage.configs.early_deliveries import EarlyDeliveries
from storage.errors import CorruptFileError, StoreVersionError
from tests.rmqctl.retry.test_send_now import bodies, browse, waiting
from tests.support.cli import run

__all__ = ["waiting"]

BOTH = pytest.mark.parametrize(("command", "target"), [("now", "%RETRY%g"), ("dead", "%DLQ%g")])
ALL = ("-y", "-o", "json", "--all")


@pytest.fixture
def one_by_one(monkeypatch):
    monkeypatch.setattr("broker.retry.deliver_early._BATCH", 1)


@contextmanager
def at_note(number, action):
    """Call an action before that note of what was sent is written."""
    write, seen = os.pwrite, [0]

    def pwrite(fd, data, offset):
        if b'"queues"' in bytes(data):
            seen[0] += 1
            if seen[0] == number:
                action()
        return write(fd, data, offset)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        yield


def no_space():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def offsets_of(done):
    return [(row["queue_offset"], row["applied"]) for row in done.json()]


def damaged(store):
    path = EarlyDeliveries(store).path
    path.write_bytes(path.read_bytes()[:-2])
    return path


def newer(store):
    path = EarlyDeliveries(store).path
    path.write_bytes(seal({"version": 2}))
    return path


def offsets_damaged(store):
    file = delay_offset_file(store)
    file.path.write_text('{"offsetTable":[1]}')
    file.bak_path.write_text('{"offsetTable":[1]}')
    return file.path


@BOTH
@pytest.mark.parametrize(("spoil", "code"), [(damaged, 4), (newer, 1)])
def test_notes_that_cannot_be_read_are_refused_before_anything_is_sent(
    waiting, store, command, target, spoil, code
):
    run("retry", "now", "g", waiting[0].msg_id, "-y")
    before = EarlyDeliveries(store).path.read_bytes()
    entries = len(run("audit", "list", "-o", "json").json())
    path = spoil(store)
    for consent in ("-y", "-n"):
        done = run("retry", command, "g", waiting[1].msg_id, consent, "-o", "json")
        assert (done.code, str(path) in done.err) == (code, True)
        assert [row["msg_id"] for row in done.json()] == [waiting[1].msg_id]
    path.write_bytes(before)
    assert bodies(target) == (["0"] if command == "now" else [])
    assert browse() == ["k0", "k1", "k2"]
    assert len(run("audit", "list", "-o", "json").json()) == entries


@pytest.mark.parametrize("spoil", [damaged, newer, offsets_damaged])
def test_notes_that_become_unreadable_after_the_plan_are_refused_before_anything_is_sent(
    waiting, store, spoil
):
    run("retry", "now", "g", waiting[0].msg_id, "-y")
    before = EarlyDeliveries(store).path.read_bytes()
    with EmbeddedBroker.open(store) as broker:
        waits = broker.view.get_message("SCHEDULE_TOPIC_XXXX", 16, 1, 2).messages
        path = spoil(store)
        with pytest.raises((CorruptFileError, StoreVersionError), match=path.name):
            broker.cutting_short.deliver(waits)
        with pytest.raises((CorruptFileError, StoreVersionError), match=path.name):
            broker.cutting_short.bury("g", waits)
        path.write_bytes(before if spoil is not offsets_damaged else b'{"offsetTable":{}}')
    assert (bodies("%RETRY%g"), bodies("%DLQ%g")) == (["0"], [])


@pytest.mark.usefixtures("one_by_one")
@BOTH
def test_a_note_that_fails_later_counts_all_that_was_sent(waiting, command, target):
    with at_note(2, no_space):
        done = run("retry", command, "g", *ALL)
    assert done.code == 8, done.err
    assert "delays-ended.json cannot be written: No space left on device" in done.err
    assert "2 messages had been sent, and 1 of them will come once more when due" in done.err
    assert offsets_of(done) == [(0, True), (1, True)]
    assert bodies(target) == ["0", "1"]
    assert offsets_of(run("retry", command, "g", *ALL)) == [(1, True), (2, True)]
    assert bodies(target) == ["0", "1", "2"]


@pytest.mark.usefixtures("one_by_one")
@BOTH
def test_a_put_that_is_refused_later_counts_all_that_was_sent(
    waiting, store, monkeypatch, command, target
):
    space = os.statvfs(store)
    full = os.statvfs_result((*space[:3], 0, 0, *space[5:]))
    with monkeypatch.context() as short:
        short.setattr("storage.append.append.LOG_WINDOW", 0)  # each put looks for space
        with at_note(2, lambda: short.setattr(os, "statvfs", lambda _: full)):
            done = run("retry", command, "g", *ALL)
    assert done.code == 8, done.err
    assert "only 0 MiB are free" in done.err
    assert "2 messages had been sent; remove the cause and repeat the command" in done.err
    assert offsets_of(done) == [(0, True), (1, True)]
    assert bodies(target) == ["0", "1"]
    assert offsets_of(run("retry", command, "g", *ALL)) == [(2, True)]
    assert bodies(target) == ["0", "1", "2"]


@BOTH
@pytest.mark.parametrize("flushes", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_a_sync_that_fails_after_the_put_counts_what_was_sent(
    waiting, store, monkeypatch, command, target, flushes
):
    assert run("broker", "config", "set", "flushDiskType", flushes, "-y").code == 0
    (log,) = (store / "commitlog").iterdir()
    sync = os.fdatasync

    def fdatasync(fd):
        if os.path.sameopenfile(fd, log_fd):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(fd)

    with log.open("rb") as opened, monkeypatch.context() as broken:
        log_fd = opened.fileno()
        broken.setattr(os, "fdatasync", fdatasync)
        done = run("retry", command, "g", *ALL)
    assert done.code == 8, done.err
    assert "3 messages had been sent, and will come once more when due" in done.err
    assert offsets_of(done) == [(0, True), (1, True), (2, True)]
    assert bodies(target) == ["0", "1", "2"]
    assert run("retry", command, "g", *ALL).code == 0
    assert bodies(target) == ["0", "1", "2"]
