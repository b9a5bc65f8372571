"""What a pane shows, as a file: the bytes that its command prints."""

import errno
import json
import os
import re
import shlex

import pytest

from rmqctl.console.details import DetailPane
from rmqctl.console.parts import DrawnPane
from rmqctl.console.program import typed
from rmqctl.output.saved_file import saved_file
from rmqctl.output.view import Format
from storage.clock import now_ms
from tests.rmqctl.console.test_messages import complete, stocked
from tests.rmqctl.console.test_walks import following, produce
from tests.support.cli import run
from tests.support.console import drive, terminal
from tests.support.rich_store import make_rich_store

__all__ = ["stocked"]
FORMATS = [form for form in Format if form is not Format.HELP]


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """A store with groups, dead letters and a journal."""
    return make_rich_store(tmp_path_factory.mktemp("rich") / "s", now_ms() - 600_000).root


async def exported(console, text):
    """Export by ``:export``; the notice that says how it ended."""
    typed.carry_out(console.app, f"export{text}")  # a key at a time takes long in a test
    await console.until(lambda: console.app.notice != "writing ...")
    return console.app.notice


def printed(store, form, command):
    """What the command prints in a format."""
    return run("-S", store, "-o", form, "--tz", "UTC", *shlex.split(command)[1:]).out


def content(file):
    """The text of a file, with its line ends."""
    return file.read_bytes().decode("utf-8", "surrogateescape")


def timeless(text):
    """Without ages, which depend on the time of the call."""
    return re.sub(r'"age_ms": ?\d+', "", text)


@pytest.mark.parametrize("words", [("topics",), ("messages", "orders"), ("audit",)])
@pytest.mark.slow
def test_the_file_has_the_bytes_that_the_command_prints(rich, tmp_path, words):
    async def steps(console):
        await complete(console)
        pane = console.app.pane
        assert pane.table.shown
        for form in FORMATS:
            file = tmp_path / f"rows.{form}"
            command = pane.command()
            if pane.table.view.columns and form.shows_wide_fields:
                command = re.sub(r" --columns \S+", "", command)
            notice = await exported(console, f" {form} {file}")
            assert notice.startswith(f"{len(pane.table.shown):,} row")
            assert notice.endswith(f" as {form} to {file}")
            assert content(file) == printed(rich, form, command)

    drive(rich, steps, *words, tz="UTC")


@pytest.mark.slow
@pytest.mark.parametrize("words", [("dlq", "readers"), ("message", "orders", "0", "0")])
def test_every_list_and_every_single_thing_can_be_exported(rich, tmp_path, words):
    async def steps(console):
        await complete(console)
        app = console.app
        for number, pane in enumerate(app.panes):
            app.active = number
            file = tmp_path / f"{number}.json"
            notice = await exported(console, f" {file}")
            if pane.empty or isinstance(pane, DrawnPane):
                assert "has no rows" in notice
                continue
            assert str(file) in notice
            command = pane.command()
            assert timeless(file.read_text()) == timeless(printed(rich, "json", command)), command
            assert isinstance(json.loads(file.read_text()), dict) is isinstance(pane, DetailPane)

    drive(rich, steps, *words, tz="UTC", size=(140, 40))


@pytest.mark.slow
def test_rows_as_filtered_as_sorted_and_as_marked(stocked, tmp_path):
    async def steps(console):
        await complete(console)
        await console.type(":where queue_id = 1")
        await console.press("enter")
        await console.type(":sort -queue_offset")
        await console.press("enter")
        await console.type("/ann")
        await console.press("enter")
        shown = [row.queue_offset for row in console.app.pane.table.shown]
        assert shown == sorted(shown, reverse=True)
        notice = await exported(console, f" {tmp_path}/all.jsonl")
        assert "of 60, by the filter" in notice
        rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
        assert [row["queue_offset"] for row in rows] == shown
        await console.press("space", "j", "space")
        assert (await exported(console, f" {tmp_path}/two.csv")).startswith("2 marked rows")
        assert len((tmp_path / "two.csv").read_text().splitlines()) == 3
        await console.type("/nothing")
        await console.press("enter")
        notice = await exported(console, f" {tmp_path}/none.csv")
        assert notice == "2 of 2 marked rows are not shown (a filter?)"
        assert not (tmp_path / "none.csv").exists()

    drive(stocked, steps, "messages", "orders")


@pytest.mark.slow
def test_a_part_is_called_a_part(stocked, tmp_path):
    async def window(console):
        await complete(console)
        assert "10 rows (of the 60 there)" in await exported(console, f" {tmp_path}/w.json")

    async def follow(console):
        await following(console)
        produce(stocked, "orders", 1200)
        await console.until("1,200 came, 200 left out, 1,000 kept")
        notice = await exported(console, f" {tmp_path}/f.json")
        assert notice.startswith("1,000 rows (so far, of 1,200 that came)")
        assert len(json.loads((tmp_path / "f.json").read_text())) == 1000

    drive(stocked, window, "messages", "orders", "*", "", "10")
    drive(stocked, follow, "follow", "orders", "*")


@pytest.mark.slow
def test_nothing_is_replaced_unasked_and_nothing_is_written_into_a_store(stocked, tmp_path):
    there = tmp_path / "there.json"
    there.write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(stocked / "config")
    os.mkfifo(tmp_path / "pipe.json")
    before = sorted(stocked.rglob("*"))

    async def steps(console):
        await complete(console)
        assert "exists; ':export! json FILE' replaces it" in await exported(console, f" {there}")
        assert there.read_text() == "mine"
        assert "as json to" in await exported(console, f"! json {there}")
        assert json.loads(there.read_text())
        for place in (stocked / "x.json", stocked / "rmqctl" / "x.json", link / "x.json"):
            assert "is inside the store" in await exported(console, f"! {place}")
        assert "is not a file" in await exported(console, f"! {tmp_path}/pipe.json")
        assert "there is no folder" in await exported(console, f" {tmp_path}/no/x.json")
        assert "does not end in a format" in await exported(console, " x")
        assert "is not a format" in await exported(console, " help x.json")
        assert "':export [FORMAT] FILE'" in await exported(console, "")

    drive(stocked, steps, "topics")
    assert sorted(stocked.rglob("*")) == before


@pytest.mark.slow
def test_a_file_that_comes_meanwhile_is_kept_and_a_failed_one_leaves_nothing(
    stocked, tmp_path, monkeypatch
):
    file = tmp_path / "rows.json"

    def comes(path):
        file.write_text("another's")
        return saved_file(path)

    async def steps(console):
        await complete(console)
        monkeypatch.setattr("rmqctl.output.saved_file.saved_file", comes)
        assert "exists" in await exported(console, f" {file}")
        monkeypatch.undo()
        file.unlink()

        def full(descriptor):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("storage.files.creating.os.fsync", full)
        notice = await exported(console, f" {file}")
        assert notice == f"{file} cannot be written: No space left on device"
        monkeypatch.undo()

    drive(stocked, steps, "topics")
    assert list(tmp_path.glob("*rows*")) == []


@pytest.mark.slow
def test_the_key_asks_for_the_file_and_the_end_waits_until_it_is_whole(stocked, tmp_path):
    file = tmp_path / "rows.csv"
    with terminal(stocked, "messages", "orders") as console:
        console.until('"who"')
        console.send("e")
        console.until("export to [FORMAT] FILE:")
        console.send(f"{file}\rq")
        assert console.ended() == 0
    assert len(file.read_text().splitlines()) == 61
