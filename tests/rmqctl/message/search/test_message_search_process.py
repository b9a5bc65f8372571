"""A search as a process: ended, killed, beside a writer, into a pipe that closes."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rmqctl import exit_codes
from storage.readonly import StoreView
from tests.support.cli import ROOT, call, limited, run, start
from tests.support.consumers import eventually
from tests.support.copies import copy_store

MESSAGES = 120_000
SLOW = ("message", "search", "--json-path", "id >= 0", "-o", "yaml")
"""Prints some thousand messages a second."""


@pytest.fixture(scope="module")
def long_log(once):
    """A log of some 80 MiB in which each message has to be read: seconds of work."""
    return once("long log", make_long_log)


def make_long_log(folder: Path) -> Path:
    root = folder / "s"
    assert run("store", "init", root).code == 0
    line = '{"id": %d, "text": "' + "x" * 450 + '"}\n'
    lines = "".join(line % number for number in range(MESSAGES)).encode()
    assert run("produce", "t", "-S", root, "-Q", 0, stdin=lines).code == 0
    return root


def children(pid: int) -> list[int]:
    """Processes that a process has started and not waited for."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def searching(root: Path, *args: object) -> tuple[Any, list[int]]:
    """A search with two processes that is in the middle of its work, for long."""
    process = start(*SLOW, "--jobs", 2, "-S", root, *args, start_new_session=True)
    eventually(lambda: len(children(process.pid)) == 2, "no children")
    return process, children(process.pid)


@pytest.mark.slow
@pytest.mark.parametrize("to", ["the terminal's group", "the process"])
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, exit_codes.INTERRUPTED), (signal.SIGTERM, exit_codes.TERMINATED)],
)
def test_a_signal_ends_all_processes_and_tells_how_to_go_on(long_log, number, code, to):
    process, workers = searching(long_log)
    with process:
        if to == "the process" or number == signal.SIGTERM:
            process.send_signal(number)
        else:
            os.killpg(process.pid, number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert re.fullmatch(r"to continue: --resume [0-9a-f]+-[0-9a-f]{8}\n", err.decode())
    assert b"Traceback" not in out
    assert not any(map(is_alive, workers))


@pytest.mark.slow
def test_a_program_that_ignores_ends_of_children_may_search(long_log):
    program = """
import signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from rmqctl.admin.messages.search.query import Query
from rmqctl.admin.messages.search.run import Search
from storage.readonly import StoreView
with StoreView.open(sys.argv[1]) as view:
    query = Query(None, lambda message: True, None, None)
    print(sum(len(part.hits) for part in Search(view, query, jobs=2).parts()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(long_log)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{MESSAGES}\n"), done.stderr


@pytest.mark.slow
def test_what_was_printed_before_ctrl_c_is_not_printed_again(long_log):
    process, _ = searching(long_log, "-t", "t", "--columns", "queue_offset")
    with process:
        read = os.read(process.stdout.fileno(), 1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    printed = [int(word) for word in re.findall(r"queue_offset: (\d+)", (read + out).decode())]
    assert printed == list(range(len(printed)))
    token = err.decode().split()[-1]
    count = ("message", "search", "--json-path", "id >= 0", "-t", "t", "--count-only")
    result = run(*count, "--resume", token, "-S", long_log, "-o", "json")
    assert MESSAGES - len(printed) <= result.json()["hits"] <= MESSAGES - len(printed) + 500
    assert len(printed) >= 500


@pytest.fixture(scope="module")
def damaged_log(long_log, tmp_path_factory):
    """The same with a damaged record near its beginning."""
    root = copy_store(long_log, tmp_path_factory.mktemp("damaged") / "s")
    with StoreView.open(root) as view:
        unit = view.unit("t", 0, 5)
    assert unit is not None
    with (root / "commitlog" / f"{0:020}").open("r+b") as file:
        file.seek(unit[0] + 4)
        file.write(bytes(4))
    return root


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGALRM])
def test_a_search_that_is_stopped_tells_of_damage_and_ends_its_array(damaged_log, number):
    """SIGALRM is how --timeout ends it."""
    few = ("--where", "queue_offset < 300", "--columns", "queue_offset")
    process, _ = searching(damaged_log, *few, "-o", "json", "--timeout", "1h")
    with process:
        read = os.read(process.stdout.fileno(), 1)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    found = [row["queue_offset"] for row in json.loads(read + out)]
    assert found == [number for number in range(300) if number != 5]
    said = err.decode().splitlines()
    assert any("(topic t, queue 0, offset 5) at log offset" in line for line in said), said
    assert any("1 damaged record may be hits, too" in line for line in said)
    assert any(line.startswith("to continue: --resume") for line in said)


@pytest.mark.slow
def test_a_sorted_search_that_is_stopped_prints_what_it_found_and_goes_on(long_log):
    few = ("--where", "queue_offset >= 119700", "--columns", "queue_offset", "-o", "json")
    process, _ = searching(long_log, *few, "--sort", "-queue_offset")
    with process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    found = [row["queue_offset"] for row in json.loads(out)]
    assert found == sorted(found, reverse=True)
    search = ("message", "search", "--json-path", "id >= 0", *few, "-S", long_log)
    rest = run(*search, "--resume", err.decode().split()[-1]).json()
    assert sorted(found + [row["queue_offset"] for row in rest]) == [*range(119_700, MESSAGES)]


@pytest.mark.slow
def test_a_count_that_is_stopped_gives_what_it_counted_and_goes_on(damaged_log):
    process, _ = searching(damaged_log, "-o", "json", "--count-only")
    with process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == exit_codes.INTERRUPTED
    first = json.loads(out)
    assert f"to continue: --resume {first['resume']}\n" in err.decode()
    count = (*SLOW[:4], "-o", "json", "--count-only", "-S", damaged_log)
    rest = run(*count, "--resume", first["resume"])
    assert first["hits"] + rest.json()["hits"] == MESSAGES - 1
    assert first["damaged"] + rest.json()["damaged"] == 1
    assert ("1 damaged record may be hits, too" in err.decode()) == bool(first["damaged"])


@pytest.mark.slow
def test_processes_end_with_a_parent_that_is_killed(long_log):
    process, workers = searching(long_log)
    with process:
        process.kill()
    eventually(lambda: not any(map(is_alive, workers)), "they live on")


@pytest.mark.slow
def test_a_time_limit_ends_it(long_log):
    result = limited(
        lambda limit: call(*SLOW, "-S", long_log, "--jobs", 2, "--timeout", limit, timeout=120),
        lambda result: "to continue: --resume" in result.err,
    )
    assert result.code == exit_codes.TIMED_OUT
    assert "to continue: --resume" in result.err
    assert re.search(r"timed out after \d+s", result.err)


@pytest.mark.slow
def test_a_child_that_is_killed_is_an_error_in_one_sentence(long_log):
    process, workers = searching(long_log, "--where", "queue_offset = -1")
    with process:
        os.kill(workers[0], signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert process.returncode == exit_codes.FAILURE
    assert err.decode() == "rmqctl: a search process ended unexpectedly\n"
    assert not any(map(is_alive, workers))


@pytest.mark.slow
def test_head_is_silent(long_log):
    command = start("message", "search", "text", "--in", "body", "-S", long_log, "-o", "jsonl")
    with subprocess.Popen(
        ["head", "-n", "2"], stdin=command.stdout, stdout=subprocess.PIPE
    ) as head:
        command.stdout.close()
        lines = head.communicate(timeout=60)[0].splitlines()
    with command:
        err = command.stderr.read()
        command.wait(timeout=60)
    assert [json.loads(line)["queue_offset"] for line in lines] == [0, 1]
    assert command.returncode == exit_codes.BROKEN_PIPE
    assert err == b""


@pytest.mark.slow
def test_beside_a_writer_what_was_there_at_the_start_is_found(tmp_path):
    """Nothing is torn and nothing is missed while the log grows."""
    root = tmp_path / "s"
    assert run("store", "init", root, "--small").code == 0
    assert run("produce", "t", "-Q", 0, "-S", root, stdin=b"word 0\n").code == 0
    with start("produce", "t", "-Q", 0, "-q", "-S", root) as writer:
        feeder = threading.Thread(target=feed, args=(writer,))
        feeder.start()
        sizes = []
        while feeder.is_alive():
            result = run("message", "search", "word", "-S", root, "-o", "jsonl")
            assert result.code == 0, result.err
            assert "damaged" not in result.err
            found = [json.loads(line)["queue_offset"] for line in result.lines]
            assert found == list(range(len(found)))
            sizes.append(len(found))
        feeder.join()
        writer.wait(timeout=60)
    assert sizes == sorted(sizes)
    counted = run("message", "search", "word", "--count-only", "-S", root, "-o", "json").json()
    assert counted["hits"] == 3001


def feed(writer: Any) -> None:
    for number in range(300):
        writer.stdin.write(b"".join(b"word %d\n" % i for i in range(number * 10, number * 10 + 10)))
        writer.stdin.flush()
    writer.stdin.close()


@pytest.mark.slow
def test_memory_stays_small_whatever_is_found(long_log):
    """Every message is a hit; some 80 MiB of rows go through."""
    program = (
        "import re, sys\n"
        "from rmqctl import app\n"
        "code = app.main(sys.argv[1:])\n"
        "status = open('/proc/self/status').read()\n"  # unlike ru_maxrss not the parent's
        "print(re.search(r'VmHWM:\\s+(\\d+)', status)[1], file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "message", "search", "text", "-S", str(long_log)]
        + ["-o", "jsonl", "--jobs", "2"],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"\n") == MESSAGES
    mapped_kib = 100 << 10  # the log itself counts as far as it was touched
    assert int(done.stderr.split()[-1]) < mapped_kib + (120 << 10)
