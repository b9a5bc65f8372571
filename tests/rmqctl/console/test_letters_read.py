"""Dead letters are read once while none moves; the look says how far it is, and can be stopped."""

import threading
from typing import Any

import pytest
from textual.events import Key as KeyEvent

from broker.embedded.broker import EmbeddedBroker
from rmqctl.console import reading
from rmqctl.console.keys import KEYS
from rmqctl.console.looks.dead_letters import LETTERS, REASONS
from rmqctl.console.looks.look import Place, Source
from rmqctl.console.panes import STOPPED
from rmqctl.console.program.palette import why_off
from storage.clock import now_ms
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from tests.support.cli import run
from tests.support.console import drive, json_rows
from tests.support.dead_letters import bury
from tests.support.rich_store import GROUP, make_rich_store

STOP = next(key for key in KEYS if key.action == "stop")


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """A store with dead letters."""
    return make_rich_store(tmp_path_factory.mktemp("rich") / "s", now_ms() - 600_000).root


@pytest.mark.slow
@pytest.mark.parametrize("look", [LETTERS, REASONS])
def test_letters_are_not_read_again_while_none_moves(rich, look):
    place = Place("dlq", (GROUP,))
    memory: dict[str, Any] = {}
    told: list[Any] = []
    with EmbeddedBroker.open(rich, read_only=True) as broker:

        def rows(now):
            source = Source(broker, now, told.append, memory, told.append)
            return list(look.read(source, place))

        now = now_ms()
        first = rows(now)
        assert [progress.unit for progress in told if hasattr(progress, "unit")]
        assert {progress.total for progress in told if hasattr(progress, "unit")} == {
            json_rows(rich, f"rmqctl dlq list --where 'group = {GROUP}'")[0]["unhandled"]
        }
        told.clear()
        later = rows(now + 5_000)
        assert not any(hasattr(said, "unit") for said in told), "no letter was read"
        if look is LETTERS:
            assert [row.age_ms - 5_000 for row in later] == [row.age_ms for row in first]
            later = [row._replace(age_ms=row.age_ms - 5_000) for row in later]
        assert later == first


@pytest.mark.slow
def test_x_stops_the_reading_of_letters(rich):
    async def steps(console):
        await console.read()
        app, gate = console.app, threading.Event()
        app.reader.call(lambda source: gate.wait(30), lambda value: None)
        app.go(Place("dlq", (GROUP,)))
        app.reader.hold(held=True)
        gate.set()
        await console.press("x")
        await console.until("stopped (^r: again)")
        assert "letters read" in console.text()
        app.reader.hold(held=False)
        number = app.pane.number
        await console.press("j")
        app.look()
        assert app.pane.number == number, "what was stopped is not read again"
        await console.press("ctrl+r")
        await console.read()
        assert "stopped" not in console.text()
        assert app.pane.table.total == len(json_rows(rich, app.pane.command()))

    drive(rich, steps, "groups", size=(120, 40))


@pytest.mark.slow
def test_letters_that_are_read_again_say_how_far_it_is_and_x_stops_it(store, monkeypatch):
    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("orders", 1, 1))
    bury(store, "billing", [Message("orders", b"%d" % n) for n in range(6)])
    monkeypatch.setattr(reading, "_BATCH_S", -1.0)  # each letter is handed over at once

    async def steps(console):
        app, take, seen = console.app, console.app._take, []
        await console.read()
        (letters,) = [pane for pane in app.panes if pane.look is LETTERS]
        assert letters.table.total == 6

        def stop_at_second_letter(batch):
            take(batch)
            if batch.asked.look is LETTERS and batch.progress is not None and not batch.complete:
                seen.append((letters.count_text(), why_off(app, STOP)))
                if batch.progress.done == 1 and not app.reader.stops(letters.number):
                    app.look()  # as in a look that takes longer than --every
                    app.on_key(KeyEvent("x", "x"))

        app._take = stop_at_second_letter
        run("dlq", "ack", "billing", "0", "-y", "-S", store)
        await console.until("stopped (^r: again)")
        assert (letters.table.total, letters.count_text()) == (6, f"6, {STOPPED}")
        assert letters.part_text() == "the last look was stopped"
        said = [(f"6   {n} of 5 letters read (x stops)", "") for n in range(2)]
        assert list(dict.fromkeys(seen)) == said
        number = letters.number
        app.look()
        assert letters.number == number, "what was stopped is not read again"
        app._take = take
        await console.press("ctrl+r")
        await console.until(lambda: letters.table.total == 5)
        assert "stopped" not in console.text()

    drive(store, steps, "dlq", "billing", size=(140, 40))
