"""The cells of each screen are what its command prints with -o json, for any --where, --sort and
--columns; beside a member that runs, and for the trends of lags."""

import base64
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.admin.kinds import UsersRows
from rmqctl.admin.store.check_rows import FindingRow
from rmqctl.console.details import DetailPane
from rmqctl.console.looks import groups, lag
from rmqctl.console.looks.history import NO_LOOK, SLOTS, STEP_MS
from rmqctl.console.looks.look import Look, Place, Source
from rmqctl.console.message_panes import MessageTable
from rmqctl.console.panes import Pane
from rmqctl.console.parts import DrawnPane
from rmqctl.console.screens.table import spec_of
from rmqctl.console.tables import UNKNOWN, RowTable, shape_options, view_of
from rmqctl.output.fields import Kind
from rmqctl.output.headings import Times
from rmqctl.output.values import for_people
from rmqctl.output.view import Format, View
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.configs.offset_samples import OffsetSamples
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.parse.times import parse_zone
from tests.rmqctl.console.test_rows import (
    NOW_FIELDS,
    OWN_ROWS,
    RICH_NAMES,
    compare,
    place_name,
    places,
    rich,
    whole,
)
from tests.support import golden
from tests.support.cli import run
from tests.support.console import drive
from tests.support.examples import one_in

__all__ = ["rich"]
UTC = parse_zone("UTC")
NUMBERS = (Kind.INTEGER, Kind.NUMBER, Kind.DURATION, Kind.SIZE, Kind.TIMESTAMP)
SHAPED = {"groups", "group", "topics", "topic", "messages", "dlqs", "dlq", "agenda", "retries"}
SHAPED |= {"audit", "history", "health"}
"""The screens with a list."""


class Listed:
    """A list of a screen: its table, and the rows of its look."""

    def __init__(self, spec: Any, place: Place, source: Source) -> None:
        self.look: Look = spec.look
        self.place = place
        self._broker = source.broker
        pane = (spec.pane or Pane)(spec, place, View(Format.TABLE, zone=UTC, now_ms=source.now_ms))
        self.table: RowTable = pane.table
        self.pane = pane
        self.rows = self.read()
        self.fields = [field for field in self.table.fields if field.name not in NOW_FIELDS]
        self._times = Times(UTC, source.now_ms)

    def read(self) -> list[Any]:
        """Read the rows of now, those that the pane wants."""
        source = Source(self._broker, now_ms(), lambda sentence: None, {})
        rows = whole(self.look, source, self.place)
        if self.look.users_only and not self.pane.wants_everything():
            rows = UsersRows(rows, self._broker.view)
        found = [row for row in rows if row is not None]
        self.table.set_rows(found)
        return found

    def text(self, name: str, value: Any) -> str:
        """The cell of a value of the JSON."""
        field = next(field for field in self.table.fields if field.name == name)
        return for_people(value, field.kind, self._times, raw=False)


def lists_of(place: Place, source: Source) -> list[Listed]:
    """The lists of a screen; one that follows a cursor, of its first row."""
    specs = spec_of(place.screen).panes
    found: list[Listed] = []
    for spec in specs:
        drawn = spec.pane is not None and issubclass(spec.pane, DrawnPane | DetailPane)  # type: ignore[arg-type]
        if drawn or spec.look.row_type in (*OWN_ROWS, FindingRow) or spec.of_row_at is not None:
            continue
        there: Place | None = place
        if spec.of_row is not None:
            rows = list(specs[spec.follows].look.read(source, place))
            there = spec.of_row(rows[0]) if rows else None
        if there is not None:
            found.append(Listed(spec, there, source))
    return found


def quoted(value: str) -> str | None:
    """A text as ``--where`` takes it; None if it has both quotes."""
    if "'" not in value:
        return f"'{value}'"
    return None if '"' in value else f'"{value}"'


@st.composite
def conditions(draw: Any, listed: Listed) -> str | None:
    """A comparison of a field with a value that a row has, or one near to it."""
    field = draw(st.sampled_from(listed.fields))
    at = listed.table.fields.index(field)
    values = [row[at] for row in listed.rows]
    value = draw(st.sampled_from(values)) if values else None
    if value is None or isinstance(value, dict | list | tuple):
        return f"{field.name} {draw(st.sampled_from(('=', '!=')))} null"
    if isinstance(value, bool):
        return f"{draw(st.sampled_from(('', 'not ')))}{field.name}"
    if field.kind in NUMBERS and isinstance(value, int):
        operator = draw(st.sampled_from(("=", "!=", "<", "<=", ">", ">=")))
        return f"{field.name} {operator} {max(0, value + draw(st.integers(-1, 1)))}"
    if isinstance(value, float):
        return f"{field.name} {draw(st.sampled_from(('<', '>')))} {value}"
    text = quoted(str(value))
    return None if text is None else f"{field.name} {draw(st.sampled_from(('=', '!=')))} {text}"


@st.composite
def shapes(draw: Any, listed: Listed) -> View:
    """A view of a list."""
    names = [field.name for field in listed.fields]
    parts = [part for part in draw(st.lists(conditions(listed), max_size=2)) if part is not None]
    where = draw(st.sampled_from((" and ", " or "))).join(parts) or None
    sort = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    signs = [draw(st.sampled_from(("", "-"))) for _ in sort]
    columns = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    return view_of(listed.table.view)._replace(
        where=where,
        sort=tuple(map("".join, zip(signs, sort, strict=True))),
        columns=tuple(columns),
    )


def check(store: Path, listed: Listed, view: View) -> None:
    """Compare the cells of a list with the command of its line."""
    table = listed.table
    table.set_view(view)
    listed.read()
    command = listed.look.command(listed.place, *shape_options(view))
    printed = run("-S", store, "-o", "json", "--tz", "UTC", *shlex.split(command)[1:])
    found = json.loads(printed.out)
    assert isinstance(found, list), command
    assert len(found) == len(table.shown), command
    for number, row in enumerate(found):
        assert tuple(row) == view.columns, command
        expected = [listed.text(name, value) for name, value in row.items()]
        if isinstance(table, MessageTable) and "body" in row:
            expected[view.columns.index("body")] = body_cell(listed, table.shown[number])
        cells = [
            "-" if text == UNKNOWN and value is None else text
            for text, value in zip(table.cells(number), row.values(), strict=True)
        ]
        assert cells == expected, command


def body_cell(listed: Listed, row: Any) -> str:
    """The cell of a body: a list shows the beginning, and bytes where it is no text."""
    if row.body is not None:
        return listed.text("body", row.body[:400])
    if row.body_base64 is None:
        return "-"
    whole = base64.b64decode(row.body_base64)
    return f"bytes {whole[:16].hex(' ')}{' ...' if len(whole) > 16 else ''}"


def check_list(store: Path, listed: Listed, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def shaped(data: Any) -> None:
        check(store, listed, data.draw(shapes(listed)))

    shaped()


def check_shapes(store: Path, place: Place, examples: int) -> None:
    """Compare the lists of a screen in so many shapes each."""
    with EmbeddedBroker.open(store, read_only=True) as broker:
        source = Source(broker, now_ms(), lambda sentence: None, {})
        for listed in lists_of(place, source):
            check_list(store, listed, examples)


def shaped_places(names):
    return [place for place in places(names) if place.screen in SHAPED]


@pytest.mark.feature(152)
@pytest.mark.parametrize("place", one_in(2, shaped_places(RICH_NAMES)))
@pytest.mark.slow
def test_cells_are_those_of_the_command_however_it_is_shaped(rich, place):
    check_shapes(rich, place, 2)


@pytest.mark.long
@pytest.mark.parametrize("place", shaped_places(RICH_NAMES), ids=place_name)
def test_cells_are_those_of_the_command_in_many_shapes(rich, place):
    check_shapes(rich, place, 40)


def check_golden(name, examples):
    store = golden.store(name)
    with EmbeddedBroker.open(store, read_only=True) as broker:
        readers = sorted({group for group, _ in broker.consumer_offsets()})
        topics = sorted({topic for topic, _ in broker.view.queues()})
    for place in shaped_places({"GROUP": readers[:1], "TOPIC": topics[:1]}):
        check_shapes(store, place, examples)


@pytest.mark.parametrize("name", one_in(12, golden.names()))
@pytest.mark.slow
def test_cells_of_golden_stores_are_those_of_the_command(name):
    check_golden(name, 1)


@pytest.mark.long
@pytest.mark.parametrize("name", golden.names())
def test_cells_of_golden_stores_in_many_shapes(name):
    check_golden(name, 10)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Fifty groups that each read 125 topics of eight queues; some have a lag."""
    root = tmp_path_factory.mktemp("large") / "s"
    create_store(root, SMALL_STORE)
    topics = [f"topic-{n:03}" for n in range(125)]
    with EmbeddedBroker.open(root) as broker:
        for number, topic in enumerate(topics):
            broker.update_topic(TopicConfig(topic, 8, 8))
            for queue in range(8):
                for _ in range(1 + number % 3):
                    broker.send(Message(topic, b"1"), queue)
        for n in range(50):
            broker.update_consumer_offsets(
                f"group-{n:02}",
                [
                    OffsetCommit(topic, queue, (n + queue) % 2)
                    for topic in topics
                    for queue in range(8)
                ],
            )
    return root


@pytest.mark.long
@pytest.mark.parametrize(
    "place",
    [
        Place("groups"),
        Place("topics"),
        Place("group", ("group-07",)),
        Place("topic", ("topic-005",)),
    ],
    ids=place_name,
)
def test_cells_of_fifty_groups_and_125_topics_are_those_of_the_command(large, place):
    compare(large, place)
    check_shapes(large, place, 5)


# Beside a member that runs


@pytest.fixture
def consumed(store):
    """A topic that a process consumes."""
    run("produce", "orders", stdin=b"".join(b"%d\n" % n for n in range(30)))
    rmqctl = Path(sys.executable).with_name("rmqctl")
    command = [rmqctl, "-S", store, "consume", "orders", "-g", "billing", "-f", "%s\\n"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(30):
            process.stdout.readline()
        yield store
        process.terminate()
        process.communicate()


@pytest.mark.slow
def test_live_members_are_those_of_the_command(consumed):
    def settled(console):
        rows = run("lag", "show", "billing", "-o", "json", "-S", consumed).json()
        return rows[0]["lag"] == 0

    async def steps(console):
        await console.read()
        await console.until(lambda: settled(console))
        pane = next(p for p in console.app.panes if p.look is groups.MEMBERS)
        await console.until(lambda: len(pane.table.shown) == 1)
        (row,) = run("group", "clients", "billing", "-o", "json", "-S", consumed).json()
        shown = pane.table.shown[0]
        for name in ("group", "client_id", "pid", "consume_type", "subscriptions", "queues"):
            assert getattr(shown, name) == row[name]
        assert "1 member" in console.text()

    drive(consumed, steps, "group", "billing", size=(140, 40))
    for screen, names in (("groups", ()), ("topics", ()), ("topic", ("orders",))):
        compare(consumed, Place(screen, names))


# Trends


@pytest.mark.slow
def test_trends_are_the_lag_as_of_each_sample(store):
    with EmbeddedBroker.open(store, clock=lambda: now_ms() - 3_600_000) as broker:
        for topic, count in (("orders", 40), ("mails", 6)):
            for number in range(count):
                broker.send(Message(topic, b"%d" % number), number % 2)
    for topic in ("orders", "mails"):
        run("consume", topic, "-g", "billing", "-e")
    with EmbeddedBroker.open(store, read_only=True) as broker:
        committed = dict(broker.consumer_offsets())
        ends = {
            topic: {q: broker.view.max_offset_in_queue(topic, q) for q in queues}
            for (_, topic), queues in committed.items()
        }
    now = now_ms()
    samples = OffsetSamples(store)
    times = [now - minutes * 60_000 for minutes in (20, 12, 5)]
    for number, at in enumerate(times):
        earlier = {
            f"{topic}@{group}": {q: max(0, offset - 3 * (3 - number)) for q, offset in qs.items()}
            for (group, topic), qs in committed.items()
        }
        samples.append(earlier, ends, at)
    with EmbeddedBroker.open(store, read_only=True) as broker:
        source = Source(broker, now, lambda sentence: None, {})
        trends = {row.topic: row.lags for row in lag.TRENDS.read(source, Place("groups"))}
    seen = []
    for at in times:
        slot = at // STEP_MS - (now // STEP_MS - SLOTS + 1)
        printed = run("lag", "show", "--as-of", f"@{at / 1000:.3f}", "-o", "json").json()
        expected = {row["topic"]: row["lag"] for row in printed}
        assert {topic: lags[slot] for topic, lags in trends.items()} == expected
        seen.append(expected["orders"])
    assert seen == sorted(seen, reverse=True)
    assert seen[0] > seen[-1] > 0
    last = {row["topic"]: row["lag"] for row in run("lag", "show", "-o", "json").json()}
    assert {topic: lags[-1] for topic, lags in trends.items()} == last
    assert NO_LOOK in trends["orders"]
