"""Messages by a template: stored as by the general path, or not by the template.

A client that says the same with one object goes the short way from its third message on.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from broker.api.pull import PullRequest
from broker.api.send import SendOptions, SendResult
from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from broker.errors import BrokerError, BrokerSystemError, NoPermissionError
from broker.send.message_builder import MessageBuilder
from storage.config import SMALL_STORE, FlushDiskType, StoreConfig
from storage.configs.topics import PERM_READ, TopicConfig
from storage.errors import StoreClosedError
from storage.format.encode import MessageInner
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.examples import examples
from tests.support.manual_time import ManualClock
from tests.support.messages_sent import any_messages, plain_messages

pytestmark = needs_compiled
NOW = 1_700_000_000_000
OPTIONS = SendOptions("g", born_timestamp=NOW - 5)


@pytest.fixture(autouse=True)
def with_compiled_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", compiled)
    compiled.bind_message(Message)
    compiled.bind_inner(MessageInner)


@contextmanager
def a_broker(
    root: Path,
    clock: ManualClock | None = None,
    config: StoreConfig = SMALL_STORE,
    *,
    exclusive: bool = True,
) -> Iterator[EmbeddedBroker]:
    """With the write lock to itself, so that the path does not depend on the time."""
    if not root.exists():
        MessageStore.create(root, config)
    now = (clock or ManualClock(NOW)).now_ms
    with EmbeddedBroker.open(
        root, BrokerConfig(), store_config=config, clock=now, exclusive=exclusive
    ) as broker:
        broker.update_topic(TopicConfig("T", 2, 2))
        yield broker


def named(name: str, **parts: Any) -> Message:
    message = Message("T", b"body", **parts)
    message.properties["UNIQ_KEY"] = name
    return message


def walk(broker: EmbeddedBroker, options: SendOptions = OPTIONS) -> None:
    """Send so much that the way is known, and the store has learned both queues."""
    for number in range(6):
        broker.send(named(f"W{number}"), number % 2, options)


@contextmanager
def long_ways() -> Iterator[list[str]]:
    """Notes which messages take the general path."""
    gone: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is MessageBuilder.build.__code__:
            gone.append(frame.f_locals["message"].properties["UNIQ_KEY"])

    sys.setprofile(note)
    try:
        yield gone
    finally:
        sys.setprofile(None)


@contextmanager
def long_ways_of_batches() -> Iterator[list[int]]:
    """Notes the sizes of the batches that take the general path."""
    gone: list[int] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is MessageStore.put.__code__:
            gone.append(len(frame.f_locals["records"]))

    sys.setprofile(note)
    try:
        yield gone
    finally:
        sys.setprofile(None)


def outcome(send: Callable[[], SendResult]) -> object:
    try:
        return send()
    except (BrokerError, TypeError, AttributeError) as error:
        return type(error), str(error)


def written(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for folder in ("commitlog", "consumequeue", "index")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    }


def _copy_with(message: Message, properties: dict[str, str]) -> Message:
    copy = Message(message.topic, message.body, flag=message.flag)
    copy.properties = {**properties, **message.properties}
    return copy


@pytest.mark.slow
@given(st.lists(st.tuples(any_messages(), st.integers(-1, 2)), max_size=12))
@settings(max_examples=examples(40))
def test_what_goes_the_short_way_is_stored_and_answered_as_in_the_long_one(
    tmp_path_factory: pytest.TempPathFactory, sent: list[tuple[Message, int]]
) -> None:
    folder = tmp_path_factory.mktemp("ways")
    files, results = [], []
    for name in ("short", "long"):
        with a_broker(folder / name) as broker:
            if name == "long":
                broker._sender._put_sent = None
            walk(broker)
            answers = []
            for number, (message, queue_id) in enumerate(sent):
                copy = _copy_with(message, {"UNIQ_KEY": f"M{number}"})
                answers.append(outcome(partial(broker.send, copy, queue_id, OPTIONS)))
            results.append(answers)
        files.append(written(folder / name))
    shutil.rmtree(folder)  # of each example; pytest removes none before the end
    assert results[0] == results[1]
    assert files[0] == files[1]


_BATCHES = st.lists(plain_messages() | any_messages(), min_size=1, max_size=4)


@pytest.mark.slow
@given(st.lists(st.tuples(_BATCHES, st.integers(-1, 2), st.booleans()), max_size=8))
@settings(max_examples=examples(40))
def test_batches_by_a_template_are_stored_and_answered_as_others(
    tmp_path_factory: pytest.TempPathFactory, sent: list[tuple[list[Message], int, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("ways")
    files, results = [], []
    for name in ("short", "long"):
        with a_broker(folder / name) as broker:
            if name == "long":
                broker._sender._put_sent_batch = None
            walk(broker)
            broker.send_batch([named("first"), named("second")], 1, OPTIONS)
            answers = []
            for number, (messages, queue_id, has_ids) in enumerate(sent):
                copies = []
                for place, message in enumerate(messages):
                    unique_id = {"UNIQ_KEY": f"M{number}-{place}"} if has_ids or place else {}
                    copies.append(_copy_with(message, unique_id))
                send = partial(broker.send_batch, copies, queue_id, OPTIONS)
                answers.append(_without_new_ids(outcome(send), has_ids))
            results.append(answers)
        if all(has_ids for _, _, has_ids in sent):
            files.append(written(folder / name))
    shutil.rmtree(folder)
    assert results[0] == results[1]
    assert not files or files[0] == files[1]


def _without_new_ids(answer: object, has_ids: bool) -> object:
    return answer if has_ids or not isinstance(answer, SendResult) else answer._replace(msg_id="")


def test_batches_of_a_client_that_says_the_same_are_put_by_a_template(tmp_path: Path) -> None:
    with a_broker(tmp_path / "s") as broker:
        walk(broker)
        broker.send_batch([named("w1"), named("w2")], 0, OPTIONS)  # the index is known now
        broker.send_batch([named("w3"), named("w4")], 1, OPTIONS)
        with long_ways_of_batches() as gone:
            results = [
                broker.send_batch(
                    [named(f"A{n}", tags="t", keys="k"), named(f"B{n}")], n % 2, OPTIONS
                )
                for n in range(4)
            ]
            broker.send_batch([named("C")] * 3, 0, OPTIONS._replace(born_timestamp=NOW))
            broker.send_batch([named("D")] * 4, None, OPTIONS)
            broker.send_batch([named("E")] * 5, 0)
            broker.send_batch([named("F"), Message("T", b"no id")], 0, OPTIONS)
        assert gone == [3, 4, 5, 2]
        assert [r.queue_offset for r in results] == [5, 5, 7, 7]
        assert {type(result) for result in results} == {SendResult}
        assert results[0].msg_id == "A0,B0"
        pulled = broker.pull(PullRequest("reader", "T", 1, 5)).messages
        assert [message.msg_id for message in pulled][:4] == ["A1", "B1", "A3", "B3"]
        assert [message.body for message in pulled][:4] == [b"body"] * 4
        ids = ",".join([pulled[2].offset_msg_id, pulled[3].offset_msg_id])
        assert results[3].offset_msg_id == ids


def test_a_batch_that_cannot_be_put_at_once_is_encoded_once(tmp_path: Path) -> None:
    with a_broker(tmp_path / "s") as broker:
        walk(broker)
        broker.update_topic(TopicConfig("T", 3, 3))
        walk(broker)
        messages = [named("A"), named("B")]
        assert broker.store is not None
        way = broker._sender._ways["T"]
        encoded = broker.store.put_sent_batch(messages, 2, way)  # nothing was put into queue 2 yet
        assert len(encoded) == 5
        assert encoded[-1] == "A,B"
        assert broker.send_batch(messages, 2, OPTIONS).queue_offset == 0
        assert broker.send_batch(messages, 2, OPTIONS).queue_offset == 2


def test_only_a_client_that_says_the_same_goes_it(tmp_path: Path) -> None:
    with a_broker(tmp_path / "s") as broker:
        walk(broker)
        with long_ways() as gone:
            results = [
                broker.send(named(f"A{n}", tags="t", keys="k"), n % 2, OPTIONS) for n in range(4)
            ]
            broker.send(named("B"), 0, OPTIONS._replace(born_timestamp=NOW))
            broker.send(named("C"), None, OPTIONS)
            broker.send(named("D"), 0)
        assert gone == ["B", "C", "D"]
        assert [r.queue_offset for r in results] == [3, 3, 4, 4]
        assert {type(result) for result in results} == {SendResult}
        pulled = broker.pull(PullRequest("reader", "T", 1, 0)).messages
        assert [message.msg_id for message in pulled][3:5] == ["A1", "A3"]
        assert pulled[4].offset_msg_id == results[3].offset_msg_id


@pytest.mark.parametrize("by_another", [False, True])
def test_a_changed_topic_ends_it_at_once(tmp_path: Path, by_another: bool) -> None:
    root = tmp_path / "s"
    with ExitStack() as stack:
        broker = stack.enter_context(a_broker(root, exclusive=not by_another))
        other = stack.enter_context(a_broker(root, exclusive=False)) if by_another else broker
        walk(broker)
        with pytest.raises(BrokerSystemError, match="no queue 2"):
            broker.send(named("a"), 2, OPTIONS)
        with long_ways() as gone:
            broker.send(named("a"), 1, OPTIONS)
        assert by_another or gone == []
        other.update_topic(TopicConfig("T", 3, 3))
        assert broker.send(named("b"), 2, OPTIONS).queue_offset == 0
        walk(broker)
        other.update_topic(TopicConfig("T", 2, 2))
        with pytest.raises(BrokerSystemError, match="no queue 2"):
            broker.send(named("c"), 2, OPTIONS)
        walk(broker)
        other.update_topic(TopicConfig("T", 1, 1, PERM_READ))
        with pytest.raises(NoPermissionError):
            broker.send(named("d"), 0, OPTIONS)


def test_what_is_edited_by_hand_ends_it_a_moment_later(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    root = tmp_path / "s"
    with a_broker(root, clock) as broker:
        walk(broker)
        file = root / "config" / "topics.json"
        text = file.read_text()
        assert '"perm":6' in text.replace(" ", "")
        file.write_text(text.replace('"perm":6', f'"perm":{PERM_READ}'))
        clock.advance(1)
        with long_ways() as gone:
            broker.send(named("a"), 0, OPTIONS)
            assert gone == []
            clock.advance(1)
            with suppress(NoPermissionError):  # by the real time it may be too early for that
                broker.send(named("b"), 0, OPTIONS)
                assert gone == ["b"]
        while isinstance(outcome(lambda: broker.send(named("c"), 0)), SendResult):
            clock.advance(1)  # the table itself is read a tenth of a second later
        with pytest.raises(NoPermissionError):
            broker.send(named("d"), 0, OPTIONS)


def test_a_closed_store_takes_nothing(tmp_path: Path) -> None:
    with a_broker(tmp_path / "s") as broker:
        walk(broker)
        broker.close()
        with pytest.raises(StoreClosedError):
            broker.send(named("a"), 0, OPTIONS)
        with pytest.raises(StoreClosedError):
            broker.send_batch([named("a")], 0, OPTIONS)


def test_where_each_put_is_synced_all_go_the_long_way(tmp_path: Path) -> None:
    config = SMALL_STORE.with_(flush_disk_type=FlushDiskType.SYNC_FLUSH)
    with a_broker(tmp_path / "s", config=config) as broker:
        walk(broker)
        with long_ways() as gone:
            broker.send(named("a"), 0, OPTIONS)
        assert gone == ["a"]
        with long_ways_of_batches() as batches:
            broker.send_batch([named("b"), named("c")], 0, OPTIONS)
        assert batches == [2]


@pytest.mark.parametrize("wrong", [(), ("T",) * 12, [1], None])
def test_what_is_no_way_is_refused(tmp_path: Path, wrong: Any) -> None:
    with a_broker(tmp_path / "s") as broker:
        walk(broker)
        assert broker.store is not None
        put_sent = broker.store._appender.one.put_sent
        put_sent_batch = broker.store._appender.one.put_sent_batch
        with pytest.raises(TypeError, match="a SendTemplate is required"):
            put_sent(named("a"), 0, wrong)
        with pytest.raises(TypeError, match="a SendTemplate is required"):
            put_sent_batch([named("a")], 0, wrong)
        way = broker._sender._ways["T"]
        broker.update_topic(TopicConfig("U", 1, 1))
        for number in range(3):
            message = Message("U", b"body", properties={"UNIQ_KEY": f"U{number}"})
            broker.send(message, 0, OPTIONS)
        way = way._replace(changes=broker.store.config_changes())
        for odd in ({"queues": [1]}, {"changes": "x"}, {"until_ms": None}, {"topic": "U"}):
            assert put_sent(named("a"), 0, way._replace(**odd)) is None
            assert put_sent_batch([named("a")], 0, way._replace(**odd)) is None
        wrong_parts: tuple[dict[str, Any], ...] = (
            {"origin": (1,)},
            {"added": "text"},
            {"largest": "1"},
        )
        for parts in wrong_parts:
            with pytest.raises(TypeError):
                put_sent(named("a"), 0, way._replace(**parts))
        odd_parts: tuple[dict[str, Any], ...] = ({"added_to_items": "text"}, {"largest": "1"})
        for parts in odd_parts:
            with pytest.raises(TypeError):
                put_sent_batch([named("a")], 0, way._replace(**parts))
        no_origin: Any = (1,)
        assert put_sent_batch([named("a")], 0, way._replace(origin=no_origin)) is None
        for odd_batch in ([], (), [1], None, [named("a"), None], [Message("U", b"x")]):
            assert put_sent_batch(odd_batch, 0, way) is None
        assert put_sent(named("a"), 0, way._replace(largest=3)) is None
        assert put_sent(named("a"), 2, way) is None
        assert put_sent(Message("T", b"no id"), 0, way) is None
        assert put_sent(named("a"), 0, way) is not None
