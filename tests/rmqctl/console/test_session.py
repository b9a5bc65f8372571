"""What a console remembers of a store while it runs, and the order of its changes."""

import shutil

import pytest

from rmqctl.console.looks.look import Place
from rmqctl.console.reading import Asked, Batch
from rmqctl.console.screens.health import SCREENS, CheckPane
from rmqctl.output.view import Format, View
from tests.support.cli import run
from tests.support.console import drive


@pytest.fixture
def stocked(store):
    """A topic, a group, and three changes of its offsets."""
    run("produce", "orders", stdin=b"".join(b"%d\n" % n for n in range(8)))
    run("consume", "orders", "-g", "billing", "-e")
    for where in ("--to-earliest", "--to-latest", "--to-earliest"):
        run("offset", "reset", "billing", "--all-topics", where, "--yes")
    return store


@pytest.mark.parametrize("words", [("overview",), ("group", "billing"), ("health",)])
@pytest.mark.slow
def test_the_newest_change_comes_first(stocked, words):
    async def steps(console):
        await console.read()
        pane = next(p for p in console.app.panes if p.spec.title == "LAST CHANGES")
        shown = [row.change_id for row in pane.table.shown]
        assert shown == sorted(shown, reverse=True)
        assert shown[0] == 3
        lines = console.lines()
        title = next(n for n, line in enumerate(lines) if "LAST CHANGES" in line)
        assert lines[title + 2].split()[0] == "3"

    drive(stocked, steps, *words, size=(140, 40))


@pytest.mark.slow
def test_the_last_check_is_remembered_with_its_age(stocked):
    async def steps(console):
        await console.read()
        assert "CHECK   never in this session" in console.text()
        await console.press("C")
        await console.until(lambda: not console.app.pane.loading)
        await console.press("escape")
        await console.read()
        assert "ago: no errors, no warnings" in console.text()
        await console.type(":overview")
        await console.press("enter")
        await console.type(":health")
        await console.press("enter")
        await console.read()
        assert "ago: no errors, no warnings" in console.text()

    drive(stocked, steps, "health")


@pytest.mark.slow
def test_what_a_check_found_is_counted(stocked, tmp_path):
    store = tmp_path / "damaged"
    shutil.copytree(stocked, store)
    log = next(iter(sorted((store / "commitlog").iterdir())))
    with log.open("r+b") as file:
        file.seek(30)
        file.write(b"\xff" * 60)
    found = run("store", "fsck", "-o", "json", "-S", store).json()["findings"]
    errors = sum(row["severity"] == "error" for row in found)
    assert errors

    async def steps(console):
        await console.read()
        await console.press("C")
        await console.until(lambda: not console.app.pane.loading)
        await console.press("escape")
        await console.read()
        assert f"ago: {errors} error" in console.text()

    drive(store, steps, "health", size=(140, 40))


@pytest.mark.parametrize("stopped", [False, True])
def test_what_is_kept_of_a_check_says_whether_it_was_stopped(stopped):
    from rmqctl.console.health import KEPT

    spec = SCREENS["check"].panes[0]
    pane = CheckPane(spec, Place("check"), View(Format.TABLE))
    asked = Asked(spec.look, Place("check"), everything=False, number=1)
    pane.number = 1
    pane.take(Batch(asked, [], first=True, complete=True, as_of=5, took_ms=1, stopped=stopped))
    assert pane.session[KEPT].whole is not stopped


def test_a_check_that_was_stopped_has_none_of_the_findings_of_the_one_before():
    from rmqctl.admin.store.check_rows import FindingRow
    from rmqctl.console.health import KEPT

    spec = SCREENS["check"].panes[0]
    pane = CheckPane(spec, Place("check"), View(Format.TABLE))
    finding = FindingRow("RECORD_DAMAGED", "error", "commitlog/0", 0, "what", "effect", "fix")

    def check(number, findings, as_of, *, stopped=False, complete=True):
        pane.number = number
        asked = Asked(spec.look, Place("check"), everything=False, number=number)
        pane.take(
            Batch(
                *(asked, findings),
                first=True,
                complete=complete,
                as_of=as_of,
                took_ms=1,
                stopped=stopped,
            )
        )
        kept = pane.session[KEPT]
        return kept.as_of, dict(kept.counts), kept.whole

    whole = check(1, [finding] * 3, 5)
    assert whole == (5, {"error": 3}, True)
    pane.begin_again()
    assert check(2, [], 7, complete=False) == whole
    assert check(2, [], 7, stopped=True) == whole
    pane.begin_again()
    assert check(3, [finding], 9, stopped=True) == (9, {"error": 1}, False)
    pane.begin_again()
    assert check(4, [], 11) == (11, {}, True)


def test_a_check_that_was_stopped_is_not_taken_for_a_whole_one():
    from collections import Counter

    from rmqctl.console.health import LastCheck, check_line

    def text(last):
        return "".join(span.text for span in check_line(None, last, 720_000))

    assert "12m ago: not all was checked" in text(LastCheck(0, Counter(), whole=False))
    assert "at least 2 errors, 1 warning, not all was checked" in text(
        LastCheck(0, Counter(error=2, warning=1), whole=False)
    )
    assert SCREENS["check"].panes[0].pane is not None
