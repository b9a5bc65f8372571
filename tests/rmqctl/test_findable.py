"""Resets and searches report what no group reads, and keys that no message has."""

from __future__ import annotations

import pytest

from tests.support.cli import run


def test_a_key_with_a_blank_is_told_where_it_is_looked_for(store):
    assert run("produce", "t", "-k", "order", "-k", "17", stdin=b"x\n").code == 0
    for words in (["message", "query", "-t", "t"], ["consume", "t", "-e"]):
        result = run(*words, "-k", "order 17")
        assert "'order 17'" in result.err
        assert "blank" in result.err


@pytest.mark.slow
def test_a_reset_does_not_count_queues_that_no_group_reads(store):
    assert run("topic", "create", "t", "--queues", 4).code == 0
    for queue_id in range(4):
        run("produce", "t", "-Q", queue_id, stdin=b"x\ny\n")
    run("consume", "t", "-g", "g", "-e")
    assert run("topic", "alter", "t", "--queues", 1, "--yes").code == 0
    for words in (
        ["resetOffsetByTime", "-g", "g", "-t", "t", "-s", "0", "-n", "-o", "jsonl"],
        ["offset", "reset", "-g", "g", "-t", "t", "--to-earliest", "-n", "-o", "jsonl"],
    ):
        result = run(*words)
        assert "3 of 4 queues are read by no group any more and are not counted" in result.err
        assert "1 back, 2 messages" in result.err
        notes = [line for line in result.lines if "not read: the topic has 1 read queue" in line]
        assert len(notes) == 3
