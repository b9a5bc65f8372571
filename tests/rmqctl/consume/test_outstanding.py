"""Messages that a listener has consumed, until their outcome is recorded."""

import pytest

from client.listener.process_queue import ProcessQueue
from rmqctl.consume import outstanding
from rmqctl.consume.outstanding import Outstanding
from tests.support.consuming import QUEUE
from tests.support.messages import pulled


def finished(process_queue, *calls):
    """What ``settle`` does: the outcome of these calls is recorded, from the second time on."""
    waiting = [*calls, ()]
    idle = 0

    def settle():
        nonlocal idle
        idle += not waiting
        assert idle < 2, "it waits for other messages"
        if waiting and (messages := waiting.pop()):
            process_queue.remove_message(messages)

    return settle, waiting


def test_it_waits_until_each_message_is_recorded():
    process_queue, found = ProcessQueue(), Outstanding()
    calls = [pulled(range(first, first + 10)) for first in (0, 10, 20)]
    for messages in calls:
        process_queue.put_message(messages)
        found.add(QUEUE, messages, process_queue)
    settle, waiting = finished(process_queue, *calls)
    found.wait(QUEUE, process_queue, settle)
    assert not waiting


@pytest.mark.parametrize("offsets", [(3, 5, 9), (9, 3), (4, 6, 5), (7,)])
def test_offsets_with_gaps_and_in_any_order(offsets):
    """Those in between are not waited for: they are of other calls."""
    process_queue, found = ProcessQueue(), Outstanding()
    process_queue.put_message(pulled(range(12)))
    messages = pulled(offsets)
    found.add(QUEUE, messages, process_queue)
    settle, waiting = finished(process_queue, messages)
    found.wait(QUEUE, process_queue, settle)
    assert not waiting
    assert process_queue.held(set(range(12))) == set(range(12)) - set(offsets)


def test_what_was_taken_back_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(outstanding, "_LONGEST_S", 60)
    process_queue, found = ProcessQueue(), Outstanding()
    messages = pulled(range(10))
    process_queue.put_message(messages)
    found.add(QUEUE, messages, process_queue)
    found.take_back(QUEUE, messages[4:])
    settle, waiting = finished(process_queue, messages[:4])
    found.wait(QUEUE, process_queue, settle)
    assert not waiting
    found.take_back(QUEUE, messages[:4])
    found.wait(QUEUE, process_queue, lambda: None)


def test_whole_runs_leave_whole_however_many_there_were():
    """To ask for single messages sorts them, and makes each later removal slow."""
    process_queue, found = ProcessQueue(), Outstanding()
    runs = [tuple(pulled(range(first, first + 10))) for first in range(0, 2000, 10)]
    for messages in runs:
        process_queue.put_message(messages)
        found.add(QUEUE, messages, process_queue)
    assert not process_queue._tree
    for messages in runs:
        process_queue.remove_message(messages)
        found.add(QUEUE, messages, process_queue)
    assert not process_queue.msg_count
    assert len(found._calls[QUEUE]) <= outstanding._PRUNE_AT + 1


def test_calls_are_kept_while_an_earlier_message_is_not_finished():
    process_queue, found = ProcessQueue(), Outstanding()
    stuck = tuple(pulled(range(3)))
    process_queue.put_message(stuck)
    found.add(QUEUE, stuck, process_queue)
    for first in range(3, 600, 3):
        messages = tuple(pulled(range(first, first + 3)))
        process_queue.put_message(messages)
        found.add(QUEUE, messages, process_queue)
        process_queue.remove_message(messages)
    settle, waiting = finished(process_queue, stuck)
    found.wait(QUEUE, process_queue, settle)
    assert not waiting
