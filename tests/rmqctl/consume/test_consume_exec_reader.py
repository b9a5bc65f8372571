"""``consume --exec``: the reader of what the programs print goes away."""

import os

import pytest

from broker.embedded.broker import EmbeddedBroker
from tests.support.cli import call, run, start

MEANWHILE = 30
"""Seconds within which a process gets somewhere by itself."""
NO_SECOND_TRY = ["--max-reconsume-times", 0]


@pytest.fixture
def ten(store):
    """The numbers from 0 to 9 in one queue."""
    run("topic", "create", "t", "--queues", 1)
    assert run("produce", "t", "-q", stdin=b"".join(b"%d\n" % i for i in range(10))).code == 0
    return store


def committed(store, topic="t"):
    """The group's committed offset of each queue."""
    with EmbeddedBroker.open(store, read_only=True) as broker:
        return broker.consumer_offsets().get(("g", topic), {})


def nothing_came_back(store):
    """Whether no message was answered with a failure."""
    with EmbeddedBroker.open(store, read_only=True) as broker:
        queues = [("%DLQ%g", 0), ("%RETRY%g", 0)]
        return not any(broker.max_offset(*queue) for queue in queues if broker.topic(queue[0]))


MEMBERS = [
    [],
    pytest.param(["-e"], marks=pytest.mark.long),
    pytest.param(["--orderly"], marks=pytest.mark.long),
    ["--orderly", "-e"],
    ["--threads", 3, "-e"],
]


@pytest.mark.parametrize("options", MEMBERS)
@pytest.mark.slow
def test_no_program_is_started_when_the_output_has_no_reader(ten, options):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        options = [*options, *NO_SECOND_TRY]
        result = call(
            "consume", "t", "-g", "g", *options, "--exec", "cat", stdout=writing, timeout=MEANWHILE
        )
    finally:
        os.close(writing)
    assert (result.code, result.err) == (141, "")
    assert sum(committed(ten).values()) == 0
    assert nothing_came_back(ten)
    assert len(run("consume", "t", "-g", "g", "-e").lines) == 10


@pytest.mark.parametrize("options", [[], ["-e"], ["--orderly", "-e"]])
@pytest.mark.slow
def test_what_a_program_could_not_print_is_not_answered(ten, tmp_path, options):
    """The third program begins while its output is read, and prints when that has ended."""
    write_lock = tmp_path / "gate"
    os.mkfifo(write_lock)
    script = f"sh -c 'test $RMQ_QUEUE_OFFSET = 2 && echo ready && read x < {write_lock}; cat'"
    reading, writing = os.pipe()
    options = [*options, *NO_SECOND_TRY, "--exec", script]
    with start("consume", "t", "-g", "g", *options, stdout=writing) as process:
        try:
            os.close(writing)
            text = b""
            while b"ready" not in text:
                text += os.read(reading, 1 << 16)
            assert text == b"01ready\n"
            os.close(reading)
            write_lock.write_text("go\n")
            assert process.wait(MEANWHILE) == 141
            assert process.stderr.read() == b""
        finally:
            process.kill()
    assert committed(ten) == {0: 2}
    assert nothing_came_back(ten)


@pytest.mark.slow
def test_a_member_that_waits_for_messages_sees_it_too(ten):
    reading, writing = os.pipe()
    with start("consume", "t", "-g", "g", "--exec", "cat", stdout=writing) as process:
        try:
            os.close(writing)
            text = b""
            while len(text) < 10:
                text += os.read(reading, 1 << 16)
            os.close(reading)
            assert process.wait(MEANWHILE) == 141
        finally:
            process.kill()
    assert committed(ten) == {0: 10}
    assert nothing_came_back(ten)


@pytest.mark.slow
def test_a_program_that_fails_while_the_output_has_a_reader_has_failed(ten):
    result = call(
        "consume", "t", "-g", "g", "-e", *NO_SECOND_TRY, "--exec", "sh -c 'kill -PIPE $$'"
    )
    assert result.code == 1, result.err
    assert committed(ten) == {0: 10}
    assert not nothing_came_back(ten)
