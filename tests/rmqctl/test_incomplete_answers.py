"""Messages left out for damage give exit code 8: no incomplete answer ends with 0."""

import shutil
import time

import pytest

from tests.support.cli import run
from tests.support.copies import copy_store

QUEUE = f"consumequeue/t/0/{0:020d}"
LOG = f"commitlog/{0:020d}"
READERS = [
    "consume t -e",
    "consume t -e -o jsonl",
    "message search -t t --min-size 1",
    "message search -t t --min-size 1 --count-only",
    "message export -t t",
    "message query -k k --scan",
    "message stats",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made") / "s"
    assert run("store", "init", root, "--small").code == 0
    lines = b"".join(b"k,%d\n" % number for number in range(9))
    assert run("produce", "t", "-Q", 0, "-K", ",", "-S", root, stdin=lines).code == 0
    return root


@pytest.fixture
def store(made, tmp_path):
    """A copy as a Java broker would leave it: without the files of rmqctl's own."""
    root = tmp_path / "s"
    copy_store(made, root)
    shutil.rmtree(root / "rmqctl")
    return root


@pytest.fixture
def ours(made, tmp_path):
    """The store itself, whose page is that of this very folder."""
    copy_store(made, tmp_path / "kept")
    yield made
    for path in (tmp_path / "kept").rglob("*"):
        at = made / path.relative_to(tmp_path / "kept")
        if path.is_file() and at.read_bytes() != path.read_bytes():
            with at.open("r+b") as file:
                file.write(path.read_bytes())
                file.truncate()
    (made / "abort").unlink(missing_ok=True)


def write(path, at, data):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize("line", READERS)
def test_a_log_that_lost_its_end(store, line):
    size = (store / LOG).read_bytes().rstrip(b"\0").rindex(b"\xda\xa3")
    with (store / LOG).open("r+b") as file:
        file.truncate(size)
    result = run(*line.split(), "-S", store)
    assert result.code == 8, result
    assert "1 message after the log's last whole record" in result.err


@pytest.mark.parametrize("line", READERS[1:])
def test_a_log_file_that_was_cut_while_writers_know_its_end(ours, line):
    was = (ours / LOG).read_bytes()
    with (ours / LOG).open("r+b") as file:
        file.truncate(300)
    try:
        result = run(*line.split(), "-S", ours)
    finally:
        write(ours / LOG, 0, was)
    assert result.code in (4, 8), result
    assert result.err


@pytest.mark.slow
@pytest.mark.parametrize("line", READERS)
def test_a_record_in_the_middle_that_is_damaged(store, line):
    at = (store / LOG).read_bytes().index(b"\xda\xa3", 500)
    write(store / LOG, at + 84, b"\xff")
    result = run(*line.split(), "-S", store)
    assert result.code == 8, result
    assert "warning" in result.err or "could not be" in result.err


@pytest.mark.slow
def test_a_hole_in_a_queue_that_was_closed(store):
    write(store / QUEUE, 40, bytes(20))
    result = run("consume", "t", "-e", "-S", store)
    assert (result.code, len(result.lines)) == (8, 8)
    assert "1 message could not be read" in result.err
    checked = run("store", "fsck", "-S", store)
    assert checked.code == 4
    assert "UNIT_MISSING" in checked.out
    assert "repair makes the units again" in checked.out
    assert run("store", "repair", "--execute", "--yes", "-S", store).code == 0
    assert run("store", "fsck", "-S", store).code == 0
    assert len(run("consume", "t", "-e", "-S", store).lines) == 9


@pytest.mark.slow
def test_a_hole_in_a_queue_that_was_not_closed(store):
    (store / "abort").touch()
    write(store / QUEUE, 40, bytes(20))
    result = run("consume", "t", "-e", "-S", store)
    assert (result.code, len(result.lines)) == (0, 9)
    checked = run("store", "fsck", "-S", store)
    assert checked.code == 0
    assert "rmqctl reads these messages from the log" in checked.out
    assert "recovery, when the store is opened for writing, makes the units again" in checked.out
    assert run("produce", "t", "-Q", 0, "-S", store, stdin=b"x\n").code == 0
    assert run("store", "fsck", "-S", store).out.count("UNIT_MISSING") == 0


@pytest.mark.slow
def test_a_queue_that_ends_before_its_page_says(ours):
    write(ours / QUEUE, 0, bytes(4096))
    result = run("consume", "t", "-e", "-S", ours)
    assert (result.code, len(result.lines)) == (0, 9), "they are taken from the log"
    refused = run("consume", "t", "-e", "-g", "g", "-S", ours)
    assert refused.code == 4
    assert "end all writers, the next one makes it right" in refused.err
    again = run("consume", "t", "-e", "-g", "g", "--from-where", "first", "-S", ours)
    assert (again.code, len(again.lines)) == (0, 9), again.err


@pytest.mark.slow
@pytest.mark.parametrize("length", [0, 1, 39, 4096])
def test_an_index_file_that_was_cut(store, made, tmp_path, length):
    mine = tmp_path / "mine"
    copy_store(made, mine)
    for root in (store, mine):
        (index,) = (root / "index").iterdir()
        with index.open("r+b") as file:
            file.truncate(length)
        checked = run("store", "fsck", "-S", root)
        assert "INDEX_FILE" in checked.out, checked
        assert len(run("message", "query", "-k", "k", "-S", root).lines) == 10
    assert run("produce", "t", "-Q", 0, "-K", ",", "-S", mine, stdin=b"k,x\n").code == 0
    assert len(run("message", "query", "-k", "k", "--index", "-S", mine).lines) == 11
    assert run("store", "repair", "--execute", "--yes", "-S", store).code == 0
    assert run("store", "fsck", "-S", store).code == 0


@pytest.mark.slow
def test_an_index_file_of_eight_gigabytes_is_not_read_through(store):
    (index,) = (store / "index").iterdir()
    with index.open("r+b") as file:
        file.truncate(8 << 30)
    for line in ("store fsck", "consume t -e", "message query -k k"):
        begun = time.monotonic()
        result = run(*line.split(), "-S", store)
        assert "internal error" not in result.err
        assert time.monotonic() - begun < 10, line
