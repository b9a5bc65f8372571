"""Moves of offsets through the library: no command line, no terminal, no EmbeddedBroker."""

import inspect
import sys

import pytest

import rmqctl
from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from broker.errors import InvalidNameError, OffsetChangedError
from rmqctl.admin import offsets
from rmqctl.admin.changes import Change, journal_note
from rmqctl.admin.offsets import QueueId, TopicChoice
from rmqctl.errors import NotFound, Refused, UsageProblem
from rmqctl.output.fields import fields_of
from storage.configs.journal import Journal
from storage.configs.journal_changes import Changes
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
from storage.errors import StoreInUseError
from storage.format.message import Message
from storage.read.by_time import Boundary
from tests.support.java_lock import java_lock
from tests.support.recording_client import RecordingClient, consumer, heartbeat

START = 1_767_225_600_000
MINUTE = 60_000
NOW = START + 60 * MINUTE
NOTE = journal_note("test", reason="to see")
ORDERS = [TopicChoice("orders")]


def reset(asked, to, **more):
    options = {"groups": ["g"], "topics": ORDERS, "now_ms": NOW, **more}
    return offsets.reset(asked.view, asked.broker, to, **options)


def targets(change):
    return {row.queue_id: row.new_offset for row in change.plan}


@pytest.mark.parametrize("timestamp", [START // 1000, START * 1000, -1])
def test_a_time_in_another_unit_is_refused(asked, timestamp, offsets_of):
    said = f"the timestamp is {timestamp} ms, .*: a time must lie between 1990 and 2200"
    with pytest.raises(UsageProblem, match=said):
        offsets.to_time(timestamp)
    with pytest.raises(UsageProblem, match=said):
        offsets.reset_by_time(asked.view, asked.broker, "g", "orders", timestamp)
    assert offsets_of() == {0: 5}


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (offsets.to_time(START + 3 * MINUTE + 1), {0: 4, 1: 4}),
        (offsets.to_time(START + 3 * MINUTE + 1, Boundary.UPPER), {0: 3, 1: 3}),
        (offsets.to_earliest, {0: 0, 1: 0}),
        (offsets.to_latest, {0: 10, 1: 5}),
        (offsets.to_current, {0: 5, 1: None}),
        (offsets.to_offset(7), {0: 7, 1: 5}),
        (offsets.shift_by(-2), {0: 3, 1: None}),
        (offsets.to_group("g"), {0: 5, 1: None}),
    ],
)
def test_each_destination_is_planned_and_reached(asked, offsets_of, to, expected):
    change = reset(asked, to)
    assert targets(change) == expected
    assert offsets_of() == {0: 5}, "a plan writes nothing"
    change.check()
    outcome = change.apply(NOTE)
    left_alone = {row.queue_id for row in outcome.rows if row.applied is None}
    assert offsets_of() == {q: o for q, o in expected.items() if q not in left_alone}


def test_a_message_is_a_destination(asked):
    [message] = asked.view.get_message("orders", 0, 8, 1).messages
    assert targets(reset(asked, offsets.to_messages([message]))) == {0: 8, 1: 5}


def test_a_change_is_a_value(asked):
    change = reset(asked, offsets.to_latest)
    assert isinstance(change, Change)
    [first, second] = change.plan
    assert first[:7] == ("g", "orders", "broker-x", 0, 5, 10, 5)
    assert (second.old_offset, second.new_offset) == (None, 5)
    assert fields_of(change.result_type)[-1].name == "applied"
    assert fields_of(change.result_type)[:-1] == fields_of(change.row_type)
    assert change.summary[0].startswith("2 queues: 1 forward, 5 messages")
    assert change.question == "Move the progress of g in 2 queues of orders?"
    assert (change.refusals, change.confirm_name, change.has_effect) == ((), None, True)


def test_a_change_is_noted_with_who_and_why(asked, orders):
    outcome = reset(asked, offsets.to_latest).apply(NOTE)
    *_, entry = Journal(orders).entries()
    assert entry["change_id"] == outcome.change_id
    assert {name: entry[name] for name in NOTE} == NOTE
    assert [(move["queue_id"], move["old"], move["new"]) for move in entry["moves"]] == [
        (0, 5, 10),
        (1, None, 5),
    ]


def test_what_has_no_effect_writes_nothing(asked, orders):
    change = reset(asked, offsets.to_current, queues=[1])
    assert not change.has_effect
    outcome = change.apply(NOTE)
    assert (outcome.change_id, [row.applied for row in outcome.rows]) == (None, [None])
    assert list(Journal(orders).entries()) == [] or "moves" not in [*Journal(orders).entries()][-1]


def test_what_moved_since_the_plan_is_found_and_not_overwritten(asked, orders, offsets_of):
    change = reset(asked, offsets.to_latest)
    ProgressFile(orders).commit({("orders@g", 0): QueueProgress(0, 6)})
    with pytest.raises(OffsetChangedError, match="was at 5 and is at 6 now"):
        change.check()
    with pytest.raises(OffsetChangedError, match="was at 5 and is at 6 now"):
        change.apply(NOTE)
    assert offsets_of() == {0: 6}


def test_an_expectation_is_checked_at_once(asked):
    change = reset(asked, offsets.to_latest, queues=[0])
    queue = QueueId("g", "orders", 0)
    assert change.expecting({queue: 5}) is change
    with pytest.raises(OffsetChangedError, match="was at 4 and is at 5 now"):
        change.expecting({queue: 4})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"to": offsets.to_latest, "no_forward": True}, "would go forward by 5"),
        ({"to": offsets.to_earliest, "no_backward": True}, "would go back by 5"),
        ({"to": offsets.to_offset(7), "clamp": False}, "has messages 0 to 4"),
    ],
)
def test_a_refusal_is_part_of_the_change_and_stops_it(asked, offsets_of, options, words):
    change = reset(asked, **options)
    assert words in str(change.refusals[0])
    assert len(change.plan) == 2, "the plan is there all the same"
    with pytest.raises(Refused, match=words):
        change.apply(NOTE)
    assert offsets_of() == {0: 5}


@pytest.mark.parametrize(
    ("options", "consumed", "words"),
    [
        (
            {"to": offsets.to_offset(6), "no_backward": True, "queues": [0]},
            OffsetCommit("orders", 0, 9),
            "queue 0 of orders in group g is at 9 now and would go back by 3",
        ),
        (
            {"to": offsets.to_offset(5), "no_backward": True, "queues": [0]},
            OffsetCommit("orders", 0, 8),
            "queue 0 of orders in group g is at 8 now and would go back by 3",
        ),
        (
            {"to": offsets.to_offset(2), "no_backward": True, "queues": [1]},
            OffsetCommit("orders", 1, 4),
            "queue 1 of orders in group g is at 4 now and would go back by 2",
        ),
    ],
)
def test_a_running_group_that_goes_on_after_the_plan_does_not_go_back(
    asked, orders, offsets_of, options, consumed, words
):
    with EmbeddedBroker.open(orders) as broker:
        broker.connect("a", RecordingClient())
        broker.heartbeat(heartbeat("a", consumer("g", "orders")))
        change = reset(asked, **options)
        assert change.refusals == ()
        change.check()
        broker.update_consumer_offsets("g", [consumed])
        for step in (change.check, lambda: change.apply(NOTE)):
            with pytest.raises(Refused, match=f"{words}, and --no-backward was given"):
                step()
        moves = [entry for entry in Journal(orders).entries() if entry.get("moves")]
    assert moves == []
    assert offsets_of() == {0: 5, consumed.queue_id: consumed.offset}


def test_a_consumer_that_starts_after_the_plan_forbids_it_if_that_is_asked(
    asked, orders, offsets_of
):
    change = reset(asked, offsets.to_earliest, no_live=True)
    change.check()
    with EmbeddedBroker.open(orders) as broker:
        broker.connect("a", RecordingClient())
        broker.heartbeat(heartbeat("a", consumer("g", "orders")))
        for step in (change.check, lambda: change.apply(NOTE)):
            with pytest.raises(Refused, match="group g has running consumers, and --no-live was"):
                step()
    assert not any(entry.get("moves") for entry in Journal(orders).entries())
    assert offsets_of() == {0: 5}
    change.apply(NOTE)
    assert offsets_of()[0] == 0


def test_the_result_says_how_far_a_running_group_had_gone(asked, orders):
    """Beyond the end that the plan saw, too: messages come meanwhile."""
    with EmbeddedBroker.open(orders) as broker:
        broker.connect("a", RecordingClient())
        broker.heartbeat(heartbeat("a", consumer("g", "orders")))
        change = reset(asked, offsets.to_offset(2), queues=[0], full=True)
        broker.send(Message("orders", b"x"), 0)
        broker.update_consumer_offsets("g", [OffsetCommit("orders", 0, 11)])
        outcome = change.apply(NOTE)
        [row] = outcome.rows
        sizes = [m.store_size for m in broker.view.get_message("orders", 0, 0, 32).messages]
        assert (row.old_offset, row.move, row.lag_old, row.lag_new) == (11, -9, 0, 9)
        assert row.bytes == sum(sizes[2:11])
        generation = ProgressFile(orders).read().get("orders@g", 0).generation
        broker.update_consumer_offsets("g", [OffsetCommit("orders", 0, 3, generation)])
        back = offsets.undo(asked.view, asked.broker, outcome.change_id, now_ms=NOW)
        assert [row.note for row in back.plan] == ["1 consumed since"]
        broker.update_consumer_offsets("g", [OffsetCommit("orders", 0, 6, generation)])
        [row] = back.apply(NOTE).rows
        assert (row.old_offset, row.move, row.note) == (6, 5, "4 consumed since")
        assert row.bytes == sum(sizes[6:11])


def test_a_running_group_that_goes_on_after_the_plan_may_go_as_the_options_allow(
    asked, orders, offsets_of
):
    with EmbeddedBroker.open(orders) as broker:
        broker.connect("a", RecordingClient())
        broker.heartbeat(heartbeat("a", consumer("g", "orders")))
        back = reset(asked, offsets.to_offset(2), no_forward=True, queues=[0])
        broker.update_consumer_offsets("g", [OffsetCommit("orders", 0, 7)])
        [row] = back.apply(NOTE).rows
        assert (row.old_offset, row.new_offset, row.move, row.applied) == (7, 2, -5, True)
        on = reset(asked, offsets.to_offset(9), no_backward=True, queues=[0])
        broker.update_consumer_offsets("g", [OffsetCommit("orders", 0, 4)])
        [row] = on.apply(NOTE).rows
        assert row.applied
    assert offsets_of() == {0: 9}


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"topics": [TopicChoice("none")]}, NotFound),
        ({"topics": [TopicChoice("orders", (9,))]}, NotFound),
        ({"queues": [9]}, NotFound),
        ({"groups": ["h"], "topics": None}, NotFound),
        ({"groups": ["a b"]}, InvalidNameError),
    ],
)
def test_what_does_not_exist_is_an_error(asked, more, error):
    with pytest.raises(error):
        reset(asked, offsets.to_latest, **more)


def test_a_group_that_gets_its_first_offset_is_warned_of(asked):
    said: list[str] = []
    with pytest.raises(NotFound, match="group h does not exist"):
        reset(asked, offsets.to_latest, groups=["h"])
    reset(asked, offsets.to_latest, groups=["h"], new_groups=True, warn=said.append)
    assert said == ["group h has no progress anywhere yet: it gets its first"]


def test_no_change_is_made_beside_a_java_broker(asked, orders, offsets_of):
    change = reset(asked, offsets.to_latest)
    with java_lock(orders):
        for step in (change.check, lambda: change.apply(NOTE)):
            with pytest.raises(StoreInUseError):
                step()
    assert offsets_of() == {0: 5}


def test_the_caller_may_bring_its_own_check_for_java(asked, offsets_of):
    def refuse():
        raise Refused("not now")

    change = reset(asked, offsets.to_latest, java_check=refuse)
    with pytest.raises(Refused, match="not now"):
        change.apply(NOTE)
    assert offsets_of() == {0: 5}


def test_undo_puts_back_what_a_change_moved(asked, orders, offsets_of):
    change_id = reset(asked, offsets.to_latest).apply(NOTE).change_id
    change = offsets.undo(asked.view, asked.broker, change_id, now_ms=NOW)
    assert targets(change) == {0: 5, 1: None}
    assert change.entry == {"undo_of": change_id}
    change.apply(NOTE)
    assert offsets_of() == {0: 5, 1: None}
    *_, entry = Journal(orders).entries()
    assert entry["undo_of"] == change_id
    assert targets(offsets.undo(asked.view, asked.broker)) == {0: 10, 1: 5}, (
        "the last one is the undo"
    )
    with pytest.raises(OffsetChangedError, match="has been undone"):
        offsets.undo(asked.view, asked.broker, change_id)
    with pytest.raises(NotFound):
        offsets.undo(asked.view, asked.broker, 99)


def test_offsets_are_imported(asked, offsets_of):
    wanted = {QueueId("g", "orders", 1): 3, QueueId("h", "orders", 0): 2}
    offsets.import_offsets(asked.view, asked.broker, wanted).apply(NOTE)
    assert (offsets_of(), offsets_of("h")) == ({0: 5, 1: 3}, {0: 2})
    with pytest.raises(NotFound):
        offsets.import_offsets(asked.view, asked.broker, {QueueId("g", "none", 0): 1})


def test_offsets_are_deleted(asked, offsets_of):
    change = offsets.delete(asked.view, asked.broker, groups=["g"], topics=None)
    assert change.question == "Delete the progress of g in 1 queue of orders?"
    change.apply(NOTE)
    assert offsets_of() == {0: None}
    with pytest.raises(NotFound):
        offsets.delete(asked.view, asked.broker, groups=["g"], topics=ORDERS)


def test_a_group_goes_to_a_time_as_rocketmq_finds_it(asked, offsets_of):
    change = offsets.reset_by_time(
        asked.view, asked.broker, "g", "orders", START + 3 * MINUTE + 20_000, now_ms=NOW
    )
    assert [(row.queue_id, row.old_offset, row.new_offset) for row in change.plan] == [
        (0, 5, 3),
        (1, None, 3),
    ]
    change.apply(NOTE)
    assert offsets_of() == {0: 3, 1: 3}
    kept = offsets.reset_by_time(asked.view, asked.broker, "g", "orders", None, force=False)
    assert not kept.has_effect


def test_orphans_are_listed_and_put_right(asked, orders, offsets_of):
    ProgressFile(orders).commit(
        {("orders@g", 0): QueueProgress(0, 50), ("gone@g", 0): QueueProgress(0, 1)}
    )
    found = offsets.orphans(asked.view, asked.broker)
    assert [(row.topic, str(row.problem), row.new_offset) for row in found] == [
        ("gone", "TOPIC_GONE", None),
        ("orders", "AHEAD", 10),
    ]
    change = offsets.fix_orphans(asked.view, asked.broker)
    assert [row.applied for row in change.apply(NOTE).rows] == [True, True]
    assert (offsets_of(), offsets_of(topic="gone")) == ({0: 10}, {0: None})
    assert offsets.orphans(asked.view, asked.broker) == []


def test_offsets_are_exported_as_import_takes_them(asked, offsets_of):
    ask = (asked.view, asked.broker)
    rows = offsets.export(*ask)
    assert rows == [("g", "orders", 0, 5)]
    reset(asked, offsets.to_latest).apply(NOTE)
    assert len(offsets.export(*ask, groups=["g"], topics=["orders"])) == 2
    assert [row.queue_id for row in offsets.export(*ask, queues=[1])] == [1]
    kept = {QueueId(*row[:3]): row.offset for row in rows}
    offsets.import_offsets(*ask, kept).apply(NOTE)
    assert offsets_of() == {0: 5, 1: 5}
    with pytest.raises(NotFound):
        offsets.export(*ask, groups=["h"])
    with pytest.raises(NotFound):
        offsets.export(*ask, topics=["none"])
    with pytest.raises(NotFound, match="has a queue 9; they have 0, 1"):
        offsets.export(*ask, queues=[0, 9])


def test_two_sides_are_compared(asked, orders):
    ask = (asked.view, asked.broker)
    before = offsets.side_of_store(orders)
    reset(asked, offsets.to_latest, groups=["h"], new_groups=True).apply(NOTE)
    g, h = offsets.side_of_group(*ask, "g"), offsets.side_of_group(*ask, "h")
    assert list(offsets.diff(g, h)) == [
        (None, "orders", 0, 5, 10, 5, None),
        (None, "orders", 1, None, 5, None, None),
    ]
    after = offsets.side_at(*ask, NOW, NOW)
    changed = offsets.diff(before, after, topics=["orders"])
    assert [(row.group, row.queue_id, row.offset_b) for row in changed] == [
        ("h", 0, 10),
        ("h", 1, 5),
    ]
    assert len(list(offsets.diff(before, after, equal_too=True))) == 3
    with pytest.raises(NotFound):
        offsets.side_of_group(*ask, "i")


def test_progress_is_listed_and_inspected(asked, orders):
    ask = (asked.view, asked.broker)
    rows = list(offsets.list_offsets(*ask, groups=["g"]))
    assert [(row.queue_id, row.committed_offset, row.lag, str(row.state)) for row in rows] == [
        (0, 5, 5, "BEHIND"),
        (1, None, None, "NONE"),
    ]
    reset(asked, offsets.to_latest).apply(NOTE)
    changes = Changes(orders)
    known = offsets.committed_offsets(*ask, offsets.OffsetSource.JOURNAL, changes.moves, print)
    chosen = offsets.Chosen(["g"], ["orders"], [0])
    assert offsets.places(asked.view, known, chosen) == [("g", "orders", 0, 10)]
    wanted = offsets.Wanted(bytes=True, msg_id=True, changes=True)
    [row] = offsets.inspect(*ask, known, chosen, changes, now_ms=NOW, wanted=wanted)
    assert (row.committed_offset, row.lag, row.lag_bytes) == (10, 0, 0)
    assert (row.last_consumed_timestamp, str(row.source)) == (START + 9 * MINUTE, "journal")
    assert row.changed_by == f"{NOTE['user']}@{NOTE['host']}"
    with pytest.raises(NotFound):
        offsets.places(asked.view, known, offsets.Chosen(["h"], None))
    before = offsets.committed_offsets(*ask, offsets.OffsetSource.BAK, changes.moves, print)
    assert before.table["g", "orders"] == {0: 5}


def test_messages_around_a_position_are_given_and_what_is_missing_is_said(asked):
    said: list[str] = []
    places = [offsets.Place("g", "orders", 0, 5), offsets.Place("g", "orders", 1, None)]
    rows = offsets.messages_around(
        asked.view,
        places,
        lambda place: place.committed,
        offsets.Around(1, 2),
        lambda _, position, message: (message.queue_offset - position, message.body),
        tell=said.append,
        left_out=pytest.fail,
    )
    assert list(rows) == [(-1, b"order 4"), (0, b"order 5"), (1, b"order 6")]
    assert said == ["group g has no progress in queue 1 of topic orders"]


def test_every_function_has_a_test_here_and_says_what_it_does():
    functions = [name for name in offsets.__all__ if inspect.isfunction(getattr(offsets, name))]
    text = inspect.getsource(sys.modules[__name__])
    for name in functions:
        assert f"offsets.{name}" in text, name
        assert getattr(offsets, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'move_all'"):
        _ = offsets.move_all
    assert rmqctl.admin.offsets is offsets
