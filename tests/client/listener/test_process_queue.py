"""The process queue: RocketMQ's numbers, and a model of it that is too simple to be wrong."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from client.listener.process_queue import ProcessQueue
from client.listener.pull_batch import PullBatch, WorkerAcks
from storage.errors import StoreClosedError
from storage.format.message import MessageExt
from tests.support.consuming import QUEUE
from tests.support.examples import examples
from tests.support.manual_time import ManualClock
from tests.support.messages import pulled

MINUTE_MS = 60_000


def filled(first: int, last: int) -> ProcessQueue:
    process_queue = ProcessQueue()
    process_queue.put_message(pulled(range(first, last + 1)))
    return process_queue


def shares_of(messages: Sequence[MessageExt], process_queue: ProcessQueue) -> WorkerAcks:
    return WorkerAcks(PullBatch(tuple(messages), 1, process_queue, QUEUE, lambda pulled: None))


@pytest.mark.conformance("E11", "E13")
def test_the_three_scenarios_of_progress() -> None:
    assert filled(1001, 1010).remove_message(pulled(range(1001, 1011))) == 1011
    assert filled(1001, 1010).remove_message(pulled(range(1001, 1009))) == 1009
    stuck = filled(1001, 1010)
    assert stuck.remove_message(pulled(range(1005, 1011))) == 1001
    assert stuck.remove_message(pulled(range(1002, 1005))) == 1001
    assert stuck.remove_message(pulled([1001])) == 1011


@pytest.mark.conformance("E13", "E14")
def test_a_stuck_message_holds_progress_until_it_is_done() -> None:
    process_queue = filled(2101, 2200)
    assert process_queue.remove_message(pulled(range(2102, 2201))) == 2101
    assert process_queue.remove_message(pulled([2101])) == 2201


@pytest.mark.conformance("E24")
def test_with_1_2_and_7_of_7_done_progress_is_3() -> None:
    process_queue = filled(1, 7)
    assert process_queue.remove_message(pulled([1, 2, 7])) == 3
    assert process_queue.remove_message(pulled([3, 4, 5, 6])) == 8


@pytest.mark.conformance("E11")
def test_an_empty_queue_has_no_progress() -> None:
    process_queue = filled(1, 2)
    assert process_queue.remove_message(pulled([1, 2])) == 3
    assert process_queue.remove_message(pulled([1, 2])) is None
    assert ProcessQueue().remove_message(pulled([1])) is None


@pytest.mark.conformance("E11")
def test_messages_are_counted_once_and_by_the_bytes_of_their_bodies() -> None:
    process_queue = ProcessQueue()
    process_queue.put_message(pulled([1, 2], body=b"12345"))
    process_queue.put_message(pulled([2, 3], body=b"12345"))
    assert (process_queue.msg_count, process_queue.msg_size) == (3, 15)
    process_queue.remove_message(pulled([2], body=b"12345"))
    process_queue.remove_message(pulled([2], body=b"12345"))
    assert (process_queue.msg_count, process_queue.msg_size) == (2, 10)
    process_queue.remove_message(pulled([1, 3]))
    assert (process_queue.msg_count, process_queue.msg_size) == (0, 0)


@pytest.mark.conformance("E11")
def test_an_old_offset_that_comes_again_does_not_move_the_end() -> None:
    process_queue = filled(1, 3)
    process_queue.put_message(pulled([2]))
    assert process_queue.remove_message(pulled([1, 2, 3])) == 4


@pytest.mark.conformance("D6", "E11")
def test_the_span_is_the_distance_of_the_ends() -> None:
    assert ProcessQueue().get_max_span() == 0
    process_queue = filled(7, 7)
    assert process_queue.get_max_span() == 0
    process_queue.put_message(pulled([2008]))
    assert process_queue.get_max_span() == 2001


@pytest.mark.conformance("E12")
def test_only_the_change_from_idle_to_busy_asks_for_a_start() -> None:
    process_queue = ProcessQueue()
    assert not process_queue.put_message([])
    assert process_queue.put_message(pulled([1]))
    assert not process_queue.put_message(pulled([2]))
    assert len(process_queue.take_messages(10)) == 2
    assert not process_queue.put_message(pulled([3]))
    assert len(process_queue.take_messages(10)) == 1
    assert process_queue.take_messages(10) == []
    assert process_queue.put_message(pulled([4]))


@pytest.mark.conformance("F6", "F8")
def test_taken_messages_stay_counted_until_they_are_committed() -> None:
    process_queue = filled(1, 5)
    assert [m.queue_offset for m in process_queue.take_messages(3)] == [1, 2, 3]
    assert (process_queue.msg_count, process_queue.has_temp_message()) == (5, True)
    assert process_queue.commit() == 4
    assert process_queue.msg_count == 2
    assert process_queue.commit() is None


@pytest.mark.conformance("F6")
def test_suspended_messages_are_taken_again_first() -> None:
    process_queue = filled(1, 5)
    taken = process_queue.take_messages(2)
    process_queue.make_message_to_consume_again(taken)
    assert process_queue.take_messages(3)[:2] == taken
    process_queue.rollback()
    assert [m.queue_offset for m in process_queue.take_messages(9)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("gone", [1, 2])
def test_what_was_sent_away_does_not_come_back_and_is_committed_in_its_place(gone: int) -> None:
    process_queue = filled(1, 3)
    taken = process_queue.take_messages(2)
    kept = [message for message in taken if message.queue_offset != gone]
    process_queue.note_sent_away([message for message in taken if message not in kept])
    process_queue.make_message_to_consume_again(kept)
    assert process_queue.commit() == (2 if gone == 1 else None), "what is left comes again"
    assert process_queue.msg_count == (2 if gone == 1 else 3)
    process_queue.rollback()
    assert process_queue.take_messages(1) == kept
    assert process_queue.commit() == 3
    assert process_queue.msg_count == 1


@pytest.mark.conformance("F6")
def test_a_batch_that_was_cleared_away_does_not_come_back() -> None:
    process_queue = filled(1, 2)
    taken = process_queue.take_messages(2)
    process_queue.clear()
    process_queue.make_message_to_consume_again(taken)
    assert process_queue.take_messages(9) == []
    assert process_queue.commit() is None


@pytest.mark.conformance("E11")
def test_clearing_forgets_everything() -> None:
    process_queue = filled(1, 5)
    process_queue.finished.append(shares_of(pulled([1]), process_queue))
    process_queue.clear()
    assert (process_queue.msg_count, process_queue.msg_size, process_queue.get_max_span()) == (
        0,
    ) * 3
    assert not process_queue.finished
    assert process_queue.queue_offset_max == 0


@pytest.mark.conformance("E11")
def test_a_pull_leaves_as_a_whole_and_what_is_before_it_holds_progress() -> None:
    process_queue = ProcessQueue()
    first, second, third = (tuple(pulled(range(n, n + 10), body=b"12")) for n in (0, 10, 20))
    for messages in (first, second, third):
        process_queue.put_message(messages)
    assert process_queue.remove_message(second) == 0
    assert process_queue.remove_message(first[:5]) == 5
    assert process_queue.remove_message(third) == 5
    assert (process_queue.msg_count, process_queue.msg_size) == (5, 10)
    assert process_queue.remove_message(first) == 30
    assert process_queue.remove_message(second) is None


@pytest.mark.conformance("E11")
def test_what_a_thread_has_finished_is_seen_before_it_ends() -> None:
    process_queue = filled(1, 4)
    messages = pulled(range(1, 5))
    share = shares_of(messages, process_queue)
    share.requests += [(message,) for message in messages[:3]]
    assert share.take() == (messages[:3], 3, 3)
    assert share.take() == ([], 0, 0)
    share.requests.append((messages[3],))
    assert share.take() == (messages[3:], 1, 1)


def test_what_was_given_back_is_done_with_and_counts_as_no_success() -> None:
    process_queue = filled(1, 6)
    messages = tuple(pulled(range(1, 7)))
    share = shares_of(messages, process_queue)
    share.requests.append((messages[1],))
    share.given += [(messages[0],), (messages[2],)]
    taken, requests, ok = share.take()
    assert (sorted(m.queue_offset for m in taken), requests, ok) == ([1, 2, 3], 1, 1)
    assert share.take() == ([], 0, 0)
    whole = shares_of(messages, process_queue)
    whole.requests += [(message,) for message in messages[:2]]
    whole.given += [(message,) for message in messages[2:]]
    taken, requests, ok = whole.take()
    assert taken is messages, "as it was put"
    assert (requests, ok) == (2, 2)


def test_the_backlog_is_told_by_the_last_message() -> None:
    process_queue = ProcessQueue()
    messages = pulled([1, 2])
    messages[1].added_property_bytes = b"MAX_OFFSET\x0110"
    process_queue.put_message(messages)
    assert process_queue.msg_acc_cnt == 8
    for end in (b"4", b"3"):  # at the end or past it nothing is known: as in RocketMQ it stays
        last = pulled([4])
        last[0].added_property_bytes = b"MAX_OFFSET\x01" + end
        process_queue.put_message(last)
        assert process_queue.msg_acc_cnt == 8


@pytest.mark.conformance("F3", "C11")
def test_locks_and_pulls_grow_old() -> None:
    clock = ManualClock()
    process_queue = ProcessQueue(clock)
    clock.advance(30_000)
    assert not process_queue.is_lock_expired()
    clock.advance(1)
    assert process_queue.is_lock_expired()
    clock.advance(89_999)
    assert not process_queue.is_pull_expired()
    clock.advance(1)
    assert process_queue.is_pull_expired()


def begun(clock: ManualClock, messages: list[MessageExt]) -> None:
    for message in messages:
        message.added_property_bytes = b"CONSUME_START_TIME\x01%d" % clock.now_ms()


@pytest.mark.conformance("E18", "E19")
def test_an_expired_head_is_sent_back_and_leaves() -> None:
    clock = ManualClock()
    process_queue = ProcessQueue(clock)
    messages = pulled([1, 2, 3], body=b"123")
    process_queue.put_message(messages)
    begun(clock, messages[:2])
    back: list[MessageExt] = []
    clock.advance(15 * MINUTE_MS)
    assert process_queue.clean_expired_msg(15 * MINUTE_MS, back.append) == 0
    clock.advance(1)
    assert process_queue.clean_expired_msg(15 * MINUTE_MS, back.append) == 2
    assert back == messages[:2]
    assert (process_queue.msg_count, process_queue.msg_size) == (1, 3)


@pytest.mark.conformance("E19")
def test_only_the_head_is_looked_at_and_16_messages_at_most() -> None:
    clock = ManualClock()
    process_queue = ProcessQueue(clock)
    messages = pulled(range(40))
    process_queue.put_message(messages)
    begun(clock, messages[1:])
    clock.advance(2 * MINUTE_MS)
    back: list[MessageExt] = []
    assert process_queue.clean_expired_msg(MINUTE_MS, back.append) == 0  # the head has not begun
    begun(clock, messages[:1])
    clock.advance(2 * MINUTE_MS)
    assert process_queue.clean_expired_msg(MINUTE_MS, back.append) == 16
    assert process_queue.clean_expired_msg(MINUTE_MS, back.append) == 16
    assert process_queue.clean_expired_msg(MINUTE_MS, back.append) == 8


@pytest.mark.conformance("E19", "H17")
def test_an_expired_message_that_can_not_be_sent_back_stays() -> None:
    clock = ManualClock()
    process_queue = ProcessQueue(clock)
    messages = pulled([1, 2])
    process_queue.put_message(messages)
    begun(clock, messages)
    clock.advance(2 * MINUTE_MS)
    tries: list[MessageExt] = []

    def refuse(message: MessageExt) -> None:
        tries.append(message)
        raise StoreClosedError("closed")

    assert process_queue.clean_expired_msg(MINUTE_MS, refuse) == 0
    assert tries == [messages[0], messages[0]]
    assert process_queue.msg_count == 2


@pytest.mark.conformance("E19")
def test_a_head_that_finishes_while_it_is_sent_back_is_not_removed_twice() -> None:
    clock = ManualClock()
    process_queue = ProcessQueue(clock)
    messages = pulled([1, 2])
    process_queue.put_message(messages)
    begun(clock, messages[:1])
    clock.advance(2 * MINUTE_MS)

    def finish(message: MessageExt) -> None:
        process_queue.remove_message([message])

    assert process_queue.clean_expired_msg(MINUTE_MS, finish) == 0
    assert process_queue.msg_count == 1


def test_running_info_tells_offsets_and_nothing_where_there_are_none() -> None:
    empty = ProcessQueue().info()
    assert empty["cached_msg_min_offset"] is None
    process_queue = filled(5, 9)
    process_queue.take_messages(2)
    info = process_queue.info()
    assert (info["cached_msg_min_offset"], info["cached_msg_max_offset"]) == (7, 9)
    assert (info["transaction_msg_min_offset"], info["transaction_msg_max_offset"]) == (5, 6)


def test_a_new_queue_is_empty_and_without_a_failure() -> None:
    clock = ManualClock()
    queue = ProcessQueue(clock)
    assert (queue.dropped, queue.offset_illegal, queue.locked) == (False, False, False)
    assert (queue.msg_count, queue.msg_size, queue.queue_offset_max, queue.msg_acc_cnt) == (0,) * 4
    assert (queue.slow_offset, queue.settled_ms) == (-1, -1)
    assert queue.last_failure is None
    assert not queue.has_temp_message()
    assert queue.info() == {
        "cached_msg_min_offset": None,
        "cached_msg_max_offset": None,
        "cached_msg_count": 0,
        "cached_msg_size_in_mib": 0,
        "transaction_msg_min_offset": None,
        "transaction_msg_max_offset": None,
        "transaction_msg_count": 0,
        "first_msg_reconsume_times": None,
        "last_failure": None,
        "locked": False,
        "try_unlock_times": 0,
        "last_lock_timestamp": clock.now_ms(),
        "dropped": False,
        "last_pull_timestamp": clock.now_ms(),
        "last_consume_timestamp": clock.now_ms(),
    }


def test_running_info_has_the_first_message_and_sizes_in_mib() -> None:
    queue = ProcessQueue()
    first, *others = pulled(range(5, 8), body=bytes(1 << 20))
    first.reconsume_times = 3
    queue.put_message([first, *others])
    queue.last_failure = "it failed"
    info = queue.info()
    assert (info["cached_msg_count"], info["cached_msg_size_in_mib"]) == (3, 3)
    assert (info["first_msg_reconsume_times"], info["last_failure"]) == (3, "it failed")
    assert (info["transaction_msg_count"], info["transaction_msg_min_offset"]) == (0, None)
    assert queue.take_messages(1) == [first]
    info = queue.info()
    assert (info["cached_msg_count"], info["transaction_msg_count"]) == (2, 1)
    assert (info["first_msg_reconsume_times"], info["last_failure"]) == (3, "it failed")
    first.reconsume_times = 0
    assert queue.info()["last_failure"] is None
    queue.commit()
    assert queue.info()["first_msg_reconsume_times"] == 0


def test_the_first_offset_and_those_that_are_not_finished_are_known() -> None:
    queue = filled(5, 9)
    assert (queue.first_offset(), queue.held({4, 5, 7, 9, 10})) == (5, {5, 7, 9})
    queue.remove_message(pulled([5, 7]))
    assert (queue.first_offset(), queue.held({4, 5, 7, 9, 10})) == (6, {9})
    assert ProcessQueue().first_offset() is None
    assert ProcessQueue().held({1}) == set()


def test_the_backlog_of_a_message_that_does_not_say_it_is_unknown() -> None:
    queue = ProcessQueue()
    queue.put_message(pulled([0]))
    assert queue.msg_acc_cnt == 0


def test_the_end_moves_with_messages_that_overlap_older_ones() -> None:
    queue = filled(1, 3)
    queue.put_message(pulled([3, 4, 5]))
    assert queue.remove_message(pulled(range(1, 6))) == 6


class ProcessQueueMachine(RuleBasedStateMachine):
    """Any order of calls, beside two dicts and a maximum."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = ProcessQueue()
        self.waiting: dict[int, int] = {}  # offset -> body size
        self.taken: dict[int, int] = {}
        self.objects: dict[int, MessageExt] = {}  # of ``taken``
        self.sent_away: dict[int, int] = {}
        self.most = 0
        self.busy = False
        self.pulls: list[list[MessageExt]] = []

    @rule(start=st.integers(0, 60), count=st.integers(1, 40), size=st.integers(0, 3))
    def put(self, start: int, count: int, size: int) -> None:
        held = {*self.taken, *self.sent_away}
        offsets = [o for o in range(start, start + count) if o not in held]
        known = {o: s for o, s in self.waiting.items() if o in offsets}
        messages = [pulled([o], body=bytes(known.get(o, size)))[0] for o in offsets]
        new = [o for o in offsets if o not in self.waiting]
        dispatch = self.queue.put_message(messages)
        self.pulls.append(messages)
        assert dispatch == (bool(offsets) and not self.busy)
        self.busy = self.busy or bool(offsets)
        self.waiting.update(dict.fromkeys(new, size))
        if new:
            self.most = new[-1]

    @rule(offsets=st.sets(st.integers(0, 100), max_size=50))
    def remove(self, offsets: set[int]) -> None:
        self.remove_these(pulled(sorted(offsets)))

    def remove_these(self, messages: list[MessageExt]) -> None:
        expected = None
        if self.waiting:
            for message in messages:
                self.waiting.pop(message.queue_offset, None)
            expected = min(self.waiting) if self.waiting else self.most + 1
        assert self.queue.remove_message(messages) == expected

    @rule(data=st.data())
    def remove_a_pull(self, data: st.DataObject) -> None:
        if self.pulls:
            self.remove_these(self.pulls.pop(data.draw(st.integers(0, len(self.pulls) - 1))))

    @rule(count=st.integers(1, 40))
    def put_behind(self, count: int) -> None:
        first = max((*self.waiting, *self.taken, *self.sent_away, self.most), default=0) + 1
        self.put(first, count, 1)

    @rule()
    def remove_all(self) -> None:
        self.remove(set(self.waiting))

    @rule(count=st.integers(1, 5))
    def take(self, count: int) -> None:
        first = sorted(self.waiting)[:count]
        messages = self.queue.take_messages(count)
        assert [m.queue_offset for m in messages] == first
        self.objects = {message.queue_offset: message for message in messages}
        self.taken.update((offset, self.waiting.pop(offset)) for offset in first)
        self.busy = self.busy and bool(first)

    @rule()
    def commit(self) -> None:
        first = min(self.waiting, default=1 << 60)
        gone = {offset for offset in self.sent_away if offset < first}
        expected = max((*self.taken, *gone)) + 1 if self.taken or gone else None
        assert self.queue.commit() == expected
        self.taken.clear()
        for offset in gone:
            del self.sent_away[offset]

    @rule(data=st.data())
    def suspend(self, data: st.DataObject) -> None:
        batch = [offset for offset in self.objects if offset in self.taken]
        gone = data.draw(st.sets(st.sampled_from(batch))) if batch else set()
        self.queue.note_sent_away([self.objects[offset] for offset in gone])
        self.sent_away.update((offset, self.taken.pop(offset)) for offset in gone)
        again = [offset for offset in batch if offset not in gone]
        self.queue.make_message_to_consume_again([self.objects[offset] for offset in again])
        self.waiting.update((offset, self.taken.pop(offset)) for offset in again)

    @rule()
    def rollback(self) -> None:
        self.queue.rollback()
        self.waiting.update(self.taken)
        self.taken.clear()

    @rule()
    def clear(self) -> None:
        self.queue.clear()
        self.waiting.clear()
        self.taken.clear()
        self.sent_away.clear()
        self.most = 0

    @invariant()
    def agrees(self) -> None:
        parts = (self.waiting, self.taken, self.sent_away)
        assert self.queue.msg_count == sum(map(len, parts))
        assert self.queue.msg_size == sum(sum(part.values()) for part in parts)
        span = max(self.waiting) - min(self.waiting) if self.waiting else 0
        assert self.queue.get_max_span() == span
        assert self.queue.has_temp_message() == bool(self.waiting)


TestAnyOrderOfCalls = pytest.mark.conformance("E11")(ProcessQueueMachine.TestCase)
TestAnyOrderOfCalls.settings = settings(
    max_examples=examples(60), stateful_step_count=25, deadline=None
)


@pytest.mark.conformance("E23", "E26")
@given(order=st.permutations(range(2101, 2131)))
def test_whatever_the_order_of_completion_progress_is_the_smallest_unfinished(
    order: list[int],
) -> None:
    process_queue = filled(2101, 2130)
    unfinished = set(order)
    for offset in order:
        unfinished.remove(offset)
        expected = min(unfinished, default=2131)
        assert process_queue.remove_message(pulled([offset])) == expected
