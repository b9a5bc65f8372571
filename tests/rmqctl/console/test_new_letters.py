"""New dead letters on the overview: how many came within ten minutes, and unknown is unknown."""

import re
import shutil
from types import SimpleNamespace

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.console import attention
from rmqctl.console.looks.look import Place, Source
from rmqctl.console.looks.new_letters import NEW, NEW_MS
from storage.clock import now_ms
from storage.format.message import Message
from tests.support.cli import run
from tests.support.console import drive
from tests.support.dead_letters import bury


@pytest.fixture
def with_letters(store):
    """Three dead letters of now."""
    bury(store, "billing", [Message("orders", b"%d" % n) for n in range(3)], ["timeout"])
    return store


def counted(store, now):
    with EmbeddedBroker.open(store, read_only=True) as broker:
        source = Source(broker, now, lambda sentence: None, {})
        return {row.group: row.new for row in NEW.read(source, Place("overview"))}


def test_the_count_is_that_of_the_command(with_letters):
    now = now_ms()
    rows = run("dlq", "browse", "billing", "--from", "-10m", "-o", "json", "-S", with_letters)
    assert counted(with_letters, now) == {"billing": len(rows.json())} == {"billing": 3}
    assert counted(with_letters, now + NEW_MS + 60_000) == {}


@pytest.fixture
def damaged(with_letters, tmp_path):
    """A copy in which the newest letter cannot be read."""
    run("produce", "orders", "-S", with_letters, stdin=b"1\n2\n")
    store = tmp_path / "damaged"
    shutil.copytree(with_letters, store)
    log = next(iter(sorted((store / "commitlog").iterdir())))
    with EmbeddedBroker.open(store, read_only=True) as broker:
        unit = broker.view.unit("%DLQ%billing", 0, 2)
    assert unit is not None
    with log.open("r+b") as file:
        file.seek(unit[0])
        file.write(b"\xff" * unit[1])
    return store


def test_a_newest_letter_that_cannot_be_read_is_unknown(damaged):
    assert counted(damaged, now_ms()) == {"billing": None}


@pytest.mark.slow
def test_letters_that_may_be_new_need_attention(damaged):
    (row,) = run("dlq", "list", "-o", "json", "-S", damaged).json()
    assert row["newest_timestamp"] is None

    async def steps(console):
        await console.read()
        await console.until(lambda: not any(pane.loading for pane in console.app.panes))
        assert "nothing needs attention" not in console.text()
        (row,) = [row for row in console.app.pane.table.shown if row.state == "DLQ"]
        assert (row.what, row.age_ms) == ("+? in 10m, 3 unhandled", None)
        (line,) = [line for line in console.lines() if "+? in 10m, 3 unhandled" in line]
        assert re.search(r"billing +- +\?", line), "its age is unknown"
        (line,) = [line for line in console.lines() if " DEAD LETTERS " in line]
        assert "3 unhandled in 1 group   newest ?   +? in 10m" in line

    drive(damaged, steps, "overview", size=(140, 40))


def test_letters_of_which_it_is_known_that_none_is_new_need_none():
    row = SimpleNamespace(group="billing", unhandled=3, newest_timestamp=None)
    assert not list(attention.of_dead_letters([row], 0, {}))
    assert [row.what for row in attention.of_dead_letters([row], 0, None)] == [
        "+? in 10m, 3 unhandled"
    ]


@pytest.mark.parametrize("number", [1, 2])
def test_a_place_that_a_repair_emptied_is_no_new_letter(with_letters, tmp_path, number):
    store = tmp_path / "repaired"
    shutil.copytree(with_letters, store)
    with EmbeddedBroker.open(store, read_only=True) as broker:
        [(place, size, _)] = broker.view.units("%DLQ%billing", 0, number, 1)
    with min((store / "commitlog").iterdir()).open("r+b") as file:
        file.seek(place)
        file.write(bytes(size))
    assert run("store", "repair", "--yes", "-S", store).code == 0
    assert counted(store, now_ms()) == {"billing": 2}
    rows = run("dlq", "list", "-o", "json", "-S", store).json()
    assert [row["unhandled"] for row in rows] == [2]


@pytest.mark.slow
def test_the_overview_says_how_many_came(with_letters):
    async def steps(console):
        await console.read()
        assert "+3 in 10m" in console.text()
        assert "DLQ" in console.text()
        assert "+3 in 10m, 3 unhandled" in console.text()

    drive(with_letters, steps, "overview", size=(140, 40))
