"""Ctrl-C, SIGTERM and a time limit: what is stored is counted. Real processes and signals."""

import json
import os
import pty
import re
import signal
import threading
import time

import pytest

from rmqctl import exit_codes
from storage.coordination.locks import LockFile
from storage.coordination.shared_state import SharedState, Word
from storage.coordination.write_lock import WRITE_LOCK_BYTE
from storage.files.fs import FileSystem
from tests.support.cli import run, start

SIGNALS = [(signal.SIGTERM, exit_codes.TERMINATED), (signal.SIGINT, exit_codes.INTERRUPTED)]
ACCOUNT = re.compile(
    r"^ended early: ([\d,]+) messages? stored in t, ([\d,]+) failed, ([\d,]+) unknown", re.MULTILINE
)


def account(err: str) -> tuple[int, ...]:
    """Stored, failed and unknown messages."""
    (found,) = ACCOUNT.findall(err)
    return tuple(int(number.replace(",", "")) for number in found)


def until(found, what):
    """Poll a state of another process."""
    end = time.monotonic() + 30
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.001)


def stored() -> int:
    return len(run("consume", "t", "-e").lines)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_lines_of_a_pipe(store, number, code):
    with start("produce", "t", "-o", "jsonl", "-q") as process:
        for line in range(3):
            process.stdin.write(b"line %d\n" % line)
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["send_status"] == "SEND_OK"
        process.send_signal(number)
        assert account(process.stderr.read().decode()) == (3, 0, 0)
        process.wait(30)
    assert process.returncode == code
    assert stored() == 3


@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.slow
def test_lines_of_a_file(store, tmp_path, number, code):
    (tmp_path / "lines").write_bytes(b"".join(b"line %d\n" % n for n in range(10_000)))
    with start("produce", "t", tmp_path / "lines", "--rate", "50/s", "-o", "jsonl") as process:
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == code
    count, failed, unknown = account(err.decode())
    assert (failed, count >= 3) == (0, True)
    assert count <= stored() <= count + unknown


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("more", [(), ("--sort", "queue_offset")], ids=["", "sorted"])
def test_the_array_of_what_is_stored_ends(store, tmp_path, number, code, more):
    (tmp_path / "lines").write_bytes(b"".join(b"line %d\n" % n for n in range(10_000)))
    given = ("produce", "t", tmp_path / "lines", "--rate", "50/s", "-o", "json", *more)
    with start(*given) as process:
        until(lambda: (store / "consumequeue" / "t").exists(), "a topic")
        until(lambda: stored() > 2, "stored messages")
        seen = stored()
        until(lambda: stored() > seen, "acknowledged messages: the next call has begun")
        read = b"" if more else os.read(process.stdout.fileno(), 1)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == code
    count, _, _ = account(err.decode())
    rows = json.loads(read + out)
    assert len(rows) == count > 0
    assert all(row["send_status"] == "SEND_OK" for row in rows)


@pytest.mark.slow
def test_generated_messages_and_a_time_limit(store):
    result = run("produce", "t", "--template", "%i", "-c", 10_000, "--rate", "50/s", "--timeout=1s")
    assert result.code == exit_codes.TIMED_OUT
    count, failed, unknown = account(result.err)
    assert (failed, 0 < count < 100) == (0, True)
    assert count <= stored() <= count + unknown
    assert result.err.splitlines()[-1] == "rmqctl: timed out after 1s"


@pytest.mark.slow
def test_messages_typed_on_a_terminal(store):
    terminal, inside = pty.openpty()
    with start("produce", "t", "-o", "jsonl", stdin=inside) as process:
        os.close(inside)
        os.write(terminal, b"hi\n")
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    os.close(terminal)
    assert process.returncode == exit_codes.INTERRUPTED
    assert account(err.decode()) == (1, 0, 0)


@pytest.mark.slow
def test_what_was_left_out_has_failed(store):
    with start("produce", "t", "-o", "jsonl", "--input", "jsonl", "--skip-invalid") as process:
        process.stdin.write(b'{"body": "good"}\n{"nosuch": 3}\n{"body": "also"}\n')
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert account(err.decode()) == (2, 1, 0)


@pytest.mark.slow
def test_a_send_that_waits_is_unknown(store):
    """Another process has the write lock: the second send waits for it."""
    with start("produce", "t", "-o", "jsonl") as process:
        process.stdin.write(b"one\n")
        process.stdin.flush()
        process.stdout.readline()
        rival = LockFile(store / "lock")
        until(lambda: rival.try_lock(WRITE_LOCK_BYTE), "locked")
        shared = SharedState(FileSystem(), store, writable=False)
        asked = shared.words[Word.LOCK_WANTED]
        process.stdin.write(b"two\nthree\n")
        process.stdin.flush()
        until(lambda: shared.words[Word.LOCK_WANTED] != asked, "asked for the lock")
        shared.close()
        process.send_signal(signal.SIGTERM)
        said = process.stderr.readline().decode()
        rival.close()
        process.communicate(timeout=30)
    assert process.returncode == exit_codes.TERMINATED
    assert account(said) == (1, 0, 2)
    assert said.endswith("2 unknown (sent, not acknowledged: stored or not)\n")
    assert 1 <= stored() <= 3


@pytest.mark.slow
def test_an_import_counts_too(store, tmp_path):
    lines = b"".join(b'{"topic": "t", "body": "%d"}\n' % n for n in range(20_000))
    pipe = tmp_path / "lines.jsonl"
    os.mkfifo(pipe)
    ended = threading.Event()

    def write():
        with pipe.open("wb") as file:  # open until the import has ended
            file.write(lines)
            file.flush()
            ended.wait()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        result = run("message", "import", pipe, "-t", "t", "--timeout", "500ms")
    finally:
        ended.set()
        writer.join()
    assert result.code == exit_codes.TIMED_OUT
    count, failed, unknown = account(result.err)
    assert failed == 0
    assert count <= stored() <= count + unknown
