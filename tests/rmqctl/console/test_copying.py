"""``y`` and ``Y``: to the clipboard of the terminal, else into a file; the notice says which."""

import base64

import pytest

from rmqctl.console.terminal import no_clipboard
from tests.support.cli import run
from tests.support.console import drive, terminal


@pytest.fixture
def stocked(store, tmp_path, monkeypatch):
    """A topic, and the folder of the user's state."""
    run("produce", "orders", stdin=b"1\n2\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("RMQCTL_CONSOLE_COPY", raising=False)
    return store


@pytest.mark.parametrize(
    ("environ", "has_none"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "linux"}, True),
        ({"TERM": "vt220"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, True),
        ({"TERM": "screen-256color", "STY": "1.pts"}, True),
        ({"TERM": "screen-256color", "STY": "1.pts", "TMUX": "/tmp/t"}, False),
        ({"TERM": "screen-256color", "TMUX": "/tmp/t"}, False),
    ],
)
def test_terminals_without_a_clipboard_are_known_by_their_environment(environ, has_none):
    assert bool(no_clipboard(environ)) is has_none


@pytest.mark.parametrize(
    ("env", "to_file"),
    [
        ({}, False),
        ({"TERM": "linux"}, True),
        pytest.param({"RMQCTL_CONSOLE_COPY": "file"}, True, marks=pytest.mark.long),
        ({"TERM": "linux", "RMQCTL_CONSOLE_COPY": "terminal"}, False),
    ],
)
@pytest.mark.slow
def test_the_notice_says_which_way_a_text_went(stocked, tmp_path, env, to_file):
    file = tmp_path / "state" / "rmqctl" / "copied.txt"
    with terminal(stocked, "topics", size=(24, 200), env=env) as console:
        console.until("orders")
        console.send("y")
        if to_file:
            console.until(f"copied to the file {file} (")
            assert file.read_text() == "orders\n"
            assert b"\x1b]52;" not in console.raw
            console.send("Y")
            console.until("): rmqctl -S")
            assert file.read_text() == f"rmqctl -S {stocked} topic list\n"
        else:
            console.until("copied to the terminal (OSC 52): orders")
            assert f"\x1b]52;c;{base64.b64encode(b'orders').decode()}\x07".encode() in console.raw
            assert not file.exists()
        console.send("q")
        assert console.ended() == 0


@pytest.mark.slow
def test_a_file_inside_the_store_is_not_written(stocked, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(stocked / "rmqctl"))
    monkeypatch.setenv("RMQCTL_CONSOLE_COPY", "file")

    async def steps(console):
        await console.read()
        await console.press("y")
        await console.until(lambda: "is inside the store" in console.words())
        assert not (stocked / "rmqctl" / "rmqctl").exists()

    drive(stocked, steps, "topics")


def test_a_malformed_setting_is_said(stocked, monkeypatch):
    monkeypatch.setenv("RMQCTL_CONSOLE_COPY", "nowhere")

    async def steps(console):
        await console.read()
        await console.press("y")
        assert "console_copy: 'nowhere' is not one of auto, terminal, file" in console.text()

    drive(stocked, steps, "topics", size=(120, 24))


@pytest.mark.slow
def test_a_command_has_the_zone_that_the_console_was_given(stocked, monkeypatch):
    copied: list[str] = []

    async def steps(console):
        monkeypatch.setattr(console.app, "copy", copied.append)
        await console.read()
        assert "= rmqctl --tz Asia/Tokyo topic list" in console.text()
        await console.press("Y")
        console.app.desk.writes = True
        await console.type(":snapshot")
        await console.press("enter")
        assert "= rmqctl --tz Asia/Tokyo store snapshot" in console.text()

    drive(stocked, steps, "topics", tz="Asia/Tokyo", size=(160, 24))
    assert copied == [f"rmqctl -S {stocked} --tz Asia/Tokyo topic list"]


def test_a_command_has_no_zone_that_the_console_was_not_given(stocked):
    async def steps(console):
        await console.read()
        assert "= rmqctl topic list" in console.text()

    drive(stocked, steps, "topics")
