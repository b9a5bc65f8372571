"""Messages as people and programs see them."""

import subprocess
import sys
from pathlib import Path

import pytest

import storage
from storage.format.compress import compress
from storage.format.errors import BodyTooLargeError
from storage.format.message import (
    PROPERTY_KEYS,
    RESERVED_PROPERTIES,
    Message,
    MessageExt,
    dlq_topic,
    retry_topic,
    split_keys,
)
from storage.format.record import decode_record, encode_record

ROOT = Path(storage.__file__).parent.parent


def stored(body: bytes = b"x", properties: bytes = b"", sys_flag: int = 0) -> MessageExt:
    return decode_record(
        encode_record(
            topic="TopicTest",
            queue_id=1,
            body=body,
            properties=properties,
            queue_offset=2,
            physical_offset=3,
            store_timestamp=5,
            born_timestamp=4,
            born_host=bytes((1, 2, 3, 4, 0, 0, 0, 5)),
            store_host=bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F)),
            sys_flag=sys_flag,
        )
    )


def test_tags_keys_and_delay_live_in_the_properties() -> None:
    message = Message("T", b"x", tags="TagA", keys=["k1", "k2"], delay_time_level=3)
    assert message.properties == {"TAGS": "TagA", "KEYS": "k1 k2", "DELAY": "3"}
    assert (message.tags, message.keys, message.delay_time_level) == ("TagA", ("k1", "k2"), 3)
    message.tags = None
    message.keys = "k3"
    message.delay_time_level = 0
    assert message.properties == {"KEYS": "k3"}
    assert (message.tags, message.delay_time_level) == (None, 0)


def test_a_message_keeps_its_own_properties() -> None:
    shared = {"a": "b"}
    Message("T", b"x", properties=shared, tags="TagA")
    assert shared == {"a": "b"}


def test_a_delay_that_is_no_number_is_none() -> None:
    assert Message("T", b"x", properties={"DELAY": "soon"}).delay_time_level == 0


@pytest.mark.parametrize(
    ("text", "keys"), [(None, ()), ("", ()), ("a", ("a",)), ("a  b ", ("a", "b")), (" ", ())]
)
def test_keys_are_split_at_blanks(text: str | None, keys: tuple[str, ...]) -> None:
    assert split_keys(text) == keys


def test_a_stored_message_reads_properties_with_and_without_parsing_them() -> None:
    message = stored(properties=b"KEYS\x01a b\x02UNIQ_KEY\x01U1\x02TAGS\x01TagA")
    before = (message.tags, message.keys, message.msg_id, message.index_keys)
    assert message.properties["TAGS"] == "TagA"
    assert before == (message.tags, message.keys, message.msg_id, message.index_keys)
    assert before == ("TagA", ("a", "b"), "U1", ("U1", "a", "b"))
    assert message.get_property("ABSENT") is None


def test_a_message_without_a_client_id_goes_by_the_brokers() -> None:
    message = stored()
    assert message.msg_id == message.offset_msg_id == "7F00000100002A9F0000000000000003"
    assert message.index_keys == ()


def test_a_compressed_body_is_inflated_when_it_is_read() -> None:
    message = stored(compress(b"x" * 1000), sys_flag=0x301)
    assert len(message.stored_body) < 100
    assert message.body == b"x" * 1000
    assert message.body is message.body
    with pytest.raises(BodyTooLargeError):
        message.inflated_body(999)


def test_hosts_are_text() -> None:
    message = stored()
    assert (message.born_host, message.store_host) == ("1.2.3.4:5", "127.0.0.1:10911")


def test_reserved_names_are_values_not_constants() -> None:
    assert PROPERTY_KEYS in RESERVED_PROPERTIES
    assert {"UNIQ_KEY", "WAIT", "TTL", "INNER_MULTI_QUEUE_OFFSET"} <= RESERVED_PROPERTIES
    assert len(RESERVED_PROPERTIES) == 35
    assert not any(name.startswith("PROPERTY_") for name in RESERVED_PROPERTIES)


def test_names_of_retry_and_dead_letter_topics() -> None:
    assert (retry_topic("g"), dlq_topic("g")) == ("%RETRY%g", "%DLQ%g")


def test_a_message_is_made_and_read_without_numpy_and_other_heavy_modules() -> None:
    program = (
        "import sys; import storage.format.message, storage.format.encode, storage.format.record,"
        " storage.format.index_file, storage.format.fastjson, storage.format.message_id;"
        " print([name for name in ('numpy', 'isal', 'datetime', 'inspect')"
        " if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("parsed_before", [False, True])
@pytest.mark.parametrize("stored", [b"", b"a\x011", b"a\x011\x02", b"MAX_OFFSET\x017\x02a\x011"])
def test_properties_can_be_added_as_they_are_stored(stored: bytes, parsed_before: bool) -> None:
    message = MessageExt("T", b"body", stored)
    if parsed_before:
        assert message.properties is not None
    message.added_property_bytes = b"MIN_OFFSET\x010\x02MAX_OFFSET\x0142"
    assert message.get_property("MAX_OFFSET") == "42"
    assert message.get_property("MIN_OFFSET") == "0"
    assert message.get_property("a") == ("1" if stored else None)
    assert message.properties["MAX_OFFSET"] == "42"
    message.added_property_bytes += b"\x02MIN_OFFSET\x013"
    assert message.get_property("MIN_OFFSET") == "3"
    assert message.properties["MIN_OFFSET"] == "3"


def test_properties_that_were_assigned_keep_what_was_added_before_as_it_was_assigned() -> None:
    message = MessageExt("T", b"body", b"a\x011")
    message.added_property_bytes = b"a\x012"
    message.properties = {"a": "3"}
    assert message.get_property("a") == "3"
    message.added_property_bytes += b"\x02b\x014"
    assert (message.properties["a"], message.properties["b"]) == ("3", "4")
