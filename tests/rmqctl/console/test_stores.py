"""Stores that are damaged, vanish, or never were: a sentence, and the console goes on."""

import json
import shutil
import warnings
from itertools import product

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.console.looks.look import Place
from rmqctl.console.opened import keep_warnings
from rmqctl.console.panes import Pane
from rmqctl.console.screens.table import TABLE
from storage.clock import now_ms
from tests.support import golden
from tests.support.cli import run
from tests.support.console import drive, terminal
from tests.support.damages import NotHere, damage, kinds
from tests.support.examples import one_in
from tests.support.privileges import without_privileges
from tests.support.rich_store import make_rich_store

WITHOUT_STORE = {"contexts"}
"""Screens that show nothing of the store."""


def every_place(names):
    """Every screen with names, but one that goes on until it is left."""
    return [
        Place(screen, chosen)
        for screen, ref in TABLE.items()
        if screen != "follow"
        for chosen in product(*(names.get(name, ()) for name in ref.names))
    ]


def names_of(store):
    """A group, a topic with messages, and its first message."""
    with EmbeddedBroker.open(store, read_only=True) as broker:
        groups = sorted({group for group, _ in broker.consumer_offsets()})
        for topic, queue in broker.view.queues():
            first = broker.view.min_offset_in_queue(topic, queue)
            found = broker.view.get_message(topic, queue, first, 1).messages
            if found and topic[0].isalpha() and not topic.startswith("SCHEDULE"):
                return {
                    "GROUP": groups[:1] or ["none"],
                    "TOPIC": [topic],
                    "QUEUE": [str(queue)],
                    "OFFSET": [str(first)],
                    "ID": [found[0].msg_id],
                    "CHANGE-ID": ["9"],
                }
    return {"GROUP": groups[:1]}


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    return make_rich_store(tmp_path_factory.mktemp("stores") / "s", now_ms() - 600_000).root


def errors(console):
    """The reason of each look that failed."""
    panes = console.app.panes
    parts = [part for pane in panes for part in getattr(pane, "parts", ())]
    return {of.error for of in (*panes, *parts)} - {None}


def check_said(console):
    """Check that each failed look and each notice is said on the screen, and no bug."""
    text = " ".join(console.text().split())
    for error in errors(console):
        assert "internal error" not in error
        assert f" {error[:20]}" in text, error
    if any(console.app.panes[n].notices for n in console.app.seen()):
        assert "note: " in text or "note (? shows it): " in text or "notes (? shows all): " in text


def look_at_all(store, places, check=check_said):
    async def steps(console):
        for place in places:
            console.app.go(place)
            await console.read()
            check(console)

    with warnings.catch_warnings():
        keep_warnings()  # as the console does
        drive(store, steps, "groups")


@pytest.mark.parametrize("kind", ["nothing", "file", "empty", "unreadable"])
@pytest.mark.slow
def test_what_is_no_store_is_named_on_every_screen(rich, tmp_path, kind):
    path = tmp_path / "nowhere"
    if kind == "file":
        path.write_text("no store")
    elif kind == "empty":
        path.mkdir()
    elif kind == "unreadable":
        path.mkdir()
        (path / "commitlog").write_text("no folder")

    def check(console):
        check_said(console)
        lists = [pane for pane in console.app.panes if type(pane) is Pane and not pane.empty]
        of_store = [pane for pane in lists if pane.look.of_store]
        assert {pane.count_text() for pane in of_store} <= {"?"}, "nothing is known, not 0"
        where = console.app.place.screen
        text = " ".join(console.text().split())
        assert ("is not a RocketMQ store" in text) != (where in WITHOUT_STORE), where

    look_at_all(path, every_place(names_of(rich)), check)


@pytest.mark.slow
def test_a_store_that_is_made_where_none_was_is_shown(tmp_path):
    path = tmp_path / "s"

    async def steps(console):
        await console.until(lambda: "no such folder" in " ".join(console.text().split()))
        run("store", "init", path)
        run("produce", "orders", "-S", path, stdin=b"one\n")
        run("consume", "orders", "-g", "billing", "-e", "-S", path)
        await console.until("billing")
        await console.until(lambda: not errors(console))

    drive(path, steps, "groups")


@pytest.mark.slow
def test_a_store_that_vanishes_leaves_its_rows_with_their_age_and_is_read_again(rich, tmp_path):
    away = tmp_path / "away"
    wanted = every_place(names_of(rich))

    async def steps(console):
        app = console.app
        for place in wanted:
            app.go(place)
            await console.read()
            failed = errors(console)
            rows = [pane.table.total for pane in app.panes]
            rich.rename(away)
            try:
                seen = [app.panes[n] for n in sorted(app.seen())]
                again = [pane for pane in seen if pane.look.of_store]
                for pane in again:
                    if not pane.empty:
                        app.read(pane)
                if place.screen not in WITHOUT_STORE:
                    await console.until(lambda: any("no such folder" in e for e in errors(console)))
                await console.until(
                    lambda again=again: all(p.lost or p.empty or p.error for p in again)
                )
                check_said(console)
                assert [pane.table.total for pane in app.panes] == rows, place
                if any(rows) and place.screen not in WITHOUT_STORE:
                    assert "these rows are" in console.text()
            finally:
                away.rename(rich)
            app.look()
            await console.until(lambda failed=failed: errors(console) <= failed)
            assert "no such folder" not in console.text()

    drive(rich, steps, "groups")


@pytest.mark.slow
def test_another_store_in_its_place_is_read_instead(rich, tmp_path):
    path = tmp_path / "s"
    run("store", "init", path)
    run("produce", "orders", "-S", path, stdin=b"one\ntwo\n")
    run("produce", "old", "-S", path, stdin=b"one\n")

    async def steps(console):
        await console.until("old")
        shutil.rmtree(path)
        await console.until(lambda: any("no such folder" in error for error in errors(console)))
        run("store", "init", path)
        run("produce", "new", "-S", path, stdin=b"one\n")
        await console.until("new")
        await console.until(lambda: console.app.pane.table.total == 1)
        assert "old" not in console.text()

    drive(path, steps, "topics")


@pytest.mark.slow
def test_a_store_that_vanishes_on_a_terminal(rich, tmp_path):
    path = tmp_path / "s"
    shutil.copytree(rich, path)
    with terminal(path, "groups", "--every", "200ms") as console:
        console.until("readers")
        path.rename(tmp_path / "away")
        console.until("these rows are")
        console.until(lambda: "no such folder" in " ".join(console.text().split()))
        assert "readers" in console.text()
        console.send(":topics\r")
        console.until("TOPIC")
        console.until(lambda: "no such folder" in " ".join(console.text().split()))
        assert "Traceback" not in console.text()
        (tmp_path / "away").rename(path)
        console.until("orders")
        console.send("q")
        assert console.ended() == 0


@pytest.mark.slow
def test_a_store_that_may_not_be_read_is_said(rich, tmp_path):
    path = tmp_path / "s"
    shutil.copytree(rich, path)
    program = [*without_privileges(), *program_of(path)]
    path.chmod(0)
    try:
        with terminal(path, program=program) as console:
            console.until("! ")
            said = " ".join(console.text().split())
            assert "cannot be read" in said or "ermission" in said
            path.chmod(0o755)
            console.until("readers")
            console.send("q")
            assert console.ended() == 0
    finally:
        path.chmod(0o755)


def program_of(store):
    """The console at its groups."""
    import sys
    from pathlib import Path

    rmqctl = Path(sys.executable).with_name("rmqctl")
    return [str(rmqctl), "console", "-S", str(store), "groups", "--every", "200ms"]


@pytest.mark.slow
def test_a_warning_of_damage_stands_on_the_screen(tmp_path):
    store = golden.extract("retry-dlq-4.9", tmp_path)
    damage(store, "consumerOffset.json: cut")
    with terminal(store, "groups", size=(30, 140)) as console:
        console.until("note: ")
        assert "consumerOffset.json cannot be read" in console.words()
        console.send("?")
        console.until("Notes on what is shown")
        console.send("\x1b")
        console.until("note: ")
        console.send("q")
        assert console.ended() == 0


@pytest.mark.filterwarnings("ignore::storage.errors.DamagedFileWarning")
@pytest.mark.slow
def test_the_note_of_a_damage_ends_when_its_file_is_replaced(store):
    run("produce", "orders", stdin=b"1\n")
    topics = store / "config" / "topics.json"
    table = json.loads(topics.read_text())
    table["topicConfigTable"]["orders"]["readQueueNums"] = 100_000
    topics.write_text(json.dumps(table))
    with terminal(store, "topics", "--every", "200ms", size=(30, 140)) as console:
        console.until("note: ")
        assert "readQueueNums of topic orders is 100000" in console.words()
        run("topic", "alter", "orders", "--read-queues", 4, "--yes", "-S", store)
        console.until(lambda: "note: " not in console.text())
        assert "orders" in console.text()


@pytest.mark.slow
def test_a_note_about_what_the_store_lacks_ends_with_the_next_look_by_its_key(store):
    run("produce", "orders", "--queue", 0, stdin=b"1\n")
    (file,) = (store / "consumequeue" / "orders" / "0").iterdir()
    file.unlink()
    with terminal(store, "messages", "orders", "--every", "200ms", size=(30, 140)) as console:
        console.until("note: ")
        assert "queue 0 of orders has no file" in console.words()
        run("store", "rebuild", "queue", "orders", "--yes", "-S", store)
        console.send("\x12")
        console.until(lambda: "note: " not in console.text())
        console.until("0:0")


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(9, golden.names()))
def test_every_golden_store_is_shown_on_every_screen(name):
    store = golden.store(name)
    look_at_all(store, every_place(names_of(store)))


@pytest.fixture(scope="module")
def to_damage(tmp_path_factory):
    store = golden.extract("retry-dlq-4.9", tmp_path_factory.mktemp("damaged"))
    return store, every_place(names_of(store))


@pytest.mark.slow
@pytest.mark.parametrize("kind", one_in(33, kinds()))
def test_a_damaged_store_is_shown_on_every_screen(to_damage, kind):
    store, places = to_damage
    try:
        done = damage(store, kind)
    except NotHere:  # the store has nothing that it could damage
        return
    try:
        look_at_all(store, places)
    finally:
        done.undo()
