"""Two waiting retries with one id, as a producer stores them that sends again after a timeout."""

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.console.looks.look import Place
from storage.format.message import PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, Message
from tests.rmqctl.console.test_changes import turn_on
from tests.rmqctl.console.test_changes_of_messages import carry_out
from tests.support.cli import run
from tests.support.console import drive
from tests.support.dead_letters import give_back

ID = "7F00000100002A9F0000000000000001"


@pytest.fixture
def stocked(store):
    """Both wait, in one queue."""
    with EmbeddedBroker.open(store) as broker:
        for number in range(2):
            same = {PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX: ID}
            sent = broker.send(Message("orders", b"%d" % number, properties=same), 0)
            stored = broker.view.get_message("orders", 0, sent.queue_offset, 1).messages[0]
            give_back(broker, "billing", stored, level=18)
    assert {row["msg_id"] for row in waiting(store)} == {ID}
    return store


def waiting(store):
    """The retries that wait."""
    rows = run("retry", "browse", "billing", "-o", "json", "-S", store).json()
    return [row for row in rows if row["state"] == "WAITING"]


@pytest.mark.slow
@pytest.mark.parametrize("words", [("retries", "billing"), ("agenda",)])
@pytest.mark.parametrize("nth", [0, 1])
def test_the_one_under_the_cursor_is_delivered(stocked, words, nth):
    ids = [row["offset_msg_id"] for row in waiting(stocked)]

    async def steps(console):
        app = console.app
        await turn_on(console)
        app.active = next(
            n
            for n, pane in enumerate(app.panes)
            if pane.look.name in ("retries", "each") and pane.table.shown
        )
        assert [row.offset_msg_id for row in app.pane.table.shown] == ids
        await console.press("g", *["j"] * nth)
        before = app.pane.as_of
        await console.press("ctrl+r")
        await console.until(lambda: app.pane.as_of != before)
        assert app.pane.cursor == nth, "the cursor stays on its row"
        await console.press("space")
        assert len(app.pane.table.marked) == 1
        keys = {app.pane.table.key_of(row) for row in app.pane.table.shown}
        assert len(keys) == 2
        assert len(app.pane.table.marked & keys) == 1
        await console.press("N")
        await console.until("Type billing")
        assert app.desk.sheet.command() == f"rmqctl retry now billing {ids[nth]}"
        await carry_out(console)

    drive(stocked, steps, *words, size=(140, 40))
    assert [row["offset_msg_id"] for row in waiting(stocked)] == [ids[1 - nth]]


@pytest.mark.slow
def test_an_id_of_several_names_none_of_them(stocked):
    ids = [row["offset_msg_id"] for row in waiting(stocked)]
    for verb in ("now", "dead"):
        done = run("retry", verb, "billing", ID, "--yes", "-S", stocked)
        assert done.code == 7
        assert "2 waiting retries of group billing have the id" in done.err
        assert all(one in done.err for one in ids)

    async def steps(console):
        await turn_on(console)
        await console.press("N")
        await console.until("name one by its offset id")

    place = Place("retry", ("billing", ID))
    drive(stocked, steps, place.screen, *place.names, size=(140, 40))
    assert len(waiting(stocked)) == 2
