"""A group that is not shared has one member, and none the moment that one dies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.embedded import EmbeddedBroker
from broker.errors import GroupInUseError, InvalidNameError, NoPermissionError
from broker.membership import member_path

PROJECT = Path(__file__).parents[2]
MEMBER = """
import sys
from broker.embedded import EmbeddedBroker
broker = EmbeddedBroker.open(sys.argv[1])
member = broker.join_alone("g")
print("in", flush=True)
sys.stdin.read()
"""


def test_the_second_one_is_told_who_is_in(open_broker):
    first, second = open_broker(), open_broker()
    with first.join_alone("g"), pytest.raises(GroupInUseError, match=f"process {os.getpid()} on"):
        second.join_alone("g")
    second.join_alone("g").leave()
    second.join_alone("h").leave()


def test_a_member_that_is_killed_has_left(broker, root):
    process = subprocess.Popen(
        [sys.executable, "-c", MEMBER, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"in\n"
    with pytest.raises(GroupInUseError, match=f"group g is consumed by process {process.pid}"):
        broker.join_alone("g")
    process.kill()
    process.wait()
    process.stdout.close()
    process.stdin.close()
    broker.join_alone("g").leave()


def test_an_unreadable_note_only_hides_the_name(broker, root):
    with broker.join_alone("g"):
        member_path(root, "g").write_bytes(b"\x00")
        with pytest.raises(GroupInUseError, match="another process"):
            broker.join_alone("g")


def test_any_legal_name_will_do(broker):
    long = "%|" + "x" * 253
    with broker.join_alone(long), broker.join_alone(long[:-1] + "y"):
        pass
    with pytest.raises(InvalidNameError):
        broker.join_alone("../g")


def test_nobody_joins_where_nothing_may_be_written(root):
    with EmbeddedBroker.open(root, read_only=True) as reader, pytest.raises(NoPermissionError):
        reader.join_alone("g")
