"""Streams that are closed, or that no process reads: no traceback, no wrong exit code."""

import gc
import io
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from rmqctl.output.stdout import Stdout
from tests.support.cli import ROOT, call, run, start


def shell(command, folder):
    """What a shell gives for a command line; ``rmqctl`` is the program."""
    program = f'rmqctl() {{ {sys.executable} -P -m rmqctl "$@"; }}; {command}'
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-c", program], cwd=folder, env=environment, capture_output=True, text=True
    )


@pytest.fixture
def folder(tmp_path):
    run("store", "init", tmp_path / "store", "--small")
    run("topic", "create", "orders", "-S", tmp_path / "store")
    run("produce", "orders", "-S", tmp_path / "store", stdin=b"hello\n")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "message get -t orders -Q 0 -O 0",
        *(pytest.param(more, marks=pytest.mark.long) for more in ("topic list", "store fsck")),
    ],
)
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
@pytest.mark.slow
def test_a_closed_stream_is_as_the_null_device(folder, command, closed):
    null = closed.replace("<&-", "</dev/null").replace("&-", "/dev/null")
    wanted, got = (shell(f"rmqctl {command} {how}", folder) for how in (null, closed))
    assert got.returncode == wanted.returncode
    assert got.stdout == wanted.stdout
    assert got.stderr == wanted.stderr


@pytest.mark.slow
def test_a_stream_without_a_buffer_stays_open(tmp_path):
    """As with ``python -u``: our own buffer goes, and the stream goes on."""
    with io.TextIOWrapper((tmp_path / "out").open("wb", buffering=0), write_through=True) as stream:
        out = Stdout(stream)
        out.write("ours\n")
        out.flush()
        del out
        gc.collect()
        stream.write("theirs\n")
    assert (tmp_path / "out").read_text() == "ours\ntheirs\n"


@pytest.mark.slow
def test_what_is_sent_without_an_output_is_stored(folder):
    assert shell("echo line | rmqctl produce orders >&- 2>&-", folder).returncode == 0
    assert shell("rmqctl produce orders <&-", folder).returncode == 0
    read = shell("rmqctl consume orders -e", folder)
    assert sorted(read.stdout.split()) == ["hello", "line"]


@pytest.mark.slow
def test_a_question_without_a_terminal_is_a_refusal(folder):
    result = shell("rmqctl topic delete orders --execute <&-", folder)
    assert result.returncode == 7
    assert "add --confirm orders" in result.stderr


@pytest.mark.slow
def test_an_error_without_a_reader_keeps_its_exit_code(folder):
    reader, writer = os.pipe()
    os.close(reader)
    with start("topic", "queues", "nosuch", "-S", folder / "store", stderr=writer) as process:
        os.close(writer)
        assert process.stdout.read() == b""
    assert process.returncode == 3


@pytest.mark.slow
def test_an_output_that_fails_without_a_reader_of_errors_is_an_error(folder):
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        options = ["topic", "list", "-S", folder / "store"]
        with start(*options, stdout=full, stderr=writer) as process:
            os.close(writer)
    assert process.returncode == 1


@pytest.mark.slow
def test_a_check_that_can_not_print_is_unknown(folder):
    read = shell("rmqctl consume orders -g billing -e; rmqctl lag check --warn-lag 1000", folder)
    assert read.returncode == 0, read.stdout
    full = shell("rmqctl lag check --warn-lag 1000 > /dev/full", folder)
    assert full.returncode == 3
    assert "No space left on device" in full.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        *("-e", "--count 1"),
        *(pytest.param(more, marks=pytest.mark.long) for more in ("-e -q", "-e -o jsonl")),
    ],
)
def test_a_group_commits_nothing_that_is_not_printed(folder, options):
    group = "rmqctl consume orders -g billing --from-where first"
    closed = shell(f"{group} {options} >&-", folder)
    assert (closed.returncode, closed.stderr) == (1, "rmqctl: standard output is closed\n")
    assert shell(f"{group} -e", folder).stdout == "hello\n"


@pytest.mark.slow
def test_a_group_needs_no_output_where_a_program_gets_the_messages(folder):
    group = "rmqctl consume orders -g billing --from-where first -e"
    done = shell(f"{group} --exec 'tee got' >&-", folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "got").read_text().strip() == "hello"


@contextmanager
def errors_that_take_nothing(kind):
    """A standard error of a full disk, or of a pipe whose reader has gone."""
    if kind == "full":
        with Path("/dev/full").open("wb") as full:
            yield full
        return
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "gone"])
@pytest.mark.parametrize(
    ("words", "stdin", "code", "out"),
    [
        ("produce orders -Q 0", b"a\nb\n", 0, b""),
        ("message import - orders", b'{"body": "a"}\n', 0, b""),
        ("topic list -o csv --columns topic", b"", 0, b"topic\r\norders\r\n"),
        ("topic list -o csv --columns topic --log-format json", b"", 0, b"topic\r\norders"),
        (
            "offset reset -g g -t orders --to-earliest --yes -o csv --columns group",
            b"",
            0,
            b"group",
        ),
        (
            "store carve {carved} -t orders --yes -o csv --columns topic",
            b"",
            0,
            b"topic\r\norders\r\n",
        ),
        ("mqadmin topicList --output csv --columns topic", b"", 0, b"topic\r\norders\r\n"),
        (
            "mqadmin updateTopic -t made --yes --output csv --columns topic",
            b"",
            0,
            b"topic\r\nmade\r\n",
        ),
        ("message get -t orders -Q 0 -O 0 --where 1=1", b"", 2, b""),
        ("topic queues nowhere", b"", 3, b""),
    ],
)
def test_words_that_cannot_be_written_are_no_failure(folder, kind, words, stdin, code, out):
    store = folder / "store"
    assert run("consume", "orders", "-g", "g", "-e", "-S", store).code == 0
    words = words.format(carved=folder / "carved").split()
    with errors_that_take_nothing(kind) as stderr:
        buffered = {"PYTHONUNBUFFERED": ""}  # what could not be written is tried again
        result = call(*words, "-S", store, stdin=stdin, stderr=stderr, env=buffered)
    assert (result.code, result.raw[: len(out)]) == (code, out)
