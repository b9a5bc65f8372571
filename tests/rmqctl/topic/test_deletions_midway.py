"""What would end the deletion of a topic midway is found before anything is deleted."""

import errno
import os
from contextlib import contextmanager, nullcontext

import pytest

from rmqctl.admin.topics.figures import allocated
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.cli import run
from tests.support.dead_letters import bury

pytestmark = pytest.mark.filterwarnings("ignore::storage.errors.DamagedFileWarning")

TOPIC = ("topic", "delete", "%DLQ%g", "--confirm", "%DLQ%g", "-y")
GROUP = ("group", "delete", "g", "--remove-topics", "--remove-offsets", "--confirm", "g", "-y")


@pytest.fixture
def dead(store):
    """A group with progress, and with dead letters, one of which is handled."""
    bury(store, "g", [Message("t", b"x") for _ in range(3)])
    run("consume", "t", "-g", "g", "-e", "-q")
    assert run("dlq", "ack", "g", "0", "-y").code == 0
    return store


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 8
    path.write_bytes(data)


def kept(store):
    """The bytes of what a deletion changes first."""
    files = ("config/topics.json", "config/subscriptionGroup.json", "rmqctl/offsets.log")
    return [(store / name).read_bytes() for name in files if (store / name).exists()]


@pytest.mark.slow
@pytest.mark.parametrize("command", [TOPIC, GROUP], ids=["topic", "group"])
@pytest.mark.parametrize("name", ["handled.json", "deleted.json"])
def test_a_damaged_file_is_found_before_anything_is_deleted(dead, command, name):
    run("produce", "gone", "-q", stdin=b"x\n")
    assert run("topic", "delete", "gone", "--confirm", "gone", "-y").code == 0
    path = dead / "rmqctl" / name
    whole, before = path.read_bytes(), kept(dead)
    flip(path)
    refused = run(*command)
    assert (refused.code, refused.raw) == (4, b"")
    assert name in refused.err
    assert kept(dead) == before
    assert len(run("consume", "%DLQ%g", "-e", "-q").lines) == 3
    path.write_bytes(whole)
    assert run(*command).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("command", [TOPIC, GROUP], ids=["topic", "group"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a writer"])
def test_a_folder_among_queue_files_is_found_before_anything_is_deleted(dead, command, beside):
    foreign = dead / "consumequeue" / "%DLQ%g" / "0" / "backup"
    foreign.mkdir()
    before = kept(dead)
    if beside:
        with MessageStore.open(dead):
            refused = run(*command)
    else:
        refused = run(*command)
    assert refused.code == 5
    assert "it is a folder among the files of a queue" in refused.err
    assert kept(dead) == before
    foreign.rmdir()
    assert run(*command).code == 0


@pytest.mark.slow
def test_a_topic_that_has_no_dead_letters_is_deleted_beside_a_damaged_file_of_marks(dead):
    path = dead / "rmqctl" / "handled.json"
    whole = path.read_bytes()
    flip(path)
    done = run("topic", "delete", "t", "--remove-offsets", "--confirm", "t", "-y", "-o", "json")
    assert done.code == 0, done.err
    assert all(row["applied"] for row in done.json())
    path.write_bytes(whole)


@pytest.fixture
def no_space_for_moves(monkeypatch):
    """A disk without space for the journal's entry of a move of offsets."""
    write = os.pwrite

    def pwrite(fd, data, offset):
        if b'"moves"' in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)


@pytest.mark.slow
def test_a_disk_that_is_full_when_the_topic_is_gone_is_said_so(dead, no_space_for_moves):
    done = run("topic", "delete", "t", "--remove-offsets", "--confirm", "t", "-y")
    assert (done.code, done.raw) == (8, b"")
    assert "topic t was deleted, but not all that goes with it: " in done.err
    assert "No space left on device" in done.err
    assert run("topic", "describe", "t").code == 3


@pytest.mark.slow
def test_a_disk_that_is_full_after_a_part_of_a_group_is_said_so(dead, no_space_for_moves):
    run("group", "create", "g")
    done = run(*GROUP)
    assert (done.code, done.raw) == (8, b"")
    assert "a part of group g was deleted, but not all: " in done.err
    again = run(*GROUP)
    assert again.code == 5, "nothing is left but what the full disk keeps"
    assert len(run("consume", "%DLQ%g", "-e", "-q").lines) == 3


@pytest.fixture
def broken_files(monkeypatch):
    """A disk that cannot remove files of a queue, until the list is empty."""
    broken, unlink = [True], os.unlink

    def refuse(path, *args, **kwargs):
        if broken and "/consumequeue/" in os.fsdecode(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), os.fsdecode(path))
        unlink(path, *args, **kwargs)

    monkeypatch.setattr(os, "unlink", refuse)
    return broken


@pytest.mark.slow
@pytest.mark.parametrize("command", [TOPIC, GROUP], ids=["topic", "group"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a writer"])
def test_queues_that_stay_when_the_settings_are_gone_are_said_so(
    dead, command, beside, broken_files
):
    with MessageStore.open(dead) if beside else nullcontext():
        done = run(*command)
        broken_files.clear()
    assert (done.code, done.raw) == (8, b""), done.err
    assert "a part of topic %DLQ%g was deleted, but not all: " in done.err
    assert "Input/output error" in done.err
    assert b'"%DLQ%g"' not in (dead / "config" / "topics.json").read_bytes()
    assert run(*command).code in (0, 3)
    assert run("topic", "describe", "%DLQ%g").code == 3


def test_a_queue_that_goes_while_the_disk_usage_is_counted_has_none(tmp_path, monkeypatch):
    for queue in ("0", "1"):
        (tmp_path / queue).mkdir()
        (tmp_path / queue / f"{0:020d}").write_bytes(bytes(10_000))
    both, listed = allocated(tmp_path), os.scandir

    @contextmanager
    def gone_then(path):
        with listed(path) as entries:
            found = list(entries)
        if str(path) == str(tmp_path):
            (tmp_path / "1" / f"{0:020d}").unlink()
            (tmp_path / "1").rmdir()
        yield found

    with monkeypatch.context() as patch:
        patch.setattr("os.scandir", gone_then)
        assert allocated(tmp_path) == both // 2 > 0
