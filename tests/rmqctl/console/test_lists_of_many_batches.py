"""Lists that are handed over in more than one batch: the cursor and the rows stay at each look."""

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from rmqctl.console.looks.look import Look, Place, Progress
from rmqctl.console.panes import Pane
from rmqctl.console.reading import Asked, Batch
from rmqctl.console.specs import PaneSpec
from rmqctl.output.view import Format, View
from storage.configs.topics import TopicConfig
from tests.support.cli import run
from tests.support.console import drive, json_rows

ROWS = 600


@pytest.fixture
def many(store):
    """A topic with many messages, and a group that reads one with many queues."""
    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("orders", 2, 2))
        for queue in range(2):
            broker.send_column("orders", [b"%d" % n for n in range(ROWS // 2)], queue)
        broker.update_topic(TopicConfig("wide", ROWS, ROWS))
        broker.update_consumer_offsets(
            "billing", [OffsetCommit("wide", queue, 0) for queue in range(ROWS)]
        )
    return store


async def looks_at(console, count):
    """What a list shows after each batch, until so many further looks of it are complete."""
    app, pane = console.app, console.app.pane
    take, found, complete = app._take, [], []

    def note(batch):
        take(batch)
        if pane.takes(batch):
            found.append((pane.cursor_key(), pane.table.total, pane.count_text()))
            complete.append(batch.complete)

    app._take = note
    await console.until(lambda: sum(complete) >= count)
    app._take = take
    assert len(complete) > count, "each look was one batch"
    return found


@pytest.mark.parametrize("words", [("messages", "orders"), ("group", "billing")])
@pytest.mark.slow
def test_the_cursor_and_the_count_stay_at_each_look(many, words):
    async def steps(console):
        await console.read()
        await console.press("G")
        pane = console.app.pane
        assert pane.cursor == ROWS - 1
        before = pane.cursor_key(), ROWS, pane.count_text()
        assert "so far" not in pane.count_text()
        assert set(await looks_at(console, 2)) == {before}

    drive(many, steps, *words)


@pytest.mark.slow
def test_a_message_that_comes_is_shown_with_the_other_rows_of_its_look(many):
    async def steps(console):
        await console.read()
        await console.press("G")
        key = console.app.pane.cursor_key()
        run("produce", "orders", "-S", many, stdin=b"one more\n")
        await console.until(lambda: f"{ROWS + 1:,}" in console.app.pane.count_text())
        assert console.app.pane.cursor_key() == key
        printed = json_rows(many, console.app.pane.command())
        names = [row["queue_offset"] for row in printed]
        assert [row.queue_offset for row in console.app.pane.table.shown] == names

    drive(many, steps, "messages", "orders")


LOOK = Look("topics", TopicConfig, lambda source, place: (), lambda place: (), ("topic_name",))
HERE = Place("topics")


def rows_of(*numbers):
    return [TopicConfig(f"topic-{number}", 1, 1) for number in numbers]


def batch(*numbers, first=False, complete=False, look=LOOK, **more):
    """A part of a look."""
    asked = Asked(look, HERE, everything=False, number=1)
    return Batch(asked, rows_of(*numbers), first, complete, 5, 1, **more)


@pytest.fixture
def pane():
    """A list that shows three rows, with the cursor on the last one."""
    found = Pane(PaneSpec(LOOK), HERE, View(Format.TABLE))
    taken(found, batch(1, 2, 3, first=True, complete=True))
    found.move_to_end(last=True)
    return found


def taken(pane, *batches):
    """Hand batches over, as a reader does; what is shown after each."""
    found = []
    for each in batches:
        pane.prepare(each)
        pane.take(each)
        found.append(([row.topic_name[6:] for row in pane.table.shown], pane.count_text()))
    return found


def test_the_first_rows_are_shown_as_they_come():
    pane = Pane(PaneSpec(LOOK), HERE, View(Format.TABLE))
    shown = taken(pane, batch(1, first=True), batch(2), batch(complete=True))
    assert shown == [(["1"], "1 so far"), (["1", "2"], "2 so far"), (["1", "2"], "2")]


def test_later_rows_replace_those_before_once_all_have_come(pane):
    shown = taken(pane, batch(first=True), batch(0, 2), batch(3, 4, complete=True))
    assert shown == [(["1", "2", "3"], "3")] * 2 + [(["0", "2", "3", "4"], "4")]
    assert pane.row().topic_name == "topic-3"


@pytest.mark.parametrize("how", [{"error": "it is gone"}, {"stopped": True}])
def test_a_look_that_does_not_come_to_its_end_leaves_the_rows_before(pane, how):
    shown = taken(pane, batch(7, first=True), batch(8, complete=True, **how))
    assert [rows for rows, _ in shown] == [["1", "2", "3"]] * 2
    assert pane.error == how.get("error")
    assert taken(pane, batch(9, first=True), batch(complete=True)) == [
        (["1", "2", "3"], "3"),
        (["9"], "1"),
    ]


def test_many_rows_of_several_batches_are_arranged_by_the_thread_that_reads_them(pane, monkeypatch):
    taken(pane, batch(*range(600), first=True))
    last = batch(*range(600, 1_200), complete=True)
    pane.prepare(last)
    monkeypatch.setattr(pane.table, "_shown_of", None)
    pane.take(last)
    assert len(pane.table.shown) == 1_200
    assert pane.row().topic_name == "topic-3"


def test_in_a_walk_that_is_begun_again_the_cursor_returns_to_its_row_when_it_comes():
    walk = LOOK._replace(walk=True)
    pane = Pane(PaneSpec(walk), HERE, View(Format.TABLE))
    taken(pane, batch(1, 2, 3, first=True, complete=True, look=walk))
    pane.move(1)
    shown = taken(pane, batch(1, first=True, look=walk), batch(5, look=walk))
    assert [rows for rows, _ in shown] == [["1"], ["1", "5"]]
    taken(pane, batch(2, complete=True, look=walk))
    assert pane.row().topic_name == "topic-2"


def walking(*batches):
    """A walk in a pane that has got these batches; its pane."""
    walk = LOOK._replace(walk=True)
    pane = Pane(PaneSpec(walk), HERE, View(Format.TABLE))
    pane.number = 1
    taken(pane, *(one._replace(asked=one.asked._replace(look=walk)) for one in batches))
    return pane


def said(pane):
    """What stands in the pane instead of rows."""
    lines = pane.lines(40, 9, active=True, titled=False)
    return "\n".join("".join(span.text for span in line) for line in lines)


def test_a_walk_without_a_row_so_far_is_read_and_does_not_say_that_there_is_none():
    pane = walking(batch(first=True, progress=Progress(1, 9, "topics")))
    assert pane.progress == Progress(1, 9, "topics")
    assert "reading ..." in said(pane)
    pane.leave()
    assert pane.walks
    assert not pane.stopped
    taken(pane, batch(first=True, complete=True, look=pane.look))
    assert "there is none" in said(pane)


def test_a_walk_that_is_read_again_has_its_rows_until_the_first_one_comes():
    pane = walking(batch(1, 2, first=True, complete=True))
    again = [batch(first=True, look=pane.look), batch(look=pane.look), batch(3, look=pane.look)]
    rows = [rows for rows, _ in taken(pane, *again, batch(4, complete=True, look=pane.look))]
    assert rows == [["1", "2"], ["1", "2"], ["3"], ["3", "4"]]
    shown = taken(pane, again[0], batch(complete=True, stopped=True, look=pane.look))
    assert [rows for rows, _ in shown] == [["3", "4"]] * 2
    assert pane.stopped
    rows = [rows for rows, _ in taken(pane, again[0], batch(complete=True, look=pane.look))]
    assert rows == [["3", "4"], []]


def test_a_part_of_the_rows_says_that_the_error_before_is_over(pane):
    taken(pane, batch(first=True, complete=True, error="it is gone"))
    assert pane.error == "it is gone"
    note = "5 of 9 groups are still to be looked at"
    part = batch(9, first=True, complete=True, goes_on=True, notices=(note,))
    assert taken(pane, part) == [(["1", "2", "3"], "3")]
    assert (pane.error, pane.notices) == (None, (note,))


def test_rows_of_a_look_that_fails_half_way_are_a_part_and_say_so():
    def at(*numbers, done, **more):
        return batch(*numbers, progress=Progress(done, 90, "topics"), **more)

    pane = Pane(PaneSpec(LOOK), HERE, View(Format.TABLE))
    first = [at(1, first=True, done=10), at(2, done=30, complete=True, error="it is gone")]
    assert taken(pane, *first)[1] == (["1", "2"], "2 so far   30 of 90 topics read, failed")
    assert pane.part_text() == "so far, failed, 30 of 90 topics read"
    assert said(pane).startswith("! it is gone"), "they are not older than the error"
    assert pane.age_text(), "their age is shown, as no look has read them anew"
    later = [at(7, first=True, done=5), at(8, done=6, complete=True, error="it is gone, too")]
    later = [one._replace(as_of=9_000) for one in later]
    shown = taken(pane, *later)
    assert [rows for rows, _ in shown] == [["1", "2"]] * 2
    assert shown[1][1] == "2 so far   30 of 90 topics read, failed"
    assert said(pane).startswith("! these rows are ")
    assert taken(pane, batch(1, 2, 3, first=True, complete=True))[0] == (["1", "2", "3"], "3")
    assert pane.part_text() == ""


def test_a_walk_that_fails_again_before_its_first_row_keeps_what_it_said_of_its_rows():
    def at(*numbers, done, **more):
        return batch(*numbers, progress=Progress(done, 90, "topics"), **more)

    def ends_at(*numbers, done, **more):
        return at(*numbers, done=done, complete=True, error="it is gone", **more)

    pane = walking(at(1, first=True, done=20), ends_at(2, done=40))
    text = "2 so far   40 of 90 topics read, failed (^r: again)"
    assert pane.count_text() == text
    again = [at(first=True, done=1, look=pane.look), ends_at(done=2, look=pane.look)]
    assert taken(pane, *again)[1] == (["1", "2"], text)
    whole = batch(1, 2, 3, first=True, complete=True, look=pane.look)
    assert taken(pane, whole, ends_at(first=True, done=1, look=pane.look))[1] == (
        ["1", "2", "3"],
        "3",
    )
    assert pane.part_text() == "the last look failed"


def test_a_walk_that_fails_without_a_row_says_how_far_it_came():
    gone = batch(complete=True, error="it is gone", progress=Progress(3, 9, "topics"))
    pane = walking(batch(first=True, progress=Progress(1, 9, "topics")), gone)
    assert pane.count_text() == "?   3 of 9 topics read, failed (^r: again)"
