"""What the console needs for its first frame."""

import subprocess
import sys

import pytest

from rmqctl.console.looks.look import Place
from rmqctl.console.program.skeleton import skeleton
from rmqctl.console.screens.table import TABLE
from tests.support.cli import run
from tests.support.console import drive, terminal

LATER = ("storage.configs", "broker", "analytics", "rmqctl.console.looks.lag")
LATER_MODULES = {"rmqctl.console.plans.sheet", "rmqctl.console.plans.work", "rmqctl.admin.kinds"}
IMPORTS = "import sys, rmqctl.console.program.running; print(*sys.modules)"


@pytest.mark.slow
def test_it_needs_no_rules_of_topics_no_store_and_no_plan():
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True, cwd="/"
    )
    found = set(done.stdout.split())
    assert "rmqctl.console.panes" in found
    assert {name for name in found if name.startswith(LATER)} == set()
    assert found & LATER_MODULES == set()


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (140, 40)])
def test_it_has_the_place_and_the_state_of_the_screen_that_follows(store, size):
    async def steps(console):
        width, height = size
        for screen, ref in TABLE.items():
            place = Place(screen, tuple(f"{name}-1" for name in ref.names))
            lines = skeleton(console.app, place, width, height)
            texts = ["".join(span.text for span in line) for line in lines]
            assert {len(text) for text in texts} == {width}
            assert len(texts) == height
            assert "READ ONLY" in texts[0]
            assert texts[1].startswith(f" {ref.title(place)}"[: width - 20])
            assert "reading ..." in texts[3]

    drive(store, steps, size=size)


@pytest.mark.parametrize("what", ["the module of the screen", "the store"])
@pytest.mark.slow
def test_it_comes_before(store, what):
    run("produce", "orders", stdin=b"1\n")
    name = {
        "the store": "opened.OpenedStore.broker",
        "the module of the screen": "program.app.spec_of",
    }
    holder, _, function = name[what].rpartition(".")
    waits = (
        "import rmqctl.console.opened, rmqctl.console.program.app, pathlib, time\n"
        f"before = rmqctl.console.{name[what]}\n"
        "def slow(*given):\n"
        f"    while not pathlib.Path({str(store)!r}, 'go').exists(): time.sleep(0.01)\n"
        "    return before(*given)\n"
        f"rmqctl.console.{holder}.{function} = slow\n"
    )
    with terminal(store, "topics", before=waits) as console:
        console.until("READ ONLY")
        console.until("reading ...")
        assert "orders" not in console.text()
        (store / "go").touch()
        console.until("orders ")
        console.send("q")
        assert console.ended() == 0


@pytest.mark.slow
def test_while_it_runs_a_thread_that_reads_gives_way_soon(store):
    """A key takes the turns of several threads: Python's own are too long for one after another."""
    run("produce", "orders", stdin=b"1\n")
    out = store.with_name("turns")
    notes = (
        "import pathlib, sys, rmqctl.console.reading\n"
        "before = rmqctl.console.reading.Reader._look\n"
        "def noting(*given):\n"
        f"    pathlib.Path({str(out)!r}).write_text(str(sys.getswitchinterval()))\n"
        "    return before(*given)\n"
        "rmqctl.console.reading.Reader._look = noting\n"
    )
    with terminal(store, "topics", before=notes) as console:
        console.until("orders ")
        console.send("q")
        assert console.ended() == 0
    assert float(out.read_text()) <= sys.getswitchinterval() / 2
