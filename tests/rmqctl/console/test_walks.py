"""Following new messages beside a producer, and walks that say how far they are."""

import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest
from textual.events import Key as KeyEvent

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.messages import Search
from rmqctl.console.looks import store as store_looks, walks
from rmqctl.console.looks.look import Place, Progress, Source
from rmqctl.console.looks.walks import KEPT
from tests.rmqctl.console.test_messages import complete, same_rows, stocked
from tests.support.console import drive

__all__ = ["stocked"]
PROGRAM = str(Path(sys.executable).with_name("rmqctl"))


def produce(store, topic, count):
    """Send messages from a process of its own."""
    lines = b"".join(b'{"n":%d}\n' % n for n in range(count))
    subprocess.run([PROGRAM, "produce", topic, "-S", str(store)], input=lines, check=True)


async def following(console):
    """Wait until new messages are waited for."""
    await console.until(lambda: console.app.panes[0].progress is not None)


@pytest.mark.slow
def test_new_messages_are_shown_and_those_that_are_left_out_are_counted(stocked):
    async def steps(console):
        await following(console)
        assert "0 came, 0 kept" in console.text()
        produce(stocked, "orders", 3)
        await console.until("3 came, 3 kept")
        assert [row.body for row in console.app.pane.table.shown] == [
            '{"n":0}',
            '{"n":1}',
            '{"n":2}',
        ]
        produce(stocked, "orders", 3 * KEPT)
        await console.until(f"{3 * KEPT + 3:,} came")
        pane = console.app.pane
        await console.until(lambda: pane._found + pane.progress.left_out == 3 * KEPT + 3)
        assert pane.table.total == KEPT
        assert f"{2 * KEPT + 3:,} left out" in console.text()
        assert pane.cursor == KEPT - 1
        await console.press("f")
        await console.until("the last 1000")

    drive(stocked, steps, "follow", "orders", "*")


@pytest.mark.slow
def test_with_a_filter_every_message_is_looked_at(stocked):
    async def steps(console):
        await following(console)
        produce(stocked, "orders", 3 * KEPT)
        await console.until("3,000 came, 1,993 left out, 1,000 kept, 3,000 looked at, 2,993 match")
        await console.type(":where body ~ '7}'")
        await console.press("enter")
        await console.until(lambda: console.app.panes[0].progress == (0, 0, "messages", 0))
        produce(stocked, "orders", 20)
        await console.until("20 came, 20 looked at, 2 match")
        assert "body ~" in console.lines()[1]
        await console.type(":where tags = A")
        await console.press("enter")
        await console.until(lambda: "tags = A" in console.lines()[1])
        assert "body ~" not in console.lines()[1]
        assert console.app.place == console.app.panes[0].place
        await console.press("x")
        await console.until("stopped")

    drive(stocked, steps, "follow", "orders", "*", "--json-path 'n >= 7'")


@pytest.mark.parametrize("words", ["ann orders", "-t orders -Q 1 --json-path 'n > 40'", "1f8b"])
@pytest.mark.slow
def test_a_search_has_the_rows_of_its_command(stocked, words):
    async def steps(console):
        await console.type(f":search {words}")
        await console.press("enter")
        await complete(console)
        pane = console.app.panes[0]
        if words == "1f8b":
            assert pane.table.total == 0
            return
        same_rows(stocked, pane)
        await console.press("n")
        assert pane.cursor == 1

    drive(stocked, steps)


@pytest.mark.slow
def test_a_search_keeps_to_the_topic_and_says_what_is_wrong(stocked):
    async def steps(console):
        await complete(console)
        await console.type(":search --regex '\"n\":1.'")
        await console.press("enter")
        await complete(console)
        assert (
            console.app.panes[0]
            .command()
            .endswith(
                "-t orders -Q 0 --columns " + ",".join(console.app.panes[0].table.view.columns)
            )
        )
        same_rows(stocked, console.app.panes[0])
        await console.type(":search --regex '('")
        await console.press("enter")
        await console.until("! --regex")
        await console.type(":search --nothing 5")
        await console.press("enter")
        await console.until("is not a filter option")

    drive(stocked, steps, "messages", "orders", "0")


@pytest.mark.slow
def test_a_search_that_is_stopped_says_how_far_it_came(stocked):
    produce(stocked, "orders", 3000)

    async def steps(console):
        app = console.app
        take = app._take
        stopped: list[int] = []

        def stop_at_first_rows(batch):
            take(batch)
            if batch.rows and batch.asked.look is walks.SEARCH and not stopped:
                stopped.append(len(batch.rows))
                app.on_key(KeyEvent("x", "x"))

        app._take = stop_at_first_rows
        await console.type(":search n -t orders")
        await console.press("enter")
        await console.until("stopped (^r: again)")
        pane = app.panes[0]
        assert pane.table.total < 3000
        assert re.search(r" so far   .* of .* of the log searched, stopped", console.text())
        assert pane.part_text().startswith("so far, stopped, ")
        await console.press("ctrl+r")
        await console.until(lambda: not pane.stopped and not pane.loading)
        assert pane.table.total == 3060
        assert "so far" not in console.text()

    drive(stocked, steps, size=(100, 24))


@pytest.mark.slow
def test_a_search_that_fails_half_way_says_how_far_it_came(stocked, monkeypatch):
    produce(stocked, "orders", 3000)
    scanned = Search.parts

    def parts(search):
        for part in scanned(search):
            search.scanned_bytes = 1
            yield part
            raise OSError(errno.EIO, "the disk does not answer")

    async def steps(console):
        monkeypatch.setattr(Search, "parts", parts)
        await console.type(":search n -t orders")
        await console.press("enter")
        await console.until("failed (^r: again)")
        pane = console.app.panes[0]
        assert pane.table.total
        assert re.search(r"\d so far   1 of .* of the log searched, failed", console.text())
        await console.press("G", "n")
        assert "the search has failed (^r: again)" in console.text()
        monkeypatch.setattr(Search, "parts", scanned)
        await console.press("ctrl+r")
        await console.until(lambda: not pane.error and not pane.loading)
        assert pane.table.total == 3060
        assert "so far" not in console.text()

    drive(stocked, steps, size=(100, 24))


def test_the_reading_of_the_disk_says_how_many_topics_were_read(stocked):
    come: list[Progress] = []
    with EmbeddedBroker.open(stocked, read_only=True) as broker:
        source = Source(broker, 0, lambda sentence: None, {}, come.append)
        rows = list(store_looks.DISK.read(source, Place("health")))
    topics = sum(row.kind == "topic" for row in rows)
    assert come == [Progress(done, topics, "topics") for done in range(topics)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["--where tags=A", "--where=tags=A", "--where=tags=A --where tags=B"]
)
def test_the_condition_of_new_messages_is_dropped_however_it_was_given(stocked, words):
    async def steps(console):
        await console.until("follow   --where")
        await console.type(":where")
        await console.press("enter")
        await console.until(lambda: console.app.place == Place("follow", ("orders", "*", "")))
        assert "--where" not in console.text()

    drive(stocked, steps, "follow", "orders", "*", words)
