"""The screens of messages: rows of the commands, bodies in every form, damage as a sentence."""

import json

import pytest

from rmqctl.output.values import plain
from tests.support.cli import run
from tests.support.console import drive, json_rows


@pytest.fixture
def stocked(store):
    """A topic of two queues with 60 messages, of which one is no text."""
    run("topic", "create", "orders", "--queues", "2")
    run("produce", "orders", stdin=b"".join(b'{"n":%d,"who":"ann"}\n' % n for n in range(59)))
    run("produce", "orders", "--input", "hex", "-k", "key-1", "--tag", "new", stdin=b"1f8b00ff\n")
    return store


async def complete(console):
    """Wait until every pane has all its rows."""
    await console.until(lambda: all(p.error or p.empty or not p.loading for p in console.app.panes))


def same_rows(store, pane):
    """Whether a pane has the rows that its command prints, in the columns that it prints."""
    printed = json_rows(store, pane.command())
    printed = printed if isinstance(printed, list) else [printed]
    names = [field.name for field in pane.table.fields]
    rows = [
        dict(zip(names, json.loads(json.dumps(plain(list(row)))), strict=True))
        for row in pane.table.shown
    ]
    columns = printed[0].keys() if printed else ()
    assert printed
    assert [{name: row[name] for name in columns} for row in rows] == printed, pane.command()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("orders",), ("orders", "1"), ("orders", "0", "5"), ("orders", "*", "3", "10")]
)
def test_a_list_has_the_rows_of_its_command(stocked, words):
    async def steps(console):
        await complete(console)
        pane, below = console.app.panes
        same_rows(stocked, pane)
        await complete(console)
        same_rows(stocked, below)

    drive(stocked, steps, "messages", *words)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [{"sort": "-body"}, {"where": "body ~ '[0-4],'"}])
@pytest.mark.parametrize("start", ["5", "-20", "@-1h", "-1h", ""])
def test_a_part_of_a_queue_that_is_shaped_has_the_rows_of_its_command(stocked, start, shape):
    async def steps(console):
        await complete(console)
        pane = console.app.panes[0]
        assert len(pane.table.all_rows) == 10 < pane.progress.total
        same_rows(stocked, pane)
        assert 0 < len(pane.table.shown) <= 10

    drive(stocked, steps, "messages", "orders", "0", start, "10", **shape)


@pytest.mark.slow
def test_the_command_of_a_part_of_several_queues_has_no_condition_and_no_order(stocked):
    async def steps(console):
        await complete(console)
        pane = console.app.panes[0]
        assert 0 < len(pane.table.shown) < len(pane.table.all_rows) == 10
        printed = json_rows(stocked, pane.command())
        places = [(row["queue_id"], row["queue_offset"]) for row in printed]
        assert [(row.queue_id, row.queue_offset) for row in pane.table.all_rows] == places
        await console.press("m", "m", "m")
        await complete(console)
        pane = console.app.panes[0]
        assert pane.progress.done == pane.progress.total
        same_rows(stocked, pane)

    drive(
        *(stocked, steps, "messages", "orders", "*", "3", "10"),
        where="body ~ '[0-4],'",
        sort="-body",
    )


@pytest.mark.slow
@pytest.mark.feature(153)
def test_a_body_is_shown_as_json_as_text_and_as_bytes(stocked):
    async def steps(console):
        await complete(console)
        assert '"who": "ann"' in console.text()
        assert "JSON (v)" in console.text()
        await console.press("v")
        assert "text (v)" in console.text()
        await console.press("v")
        assert "000000  7b 22 6e" in console.text()
        await console.press("G")
        await console.until("000000  1f 8b 00 ff")
        assert "bytes 1f 8b 00 ff" in console.text()
        assert "key-1" in console.text()

    drive(stocked, steps, "messages", "orders")


@pytest.mark.slow
def test_a_list_says_how_many_of_how_many_it_has(stocked):
    async def steps(console):
        await complete(console)
        assert "10 of the 60 there (m: more)" in console.text()
        await console.press("m")
        await console.until("20 of the 60 there (m: more)")
        await console.type(":from 7")
        await console.press("enter")
        await console.until("from 7")
        await complete(console)
        assert [row.queue_offset for row in console.app.pane.table.shown[:2]] == [7, 7]
        assert console.app.pane.table.total == 20

    drive(stocked, steps, "messages", "orders", "*", "", "10")
