"""What a failed listener leaves in a message: short, clean, and equal for equal failures."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, strategies as st

from broker.api.failure_reason import (
    FAILURE_CLASS,
    FAILURE_CLIENT,
    FAILURE_MESSAGE,
    FAILURE_PROPERTIES,
    FAILURE_STACK,
    FAILURE_TIME,
    failure_properties,
)
from broker.validation import check_user_property
from storage.format.message import RESERVED_PROPERTIES


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


def test_an_exception_tells_its_class_message_place_time_and_client():
    found = failure_properties(raised(ValueError("no such account\nsecret")), "c@1", 17)
    stack = found.pop(FAILURE_STACK)
    assert len(stack) == 12
    assert found == {
        FAILURE_CLASS: "ValueError",
        FAILURE_MESSAGE: "no such account",
        FAILURE_TIME: "17",
        FAILURE_CLIENT: "c@1",
    }


def test_a_listener_that_raised_nothing_tells_its_answer():
    found = failure_properties(None, "c@1", 17, answer="RECONSUME_LATER")
    assert found == {
        FAILURE_CLASS: "RECONSUME_LATER",
        FAILURE_TIME: "17",
        FAILURE_CLIENT: "c@1",
    }


class OddError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def test_classes_are_named_with_their_module_and_odd_exceptions_do_no_harm():
    found = failure_properties(raised(OddError()), "", 0)
    assert found[FAILURE_CLASS].endswith("OddError")
    assert "." in found[FAILURE_CLASS]
    assert FAILURE_MESSAGE not in found
    assert FAILURE_CLIENT not in found


def one_place(text):
    raise ValueError(text)


def other_place(text):
    raise ValueError(text)


def stack_of(function, text):
    try:
        function(text)
    except ValueError as error:
        return failure_properties(error, "c", 0)[FAILURE_STACK]


def test_the_stack_tells_places_apart_not_messages():
    assert stack_of(one_place, "a") == stack_of(one_place, "b")
    assert stack_of(one_place, "a") != stack_of(other_place, "a")


@given(st.text(), st.text())
def test_whatever_it_says_fits_into_properties(message, client):
    found = failure_properties(raised(KeyError(message)), client, 0)
    assert found.keys() <= set(FAILURE_PROPERTIES)
    for name, value in found.items():
        check_user_property(name, value)
        assert not any(ord(char) < 32 for char in value)
    assert sum(len(name) + len(value.encode()) + 2 for name, value in found.items()) < 1024


def test_long_texts_are_cut_at_whole_characters():
    found = failure_properties(raised(ValueError("\u4e2d" * 1000)), "\U0001f680" * 1000, 0)
    assert found[FAILURE_MESSAGE] == "\u4e2d" * 85
    assert found[FAILURE_CLIENT] == "\U0001f680" * 63


@pytest.mark.parametrize("name", FAILURE_PROPERTIES)
def test_the_names_are_ours(name):
    assert name not in RESERVED_PROPERTIES
    assert name.startswith("RMQCTL_")


class LeavingError(Exception):
    def __str__(self):
        raise SystemExit(3)


class OddText(str):
    __slots__ = ()

    def strip(self, *_):
        raise RuntimeError("no")


class OddTextError(Exception):
    def __str__(self):
        return OddText("some words")


def test_an_exception_whose_text_exits_or_is_odd_does_no_harm():
    assert FAILURE_MESSAGE not in failure_properties(raised(LeavingError()), "c", 0)
    assert failure_properties(raised(OddTextError()), "c", 0)[FAILURE_MESSAGE] == "some words"
    kind = type("Odd", (Exception,), {})
    kind.__qualname__ = "\ud800"
    assert failure_properties(raised(kind()), "c", 0)[FAILURE_CLASS].endswith("?")


def test_of_a_text_of_megabytes_no_more_is_looked_at_than_is_kept():
    looked = 0

    def count(frame, event, arg):
        nonlocal looked
        looked += 1

    error = raised(ValueError("\x1b[31m" + "x" * 3_000_000))
    sys.setprofile(count)
    try:
        found = failure_properties(error, "c", 0)
    finally:
        sys.setprofile(None)
    assert found[FAILURE_MESSAGE] == "[31m" + "x" * 252
    assert looked < 50_000
