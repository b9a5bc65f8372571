"""Choosing a queue by an argument, with the numbers that Java gives."""

from __future__ import annotations

import math

import pytest

from client.producer.selector import (
    SelectByMachineRoom,
    java_hash_code,
    select_by_hash,
    select_by_random,
)
from storage.format.message import Message, MessageQueue

MESSAGE = Message("T", b"x")


def queues(count, name="broker-a"):
    return [MessageQueue("T", name, queue_id) for queue_id in range(count)]


@pytest.mark.conformance("F2")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("*", 42),
        ("Aa", 2112),
        ("BB", 2112),
        ("\u8ba2\u5355", 1129459),
        ("order-1001", 708180863),
    ],
)
def test_a_string_hashes_as_in_java(text, expected):
    assert java_hash_code(text) == expected


@pytest.mark.conformance("F2")
def test_the_sharding_key_chooses_the_queue_that_java_chooses():
    orders = ["order-1001", "order-1002", "order-1003"]
    assert [select_by_hash(queues(4), MESSAGE, it).queue_id for it in orders] == [3, 0, 1]
    assert [select_by_hash(queues(8), MESSAGE, it).queue_id for it in orders] == [7, 0, 1]


@pytest.mark.conformance("F2")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (7, 7),
        (-1, -1),
        (1 << 31, -(1 << 31)),
        ((1 << 32) + 5, 4),
        (-(1 << 40), -256),
        (True, 1231),
        (False, 1237),
        (1.5, 1073217536),
        (-0.0, -(1 << 31)),
        (math.nan, 2146959360),
    ],
)
def test_numbers_hash_as_integer_long_boolean_and_double(value, expected):
    assert java_hash_code(value) == expected


@pytest.mark.conformance("F2")
def test_a_negative_hash_chooses_by_its_absolute_remainder():
    # Java: abs(-7 % 4) is 3; Python's own remainder would be 1.
    assert select_by_hash(queues(4), MESSAGE, -7).queue_id == 3
    assert select_by_hash(queues(3), MESSAGE, 1 << 31).queue_id == 2


@pytest.mark.parametrize("value", [None, b"bytes", ("a", 1), 1 << 63])
def test_what_java_has_no_common_hash_of_is_refused(value):
    with pytest.raises(ValueError, match="pass a str"):
        java_hash_code(value)


def test_random_reaches_every_queue():
    assert {select_by_random(queues(3), MESSAGE, None).queue_id for _ in range(500)} == {0, 1, 2}


def test_a_machine_room_is_what_stands_before_the_at_sign():
    near, far = queues(2, "hz@broker-a"), queues(4, "sh@broker-b")
    select = SelectByMachineRoom(["hz"])
    assert select([*near, *far], MESSAGE, 3) == near[1]
    assert SelectByMachineRoom(["bj"])([*near, *far], MESSAGE, 3) is None
