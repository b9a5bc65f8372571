"""Retries through the library: listed, found, delivered early; no command line."""

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.admin import retries as admin
from rmqctl.admin.changes import Change, journal_note
from rmqctl.admin.message_filter import MessageFilter, MessageSelection
from rmqctl.errors import CliError, NotFound
from rmqctl.exit_codes import CHANGED
from storage.config import SMALL_STORE
from storage.configs.journal import Journal
from storage.errors import StoreInUseError
from storage.format.message import Message
from storage.readonly import StoreView
from tests.support.dead_letters import deliver, give_back
from tests.support.java_lock import java_lock

NOTE = journal_note("test", reason="to see")
ALL = MessageSelection()
HOUR = 3_600_000


@pytest.fixture
def waiting(store):
    """Three retries of group g that wait for an hour, and one delayed message; their messages."""
    with EmbeddedBroker.open(store) as broker:
        stored = []
        for n in range(3):
            sent = broker.send(Message("t", b"%d" % n, tags=f"T{n}"), 0)
            stored += broker.query_unique("t", sent.msg_id)
            give_back(broker, "g", stored[n], level=17, why=f"reason {n}")
        delayed = Message("t", b"later")
        delayed.delay_time_level = 18
        broker.send(delayed)
    return stored


@pytest.fixture
def of_g(store, waiting, ask):
    """Calls an admin function for group g, with the store as it is then."""
    return lambda function, *args, **options: function(*ask(store), "g", *args, **options)


@pytest.fixture
def ahead(store, waiting, of_g):
    """Two of the three retries of group g are ready, and its progress lies beyond their end."""
    ids = tuple(message.msg_id for message in waiting[:2])
    list(of_g(admin.send_now, MessageSelection(ids)).apply(NOTE).rows)
    with EmbeddedBroker.open(store) as broker:
        broker.progress.move("g", {("%RETRY%g", 0): 1000})
    return waiting


UNKNOWN = (
    "how many retries wait is unknown: progress 1000 in %RETRY%g, queue 0, lies beyond its end 2"
)


def test_retries_beside_progress_beyond_their_end_are_unknown(of_g, ahead):
    said: list[str] = []
    retries = of_g(admin.Retries)
    shown = [(row.msg_id, row.state) for row in retries.rows(left_out=said.append)]
    assert shown == [(ahead[2].msg_id, "WAITING")]
    assert said == [UNKNOWN]
    every = [(row.msg_id, row.state) for row in retries.rows(left_out=said.append, consumed=True)]
    assert every == [(ahead[0].msg_id, None), (ahead[1].msg_id, None), *shown]  # by due time
    assert said == [UNKNOWN, UNKNOWN]
    other = MessageFilter(queues=(1,))
    assert list(retries.rows(other, said.append)) == []
    assert len(said) == 2


def test_progress_at_the_end_of_retries_is_known(of_g, store, ahead):
    with EmbeddedBroker.open(store) as broker:
        broker.progress.move("g", {("%RETRY%g", 0): 2})
    said: list[str] = []
    states = [row.state for row in of_g(admin.Retries).rows(left_out=said.append, consumed=True)]
    assert (states, said) == (["CONSUMED", "CONSUMED", "WAITING"], [])


def test_that_ready_retries_are_unknown_is_said_where_no_wait_can_be_ended(of_g, ahead):
    said: list[str] = []
    tag = MessageFilter(predicate=lambda message: message.tags == "T0")
    change = of_g(admin.send_now, MessageSelection(wanted=tag), warn=said.append)
    assert not change.has_effect
    assert UNKNOWN in said


def bodies(store, topic):
    with StoreView.open(store) as view:
        known = (topic, 0) in view.queues()
        return [m.body for m in view.get_message(topic, 0, 0, 32).messages] if known else []


def test_retries_have_rows_and_a_time(of_g, waiting):
    now = waiting[0].store_timestamp + 1
    retries = of_g(admin.Retries, now)
    rows = list(retries.rows())
    assert [(row.msg_id, row.state) for row in rows] == [(m.msg_id, "WAITING") for m in waiting]
    assert [row.reason for row in rows] == [f"RuntimeError: reason {n}" for n in range(3)]
    one = MessageFilter(predicate=lambda message: message.tags == "T1")
    assert [row.msg_id for row in retries.rows(one)] == [waiting[1].msg_id]
    assert {row.state for row in of_g(admin.Retries, now + 2 * HOUR).rows()} == {"OVERDUE"}
    assert list(retries.ready()) == []


def test_one_is_found_by_any_id_and_has_a_life(store, of_g, waiting, ask):
    view, broker = ask(store)
    found = of_g(admin.find, waiting[1].msg_id)
    assert (found.body, of_g(admin.find, waiting[1].offset_msg_id).body) == (b"1", b"1")
    life = admin.life(view, "g", found)
    assert [event.what for event in life] == ["STORED", "FAILED"]
    with pytest.raises(NotFound, match="no retry and no dead letter 'X'"):
        of_g(admin.find, "X")
    with pytest.raises(NotFound, match="group other does not exist"):
        admin.find(view, broker, "other", "X")


def test_the_agenda_has_levels_and_targets(store, waiting, ask):
    view = ask(store).view
    rows = list(admin.agenda(view, waiting[0].store_timestamp))
    assert [(row.level, row.topic, row.group, row.messages) for row in rows] == [
        (17, "%RETRY%g", "g", 3),
        (18, "t", None, 1),
    ]
    each = admin.delayed_messages(view)
    assert [(row.level, row.topic) for row in each] == [(17, "%RETRY%g")] * 3 + [(18, "t")]
    assert len(admin.delayed_messages(view, MessageFilter(to_timestamp=0))) == 0


@pytest.mark.parametrize(
    ("send", "target", "what", "words"),
    [
        (admin.send_now, "%RETRY%g", "now", "to be consumed now?"),
        (admin.make_dead, "%DLQ%g", "dead", "to %DLQ%g now?"),
    ],
)
def test_a_wait_ends_early(store, of_g, waiting, send, target, what, words):
    ids = [message.msg_id for message in waiting[:2]]
    change = of_g(send, MessageSelection(ids))
    assert isinstance(change, Change)
    assert [(row.msg_id, row.target) for row in change.plan] == [(name, target) for name in ids]
    assert change.question == f"Send 2 retries of g {words}"
    change.check()
    assert bodies(store, target) == []
    rows = list(change.apply(NOTE).rows)
    assert [(row.queue_offset, row.applied) for row in rows] == [(0, True), (1, True)]
    assert bodies(store, target) == [b"0", b"1"]
    (entry,) = Journal(store).entries()
    assert (entry["what"], entry["group"], entry["reason"]) == (what, "g", "to see")
    assert entry["new"] == {"msg_ids": ids}
    with pytest.raises(CliError, match="2 of these were delivered") as raised:
        change.check()
    assert raised.value.exit_code == CHANGED


def test_what_is_ready_is_skipped_and_what_is_unknown_is_refused(store, of_g, waiting):
    later = waiting[0].store_timestamp + 3 * HOUR
    with EmbeddedBroker.open(store, clock=lambda: later) as broker:
        deliver(broker, later)
    change = of_g(admin.send_now, MessageSelection([waiting[0].msg_id]))
    (row,) = change.apply(NOTE).rows
    assert (row.applied, row.note) == (False, "skipped: the group can read it already")
    with pytest.raises(NotFound, match="no waiting retry 'X'"):
        of_g(admin.make_dead, MessageSelection(["X"]))


@pytest.mark.slow
def test_nothing_is_sent_in_another_store_with_a_retry_at_the_same_place(tmp_path, ask):
    def one(path):
        create_store(path, SMALL_STORE)
        with EmbeddedBroker.open(path) as broker:
            sent = broker.send(Message("t", b"one"), 0)
            (stored,) = broker.query_unique("t", sent.msg_id)
            give_back(broker, "g", stored, level=17)
        return path

    shown, other = one(tmp_path / "shown"), one(tmp_path / "other")
    view, broker = ask(shown)
    change = admin.make_dead(view, broker, "g", ALL)
    shown.rename(tmp_path / "old")
    other.rename(shown)
    with pytest.raises(CliError, match="nothing was sent"):
        list(change.apply(NOTE).rows)
    assert bodies(shown, "%DLQ%g") == []


@pytest.mark.slow
def test_nothing_is_sent_after_a_delivery_and_beside_a_java_broker(store, of_g, waiting):
    change = of_g(admin.make_dead, ALL)
    with java_lock(store), pytest.raises(StoreInUseError):
        list(change.apply(NOTE).rows)
    list(of_g(admin.send_now, MessageSelection([waiting[2].msg_id])).apply(NOTE).rows)
    with pytest.raises(CliError, match="1 of these were delivered in the meantime"):
        list(change.apply(NOTE).rows)
    assert bodies(store, "%DLQ%g") == []
