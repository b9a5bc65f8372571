"""Properties that are made when they are first read are the stored ones."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys

import pytest
from hypothesis import given, strategies as st

from broker.send.message_builder import Origin
from storage.format import plain_message
from storage.format.encode import MessageInner
from storage.format.message import PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX as UNIQ_KEY, Message
from tests.support.compiled import compiled, needs_compiled

if compiled is not None:
    compiled.bind_message(Message)
    compiled.bind_inner(MessageInner)

pytestmark = needs_compiled
LARGEST = 100_000
ORIGIN = Origin(1_700_000_000_000, b"\x7f\0\0\1\0\0\x2a\x9f", b"\x0a\0\0\1\0\0\x2a\x9f", 0, 0)
CLUSTER = b"CLUSTER\x01DefaultCluster"
TEXTS = st.none() | st.text(" ab-\u00e9\u20ac\U0001f600", max_size=12)
ODD_TEXTS = TEXTS | st.sampled_from(["\x01", "x\x02y", "1234567\x01", "\udc00", "k" * 40_000])
IDS = st.sampled_from([b"0123456789ABCDEF" * 2, b"A", b"B" * 56, b"C" * 57, b"odd\x01", b"\x02"])


def both_kinds(tags: str | None, keys: str | None) -> tuple[Message, Message]:
    """The same message twice; the properties of the second one have been read."""
    late, observed = (Message("T", b"body", tags=tags, keys=keys) for _ in range(2))
    assert type(observed.properties) is dict
    return late, observed


def all_that_is_made(message: Message, unique_id: str) -> tuple[object, ...]:
    return (
        compiled.look_at(message, LARGEST),
        compiled.look_over([message], "T", LARGEST),
        compiled.encode_sent("T", 2, CLUSTER, LARGEST, ORIGIN, [message], [unique_id]),
        compiled.encode_sent("T", 2, CLUSTER, LARGEST, ORIGIN, [message], None),
        compiled.inner_message("T", 2, CLUSTER, LARGEST, ORIGIN, message, unique_id),
        compiled.has_unique_id(message),
    )


@given(ODD_TEXTS, ODD_TEXTS, st.none() | IDS)
def test_what_is_made_of_a_message_is_the_same_before_and_after_a_look(
    tags: str | None, keys: str | None, given_id: bytes | None
) -> None:
    late, observed = both_kinds(tags, keys)
    if given_id is not None:
        compiled.give_ids([late, observed], given_id * 2, len(given_id))
    for _ in range(2):  # what the first look found may be remembered
        assert all_that_is_made(late, "ID") == all_that_is_made(observed, "ID")
    assert list(late.properties.items()) == list(observed.properties.items())
    assert all_that_is_made(late, "ID") == all_that_is_made(observed, "ID")


@given(TEXTS, TEXTS, st.sampled_from(["ID", "x\x01", ""]), st.none() | IDS)
def test_an_id_is_put_into_a_message_as_its_property(
    tags: str | None, keys: str | None, unique_id: str, had: bytes | None
) -> None:
    late, observed = both_kinds(tags, keys)
    if had is not None:
        compiled.give_ids((late, observed), had * 2, len(had))
    assert compiled.has_unique_id(late) == (UNIQ_KEY in observed.properties)
    compiled.give_id(late, unique_id)
    observed.properties[UNIQ_KEY] = unique_id
    assert compiled.has_unique_id(late)
    assert all_that_is_made(late, "ID") == all_that_is_made(observed, "ID")
    assert list(late.properties.items()) == list(observed.properties.items())


def test_ids_are_seen_in_any_kind_of_message() -> None:
    class Own(Message):
        pass

    for kind in (Message, Own):
        for has_id in (plain_message.has_id, compiled.has_unique_id):
            message = kind("T", b"", properties={"a": "b"})
            assert not has_id(message)
            plain_message.give_id(message, "1")
            assert has_id(message)
            assert message.properties == {"a": "b", UNIQ_KEY: "1"}


def test_properties_are_one_dict_that_may_be_changed_and_replaced() -> None:
    message = Message("T", b"", tags="a", keys=["k", "l"])
    mine = message.properties
    mine["b"] = "c"
    assert message.properties is mine == {"TAGS": "a", "KEYS": "k l", "b": "c"}
    message = Message("T", b"", tags="a")
    message.tags = None
    assert (message.properties, message.tags, message.keys) == ({}, None, ())
    message = Message("T", b"", tags="a")
    message.properties = {"new": "ones"}
    assert message.properties == {"new": "ones"}
    del message.properties
    for gone in (message, Message.__new__(Message)):
        with pytest.raises(AttributeError, match="properties"):
            gone.get_property("a")
        with pytest.raises(AttributeError, match="properties"):
            del gone.properties


def test_a_message_whose_properties_were_not_read_is_copied_whole() -> None:
    message = Message("T", b"body", tags="a", flag=3)
    compiled.give_ids([message], b"ID", 2)
    copies = [copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))]
    for made in copies:
        assert [getattr(made, name) for name in Message.__slots__] == [
            b"body",
            3,
            {"TAGS": "a", UNIQ_KEY: "ID"},
            "T",
        ]


def test_making_a_message_again_forgets_what_it_was() -> None:
    message = Message("T", b"", tags="a")
    message.__init__("U", b"b", keys="k")  # type: ignore[misc]
    assert (message.topic, message.body, message.properties) == ("U", b"b", {"KEYS": "k"})


def test_nothing_is_left_of_messages_that_are_dropped() -> None:
    tags, keys, unique_id = (str(object()) for _ in range(3))

    def make_one() -> None:
        late, observed = both_kinds(tags, keys)
        compiled.give_id(late, unique_id)
        compiled.give_id(late, unique_id)
        late.__init__("T", b"", keys=keys)  # type: ignore[misc]
        compiled.give_id(late, "")
        late.__init__("T", b"", tags=tags)  # type: ignore[misc]
        assert late.properties == {"TAGS": tags}
        assert observed.properties == {"TAGS": tags, "KEYS": keys}

    before = [sys.getrefcount(text) for text in (tags, keys, unique_id)]
    for _ in range(100):
        make_one()
    gc.collect()
    assert [sys.getrefcount(text) for text in (tags, keys, unique_id)] == before


def test_the_signature_of_messages_is_that_of_the_pure_class() -> None:
    names = ["topic", "body", "tags", "keys", "flag", "delay_time_level", "properties"]
    assert list(inspect.signature(Message).parameters) == names
