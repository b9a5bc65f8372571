"""What an idle queue costs, and how long a message waits: with long polling, and with short."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from broker.api.pull import PullRequest, PullResult, PullStatus
from broker.config import BrokerConfig
from broker.pull.pull_request_hold import HeldPulls
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.read.message_filter import MessageFilter
from tests.support.consumers import eventually

SUSPEND_MS = 15_000  # what a push consumer asks for
STEP_MS = 100


class Load(NamedTuple):
    """Pulls of one idle queue in a minute; then how long the first message waited."""

    pulls_a_minute: int
    latency_ms: int


def load(broker, *, long: bool) -> Load:
    """Pull as a push consumer does, by a clock that stands still between its steps."""
    config = BrokerConfig()
    suspend_ms = SUSPEND_MS if long else config.short_polling_time_mills
    now = 0
    pulls = 0
    found: list[PullResult] = []

    def read(request: PullRequest, tags: MessageFilter | None) -> PullResult:
        assert tags is None
        result: PullResult = broker.pull(request._replace(suspend_timeout_ms=0))
        return result

    def pull_again(answer: PullResult | Exception) -> None:
        nonlocal pulls
        assert isinstance(answer, PullResult)
        if answer.pull_status is PullStatus.FOUND:
            found.append(answer)
            return
        pulls += 1
        held.hold(PullRequest("g", "T", 0, 0), None, pull_again, suspend_ms)

    held = HeldPulls(
        lambda: broker.view, broker._arrivals, read, notified=long, monotonic_ms=lambda: now
    )
    held.hold(PullRequest("g", "T", 0, 0), None, pull_again, suspend_ms)
    for now in range(0, 60_000 + STEP_MS, STEP_MS):
        held.round(now)
    idle, now = pulls, 60_050
    broker.send(Message("T", b"x"), 0)
    sent_at = now
    if long:
        eventually(lambda: found)
    while not found:
        now += STEP_MS
        held.round(now)
    held.close()
    return Load(idle, now - sent_at)


@pytest.mark.conformance("D7", "D10")
def test_an_idle_queue_costs_four_long_pulls_a_minute_and_messages_do_not_wait(broker):
    broker.update_topic(TopicConfig("T", 1, 1))
    assert load(broker, long=True) == Load(pulls_a_minute=4, latency_ms=0)


@pytest.mark.conformance("D10")
def test_short_polling_pulls_sixty_times_a_minute_and_messages_wait_up_to_a_second(broker):
    broker.update_topic(TopicConfig("T", 1, 1))
    short = load(broker, long=False)
    assert short.pulls_a_minute == 60
    assert 900 <= short.latency_ms <= 1_000, "until the pull ends that had just begun"
