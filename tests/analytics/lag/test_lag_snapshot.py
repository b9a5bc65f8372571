"""Snapshots of stores of every kind, against plain loops over what was stored."""

import json
import random

import pytest

from analytics.lag.health import Health
from analytics.lag.lag_snapshot import Readers, look_at
from analytics.lag.totals import add_up, is_unknown
from storage.configs.topics import TopicConfig
from storage.readonly import StoreView
from tests.support.examples import one_in
from tests.support.hand_made import HOST, TINY, HandMade

IPV6 = bytes(range(16)) + HOST[-4:]
TOPICS = ("A", "B", "long" * 40)
QUEUES = 4
GROUPS = 5


def made(seed):
    """A store with several topics in records of all forms, whose oldest log files may be gone."""
    rng = random.Random(seed)
    store = HandMade(TINY, first_offset=0)
    for number in range(rng.randrange(1, 200)):
        topic = rng.choice(TOPICS)
        six = rng.random() < 0.1
        store.put(
            topic,
            rng.randrange(QUEUES - 1),  # the last queue stays empty
            rng.randbytes(rng.randrange(1, 300)),
            tags=rng.choice([None, "a", "b"]),
            keys=rng.choice([(), (f"k{number}",)]),
            step_ms=rng.choice([0, 0, 1, 500, 60_000]),
            version=2 if len(topic) > 127 else 1,
            sys_flag=0x10 if six else 0,
            born_host=IPV6 if six else HOST,
        )
    return store, rng


def offsets_of(store, rng):
    """Progress of all kinds: none, at the start, within, at the end, beyond it."""
    ends = dict.fromkeys([(t, q) for t in TOPICS for q in range(QUEUES)], 0)
    for message in store.messages:
        ends[message.topic, message.queue_id] += 1
    table = {}
    for group in range(GROUPS):
        for topic in TOPICS:
            offsets = {}
            for queue_id in range(QUEUES):
                end = ends[topic, queue_id]
                kind = rng.randrange(6)
                if kind < 5:
                    offsets[queue_id] = [0, end, end + 3, rng.randint(0, end), end // 2][kind]
            table[f"g{group}", topic] = offsets
    return table, ends


@pytest.mark.feature(42, 43, 45, 48, 58)
@pytest.mark.parametrize("seed", one_in(3, range(40)))
def test_every_number_is_what_counting_one_by_one_gives(tmp_path, seed):
    store, rng = made(seed)
    table, ends = offsets_of(store, rng)
    root = store.write(tmp_path / "s")
    files = sorted((root / "commitlog").iterdir())
    gone = rng.choice([0, 0, len(files) // 2, len(files) - 1])
    for path in files[:gone]:
        path.unlink()
    log_min = int(files[gone].name)
    as_of = store.timestamp + 1000
    with StoreView.open(root, TINY) as view:
        topics = {topic: TopicConfig(topic, QUEUES, QUEUES) for topic in TOPICS}
        seen = look_at(view, topics, Readers(table, {}, table), as_of)
    assert [(s.group, s.topic) for s in seen.group_lags] == list(table)
    for group_lag in seen.group_lags:
        known = dict.fromkeys(("lag", "bytes", "lost"), 0)
        stored, unknown, lags = [], 0, {}
        for queue in group_lag.queues:
            place = group_lag.topic, queue.queue_id
            committed = table[group_lag.group, group_lag.topic].get(queue.queue_id)
            if committed is None or committed > ends[place]:
                assert queue.unread.lag is queue.lag_bytes is queue.oldest_unread_timestamp is None
                unknown += 1
                continue
            unread = [
                message
                for message in store.messages
                if (message.topic, message.queue_id) == place and message.queue_offset >= committed
            ]
            there = [message for message in unread if message.commitlog_offset >= log_min]
            assert queue.unread.lag == len(unread)
            assert queue.unread.lost == len(unread) - len(there)
            assert queue.lag_bytes == sum(message.size for message in there)
            times = [message.store_timestamp for message in there]
            assert queue.oldest_unread_timestamp == min(times, default=None)
            if not unread:
                assert queue.status is Health.OK
            lags[queue.queue_id] = len(unread)
            known["lag"] += len(unread)
            known["bytes"] += sum(message.size for message in there)
            known["lost"] += len(unread) - len(there)
            stored += times
        total = add_up(group_lag.queues)
        assert (total.queues, total.unknown_queues) == (QUEUES, unknown)
        in_part = any(is_unknown(queue.unread) for queue in group_lag.queues)
        if lags and not known["lag"] and in_part:
            assert total.lag is total.lag_bytes is None
        elif lags:
            assert (total.lag, total.lag_bytes, total.lost) == tuple(known.values())
        else:
            assert total.lag is total.lag_bytes is total.lost is None
        assert total.oldest_unread_timestamp == min(stored, default=None)
        largest = max(lags.values(), default=0)
        assert total.worst_queue_id == (
            min(q for q, lag in lags.items() if lag == largest) if largest else None
        )


def test_rates_in_are_those_of_the_last_five_minutes(tmp_path):
    store, rng = made(3)
    table, _ = offsets_of(store, rng)
    root = store.write(tmp_path / "s")
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": {}}))
    as_of = store.timestamp + 7
    with StoreView.open(root, TINY) as view:
        seen = look_at(view, {}, Readers(table, {}, table), as_of)
    for group_lag in seen.group_lags:
        for queue in group_lag.queues:
            recent = [
                message
                for message in store.messages
                if (message.topic, message.queue_id) == (group_lag.topic, queue.queue_id)
                and message.store_timestamp >= as_of - 300_000
            ]
            assert queue.rate_in == len(recent) / 300
