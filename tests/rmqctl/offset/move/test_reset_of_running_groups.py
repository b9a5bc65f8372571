"""A reset of a running group: notified, it goes on from there within a second; nothing is lost."""

import time
from functools import partial

import pytest

from broker.embedded.broker import EmbeddedBroker
from tests.support.cli import ROOT, run, start
from tests.support.recording_client import RecordingClient, consumer as consumer_of, heartbeat

WITHIN_S = 20
"""The deadline on a busy machine."""


def lines_of(process, count):
    lines: list[str] = []
    while len(lines) < count:
        line = process.stdout.readline().decode()
        assert line, f"the consumer ended: {process.stderr.read().decode()}"
        lines.append(line.rstrip("\n"))
    return lines


@pytest.fixture
def consumer(orders):
    with start("consume", "orders", "-g", "g", cwd=ROOT) as process:
        lines_of(process, 10)
        yield process
        process.terminate()


def caught_up(offsets):
    deadline = time.monotonic() + WITHIN_S
    while offsets() != {0: 10, 1: 5}:
        assert time.monotonic() < deadline, offsets()
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.feature(76)
def test_running_consumers_go_on_from_there(orders, offsets, consumer):
    caught_up(offsets)
    result = run("offset", "reset", "-g", "g", "-t", "orders:0", "--to-offset", "7", "-o", "json")
    assert "group g runs (" in result.err
    assert "goes on from its new offsets within a second" in result.err
    result = run(
        *("offset", "reset", "-g", "g", "-t", "orders:0", "--to-offset", "7", "--execute", "--yes")
    )
    assert result.code == 0, result.err
    assert lines_of(consumer, 3) == ["order 7", "order 8", "order 9"]
    caught_up(offsets)


@pytest.mark.slow
@pytest.mark.conformance("G12")
def test_a_reset_by_time_moves_a_running_group_and_one_that_does_not_run_alike(
    orders, offsets, consumer
):
    caught_up(offsets)
    given = ("-t", "orders", "-Q", "0", "-s", "2026-01-01T00:08:00Z", "--yes", "-o", "json")
    running = run("resetOffsetByTime", "-g", "g", *given)
    assert running.code == 0, running.err
    assert "group g runs (" in running.err
    assert lines_of(consumer, 2) == ["order 8", "order 9"]
    resting = run("resetOffsetByTime", "-g", "h", "--new-group", *given)
    assert resting.code == 0, resting.err
    assert [row["new_offset"] for row in running.json() + resting.json()] == [8, 8]
    caught_up(offsets)


@pytest.mark.slow
@pytest.mark.feature(75)
def test_no_live_refuses_while_they_run(orders, offsets, consumer):
    caught_up(offsets)
    for command in (
        ("offset", "reset", "-g", "g", "-t", "orders", "--to-earliest", "--execute"),
        ("offset", "delete", "-g", "g", "-t", "orders"),
    ):
        result = run(*command, "--no-live", "--yes")
        assert result.code == 7
        assert "group g has running consumers" in result.err
    assert offsets() == {0: 10, 1: 5}


def resets(number, calls):
    """Whether there were so many."""
    return len([call for call in calls if call[0] == "reset"]) == number


@pytest.mark.slow
@pytest.mark.feature(76)
def test_members_are_told_of_every_kind_of_move_and_others_are_not(orders):
    mine, others = RecordingClient(), RecordingClient()
    with EmbeddedBroker.open(orders) as broker:
        for client_id, client, group in (("a", mine, "g"), ("b", others, "h")):
            broker.connect(client_id, client)
            broker.heartbeat(heartbeat(client_id, consumer_of(group, "orders")))
        for number, command in enumerate(
            (
                ("offset", "reset", "-g", "g", "-t", "orders", "--to-offset", "2", "--execute"),
                ("offset", "undo", "--last", "--execute"),
                ("resetOffsetByTime", "-g", "g", "-t", "orders", "-s", "0"),
                ("offset", "delete", "-g", "g", "-t", "orders"),
            ),
            1,
        ):
            result = run(*command, "--yes")
            assert result.code == 0, result.err
            assert "group g runs (a)" in result.err
            assert mine.wait_until(partial(resets, number)), command
        told = [call[1:] for call in mine.calls if call[0] == "reset"]
        assert told[0] == ("g", "orders", {0: 2, 1: 2})
        assert [call for call in others.calls if call[0] == "reset"] == []
