"""A store that is copied or replaced meanwhile, is mounted read-only, or that a broker left."""

import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from rmqctl.console.looks.look import Place
from rmqctl.console.screens.table import spec_of
from storage.clock import now_ms
from tests.rmqctl.console.test_stores import (
    check_said,
    errors,
    every_place,
    look_at_all,
    names_of,
)
from tests.rmqctl.console.test_writes_nothing import files_of
from tests.rmqctl.test_bad_input import read_only_mount
from tests.support import golden
from tests.support.cli import run
from tests.support.console import drive, terminal
from tests.support.examples import one_in
from tests.support.rich_store import GROUP, make_rich_store

PROGRAM = str(Path(sys.executable).with_name("rmqctl"))
FEW = ("overview", "groups", "topic", "dlq", "health", "messages")


@pytest.fixture
def rich(tmp_path):
    return make_rich_store(tmp_path / "s", now_ms() - 600_000).root


@contextmanager
def again_and_again(command, log):
    """Run a command of the shell in a loop; each end of it adds a line to a file."""
    loop = f"while {command}; do echo done >> {shlex.quote(str(log))}; done"
    log.touch()
    with subprocess.Popen(["sh", "-c", loop], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield lambda: len(log.read_text().splitlines())
            assert process.poll() is None, process.stderr and process.stderr.read()
        finally:
            log.unlink()
            log.mkdir()  # the loop's next echo fails
            process.terminate()


@pytest.mark.parametrize("screens", one_in(2, [FEW[::2], None]), ids=["few", "all"])
@pytest.mark.slow
def test_a_store_that_is_snapshotted_again_and_again_is_shown(rich, tmp_path, screens):
    places = [
        place for place in every_place(names_of(rich)) if screens is None or place.screen in screens
    ]
    saved = shlex.quote(str(tmp_path / "saved"))
    command = f"{PROGRAM} store snapshot --save {saved} -S {rich} -q && rm -r {saved}"
    before = files_of(rich)

    async def see(console, place):
        console.app.go(place)
        await console.read()
        check_said(console)
        return errors(console)

    async def steps(console):
        known = {place: await see(console, place) for place in places}
        with again_and_again(command, tmp_path / "log") as count:
            for place in places:
                done = count()
                await console.until(lambda done=done: count() > done)
                assert await see(console, place) == known[place]

    drive(rich, steps, "groups")
    assert files_of(rich) == before


@pytest.mark.parametrize("screens", one_in(2, [FEW[::2], None]), ids=["few", "all"])
@pytest.mark.slow
def test_a_store_that_is_restored_again_and_again_is_shown(rich, tmp_path, screens):
    places = [
        place for place in every_place(names_of(rich)) if screens is None or place.screen in screens
    ]
    saved = tmp_path / "saved"
    assert run("store", "snapshot", "--save", saved, "-S", rich).code == 0
    command = (
        f"{PROGRAM} store restore {saved} -S {rich} --confirm s --yes -q > /dev/null"
        f" && rm -r {rich}.before-restore-*"
    )

    async def steps(console):
        app = console.app
        known = {}
        for place in places:
            app.go(place)
            await console.read()
            known[place] = errors(console)
        with again_and_again(command, tmp_path / "log") as count:
            for place in places:
                app.go(place)
                done = count()
                await console.until(lambda done=done: count() > done)
                await console.read()
                check_said(console)
        for place in places:
            app.go(place)
            await console.until(lambda place=place: errors(console) == known[place])
            await console.read()

    drive(rich, steps, "groups")


@pytest.mark.slow
def test_on_a_read_only_file_system_it_shows_all_and_changes_nothing(rich):
    program = [*read_only_mount(rich), PROGRAM, "console", "-S", str(rich), "groups"]
    before = files_of(rich)
    with terminal(rich, program=program, size=(40, 140)) as console:
        console.until(GROUP)
        for place in every_place(names_of(rich)):
            if place.screen in FEW:
                console.send(f":{shlex.join((place.screen, *place.names))}\r")
                console.until(f" {spec_of(place.screen).title(place)}"[:60])
                console.until(lambda: "reading ..." not in console.text())
                assert "! " not in console.text()
        console.send(f":group {GROUP}\r")
        console.until("QUEUES")
        console.send(":write s\r")
        console.until("CHANGES ON")
        console.send("r\x15orders\rearliest\r")
        console.until(lambda: "Type " in console.text() or "! " in console.text())
        console.send(f"\rwhy\r{GROUP}\r")
        console.until(lambda: "mounted read-only" in console.words())
        assert "Traceback" not in console.text()
        console.send("\x03")
        console.until("CHANGES ON")
        console.send("q")
        assert console.ended() == 0
    assert files_of(rich) == before


@pytest.mark.slow
def test_the_store_of_a_broker_that_died_is_shown_on_every_screen(tmp_path):
    store = golden.extract("unclean-4.9", tmp_path)
    assert (store / "abort").exists()
    before = files_of(store)
    look_at_all(store, every_place(names_of(store)))

    async def steps(console):
        await console.read()
        assert "open, or not closed" in console.text()

    drive(store, steps, "health")
    assert files_of(store) == before
    assert Place("health") in every_place(names_of(store))
    shutil.rmtree(store)
