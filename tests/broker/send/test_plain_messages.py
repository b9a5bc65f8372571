"""The fast path of plain messages gives the results of the general path, or is not taken."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from importlib.util import find_spec, module_from_spec
from typing import Any

import pytest
from hypothesis import given, strategies as st

from broker.config import BrokerConfig
from broker.errors import BrokerError
from broker.send.message_builder import MessageBuilder, Origin
from broker.validation import check_message
from client.producer.batch import ITEM_HEAD, encoded_size
from storage.format.encode import MessageInner
from storage.format.message import Message
from storage.format.message_id import offset_msg_ids_pure
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.messages_sent import any_messages, plain_messages

if compiled is not None:
    compiled.bind_message(Message)
    compiled.bind_inner(MessageInner)

pytestmark = needs_compiled
LARGEST = 100
ORIGIN = Origin(1_700_000_000_000, b"\x7f\0\0\1\0\0\x2a\x9f", b"\x0a\0\0\1\0\0\x2a\x9f", 0x302, 3)
CLUSTER = b"CLUSTER\x01DefaultCluster"
BUILDER = MessageBuilder(BrokerConfig(), [1_000] * 18, LARGEST)
LARGEST_BATCH = 10_000
BATCH_BUILDER = MessageBuilder(BrokerConfig(), [1_000] * 18, LARGEST_BATCH)
IDS = st.text("0123456789ABCDEF", min_size=1, max_size=32)


def short_way(message: Message, unique_id: str) -> tuple[MessageInner, str] | None:
    found: tuple[MessageInner, str] | None = compiled.inner_message(
        "D", 3, CLUSTER, LARGEST, ORIGIN, message, unique_id
    )
    return found


def short_way_of_items(
    messages: Sequence[Message], ids: list[str] | None, largest: int = LARGEST_BATCH
) -> tuple[bytes, ...] | None:
    found: tuple[bytes, ...] | None = compiled.encode_sent(
        "T", 2, b"WAIT\x01true\x02" + CLUSTER, largest, ORIGIN, messages, ids
    )
    return found


def general_way_of_items(messages: Sequence[Message], ids: list[str]) -> tuple[Any, ...]:
    """What the general way gives; compiled forms of its second half are tested beside it."""
    inners, msg_ids = BATCH_BUILDER.build_items(messages, 2, ids, ORIGIN)
    return (*compiled.encode_run(inners), ",".join(msg_ids))


@given(plain_messages(), IDS)
def test_a_plain_message_goes_the_short_way_and_is_stored_alike(
    message: Message, unique_id: str
) -> None:
    found = short_way(message, unique_id)
    assert found is not None
    assert found == BUILDER.build_any(message, "D", 3, unique_id, ORIGIN)
    assert type(found[0]) is MessageInner


@given(any_messages(), IDS)
def test_any_message_that_goes_the_short_way_is_stored_as_in_the_general_one(
    message: Message, unique_id: str
) -> None:
    found = short_way(message, unique_id)
    if found is not None:
        assert found == BUILDER.build_any(message, "D", 3, unique_id, ORIGIN)


@given(st.lists(plain_messages(), min_size=1, max_size=5))
@pytest.mark.slow
def test_a_plain_batch_goes_the_short_way_and_is_stored_alike(messages: list[Message]) -> None:
    ids = [f"{number:032X}" for number in range(len(messages))]
    general = general_way_of_items(messages, ids)
    assert short_way_of_items(messages, ids) == general
    assert short_way_of_items(tuple(messages), ids) == general


@given(st.lists(any_messages(), max_size=3))
@pytest.mark.slow
def test_any_batch_that_goes_the_short_way_is_stored_as_in_the_general_one(
    messages: list[Message],
) -> None:
    ids = [f"{number:032X}" for number in range(len(messages))]
    found = short_way_of_items(messages, ids)
    if found is not None:
        assert found == general_way_of_items(messages, ids)


@given(st.lists(plain_messages(), min_size=1, max_size=5))
@pytest.mark.slow
def test_without_ids_to_give_only_messages_that_have_theirs_go_the_short_way(
    messages: list[Message],
) -> None:
    all_have = all("UNIQ_KEY" in message.properties for message in messages)
    assert (short_way_of_items(messages, None) is not None) == all_have


@given(any_messages())
def test_what_looks_plain_is_what_a_client_may_send(message: Message) -> None:
    looks = compiled.look_at(message, LARGEST)
    if looks:
        check_message(message, LARGEST)
        assert looks == (1 if message.properties.get("UNIQ_KEY") else 2)


@given(plain_messages())
def test_a_plain_message_looks_plain(message: Message) -> None:
    assert compiled.look_at(message, LARGEST)


@given(st.lists(any_messages(), max_size=4))
@pytest.mark.slow
def test_a_batch_that_looks_plain_may_be_sent_and_is_so_large(messages: list[Message]) -> None:
    seen = compiled.look_over(messages, "T", LARGEST)
    plain = all(compiled.look_at(m, LARGEST) and m.topic == "T" for m in messages)
    assert (seen is not None) == plain
    if seen is not None:
        missing = sum("UNIQ_KEY" not in message.properties for message in messages)
        assert seen == (missing, encoded_size(messages) - ITEM_HEAD * len(messages))


@given(st.lists(plain_messages(), max_size=6))
@pytest.mark.slow
def test_who_has_no_id_is_given_the_next_one(messages: list[Message]) -> None:
    had = [message.properties.get("UNIQ_KEY") for message in messages]
    ids = [b"%04X" % number for number in range(had.count(None))]
    compiled.give_ids(messages, b"".join(ids), 4)
    given_ids = [new for new, old in zip(ids_of(messages), had, strict=True) if old is None]
    assert given_ids == [unique_id.decode() for unique_id in ids]
    kept = [old for old in had if old is not None]
    assert kept == [new for new, old in zip(ids_of(messages), had, strict=True) if old is not None]


def ids_of(messages: Sequence[Message]) -> list[str]:
    return [message.properties["UNIQ_KEY"] for message in messages]


def test_with_too_few_ids_nothing_is_read_beyond_them() -> None:
    with pytest.raises(ValueError, match="too few ids"):
        compiled.give_ids([Message("T", b"1"), Message("T", b"2")], b"0001", 4)


def test_what_is_no_message_or_half_made_is_not_plain() -> None:
    half_made = Message.__new__(Message)
    keys_of_numbers = Message("T", b"1", properties={1: "a"})  # type: ignore[dict-item]
    body_of_text = Message("T", "text")  # type: ignore[arg-type]
    assert short_way_of_items([body_of_text], ["1"]) is None
    for odd in (half_made, keys_of_numbers, body_of_text, None, "message", Message("T", b"")):
        assert not compiled.look_at(odd, LARGEST)
        assert compiled.look_over([odd], "T", LARGEST) is None
    assert compiled.look_over({}, "T", LARGEST) is None
    assert not compiled.look_at(Message("T", b"x" * 101), LARGEST)


@given(
    st.binary(min_size=8, max_size=8) | st.binary(min_size=20, max_size=20),
    st.lists(st.integers(-1, (1 << 63) - 1), max_size=5),
)
def test_the_ids_of_offsets_are_those_of_each(host: bytes, offsets: list[int]) -> None:
    column = memoryview(array("q", offsets))
    assert compiled.offset_msg_ids(host, offsets) == offset_msg_ids_pure(host, offsets)
    assert compiled.offset_msg_ids(host, column) == offset_msg_ids_pure(host, offsets)
    assert compiled.offset_msg_ids(host, column[::2]) == offset_msg_ids_pure(host, offsets[::2])
    few = [offset & 0x7F for offset in offsets]
    assert compiled.offset_msg_ids(host, memoryview(bytes(few))) == offset_msg_ids_pure(host, few)


def test_a_general_way_that_refuses_is_gone_where_the_short_one_ends() -> None:
    for odd in ({"a": "b\x01"}, {"a": "x" * 40_000}, {"DELAY": "never"}, {"TRAN_MSG": "true"}):
        message = Message("T", b"body", properties=odd)
        assert short_way_of_items([message], ["1"]) is None
        with pytest.raises(BrokerError):
            BATCH_BUILDER.build_items([message], 2, ["1"], ORIGIN)


@given(st.lists(plain_messages(), min_size=1, max_size=3))
@pytest.mark.slow
def test_a_batch_that_is_too_large_does_not_go_the_short_way(messages: list[Message]) -> None:
    ids = [f"{number:032X}" for number in range(len(messages))]
    inners, _ = BATCH_BUILDER.build_items(messages, 2, ids, ORIGIN)
    size = sum(ITEM_HEAD + len(inner.body) + len(inner.properties) for inner in inners)
    assert short_way_of_items(messages, ids, size) is not None
    assert short_way_of_items(messages, ids, size - 1) is None


@given(st.lists(plain_messages(), min_size=1, max_size=3), st.sampled_from([0, 4, 8, 12, 0x302]))
@pytest.mark.slow
def test_hosts_and_bits_of_a_plain_batch_are_those_of_the_general_way(
    messages: list[Message], sys_flag: int
) -> None:
    origin = ORIGIN._replace(sys_flag=sys_flag, born_host=bytes(20))
    ids = [f"{number:032X}" for number in range(len(messages))]
    inners, _ = BATCH_BUILDER.build_items(messages, 2, ids, origin)
    short = compiled.encode_sent(
        "T", 2, b"WAIT\x01true\x02" + CLUSTER, LARGEST_BATCH, origin, messages, ids
    )
    assert short[:4] == compiled.encode_run(inners)


def test_messages_of_one_topic_are_told_from_others() -> None:
    topic = "".join(["To", "pic"])
    messages = [Message(topic, b""), Message(topic, b"")]
    assert compiled.have_topic(messages, topic)
    assert compiled.have_topic(tuple(messages), topic)
    assert not compiled.have_topic([*messages, Message("other", b"")], topic)
    assert not compiled.have_topic([*messages, "x"], topic)
    assert not compiled.have_topic(iter(messages), topic)


def fresh_message_class() -> Any:
    """The class as it is where nothing is compiled."""
    spec = find_spec("storage.format.message")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "compiled", None)
        spec.loader.exec_module(module)
    return module.Message


PURE = fresh_message_class()
needs_made = pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty")
ANYTHING: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "a", "a b", "\ud83d", 7, 0, b"x", ("a", "b"), [], True]
)


def outcome_of(make: Callable[..., None], message: Any, *args: Any, **by_name: Any) -> Any:
    try:
        make(message, *args, **by_name)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    found = [getattr(message, name) for name in Message.__slots__]
    return found, list(message.properties)


@needs_made
@given(
    st.lists(ANYTHING, max_size=3),
    st.dictionaries(
        st.sampled_from(["topic", "body", "tags", "keys", "flag", "delay_time_level", "other"]),
        ANYTHING,
        max_size=4,
    ),
    st.sampled_from([{}, {"properties": None}, {"properties": {"a": "b", "TAGS": "c"}}]),
    st.booleans(),
)
def test_a_message_is_made_alike_of_anything(
    args: list[Any], by_name: dict[str, Any], properties: dict[str, Any], usual: bool
) -> None:
    if usual:
        args = ["T", b"body"]
        by_name = {name: value for name, value in by_name.items() if name not in ("topic", "body")}
    given_all = {**by_name, **properties}
    found = outcome_of(Message.__init__, Message.__new__(Message), *args, **given_all)
    assert found == outcome_of(PURE.__init__, PURE.__new__(PURE), *args, **given_all)


@needs_made
def test_a_kind_of_message_is_made_its_own_way() -> None:
    class Shouting(Message):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value.upper() if name == "body" else value)

    assert Shouting("T", b"quiet", tags="a").body == b"QUIET"
