"""A look that goes on from the one before gives what a whole look gives."""

import random
import shutil

import pytest

from analytics.lag.lag_snapshot import Readers, look_at
from analytics.lag.repeated_look import RepeatedLook
from analytics.lag.trend import TREND_WINDOW_MS
from broker.embedded.broker import EmbeddedBroker
from storage.config import StoreConfig
from storage.configs.consumer_offsets import topic_at_group
from storage.configs.offset_samples import OffsetSamples
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.store import MessageStore

SMALL = StoreConfig(
    mapped_file_size_commit_log=8192,
    mapped_file_size_consume_queue=400,
    max_hash_slot_num=7,
    max_index_num=40,
)
T = 1_700_000_000_000
TOPICS = ("a", "b", "c")
GROUPS = ("g0", "g1", "g2", "%SYS")
QUEUES = 3
LOOKS = 30
STEPS = (0, 1, 999, 2_000, 2_000, 5_000, 15_000, 20_000, 45_000, 60_000, 61_000, 240_000)


def sample_of(seen):
    """A reading as an observation, all of it."""
    committed: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for lag in seen.group_lags:
        offsets = committed.setdefault(topic_at_group(lag.topic, lag.group), {})
        highs = ends.setdefault(lag.topic, {})
        for queue in lag.queues:
            highs[str(queue.queue_id)] = queue.unread.max_offset
            if queue.unread.committed_offset is not None:
                offsets[str(queue.queue_id)] = queue.unread.committed_offset
    return {"at": seen.as_of, "committed": committed, "ends": ends}


def differing(seen, whole):
    """The first queue that differs, for the sentence of a failure."""
    for one, other in zip(seen.group_lags, whole.group_lags, strict=True):
        for queue, expected in zip(one.queues, other.queues, strict=True):
            if queue != expected:
                return [(one.group, one.topic), queue, expected]
    return []


class World:
    """A store that changes at random, by a clock of its own."""

    def __init__(self, root, seed):
        self.rng = random.Random(seed)
        self.now = T
        self.root = root
        MessageStore.create(root, SMALL)
        self.writer = EmbeddedBroker.open(root, clock=lambda: self.now)
        self.topics = {}
        self.offsets = {}
        self.members = {}
        self.calm = self.rng.random() < 0.3

    def step(self):
        """Let some time go by, in which some things happen."""
        rng = self.rng
        self.now += rng.choice(STEPS[:6] if self.calm else STEPS)
        for _ in range(rng.choice([0, 0, 1, 2, 5])):
            topic, queue_id = rng.choice(TOPICS), rng.randrange(QUEUES)
            for _ in range(rng.choice([1, 1, 3, 20])):
                self.writer.send(Message(topic, rng.randbytes(rng.randrange(1, 300))), queue_id)
        for _ in range(rng.choice([0, 1, 1, 4])):
            self._commit(rng.choice(GROUPS), rng.choice(TOPICS), rng.randrange(QUEUES))
        for topic in rng.sample(TOPICS, rng.choice([0, 0, 0, 1])):
            self.topics[topic] = TopicConfig(topic, rng.randrange(1, QUEUES + 1), QUEUES)
        for group in rng.sample(GROUPS, rng.choice([0, 0, 1])):
            self.members[group] = rng.randrange(3)
        if rng.random() < 0.05 and self.offsets:
            del self.offsets[rng.choice(list(self.offsets))]
        if rng.random() < 0.1 and self.writer.store is not None:
            self.writer.store.clean(manual=True, reserved_ms=rng.choice([60_000, 300_000]))

    def _commit(self, group, topic, queue_id):
        end = self.writer.view.max_offset_in_queue(topic, queue_id)
        known = self.offsets.get((group, topic), {}).get(queue_id, 0)
        choices = (0, end, end + 2, self.rng.randint(0, end), min(end, known + 1), known, None)
        offset = self.rng.choice(choices)
        row = dict(self.offsets.get((group, topic), {}))
        row.pop(queue_id, None)
        if offset is not None:
            row[queue_id] = offset
        self.offsets[group, topic] = row

    def readers(self):
        """Who reads what now."""
        return Readers(dict(self.offsets), dict(self.members), dict(self.offsets))


@pytest.mark.parametrize(
    "seed",
    [*range(10), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(100, 400))],
)
def test_each_look_equals_a_whole_look_with_the_same_history(tmp_path, seed):
    world = World(tmp_path / "s", seed)
    rng = world.rng
    for _ in range(rng.choice([0, 5, 20])):
        world.step()
    if rng.random() < 0.5:
        table = {topic_at_group(t, g): dict(row) for (g, t), row in world.offsets.items()}
        ends = {t: {q: rng.randrange(9) for q in range(QUEUES)} for t in TOPICS}
        samples = OffsetSamples(world.root)
        samples.append(table, ends, world.now - rng.choice([0, 30_000, 290_000]))
        samples.append({}, {}, world.now)
    since = world.now - TREND_WINDOW_MS
    history = OffsetSamples(world.root).read(since)
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(since))
        for number in range(LOOKS):
            world.step()
            whole = look_at(reader.view, world.topics, world.readers(), world.now, history)
            seen = repeated.look(world.topics, world.readers(), world.now)
            assert not (differs := differing(seen, whole)), repr(differs)
            assert seen == whole
            history.add(sample_of(whole), is_first=not number)
            if rng.random() < 0.1:
                history.forget_before(world.now - TREND_WINDOW_MS)


def test_what_did_not_change_is_the_same_object(tmp_path):
    world = World(tmp_path / "s", 0)
    world.writer.send(Message("a", b"x"), 0)
    world.offsets = {("g0", "a"): {0: 0}, ("g1", "a"): {0: 1}, ("g0", "b"): {0: 0}}
    world.now += 700_000
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(0))

        def look():
            world.now += 2_000
            return repeated.look({}, world.readers(), world.now).group_lags

        first, second = look(), look()
        assert [a is b for a, b in zip(first, second, strict=True)] == [True] * 3
        world.offsets["g1", "a"] = {0: 0}
        assert [a is b for a, b in zip(second, look(), strict=True)] == [True, False, True]


def test_what_cannot_be_read_is_read_again(tmp_path):
    world = World(tmp_path / "s", 0)
    for _ in range(3):
        world.writer.send(Message("a", b"x"), 0)
    world.offsets = {("g0", "a"): {0: 0}}
    world.writer.close()
    queue = tmp_path / "s" / "consumequeue" / "a" / "0" / ("0" * 20)
    kept = tmp_path / "kept"
    with EmbeddedBroker.open(world.root, read_only=True) as reader:
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(0))
        log = tmp_path / "s" / "commitlog" / ("0" * 20)
        shutil.copy(log, kept)
        with log.open("r+b") as file:
            file.write(bytes(64))
        [damaged] = repeated.look({}, world.readers(), world.now).group_lags
        with log.open("r+b") as file:
            file.write(kept.read_bytes()[:64])
        [mended] = repeated.look({}, world.readers(), world.now).group_lags
        assert queue.exists()
    assert damaged.queues[0].oldest_unread_timestamp is None
    assert mended.queues[0].oldest_unread_timestamp == T


def test_a_look_that_fails_leaves_nothing_half_done(tmp_path, monkeypatch):
    world = World(tmp_path / "s", 3)
    for _ in range(10):
        world.step()
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        history = OffsetSamples(world.root).read(0)
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(0))
        assert repeated.look(world.topics, world.readers(), world.now).group_lags
        whole = look_at(reader.view, world.topics, world.readers(), world.now, history)
        history.add(sample_of(whole), is_first=True)
        for _ in range(5):
            world.step()

        def fail(*_):
            raise OSError("gone")

        with monkeypatch.context() as broken:
            broken.setattr(type(reader.view), "places", fail)
            for offsets in list(world.offsets.values()):
                offsets[0] = 0
            with pytest.raises(OSError, match="gone"):
                repeated.look(world.topics, world.readers(), world.now)
        whole = look_at(reader.view, world.topics, world.readers(), world.now, history)
        assert repeated.look(world.topics, world.readers(), world.now) == whole
