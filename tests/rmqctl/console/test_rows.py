"""The rows of each screen are those of the command in its line."""

import json
from itertools import product

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.kinds import UsersRows
from rmqctl.console.looks.look import Place, Source
from rmqctl.console.screens.table import TABLE, spec_of
from rmqctl.output.fields import fields_of
from rmqctl.output.values import plain
from storage.clock import now_ms
from tests.support.cli import run
from tests.support.console import drive, json_rows

NOW_FIELDS = {"age_ms", "oldest_unread_age_ms", "drain_ms", "rate_in", "rate_out", "risk"}
"""Fields that depend on the time of the call."""


@pytest.fixture
def stocked(store):
    """Two topics, groups with and without a lag, retries and dead letters."""
    for topic, count in (("orders", 30), ("mails", 8)):
        run("produce", topic, stdin=b"".join(b"%d\n" % n for n in range(count)))
    run("consume", "orders", "-g", "billing", "-e", "-c", "10")
    run("consume", "mails", "-g", "mailer", "-e")
    return store


NAMES = {"GROUP": ["billing", "mailer"], "TOPIC": ["orders", "mails"]}
PLACES = [
    Place(screen, names)
    for screen, ref in TABLE.items()
    for names in product(*(NAMES[name] for name in ref.names))
]


def stable(row_type, rows):
    """Rows as JSON has them, without what changes from call to call."""
    names = [field.name for field in fields_of(row_type)]
    return [dict(zip(names, plain(list(row)), strict=True)) for row in rows]


def without_now(rows):
    return [{k: v for k, v in row.items() if k not in NOW_FIELDS} for row in rows]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: "-".join((place.screen, *place.names)))
def test_a_pane_has_the_rows_of_its_command(stocked, place):
    with EmbeddedBroker.open(stocked, read_only=True) as broker:
        for spec in spec_of(place.screen).panes:
            look = spec.look
            source = Source(broker, now_ms(), lambda sentence: None, {})
            rows = look.read(source, place)
            if look.users_only:
                rows = UsersRows(rows, broker.view)
            found = json.loads(json.dumps(stable(look.row_type, rows)))
            printed = json_rows(stocked, look.command(place))
            assert without_now(found) == without_now(printed), look.command(place)


def test_where_sort_and_the_filter_are_those_of_the_command(stocked):
    async def steps(console):
        await console.read()
        await console.type(":where lag > 0")
        await console.press("enter")
        assert [row.group for row in console.app.pane.table.shown] == ["billing"]
        command = console.app.pane.command()
        assert command == "rmqctl lag show --where 'lag > 0' --sort=-lag"
        assert [row["group"] for row in json_rows(stocked, command)] == ["billing"]
        assert "1 of 2" in console.text()
        await console.type(":where")
        await console.press("enter")
        await console.type(":sort group")
        await console.press("enter")
        assert [row.group for row in console.app.pane.table.shown] == ["billing", "mailer"]
        await console.press("S")
        assert [row.group for row in console.app.pane.table.shown] == ["mailer", "billing"]
        await console.type(":where nothing = 3")
        await console.press("enter")
        assert "is not a field" in console.text()
        assert [row.group for row in console.app.pane.table.shown] == ["mailer", "billing"]
        await console.press("slash", "exclamation_mark", "b", "i", "l", "enter")
        assert [row.group for row in console.app.pane.table.shown] == ["mailer"]
        await console.press("escape", "tilde", "b", "n", "g", "enter")
        assert [row.group for row in console.app.pane.table.shown] == ["billing"]

    drive(stocked, steps)


def test_the_cursor_is_on_the_first_row_until_it_is_moved(stocked):
    async def steps(console):
        await console.read()
        await console.type(":sort group")
        await console.press("enter")
        assert console.app.pane.row().group == "billing"
        run("consume", "orders", "-g", "audit", "-e", "-S", stocked)
        await console.until("audit")
        assert console.app.pane.row().group == "audit"

    drive(stocked, steps)


def test_the_cursor_stays_on_its_row_when_others_come(stocked):
    async def steps(console):
        await console.read()
        await console.type(":sort group")
        await console.press("enter", "j")
        assert console.app.pane.row().group == "mailer"
        run("consume", "orders", "-g", "audit", "-e", "-S", stocked)
        await console.until("audit")
        assert console.app.pane.row().group == "mailer"

    drive(stocked, steps)
