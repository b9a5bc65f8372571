"""Dead letters through the library: found, described, marked, sent again; no command line."""

import json
import sys
from collections import Counter

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.admin import dead_letters as admin
from rmqctl.admin.changes import Change, journal_note
from rmqctl.admin.message_filter import MessageFilter, MessageSelection
from rmqctl.errors import CliError, NotFound, Refused, UsageProblem
from rmqctl.exit_codes import CHANGED
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.configs.checksummed_json import seal, unseal
from storage.configs.dlq_acks import DlqAcksFile
from storage.configs.journal import AT_TIMESTAMP, Journal
from storage.configs.redrive_runs import RedriveRuns
from storage.errors import StoreInUseError
from storage.format.message import Message
from storage.readonly import StoreView
from tests.support.dead_letters import bury
from tests.support.java_lock import java_lock

NOTE = journal_note("test", reason="to see")
ALL = MessageSelection()
TAG_3 = MessageSelection(wanted=MessageFilter(predicate=lambda message: message.tags == "T3"))


@pytest.fixture
def dead(store):
    """Five dead letters of group g, from topic t."""
    return bury(store, "g", [Message("t", b"body %d" % n, tags=f"T{n}") for n in range(5)])


@pytest.fixture
def of_g(store, dead, ask):
    """Calls an admin function for group g, with the store as it is then."""
    return lambda function, *args, **options: function(*ask(store), "g", *args, **options)


@pytest.fixture
def handled(of_g):
    """The queue offsets of the dead letters that are marked."""
    return lambda: [row.queue_offset for row in of_g(admin.DeadLetters).rows() if row.handled]


@pytest.fixture
def bodies(store):
    """The bodies of the messages of a topic, without the first five of t."""

    def read(topic="t"):
        with StoreView.open(store) as view:
            queues = [queue_id for name, queue_id in view.queues() if name == topic]
            found = [m for q in queues for m in view.get_message(topic, q, 0, 32).messages]
        found.sort(key=lambda message: message.commitlog_offset)
        return [message.body for message in found][5 if topic == "t" else 0 :]

    return read


def test_groups_have_rows_and_dead_letters_are_found_by_any_id(store, dead, ask, of_g):
    view, broker = ask(store)
    (row,) = admin.list_groups(view, broker)
    assert (row.group, row.depth, row.unhandled) == ("g", 5, 5)
    letters = of_g(admin.DeadLetters)
    for name in (dead[2].msg_id, dead[2].offset_msg_id.lower(), "2"):
        assert letters.find(name).queue_offset == 2
    with pytest.raises(NotFound, match="no dead letter '9'"):
        letters.find("9")
    with pytest.raises(NotFound, match="group other does not exist"):
        admin.DeadLetters(view, broker, "other")


def test_one_is_described_and_many_are_counted(dead, of_g):
    letters = of_g(admin.DeadLetters)
    found = admin.describe(letters, dead[1], now_ms=dead[1].store_timestamp + 7)
    assert (found.body, found.age_ms, found.handled) == ("body 1", 7, False)
    assert found.origin["topic"] == "t"
    assert [event["what"] for event in found.life or ()] == ["STORED", "DEAD"]
    (row,) = admin.grouped(letters.messages(), "reason")
    assert (row.value, row.count) == ("RuntimeError: no reason at all", 5)
    with pytest.raises(UsageProblem):
        list(admin.grouped(letters.messages(), "colour"))


def test_the_members_of_a_count_are_those_that_it_counts(dead, of_g):
    letters = list(of_g(admin.DeadLetters).messages())
    for by in ("reason", "tag", "key", "hour"):
        for row in admin.grouped(letters, by):
            is_member = admin.in_group(by, row.value)
            assert sum(map(is_member, letters)) == row.count
    assert not any(map(admin.in_group("reason", "another one"), letters))


@pytest.mark.slow
def test_a_mark_is_a_value_and_is_noted(store, of_g, handled):
    change = of_g(admin.acknowledge, TAG_3)
    assert isinstance(change, Change)
    assert change.question == "Mark 1 dead letter of g as handled?"
    assert handled() == []
    change.check()
    assert [(row.queue_offset, row.applied) for row in change.apply(NOTE).rows] == [(3, True)]
    assert handled() == [3]
    (entry,) = Journal(store).entries()
    assert {name: entry[name] for name in NOTE} == NOTE
    assert (entry["group"], entry["what"], entry["old"]) == ("g", "ack", None)
    assert of_g(admin.acknowledge, TAG_3).plan == [], "it is marked"


@pytest.mark.slow
def test_marks_are_removed_one_by_one_or_as_they_were_made(store, of_g, handled):
    of_g(admin.acknowledge, MessageSelection(["1"])).apply(NOTE)
    of_g(admin.acknowledge, ALL).apply(NOTE)
    undo = of_g(admin.undo_acknowledge)
    assert undo.entry["undo_of"] == 2
    undo.apply(NOTE)
    assert handled() == [1]
    of_g(admin.undo_acknowledge).apply(NOTE)
    assert handled() == []
    with pytest.raises(NotFound, match="left to undo"):
        of_g(admin.undo_acknowledge)
    of_g(admin.acknowledge, MessageSelection(["0", "1", "2"])).apply(NOTE)
    of_g(admin.remove_marks, MessageSelection(["1"])).apply(NOTE)
    assert handled() == [0, 2]


@pytest.mark.slow
def test_the_marking_with_a_number_is_undone_whatever_came_after_it(of_g, handled):
    mine = of_g(admin.acknowledge, MessageSelection(["1", "2"])).apply(NOTE)
    other = of_g(admin.acknowledge, MessageSelection(["4"])).apply(NOTE)
    assert (mine.change_id, other.change_id) == (1, 2)
    undo = of_g(admin.undo_acknowledge, 1)
    assert undo.entry["undo_of"] == 1
    undo.apply(NOTE)
    assert handled() == [4]
    for number in (1, 3, 9):
        with pytest.raises(NotFound, match=f"no mark of change {number} of group g is left"):
            of_g(admin.undo_acknowledge, number)


def test_an_undo_passes_over_what_was_noted_and_never_done(store, of_g, handled):
    of_g(admin.acknowledge, MessageSelection(["1"])).apply(NOTE)
    before = DlqAcksFile(store).path.read_bytes()
    of_g(admin.acknowledge, MessageSelection(["2", "3"])).apply(NOTE)
    DlqAcksFile(store).path.write_bytes(before)  # killed between the journal and the marks
    assert handled() == [1]
    of_g(admin.undo_acknowledge).apply(NOTE)
    assert handled() == []


@pytest.mark.slow
@pytest.mark.parametrize("there", [5, 2], ids=["others", "fewer"])
@pytest.mark.parametrize("undone", [False, True], ids=["begun", "undone"])
def test_nothing_is_changed_in_another_store(store, of_g, handled, bodies, tmp_path, there, undone):
    if undone:
        of_g(admin.acknowledge, ALL).apply(NOTE)
        changes = [of_g(admin.undo_acknowledge), of_g(admin.remove_marks, ALL)]
    else:
        changes = [of_g(admin.acknowledge, ALL), of_g(admin.redrive, ALL)]
    other = tmp_path / "other"
    create_store(other, SMALL_STORE)
    bury(other, "g", [Message("t", b"body %d" % n) for n in range(there)])
    store.rename(tmp_path / "old")
    other.rename(store)
    if undone:
        of_g(admin.acknowledge, ALL).apply(NOTE)
    before = handled()
    for change in changes:
        with pytest.raises(CliError, match="was replaced by another store") as caught:
            list(change.apply(NOTE).rows)
        assert caught.value.exit_code == CHANGED
    assert (handled(), len(bodies())) == (before, max(0, there - 5))


@pytest.mark.slow
def test_nothing_is_changed_beside_a_java_broker(store, of_g, handled, bodies):
    changes = [of_g(admin.acknowledge, ALL), of_g(admin.redrive, ALL)]
    with java_lock(store):
        for change in changes:
            with pytest.raises(StoreInUseError):
                change.check()
            with pytest.raises(StoreInUseError):
                list(change.apply(NOTE).rows)
    assert (handled(), bodies()) == ([], [])


def test_dead_letters_are_sent_again_with_receipts(store, dead, of_g, handled, bodies, tmp_path):
    told: list[str] = []
    file = tmp_path / "receipts"
    writing = admin.Writing(
        pace=lambda: told.append("pace"),
        started=lambda: told.append("started"),
        on_receipt=lambda receipt: told.append(receipt.msg_id),
        receipts_file=file,
    )
    change = of_g(admin.redrive, MessageSelection(["0", "4"]), writing=writing)
    assert [(row.queue_offset, row.target) for row in change.plan] == [(0, "t"), (4, "t")]
    assert change.question == "Send 2 dead letters of g to t?"
    assert (bodies(), told, change.other_readers) == ([], [], [])
    receipts = list(change.apply(NOTE).rows)
    assert bodies() == [b"body 0", b"body 4"]
    assert [(row.target, row.applied) for row in receipts] == [("t", True), ("t", True)]
    assert told == ["started", "pace", dead[0].msg_id, "pace", dead[4].msg_id]
    assert [json.loads(line)["msg_id"] for line in file.read_text().splitlines()] == [
        d.msg_id for d in (dead[0], dead[4])
    ]
    assert handled() == [0, 4]
    (entry,) = Journal(store).entries()
    assert entry["new"] == {"run": change.task.run, "target": "origin", "messages": 2}


def test_where_none_is_sent_the_question_names_the_receipts(of_g):
    change = of_g(admin.redrive, MessageSelection(["1"]), limits=admin.Limits(max_redrives=0))
    assert change.plan[0].target is None
    assert change.question == "Send 0 dead letters of g, and write the receipts of 1?"


def test_what_is_sent_can_be_another_message_to_another_place(of_g, bodies):
    rewrite = admin.Rewrite({"color": "red"}, b"new")
    change = of_g(admin.redrive, MessageSelection(["1"]), target="retry", rewrite=rewrite)
    assert change.plan[0].note == "color is red; new body"
    (receipt,) = change.apply(NOTE).rows
    assert receipt.note == "color is red; new body"
    assert (bodies("%RETRY%g"), bodies()) == ([b"new"], [])
    later = of_g(admin.redrive, MessageSelection(["2"]), edit=lambda _: None)
    assert later.plan[0].note == "to be edited"
    with pytest.raises(NotFound, match="topic none does not exist"):
        of_g(admin.redrive, ALL, target="none")


def test_limits_leave_messages_out(of_g, bodies):
    assert len(of_g(admin.redrive, ALL, limits=admin.Limits(most=2)).plan) == 2
    list(of_g(admin.redrive, MessageSelection(["1"])).apply(NOTE).rows)
    again = of_g(admin.redrive, MessageSelection(["1"]), limits=admin.Limits(max_redrives=1))
    assert (again.plan[0].target, again.plan[0].redrives) == (None, 1)
    assert [row.applied for row in again.apply(NOTE).rows] == [False]
    assert bodies() == [b"body 1"]


@pytest.mark.slow
def test_the_most_that_are_sent_are_those_that_can_be_sent(store, of_g, bodies):
    for _ in range(2):
        list(of_g(admin.redrive, MessageSelection(["0", "2"])).apply(NOTE).rows)
    of_g(admin.remove_marks, MessageSelection(["0", "2"])).apply(NOTE)
    change = of_g(admin.redrive, ALL, limits=admin.Limits(most=2, max_redrives=2))
    assert [(row.queue_offset, row.target) for row in change.plan] == [
        (0, None),
        (1, "t"),
        (2, None),
        (3, "t"),
    ]
    assert [place for _, place in change.task.places] == [0, 1, 2, 3]
    receipts = list(change.apply(NOTE).rows)
    assert [row.applied for row in receipts] == [False, True, False, True]


@pytest.mark.slow
def test_the_most_of_a_resumed_run_are_those_that_are_left(of_g, bodies, killed):
    of_g(admin.acknowledge, MessageSelection(["2", "3"])).apply(NOTE)
    rest = of_g(admin.resume, limits=admin.Limits(most=1))
    assert (rest.handled_since, [row.queue_offset for row in rest.plan]) == (2, [4])


@pytest.mark.slow
def test_what_was_sent_is_put_together_once_for_all_that_is_left(of_g, killed):
    """Once more for their number; not for each dead letter: of 100,000 that takes minutes."""
    calls: Counter[str] = Counter()
    sys.setprofile(lambda frame, *_: calls.update([frame.f_code.co_name]))
    try:
        rest = of_g(admin.resume)
    finally:
        sys.setprofile(None)
    assert len(rest.plan) == 3
    assert calls["sent"] == 2 * 2  # a call and a return each


@pytest.mark.slow
def test_a_run_that_stopped_goes_on(store, of_g, bodies):
    def stop():
        if len(bodies()) == 2:
            raise KeyboardInterrupt

    change = of_g(admin.redrive, ALL, writing=admin.Writing(pace=stop))
    with pytest.raises(KeyboardInterrupt):
        list(change.apply(NOTE).rows)
    rest = of_g(admin.resume)
    assert (rest.task.run, rest.sent_before, len(rest.plan)) == (change.task.run, 2, 3)
    list(rest.apply(NOTE).rows)
    assert bodies() == [b"body %d" % n for n in range(5)]
    with pytest.raises(NotFound, match="no redrive run 'R1'"):
        of_g(admin.resume, "R1")


@pytest.mark.slow
def test_what_a_killed_run_sent_is_marked(store, of_g, handled, bodies, ask):
    def stop():
        if len(bodies()) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(of_g(admin.redrive, ALL, writing=admin.Writing(pace=stop)).apply(NOTE).rows)
    DlqAcksFile(store).path.unlink()
    assert handled() == []
    admin.settle_interrupted(ask(store).view, "g")
    assert handled() == [0, 1]


@pytest.fixture
def killed(of_g, bodies):
    """A run of all five that was killed after two; gives its name."""

    def stop():
        if len(bodies()) == 2:
            raise KeyboardInterrupt

    change = of_g(admin.redrive, ALL, writing=admin.Writing(pace=stop))
    with pytest.raises(KeyboardInterrupt):
        list(change.apply(NOTE).rows)
    return change.task.run


@pytest.mark.slow
def test_a_mark_that_a_user_removed_after_a_killed_run_stays_removed(of_g, handled, killed):
    of_g(admin.remove_marks, MessageSelection(["0"])).apply(NOTE)
    list(of_g(admin.redrive, MessageSelection(["4"])).apply(NOTE).rows)
    assert handled() == [1, 4]


@pytest.mark.slow
def test_a_mark_that_was_removed_before_its_message_was_sent_is_set(store, of_g, handled, bodies):
    of_g(admin.acknowledge, MessageSelection(["0"])).apply(NOTE)
    of_g(admin.undo_acknowledge).apply(NOTE)
    removed = now_ms()
    while now_ms() <= removed:  # the order of the two is that of their milliseconds
        pass

    def stop():
        if len(bodies()) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(of_g(admin.redrive, ALL, writing=admin.Writing(pace=stop)).apply(NOTE).rows)
    DlqAcksFile(store).path.unlink()
    list(of_g(admin.redrive, MessageSelection(["4"])).apply(NOTE).rows)
    assert handled() == [0, 4]


@pytest.mark.slow
def test_a_mark_that_a_user_removed_stays_removed_when_the_run_writes_its_receipt(
    store, of_g, handled, killed, ask
):
    path = RedriveRuns(store).path_of(killed)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    admin.settle_interrupted(ask(store).view, "g", NOTE)
    of_g(admin.remove_marks, MessageSelection(["1"])).apply(NOTE)
    receipts = list(of_g(admin.resume, killed).apply(NOTE).rows)
    assert [row.queue_offset for row in receipts if row.applied] == [1, 2, 3, 4]
    assert handled() == [0, 2, 3, 4]


@pytest.mark.slow
def test_marks_that_are_set_late_are_noted(store, of_g, handled, killed, ask):
    DlqAcksFile(store).path.unlink()
    admin.settle_interrupted(ask(store).view, "g", NOTE)
    *_, entry = Journal(store).entries()
    assert {name: entry[name] for name in NOTE} == NOTE
    assert (entry["group"], entry["what"], entry["old"]) == ("g", "settle", None)
    assert entry["new"] == {"run": killed, "handled": {"0": [[0, 2]]}}
    with pytest.raises(NotFound, match="left to undo"):
        of_g(admin.undo_acknowledge)


@pytest.mark.slow
def test_a_plan_leaves_out_what_a_killed_run_sent_and_did_not_mark(store, of_g, bodies, killed):
    DlqAcksFile(store).path.unlink()
    warnings: list[str] = []
    change = of_g(admin.redrive, ALL, warn=warnings.append)
    assert [row.queue_offset for row in change.plan] == [2, 3, 4]
    assert warnings == [f"run {killed} was interrupted; continue it with --resume {killed}"]
    named = of_g(admin.redrive, MessageSelection(["0"]))
    assert named.plan[0].note == f"handled before; sent before by {killed}"
    assert [row.applied for row in change.apply(NOTE).rows] == [True] * 3
    assert bodies() == [b"body %d" % n for n in range(5)]


@pytest.mark.slow
def test_a_run_that_ends_while_a_plan_is_made_is_not_called_interrupted(store, of_g, killed, ask):
    warnings: list[str] = []

    def edit(messages):
        admin.settle_interrupted(ask(store).view, "g", NOTE)

    of_g(admin.redrive, ALL, warn=warnings.append, edit=edit)
    assert warnings == []


@pytest.mark.slow
def test_a_clock_that_was_set_back_changes_no_order_of_marks(store, of_g, handled, killed, ask):
    """The user marks at a later time, and removes the mark at what the clock says is an earlier one
    than that of the message."""
    of_g(admin.acknowledge, MessageSelection(["4"])).apply(NOTE)
    of_g(admin.remove_marks, MessageSelection(["1"])).apply(NOTE)
    *_, last = sorted((store / "rmqctl" / "journal").iterdir())
    *before, line = last.read_bytes().splitlines()
    removed = unseal(line)
    assert removed is not None
    earlier = seal({**removed, AT_TIMESTAMP: removed[AT_TIMESTAMP] - 3_600_000})
    last.write_bytes(b"".join(line + b"\n" for line in (*before, earlier)))
    admin.settle_interrupted(ask(store).view, "g", NOTE)
    assert handled() == [0, 4]


def shift(store, by_ms):
    """Change the times of the journal."""
    for path in (store / "rmqctl" / "journal").iterdir():
        entries = [unseal(line) for line in path.read_bytes().splitlines()]
        shifted = [{**e, AT_TIMESTAMP: e[AT_TIMESTAMP] + by_ms} for e in entries if e is not None]
        path.write_bytes(b"".join(seal(entry) + b"\n" for entry in shifted))


@pytest.mark.slow
def test_a_mark_that_was_removed_before_the_clock_was_set_back_and_the_run_began_is_set(
    store, of_g, handled, bodies
):
    of_g(admin.acknowledge, MessageSelection(["0"])).apply(NOTE)
    of_g(admin.undo_acknowledge).apply(NOTE)
    shift(store, 3_600_000)

    def stop():
        if len(bodies()) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(of_g(admin.redrive, ALL, writing=admin.Writing(pace=stop)).apply(NOTE).rows)
    DlqAcksFile(store).path.unlink()
    again = of_g(admin.redrive, ALL)
    assert [row.queue_offset for row in again.plan] == [1, 2, 3, 4]
    list(again.apply(NOTE).rows)
    assert handled() == [0, 1, 2, 3, 4]
    assert bodies() == [b"body %d" % n for n in range(5)]


@pytest.mark.slow
def test_a_mark_that_was_removed_after_a_message_of_a_later_time_stays_removed(
    store, of_g, handled, killed
):
    """The log has the later times of a clock that was wrong."""
    of_g(admin.remove_marks, MessageSelection(["0"])).apply(NOTE)
    shift(store, -3_600_000)
    list(of_g(admin.redrive, MessageSelection(["4"])).apply(NOTE).rows)
    assert handled() == [1, 4]


@pytest.mark.slow
def test_a_resumed_run_leaves_out_what_another_killed_run_sent(store, of_g, bodies, killed):
    def stop():
        if len(bodies()) == 3:
            raise KeyboardInterrupt

    other = of_g(admin.redrive, MessageSelection(["3", "4"]), writing=admin.Writing(pace=stop))
    with pytest.raises(KeyboardInterrupt):
        list(other.apply(NOTE).rows)
    DlqAcksFile(store).path.unlink()
    rest = of_g(admin.resume, killed)
    assert (rest.handled_since, [row.queue_offset for row in rest.plan]) == (1, [2, 4])
    list(rest.apply(NOTE).rows)
    assert sorted(bodies()) == [b"body %d" % n for n in range(5)]


@pytest.mark.slow
def test_a_run_that_goes_on_is_not_called_interrupted(store, of_g, killed):
    warnings: list[str] = []
    with RedriveRuns(store).alone():
        of_g(admin.redrive, ALL, warn=warnings.append)
    assert warnings == [
        "another redrive is running on this store; this one can begin when it has ended"
    ]


def test_what_was_handled_since_the_plan_is_not_sent(store, of_g, bodies):
    change = of_g(admin.redrive, ALL)
    of_g(admin.acknowledge, MessageSelection(["3"])).apply(NOTE)
    with pytest.raises(CliError, match="1 of these dead letters were handled") as raised:
        list(change.apply(NOTE).rows)
    assert (raised.value.exit_code, bodies()) == (CHANGED, [])


@pytest.mark.slow
def test_what_is_handled_while_a_run_goes_on_is_not_sent(of_g, bodies, handled):
    """Such as in a run that takes hours at its rate. What was handled before is sent if named."""
    of_g(admin.acknowledge, MessageSelection(["4"])).apply(NOTE)

    def ack():
        if not bodies():
            of_g(admin.acknowledge, MessageSelection(["0", "2"])).apply(NOTE)

    chosen = MessageSelection(["1", "2", "3", "4"])
    change = of_g(admin.redrive, chosen, writing=admin.Writing(pace=ack))
    receipts = list(change.apply(NOTE).rows)
    assert [row.applied for row in receipts] == [True, False, True, True]
    assert receipts[1].note == "not sent: another command has handled it since"
    assert receipts[3].note == "handled before"
    assert bodies() == [b"body 1", b"body 3", b"body 4"]
    assert handled() == [0, 1, 2, 3, 4]


def test_one_redrive_runs_at_a_time(store, of_g, bodies):
    change = of_g(admin.redrive, ALL)
    with RedriveRuns(store).alone() as alone:
        assert alone
        with pytest.raises(Refused, match="another redrive is running"):
            list(change.apply(NOTE).rows)
    assert bodies() == []


def test_the_caller_opens_the_writer(store, of_g, bodies):
    opened = []

    def open_writer():
        opened.append(EmbeddedBroker.open(store))
        return opened[0]

    change = of_g(admin.redrive, ALL, writing=admin.Writing(open_writer=open_writer))
    assert opened == []
    list(change.apply(NOTE).rows)
    assert (len(opened), len(bodies())) == (1, 5)
