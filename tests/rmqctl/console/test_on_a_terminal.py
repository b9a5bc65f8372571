"""The installed console on a pseudo-terminal."""

import base64
import re
import shlex

import pytest

from tests.support.cli import run
from tests.support.console import terminal


@pytest.fixture
def stocked(store):
    """A topic with 50 messages, and a group that has read ten."""
    run("produce", "orders", stdin=b"".join(b"order %d\n" % n for n in range(50)))
    run("consume", "orders", "-g", "billing", "-e", "-c", "10")
    return store


@pytest.mark.slow
def test_a_walk_from_groups_to_topics_and_out(stocked):
    with terminal(stocked, "groups") as console:
        console.until("billing")
        assert "READ ONLY" in console.text()
        assert "= rmqctl lag show --sort=-lag" in console.text()
        console.send("\r")
        console.until("MEMBERS")
        console.send(":topics\r")
        console.until("TOPIC ")
        console.until("orders")
        console.send("/nothing")
        console.until("no row of 1 is shown")
        console.send("\x1b")
        console.until("enter open")
        console.send("\x1b")
        console.until("orders")
        console.resize(40, 140)
        console.until(lambda: console.text().count("\u2500") > 250)
        console.resize(5, 20)
        console.until("rmqctl console needs\n60x15 cells")
        console.resize(24, 80)
        console.until("orders")
        console.send("q")
        assert console.ended() == 0
        assert b"\x1b[?1049l" in console.raw


@pytest.mark.slow
def test_every_example_of_its_help_shows_a_screen(stocked):
    lines = run("console", "--help").out.splitlines()
    found = [line.split("rmqctl console")[1].split() for line in lines if ":  " in line]
    assert len(found) == 3
    for words in found:
        with terminal(stocked, *words) as console:
            console.until("= rmqctl ")
            console.until("READ ONLY")
            console.send("q")
            assert console.ended() == 0


@pytest.mark.parametrize("dumb", [True, False], ids=["dumb", "piped"])
@pytest.mark.slow
def test_without_a_full_terminal_it_names_what_works(stocked, dumb):
    if dumb:
        with terminal(stocked, env={"TERM": "dumb"}) as console:
            assert console.ended() == 2
            said = console.text()
    else:
        result = run("console")
        assert result.code == 2
        said = result.err
    assert "lag watch" in " ".join(said.split())


@pytest.mark.slow
def test_a_copied_command_names_the_store_that_is_shown(stocked):
    with terminal(stocked, "groups") as console:
        console.until("billing")
        console.send("Y")
        console.until("copied to the terminal (OSC 52): ")
        [copied] = re.findall(rb"\x1b\]52;c;(.*?)\x07", console.raw)
        command = base64.b64decode(copied).decode()
        assert command == f"rmqctl -S {stocked} lag show --sort=-lag"
        assert "billing" in run(*shlex.split(command)[1:]).out
        console.send("r")
        console.until("read only (:write")
        console.send("Y")
        console.until(lambda: console.raw.count(b"\x1b]52;") == 2)
        copied = re.findall(rb"\x1b\]52;c;(.*?)\x07", console.raw)[1]
        assert base64.b64decode(copied).decode().startswith(f"rmqctl -S {stocked} offset reset ")
