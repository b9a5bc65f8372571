"""The next messages of a queue are fetched in another thread: the same output and order."""

import os
import threading

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.queues import read_ahead
from rmqctl.admin.queues.cursor import COLUMN, Fetched
from rmqctl.admin.queues.read_ahead import ReadAhead
from storage import native
from storage.configs.topics import TopicConfig
from storage.store import MessageStore
from tests.support.cli import run, start

MEANWHILE = 30


class Numbers:
    """A Fetcher of the numbers below an end, two at a time; notes in which threads."""

    def __init__(self, end):
        self.end = end
        self.threads = []
        self.began = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.inside = 0

    def __call__(self, queue_id, offset, count):
        self.inside += 1
        assert self.inside == 1, "one at a time"
        self.threads.append(threading.current_thread().name)
        if offset:
            self.began.set()
            assert self.may_go_on.wait(MEANWHILE)
        following = min(offset + 2, self.end)
        numbers = range(offset, following)
        self.inside -= 1
        if offset == 6 and queue_id == 7:
            raise OSError("no more")
        return Fetched(numbers, numbers, numbers, following, more=following < self.end)


@pytest.fixture
def ahead():
    made = []

    def make(fetch, end_of=None, *, alone=True):
        made.append(ReadAhead(fetch, end_of or (lambda queue_id: fetch.end), alone=alone))
        return made[-1]

    yield make
    for one in made:
        one.close()
    assert "read-ahead" not in {thread.name for thread in threading.enumerate()}


def all_of(fetch, queue_id=0):
    found, more, offset = [], True, 0
    while more:
        fetched = fetch(queue_id, offset, COLUMN)
        found += fetched.items
        offset, more = fetched.next_offset, fetched.more
    return found


def test_all_comes_once_and_some_of_it_from_the_other_thread(ahead):
    numbers = Numbers(101)
    fetch = ahead(numbers)
    assert fetch(0, 0, COLUMN).items == range(2)
    assert numbers.began.wait(MEANWHILE)
    assert all_of(fetch) == list(range(101)), "from another place than the one that was fetched"
    assert "read-ahead" in numbers.threads
    assert numbers.threads[0] == "MainThread"


def test_a_reader_fetches_itself_what_is_not_begun(ahead):
    numbers = Numbers(100)
    fetch = ahead(numbers)
    numbers.may_go_on.clear()
    fetch(1, 0, COLUMN)
    assert numbers.began.wait(MEANWHILE)  # the thread has it
    own = ahead(Numbers(100))
    own._waiting, own._thread = fetch._waiting, fetch._thread  # a thread that is busy
    own(2, 0, COLUMN)
    assert own(2, 2, 1).items == range(2, 4)
    assert set(own._fetch.threads) == {"MainThread"}
    own._thread = None
    numbers.may_go_on.set()
    assert fetch(1, 2, 1).items == range(2, 4)


def test_few_messages_are_not_fetched_ahead(ahead):
    numbers = Numbers(100)
    fetch = ahead(numbers)
    assert fetch(0, 0, 2).items == range(2)
    assert fetch._thread is None
    assert Numbers(2).end == len(ahead(Numbers(2))(0, 0, COLUMN).items), "nothing more is there"


class Meeting(Numbers):
    """Two queues of which each waits for a fetch of the other."""

    def __init__(self, end):
        super().__init__(end)
        self.both = threading.Barrier(2, timeout=MEANWHILE)

    def __call__(self, queue_id, offset, count):
        if offset:
            self.both.wait()
        following = offset + 2
        numbers = range(offset, following)
        return Fetched(numbers, numbers, numbers, following, more=following < self.end)


def test_two_queues_are_fetched_at_once_where_that_is_allowed(ahead):
    fetch = ahead(Meeting(100), alone=False)
    fetch(1, 0, COLUMN)
    fetch(2, 0, COLUMN)
    assert fetch(2, 2, 1).items == fetch(1, 2, 1).items == range(2, 4)


def test_an_error_comes_to_the_reader_where_it_would_have_come(ahead):
    fetch = ahead(Numbers(100))
    for offset in (0, 2, 4):
        assert fetch(7, offset, COLUMN).items == range(offset, offset + 2)
    with pytest.raises(OSError, match="no more"):
        fetch(7, 6, COLUMN)


def test_whether_there_is_more_is_asked_when_it_is_read(ahead):
    numbers = Numbers(4)
    ends = {0: 4}
    fetch = ahead(numbers, ends.__getitem__)
    fetch(0, 0, COLUMN)
    assert numbers.began.wait(MEANWHILE)
    ends[0] = 9
    assert fetch(0, 2, 1).more


def test_closing_waits_for_the_fetch_that_runs_and_begins_no_other(ahead):
    numbers = Numbers(100)
    fetch = ahead(numbers)
    numbers.may_go_on.clear()
    fetch(0, 0, COLUMN)
    assert numbers.began.wait(MEANWHILE)
    count = len(numbers.threads)
    threading.Timer(0, numbers.may_go_on.set).start()
    fetch.close()
    assert (len(numbers.threads), numbers.inside) == (count, 0)


@pytest.fixture
def filled(tmp_path, monkeypatch):
    """Numbers in three queues in turn, some fetches of each."""
    root = tmp_path / "large"
    MessageStore.create(root)
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("t", 3, 3))
        for first in range(0, 30_000, 1000):
            here = range(first, first + 1000)
            broker.send_column("t", [b"%d" % n for n in here], [n % 3 for n in here])
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    return root


@pytest.mark.slow
@pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty")
class TestTheCommand:
    @pytest.mark.parametrize(
        ("options", "wanted"),
        [
            (["-e"], range(30_000)),
            (["-e", "-o", "csv", "--columns", "body", "--no-headers"], range(30_000)),
            (["-c", "25000"], range(25_000)),
            (["--last", "20000"], range(10_000, 30_000)),
            (["-e", "--offset", "4500:5000"], range(13_500, 15_000)),
            (["-e", "--regex", "^2999"], [2999, *range(29_990, 30_000)]),
        ],
    )
    def test_it_prints_the_same(self, filled, monkeypatch, options, wanted):
        begun = []

        class Noted(ReadAhead):
            def _begin(self, queue_id, offset):
                begun.append((queue_id, offset))
                super()._begin(queue_id, offset)

        monkeypatch.setattr(read_ahead, "ReadAhead", Noted)
        monkeypatch.setattr(read_ahead, "has_processors", lambda: True)
        result = run("consume", "t", *options)
        assert result.code == 0, result.err
        assert [int(line) for line in result.lines] == list(wanted)
        assert bool(begun) == ("4500:5000" not in options), "500 messages are one fetch"
        assert len(set(begun)) == len(begun)

    def test_it_reads_by_itself_where_there_are_many_queues(self, filled, monkeypatch):
        monkeypatch.setattr(read_ahead, "MOST_QUEUES", 2)
        monkeypatch.setattr(read_ahead, "ReadAhead", None)
        assert len(run("consume", "t", "-e").lines) == 30_000

    def test_what_comes_later_follows(self, filled):
        with start("consume", "t", "-F") as process:
            try:
                text = b""
                while text.count(b"\n") < 30_000:
                    text += os.read(process.stdout.fileno(), 1 << 20)
                assert run("produce", "t", "-q", stdin=b"a\nb\nc\n").code == 0
                while text.count(b"\n") < 30_003:
                    text += os.read(process.stdout.fileno(), 1 << 20)
            finally:
                process.kill()
        assert text.split() == [b"%d" % n for n in range(30_000)] + [b"a", b"b", b"c"]
