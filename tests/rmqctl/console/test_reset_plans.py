"""The plan of a reset to a time is what the command's dry run prints, for each rule."""

import shlex
import shutil

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.offsets.rows import PlannedMove
from rmqctl.console.plans.sheet import Stage
from storage.clock import now_ms
from storage.configs.offset_samples import OffsetSamples
from storage.format.message import Message
from storage.parse.durations import parse_duration
from storage.read.by_time import Boundary
from tests.rmqctl.console.test_rows import stable
from tests.support.cli import run
from tests.support.console import drive
from tests.support.examples import one_in

NOON = 1_770_000_000_000


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Twenty messages of two queues, one each ten seconds; a group that has read them all."""
    store = tmp_path_factory.mktemp("plans") / "s"
    run("store", "init", store)
    clock = [NOON]
    with EmbeddedBroker.open(store, clock=lambda: clock[0]) as broker:
        for number in range(20):
            clock[0] = NOON + number * 10_000
            broker.send(Message("orders", b"%d" % number, keys=f"k{number}"), number % 2)
    run("consume", "orders", "-g", "billing", "-e", "-S", store)
    return store


def without_ages(rows):
    return [{k: v for k, v in row.items() if k != "age_new_ms"} for row in rows]


def dry_run(store, command):
    """The rows that the command would print, were it not carried out."""
    words = shlex.split(command)[1:]
    return run(*words, "--dry-run", "-o", "json", "--tz", "UTC", "-S", store).json()


@pytest.mark.feature(156)
@pytest.mark.slow
def test_the_plan_is_the_dry_run_for_each_rule_and_minute(stored):
    async def steps(console):
        await console.read()
        app = console.app
        app.desk.writes = True
        await console.press("r", "enter")
        await console.type("2026-02-02 02:41:05")
        await console.press("enter")
        await console.until("Type billing")
        seen = []
        for key in ("b", "b", "b", "left", "b"):
            sheet = app.desk.sheet
            seen.append([row.new_offset for row in sheet.pane.table.shown])
            rows = without_ages(stable(PlannedMove, sheet.pane.table.shown))
            assert rows == without_ages(dry_run(stored, sheet.command())), sheet.command()
            assert f"rule: {rule_of(sheet.command())} (" in console.words()
            await console.press(key)
            await console.until(lambda: app.desk.sheet.stage is Stage.PLAN)
        assert seen[0] != seen[1]
        assert seen[0] == seen[3]
        assert seen[3] != seen[4]
        assert "02:40:05" in seen_title(console)
        await console.press("right")
        await console.until(lambda: "02:41:05" in seen_title(console))
        await console.press("w")
        assert {"lower", "upper", "nearest49"} <= set(app.desk.sheet.pane.table.columns())

    drive(stored, steps, "groups", size=(140, 40), tz="UTC")


def seen_title(console):
    return console.lines()[1]


def rule_of(command):
    words = shlex.split(command)
    return words[words.index("--boundary") + 1] if "--boundary" in words else "lower"


@pytest.mark.slow
def test_the_other_rule_is_carried_out(stored, tmp_path):
    store = tmp_path / "s"
    shutil.copytree(stored, store)

    async def steps(console):
        await console.read()
        console.app.desk.writes = True
        await console.press("r", "enter")
        await console.type("2026-02-02 02:41:05")
        await console.press("enter")
        await console.until("rule: lower")
        while "rule: upper" not in console.words():
            await console.press("b")
            await console.until("Type billing")
        wanted = [row.new_offset for row in console.app.desk.sheet.pane.table.shown]
        await console.press("enter", "enter")
        await console.type("billing")
        await console.press("enter")
        await console.until("this is change")
        rows = run("lag", "show", "billing", "--by", "queue", "-o", "json", "-S", store).json()
        by_queue = {row["queue_id"]: row["committed_offset"] for row in rows}
        moved = console.app.desk.sheet.pane.table.shown
        assert [by_queue[row.queue_id] for row in moved] == wanted

    drive(store, steps, "groups", size=(140, 40), tz="UTC")


@pytest.mark.slow
def test_keys_of_a_time_do_nothing_on_another_plan(stored):
    async def steps(console):
        await console.read()
        console.app.desk.writes = True
        await console.press("r", "enter")
        await console.type("earliest")
        await console.press("enter")
        await console.until("Type billing")
        command = console.app.desk.sheet.command()
        await console.press("b", "left", "right")
        assert console.app.desk.sheet.stage is Stage.PLAN
        assert console.app.desk.sheet.command() == command
        assert "rule:" not in console.words()

    drive(stored, steps, "groups", tz="UTC")


@pytest.mark.parametrize("known", one_in(2, [True, False]))
@pytest.mark.slow
def test_the_plan_says_rates_and_unknown_ones_are_question_marks(stored, tmp_path, known):
    store = tmp_path / "s"
    shutil.copytree(stored, store)
    if known:
        now = now_ms()
        samples = OffsetSamples(store)
        for minutes, read in ((4, 2), (2, 6), (0, 10)):
            queues = {0: read, 1: read, 2: 0, 3: 0}
            ends = {"orders": {0: 10, 1: 10, 2: 0, 3: 0}}
            samples.append({"orders@billing": queues}, ends, now - minutes * 60_000)

    async def steps(console):
        await console.read()
        console.app.desk.writes = True
        await console.press("r", "enter")
        await console.type("earliest")
        await console.press("enter")
        await console.until("Type billing")
        row = run("lag", "show", "billing", "-o", "json", "-S", store).json()[0]
        if known:
            assert row["rate_out"] is not None
            said = f"out {row['rate_out']:,.1f}/s; the new lag of 20 is read in "
            assert said in console.words()
            needed = parse_duration(console.words().partition(said)[2].split()[0])
            expected = 20_000 / (row["rate_out"] - row["rate_in"])
            assert needed == pytest.approx(expected, rel=0.1)  # a moment later
        else:
            assert row["rate_out"] is None
            assert "out ?; the new lag is read in ?" in console.words()

    drive(store, steps, "groups", size=(140, 40))


def test_every_rule_has_its_meaning():
    from rmqctl.console.plans.pace import rule_sentence

    sentences = {rule_sentence(NOON, rule, NOON + 42 * 60_000) for rule in Boundary}
    assert len(sentences) == len(Boundary)
    assert all("(42m ago)" in sentence for sentence in sentences)
