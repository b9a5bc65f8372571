"""Queues that are followed: what is stored while they are read comes in the order of the log."""

import shutil
from itertools import chain

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.queues.cursor import ObjectFetcher
from rmqctl.admin.queues.in_order import Part, QueuesInOrder
from rmqctl.admin.queues.selection import Span
from rmqctl.console.looks.walks import one_moment
from storage.configs.topics import TopicConfig
from storage.store import MessageStore
from tests.support.samples import SMALL, TINY

QUEUES = range(3)


class Growing:
    """A Fetcher of real queues; what is to happen is done after the fetches of its number."""

    def __init__(self, broker):
        self.fetch = ObjectFetcher(broker, "t", "G", None)
        self.then = {}
        self.count = 0

    def __call__(self, queue_id, offset, count):
        fetched = self.fetch(queue_id, offset, count)
        self.count += 1
        self.then.pop(self.count, lambda: None)()
        return fetched


def follow(broker, growing, wanted, room=100, queue_ids=QUEUES, most=20):
    """The rounds up to the wanted number of bodies, without those that gave nothing."""
    queues = QueuesInOrder(broker, [Part("t", [Span(q, 0, None) for q in queue_ids], growing)])
    rounds = []
    for _ in range(most):
        ready = queues.ready(room)
        rounds.append([message.body.decode() for message in ready.items])
        ready.take(len(ready.items))
        if sum(map(len, rounds)) >= wanted:
            break
    return [one for one in rounds if one]


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "store"
    MessageStore.create(root, TINY)
    with EmbeddedBroker.open(root, store_config=TINY) as broker:
        broker.update_topic(TopicConfig("t", 3, 3))
    return root


@pytest.mark.parametrize("queue_ids", [[0, 1, 2], [2, 1, 0], [1, 0, 1]])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_batch_that_is_stored_meanwhile(root, queue_ids, after):
    with EmbeddedBroker.open(root, store_config=TINY) as broker:
        growing = Growing(broker)
        growing.then[after] = lambda: broker.send_column("t", [b"a", b"b", b"c"], queue_ids)
        assert list(chain(*follow(broker, growing, 3))) == ["a", "b", "c"]


def test_a_queue_of_which_some_is_left_may_have_got_more(root):
    """Its messages were fetched when it had no more; another queue is fetched later."""
    with EmbeddedBroker.open(root, store_config=TINY) as broker:
        broker.send_column("t", [b"%d" % n for n in range(4)], [1, 1, 1, 0])
        growing = Growing(broker)
        # The first round is 0 and 1, of two messages of each queue; 3 waits, as 2 may come.
        growing.then[3] = lambda: broker.send_column("t", [b"4", b"5"], [0, 1])
        rounds = follow(broker, growing, 6, room=2)
        assert rounds[0] == ["0", "1"]
        assert list(chain(*rounds)) == [str(n) for n in range(6)]


@pytest.fixture
def states(tmp_path, root):
    """Four states of a store without shared state, as a Java broker leaves them one by one."""
    found = []
    for number, queue_id in enumerate([2, 1, 0, 1]):
        with EmbeddedBroker.open(root, store_config=TINY) as broker:
            broker.send_column("t", [b"%d" % number], [queue_id])
        found.append(tmp_path / f"state-{number}")
        shutil.copytree(root, found[-1], ignore=shutil.ignore_patterns("rmqctl", "abort", "lock"))
    return found


def become(live, state):
    """Write the state's files over those of a store that is read."""
    for path in state.rglob("*"):
        target = live / path.relative_to(state)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            with target.open("r+b" if target.exists() else "wb") as file:
                file.write(path.read_bytes())


@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize("jump", [(3,), (1, 3), (2, 3), (1, 2, 3)])
def test_a_store_that_another_broker_writes(tmp_path, states, after, jump):
    live = tmp_path / "live"
    shutil.copytree(states[0], live)
    with EmbeddedBroker.open(live, store_config=TINY, read_only=True) as broker:
        assert not broker.view.has_shared_state
        growing = Growing(broker)
        for number, state in enumerate(jump):
            growing.then[after + number] = lambda n=state: become(live, states[n])
        assert list(chain(*follow(broker, growing, 4))) == ["0", "1", "2", "3"]


def test_one_moment_of_queues_that_another_broker_writes(tmp_path, states):
    """It has written the log, and makes the messages readable while the queues are looked at."""
    live = tmp_path / "live"
    shutil.copytree(states[0], live)
    with EmbeddedBroker.open(live, store_config=TINY, read_only=True) as broker:
        assert [broker.max_offset("t", queue_id) for queue_id in QUEUES] == [0, 0, 1]
        become(live / "commitlog", states[-1] / "commitlog")
        cut = one_moment(broker.view, "t", QUEUES)
        ends = [cut.queue_bounds("t", 0)[1]]
        become(live, states[-1])
        ends += [cut.queue_bounds("t", queue_id)[1] for queue_id in (1, 2)]
        assert ends == [0, 0, 1]
        cut = one_moment(broker.view, "t", QUEUES)
        assert [cut.queue_bounds("t", queue_id)[1] for queue_id in QUEUES] == [1, 2, 1]


MANY = range(40)


@pytest.fixture
def wide(tmp_path):
    root = tmp_path / "wide"
    MessageStore.create(root, SMALL)
    with EmbeddedBroker.open(root, store_config=SMALL) as broker:
        broker.update_topic(TopicConfig("t", 40, 40))
    return root


def test_a_backlog_of_many_queues_and_a_long_one_takes_few_rounds(wide):
    with EmbeddedBroker.open(wide, store_config=SMALL) as broker:
        queue_ids = [q for q in MANY for _ in range(1 if q else 60)]
        broker.send_column("t", [b"%d" % n for n in range(len(queue_ids))], queue_ids)
        growing = Growing(broker)
        rounds = follow(broker, growing, len(queue_ids), room=20, queue_ids=MANY)
        assert list(chain(*rounds)) == [str(n) for n in range(len(queue_ids))]
        assert len(rounds) <= 4


def test_many_queues_that_get_messages_all_the_time_are_followed(wide):
    """A message for each eight fetches: a round takes those of the round before."""
    with EmbeddedBroker.open(wide, store_config=SMALL) as broker:
        growing, count = Growing(broker), 100
        for number in range(count):
            growing.then[8 * number + 1] = lambda n=number: broker.send_column(
                "t", [b"%d" % n], [7 * n % 40]
            )
        rounds = follow(broker, growing, count, queue_ids=MANY, most=100)
        assert list(chain(*rounds)) == [str(n) for n in range(count)]
        assert growing.count < 8 * count + 4 * len(MANY)


def test_many_queues_that_another_broker_writes_are_followed(tmp_path, wide):
    states = []
    for number in range(60):
        with EmbeddedBroker.open(wide, store_config=SMALL) as broker:
            broker.send_column("t", [b"%d" % number], [7 * number % 40])
        states.append(tmp_path / f"state-{number}")
        shutil.copytree(wide, states[-1], ignore=shutil.ignore_patterns("rmqctl", "abort", "lock"))
    live = tmp_path / "live"
    shutil.copytree(states[0], live)
    with EmbeddedBroker.open(live, store_config=SMALL, read_only=True) as broker:
        growing = Growing(broker)
        for number in range(1, 60):
            growing.then[2 * number] = lambda n=number: become(live, states[n])
        rounds = follow(broker, growing, 60, queue_ids=MANY, most=100)
        assert list(chain(*rounds)) == [str(n) for n in range(60)]
        assert growing.count < 2 * 60 + 8 * len(MANY)
