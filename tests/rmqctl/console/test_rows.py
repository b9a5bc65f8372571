"""The rows of each screen are those of the command in its line."""

import json
from functools import partial
from itertools import product

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.admin.kinds import UsersRows
from rmqctl.admin.store.check_rows import FindingRow
from rmqctl.admin.store.cleaning_levers import CleaningLevers
from rmqctl.console.attention import AttentionRow
from rmqctl.console.looks.lag import TrendRow
from rmqctl.console.looks.look import Look, Place, Source
from rmqctl.console.looks.new_letters import NewLettersRow
from rmqctl.console.looks.retries import RETRIES
from rmqctl.console.panes import Pane
from rmqctl.console.screens.table import TABLE, spec_of
from rmqctl.output.fields import fields_of
from rmqctl.output.values import plain
from rmqctl.output.view import Format, View
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.configs.offset_samples import OffsetSamples
from storage.format.message import Message
from tests.support import golden
from tests.support.cli import run
from tests.support.console import drive, json_rows, terminal
from tests.support.examples import one_in
from tests.support.rich_store import make_rich_store

NOW_FIELDS = {
    "age_ms",
    "oldest_unread_age_ms",
    "drain_ms",
    "rate_in",
    "rate_out",
    "risk",
    "risk_in_ms",
}
"""Fields that depend on the time of the call."""


def stock(store):
    """Make two topics, and groups with and without a lag."""
    for topic, count in (("orders", 30), ("mails", 8)):
        lines = b"".join(b"%d\n" % n for n in range(count))
        assert run("produce", topic, "-S", store, stdin=lines).code == 0
    run("consume", "orders", "-g", "billing", "-e", "-c", "10", "-S", store)
    run("consume", "mails", "-g", "mailer", "-e", "-S", store)


@pytest.fixture
def stocked(store):
    """A store of a test's own."""
    stock(store)
    return store


@pytest.fixture(scope="module")
def only_read(tmp_path_factory):
    """A store of which tests only read."""
    store = tmp_path_factory.mktemp("stocked") / "s"
    create_store(store, SMALL_STORE)
    stock(store)
    return store


NAMES = {"GROUP": ["billing", "mailer"], "TOPIC": ["orders", "mails"]}
RICH_NAMES = {
    "GROUP": ["readers", "-group"],
    "TOPIC": ["orders", "-leading"],
    "CHANGE-ID": ["9"],
}
OWN_ROWS = (TrendRow, CleaningLevers, AttentionRow, NewLettersRow)
"""Rows that no command prints as JSON; other tests compare them with what commands print."""


def places(names):
    return [
        Place(screen, chosen)
        for screen, ref in TABLE.items()
        for chosen in product(*(names.get(name, ()) for name in ref.names))
    ]


def place_name(place):
    return "-".join((place.screen, *place.names))


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """Retries, dead letters, delays, odd names, a journal, and samples of the last minutes."""
    made = make_rich_store(tmp_path_factory.mktemp("rich") / "s", now_ms() - 600_000)
    with EmbeddedBroker.open(made.root, read_only=True) as broker:
        known = broker.consumer_offsets()
        ends: dict[str, dict[int, int]] = {}
        for topic, queue in broker.view.queues():
            ends.setdefault(topic, {})[queue] = broker.view.max_offset_in_queue(topic, queue)
    samples = OffsetSamples(made.root)
    for minutes in (9, 6, 3):
        committed = {
            f"{topic}@{group}": {
                queue: max(0, offset - minutes) if offset < 1000 else offset
                for queue, offset in queues.items()
            }
            for (group, topic), queues in known.items()
        }
        samples.append(committed, ends, now_ms() - minutes * 60_000)
    return made.root


def stable(row_type, rows):
    """Rows as JSON has them, without what changes from call to call."""
    names = [field.name for field in fields_of(row_type)]
    return [dict(zip(names, plain(list(row)), strict=True)) for row in rows]


def without_now(rows):
    return [{k: v for k, v in row.items() if k not in NOW_FIELDS} for row in rows]


def looks_of(place, source):
    """All looks of a screen with their places; those that follow a cursor, of two of its rows."""
    view = View(Format.TABLE)
    specs = spec_of(place.screen).panes
    found: dict[tuple[Look, Place], None] = {}
    for spec in specs:
        there = [place]
        if spec.of_row_at is not None:
            continue  # test_letters compares what follows the counts of dead letters
        if spec.of_row is not None:
            there = [spec.of_row(row) for row in specs[spec.follows].look.read(source, place)][:2]
        for each in filter(None, there):
            pane = (spec.pane or Pane)(spec, each, view)
            found |= dict.fromkeys((look, each) for look in pane.looks)
    return found


def whole(look, source, place):
    """The rows of a look; of one that is made in parts, those of all parts."""
    while True:
        left: list[bool] = []
        rows = look.read(source._replace(go_on=partial(left.append, True)), place)
        if not left:
            return rows


def compare(store, place):
    """Check that each look of a screen has the rows of its command."""
    with EmbeddedBroker.open(store, read_only=True) as broker:
        source = Source(broker, now_ms(), lambda sentence: None, {})
        for look, there in looks_of(place, source):
            if look.row_type in OWN_ROWS:
                continue
            rows = whole(look, source, there)
            if look.users_only:
                rows = UsersRows(rows, broker.view)
            known = [row for row in rows if row is not None]
            found = json.loads(json.dumps(stable(look.row_type, known)))
            command = look.command(there)
            printed = json_rows(store, command)
            if look.row_type is FindingRow:
                printed = printed["findings"]
            printed = [printed] if isinstance(printed, dict) else printed
            assert without_now(found) == without_now(printed), command


@pytest.mark.feature(162)
@pytest.mark.parametrize("place", places(NAMES), ids=place_name)
@pytest.mark.slow
def test_a_pane_has_the_rows_of_its_command(only_read, place):
    compare(only_read, place)


@pytest.mark.parametrize("place", places(RICH_NAMES), ids=place_name)
@pytest.mark.slow
def test_it_has_them_with_retries_dead_letters_delays_samples_and_a_journal(rich, place):
    compare(rich, place)


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(10, golden.names()))
def test_it_has_them_of_each_golden_store(name):
    store = golden.store(name)
    with EmbeddedBroker.open(store, read_only=True) as broker:
        groups = sorted({group for group, _ in broker.consumer_offsets()})
        topics = sorted({topic for topic, _ in broker.view.queues()})
    for place in places({"GROUP": groups[:2], "TOPIC": topics[:2]}):
        compare(store, place)


@pytest.mark.slow
def test_a_filter_is_typed_on_as_what_it_is(stocked):
    async def steps(console):
        def names():
            return [row.group for row in console.app.pane.table.shown]

        await console.read()
        await console.press("slash", "exclamation_mark", "b", "i", "enter")
        await console.press("slash")
        assert console.lines()[-1].strip() == "/!bi"
        await console.press("l")
        assert names() == ["mailer"]
        await console.press("enter", "tilde")
        assert console.lines()[-1].strip() == "~"
        await console.press("enter")
        assert names() == ["mailer"]
        await console.press("tilde", *"bng", "enter", "slash")
        assert console.lines()[-1].strip() == "/"
        await console.press("m", "a")
        assert names() == ["mailer"]
        await console.press("enter", "slash")
        assert console.lines()[-1].strip() == "/ma"

    drive(stocked, steps, "groups")


@pytest.mark.feature(152)
@pytest.mark.slow
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

    drive(stocked, steps, "groups")


@pytest.mark.slow
def test_options_of_the_call_hold_for_the_lists_that_have_the_fields(stocked):
    async def steps(console):
        await console.read()
        assert [row.group for row in console.app.pane.table.shown] == ["billing"]
        await console.press("enter")
        await console.read()
        assert console.app.place.screen == "group"
        shown = {pane.spec.title: pane.table.view for pane in console.app.panes}
        assert shown["QUEUES"].where == "lag > 0"
        assert shown["MEMBERS"].where is None
        assert shown["LAST CHANGES"].columns == ()
        for words in ("topics", "topic orders", "overview", "audit", "agenda", "health"):
            await console.type(f":{words}")
            await console.press("enter")
            await console.read()
            assert console.app.place.screen == words.split()[0]
            assert console.app.notice == ""

    drive(stocked, steps, "groups", where="lag > 0", columns="group,lag", sort="-lag")


@pytest.mark.slow
def test_options_that_fit_no_list_of_the_first_screen_are_refused(stocked):
    with terminal(stocked, "groups", "--where", "nope = 1") as console:
        assert console.ended() == 2
        assert "'nope' is not a field" in console.words()
    with terminal(stocked, "overview", "--where", "lag > 0") as console:
        console.until("nothing needs attention")
        console.send("q")
        assert console.ended() == 0


@pytest.mark.slow
def test_rows_of_the_system_are_shown_where_the_command_shows_them(stocked):
    async def steps(console):
        def names():
            return [row.topic for row in console.app.pane.table.shown]

        def printed():
            return [row["topic"] for row in json_rows(stocked, console.app.pane.command())]

        await console.read()
        assert names() == printed() == ["mails", "orders"]
        await console.type(":where kind != normal")
        await console.press("enter")
        await console.until(lambda: len(names()) > 1)
        assert names() == printed()
        await console.type(":where")
        await console.press("enter")
        await console.until(lambda: names() == ["mails", "orders"])
        await console.type(":all")
        await console.press("enter")
        await console.until(lambda: len(names()) > 2)
        assert "topic list --all" in console.app.pane.command()
        assert names() == printed()

    drive(stocked, steps, "topics")


@pytest.mark.slow
def test_the_cursor_is_on_the_first_row_until_it_is_moved(stocked):
    async def steps(console):
        await console.read()
        await console.type(":sort group")
        await console.press("enter")
        assert console.app.pane.row().group == "billing"
        run("consume", "orders", "-g", "audit", "-e", "-S", stocked)
        await console.until("audit")
        assert console.app.pane.row().group == "audit"

    drive(stocked, steps, "groups")


@pytest.mark.slow
def test_the_cursor_stays_on_its_row_when_others_come(stocked):
    async def steps(console):
        await console.read()
        await console.type(":sort group")
        await console.press("enter", "j")
        assert console.app.pane.row().group == "mailer"
        run("consume", "orders", "-g", "audit", "-e", "-S", stocked)
        await console.until("audit")
        assert console.app.pane.row().group == "mailer"

    drive(stocked, steps, "groups")


def test_the_pane_of_retries_says_that_their_number_is_unknown(store):
    with EmbeddedBroker.open(store) as broker:
        broker.send(Message("%RETRY%billing", b"x"), 0)
        broker.progress.move("billing", {("%RETRY%billing", 0): 1000})
    said: list[str] = []
    with EmbeddedBroker.open(store, read_only=True) as broker:
        source = Source(broker, now_ms(), said.append, {})
        assert list(RETRIES.read(source, Place("retries", ("billing",)))) == []
    (sentence,) = said
    assert sentence in run("retry", "browse", "billing").err
    assert "how many retries wait is unknown: progress 1000 in %RETRY%billing" in sentence
