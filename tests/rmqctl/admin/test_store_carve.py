"""Topics and groups are copied into a new store through the library."""

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin import store as admin
from rmqctl.admin.changes import Change, journal_note
from rmqctl.admin.message_filter import MessageFilter
from rmqctl.errors import NotFound, Refused, UsageProblem
from storage.config import SMALL_STORE
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.detect import detect_config
from storage.format.message import Message
from storage.readonly import StoreView
from storage.tools.fsck import fsck
from tests.support import golden
from tests.support.same_records import all_messages

NOTE = journal_note("test", reason="to see")
START = 1_767_225_600_000
"""When the first message of ``orders`` was stored; the others follow a minute apart."""


def bodies(root, topics=("orders",)):
    with StoreView.open(root) as view:
        assert fsck(view).healthy
        return [message.body for message in all_messages(view, topics)]


def files(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_topic_is_copied_with_offsets_and_progress(orders, tmp_path):
    target = tmp_path / "taken"
    before = files(orders)
    done: list[int] = []

    def phase(label, total):
        assert (label, total) == ("carve", view.log_max_offset())
        return done.append

    with StoreView.open(orders) as view:
        change = admin.carve(view, target, topics=["orders"], phase=phase)
        assert issubclass(type(change), Change)
        assert [(row.queue_id, row.messages) for row in change.plan] == [(0, 10), (1, 5)]
        assert change.question == f"Create the store {target}?"
        assert change.summary == ("settings and progress of groups are copied, too: g",)
        change.check()
        assert not target.exists()
        rows = list(change.apply(NOTE).rows)
        assert sum(done) == view.log_max_offset()
        for step in (change.check, lambda: change.apply(NOTE)):
            with pytest.raises(Refused, match="exists already"):
                step()
    assert [(row.messages, row.new_end_offset, row.applied) for row in rows] == [
        (10, 10, True),
        (5, 5, True),
    ]
    assert change.lost == 0
    assert bodies(target) == bodies(orders)
    assert load_consumer_offsets(target) == {"orders@g": {0: 5}}
    assert files(orders) == before


def test_a_group_is_copied_with_the_topics_that_it_reads(orders, tmp_path):
    with StoreView.open(orders) as view:
        change = admin.carve(view, tmp_path / "g", groups=["g"], config=SMALL_STORE)
        list(change.apply(NOTE).rows)
    assert len(bodies(tmp_path / "g")) == 15
    assert detect_config(tmp_path / "g").max_index_num == SMALL_STORE.max_index_num


@pytest.mark.slow
def test_times_and_queues_are_chosen_and_a_predicate_leaves_gaps(orders, tmp_path):
    later = MessageFilter(from_timestamp=START + 8 * 60_000, queues=(0,))
    even = MessageFilter(predicate=lambda message: message.body[-1:] in b"02468")
    with StoreView.open(orders) as view:
        change = admin.carve(view, tmp_path / "later", topics=["orders"], chosen=later)
        assert [row[:4] for row in change.plan] == [("orders", 0, 8, 10)]
        list(change.apply(NOTE).rows)
        change = admin.carve(view, tmp_path / "even", topics=["orders"], chosen=even)
        assert [row.messages for row in change.plan] == [None, None]
        assert "offsets will count from 0" in change.summary[-1]
        list(change.apply(NOTE).rows)
    assert bodies(tmp_path / "later") == [b"order 8", b"order 9"]
    assert len(bodies(tmp_path / "even")) == 8
    assert load_consumer_offsets(tmp_path / "even") == {"orders@g": {0: 3}}


class Hidden:
    """Puts a text in the place of each body."""

    unpacks = True

    def apply(self, message):
        """Mask a message."""
        message.body = b"hidden"


@pytest.mark.slow
def test_a_mask_hides_values(orders, tmp_path):
    with StoreView.open(orders) as view:
        list(admin.carve(view, tmp_path / "m", topics=["orders"], mask=Hidden()).apply(NOTE).rows)
    assert set(bodies(tmp_path / "m")) == {b"hidden"}
    assert not any(b"order 3" in data for data in files(tmp_path / "m").values())


@pytest.mark.slow
def test_a_real_brokers_topics_go_over(tmp_path):
    with StoreView.open(golden.store("small-files-4.9")) as view:
        change = admin.carve(view, tmp_path / "s", topics=["GoldenTiny"], config=SMALL_STORE)
        list(change.apply(NOTE).rows)
        wanted = [message.body for message in all_messages(view, ["GoldenTiny"])]
    assert bodies(tmp_path / "s", ["GoldenTiny"]) == wanted


def test_what_cannot_be_copied_is_an_error(orders, tmp_path):
    new, used = tmp_path / "new", tmp_path / "used"
    used.mkdir()
    (used / "letter").write_text("dear")
    with StoreView.open(orders) as view:
        for error, target, topics, groups in (
            (UsageProblem, new, [], []),
            (UsageProblem, orders / "new", ["orders"], []),
            (Refused, used, ["orders"], []),
            (Refused, new, ["SCHEDULE_TOPIC_XXXX"], []),
            (NotFound, new, ["none"], []),
            (NotFound, new, [], ["none"]),
        ):
            with pytest.raises(error):
                admin.carve(view, target, topics=topics, groups=groups)
    assert not new.exists()


def test_a_copy_that_is_stopped_leaves_nothing(orders, tmp_path):
    class Stop(Exception):
        """The work is stopped."""

    def phase(label, total):
        raise Stop

    before = set(tmp_path.iterdir())
    with StoreView.open(orders) as view:
        change = admin.carve(view, tmp_path / "new", topics=["orders"], phase=phase)
        with pytest.raises(Stop):
            change.apply(NOTE)
    assert set(tmp_path.iterdir()) == before


def test_messages_that_come_meanwhile_are_not_copied(orders, tmp_path):
    with StoreView.open(orders) as view:
        change = admin.carve(view, tmp_path / "new", topics=["orders"])
        with EmbeddedBroker.open(orders) as broker:
            broker.send(Message("orders", b"later"), 0)
        list(change.apply(NOTE).rows)
    assert b"later" not in bodies(tmp_path / "new")
