"""A store whose queues, groups and members change at random, by a clock of its own."""

import random

from analytics.lag.lag_snapshot import Readers
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
STEPS = (0, 1, 999, 2_000, 2_000, 5_000, 15_000, 20_000, 45_000, 60_000, 61_000, 240_000)


def sample_of(seen):
    """A reading as an observation, all of it: when, the progress, the ends."""
    committed: dict[str, dict[int, int]] = {}
    ends: dict[str, dict[int, int]] = {}
    for lag in seen.group_lags:
        offsets = committed.setdefault(topic_at_group(lag.topic, lag.group), {})
        highs = ends.setdefault(lag.topic, {})
        for queue in lag.queues:
            highs[queue.queue_id] = queue.unread.max_offset
            if queue.unread.committed_offset is not None:
                offsets[queue.queue_id] = queue.unread.committed_offset
    return seen.as_of, committed, ends


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

    def begin(self):
        """Let some things happen, and some samples be there."""
        rng = self.rng
        for _ in range(rng.choice([0, 5, 20])):
            self.step()
        if rng.random() < 0.5:
            table = {topic_at_group(t, g): dict(row) for (g, t), row in self.offsets.items()}
            ends = {t: {q: rng.randrange(9) for q in range(QUEUES)} for t in TOPICS}
            samples = OffsetSamples(self.root)
            samples.append(table, ends, self.now - rng.choice([0, 30_000, 290_000]))
            samples.append({}, {}, self.now)

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
