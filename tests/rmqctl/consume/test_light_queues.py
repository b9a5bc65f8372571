"""Messages of light queues: each has an offset there, and another one in its own queue."""

import pytest

from rmqctl.admin import messages
from storage.readonly import StoreView
from tests.support import golden
from tests.support.cli import run

ROOT = golden.store("lmq-4.9")


def queues_of_light_topics():
    with StoreView.open(ROOT) as view:
        return [
            (topic, *view.queue_bounds(topic, 0)) for topic, _ in view.queues() if "%LMQ%" in topic
        ]


@pytest.mark.parametrize("more", [(), ("-o", "jsonl"), ("-f", "%M\\n")], ids=" ".join)
@pytest.mark.parametrize(("topic", "low", "high"), queues_of_light_topics())
def test_each_message_up_to_the_end_is_read(topic, low, high, more):
    assert len(run("consume", topic, "-e", "-S", ROOT, *more).lines) == high - low


@pytest.mark.parametrize(("topic", "low", "high"), queues_of_light_topics())
def test_a_range_is_one_of_the_queue_that_is_read(topic, low, high):
    every = run("consume", topic, "-e", "-S", ROOT, "-f", "%M\\n").lines
    found = run(
        "consume", topic, "--offset", f"{low + 1}:{low + 3}", "-e", "-S", ROOT, "-f", "%M\\n"
    )
    assert found.lines == every[1:3], found.err


@pytest.mark.parametrize(("topic", "low", "high"), queues_of_light_topics())
def test_each_message_is_found_by_its_place_in_the_light_queue(topic, low, high):
    left_out: list[str] = []
    with StoreView.open(ROOT) as view:
        for begin in range(low, high):
            found = list(messages.in_queue(view, topic, 0, begin, left_out=left_out.append))
            assert len(found) == high - begin
    assert left_out == []
