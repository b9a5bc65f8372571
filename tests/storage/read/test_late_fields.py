"""Messages of compiled readers make their fields when these are read first; no reader sees that."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from storage.format import message as message_module
from storage.format.compress import compress
from storage.format.message import PURE_BODY, PURE_PROPERTIES, MessageExt
from storage.format.properties import parse_properties_pure
from storage.format.record import decode_record, encode_record
from storage.log.record_reader import UNUSUAL
from tests.support.compiled import compiled, compiled_client, needs_compiled

if compiled is not None:
    compiled.bind(MessageExt)
    compiled_client.bind_pulled(MessageExt)
FIELDS = [name for name in (*MessageExt.__slots__, "topic", "flag") if name[0] != "_"]


@pytest.fixture(autouse=True, scope="module")
def _references() -> Iterator[None]:
    """The reference of properties parses by the reference, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_module, "parse_properties", parse_properties_pure)
        yield


HOST = bytes((1, 2, 3, 4, 0, 0, 0, 5))


def record_of(body: bytes, properties: bytes, sys_flag: int = 0, numbers: int = 7) -> bytes:
    return encode_record(
        topic="T",
        queue_id=numbers & 0xFF,
        body=body,
        properties=properties,
        queue_offset=numbers + 1,
        physical_offset=0,
        store_timestamp=numbers + 2,
        born_timestamp=numbers - 3,
        born_host=HOST,
        store_host=HOST[::-1],
        sys_flag=sys_flag,
        flag=numbers & 0xFFFF,
        reconsume_times=numbers & 0xF,
        prepared_transaction_offset=numbers << 2,
    )


def both(record: bytes) -> tuple[MessageExt, MessageExt]:
    """The message of a compiled reader, and that of the reference."""
    found = compiled.read_at(memoryview(record), 0, len(record), 0, UNUSUAL)
    assert isinstance(found, MessageExt)
    return found, decode_record(record)


TEXTS = st.text("abTAGS\x01\x02\u00e9", max_size=12).map(str.encode) | st.binary(max_size=12)
NAMED = st.lists(
    st.tuples(st.sampled_from(("TAGS", "KEYS", "UNIQ_KEY", "x")), st.sampled_from("12345")),
    max_size=5,
).map(lambda items: b"\x02".join(f"{name}\x01{value}".encode() for name, value in items))
PROPERTIES = NAMED | NAMED.map(lambda data: data + b"\x02") | TEXTS
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("read", "drop")), st.sampled_from(FIELDS)),
        st.tuples(st.just("added"), PROPERTIES),
        st.tuples(st.just("more"), PROPERTIES),
        st.tuples(st.just("bytes"), PROPERTIES),
        st.tuples(st.just("body"), st.binary(max_size=3)),
        st.tuples(st.just("property"), st.sampled_from(("TAGS", "a", "x"))),
        st.tuples(st.just("assign"), st.just("")),
        st.tuples(st.just("copy"), st.booleans()),
    ),
    max_size=8,
)


def act(message: MessageExt, action: tuple[str, Any]) -> MessageExt:
    kind, value = action
    if kind == "read":
        getattr(message, value)
    elif kind == "drop":
        setattr(message, value, getattr(message, value))
    elif kind == "added":
        message.added_property_bytes = value
    elif kind == "more":
        message.added_property_bytes += b"\x02" + value
    elif kind == "bytes":
        message.property_bytes = value
    elif kind == "body":
        message.body = value
    elif kind == "property":
        message.get_property(value)
    elif kind == "assign":
        message.properties = {"own": "1"}
    else:
        message = copy.copy(message) if value else pickle.loads(pickle.dumps(message))
    return message


def shown(message: MessageExt, *, pure: bool) -> list[Any]:
    body, properties = message.body, message.properties
    if pure:
        body, properties = PURE_BODY(message), PURE_PROPERTIES(message)
    return [body, list(properties.items()), *(getattr(message, name) for name in FIELDS)]


@needs_compiled
@given(
    body=st.binary(max_size=40),
    properties=PROPERTIES,
    numbers=st.sampled_from((0, 7, 255, 1 << 40, (1 << 60) - 1)),
    actions=ACTIONS,
)
def test_whatever_is_done_to_a_message_its_fields_are_those_of_the_reference(
    body: bytes, properties: bytes, numbers: int, actions: list[tuple[str, Any]]
) -> None:
    late, expected = both(record_of(body, properties, numbers=numbers))
    for action in actions:
        late, expected = act(late, action), act(expected, action)
        if action[0] == "property":
            assert late.get_property(action[1]) == expected.get_property(action[1])
    assert shown(late, pure=False) == shown(expected, pure=True)


@needs_compiled
@given(st.lists(PROPERTIES, min_size=1, max_size=30))
def test_properties_of_many_messages_are_parsed_alike(texts: list[bytes]) -> None:
    """Also where they have the names of the ones before, and where a dict was changed meanwhile."""
    for text in [text for text in texts for _ in range(10)]:  # then its names are remembered
        late, expected = both(record_of(b"", text))
        assert list(late.properties.items()) == list(PURE_PROPERTIES(expected).items())
        late.properties["own"] = "1"
        late.properties.pop("TAGS", None)


@needs_compiled
def test_names_that_were_remembered_are_compared() -> None:
    for _ in range(20):
        both(record_of(b"", b"TAGS\x011\x02KEYS\x012"))[0].properties.clear()
    for text in (b"TAGS\x011\x02NAME\x012", b"TAGS\x011", b"TAGS\x011\x02KEYS\x01", b"TAGS1\x011"):
        late, expected = both(record_of(b"", text))
        assert late.properties == PURE_PROPERTIES(expected)
    late, _ = both(record_of(b"", b"TAGS\x011\x02KEYS\x013\x02"))
    assert late.properties == {"TAGS": "1", "KEYS": "3"}


@needs_compiled
def test_what_was_added_before_a_change_is_not_added_again() -> None:
    late, expected = both(record_of(b"", b"x\x011"))
    for message in (late, expected):
        message.added_property_bytes = b"TAGS\x011"
        assert message.properties == {"x": "1", "TAGS": "1"}
        del message.properties["TAGS"]
        message.added_property_bytes = b"TAGS\x011\x02KEYS\x012"
    assert late.properties == PURE_PROPERTIES(expected) == {"x": "1", "KEYS": "2"}


@needs_compiled
def test_a_compressed_body_is_inflated() -> None:
    body = b"long " * 1000
    late, expected = both(record_of(compress(body), b"", sys_flag=1))
    assert late.body == expected.body == body
    assert late.body is late.body
    assert late.stored_body == expected.stored_body
    late.sys_flag = 0
    late.body = b"x"
    assert late.body == b"x"


@needs_compiled
def test_a_damaged_body_gives_no_message() -> None:
    record = bytearray(record_of(b"body", b""))
    record[90] ^= 1
    assert compiled.read_at(memoryview(record), 0, len(record), 0, UNUSUAL) is None


@needs_compiled
@pytest.mark.parametrize("name", [*FIELDS, "body", "properties"])
def test_a_message_without_values_says_so(name: str) -> None:
    with pytest.raises(AttributeError):
        getattr(object.__new__(MessageExt), name)


@needs_compiled
@pytest.mark.parametrize("name", ["queue_offset", "body", "properties"])
def test_a_field_is_not_deleted(name: str) -> None:
    late, _ = both(record_of(b"body", b"x\x011"))
    with pytest.raises(AttributeError, match="deleted"):
        delattr(late, name)


@needs_compiled
def test_the_client_reads_offsets_that_were_not_read_yet() -> None:
    late, expected = both(record_of(b"body", b""))
    assert compiled_client.run_of([late], 1) == compiled_client.run_of([expected], 1) == (8, 4)
    late.queue_offset = 9
    assert compiled_client.run_of([late], 1) == (9, 4)
