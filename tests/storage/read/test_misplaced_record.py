"""The store was not closed cleanly, and a record says that it lies elsewhere.

A unit that is made again from the log has the place where its record lies. So a reader and the next
writer count the message, report that it cannot be read, and neither takes it for a message of a
deleted topic.
"""

from __future__ import annotations

import shutil
from struct import Struct

import pytest

from storage.config import SMALL_STORE
from storage.format.record import CheckKind, check_record
from storage.store import MessageStore
from tests.support.cli import run

_PLACE = Struct(">q")
_PLACE_AT = 28
_PLACES = (-(1 << 63) + 1, -1, 0, 1 << 40)
IN_TWO_SECTORS = 25
"""A unit that a power loss may tear; a reader makes it again from the log."""


def produced(root, count):
    """A store of ``count`` messages in queue 0 of t, and the places of their records."""
    MessageStore.create(root, SMALL_STORE)
    result = run("produce", "t", "-Q", 0, "-c", count, "--template", "%i", "-k", "key", "-S", root)
    assert result.code == 0, result.err
    data = next((root / "commitlog").iterdir()).read_bytes()
    places, at = [], 0
    while (found := check_record(data, at, len(data))).kind is CheckKind.MESSAGE:
        places.append(at)
        at += found.size
    assert len(places) == count
    return places


def say_it_lies(root, record_at, place):
    with next((root / "commitlog").iterdir()).open("r+b") as file:
        file.seek(record_at + _PLACE_AT)
        file.write(_PLACE.pack(place))
    (root / "abort").touch()


def consumed(root):
    result = run("consume", "t", "-e", "-S", root)
    return result.code, result.lines


@pytest.mark.parametrize("place", _PLACES)
def test_the_last_record_whose_unit_may_be_torn_is_missed(tmp_path, place):
    root = tmp_path / "s"
    places = produced(root, IN_TWO_SECTORS + 1)
    say_it_lies(root, places[-1], place)
    others = [str(n) for n in range(1, len(places))]
    assert consumed(root) == (8, others)
    assert run("produce", "other", "-S", root, stdin=b"x\n").code == 0
    assert consumed(root) == (8, others)


@pytest.mark.parametrize("place", [place or 20 for place in _PLACES])
@pytest.mark.parametrize("at", [0, 3, 6])
@pytest.mark.parametrize("written", [False, True])
def test_where_a_queue_is_lost_its_other_messages_keep_their_offsets(tmp_path, place, at, written):
    root = tmp_path / "s"
    places = produced(root, 7)
    say_it_lies(root, places[at], place)
    shutil.rmtree(root / "consumequeue")
    if written:
        shutil.rmtree(root / "rmqctl")  # the next writer makes its shared state and queues again
        assert run("produce", "other", "-S", root, stdin=b"x\n").code == 0
    others = [str(n + 1) for n in range(7) if n != at]
    assert consumed(root) == (8, others)
    rows = run("consume", "t", "-e", "-o", "jsonl", "-S", root).lines
    assert [
        f'"queue_offset":{n},' in row
        for n, row in zip((n for n in range(7) if n != at), rows, strict=True)
    ] == [True] * 6
