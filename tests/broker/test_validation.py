"""Limits of names and messages: each refusal names the thing and the bound."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from broker.errors import BrokerError, InvalidNameError, MessageIllegalError, NoPermissionError
from broker.validation import (
    MAX_MESSAGE_SIZE,
    SENT_TO,
    check_body,
    check_body_size,
    check_changeable_topic,
    check_delay_level,
    check_group,
    check_message,
    check_messages,
    check_properties,
    check_properties_size,
    check_send_topic,
    check_topic,
    check_types,
    check_user_property,
    typed,
)
from storage.format.message import (
    NOT_ALLOWED_SEND_TOPICS,
    RESERVED_PROPERTIES,
    SYSTEM_TOPICS,
    Message,
    is_system_topic,
)
from storage.format.properties import encode_properties, parse_properties

LEGAL = "%|-_aZ09"


@pytest.mark.parametrize("name", ["T", LEGAL, "%RETRY%g", "%DLQ%g", "x" * 127])
def test_legal_topics_pass(name):
    check_topic(name)
    check_group(name)


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a.b", "a/b", "..", "a\n", "T\x00", "a@b", "\u4e2d"]
)
def test_illegal_names_are_refused(name):
    with pytest.raises(InvalidNameError, match=r"topic.*(no name|other than)"):
        check_topic(name)
    with pytest.raises(InvalidNameError, match=r"group.*(no name|other than)"):
        check_group(name)


def test_length_bounds_are_named():
    with pytest.raises(InvalidNameError, match="has 128 characters, allowed are 127"):
        check_topic("x" * 128)
    check_group("x" * 255)
    with pytest.raises(InvalidNameError, match="has 256 characters, allowed are 255"):
        check_group("x" * 256)


@pytest.mark.parametrize("name", ["DEFAULT_PRODUCER", "DEFAULT_CONSUMER"])
def test_default_groups_are_reserved(name):
    with pytest.raises(InvalidNameError, match="reserved"):
        check_group(name)


BROKERS_OWN = {
    "SCHEDULE_TOPIC_XXXX",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
}


def test_the_sets_are_rocketmqs():
    assert NOT_ALLOWED_SEND_TOPICS == BROKERS_OWN
    assert BROKERS_OWN | {"TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC"} == SYSTEM_TOPICS
    assert is_system_topic("TBW102")
    assert not is_system_topic("TBW103")
    assert not is_system_topic("x_rmq_sys_")


def test_a_topic_is_checked_until_it_has_passed_once(monkeypatch):
    monkeypatch.setattr("broker.validation._MOST_SENT_TO", 2)
    SENT_TO.clear()
    for topic in ("T1", "T2", "T3"):
        check_send_topic(topic)
        check_send_topic(topic)
    assert {"T1", "T2"} == SENT_TO
    SENT_TO.clear()


@pytest.mark.parametrize("topic", sorted(NOT_ALLOWED_SEND_TOPICS))
def test_sends_to_topics_of_the_broker_are_refused(topic):
    with pytest.raises(NoPermissionError, match=topic):
        check_send_topic(topic)


@pytest.mark.parametrize("topic", [*sorted(SYSTEM_TOPICS), "rmq_sys_x"])
def test_system_topics_are_not_changed(topic):
    with pytest.raises(NoPermissionError, match="belongs to the system"):
        check_changeable_topic(topic)


def test_body_bounds():
    check_body(b"x")
    check_body(bytes(4 << 20))
    with pytest.raises(MessageIllegalError, match="the message body length is zero"):
        check_body(b"")
    with pytest.raises(MessageIllegalError, match="has 4194305 bytes, allowed are 4194304"):
        check_body(bytes((4 << 20) + 1))
    check_body_size(b"", 0)
    with pytest.raises(MessageIllegalError, match="has 3 bytes, allowed are 2"):
        check_body_size(b"abc", 2)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("", "v", "no name"),
        ("a\x01b", "v", r"the name of property .* holds U\+0001"),
        ("a\x02", "v", "the name"),
        ("a", "v\x01", "the value of property 'a'"),
        ("a", "\x02", "the value"),
    ],
)
def test_properties_that_would_not_come_back_are_refused(name, value, reason):
    with pytest.raises(MessageIllegalError, match=reason):
        check_properties({"ok": "fine", name: value})


@given(st.dictionaries(st.text(min_size=1), st.text(min_size=1), max_size=5))
def test_properties_that_pass_come_back(properties):
    try:
        check_properties(properties)
    except MessageIllegalError:
        assert any(c in part for item in properties.items() for part in item for c in "\x01\x02")
        return
    try:
        encoded = encode_properties(properties)
    except UnicodeEncodeError:
        return
    assert parse_properties(encoded) == properties


def test_properties_size_bound():
    check_properties_size(bytes(32767))
    with pytest.raises(MessageIllegalError, match="have 32768 bytes, allowed are 32767"):
        check_properties_size(bytes(32768))


@pytest.mark.parametrize("name", sorted(RESERVED_PROPERTIES))
def test_reserved_names_are_not_for_users(name):
    with pytest.raises(MessageIllegalError, match=f"{name} is reserved"):
        check_user_property(name, "v")


@pytest.mark.parametrize(("name", "value"), [(" ", "v"), ("n", ""), ("n", " "), ("n", "\x01")])
def test_user_properties_have_name_and_value(name, value):
    with pytest.raises(MessageIllegalError):
        check_user_property(name, value)


def test_delay_levels_are_not_negative():
    check_delay_level(0)
    check_delay_level(99)
    with pytest.raises(MessageIllegalError, match="-1 is negative"):
        check_delay_level(-1)


@pytest.mark.parametrize(
    "message",
    [
        Message("a b", b"x"),
        Message("T", b""),
        Message("T", b"12345"),
        Message("T", b"x", tags="\x01"),
        Message("SELF_TEST_TOPIC", b"x"),
    ],
)
def test_messages_are_refused_as_java_clients_refuse_them(message):
    with pytest.raises(BrokerError):
        check_message(message, 4)


def test_a_good_message_passes():
    check_message(Message("T", b"1234", tags="a", keys=["k1", "k2"]), 4)


def test_many_messages_are_refused_like_one():
    good = Message("T", b"1234")
    check_messages([good, Message("T", b"x"), Message("U", b"1")], 4)
    assert MAX_MESSAGE_SIZE == 4_194_304
    for bad in (
        Message("a b", b"x"),
        Message("T", b""),
        Message("T", b"12345"),
        Message("T", b"x", tags="\x01"),
    ):
        with pytest.raises(BrokerError):
            check_messages([good, bad, good], 4)


class Other:
    def __repr__(self):
        return "o" * 41


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"topic": 5}, InvalidNameError, "the topic is 5 (int); it is a str"),
        (
            {"body": "text"},
            MessageIllegalError,
            "the message body is 'text' (str); it is bytes; encode it: text.encode()",
        ),
        ({"body": None}, MessageIllegalError, "the message body is None; it is bytes"),
        (
            {"flag": 1 << 31},
            MessageIllegalError,
            "the message's flag is 2147483648 (int); it is a whole number of 32 bits",
        ),
        (
            {"flag": -(1 << 31) - 1},
            MessageIllegalError,
            "the message's flag is -2147483649 (int); it is a whole number of 32 bits",
        ),
        (
            {"flag": "1"},
            MessageIllegalError,
            "the message's flag is '1' (str); it is a whole number of 32 bits",
        ),
        (
            {"properties": [1]},
            MessageIllegalError,
            "the message's properties are [1] (list); they are a dict",
        ),
        (
            {"properties": {1: "v"}},
            MessageIllegalError,
            "a property's name is 1 (int); it is a str",
        ),
        (
            {"properties": {"n": Other()}},
            MessageIllegalError,
            f"the value of property 'n' is {'o' * 40}... (Other); it is a str",
        ),
    ],
)
def test_a_part_of_a_wrong_type_is_named(change, error, sentence):
    message = Message("T", b"x")
    for name, value in change.items():
        setattr(message, name, value)
    with pytest.raises(error) as caught:
        check_types([Message("T", b"x"), message])
    assert str(caught.value) == sentence


def test_parts_of_the_right_types_pass():
    bodies: list[Any] = [b"x", bytearray(b"x"), memoryview(b"x")]
    for body in bodies:
        message = Message("T", b"x")
        message.body = body
        for flag in (-(1 << 31), (1 << 31) - 1):
            message.flag = flag
            check_types([message])


def test_what_is_no_message_is_said_to_be_none():
    with pytest.raises(MessageIllegalError) as caught:
        check_types([("T", b"x")])
    start = "('T', b'x') (tuple) is no message; make a Message of it"
    assert str(caught.value).startswith(start)


def test_a_value_is_shown_with_its_type():
    assert typed(None) == "None"
    assert typed("x" * 38) == f"'{'x' * 38}' (str)"
    assert typed("x" * 39) == f"'{'x' * 39}... (str)"


def test_an_empty_text_is_no_body():
    with pytest.raises(MessageIllegalError, match=r"is '' \(str\); it is bytes; encode it"):
        check_body(cast("Any", ""))
    empties: list[Any] = [bytearray(), memoryview(b"")]
    for empty in empties:
        with pytest.raises(MessageIllegalError, match="length is zero"):
            check_body(empty)


@pytest.mark.parametrize("check", [check_topic, check_group])
def test_a_name_is_a_text(check):
    with pytest.raises(InvalidNameError, match=r"is 7 \(int\); it is a str"):
        check(7)


def test_names_are_shown_up_to_40_characters():
    with pytest.raises(InvalidNameError, match=f"'{'.' * 40}' has characters"):
        check_topic("." * 40)
    with pytest.raises(InvalidNameError, match=rf"'{'x' * 40}\.\.\.' has 200 characters"):
        check_topic("x" * 200)


def test_long_names_are_cut_in_sentences():
    with pytest.raises(InvalidNameError) as caught:
        check_topic("x" * 5000)
    assert len(str(caught.value)) < 200
