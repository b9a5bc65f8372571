"""Compiled steps between a pull and its listener do what their pure forms do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from traceback import walk_tb
from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

from client import native
from client.consumer.pull_result import _add_property_bytes
from client.listener.listener import ACK_ALL, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from client.listener.listener_loop import ListenerLoop, LoopResult, _call_quickly
from client.listener.process_queue import Messages, ProcessQueue, _run_of
from client.listener.worker_pool import WorkerPool
from storage.format.message import PROPERTY_CONSUME_START_TIMESTAMP, MessageExt
from tests.support.compiled import compiled_client as compiled, needs_compiled
from tests.support.consuming import QUEUE
from tests.support.messages import pulled

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER

if compiled is not None:
    compiled.bind_pulled(MessageExt)
    compiled.bind_calls(ConsumeConcurrentlyContext, SUCCESS, ACK_ALL)

OFFSETS = st.lists(st.integers(0, 12), max_size=8)
ADDED = st.sampled_from([b"", b"a\x01b", b"c\x01d\x02e\x01f"])


class Call(NamedTuple):
    """What a listener does: with its context, with what is around it, and what it says."""

    answer: object
    ack_index: int | None = None
    level: int | None = None
    keeps: bool = False
    drops: bool = False
    stops: bool = False
    takes: float = 0.0


CALLS = st.lists(
    st.builds(
        Call,
        answer=st.sampled_from([SUCCESS] * 6 + [LATER, None, "CONSUME_SUCCESS", SystemExit(3)]),
        ack_index=st.sampled_from([None, None, None, 0, -1, (1 << 31) - 1]),
        level=st.sampled_from([None, None, None, 0, 5]),
        keeps=st.booleans(),
        drops=st.sampled_from([False] * 9 + [True]),
        stops=st.sampled_from([False] * 9 + [True]),
        takes=st.sampled_from([0.0, 0.0, 0.3]),
    ),
    min_size=1,
    max_size=9,
)


class Listener:
    """Does one thing of a list after the other, and notes what it was given."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.now = 100.0
        self.process_queue = ProcessQueue()
        self.pool = WorkerPool("pool", 1)
        self.seen: list[tuple[object, ...]] = []
        self.kept: list[ConsumeConcurrentlyContext] = []
        self._calls = iter(calls)

    def listen(self, messages: tuple[MessageExt, ...], context: ConsumeConcurrentlyContext) -> Any:
        call = next(self._calls)
        self.seen.append(
            (
                [(message.queue_offset, dict(message.properties)) for message in messages],
                context.message_queue is QUEUE,
                context.ack_index,
                context.delay_level_when_next_consume,
            )
        )
        if call.keeps:
            self.kept.append(context)
        if call.ack_index is not None:
            context.ack_index = call.ack_index
        if call.level is not None:
            context.delay_level_when_next_consume = call.level
        self.process_queue.dropped = call.drops
        self.pool.stopped = call.stops
        self.now += call.takes
        if isinstance(call.answer, BaseException):
            raise call.answer
        return call.answer


def outcome(
    calls: Sequence[Call], requests: Sequence[tuple[MessageExt, ...]], until: float, *, pure: bool
) -> tuple[object, ...]:
    listener = Listener(calls)
    finished: list[Messages] = []
    quick = ListenerLoop(
        listener.listen, QUEUE, listener.process_queue, listener.pool, lambda: listener.now
    )
    left = iter(requests)
    if pure:
        item = f"{PROPERTY_CONSUME_START_TIMESTAMP}\x01{77}".encode()
        ended = _call_quickly(
            left,
            listener.listen,
            QUEUE,
            item,
            until,
            lambda: listener.now,
            listener.process_queue,
            listener.pool,
            finished,
        )
    else:
        ended = quick.run(left, 77, until, finished)
    return (
        listener.seen,
        [(c.ack_index, c.delay_level_when_next_consume, c.message_queue) for c in listener.kept],
        len({id(context) for context in listener.kept}) == len(listener.kept),
        [[message.queue_offset for message in messages] for messages in finished],
        [[m.added_property_bytes for m in messages] for messages in requests],
        len(list(left)),
        ended and _told(ended),
    )


def _told(ended: LoopResult) -> tuple[object, ...]:
    messages, context, status, error = ended
    offsets = [message.queue_offset for message in messages]
    return (offsets, context.ack_index, context.delay_level_when_next_consume, status, error)


def requests_of(added: Sequence[bytes], size: int) -> list[tuple[MessageExt, ...]]:
    messages = pulled(range(len(added)))
    for message, items in zip(messages, added, strict=True):
        message.added_property_bytes = items
    return [tuple(messages[i : i + size]) for i in range(0, len(messages), size)]


@needs_compiled
@given(calls=CALLS, added=st.lists(ADDED, max_size=8), size=st.integers(1, 3))
@pytest.mark.slow
def test_calls_go_as_in_the_pure_form(calls: list[Call], added: list[bytes], size: int) -> None:
    calls = calls * 8  # enough for all messages
    both = [
        outcome(calls, requests_of(added, size), until=100.5, pure=pure) for pure in (True, False)
    ]
    assert both[0] == both[1]


class Rows:
    """Messages that add properties themselves."""

    def __init__(self) -> None:
        self.added: list[bytes] = []

    def add_property_bytes(self, items: bytes) -> None:
        self.added.append(items)


@pytest.mark.parametrize("form", [_call_quickly, pytest.param("compiled", marks=needs_compiled)])
def test_rows_of_a_table_get_the_properties_themselves(form: Any) -> None:
    if form == "compiled":
        form = compiled.call_quickly
    listener = Listener([])
    heard: list[Any] = []

    def listen(messages: Any, context: ConsumeConcurrentlyContext) -> Any:
        heard.append(messages)
        return SUCCESS

    first, second, wrong = Rows(), Rows(), [1]
    (one,) = pulled([7])
    given = (listen, QUEUE, b"N\x01V", 1e12, None, listener.process_queue, listener.pool)
    finished: list[Any] = []
    assert form(iter([first, (one,), second]), *given, finished) is None
    assert heard == finished == [first, (one,), second]
    assert first.added == second.added == [one.added_property_bytes] == [b"N\x01V"]
    with pytest.raises(AttributeError, match="add_property_bytes"):
        form(iter([wrong]), *given, finished)


def test_requests_from_any_iterator_and_the_systems_clock() -> None:
    listener = Listener([Call(SUCCESS)] * 3)
    finished: list[Messages] = []
    quick = ListenerLoop(listener.listen, QUEUE, listener.process_queue, listener.pool, None)
    messages = pulled(range(3))
    far = 1e12  # seconds
    assert quick.run(((one,) for one in messages), 1, far, finished) is None
    assert [m for (m,) in finished] == messages
    (last,) = pulled([9])
    listener = Listener([Call(SUCCESS)])
    quick = quick._replace(listen=listener.listen)
    ended = quick.run(iter([(last,)]), 1, 0.0, finished)
    assert ended is not None, "it is later than 1970"
    assert ended.messages == (last,)


@pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty")
def test_a_context_that_was_not_kept_is_used_again_and_a_kept_one_never() -> None:
    kept: list[ConsumeConcurrentlyContext] = []
    seen: list[int] = []

    def listen(messages: object, context: ConsumeConcurrentlyContext) -> Any:
        seen.append(id(context))
        if len(seen) > 2:
            kept.append(context)
        return SUCCESS

    listener = Listener([])
    quick = ListenerLoop(listen, QUEUE, listener.process_queue, listener.pool, None)
    quick.run(zip(pulled(range(5))), 1, 1e12, [])
    assert seen[0] == seen[1]
    assert len({id(context) for context in kept}) == 3


@pytest.mark.parametrize("pure", [True, False])
def test_an_error_of_a_listener_has_its_traceback_and_none_of_ours(pure: bool) -> None:
    """So the hash of its frames is the same to members with and without the compiled form."""
    listener = Listener([Call(ValueError("no"))])
    parts = (listener.process_queue, listener.pool)
    quick = ListenerLoop(listener.listen, QUEUE, *parts, None)
    requests = iter([tuple(pulled([1]))])
    if pure:
        ended = _call_quickly(requests, listener.listen, QUEUE, b"", 1e12, None, *parts, [])
    else:
        ended = quick.run(requests, 1, 1e12, [])
    assert ended is not None
    assert ended.error is not None
    frames = [frame for frame, _ in walk_tb(ended.error.__traceback__)]
    assert [frame.f_code for frame in frames] == [Listener.listen.__code__]


@needs_compiled
@pytest.mark.parametrize(
    "breaks",
    [
        lambda c: c.call_quickly(iter([(object(),)]), print, 1, b"", 9e9, None, c, c, []),
        lambda c: c.call_quickly(iter([[]]), print, 1, b"", 9e9, None, c, c, []),
        lambda c: c.call_quickly([], print, 1, b"", 9e9, None, c, c, []),
        lambda c: c.call_quickly(iter([]), print, 1, b"", "soon", None, c, c, []),
        lambda c: c.call_quickly(iter([]), print, 1),
        lambda c: c.call_quickly(zip(pulled([1])), lambda *_: SUCCESS, 1, b"", 9e9, None, 1, 2, []),
        lambda c: c.call_quickly(zip(pulled([1])), lambda *_: SUCCESS, 1, b"", 9e9, str, 1, 2, []),
        lambda c: c.add_property_bytes([1], b""),
        lambda c: c.add_property_bytes(1, b""),
        lambda c: c.add_property_bytes([object.__new__(MessageExt)], b""),
        lambda c: c.add_property_bytes(pulled([1]), "text"),
        lambda c: c.run_of([object.__new__(MessageExt)], 1),
        lambda c: c.run_of([1], 1),
        lambda c: c.run_of(pulled([1]), "1"),
        lambda c: c.bind_pulled(3),
        lambda c: c.bind_pulled(int),
        lambda c: c.bind_calls(MessageExt, 1, 2),
    ],
)
def test_what_is_no_message_is_refused(breaks: Callable[[Any], object]) -> None:
    with pytest.raises((TypeError, AttributeError)):
        breaks(compiled)


def test_a_broken_iterator_breaks_the_calls() -> None:
    def broken() -> Any:
        yield tuple(pulled([1]))
        raise OSError("torn")

    listener = Listener([Call(SUCCESS)])
    quick = ListenerLoop(listener.listen, QUEUE, listener.process_queue, listener.pool, None)
    finished: list[Messages] = []
    with pytest.raises(OSError, match="torn"):
        quick.run(broken(), 1, 1e12, finished)
    assert len(finished) == 1


@needs_compiled
@given(offsets=OFFSETS, last=st.integers(-1, 12))
def test_a_run_is_one_for_both_forms(offsets: list[int], last: int) -> None:
    messages = pulled(offsets)
    for message in messages:
        message.stored_body = bytes(message.queue_offset)
    expected = _run_of(messages, last)
    assert compiled.run_of(messages, last) == compiled.run_of(tuple(messages), last) == expected


@needs_compiled
@given(added=st.lists(ADDED, max_size=8), items=ADDED)
def test_properties_are_added_alike_by_both_forms(added: list[bytes], items: bytes) -> None:
    found = []
    for add in (_add_property_bytes, compiled.add_property_bytes):
        (messages,) = requests_of(added, max(1, len(added))) or [()]
        add(messages, items)
        found.append([message.added_property_bytes for message in messages])
    assert found[0] == found[1]


@needs_compiled
def test_nothing_is_kept_of_what_was_called() -> None:
    (message,) = pulled([1])
    listener = Listener([Call(SUCCESS)] * 100)
    quick = ListenerLoop(listener.listen, QUEUE, listener.process_queue, listener.pool, None)
    before = sys.getrefcount(message), sys.getrefcount(SUCCESS), sys.getrefcount(QUEUE)
    for until in (1e12, 0.0) * 20:
        message.added_property_bytes = b"a\x01b"
        quick.run(iter([(message,)]), 1, until, [])
        compiled.run_of([message], 0)
        compiled.add_property_bytes([message], b"c\x01d")
    listener.seen.clear()
    after = sys.getrefcount(message), sys.getrefcount(SUCCESS), sys.getrefcount(QUEUE)
    assert after == before
