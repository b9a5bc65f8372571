"""No count on a screen differs from that of its command, or a word says of what it is a part."""

import re
from itertools import product

import pytest
from textual.events import Key as KeyEvent

from analytics.lag.repeated_look import RepeatedLook
from analytics.lag.selection import Choice
from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.console.details import DetailPane
from rmqctl.console.looks import groups as group_looks, lag
from rmqctl.console.looks.lag import lag_rows
from rmqctl.console.looks.look import Place, Source
from rmqctl.console.looks.new_letters import NEW_MS
from rmqctl.console.looks.walks import KEPT
from rmqctl.console.parts import DrawnPane
from rmqctl.console.program.app import ConsoleApp
from rmqctl.console.screens.table import TABLE
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from tests.rmqctl.console.test_rows import OWN_ROWS, RICH_NAMES
from tests.support.cli import run
from tests.support.console import drive, json_rows
from tests.support.dead_letters import give_back
from tests.support.examples import one_in
from tests.support.rich_store import GROUP, make_rich_store

SAYS = re.compile(
    r"so far|of the [\d,]+ there|kept|not shown|these rows are|parts read|\.\.\.|left out"
)
"""Words that say of what a count is a part, or that it is not there yet."""
LETTERS, WAITING, MESSAGES = 700, 600, 1500


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """More groups, queues, messages, dead letters and delays than a screen or a window holds."""
    store = tmp_path_factory.mktemp("many") / "s"
    create_store(store, SMALL_STORE)
    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("wide", 300, 300))
        for topic in ("orders", "mails", "later"):
            broker.update_topic(TopicConfig(topic, 4, 4))
        for queue in range(4):
            broker.send_column("orders", [b"%d" % n for n in range(MESSAGES // 4)], queue)
        broker.send_column("mails", [b"x"] * 40, 0)
        broker.send_column("later", [b"y"] * WAITING, 0, properties={"DELAY": "18"})
        for n in range(60):
            offsets = [OffsetCommit("orders", q, n) for q in range(4)]
            broker.update_consumer_offsets(f"group{n:02d}", [*offsets, OffsetCommit("mails", 0, 1)])
        wide = [OffsetCommit("wide", q, 0) for q in range(300)]
        broker.update_consumer_offsets("billing", [*wide, OffsetCommit("orders", 0, 5)])
        for n in range(LETTERS):
            sent = broker.send(Message("mails", b"%d" % n, keys=f"k{n}"), 1)
            (stored,) = broker.query_unique("mails", sent.msg_id)
            give_back(broker, "billing", stored, why=f"reason {n % 40}")
        broker.progress.move("billing", {("orders", 0): 3}, {"command": "offset reset"})
    return store


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A store with a bit of everything, and the ids of some messages."""
    return make_rich_store(tmp_path_factory.mktemp("whole") / "s", now_ms() - 600_000)


@pytest.fixture(scope="module")
def rich(odd):
    return odd.root


OWN_TESTS = ("follow", "letter", "retry", "trace", "contexts")
"""Screens of what only some messages have, or that are of no store: they have tests below."""


def places_of(store, names):
    """Every screen that shows the names of a store; with a message and a search of its own."""
    with EmbeddedBroker.open(store, read_only=True) as broker:
        msg_id = broker.view.get_message("orders", 0, 0, 1).messages[0].msg_id
    known = {**names, "QUEUE": ["0"], "OFFSET": ["0"], "ID": [msg_id], "WORDS": ["-t orders 1"]}
    known["CHANGE-ID"] = ["1"]
    return [
        Place(screen, chosen)
        for screen, ref in TABLE.items()
        if screen not in OWN_TESTS
        for chosen in product(*(known[name][:1] for name in ref.names))
    ]


def numbers(text):
    """The numbers of a text."""
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def check_lists(console, store):
    """Check the count of each list that is seen, where it stands on the screen."""
    app = console.app
    text = console.text()
    for n in sorted(app.seen()):
        pane = app.panes[n]
        drawn = isinstance(pane, (DrawnPane, DetailPane)) or pane.look.row_type in OWN_ROWS
        if drawn or pane.empty or pane.error:
            continue
        found = json_rows(store, pane.command())
        count = len(found["findings"] if isinstance(found, dict) else found)
        said = pane.count_text()
        if n == app.active:
            assert re.search(rf"   {re.escape(said)}(  |$)", console.lines()[1]), (said, text)
        if len(app.panes) > 1:
            assert f" {pane.spec.title}  {said} " in text, (app.place, said, text)
        assert numbers(said)[0] == count or SAYS.search(said), (app.place, pane.command(), said)
        assert len(pane.table.shown) == numbers(said)[0]


@pytest.mark.parametrize(
    "size", one_in(3, [(80, 24), (140, 40), (60, 15)]), ids=lambda s: f"{s[0]}"
)
@pytest.mark.slow
def test_each_list_counts_as_its_command_does(many, size):
    names = {"GROUP": ["billing"], "TOPIC": ["orders"]}

    async def steps(console):
        for place in places_of(many, names):
            console.app.go(place)
            await console.read()
            check_lists(console, many)

    drive(many, steps, "groups", size=size)


class Said:
    """What commands say of a store, as the drawn panes have it."""

    def __init__(self, store):
        self._store = store

    def rows(self, command):
        """The rows of a command."""
        return json_rows(self._store, f"rmqctl {command}")

    def overview(self):
        """The counts of the overview."""
        lags, topics = self.rows("lag show"), self.rows("topic list")
        letters, agenda = self.rows("dlq list"), self.rows("retry agenda")
        risks, changes = self.rows("lag risk"), self.rows("audit list")
        having = [row for row in letters if row["unhandled"]]
        yield f"GROUPS {len({row['group'] for row in lags})} "
        yield f"TOPICS {len(topics)} "
        yield f"queues {sum(row['read_queues'] for row in topics):,} "
        yield f"messages {sum(row['messages'] for row in topics):,} "
        yield f"{sum(row['unhandled'] for row in having):,} unhandled in {len(having)} group"
        yield f"{sum(row['messages'] for row in agenda):,} waiting"
        new = [row for row in having if now_ms() - row["newest_timestamp"] < NEW_MS]
        attention = [
            *new,
            *(row for row in lags if row["status"] != "OK"),
            *(row for row in agenda if row["state"] != "OK"),
            *(row for row in risks if row["at_risk"] or row["lost"]),
        ]
        yield f"NEEDS ATTENTION  {len(attention):,} "
        if changes:
            yield f"LAST CHANGES  {len(changes):,} "

    def group(self, group):
        """The counts of one group."""
        rows = self.rows(f"lag show -- {group}")
        known = [row["lag"] for row in rows if row["lag"] is not None]
        yield f"{len(rows)} topic"
        yield f"{sum(known):,}  oldest"
        yield f"dlq {rows[0]['dlq']:,}"
        yield f"QUEUES  {len(self.rows(f'lag show --by queue -- {group}')):,} "
        yield f"MEMBERS  {len(self.rows(f'group clients -- {group}')):,} "

    def topic(self, topic):
        """The counts of one topic."""
        rows = self.rows(f"topic queues -- {topic}")
        yield f"MESSAGES {sum(row['count'] for row in rows):,} "
        yield f"{len(rows)} read, "
        yield f"QUEUES  {len(rows):,} "
        yield f"GROUPS THAT READ IT  {len(self.rows(f'lag show --topic={topic}')):,} "

    def agenda(self):
        """The counts of the agenda."""
        rows, levels = self.rows("retry agenda --each"), self.rows("retry agenda")
        yield f"{len(rows):,} wait: "
        yield f"{sum(row['overdue'] for row in levels):,} overdue"
        yield f"LEVELS  {len(levels):,} "

    def health(self):
        """The counts of the store's health."""
        info = self.rows("store info")
        yield f"{info['commitlog']['files']:,} file"
        yield f"{info['messages']:,} messages in {info['queues']:,} queues"


def check_drawn(console, said, place):
    """Check that what is drawn has the counts of commands."""
    expected = getattr(said, place.screen, None)
    if expected is not None:
        text = console.text()
        for words in expected(*place.names):
            assert words in text, (place, words, text)


@pytest.mark.parametrize(
    ("which", "names"),
    [("many", {"GROUP": ["billing"], "TOPIC": ["wide"]}), ("rich", RICH_NAMES)],
    ids=["many", "rich"],
)
@pytest.mark.slow
def test_what_is_drawn_counts_as_commands_do(request, which, names):
    store = request.getfixturevalue(which)
    said = Said(store)

    async def steps(console):
        for place in places_of(store, {**names, "TOPIC": names["TOPIC"]}):
            console.app.go(place)
            await console.read()
            check_drawn(console, said, place)
            check_lists(console, store)

    drive(store, steps, "groups", size=(140, 50))


@pytest.mark.parametrize("size", [(140, 50), (80, 24)], ids=lambda s: f"{s[0]}")
@pytest.mark.slow
def test_lists_of_one_message_count_as_their_commands_do(odd, size):
    places = {
        Place("letter", (GROUP, odd.words["dead_id"])): 1,
        Place("retry", (GROUP, odd.words["retry_id"])): 0,
        Place("trace", (odd.words["traced"],)): 0,
    }

    async def steps(console):
        for place, number in places.items():
            console.app.go(place)
            await console.read()
            assert console.app.panes[number].table.shown, place
            check_lists(console, odd.root)

    drive(odd.root, steps, "groups", size=size)


@pytest.mark.slow
def test_contexts_count_as_their_command_does(store):
    for number in range(40):  # more than the screen has lines
        run("context", "add", f"store{number}", "-S", store)

    async def steps(console):
        await console.read()
        assert console.app.pane.count_text() == "40"
        check_lists(console, store)
        await console.press("slash", *"store1", "enter")
        assert console.app.pane.count_text() == "11 of 40   filter: store1"
        assert "11 of 40" in console.lines()[1]

    drive(store, steps, "contexts")


@pytest.mark.slow
def test_what_follow_counts_is_what_the_topic_got(store):
    def stored():
        (row,) = [row for row in json_rows(store, "rmqctl topic list") if row["topic"] == "orders"]
        return row["messages"]

    def send(broker, count):
        broker.send_column(
            "orders", [b"%d" % n for n in range(count)], [n % 2 for n in range(count)]
        )

    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("orders", 2, 2))
        send(broker, 7)
        before = stored()

        async def steps(console):
            await console.until("0 came")
            for count in (5, 2 * KEPT):
                send(broker, count)
                came = stored() - before
                await console.until(f"{came:,} came")
                left_out = came - KEPT
                said = f"{came:,} came, {came:,} kept"
                if left_out > 0:
                    said = f"{came:,} came, {left_out:,} left out, {KEPT:,} kept"
                await console.until(lambda said=said: said in console.lines()[1])
                pane = console.app.pane
                assert pane.count_text() == said
                assert len(pane.table.shown) == numbers(said)[-1]

        drive(store, steps, "follow", "orders", "*")


@pytest.mark.slow
def test_rows_that_still_come_are_counted_so_far(many):
    seen = set()

    async def steps(console):
        app, take = console.app, console.app._take

        def taken(batch):
            take(batch)
            for pane in app.panes:
                if pane.takes(batch) and pane.loading and pane.table.total:
                    said = pane.count_text()
                    assert "so far" in said or "of the" in said, (app.place, said)
                    assert said in console.text()
                    seen.add(app.place.screen)

        app._take = taken
        for place in places_of(many, {"GROUP": ["billing"], "TOPIC": ["orders"]}):
            app.go(place)
            await console.read()

    drive(many, steps, "groups", size=(140, 50))
    assert {"search", "messages"} <= seen


@pytest.mark.slow
def test_what_has_no_room_is_counted(many):
    async def steps(console):
        await console.read()
        (more,) = re.findall(r"\u2026 (\d+) more", console.text())
        bars = console.text().partition("GROUPS BY LAG")[2].partition("LAST CHANGES")[0]
        drawn = len(re.findall(r"(?m)^  (?:group\d\d|billing) ", bars))
        assert drawn + int(more) == 61
        await console.type(":group billing")
        await console.press("enter")
        await console.read()
        await console.until("of 304 queues more")
        await console.type(":topic wide")
        await console.press("enter")
        await console.read()
        await console.until("of 300 queues more")

    drive(many, steps, "overview", size=(80, 40))


@pytest.mark.slow
def test_a_long_name_leaves_room_for_the_count(rich):
    async def steps(console):
        for place in (Place("topic", ("T" * 127,)), Place("group", ("G" * 120,))):
            console.app.go(place)
            await console.read()
            check_lists(console, rich)

    drive(rich, steps, "groups", size=(60, 15))


def in_parts(monkeypatch):
    """Have a first reading made in parts, as of a store with thousands of queues."""
    monkeypatch.setattr(lag, "_FIRST_QUEUES", 10)
    monkeypatch.setattr(lag, "_MOST_QUEUES", 10)


FALSE_OF_SOME = re.compile(
    r"nothing needs attention|deleted within a day is unread|no group has any progress"
)
"""Sentences about all groups: of some of them they may be false."""


@pytest.mark.parametrize("screen", ["groups", "overview", "health"])
def test_a_first_reading_in_parts_says_so_until_all_is_there(many, monkeypatch, screen):
    """As of a store with more queues than are read at once. Each part is read at once."""
    in_parts(monkeypatch)
    seen = []
    take = ConsoleApp._take

    def noted(app, batch):
        take(app, batch)
        if batch.goes_on:
            seen.append("\n".join("".join(s.text for s in line) for line in app.lines(140, 40)))

    monkeypatch.setattr(ConsoleApp, "_take", noted)

    async def steps(console):
        console.app.look_every(3_600.0)  # no later look helps
        await console.read()
        await console.until(lambda: "still to be looked at" not in console.text())
        await console.until(lambda: not any(pane.loading for pane in console.app.panes))
        check_lists(console, many)
        assert "so far" not in console.text()

    drive(many, steps, screen, size=(140, 40))
    assert len(seen) > 2
    for text in seen:
        assert re.search(r"\d+ of 122 groups in topics are still to be looked at", text), text
        assert not FALSE_OF_SOME.search(text), text
    assert any("so far" in text for text in seen) is (screen != "health")


@pytest.mark.parametrize("key", ["p", "p,^r"])
@pytest.mark.parametrize("screen", ["groups", "overview"])
def test_a_paused_console_reads_all_parts_of_a_screen_that_is_opened(
    many, monkeypatch, screen, key
):
    in_parts(monkeypatch)

    async def steps(console):
        console.app.look_every(3_600.0)
        await console.read()
        for one in key.split(","):
            await console.press(one.replace("^", "ctrl+"))
        assert console.app.paused
        console.app.go(Place(screen))
        await console.read()
        assert not any(pane.loading for pane in console.app.panes)
        check_lists(console, many)

    drive(many, steps, "topics", size=(140, 40))


def test_one_group_is_whole_when_all_its_queues_are_known(many, monkeypatch):
    """It does not wait for those of other groups, and reads one part with each of its looks."""
    in_parts(monkeypatch)
    counts, notes, parts = [], [], []
    look = RepeatedLook.look

    def counted(*args):
        counts.append(1)
        return look(*args)

    monkeypatch.setattr(RepeatedLook, "look", counted)

    def note(sentence):
        if "still to be looked at" in sentence:
            notes.append(sentence)

    with EmbeddedBroker.open(many, read_only=True) as broker:
        source = Source(broker, now_ms(), note, {}, go_on=lambda: parts.append(1))
        whole = None
        while whole is None:
            for each in (notes, parts, counts):
                each.clear()
            groups = [row.group for row in lag_rows(source, Choice())]
            done = (one for one in groups if groups.count(one) == 2 and one != "billing")
            whole = next(done, None)
        assert (len(notes), len(parts), len(counts)) == (1, 1, 1)
        for number, one in enumerate((lag.TRENDS, group_looks.GROUP)):
            rows = list(one.read(source, Place("group", (whole,))))
            assert {row.topic for row in rows} == {"orders", "mails"}
            assert (len(notes), len(parts), len(counts)) == (1, 1, 2 + number)


@pytest.mark.parametrize("screen", ["groups", "overview"])
def test_what_only_a_wide_screen_shows_is_read_there_only(many, screen):
    """And at once when the screen becomes wide."""

    async def steps(console):
        app = console.app
        await console.read()
        pane = app.pane
        assert lag.TRENDS not in pane.looks
        assert pane.rows_of(lag.TRENDS) is None
        app.look_every(3_600.0)  # no later look helps
        await console.until(lambda: not app.reader.busy)
        await console.pilot.resize_terminal(140, 40)
        await console.until(lambda: pane.rows_of(lag.TRENDS) is not None)
        await console.until(lambda: " 1 H" in console.text())
        await console.pilot.resize_terminal(80, 24)
        await console.until(lambda: " 1 H" not in console.text())

    drive(many, steps, screen, size=(80, 24))


def test_a_list_that_is_read_in_parts_can_be_stopped_and_read_again(many, monkeypatch):
    in_parts(monkeypatch)

    async def steps(console):
        app = console.app
        await console.read()
        app.look_every(3_600.0)  # no later look helps
        take, parts = app._take, []

        def stop_at_second_part(batch):
            take(batch)
            if batch.goes_on:
                parts.append(batch)
                if len(parts) == 1:
                    app.on_key(KeyEvent("x", "x"))

        app._take = stop_at_second_part
        app.go(Place("groups"))
        await console.until("stopped (^r: again)")
        pane = app.pane
        found = pane.table.total
        assert 0 < found < 122
        await console.until(lambda: not app.reader.busy)
        assert (pane.table.total, pane.loading) == (found, False)
        await console.press("ctrl+r")
        await console.until(lambda: pane.table.total >= 122 and not pane.loading)
        check_lists(console, many)

    drive(many, steps, "topics", size=(80, 24))
